//! The reasons why a server or a request failed.

use rmcp::service::{ClientInitializeError, ServiceError};

/// The longest text of a server in an error.
const MAX_TEXT_CHARS: usize = 500;

/// A failed connection or request. The text is one sentence for the user or the model.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Failure {
    /// The user must sign in. The challenge of the server, if it sent one.
    #[error("The server needs a sign-in: run `codewright mcp auth`, or select it in `/mcps`.")]
    NeedsAuth { challenge: Option<String> },
    /// The server does not let clients register themselves, so the configuration must name a client.
    #[error("{0}")]
    NeedsRegistration(String),
    /// It failed for another reason.
    #[error("{0}")]
    Failed(String),
    /// The server answered with an error.
    #[error("MCP error {code}: {message}")]
    Answered { code: i32, message: String },
    /// The request was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The connection ended.
    #[error("The connection to the server was closed.")]
    Closed,
}

impl Failure {
    pub(crate) fn failed(text: impl std::fmt::Display) -> Self {
        Self::Failed(cut(&text.to_string()))
    }

    /// Adds a sentence about what the server may not do, which can be the reason.
    pub(crate) fn with(self, sentence: &str) -> Self {
        match self {
            Self::Failed(text) => Self::Failed(format!("{text} {sentence}")),
            Self::Closed => Self::Failed(format!("{} {sentence}", Self::Closed)),
            Self::NeedsAuth { .. } | Self::NeedsRegistration(_) | Self::Answered { .. } | Self::Cancelled => {
                self
            }
        }
    }
}

/// One line of limited length. Control characters and those that change the direction of text become spaces.
pub(crate) fn cut(text: &str) -> String {
    let is_hidden =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let clean = text.chars().map(|c| if is_hidden(c) { ' ' } else { c });
    let mut short: String = clean.take(MAX_TEXT_CHARS).collect();
    short.truncate(short.trim_end().len());
    short
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        if error.is_authorization_required() {
            return Self::NeedsAuth { challenge: error.auth_challenge().map(str::to_owned) };
        }
        match error {
            ServiceError::McpError(error) => {
                Self::Answered { code: error.code.0, message: cut(&error.message) }
            }
            ServiceError::TransportClosed => Self::Closed,
            ServiceError::Cancelled { .. } => Self::Cancelled,
            ServiceError::TransportSend(error) => Self::failed(sentence(&innermost(&error))),
            other => Self::failed(sentence(&other.to_string())),
        }
    }
}

impl From<ClientInitializeError> for Failure {
    fn from(error: ClientInitializeError) -> Self {
        if error.is_authorization_required() {
            return Self::NeedsAuth { challenge: error.auth_challenge().map(str::to_owned) };
        }
        match error {
            ClientInitializeError::JsonRpcError(error) => {
                Self::Answered { code: error.code.0, message: cut(&error.message) }
            }
            ClientInitializeError::ConnectionClosed(_) => Self::Closed,
            ClientInitializeError::Cancelled => Self::Cancelled,
            ClientInitializeError::TransportError { error, .. } => Self::failed(sentence(&innermost(&error))),
            ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => Self::failed(
                format!("The server speaks another version of the protocol: {server_supported:?}."),
            ),
            ClientInitializeError::ExpectedInitResult(_) | ClientInitializeError::ExpectedInitResponse(_) => {
                Self::failed("The server did not answer `initialize` as the protocol requires.")
            }
            other => Self::failed(sentence(&other.to_string())),
        }
    }
}

/// The text of the innermost error, which is the most specific.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

fn sentence(text: &str) -> String {
    let text = cut(text);
    let mut chars = text.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
    let text = format!("{first}{}", chars.as_str());
    if text.ends_with('.') { text } else { format!("{text}.") }
}
