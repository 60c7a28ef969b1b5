//! What can go wrong with snapshots.

use std::io;
use std::path::{Path, PathBuf};

use crate::TreeId;

/// A failure of a snapshot; none of them harms a file of the user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There are no snapshots here; what the caller records itself still works.
    #[error("snapshots are off: {reason}")]
    Off {
        /// Why, for a person.
        reason: String,
    },
    /// The tree or a file in it was dropped, or was never here; nothing can be done about it.
    #[error("the snapshot `{tree}` is no longer kept")]
    Gone {
        /// The tree that was asked for.
        tree: TreeId,
    },
    /// The quota is too small for this; a larger one or fewer files help.
    #[error("the snapshot needs {needed_bytes} bytes, which the quota of {quota_bytes} bytes does not allow")]
    Quota {
        /// The bytes that were to be written.
        needed_bytes: u64,
        /// The quota that refused them.
        quota_bytes: u64,
    },
    /// Another process is at work on this snapshot repository; trying again may help.
    #[error("the snapshot repository `{}` is in use", directory.display())]
    Busy {
        /// The repository.
        directory: PathBuf,
    },
    /// The caller gave up.
    #[error("cancelled")]
    Cancelled,
    /// The named path could not be used.
    #[error("cannot use `{}`: {source}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Git did not do its work.
    #[error("`git {command}` failed: {message}")]
    Git {
        /// The command within git.
        command: String,
        /// The end of what it said, or that it took too long.
        message: String,
    },
}

impl Error {
    /// Names `path` as the place where `source` happened.
    pub(crate) fn at(path: &Path, source: io::Error) -> Self {
        Self::Path { path: path.to_owned(), source }
    }
}
