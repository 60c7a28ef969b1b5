//! Removes and resets worktrees, without losing content.
//!
//! Content is lost if it is in no commit, or if no other branch, tag or remote branch contains its commit. Ignored files
//! and deletions do not count.

use std::path::{Path, PathBuf};

use codewright_proto::{Signal, Toast, ToastVariant};
use codewright_workspace::git::{Head, Linked, Repository, nested_repository};

use super::create::described;
use super::place::{Place, named};
use super::{BRANCHES, FILES_DEADLINE, GIT_DEADLINE, failed};
use crate::Error;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::interface::{Instances, Worktrees};
use crate::session::locks::Exclusive;

/// The number of sessions of a worktree that are locked while it is changed.
const MAX_LOCKED: usize = 100;

impl Worktrees<'_> {
    /// Removes a worktree, and its branch unless that has its own commits.
    ///
    /// A worktree that does not exist any more is removed from the list.
    pub async fn remove(self, instance: &Instance, directory: &Path) -> Result<bool, Error> {
        let inner = self.0;
        let _turn = inner.worktrees.turn().await?;
        let place = Place::of(inner, instance).await?;
        let Some(linked) = self.target(&place, directory)? else {
            forget(inner, &place, directory).await?;
            return Ok(true);
        };
        let _idle = idle_sessions(inner, &place, &linked).await?;
        let exists = linked.directory.symlink_metadata().is_ok();
        if exists {
            let repository = place.git.open(&linked.directory).await.map_err(failed)?;
            refuse_unsaved(&linked, &repository).await?;
        }
        let own = match &linked.head {
            Some(head) => place.repository.own_commits(head, FILES_DEADLINE).await.map_err(failed)?,
            None => 0,
        };
        if let (Some(Head::Detached(commit)), 1..) = (&linked.head, own) {
            return Err(Error::invalid(format!(
                "`{}` has {own} commits that are on no branch; `git branch NAME {commit}` keeps them",
                linked.directory.display()
            )));
        }
        if exists {
            self.delete_files(&linked).await?;
        }
        linked.unregister().map_err(failed)?;
        if let Some(Head::Branch(branch)) = &linked.head {
            clean_branch(inner, &place, branch, own).await?;
        }
        forget(inner, &place, &linked.directory).await?;
        Ok(true)
    }

    /// Moves the branch of a worktree without its own content to the default branch, and runs the project's start
    /// command.
    pub async fn reset(self, instance: &Instance, directory: &Path) -> Result<bool, Error> {
        let inner = self.0;
        let _turn = inner.worktrees.turn().await?;
        let place = Place::of(inner, instance).await?;
        let Some(linked) = self.target(&place, directory)?.filter(Linked::is_intact) else {
            return Err(Error::invalid(format!("there is no worktree `{}`", directory.display())));
        };
        let _idle = idle_sessions(inner, &place, &linked).await?;
        let repository = place.git.open(&linked.directory).await.map_err(failed)?;
        refuse_unsaved(&linked, &repository).await?;
        let Some(Head::Branch(branch)) = &linked.head else {
            return Err(Error::invalid(format!("`{}` is on no branch", linked.directory.display())));
        };
        let head = Head::Branch(branch.clone());
        let own = place.repository.own_commits(&head, FILES_DEADLINE).await.map_err(failed)?;
        if own > 0 {
            return Err(Error::invalid(format!(
                "the branch `{branch}` has {own} commits that are on no other branch; merge them, or keep them \
                 with `git branch NAME {branch}`"
            )));
        }
        let main = inner.instance(&place.root).await?;
        let to = default_commit(&main, &place.repository).await?;
        let from = place.repository.commit_of(&format!("refs/heads/{branch}"), GIT_DEADLINE).await;
        let from = from.ok_or_else(|| Error::machine(format!("the branch `{branch}` does not exist")))?;
        repository.reset_branch(branch, [&from, &to], FILES_DEADLINE).await.map_err(failed)?;
        let project = place.change_list(inner, |_| {}).await?;
        let start = project.commands.as_ref().and_then(|commands| commands.get("start")?.as_str());
        self.start_again(&main, start.map(str::to_owned), described(&linked, branch));
        Ok(true)
    }

    /// Returns the worktree to change; `None` if both its directory and its registration are missing.
    fn target(self, place: &Place, directory: &Path) -> Result<Option<Linked>, Error> {
        let shown = directory.display();
        if !directory.is_absolute() {
            return Err(Error::invalid(format!("`{shown}` is not an absolute path")));
        }
        if directory.canonicalize().is_ok_and(|real| real == place.root) {
            return Err(Error::invalid(format!("`{shown}` is the main worktree")));
        }
        let is_missing = directory.symlink_metadata().is_err();
        let Some(linked) = place.find(directory) else {
            if is_missing {
                return Ok(None);
            }
            return Err(Error::invalid(format!("`{shown}` is not a worktree of this project")));
        };
        if self.0.worktrees.is_preparing(&linked.directory) {
            return Err(Error::invalid(format!(
                "`{shown}` is still being created; wait for `worktree.ready`"
            )));
        }
        if linked.is_locked {
            return Err(Error::invalid(format!("`{shown}` is locked; `git worktree unlock` unlocks it")));
        }
        if !is_missing && !linked.is_intact() {
            return Err(Error::invalid(format!(
                "`{shown}` is not the registered worktree any more; `git worktree repair` or `git worktree prune` \
                 corrects the registration"
            )));
        }
        Ok(Some(linked))
    }

    async fn delete_files(self, linked: &Linked) -> Result<(), Error> {
        // Sessions can be at work below the root too, each in its own instance.
        if let Ok(instance) = self.0.instance(&linked.directory).await {
            Instances(self.0).dispose(&instance).await;
        }
        let directory = linked.directory.clone();
        let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(&directory)).await;
        let removed = removed.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        removed.map_err(|error| {
            Error::machine(format!("cannot remove `{}`: {error}", linked.directory.display()))
        })
    }
}

/// Locks the sessions of a worktree. Fails if one of them runs.
async fn idle_sessions(inner: &Inner, place: &Place, linked: &Linked) -> Result<Vec<Exclusive>, Error> {
    let sessions = place.sessions(inner, &linked.directory).await?;
    if let Some(running) = sessions.iter().find(|session| inner.runs.is_running(session)) {
        return Err(Error::invalid(format!(
            "the session `{running}` is running in `{}`; wait for it or abort it",
            linked.directory.display()
        )));
    }
    let mut locks = Vec::new();
    for session in sessions.iter().take(MAX_LOCKED) {
        let lock = inner.session_locks.exclusive(&inner.runs, &inner.store, session).await;
        locks.push(lock.map_err(|error| {
            Error::invalid(format!("a session is at work in `{}`: {error}", linked.directory.display()))
        })?);
    }
    Ok(locks)
}

/// Fails if a worktree has content that is in no commit.
async fn refuse_unsaved(linked: &Linked, repository: &Repository) -> Result<(), Error> {
    let shown = linked.directory.display();
    if linked.is_mid_operation {
        return Err(Error::invalid(format!("a merge, rebase or similar is in progress in `{shown}`")));
    }
    let files = repository.unsaved_files(FILES_DEADLINE).await.map_err(failed)?;
    if !files.is_empty() {
        return Err(Error::invalid(format!(
            "`{shown}` has {} files with uncommitted changes, which would be lost: {}; commit, move or delete them",
            files.len(),
            named(&files)
        )));
    }
    let directory = linked.directory.clone();
    let nested = tokio::task::spawn_blocking(move || nested_repository(&directory)).await;
    let nested = nested.map_err(|error| Error::machine(format!("cannot search `{shown}`: {error}")))?;
    match nested.map_err(failed)? {
        Some(nested) => Err(Error::invalid(format!(
            "`{}` is another repository inside the worktree; move or delete it",
            nested.display()
        ))),
        None => Ok(()),
    }
}

/// Deletes a branch of a removed worktree if it was created for the worktree and has no commits that are only there.
async fn clean_branch(inner: &Inner, place: &Place, branch: &str, own: u64) -> Result<(), Error> {
    let is_ours = branch.starts_with(BRANCHES);
    let used = Head::Branch(branch.to_owned());
    let is_used = place.dirs.linked().iter().any(|linked| linked.head.as_ref() == Some(&used));
    let commit = place.repository.commit_of(&format!("refs/heads/{branch}"), GIT_DEADLINE).await;
    let (Some(commit), true, false) = (commit, is_ours, is_used) else { return Ok(()) };
    if own > 0 {
        let message =
            format!("The branch `{branch}` was kept, because {own} of its commits are on no other branch.");
        let toast = Toast { message, variant: ToastVariant::Info, ..Toast::default() };
        let directory = place.root.to_string_lossy().into_owned();
        inner.store.signal(Signal::TuiToastShow { directory, toast });
        return Ok(());
    }
    place.repository.delete_branch(branch, &commit, GIT_DEADLINE).await.map_err(failed)
}

/// Removes a worktree from the list of the project.
async fn forget(inner: &Inner, place: &Place, directory: &Path) -> Result<(), Error> {
    let gone = |listed: &String| Path::new(listed) == directory || !PathBuf::from(listed).exists();
    place.change_list(inner, |list| list.retain(|listed| !gone(listed))).await?;
    Ok(())
}

/// Returns the commit of the default branch.
async fn default_commit(main: &Instance, repository: &Repository) -> Result<String, Error> {
    let Some(branch) = main.vcs().await.default_branch else {
        return Err(Error::invalid("the repository has no default branch"));
    };
    for name in [format!("refs/heads/{branch}"), format!("refs/remotes/origin/{branch}")] {
        if let Some(commit) = repository.commit_of(&name, GIT_DEADLINE).await {
            return Ok(commit);
        }
    }
    Err(Error::invalid(format!("the default branch `{branch}` has no commit")))
}
