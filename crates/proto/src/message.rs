//! Messages: what a user asked and what an assistant answered, without their parts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{FileDiff, MessageError, MessageId, Part, SessionId, TokenUsage};

/// One message of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    /// A prompt.
    User(UserMessage),
    /// One model call and what became of it.
    Assistant(AssistantMessage),
}

/// A message with its parts, as clients fetch it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageWithParts {
    /// The message.
    pub info: Message,
    /// Its parts, oldest first.
    pub parts: Vec<Part>,
}

/// A prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserMessage {
    /// The message.
    pub id: MessageId,
    /// Its session.
    #[serde(rename = "sessionID")]
    pub session_id: SessionId,
    /// When it was admitted.
    pub time: CreatedTime,
    /// The form that the answer has to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<OutputFormat>,
    /// What the turn changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<UserSummary>,
    /// The agent that answers.
    pub agent: String,
    /// The model that answers.
    pub model: PromptModel,
    /// System text for this turn, after all other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Tools switched on or off for this turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<BTreeMap<String, bool>>,
}

/// The form that an answer has to have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
pub enum OutputFormat {
    /// Any text.
    #[serde(rename = "text")]
    Text,
    /// A value that the schema accepts.
    #[serde(rename = "json_schema")]
    JsonSchema {
        /// The schema.
        schema: Value,
        /// How often a wrong answer is sent back.
        #[serde(default, rename = "retryCount", skip_serializing_if = "Option::is_none")]
        retry_count: Option<u32>,
    },
}

/// What one turn changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserSummary {
    /// A title, when one was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A text, when one was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The files.
    pub diffs: Vec<FileDiff>,
}

/// A model as a prompt names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptModel {
    /// The provider.
    #[serde(rename = "providerID")]
    pub provider_id: String,
    /// The model within it.
    #[serde(rename = "modelID")]
    pub model_id: String,
    /// A named set of options of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

/// When something was made, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreatedTime {
    /// Made.
    pub created: u64,
}

/// One model call and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AssistantMessage {
    /// The message.
    pub id: MessageId,
    /// Its session.
    #[serde(rename = "sessionID")]
    pub session_id: SessionId,
    /// When it ran.
    pub time: AssistantTime,
    /// Why it ended badly, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<MessageError>,
    /// The prompt it answers.
    #[serde(rename = "parentID")]
    pub parent_id: MessageId,
    /// The model within its provider.
    #[serde(rename = "modelID")]
    pub model_id: String,
    /// The provider.
    #[serde(rename = "providerID")]
    pub provider_id: String,
    /// The agent, under the name that older clients read.
    pub mode: String,
    /// The agent.
    pub agent: String,
    /// Where it worked.
    pub path: MessagePath,
    /// Whether it is the summary of a compaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<bool>,
    /// US dollars.
    pub cost: f64,
    /// Tokens.
    pub tokens: TokenUsage,
    /// The value a structured answer gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// The named set of options the model ran with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Why the model stopped: `stop`, `tool-calls`, `length`, …; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
}

/// When a model call began and ended, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AssistantTime {
    /// Begun.
    pub created: u64,
    /// Ended, well or badly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<u64>,
}

/// Where a turn worked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessagePath {
    /// The session's directory.
    pub cwd: String,
    /// The worktree.
    pub root: String,
}

impl Message {
    /// The message's id.
    #[must_use]
    pub fn id(&self) -> &MessageId {
        match self {
            Self::User(message) => &message.id,
            Self::Assistant(message) => &message.id,
        }
    }

    /// The message's session.
    #[must_use]
    pub fn session_id(&self) -> &SessionId {
        match self {
            Self::User(message) => &message.session_id,
            Self::Assistant(message) => &message.session_id,
        }
    }

    /// When the message was made, in milliseconds since 1970.
    #[must_use]
    pub fn created(&self) -> u64 {
        match self {
            Self::User(message) => message.time.created,
            Self::Assistant(message) => message.time.created,
        }
    }
}
