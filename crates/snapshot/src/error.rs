//! The errors of snapshots.

use std::io;
use std::path::{Path, PathBuf};

use crate::TreeId;

/// An error of a snapshot. No error damages a file of the user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Snapshots are not available here. The effects that the caller reports still work.
    #[error("snapshots are off: {reason}")]
    Off {
        /// The reason, for the user.
        reason: String,
    },
    /// The tree or one of its files was dropped or never existed. There is no remedy.
    #[error("the snapshot `{tree}` is no longer kept")]
    Gone {
        /// The missing tree.
        tree: TreeId,
    },
    /// The quota is too small. A larger one or fewer files help.
    #[error("the snapshot needs {needed_bytes} bytes, which the quota of {quota_bytes} bytes does not allow")]
    Quota {
        /// The number of bytes to write.
        needed_bytes: u64,
        /// The quota.
        quota_bytes: u64,
    },
    /// Another process uses this snapshot repository. Trying again may help.
    #[error("the snapshot repository `{}` is in use", directory.display())]
    Busy {
        /// The repository.
        directory: PathBuf,
    },
    /// The operation was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The named path could not be used.
    #[error("cannot use `{}`: {source}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Git failed.
    #[error("`git {command}` failed: {message}")]
    Git {
        /// The git command.
        command: String,
        /// The end of the error output, or that it took too long.
        message: String,
    },
}

impl Error {
    /// Adds the path to an I/O error.
    pub(crate) fn at(path: &Path, source: io::Error) -> Self {
        Self::Path { path: path.to_owned(), source }
    }
}
