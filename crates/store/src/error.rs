//! What can go wrong with a store, one variant for each thing the receiver can do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::ErrorCode;

/// Why something failed; shared, because one failed commit answers many appends.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// A request that the store did not carry out. Nothing of it was stored.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The store was closed; the program is ending.
    #[error("the store is closed")]
    Closed,
    /// Another process kept the store locked, or too much is waiting; the request may be repeated.
    #[error("the store `{}` is busy", .path.display())]
    Busy {
        /// The store's file.
        path: PathBuf,
    },
    /// The file or its directory cannot be created or written.
    #[error("the store `{}` cannot be written", .path.display())]
    Unwritable {
        /// The store's file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: Cause,
    },
    /// The disk is full.
    #[error("there is no room left for the store `{}`", .path.display())]
    Full {
        /// The store's file.
        path: PathBuf,
    },
    /// The file is not a database, or a damaged one.
    #[error("the store `{}` is damaged or not a database", .path.display())]
    Corrupt {
        /// The store's file.
        path: PathBuf,
        /// What the database said.
        #[source]
        source: Cause,
    },
    /// The file is a database of another program.
    #[error("`{}` is a database, but not one of this program", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The files that show which processes live cannot be made or locked.
    #[error("the lock files in `{}` cannot be used", .path.display())]
    Unlockable {
        /// Their folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: Cause,
    },
    /// A newer version of this program has written the store.
    #[error("the store `{}` has schema version {found}, this program knows versions up to {known}", .path.display())]
    Newer {
        /// The store's file.
        path: PathBuf,
        /// The version of the file.
        found: i64,
        /// The latest version that this program knows.
        known: i64,
    },
    /// The event speaks of something that does not exist (any more).
    #[error("there is no {kind} `{id}`")]
    Unknown {
        /// What kind of thing.
        kind: &'static str,
        /// Its id.
        id: String,
    },
    /// The session has changed since it was read; read it again and repeat.
    #[error("the session `{id}` has changed meanwhile")]
    Moved {
        /// The session.
        id: String,
    },
    /// Events are missing before this one; whoever sends them sends those first.
    #[error("the session `{id}` goes on with event {expected}, not {found}")]
    Gap {
        /// The session.
        id: String,
        /// The `seq` that comes next.
        expected: u64,
        /// The `seq` that was given.
        found: u64,
    },
    /// Another owner runs the session; whoever is told this stops.
    #[error("the session `{id}` is run by another process now")]
    Fenced {
        /// The session.
        id: String,
    },
    /// The id is in use elsewhere; an id names one thing for ever.
    #[error("the id `{id}` already names another {kind}")]
    Taken {
        /// What kind of thing.
        kind: &'static str,
        /// The id.
        id: String,
    },
    /// The event contradicts itself or could not be read back.
    #[error("the event `{event}` is not valid: {reason}")]
    Invalid {
        /// The event's name.
        event: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The request is larger than one transaction may be; it has to be split.
    #[error("the request has {size} {unit}, the limit is {limit}")]
    TooLarge {
        /// What was counted.
        unit: &'static str,
        /// How many there are.
        size: usize,
        /// How many there may be.
        limit: usize,
    },
    /// The database does not understand a query, or does not allow what it asks; it has to be changed.
    #[error("{reason}")]
    Refused {
        /// What is wrong with it.
        reason: String,
    },
    /// A stored value cannot be understood: another program or a newer version wrote it.
    #[error("the stored {what} cannot be read")]
    Unreadable {
        /// What it is.
        what: String,
        /// What is wrong with it.
        #[source]
        source: Cause,
    },
    /// The database failed in a way that it never should.
    #[error("the store `{}` failed", .path.display())]
    Failed {
        /// The store's file.
        path: PathBuf,
        /// What the database said.
        #[source]
        source: Cause,
    },
}

impl Error {
    /// What a person may try, where there is something.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Busy { .. } => Some("another process is using the store; try again"),
            Self::Unwritable { .. } => {
                Some("check the disk, and the permissions of the file and of its directory; then try again")
            }
            Self::Unlockable { .. } => {
                Some("check the permissions of the data directory and that its file system has file locks")
            }
            Self::Full { .. } => Some("free some disk space"),
            Self::Corrupt { .. } => Some(
                "end every running instance and start again: what can be read is saved into a new file, the damaged one is kept",
            ),
            Self::Foreign { .. } => {
                Some("name another file; the data of other programs is imported, not opened")
            }
            Self::Newer { .. } => Some("use the newer version of the program"),
            Self::Closed
            | Self::Unknown { .. }
            | Self::Moved { .. }
            | Self::Fenced { .. }
            | Self::Gap { .. }
            | Self::Taken { .. }
            | Self::Invalid { .. }
            | Self::TooLarge { .. }
            | Self::Refused { .. }
            | Self::Unreadable { .. }
            | Self::Failed { .. } => None,
        }
    }

    /// Whether the file is damaged, and not just newer, full or out of reach.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Corrupt { .. } => true,
            // Half a JSON text, or no text at all: nobody has written that.
            Self::Unreadable { source, .. } => {
                let json = source.downcast_ref::<serde_json::Error>();
                json.is_some_and(|json| json.is_syntax() || json.is_eof())
                    && !source.to_string().contains("recursion")
            }
            Self::Closed
            | Self::Busy { .. }
            | Self::Unwritable { .. }
            | Self::Full { .. }
            | Self::Foreign { .. }
            | Self::Unlockable { .. }
            | Self::Newer { .. }
            | Self::Unknown { .. }
            | Self::Moved { .. }
            | Self::Fenced { .. }
            | Self::Refused { .. }
            | Self::Gap { .. }
            | Self::Taken { .. }
            | Self::Invalid { .. }
            | Self::TooLarge { .. }
            | Self::Failed { .. } => false,
        }
    }

    pub(crate) fn unwritable(path: &Path, source: std::io::Error) -> Self {
        Self::Unwritable { path: path.to_owned(), source: Arc::new(source) }
    }

    pub(crate) fn unreadable(
        what: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self::Unreadable { what: what.into(), source: Arc::new(source) }
    }
}

/// A failure below the face, where the file's name is not known.
#[derive(Debug)]
pub(crate) enum Fault {
    /// What the database said.
    Sql(rusqlite::Error),
    /// A finished answer.
    Error(Error),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl Fault {
    /// Whether waiting may help.
    pub(crate) fn is_busy(&self) -> bool {
        match self {
            Self::Sql(error) => {
                matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
            }
            Self::Error(_) => false,
        }
    }

    /// Whether the file is no database, or a damaged one.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Sql(error) => matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
            ),
            Self::Error(error) => error.is_damage(),
        }
    }

    /// The answer for the caller, naming the file.
    pub(crate) fn at(self, path: &Path) -> Error {
        let error = match self {
            Self::Error(error) => return error,
            Self::Sql(error) => error,
        };
        let (code, path, source) = (error.sqlite_error_code(), path.to_owned(), Arc::new(error));
        match code {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy { path },
            // A write or a sync that the system refuses leaves what was stored as it was.
            Some(
                ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                | ErrorCode::SystemIoFailure,
            ) => Error::Unwritable { path, source },
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Error::Corrupt { path, source },
            Some(ErrorCode::DiskFull) => Error::Full { path },
            _ => Error::Failed { path, source },
        }
    }
}
