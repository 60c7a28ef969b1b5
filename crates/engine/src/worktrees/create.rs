//! Lists and creates worktrees, and runs their start commands.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use codewright_config::SandboxMode;
use codewright_proto::{Signal, TrustStatus, Worktree, WorktreeCreateInput};
use codewright_telemetry::carry;
use codewright_tools::{Progress, ToolCx, run_for_user};
use codewright_workspace::git::{Linked, NewLinked, git_dirs};
use codewright_workspace::make_private_directory;
use tokio::time::timeout;

use super::name::{candidate, plain};
use super::place::{Place, folder};
use super::{BRANCHES, FILES_DEADLINE, GIT_DEADLINE, failed};
use crate::Error;
use crate::hosts::Origin;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::interface::Worktrees;
use crate::sandbox::Subject;
use crate::sandbox::enforcement::Consent;
use crate::session::slug;
use crate::toolbox::cx::tool_cx;

/// The number of linked worktrees that a repository may have.
const MAX_WORKTREES: usize = 100;
/// The number of names that are tried.
const MAX_NAMES: usize = 26;
/// The longest start command, in bytes.
const MAX_COMMAND_BYTES: usize = 16 * 1024;
/// The deadline of a start command.
const COMMAND_DEADLINE: Duration = Duration::from_secs(600);
/// The end of a failed command's output that a message contains, in characters.
const SHOWN_CHARS: usize = 1000;

impl Worktrees<'_> {
    /// Returns the worktrees that were created for the project of a directory and still exist.
    pub async fn list(self, instance: &Instance) -> Result<Vec<String>, Error> {
        let project = instance.project();
        let stored = self.0.store.project_of(&project.worktree).await?;
        let mut listed = stored.map(|project| project.sandboxes).unwrap_or_default();
        // Another clone of the repository replaces the stored project, but not the registrations.
        let folder = folder(self.0, &project.id);
        let linked = git_dirs(Path::new(&project.worktree)).map(|dirs| dirs.linked()).unwrap_or_default();
        for linked in linked.into_iter().filter(|linked| linked.directory.parent() == Some(&folder)) {
            let directory = linked.directory.to_string_lossy().into_owned();
            if !listed.contains(&directory) {
                listed.push(directory);
            }
        }
        listed.retain(|directory| is_directory(Path::new(directory)));
        Ok(listed)
    }

    /// Creates a worktree on a new branch at the current commit of the main worktree.
    ///
    /// Its files are created in the background. `worktree.ready` or `worktree.failed` reports the end.
    pub async fn create(self, instance: &Instance, input: WorktreeCreateInput) -> Result<Worktree, Error> {
        if input.start_command.as_ref().is_some_and(|command| command.len() > MAX_COMMAND_BYTES) {
            return Err(Error::invalid(format!("`startCommand` has more than {MAX_COMMAND_BYTES} bytes")));
        }
        let inner = self.0;
        let _turn = inner.worktrees.turn().await?;
        let place = Place::of(inner, instance).await?;
        if place.dirs.linked().len() >= MAX_WORKTREES {
            return Err(Error::invalid(format!(
                "the repository has {MAX_WORKTREES} worktrees; remove one that is not needed any more"
            )));
        }
        let worktree = link(inner, &place, input.name.as_deref()).await?;
        inner.worktrees.preparing().insert(PathBuf::from(&worktree.directory));
        let listed = place.change_list(inner, |list| list.push(worktree.directory.clone())).await;
        let project = listed.inspect_err(|_| {
            inner.worktrees.preparing().remove(Path::new(&worktree.directory));
        })?;
        let own = project.commands.as_ref().and_then(|commands| commands.get("start")?.as_str());
        let commands = own.map(str::to_owned).into_iter().chain(input.start_command);
        let preparation = Preparation {
            inner: inner.clone(),
            git: place.git,
            worktree: worktree.clone(),
            commands: commands.filter(|command| !command.trim().is_empty()).collect(),
            trust: instance.trust.status,
        };
        inner.tasks.spawn(carry(preparation.run()));
        Ok(worktree)
    }

    /// Runs the project's start command in a worktree, in the background.
    pub(super) fn start_again(self, instance: &Instance, command: Option<String>, worktree: Worktree) {
        let preparation = Preparation {
            inner: self.0.clone(),
            git: instance.git.clone(),
            worktree,
            commands: command.into_iter().filter(|command| !command.trim().is_empty()).collect(),
            trust: instance.trust.status,
        };
        self.0.tasks.spawn(carry(async move { preparation.start().await }));
    }
}

/// Creates a worktree without files under the first free name.
async fn link(inner: &Inner, place: &Place, requested: Option<&str>) -> Result<Worktree, Error> {
    let commit = place.repository.commit_of("HEAD", GIT_DEADLINE).await;
    let commit = commit.ok_or_else(|| Error::machine("git cannot read the current commit"))?;
    make_private_directory(&place.folder)
        .map_err(|error| Error::machine(format!("cannot create `{}`: {error}", place.folder.display())))?;
    // A worktree behind a link would be outside the directory that the program protects.
    let folder = place.folder.canonicalize().unwrap_or_default();
    if folder != place.folder {
        return Err(Error::machine(format!("`{}` is a symbolic link", place.folder.display())));
    }
    let requested = requested.and_then(plain);
    for attempt in 0..MAX_NAMES {
        let name = candidate(requested.as_deref(), attempt, &slug(inner.ids.random()));
        let (directory, branch) = (folder.join(&name), format!("{BRANCHES}{name}"));
        let new = NewLinked {
            directory: &directory,
            branch: Some(&branch),
            commit: &commit,
            deadline: GIT_DEADLINE,
        };
        if place.repository.link(new).await.map_err(failed)? {
            let directory = directory.to_string_lossy().into_owned();
            return Ok(Worktree { name, branch: Some(branch), directory });
        }
    }
    Err(Error::too_many(format!("no free name after {MAX_NAMES} attempts")))
}

fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|data| data.is_dir())
}

/// The work in the background after a worktree was created.
struct Preparation {
    inner: Arc<Inner>,
    git: codewright_workspace::git::Git,
    worktree: Worktree,
    commands: Vec<String>,
    trust: TrustStatus,
}

impl Preparation {
    async fn run(self) {
        let checked_out = self.check_out().await;
        self.inner.worktrees.preparing().remove(Path::new(&self.worktree.directory));
        match checked_out {
            Ok(()) => {
                let Worktree { name, branch, directory } = self.worktree.clone();
                self.inner.store.signal(Signal::WorktreeReady { directory, name, branch });
                self.start().await;
            }
            Err(error) => self.fail(error.to_string()),
        }
    }

    async fn check_out(&self) -> Result<(), Error> {
        let repository = self.git.open(Path::new(&self.worktree.directory)).await.map_err(failed)?;
        repository.check_out(FILES_DEADLINE).await.map_err(failed)
    }

    /// Runs the start commands one after the other. The first failure ends them.
    async fn start(&self) {
        if self.commands.is_empty() {
            return;
        }
        let is_allowed = match self.trust {
            TrustStatus::Trusted | TrustStatus::Unneeded => true,
            TrustStatus::Undecided | TrustStatus::Restricted => false,
        };
        if !is_allowed {
            let message = "the start command did not run, because the project is not trusted; decide about its \
                           trust, then run the command yourself";
            return self.fail(message.to_owned());
        }
        for command in &self.commands {
            if let Err(message) = self.run_command(command).await {
                return self.fail(message);
            }
        }
    }

    async fn run_command(&self, command: &str) -> Result<(), String> {
        let opened = self.inner.instance(Path::new(&self.worktree.directory)).await;
        let instance = opened.map_err(|error| format!("the start command did not run: {error}"))?;
        let cx = self.confined(&instance, command).await?;
        // A command that is dropped is ended with everything that it started.
        let ended = timeout(COMMAND_DEADLINE, run_for_user(command.to_owned(), &cx)).await;
        let output = match ended {
            Ok(Ok(output)) => output,
            Ok(Err(error)) => return Err(format!("the start command did not run: {error}")),
            Err(_) => {
                let seconds = COMMAND_DEADLINE.as_secs();
                return Err(format!("the start command took longer than {seconds} s"));
            }
        };
        match output.metadata.get("exit").and_then(serde_json::Value::as_i64) {
            Some(0) => Ok(()),
            Some(code) => {
                let text = output.output.trim_end();
                let skipped = text.chars().count().saturating_sub(SHOWN_CHARS);
                let shown: String = text.chars().skip(skipped).collect();
                Err(format!("the start command ended with code {code}\n{shown}").trim_end().to_owned())
            }
            None => Err("the start command was ended".to_owned()),
        }
    }

    /// The context of a start command. The user wrote it, and it runs the repository's programs, so it is in the sandbox
    /// of the user's mode. There is no session whose user could be asked about hosts.
    async fn confined(&self, instance: &Arc<Instance>, command: &str) -> Result<ToolCx, String> {
        let mut cx = tool_cx(&self.inner, instance, self.inner.cancel.child_token(), Progress::none());
        // No other command shares the private directory.
        let session_id = self.inner.ids.session();
        let subject = Subject::new(&self.inner, instance, &session_id, &[]);
        if subject.mode() == SandboxMode::Off {
            return Ok(cx);
        }
        let support = self.inner.sandbox_support().await;
        let Some(restricted) = subject.confine(&support, Consent::Given)? else { return Ok(cx) };
        let origin = Origin::without_user(&self.inner, instance, &session_id, command);
        let restricted = origin.map_err(|error| error.to_string())?.connect(restricted)?;
        cx.sandbox = Some(restricted.confined);
        cx.env.set.extend(restricted.variables);
        Ok(cx)
    }

    fn fail(&self, message: String) {
        let directory = self.worktree.directory.clone();
        self.inner.store.signal(Signal::WorktreeFailed { directory, message });
    }
}

/// Describes a registered worktree.
pub(super) fn described(linked: &Linked, branch: &str) -> Worktree {
    let name = linked.directory.file_name().map(|name| name.to_string_lossy().into_owned());
    Worktree {
        name: name.unwrap_or_default(),
        branch: Some(branch.to_owned()),
        directory: linked.directory.to_string_lossy().into_owned(),
    }
}
