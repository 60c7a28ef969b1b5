//! The request that runs a command in a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{MessageId, PartInput, Principal};

/// The body of `POST /session/{id}/command`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandInput {
    /// The id of the resulting prompt, if the client chooses it.
    #[serde(default, rename = "messageID", skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The agent. Defaults to the agent of the command, then of the session, then of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model as `provider/model`, used if neither the command nor its agent names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The user chose the model. Without this, the server refuses a model whose provider takes prompts without a key,
    /// unless the configuration or the session names the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<bool>,
    /// The text after the command's name.
    pub arguments: String,
    /// The command's name.
    pub command: String,
    /// A named set of options of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Attached files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartInput>,
    /// Who runs the command. The server sets it; clients cannot.
    #[serde(skip)]
    pub by: Principal,
}
