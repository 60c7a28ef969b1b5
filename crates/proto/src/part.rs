//! Parts: the pieces that a message is made of.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Map, MessageError, MessageId, PartId, PromptModel, SessionId, TokenUsage};

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// The part.
    pub id: PartId,
    /// Its session.
    #[serde(rename = "sessionID")]
    pub session_id: SessionId,
    /// Its message.
    #[serde(rename = "messageID")]
    pub message_id: MessageId,
    /// What it is.
    #[serde(flatten)]
    pub body: PartBody,
}

/// What a part is. This is also what a store keeps of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum PartBody {
    /// Text of a user or a model.
    Text(TextPart),
    /// A model's thinking.
    Reasoning {
        /// The text, empty when the provider shows none.
        text: Arc<str>,
        /// What the provider wants back unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
        /// When.
        time: Span,
    },
    /// A file given with a prompt.
    File {
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
    /// A tool call.
    Tool(ToolPart),
    /// A model call begins.
    StepStart {
        /// The worktree's tree before it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        snapshot: Option<String>,
    },
    /// A model call ended.
    StepFinish(StepFinish),
    /// The worktree's tree.
    Snapshot {
        /// Its hash.
        snapshot: String,
    },
    /// Files changed by a step.
    Patch {
        /// The tree before.
        hash: String,
        /// The files, absolute.
        files: Vec<String>,
        /// The tree after: of the files named it holds what the step left. Absent in sessions of other programs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
    },
    /// An agent named in a prompt.
    Agent {
        /// The agent.
        name: String,
        /// Where in the prompt it was named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<Value>,
    },
    /// Work for another agent.
    Subtask {
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
    /// A request that was repeated.
    Retry {
        /// How often.
        attempt: u32,
        /// Why.
        error: MessageError,
        /// When.
        time: crate::CreatedTime,
    },
    /// The conversation before this is to be summarised.
    Compaction {
        /// Whether nobody asked for it.
        auto: bool,
        /// Whether a provider refused the request as too long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        overflow: Option<bool>,
        /// The first message that is kept as it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tail_start_id: Option<MessageId>,
    },
}

/// Text of a user or a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TextPart {
    /// The text. Shared, because a long answer is held by the run, the log and every client at once.
    pub text: Arc<str>,
    /// Written by the program on a user's behalf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synthetic: Option<bool>,
    /// Shown, but not sent to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<bool>,
    /// When, for a model's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
    /// What a client or the provider attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

/// From when to when, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// Begun.
    pub start: u64,
    /// Ended; absent while it grows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<u64>,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolPart {
    /// The provider's id of the call.
    #[serde(rename = "callID")]
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// How far it is.
    pub state: ToolState,
    /// What the provider wants back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

/// How far a tool call is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum ToolState {
    /// The model is still writing it.
    Pending {
        /// Always empty.
        input: Map,
        /// Always empty.
        raw: String,
    },
    /// It waits for leave or works.
    Running {
        /// The arguments.
        input: Value,
        /// What it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Its progress.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Map>,
        /// Since when.
        time: Span,
    },
    /// It has a result.
    Completed {
        /// The arguments.
        input: Value,
        /// What the model is told.
        output: String,
        /// What it did.
        title: String,
        /// What clients show.
        metadata: Map,
        /// From when to when.
        time: ToolSpan,
        /// Files for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attachments: Option<Vec<FileAttachment>>,
    },
    /// It failed, or was refused.
    Error {
        /// The arguments.
        input: Value,
        /// What the model is told.
        error: String,
        /// What clients show.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Map>,
        /// From when to when.
        time: ToolSpan,
    },
}

/// From when to when a call worked, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolSpan {
    /// Begun.
    pub start: u64,
    /// Ended.
    pub end: u64,
    /// Its output was cleared from later requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted: Option<u64>,
}

/// A file that a tool hands to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileAttachment {
    /// The attachment.
    pub id: PartId,
    /// Its session.
    #[serde(rename = "sessionID")]
    pub session_id: SessionId,
    /// Its message.
    #[serde(rename = "messageID")]
    pub message_id: MessageId,
    /// Always `file`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its media type.
    pub mime: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// A `data:` address.
    pub url: String,
}

/// A model call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepFinish {
    /// Why: `stop`, `tool-calls`, `length`, ….
    pub reason: String,
    /// The worktree's tree after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// US dollars.
    pub cost: f64,
    /// Tokens.
    pub tokens: TokenUsage,
}

impl ToolState {
    /// A call that the model has begun to write.
    #[must_use]
    pub fn pending() -> Self {
        Self::Pending { input: Map::new(), raw: String::new() }
    }

    /// Whether the call has neither result nor error.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Pending { .. } | Self::Running { .. })
    }
}
