//! Messages: the prompts of the user and the responses of the model, without their parts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{FileDiff, MessageError, MessageId, Part, SessionId, TokenUsage};

/// A message of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    /// A prompt.
    User(UserMessage),
    /// A response of the model: one model call and its outcome.
    Assistant(AssistantMessage),
}

/// A message with its parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageWithParts {
    /// The message.
    pub info: Message,
    /// The parts, oldest first.
    pub parts: Vec<Part>,
}

/// A prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserMessage {
    /// The message.
    pub id: MessageId,
    /// The session.
    #[serde(rename = "sessionID")]
    pub session_id: SessionId,
    /// When the prompt was admitted.
    pub time: CreatedTime,
    /// The required format of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<OutputFormat>,
    /// The changes of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<UserSummary>,
    /// The agent that responds.
    pub agent: String,
    /// The model that responds.
    pub model: PromptModel,
    /// Text appended to the system prompt for this turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Tools enabled or disabled for this turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<BTreeMap<String, bool>>,
}

/// The required format of a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum OutputFormat {
    /// Any text.
    #[serde(rename = "text")]
    Text,
    /// A value that matches a JSON schema.
    #[serde(rename = "json_schema")]
    JsonSchema {
        /// The schema.
        schema: Value,
        /// How often the model may retry after an invalid response.
        #[serde(default, rename = "retryCount", skip_serializing_if = "Option::is_none")]
        retry_count: Option<u32>,
    },
}

/// The changes of one turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserSummary {
    /// The title, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The changed files.
    pub diffs: Vec<FileDiff>,
}

/// A model in the form that prompts use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptModel {
    /// The provider.
    #[serde(rename = "providerID")]
    pub provider_id: String,
    /// The model id at that provider.
    #[serde(rename = "modelID")]
    pub model_id: String,
    /// A named set of options of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

/// The creation time of an object, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreatedTime {
    /// When it was created.
    pub created: u64,
}

/// A response of the model: one model call and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AssistantMessage {
    /// The message.
    pub id: MessageId,
    /// The session.
    #[serde(rename = "sessionID")]
    pub session_id: SessionId,
    /// When the call started and ended.
    pub time: AssistantTime,
    /// The error, if the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<MessageError>,
    /// The prompt that it responds to.
    #[serde(rename = "parentID")]
    pub parent_id: MessageId,
    /// The model id at the provider.
    #[serde(rename = "modelID")]
    pub model_id: String,
    /// The provider.
    #[serde(rename = "providerID")]
    pub provider_id: String,
    /// The agent, under the key that older clients read.
    pub mode: String,
    /// The agent.
    pub agent: String,
    /// The directories of the turn.
    pub path: MessagePath,
    /// Whether it is the summary of a compaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<bool>,
    /// The cost in US dollars.
    pub cost: f64,
    /// The tokens used.
    pub tokens: TokenUsage,
    /// The value of a structured response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// The named set of model options used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Why the model stopped: `stop`, `tool-calls`, `length`, …. Absent while the call runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
}

/// When a model call started and ended, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AssistantTime {
    /// The start.
    pub created: u64,
    /// The end, after success or failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<u64>,
}

/// The directories of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessagePath {
    /// The session's directory.
    pub cwd: String,
    /// The worktree.
    pub root: String,
}

impl Message {
    /// Returns the id of the message.
    #[must_use]
    pub fn id(&self) -> &MessageId {
        match self {
            Self::User(message) => &message.id,
            Self::Assistant(message) => &message.id,
        }
    }

    /// Returns the session of the message.
    #[must_use]
    pub fn session_id(&self) -> &SessionId {
        match self {
            Self::User(message) => &message.session_id,
            Self::Assistant(message) => &message.session_id,
        }
    }

    /// Returns when the message was created, in milliseconds since 1970.
    #[must_use]
    pub fn created(&self) -> u64 {
        match self {
            Self::User(message) => message.time.created,
            Self::Assistant(message) => message.time.created,
        }
    }
}
