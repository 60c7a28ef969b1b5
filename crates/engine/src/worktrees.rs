//! The worktrees of a project: further directories of its repository, each on its own branch.
//!
//! A worktree is created in `<data>/worktree/<project>/<name>` on the branch `opencode/<name>`. Its files are created
//! in the background, without hooks and filters of the repository. Then the start commands run, unless the repository
//! waits for a decision about trust. A removal never loses content: a worktree with uncommitted files is kept, and so
//! is a branch with its own commits.

mod create;
mod name;
mod place;
mod remove;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::timeout;

use crate::Error;

/// The prefix of the branches that this program creates.
const BRANCHES: &str = "opencode/";
/// The deadline of a git process that does not write or compare the files of a worktree.
const GIT_DEADLINE: Duration = Duration::from_secs(30);
/// The deadline of a git process that writes or compares all files of a worktree.
const FILES_DEADLINE: Duration = Duration::from_secs(300);
/// How long a change of the worktrees waits for another one.
const PATIENCE: Duration = Duration::from_secs(60);

/// The worktrees that this process changes.
#[derive(Default)]
pub(crate) struct WorktreeState {
    turn: tokio::sync::Mutex<()>,
    preparing: Mutex<HashSet<PathBuf>>,
}

impl WorktreeState {
    /// Waits until no other change of worktrees is in progress.
    async fn turn(&self) -> Result<tokio::sync::MutexGuard<'_, ()>, Error> {
        let waited = timeout(PATIENCE, self.turn.lock()).await;
        waited.map_err(|_| Error::machine("another change of the worktrees takes too long; try again later"))
    }

    /// The worktrees whose files are being created.
    fn preparing(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.preparing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports whether the files of a worktree are being created.
    pub(crate) fn is_preparing(&self, directory: &Path) -> bool {
        self.preparing().contains(directory)
    }
}

/// Converts an error of git.
fn failed(error: codewright_workspace::Error) -> Error {
    Error::machine(error.to_string())
}
