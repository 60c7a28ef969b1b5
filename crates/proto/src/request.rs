//! Request bodies, and small reply bodies.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Map, MessageId, ModelRef, OutputFormat, PartId, PermissionReply, Principal, PromptModel, Rule,
    SessionAccess, SessionId,
};

/// The body of `POST /session`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionInput {
    /// The parent session.
    #[serde(default, rename = "parentID", skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<SessionId>,
    /// The title. A session with a title does not get a generated one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The agent of the first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model of the first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// Arbitrary data that the client stores with the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map>,
    /// Permission rules for this session only, applied after all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<Vec<Rule>>,
    /// Who may use the session. The server sets it; clients cannot.
    #[serde(skip)]
    pub access: Option<SessionAccess>,
}

/// The body of `PATCH /session/{id}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionPatch {
    /// The new title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Arbitrary data that the client stores with the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map>,
    /// The new permission rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<Vec<Rule>>,
    /// The new times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<TimePatch>,
    /// Who sets the rules. The server sets it; clients cannot.
    #[serde(skip)]
    pub by: Principal,
}

/// The times of a session that a client may set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimePatch {
    /// When the session was archived, in milliseconds since 1970. 0 unarchives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<f64>,
}

/// The body of `POST /session/{id}/fork`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkInput {
    /// The first message that is not copied. If absent, all messages are copied.
    #[serde(default, rename = "messageID", skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
}

/// The body of `POST /session/{id}/revert`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevertInput {
    /// The first reverted message.
    #[serde(rename = "messageID")]
    pub message_id: MessageId,
    /// The first reverted part of that message. If absent, the whole message is reverted.
    #[serde(default, rename = "partID", skip_serializing_if = "Option::is_none")]
    pub part_id: Option<PartId>,
    /// Revert files even if the user has changed them since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
}

/// The optional body of `POST /session/{id}/unrevert`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnrevertInput {
    /// Restore files even if the user has changed them since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
}

/// The body of `POST /session/{id}/summarize`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SummarizeInput {
    /// The provider of the summarizing model.
    #[serde(rename = "providerID")]
    pub provider_id: String,
    /// The summarizing model.
    #[serde(rename = "modelID")]
    pub model_id: String,
    /// Whether the program started it, not the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto: Option<bool>,
}

/// The body of `POST /session/{id}/shell`: a command that the user runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShellInput {
    /// The id of the user's message, if the client chooses it.
    #[serde(rename = "messageID", default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The agent that the command is recorded under.
    pub agent: String,
    /// The model that the command is recorded under. Defaults to the session's model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<PromptModel>,
    /// The command line.
    pub command: String,
}

/// The body of `POST /session/{id}/message` and `/prompt_async`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromptInput {
    /// The id, if the client chooses it.
    #[serde(default, rename = "messageID", skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The model. Defaults to the model of the session, then of the agent, then of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<PromptModel>,
    /// The user chose the model. Without this, the server refuses a model whose provider takes prompts without a key,
    /// unless the configuration or the session names the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<bool>,
    /// The agent. Defaults to the agent of the session, then of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Store the prompt without a response.
    #[serde(default, rename = "noReply", skip_serializing_if = "Option::is_none")]
    pub no_reply: Option<bool>,
    /// Tools enabled or disabled for this turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<BTreeMap<String, bool>>,
    /// The required format of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<OutputFormat>,
    /// Text appended to the system prompt for this turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// A named set of options of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The parts of the prompt.
    pub parts: Vec<PartInput>,
    /// Who sends the prompt. The server sets it; clients cannot.
    #[serde(skip)]
    pub by: Principal,
}

/// A part of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum PartInput {
    /// Text.
    Text {
        /// The id, if the client chooses it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<PartId>,
        /// The text.
        text: String,
        /// Whether a program wrote the text, not the user.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        synthetic: Option<bool>,
        /// Whether the text is displayed but not sent to the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ignored: Option<bool>,
        /// Data attached by the client.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    },
    /// A file.
    File {
        /// The id, if the client chooses it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<PartId>,
        /// The media type.
        mime: String,
        /// The file name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
        /// A `file:`, `data:` or `https:` URL.
        url: String,
        /// Where the prompt mentions it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<Value>,
        /// The place at which the program checked the file, without links. Nothing else is read. Clients cannot set it.
        #[serde(skip)]
        checked: Option<PathBuf>,
    },
    /// An agent.
    Agent {
        /// The id, if the client chooses it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<PartId>,
        /// The agent.
        name: String,
        /// Where the prompt mentions it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<Value>,
    },
    /// A task for a subagent.
    Subtask {
        /// The id, if the client chooses it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<PartId>,
        /// The prompt of the subagent.
        prompt: String,
        /// A short description of the task.
        description: String,
        /// The subagent.
        agent: String,
        /// The model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<PromptModel>,
        /// The command that created the task.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
    },
}

impl PartInput {
    /// Returns a part of plain text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { id: None, text: text.into(), synthetic: None, ignored: None, metadata: None }
    }
}

/// The body of `POST /permission/{id}/reply`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionAnswer {
    /// The decision.
    pub reply: PermissionReply,
    /// The explanation that the model receives with a rejection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Wider patterns that "always" also allows. The request must offer them (`metadata.asked.wider`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wider: Vec<String>,
    /// Whether a client replies without showing the request to a user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub automatic: bool,
}

impl From<PermissionReply> for PermissionAnswer {
    fn from(reply: PermissionReply) -> Self {
        Self { reply, message: None, wider: Vec::new(), automatic: false }
    }
}

/// The reply of `GET /global/health`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HealthReply {
    /// Always true: an unhealthy server does not reply.
    pub healthy: bool,
    /// The program version.
    pub version: String,
}

/// The body of an error reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApiError {
    /// The kind of error, such as `NotFoundError`.
    pub name: String,
    /// The details. `message` is always present.
    pub data: Map,
}

impl ApiError {
    /// Returns an error with a message.
    #[must_use]
    pub fn new(name: &str, message: impl Into<String>) -> Self {
        let mut data = Map::new();
        data.insert("message".to_owned(), Value::String(message.into()));
        Self { name: name.to_owned(), data }
    }

    /// Returns the message for the user.
    #[must_use]
    pub fn message(&self) -> &str {
        self.data.get("message").and_then(Value::as_str).unwrap_or(&self.name)
    }
}
