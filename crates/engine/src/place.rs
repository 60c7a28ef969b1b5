//! One directory: its worktree, project, configuration, agents and models.
//!
//! Opened once and then only read; what a place says never changes while it is held.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use codewright_config::{AgentSpec, LoadInput, Loaded, Worktree};
use codewright_proto::{PathReply, Project, ProjectId, ProjectTime};
use codewright_snapshot::Snapshots;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use crate::engine::Inner;
use crate::models::Models;
use crate::models::signed_in::Credentials;
use crate::request::instructions::{Instruction, instructions};
use crate::{Error, remote};

/// How long git may take to name the first commit; only asked once for each repository.
const GIT_DEADLINE: Duration = Duration::from_secs(5);
/// Warnings kept of a place.
const MAX_WARNINGS: usize = 100;
const DEFAULT_AGENT: &str = "build";

/// One directory and everything that holds in it.
pub struct Place {
    pub(crate) directory: PathBuf,
    pub(crate) worktree: Worktree,
    pub(crate) project: Project,
    pub(crate) models: Models,
    /// What the files were.
    pub(crate) snapshots: Snapshots,
    /// Whether it is kept what files were.
    pub(crate) keeps_files: bool,
    /// Background work that the end of the program waits for.
    pub(crate) tasks: TaskTracker,
    agents: Vec<AgentSpec>,
    default_agent: Option<String>,
    global_rules: Vec<PathBuf>,
    raw_config: Value,
    path: PathReply,
    warnings: Mutex<Vec<String>>,
}

impl Place {
    pub(crate) async fn open(inner: &Inner, directory: &Path) -> Result<Self, Error> {
        let directory = directory
            .canonicalize()
            .map_err(|error| Error::invalid(format!("cannot work in `{}`: {error}", directory.display())))?;
        if !directory.is_dir() {
            return Err(Error::invalid(format!("`{}` is not a directory", directory.display())));
        }
        let worktree = codewright_config::find_worktree(&directory);
        let project = project(inner, &worktree).await?;
        let stored = inner.sign_in.vault().read().map_err(|error| Error::invalid(error.to_string()))?;
        let env = remote::environment(&inner.env, &stored);
        let (served, unserved) = remote::served(inner, &stored).await;
        let input =
            LoadInput { directory: &directory, worktree: &worktree.root, env: &env, dirs: &inner.dirs };
        let Loaded { config, looked_for, warnings, .. } = codewright_config::load_over(input, &served)?;
        let credentials = Credentials { stored, sign_in: Some(inner.sign_in.clone()) };
        let agents = codewright_config::agents(&config, &inner.dirs, &worktree.root)?;
        let models = Models::open(inner, &config, (&credentials, &env), &looked_for).await;
        let warnings = unserved.into_iter().chain(warnings).chain(credentials.stored.warnings);
        let warnings = warnings.chain(inner.catalog.open().warning).take(MAX_WARNINGS).collect();
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let path = PathReply {
            home: text(&inner.dirs.home),
            state: text(&inner.dirs.state),
            config: text(&inner.dirs.config),
            worktree: text(&worktree.root),
            directory: text(&directory),
        };
        Ok(Self {
            snapshots: snapshots(inner, &project, &worktree, &directory),
            keeps_files: config.snapshot != Some(false),
            project,
            models,
            tasks: inner.tasks.clone(),
            agents,
            default_agent: config.default_agent.clone(),
            global_rules: vec![
                inner.dirs.own_config.join("AGENTS.md"),
                inner.dirs.config.join("AGENTS.md"),
                inner.dirs.home.join(".claude/CLAUDE.md"),
            ],
            raw_config: config.raw,
            path,
            warnings: Mutex::new(warnings),
            directory,
            worktree,
        })
    }

    /// Where things are.
    #[must_use]
    pub fn path(&self) -> PathReply {
        self.path.clone()
    }

    /// The project of the directory.
    #[must_use]
    pub fn project(&self) -> Project {
        self.project.clone()
    }

    /// The merged configuration.
    #[must_use]
    pub fn config_json(&self) -> Value {
        self.raw_config.clone()
    }

    pub(crate) fn raw_config(&self) -> &Value {
        &self.raw_config
    }

    /// The agents, as `GET /agent` lists them.
    #[must_use]
    pub fn agents_json(&self) -> Value {
        // Plain data: it always has a JSON form.
        serde_json::to_value(&self.agents).unwrap_or_default()
    }

    /// The providers and their models, as `GET /config/providers` lists them.
    #[must_use]
    pub fn providers_json(&self) -> Value {
        self.models.json()
    }

    /// Every provider there is, as `GET /provider` lists them.
    #[must_use]
    pub fn provider_list_json(&self) -> Value {
        self.models.list_json()
    }

    /// The providers that can be used; an error if there is none.
    pub fn usable_providers(&self) -> Result<Vec<Value>, Error> {
        self.models.usable_json()
    }

    /// One provider that is set up, as `GET /config/providers` lists it.
    pub fn provider_json(&self, id: &str) -> Result<Value, Error> {
        self.models.provider_json(id)
    }

    /// What was wrong and could be left out, for people.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn warn(&self, warning: &str) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.len() < MAX_WARNINGS && !warnings.iter().any(|known| known == warning) {
            warnings.push(warning.to_owned());
        }
    }

    pub(crate) fn directory_text(&self) -> String {
        self.path.directory.clone()
    }

    pub(crate) fn worktree_text(&self) -> String {
        self.path.worktree.clone()
    }

    /// The agent of that name.
    pub(crate) fn agent(&self, name: &str) -> Result<&AgentSpec, Error> {
        self.agents.iter().find(|agent| agent.name == name).ok_or_else(|| {
            let names = self.agents.iter().filter(|agent| !agent.hidden).map(|agent| agent.name.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            Error::invalid(format!("agent `{name}` not found; there are {names}"))
        })
    }

    /// The wanted agent, else the configured one, else `build`.
    pub(crate) fn agent_name(&self, wanted: Option<&str>) -> Result<String, Error> {
        let name = wanted.or(self.default_agent.as_deref()).unwrap_or(DEFAULT_AGENT);
        Ok(self.agent(name)?.name.clone())
    }

    /// The rule files as they are now, and what was left out.
    pub(crate) fn instructions(&self) -> (Vec<Instruction>, Vec<String>) {
        instructions(&self.global_rules, &self.worktree.root, &self.directory)
    }
}

/// The snapshots of a directory; nothing is made before the first one.
fn snapshots(inner: &Inner, project: &Project, worktree: &Worktree, directory: &Path) -> Snapshots {
    let mut options =
        codewright_snapshot::Options::new(&inner.dirs.data, project.id.as_str(), &worktree.root, directory);
    options.home = inner.dirs.home.canonicalize().ok();
    options.search = inner.env.get("PATH").map(OsString::from);
    Snapshots::new(options)
}

/// The project of a worktree: remembered, or named after the repository's first commit.
pub(crate) async fn project(inner: &Inner, worktree: &Worktree) -> Result<Project, Error> {
    let root = worktree.root.to_string_lossy().into_owned();
    if let Some(known) = inner.store.project_of(&root).await? {
        // A repository that had no commit when it was first seen may have one now.
        if known.id != ProjectId::global() || !worktree.git {
            return Ok(known);
        }
    }
    let id = if worktree.git { first_commit(&worktree.root).await } else { None };
    let now = inner.clock.now_ms();
    let project = Project {
        id: id.unwrap_or_else(ProjectId::global),
        worktree: root,
        vcs: worktree.git.then(|| "git".to_owned()),
        name: None,
        icon: None,
        commands: None,
        time: ProjectTime { created: now, updated: now, initialized: None },
        sandboxes: Vec::new(),
    };
    inner.store.save_project(project.clone()).await?;
    Ok(project)
}

/// The hash of the repository's first commit; `None` without git, commits or patience.
async fn first_commit(root: &Path) -> Option<ProjectId> {
    let mut command = tokio::process::Command::new("git");
    command.args(["rev-list", "--max-parents=0", "HEAD"]).current_dir(root);
    command.env("GIT_OPTIONAL_LOCKS", "0");
    command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(GIT_DEADLINE, command.output()).await.ok()?.ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut roots: Vec<_> = text.lines().map(str::trim).filter(|line| line.len() >= 40).collect();
    roots.sort_unstable();
    roots.first().map(|root| ProjectId((*root).into()))
}
