//! The errors of a client.

use std::time::Duration;

use codewright_proto::ApiError;
use http::StatusCode;

/// The error of a transport or a body.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// The reason why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL of the server is invalid.
    #[error("`{url}` is not a server URL: {reason}")]
    Address {
        /// The URL, without credentials.
        url: String,
        /// Why it is invalid.
        reason: &'static str,
    },
    /// No server answers, or the connection broke.
    #[error("cannot reach the server at `{url}`")]
    Unreachable {
        /// The server.
        url: String,
        /// The error of the operating system or the connection.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server rejected the credentials.
    #[error("the server rejected the user name or the password")]
    Unauthorized,
    /// The server answered with an error.
    #[error("{}", .error.message())]
    Api {
        /// The HTTP status.
        status: StatusCode,
        /// The server's error.
        error: ApiError,
    },
    /// The answer does not follow the API, so another program may be listening.
    #[error("invalid answer from the server at `{url}`: {reason}")]
    Protocol {
        /// The server.
        url: String,
        /// Why the answer is invalid.
        reason: String,
    },
    /// The server did not answer in time.
    #[error("the server at `{url}` did not answer within {} s", .after.as_secs())]
    Timeout {
        /// The server.
        url: String,
        /// The time limit.
        after: Duration,
    },
}

impl Error {
    /// Returns advice for the user.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Address { .. } => Some("use a URL like `http://127.0.0.1:4096`"),
            Self::Unreachable { .. } => Some("check that the server is running and that the URL is correct"),
            Self::Unauthorized => Some("use the password that the server was started with"),
            Self::Protocol { .. } => Some("check that the URL belongs to a codewright server"),
            Self::Timeout { .. } => Some("check that the server is not stopped or overloaded"),
            Self::Api { error, .. } => error.data.get("hint")?.as_str(),
        }
    }

    /// Whether the server reported that the requested object does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Api { status, .. } if *status == StatusCode::NOT_FOUND)
    }
}
