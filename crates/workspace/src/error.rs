//! The errors of this crate.

use std::io;
use std::path::{Path, PathBuf};

/// An error of the file system or of a process.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path could not be used. Another path or other permissions may help.
    #[error("cannot use `{}`: {source}", path.display())]
    Path {
        /// The path as it was resolved.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A link took the place of a directory or file after the path was checked. Nothing was read or written.
    #[error("`{}` was replaced after it was checked", path.display())]
    Replaced {
        /// The path as it was resolved.
        path: PathBuf,
    },
    /// The file is too large for this operation.
    #[error("`{}` is larger than {limit_bytes} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit_bytes: u64,
    },
    /// The file is not UTF-8, so an edit as text would damage it.
    #[error("`{}` is not valid UTF-8 text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// The pattern is invalid.
    #[error("{message}")]
    Pattern {
        /// The message of the pattern's parser.
        message: String,
    },
    /// The operation was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The program could not be started.
    #[error("cannot start `{}`: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A command cannot be restricted, and was not started or was ended.
    #[error(transparent)]
    Sandbox(#[from] codewright_sandbox::Error),
    /// Git is not installed. Features that need it are left out.
    #[error("the `git` program was not found")]
    NoGit,
    /// Git printed too much. A narrower request may help.
    #[error("git prints more than {limit_bytes} bytes")]
    GitOutput {
        /// The limit.
        limit_bytes: usize,
    },
    /// Git cannot be used on this repository, or failed.
    #[error("{message}")]
    Git {
        /// The failure, for the user.
        message: String,
    },
}

impl Error {
    /// Adds the path to an I/O error.
    pub(crate) fn at(path: &Path, source: io::Error) -> Self {
        Self::Path { path: path.to_owned(), source }
    }

    /// Whether the cause is a path that does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Path { source, .. }
            if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
    }
}
