//! Why there is no answer, told apart by what the caller can do about it.

use std::collections::BTreeMap;
use std::time::Duration;

/// Why there is no (complete) answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// Waiting and asking again may help: limits, overload, a broken or silent connection.
    #[error("{failure}")]
    Busy {
        /// What was seen.
        failure: Box<Failure>,
        /// How long the server asked to be left alone.
        retry_after: Option<Duration>,
    },
    /// The conversation no longer fits; a shorter one may.
    #[error("{failure}")]
    Overflow {
        /// What was seen.
        failure: Box<Failure>,
    },
    /// The credentials were refused; the user has to give others.
    #[error("{failure}")]
    Auth {
        /// What was seen.
        failure: Box<Failure>,
    },
    /// Nothing the program can do will help.
    #[error("{failure}")]
    Rejected {
        /// What was seen.
        failure: Box<Failure>,
    },
}

/// What was seen when a request failed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failure {
    /// What happened, in the provider's words where it has any.
    pub message: String,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// The answer's headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The answer's body, cut to 64 KiB.
    pub body: Option<String>,
    /// The address asked, without query and credentials.
    pub url: Option<String>,
    /// The provider's id.
    pub provider: String,
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

    pub(crate) fn rejected(message: impl Into<String>) -> Self {
        Self::Rejected { failure: Failure::new(message) }
    }

    /// What was seen, whatever is to be done about it.
    #[must_use]
    pub fn failure(&self) -> &Failure {
        match self {
            Self::Busy { failure, .. }
            | Self::Overflow { failure }
            | Self::Auth { failure }
            | Self::Rejected { failure } => failure,
        }
    }

    /// Says whom was asked and where; the pure parts that make errors do not know.
    pub(crate) fn asked(mut self, provider: &str, url: &str) -> Self {
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

/// The beginning of `text`, at most `limit_bytes` long and never splitting a character.
pub(crate) fn cut(text: &str, limit_bytes: usize) -> &str {
    let mut end = limit_bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
