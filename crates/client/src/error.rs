//! What can go wrong between a client and its server.

use std::time::Duration;

use codewright_proto::ApiError;
use http::StatusCode;

/// Whatever a transport or a body failed with.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be used; it has to be written differently.
    #[error("`{url}` is not an address of a server: {reason}")]
    Address {
        /// The address, without credentials.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// No server answers there, or the connection broke.
    #[error("cannot reach the server at `{url}`")]
    Unreachable {
        /// The server.
        url: String,
        /// What the operating system or the connection said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server wants other credentials.
    #[error("the server refused the user name or the password")]
    Unauthorized,
    /// The server understood and refused.
    #[error("{}", .error.message())]
    Api {
        /// The HTTP status.
        status: StatusCode,
        /// What the server said.
        error: ApiError,
    },
    /// What answered does not speak this API.
    #[error("the server at `{url}` gave an answer that is not understood: {reason}")]
    Protocol {
        /// The server.
        url: String,
        /// What was wrong with the answer.
        reason: String,
    },
    /// The server is there and stays silent.
    #[error("the server at `{url}` did not answer within {} s", .after.as_secs())]
    Timeout {
        /// The server.
        url: String,
        /// How long was waited.
        after: Duration,
    },
}

impl Error {
    /// What the user may try.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Address { .. } => Some("give an address like `http://127.0.0.1:4096`"),
            Self::Unreachable { .. } => Some("check that the server runs and that the address is right"),
            Self::Unauthorized => Some("give the password that the server was started with"),
            Self::Protocol { .. } => Some("check that the address belongs to a codewright server"),
            Self::Timeout { .. } => Some("check that the server is not stopped or overloaded"),
            Self::Api { error, .. } => error.data.get("hint")?.as_str(),
        }
    }

    /// Whether the server says that the thing asked for does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Api { status, .. } if *status == StatusCode::NOT_FOUND)
    }
}
