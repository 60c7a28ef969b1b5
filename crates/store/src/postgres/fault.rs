//! Failures of the PostgreSQL backend, and the errors that callers get.

use std::path::PathBuf;
use std::sync::Arc;

use tokio_postgres::error::SqlState;

use crate::Error;

/// A failure, before the address of the database is known.
#[derive(Debug)]
pub(super) enum Fault {
    /// The database's error, or that of the connection.
    Postgres(tokio_postgres::Error),
    /// The database did not answer in time.
    Silent,
    /// A statement changed no row although it had to. The append is repeated step by step to find the reason.
    Unchanged,
    /// An error for the caller.
    Error(Error),
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// The database did not answer in time.
#[derive(Debug, thiserror::Error)]
#[error("it did not answer in time")]
struct Silent;

impl Fault {
    /// Whether the connection is lost or the transaction was cancelled, so that the request may succeed on a new
    /// connection.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Self::Silent => true,
            Self::Postgres(error) => match error.code() {
                Some(code) => is_passing(code),
                // The connection: refused, broken, closed. Everything else has a code, or is a fault of ours.
                None => error.is_closed() || is_io(error),
            },
            Self::Unchanged | Self::Error(_) => false,
        }
    }

    /// The error for the caller.
    pub(super) fn at(self, store: &str) -> Error {
        let path = || PathBuf::from(store);
        let error = match self {
            Self::Error(error) => return error,
            Self::Silent => {
                return Error::Unreachable { store: store.to_owned(), source: Arc::new(Silent) };
            }
            Self::Unchanged => return Error::Busy { path: path() },
            Self::Postgres(error) => error,
        };
        let name = || store.to_owned();
        let Some(code) = error.code().cloned() else {
            return if is_io(&error) || error.is_closed() {
                Error::Unreachable { store: name(), source: Arc::new(error) }
            } else {
                // TLS and authentication methods fail without a code.
                Error::Denied { store: name(), source: Arc::new(error) }
            };
        };
        match &code {
            code if *code == SqlState::INVALID_CATALOG_NAME => Error::NoDatabase { store: name() },
            code if *code == SqlState::DISK_FULL => Error::Full { path: path() },
            code if *code == SqlState::READ_ONLY_SQL_TRANSACTION => Error::ReadOnly { store: name() },
            code if *code == SqlState::LOCK_NOT_AVAILABLE
                || *code == SqlState::QUERY_CANCELED
                || *code == SqlState::T_R_SERIALIZATION_FAILURE
                || *code == SqlState::T_R_DEADLOCK_DETECTED =>
            {
                Error::Busy { path: path() }
            }
            code if *code == SqlState::INSUFFICIENT_PRIVILEGE
                || *code == SqlState::INVALID_SCHEMA_NAME
                || code.code().starts_with("28") =>
            {
                Error::Denied { store: name(), source: Arc::new(error) }
            }
            code if is_passing(code) => Error::Unreachable { store: name(), source: Arc::new(error) },
            _ => Error::Failed { path: path(), source: Arc::new(error) },
        }
    }
}

/// Whether a code means that the server or the connection ends, or that the transaction has to be repeated.
fn is_passing(code: &SqlState) -> bool {
    // Connection exceptions, operator intervention without a cancelled statement, and too many connections.
    code.code().starts_with("08")
        || (code.code().starts_with("57P"))
        || *code == SqlState::TOO_MANY_CONNECTIONS
        || *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
        || *code == SqlState::T_R_SERIALIZATION_FAILURE
        || *code == SqlState::T_R_DEADLOCK_DETECTED
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = std::error::Error::source(error);
    while let Some(one) = cause {
        if one.is::<std::io::Error>() {
            // A certificate that is not accepted is an input error with the TLS library's reason.
            return !is_tls(one);
        }
        cause = one.source();
    }
    false
}

fn is_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.and_then(std::io::Error::get_ref).is_some_and(|inner| inner.is::<rustls::Error>())
}
