//! Running a command of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{MessageId, PartInput};

/// The body of `POST /session/{id}/command`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandInput {
    /// An id made by the client for the prompt that the command becomes.
    #[serde(default, rename = "messageID", skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The agent; else the command's, the session's or the configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model, as `provider/model`, where neither the command nor its agent has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Everything behind the command's name.
    pub arguments: String,
    /// The command's name.
    pub command: String,
    /// A named set of options of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartInput>,
}
