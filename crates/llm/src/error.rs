//! Errors of a request, one variant for each reaction of the caller.

use std::collections::BTreeMap;
use std::time::Duration;

/// Limit of an error answer's body: more is neither read nor stored.
pub(crate) const ERROR_BODY_LIMIT_BYTES: usize = 64 * 1024;

/// The reason why an answer is missing or incomplete.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// A rate limit, an overloaded server, or a broken or silent connection. Retrying may help.
    #[error("{failure}")]
    Busy {
        /// The details.
        failure: Box<Failure>,
        /// The delay that the server requested.
        retry_after: Option<Duration>,
    },
    /// The conversation exceeds the model's context. A shorter one may fit.
    #[error("{failure}")]
    Overflow {
        /// The details.
        failure: Box<Failure>,
    },
    /// The provider rejected the credentials. The user has to sign in again or change the key.
    #[error("{failure}")]
    Auth {
        /// The details.
        failure: Box<Failure>,
    },
    /// The request failed for good. Retrying does not help.
    #[error("{failure}")]
    Rejected {
        /// The details.
        failure: Box<Failure>,
    },
}

/// The details of a failed request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failure {
    /// The message, in the provider's words if it sent any.
    pub message: String,
    /// The HTTP status, if the server answered.
    pub status: Option<u16>,
    /// The headers of the answer, with names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body of the answer, cut to 64 KiB.
    pub body: Option<String>,
    /// The URL of the request, without query and credentials.
    pub url: Option<String>,
    /// The provider's id.
    pub provider: String,
    /// Whether no connection to the server was made: its host is unknown, or nothing listens there.
    pub is_unreachable: bool,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error {
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::Busy { failure: Failure::new(message), retry_after: None }
    }

    /// Returns the error for a server that could not be connected to.
    pub(crate) fn unreachable(message: impl Into<String>) -> Self {
        let failure = Failure { is_unreachable: true, ..*Failure::new(message) };
        Self::Busy { failure: Box::new(failure), retry_after: None }
    }

    pub(crate) fn rejected(message: impl Into<String>) -> Self {
        Self::Rejected { failure: Failure::new(message) }
    }

    /// Returns the details of any variant.
    #[must_use]
    pub fn failure(&self) -> &Failure {
        match self {
            Self::Busy { failure, .. }
            | Self::Overflow { failure }
            | Self::Auth { failure }
            | Self::Rejected { failure } => failure,
        }
    }

    /// Adds the provider's id and the URL, which the functions that create errors do not know.
    pub(crate) fn with_origin(mut self, provider: &str, url: &str) -> Self {
        match &mut self {
            Self::Busy { failure, .. }
            | Self::Overflow { failure }
            | Self::Auth { failure }
            | Self::Rejected { failure } => {
                provider.clone_into(&mut failure.provider);
                failure.url = Some(url.to_owned());
            }
        }
        self
    }
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Box<Self> {
        Box::new(Self { message: message.into(), ..Self::default() })
    }
}

/// Returns the start of `text`, at most `limit_bytes` long. Never splits a character.
pub(crate) fn cut(text: &str, limit_bytes: usize) -> &str {
    let mut end = limit_bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
