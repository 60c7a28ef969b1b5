//! Finds the repository that a directory belongs to, without running git.

use std::path::{Path, PathBuf};

/// The directory tree of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// The top directory of the repository; the file system's root outside of one.
    pub root: PathBuf,
    /// Whether the directory is in a git repository.
    pub git: bool,
}

/// The nearest directory at or above `directory` that holds `.git`, be it a directory or, in linked
/// worktrees and submodules, a file.
#[must_use]
pub fn find_worktree(directory: &Path) -> Worktree {
    let repository = directory.ancestors().find(|above| above.join(".git").exists());
    match repository {
        Some(root) => Worktree { root: root.to_owned(), git: true },
        None => Worktree { root: PathBuf::from("/"), git: false },
    }
}
