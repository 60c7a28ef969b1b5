//! The errors of the engine. A variant is one reaction of the caller.

use std::fmt;

use codewright_proto::{MessageError, SessionId};

/// Why a request to the engine failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing has that id; the caller uses another one.
    #[error("{resource} not found: {id}")]
    NotFound {
        /// The kind of thing that is missing.
        resource: Resource,
        /// The id in the request.
        id: String,
    },
    /// A code was sent for a sign-in that was never started; the caller starts one.
    #[error("no sign-in to `{provider}` has been begun")]
    NoSignIn {
        /// The provider.
        provider: String,
    },
    /// The session is running; the caller waits for it or aborts it.
    #[error("Session is busy: {session}")]
    Busy {
        /// The session.
        session: SessionId,
    },
    /// The request is invalid; the caller changes it.
    #[error("{message}")]
    Invalid {
        /// The problem.
        message: String,
    },
    /// The request is based on a state that has changed since; the caller reads the state again.
    #[error("{message}")]
    Stale {
        /// The state that changed.
        message: String,
    },
    /// The caller lacks the authority; an administrator does it.
    #[error("{message}")]
    Forbidden {
        /// Who may do it.
        message: &'static str,
    },
    /// A limit on open things is reached; the caller closes or answers some of them first.
    #[error("{message}")]
    TooMany {
        /// The limit and the things it counts.
        message: String,
    },
    /// The server has too much to do; the caller tries again later.
    #[error("{message}")]
    Overloaded {
        /// The limit.
        message: String,
    },
    /// No server can do the work now; the caller tries again later, or another server.
    #[error("{message}")]
    Unavailable {
        /// The reason.
        message: String,
    },
    /// The user or a team has used up a quota; the caller waits.
    #[error("{message}")]
    Quota {
        /// The quota and its limit.
        message: String,
        /// The seconds until the request can succeed.
        retry_after_seconds: u64,
    },
    /// The operation was aborted before it finished; the caller may repeat it.
    #[error("{message}")]
    Aborted {
        /// The operation.
        message: String,
    },
    /// The file system, git or another part of the machine failed; the operator repairs it.
    #[error("{message}")]
    Machine {
        /// The operation, the object and the reason.
        message: String,
    },
    /// No provider is set up; the user sets one up.
    #[error("no model provider was found")]
    NoProvider,
    /// The model does not exist; the user names another.
    #[error("model not found: {wanted}")]
    UnknownModel {
        /// The name in the request.
        wanted: String,
        /// Similar names.
        nearest: Vec<String>,
        /// Further advice.
        advice: Option<String>,
    },
    /// The provider does not exist; the user names another.
    #[error("provider not found: {wanted}")]
    UnknownProvider {
        /// The name in the request.
        wanted: String,
        /// Similar names.
        nearest: Vec<String>,
    },
    /// The provider is known but not set up; the user sets it up.
    #[error("the provider `{provider}` is not set up")]
    NoKey {
        /// The provider.
        provider: String,
        /// How to set it up.
        advice: String,
    },
    /// The provider takes prompts without a key, and the user has not chosen it; the user chooses a model.
    #[error("no model was chosen: `{provider}/{model}` would receive the prompt without a key of yours")]
    NotChosen {
        /// The provider.
        provider: String,
        /// Its model in the request.
        model: String,
    },
    /// The configuration is unusable; the user corrects it.
    #[error(transparent)]
    Config(#[from] codewright_config::Error),
    /// The store failed; the operator checks the disk.
    #[error(transparent)]
    Store(#[from] codewright_store::Error),
    /// Files cannot be undone or redone; the user removes the obstacle.
    #[error(transparent)]
    Snapshot(#[from] codewright_snapshot::Error),
    /// The provider failed; the same request may work later or never.
    #[error(transparent)]
    Provider(#[from] codewright_llm::Error),
}

/// A kind of thing that a caller refers to by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// A session.
    Session,
    /// A message of a session.
    Message,
    /// The response to a prompt.
    Answer,
    /// A pending permission request.
    Permission,
    /// A pending question to the user.
    Question,
    /// A terminal.
    Terminal,
    /// A project.
    Project,
    /// A pending sign-in.
    Attempt,
    /// A stored credential.
    Credential,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "Session",
            Self::Message => "Message",
            Self::Answer => "Answer to message",
            Self::Permission => "Permission request",
            Self::Question => "Question request",
            Self::Terminal => "PTY session",
            Self::Project => "Project",
            Self::Attempt => "Sign-in attempt",
            Self::Credential => "Credential",
        })
    }
}

impl Error {
    pub(crate) fn not_found(resource: Resource, id: &impl ToString) -> Self {
        Self::NotFound { resource, id: id.to_string() }
    }

    pub(crate) fn busy(session: &SessionId) -> Self {
        Self::Busy { session: session.clone() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid { message: message.into() }
    }

    pub(crate) fn stale(message: impl Into<String>) -> Self {
        Self::Stale { message: message.into() }
    }

    pub(crate) fn too_many(message: impl Into<String>) -> Self {
        Self::TooMany { message: message.into() }
    }

    pub(crate) fn aborted(message: impl Into<String>) -> Self {
        Self::Aborted { message: message.into() }
    }

    pub(crate) fn machine(message: impl Into<String>) -> Self {
        Self::Machine { message: message.into() }
    }

    /// Advice for the user.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoProvider => Some(NO_PROVIDER.to_owned()),
            Self::UnknownModel { nearest, advice, .. } => {
                let nearest = did_you_mean(nearest);
                let both: Vec<_> = nearest.into_iter().chain(advice.clone()).collect();
                (!both.is_empty()).then(|| both.join("\n"))
            }
            Self::UnknownProvider { nearest, .. } => did_you_mean(nearest),
            Self::NoKey { advice, .. } => Some(advice.clone()),
            Self::NotChosen { provider, model } => Some(format!(
                "Store a key of a provider with `codewright providers login`. To use this model, choose it with \
                 `--model {provider}/{model}` or `\"model\": \"{provider}/{model}\"` in opencode.json; a client of the API \
                 sends `\"chosen\": true` with the prompt."
            )),
            Self::Config(error) => error.hint(),
            Self::NotFound { .. }
            | Self::Busy { .. }
            | Self::NoSignIn { .. }
            | Self::Forbidden { .. }
            | Self::Invalid { .. }
            | Self::Stale { .. }
            | Self::TooMany { .. }
            | Self::Overloaded { .. }
            | Self::Unavailable { .. }
            | Self::Quota { .. }
            | Self::Aborted { .. }
            | Self::Machine { .. }
            | Self::Snapshot(_)
            | Self::Provider(_) => None,
            Self::Store(error) => error.hint().map(str::to_owned),
        }
    }
}

/// What to do without a provider: the command that helps most users first.
const NO_PROVIDER: &str = "\
codewright providers login     store the key of a provider, or sign in
export ANTHROPIC_API_KEY=\u{2026}     or set a variable: OPENAI_API_KEY, GEMINI_API_KEY, \u{2026}
ollama serve                   or start a model server on this machine (also LM Studio, llama.cpp, vLLM)
codewright models opencode     list models that need no key; name one with `--model`
codewright demo                see the program at work without any of these
codewright debug providers     list where keys and servers were looked for";

fn did_you_mean(nearest: &[String]) -> Option<String> {
    (!nearest.is_empty()).then(|| format!("did you mean {}?", nearest.join(", ")))
}

/// Returns the error and its hint in one text.
pub(crate) fn describe(error: &Error) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

/// Reports whether another process has taken over the session.
pub(crate) fn is_fenced(error: &Error) -> bool {
    matches!(error, Error::Store(codewright_store::Error::Fenced { .. }))
}

/// Returns a provider's failure in the form that a message stores.
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
