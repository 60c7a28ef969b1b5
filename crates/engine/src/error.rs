//! What can go wrong in the engine, told apart by what the receiver can do.

use codewright_proto::{MessageError, SessionId};

/// Why a request to the engine failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing has that id; the caller asks for something else.
    #[error("{what} not found: {id}")]
    NotFound {
        /// What kind of thing.
        what: &'static str,
        /// What was asked for.
        id: String,
    },
    /// The session is at work; the caller waits for it or stops it.
    #[error("Session is busy: {session}")]
    Busy {
        /// The session.
        session: SessionId,
    },
    /// The request makes no sense as it is; the caller changes it.
    #[error("{message}")]
    Invalid {
        /// What is wrong with it.
        message: String,
    },
    /// No model can be asked; the user sets one up.
    #[error("no model provider was found")]
    NoProvider {
        /// Where one was looked for, a line each.
        looked_for: Vec<String>,
    },
    /// The model does not exist; the user names another.
    #[error("model not found: {wanted}")]
    UnknownModel {
        /// What was asked for.
        wanted: String,
        /// Names that are close to it.
        nearest: Vec<String>,
        /// What else may help.
        advice: Option<String>,
    },
    /// The provider does not exist; the user names another.
    #[error("provider not found: {wanted}")]
    UnknownProvider {
        /// What was asked for.
        wanted: String,
        /// Names that are close to it.
        nearest: Vec<String>,
    },
    /// The provider is known and not set up; the user sets it up.
    #[error("the provider `{provider}` is not set up")]
    NoKey {
        /// The provider.
        provider: String,
        /// How that is done.
        advice: String,
    },
    /// The configuration cannot be used; the user mends it.
    #[error(transparent)]
    Config(#[from] codewright_config::Error),
    /// The store failed; the operator looks at the disk.
    #[error(transparent)]
    Store(#[from] codewright_store::Error),
    /// Files cannot be taken back or forth; the user looks at what is in the way.
    #[error(transparent)]
    Snapshot(#[from] codewright_snapshot::Error),
    /// The provider failed; the same request may work later or never.
    #[error(transparent)]
    Provider(#[from] codewright_llm::Error),
}

impl Error {
    pub(crate) fn not_found(what: &'static str, id: &impl ToString) -> Self {
        Self::NotFound { what, id: id.to_string() }
    }

    pub(crate) fn busy(session: &SessionId) -> Self {
        Self::Busy { session: session.clone() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid { message: message.into() }
    }

    /// What the user may try.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoProvider { looked_for } => Some(format!(
                "looked for:\n{}\n\nSet a key (for example ANTHROPIC_API_KEY or OPENAI_API_KEY), name a provider in \
                 opencode.json, or start a local model server. `codewright models opencode` lists models that cost \
                 nothing and need no key: name one with `--model`. `codewright demo` shows the program at work without \
                 any of these.",
                looked_for.iter().map(|line| format!("  - {line}")).collect::<Vec<_>>().join("\n")
            )),
            Self::UnknownModel { nearest, advice, .. } => {
                let nearest = did_you_mean(nearest);
                let both: Vec<_> = nearest.into_iter().chain(advice.clone()).collect();
                (!both.is_empty()).then(|| both.join("\n"))
            }
            Self::UnknownProvider { nearest, .. } => did_you_mean(nearest),
            Self::NoKey { advice, .. } => Some(advice.clone()),
            Self::Config(error) => error.hint(),
            Self::NotFound { .. }
            | Self::Busy { .. }
            | Self::Invalid { .. }
            | Self::Snapshot(_)
            | Self::Provider(_) => None,
            Self::Store(error) => error.hint().map(str::to_owned),
        }
    }
}

fn did_you_mean(nearest: &[String]) -> Option<String> {
    (!nearest.is_empty()).then(|| format!("did you mean {}?", nearest.join(", ")))
}

/// Whether the session belongs to another process now.
pub(crate) fn is_fenced(error: &Error) -> bool {
    matches!(error, Error::Store(codewright_store::Error::Fenced { .. }))
}

/// The provider's failure as a message keeps it.
pub(crate) fn message_error(error: &codewright_llm::Error) -> MessageError {
    let failure = error.failure();
    if let codewright_llm::Error::Overflow { .. } = error {
        return MessageError::ContextOverflowError {
            message: failure.message.clone(),
            response_body: failure.body.clone(),
        };
    }
    MessageError::APIError {
        message: failure.message.clone(),
        status_code: failure.status,
        is_retryable: matches!(error, codewright_llm::Error::Busy { .. }),
        response_headers: (!failure.headers.is_empty()).then(|| failure.headers.clone()),
        response_body: failure.body.clone(),
        metadata: failure.url.as_ref().map(|url| [("url".to_owned(), url.clone())].into()),
    }
}
