//! Why a turn ended badly, as stored on its message and told to clients.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The error of an assistant message. The names are the wire's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", content = "data")]
pub enum MessageError {
    /// The provider refused the credentials, or there are none.
    ProviderAuthError {
        /// The provider.
        #[serde(rename = "providerID")]
        provider_id: String,
        /// What to tell the user.
        message: String,
    },
    /// Something that should not happen.
    UnknownError {
        /// What to tell the user.
        message: String,
        /// A name to look for in the log.
        #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
        reference: Option<String>,
    },
    /// The answer reached the output limit.
    MessageOutputLengthError {},
    /// Somebody stopped the turn.
    MessageAbortedError {
        /// What to tell the user.
        message: String,
    },
    /// The conversation no longer fits the model.
    ContextOverflowError {
        /// What to tell the user.
        message: String,
        /// What the provider sent.
        #[serde(default, rename = "responseBody", skip_serializing_if = "Option::is_none")]
        response_body: Option<String>,
    },
    /// The provider withheld the answer.
    ContentFilterError {
        /// What to tell the user.
        message: String,
    },
    /// The answer did not have the structure that was asked for.
    StructuredOutputError {
        /// What to tell the user.
        message: String,
        /// How often it was tried.
        retries: u32,
    },
    /// The provider's interface failed.
    APIError {
        /// What to tell the user.
        message: String,
        /// The HTTP status, when there was an answer.
        #[serde(default, rename = "statusCode", skip_serializing_if = "Option::is_none")]
        status_code: Option<u16>,
        /// Whether the same request may succeed later.
        #[serde(rename = "isRetryable")]
        is_retryable: bool,
        /// The answer's headers, without credentials.
        #[serde(default, rename = "responseHeaders", skip_serializing_if = "Option::is_none")]
        response_headers: Option<BTreeMap<String, String>>,
        /// The answer's body, shortened.
        #[serde(default, rename = "responseBody", skip_serializing_if = "Option::is_none")]
        response_body: Option<String>,
        /// Further facts, such as the address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<BTreeMap<String, String>>,
    },
}

impl MessageError {
    /// The sentence for a person.
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::ProviderAuthError { message, .. }
            | Self::UnknownError { message, .. }
            | Self::MessageAbortedError { message }
            | Self::ContextOverflowError { message, .. }
            | Self::ContentFilterError { message }
            | Self::StructuredOutputError { message, .. }
            | Self::APIError { message, .. } => message,
            Self::MessageOutputLengthError {} => "the answer reached the model's output limit",
        }
    }

    /// The error of a turn that a user stopped.
    #[must_use]
    pub fn aborted() -> Self {
        Self::MessageAbortedError { message: "Aborted".to_owned() }
    }
}
