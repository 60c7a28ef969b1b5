//! What can go wrong with a directory.

use std::io;
use std::path::{Path, PathBuf};

/// A failure of the file system or of something run in it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The named path could not be used; another path or right may help.
    #[error("cannot use `{}`: {source}", path.display())]
    Path {
        /// The path as it was resolved.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is larger than this operation takes into memory.
    #[error("`{}` is larger than {limit_bytes} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The bound it exceeds.
        limit_bytes: u64,
    },
    /// The file is not UTF-8, so changing it as text would damage it.
    #[error("`{}` is not valid UTF-8 text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// The pattern has to be written differently.
    #[error("{message}")]
    Pattern {
        /// The explanation of the pattern's parser.
        message: String,
    },
    /// The caller gave up.
    #[error("cancelled")]
    Cancelled,
    /// The program could not be started.
    #[error("cannot start `{}`: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no git; what needs it is left out.
    #[error("the `git` program was not found")]
    NoGit,
    /// Git printed more than is kept; a narrower question may help.
    #[error("git prints more than {limit_bytes} bytes")]
    GitOutput {
        /// The bound.
        limit_bytes: usize,
    },
    /// Git cannot be used on this repository, or did not do its work.
    #[error("{message}")]
    Git {
        /// What failed, for a person.
        message: String,
    },
}

impl Error {
    /// Names `path` as the place where `source` happened.
    pub(crate) fn at(path: &Path, source: io::Error) -> Self {
        Self::Path { path: path.to_owned(), source }
    }

    /// Whether the cause is a path that does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Path { source, .. }
            if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
    }
}
