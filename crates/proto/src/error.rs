//! The error of a failed turn, as stored with its message and sent to clients.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The error of an assistant message. The variant names are those of the wire format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", content = "data")]
pub enum MessageError {
    /// The provider rejected the credentials, or they are missing.
    ProviderAuthError {
        /// The provider.
        #[serde(rename = "providerID")]
        provider_id: String,
        /// The message for the user.
        message: String,
    },
    /// An unexpected error.
    UnknownError {
        /// The message for the user.
        message: String,
        /// A reference to search for in the log.
        #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
        reference: Option<String>,
    },
    /// The response reached the output limit of the model.
    MessageOutputLengthError {},
    /// The turn was aborted.
    MessageAbortedError {
        /// The message for the user.
        message: String,
    },
    /// The conversation exceeds the context of the model.
    ContextOverflowError {
        /// The message for the user.
        message: String,
        /// The body of the provider's response.
        #[serde(default, rename = "responseBody", skip_serializing_if = "Option::is_none")]
        response_body: Option<String>,
    },
    /// A content filter of the provider blocked the response.
    ContentFilterError {
        /// The message for the user.
        message: String,
    },
    /// The response does not match the requested schema.
    StructuredOutputError {
        /// The message for the user.
        message: String,
        /// The number of attempts.
        retries: u32,
    },
    /// The API of the provider failed.
    APIError {
        /// The message for the user.
        message: String,
        /// The HTTP status, if there was a response.
        #[serde(default, rename = "statusCode", skip_serializing_if = "Option::is_none")]
        status_code: Option<u16>,
        /// Whether the same request may succeed later.
        #[serde(rename = "isRetryable")]
        is_retryable: bool,
        /// The headers of the response, without credentials.
        #[serde(default, rename = "responseHeaders", skip_serializing_if = "Option::is_none")]
        response_headers: Option<BTreeMap<String, String>>,
        /// The body of the response, truncated.
        #[serde(default, rename = "responseBody", skip_serializing_if = "Option::is_none")]
        response_body: Option<String>,
        /// Further details, such as the URL.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<BTreeMap<String, String>>,
    },
}

impl MessageError {
    /// Returns the message for the user.
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

    /// Returns the error of a turn that the user aborted.
    #[must_use]
    pub fn aborted() -> Self {
        Self::MessageAbortedError { message: "Aborted".to_owned() }
    }
}
