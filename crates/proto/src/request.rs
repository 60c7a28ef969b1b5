//! What clients send, and the small replies.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Map, MessageId, ModelRef, OutputFormat, PartId, PermissionReply, PromptModel, Rule, SessionId};

/// The body of `POST /session`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionInput {
    /// The session this one belongs to.
    #[serde(default, rename = "parentID", skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<SessionId>,
    /// A title; a session that has one is not given another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The agent of the first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model of the first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// Whatever the client wants to keep with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map>,
    /// Rules that hold in this session only, after all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<Vec<Rule>>,
}

/// The body of `PATCH /session/{id}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionPatch {
    /// A new title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whatever the client wants to keep with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map>,
    /// New rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<Vec<Rule>>,
    /// Times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<TimePatch>,
}

/// The times of a session that a client may set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimePatch {
    /// Put away since, in milliseconds since 1970; 0 takes it out again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<f64>,
}

/// The body of `POST /session/{id}/fork`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkInput {
    /// The first message that is left out; without it all are taken.
    #[serde(default, rename = "messageID", skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
}

/// The body of `POST /session/{id}/revert`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevertInput {
    /// The first message that no longer counts.
    #[serde(rename = "messageID")]
    pub message_id: MessageId,
    /// The first part of that message that no longer counts; without it none of it does.
    #[serde(default, rename = "partID", skip_serializing_if = "Option::is_none")]
    pub part_id: Option<PartId>,
    /// Take files back even if a user changed them since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
}

/// The body of `POST /session/{id}/unrevert`; it may be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnrevertInput {
    /// Put files back even if a user changed them since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
}

/// The body of `POST /session/{id}/summarize`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SummarizeInput {
    /// The provider that summarises.
    #[serde(rename = "providerID")]
    pub provider_id: String,
    /// The model that summarises.
    #[serde(rename = "modelID")]
    pub model_id: String,
    /// Whether nobody asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto: Option<bool>,
}

/// The body of `POST /session/{id}/shell`: a command that the user runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShellInput {
    /// The id of the user's message, if the client makes it.
    #[serde(rename = "messageID", default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The agent that the command is recorded under.
    pub agent: String,
    /// The model that it is recorded under; the session's own without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<PromptModel>,
    /// The command line.
    pub command: String,
}

/// The body of `POST /session/{id}/message` and `/prompt_async`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromptInput {
    /// An id made by the client.
    #[serde(default, rename = "messageID", skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The model; else the session's, the agent's or the configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<PromptModel>,
    /// The agent; else the session's or the configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Store the prompt and do not answer it.
    #[serde(default, rename = "noReply", skip_serializing_if = "Option::is_none")]
    pub no_reply: Option<bool>,
    /// Tools switched on or off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<BTreeMap<String, bool>>,
    /// The form of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<OutputFormat>,
    /// System text for this turn, after all other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// A named set of options of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The prompt.
    pub parts: Vec<PartInput>,
}

/// One part of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum PartInput {
    /// Text.
    Text {
        /// An id made by the client.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<PartId>,
        /// The text.
        text: String,
        /// Written by a program.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        synthetic: Option<bool>,
        /// Shown, but not sent to the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ignored: Option<bool>,
        /// What the client attached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    },
    /// A file.
    File {
        /// An id made by the client.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<PartId>,
        /// Its media type.
        mime: String,
        /// Its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
        /// A `file:`, `data:` or `https:` address.
        url: String,
        /// Where in the prompt it was named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<Value>,
    },
    /// An agent.
    Agent {
        /// An id made by the client.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<PartId>,
        /// The agent.
        name: String,
        /// Where in the prompt it was named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<Value>,
    },
    /// Work for another agent.
    Subtask {
        /// An id made by the client.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<PartId>,
        /// What it is asked.
        prompt: String,
        /// What it is called.
        description: String,
        /// Who does it.
        agent: String,
        /// With which model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<PromptModel>,
        /// The command it came from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<String>,
    },
}

impl PartInput {
    /// A part of plain text.
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
    /// What the model is told with a rejection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The answer to `GET /global/health`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HealthReply {
    /// Always true: a server that is not healthy does not answer.
    pub healthy: bool,
    /// The program version.
    pub version: String,
}

/// The body of a reply that is not a success.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApiError {
    /// What kind of error, such as `NotFoundError`.
    pub name: String,
    /// Its facts; `message` is always there.
    pub data: Map,
}

impl ApiError {
    /// An error with a message.
    #[must_use]
    pub fn new(name: &str, message: impl Into<String>) -> Self {
        let mut data = Map::new();
        data.insert("message".to_owned(), Value::String(message.into()));
        Self { name: name.to_owned(), data }
    }

    /// The sentence for a person.
    #[must_use]
    pub fn message(&self) -> &str {
        self.data.get("message").and_then(Value::as_str).unwrap_or(&self.name)
    }
}
