//! The errors of the store. Each variant calls for a different reaction.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::ErrorCode;

/// The cause of a failure. Shared, because one failed commit fails many appends.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// A failed request. Nothing was stored.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The store was closed, because the program is ending.
    #[error("the store is closed")]
    Closed,
    /// Another process keeps the store locked, or the queue is full. The request can be repeated.
    #[error("the store `{}` is busy", .path.display())]
    Busy {
        /// The store's file, or its address without user and password.
        path: PathBuf,
    },
    /// The file or its directory cannot be created or written.
    #[error("the store `{}` cannot be written", .path.display())]
    Unwritable {
        /// The store's file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: Cause,
    },
    /// The disk is full.
    #[error("the disk is full: cannot write the store `{}`", .path.display())]
    Full {
        /// The store's file.
        path: PathBuf,
    },
    /// The file is damaged or not a database.
    #[error("the store `{}` is damaged or not a database", .path.display())]
    Corrupt {
        /// The store's file.
        path: PathBuf,
        /// The database's error.
        #[source]
        source: Cause,
    },
    /// The file is a database of another program.
    #[error("`{}` is a database, but not one of this program", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The lock files, which show which processes are alive, cannot be created or locked.
    #[error("the lock files in `{}` cannot be used", .path.display())]
    Unlockable {
        /// Their directory.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: Cause,
    },
    /// A newer version of the program has written the store.
    #[error("the store `{}` has schema version {found}; this program supports versions up to {known}", .path.display())]
    Newer {
        /// The store's file.
        path: PathBuf,
        /// The version of the file.
        found: i64,
        /// The latest version that this program knows.
        known: i64,
    },
    /// The database server cannot be reached, or the connection broke. A write may have been stored anyway.
    #[error("the database `{store}` cannot be reached")]
    Unreachable {
        /// The address without user and password.
        store: String,
        /// The connection's error.
        #[source]
        source: Cause,
    },
    /// The server refuses the connection, or the user lacks rights.
    #[error("the database `{store}` refuses access")]
    Denied {
        /// The address without user and password.
        store: String,
        /// The server's error.
        #[source]
        source: Cause,
    },
    /// The server has no such database.
    #[error("the database `{store}` does not exist")]
    NoDatabase {
        /// The address without user and password.
        store: String,
    },
    /// The database can only be read.
    #[error("the database `{store}` is read-only")]
    ReadOnly {
        /// The address without user and password.
        store: String,
    },
    /// The database cannot store every text.
    #[error("the database `{store}` has the encoding {encoding}; it must be UTF8")]
    Encoding {
        /// The address without user and password.
        store: String,
        /// The encoding.
        encoding: String,
    },
    /// The address of a database is not valid. The text never contains the address, which may have a password.
    #[error("the address of the store is not valid: {reason}")]
    Address {
        /// The problem.
        reason: String,
    },
    /// The event refers to something that does not exist.
    #[error("there is no {kind} `{id}`")]
    Unknown {
        /// The kind of object.
        kind: &'static str,
        /// Its id.
        id: String,
    },
    /// The session has changed since it was read. Read it again and repeat the request.
    #[error("the session `{id}` has changed in the meantime")]
    Conflict {
        /// The session.
        id: String,
    },
    /// Earlier events are missing. The sender must send them first.
    #[error("the next event of the session `{id}` is {expected}, not {found}")]
    Gap {
        /// The session.
        id: String,
        /// The expected `seq`.
        expected: u64,
        /// The `seq` of the event.
        found: u64,
    },
    /// Another owner runs the session. The receiver must stop.
    #[error("the session `{id}` is now run by another process")]
    Fenced {
        /// The session.
        id: String,
    },
    /// The id is in use. Ids are never reused.
    #[error("the id `{id}` is used by another {kind}")]
    IdInUse {
        /// The kind of object.
        kind: &'static str,
        /// The id.
        id: String,
    },
    /// The event is inconsistent, or could not be read back.
    #[error("the event `{event}` is not valid: {reason}")]
    Invalid {
        /// The event's name.
        event: &'static str,
        /// The problem.
        reason: String,
    },
    /// The request exceeds the size limit of a transaction and must be split.
    #[error("the request has {size} {unit}, the limit is {limit}")]
    TooLarge {
        /// What was counter.
        unit: &'static str,
        /// The size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// The database rejected the query, which must be changed.
    #[error("{reason}")]
    Refused {
        /// The problem.
        reason: String,
    },
    /// A stored value cannot be parsed: another program or a newer version has written it.
    #[error("the stored {what} cannot be read")]
    Unreadable {
        /// The name of the value.
        what: String,
        /// The problem.
        #[source]
        source: Cause,
    },
    /// The database failed unexpectedly.
    #[error("the store `{}` failed", .path.display())]
    Failed {
        /// The store's file.
        path: PathBuf,
        /// The database's error.
        #[source]
        source: Cause,
    },
}

impl Error {
    /// Whether the same request may succeed later: the database cannot be reached or is busy.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Busy { .. } | Self::ReadOnly { .. })
    }

    /// Advice for the user, if there is any.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Busy { .. } => Some("another process is using the store; try again"),
            Self::Unwritable { .. } => Some(
                "check the disk, and the permissions of the file and of its directory; for a home that can only be read, set XDG_DATA_HOME to a directory that can be written",
            ),
            Self::Unlockable { .. } => Some(
                "check the permissions of the data directory, and that its file system supports file locks",
            ),
            Self::Full { .. } => Some("free some disk space"),
            Self::Corrupt { .. } => Some(
                "end all running instances and start again: the readable content is saved into a new file, and the damaged file is kept",
            ),
            Self::Foreign { .. } => {
                Some("use another file; data of other programs can be imported, not opened")
            }
            Self::Newer { .. } => Some("use a newer version of the program"),
            Self::Unreachable { .. } => Some(
                "check that the server runs and can be reached from here, and the host and port of the store's address; everything that was acknowledged is stored",
            ),
            Self::Denied { .. } => Some(
                "check the user, the password or password file and the TLS options of the store's address; the user needs the right to connect and, for the first start, to create tables in its schema",
            ),
            Self::NoDatabase { .. } => {
                Some("create it, for example with `createdb -E UTF8 NAME`, or name another one")
            }
            Self::ReadOnly { .. } => Some(
                "the server may be a standby: use the address of the primary server, or end its read-only mode",
            ),
            Self::Encoding { .. } => {
                Some("create a database with `createdb -E UTF8 -T template0 NAME` and use that one")
            }
            Self::Address { .. } => Some(
                "the form is `postgres://USER@HOST:PORT/DATABASE?sslmode=verify-full`; characters such as `@` in a password are written as `%40`",
            ),
            Self::Closed
            | Self::Unknown { .. }
            | Self::Conflict { .. }
            | Self::Fenced { .. }
            | Self::Gap { .. }
            | Self::IdInUse { .. }
            | Self::Invalid { .. }
            | Self::TooLarge { .. }
            | Self::Refused { .. }
            | Self::Unreadable { .. }
            | Self::Failed { .. } => None,
        }
    }

    /// Whether the file is damaged, as opposed to newer, full or not accessible.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Corrupt { .. } => true,
            // Truncated or invalid JSON, which no program has written.
            Self::Unreadable { source, .. } => {
                let json = source.downcast_ref::<serde_json::Error>();
                json.is_some_and(|json| json.is_syntax() || json.is_eof())
                    && !source.to_string().contains("recursion")
            }
            Self::Closed
            | Self::Busy { .. }
            | Self::Unreachable { .. }
            | Self::Denied { .. }
            | Self::NoDatabase { .. }
            | Self::ReadOnly { .. }
            | Self::Encoding { .. }
            | Self::Address { .. }
            | Self::Unwritable { .. }
            | Self::Full { .. }
            | Self::Foreign { .. }
            | Self::Unlockable { .. }
            | Self::Newer { .. }
            | Self::Unknown { .. }
            | Self::Conflict { .. }
            | Self::Fenced { .. }
            | Self::Refused { .. }
            | Self::Gap { .. }
            | Self::IdInUse { .. }
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

/// An internal failure, before the path of the file is known.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The database's error.
    Sql(rusqlite::Error),
    /// An error for the caller.
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
    /// Whether a retry may succeed.
    pub(crate) fn is_busy(&self) -> bool {
        match self {
            Self::Sql(error) => {
                matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
            }
            Self::Error(_) => false,
        }
    }

    /// Whether the file is damaged or not a database.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Sql(error) => matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
            ),
            Self::Error(error) => error.is_damage(),
        }
    }

    /// The error for the caller, with the path of the file.
    pub(crate) fn at(self, path: &Path) -> Error {
        let error = match self {
            Self::Error(error) => return error,
            Self::Sql(error) => error,
        };
        let (code, path, source) = (error.sqlite_error_code(), path.to_owned(), Arc::new(error));
        match code {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy { path },
            // A failed write or sync does not change what is stored.
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
