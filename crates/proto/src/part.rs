//! Parts: the pieces of a message, such as text, tool calls and files.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Map, MessageError, MessageId, PartId, PromptModel, SessionId, TokenUsage};

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// The id of the part.
    pub id: PartId,
    /// The session.
    #[serde(rename = "sessionID")]
    pub session_id: SessionId,
    /// The message.
    #[serde(rename = "messageID")]
    pub message_id: MessageId,
    /// The content.
    #[serde(flatten)]
    pub body: PartBody,
}

/// The content of a part. The store keeps it in this form too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum PartBody {
    /// Text of the user or the model.
    Text(TextPart),
    /// The reasoning of a model.
    Reasoning {
        /// The text. Empty if the provider does not reveal it.
        text: Arc<str>,
        /// Data that is sent back to the provider unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
        /// When it happened.
        time: Span,
    },
    /// A file attached to a prompt.
    File {
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
    },
    /// A tool call.
    Tool(ToolPart),
    /// The start of a model call.
    StepStart {
        /// The snapshot of the worktree before the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        snapshot: Option<String>,
    },
    /// The end of a model call.
    StepFinish(StepFinish),
    /// A snapshot of the worktree.
    Snapshot {
        /// The tree hash of the snapshot.
        snapshot: String,
    },
    /// The files that a step changed.
    Patch {
        /// The snapshot before the step.
        hash: String,
        /// The absolute paths of the files.
        files: Vec<String>,
        /// The snapshot after the step; complete for the named files only. Absent in sessions of other programs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
    },
    /// An agent mentioned in a prompt.
    Agent {
        /// The agent.
        name: String,
        /// Where the prompt mentions it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<Value>,
    },
    /// A task for a subagent.
    Subtask {
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
    /// A request to the provider that was retried.
    Retry {
        /// The number of the attempt.
        attempt: u32,
        /// The error before the retry.
        error: MessageError,
        /// When it happened.
        time: crate::CreatedTime,
    },
    /// A request to compact the conversation up to here.
    Compaction {
        /// Whether the program started it, not the user.
        auto: bool,
        /// Whether a provider rejected the request as too long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        overflow: Option<bool>,
        /// The first message that is not summarized.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tail_start_id: Option<MessageId>,
    },
}

/// Text of the user or the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TextPart {
    /// The text. Shared, because the run, the log and each client hold a long response at the same time.
    pub text: Arc<str>,
    /// Whether the program wrote the text, not the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synthetic: Option<bool>,
    /// Whether the text is displayed but not sent to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<bool>,
    /// When the model wrote the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
    /// Data attached by a client or the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

/// A period of time, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// The start.
    pub start: u64,
    /// The end. Absent while it is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<u64>,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolPart {
    /// The id that the provider gave the call.
    #[serde(rename = "callID")]
    pub call_id: String,
    /// The name of the tool.
    pub tool: String,
    /// The state of the call.
    pub state: ToolState,
    /// Data that is sent back to the provider unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

/// The state of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum ToolState {
    /// The model is still writing the arguments.
    Pending {
        /// Always empty.
        input: Map,
        /// Always empty.
        raw: String,
    },
    /// The call waits for permission or runs.
    Running {
        /// The arguments.
        input: Value,
        /// A short description of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// The progress.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Map>,
        /// When it started.
        time: Span,
    },
    /// The call succeeded.
    Completed {
        /// The arguments.
        input: Value,
        /// The output for the model.
        output: String,
        /// A short description of the result.
        title: String,
        /// Details that clients display.
        metadata: Map,
        /// When the call ran.
        time: ToolSpan,
        /// Files for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attachments: Option<Vec<FileAttachment>>,
    },
    /// The call failed or was denied.
    Error {
        /// The arguments.
        input: Value,
        /// The error for the model.
        error: String,
        /// Details that clients display.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Map>,
        /// When the call ran.
        time: ToolSpan,
    },
}

/// When a call ran, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolSpan {
    /// The start.
    pub start: u64,
    /// The end.
    pub end: u64,
    /// When its output was removed from later requests to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted: Option<u64>,
}

/// A file that a tool returns to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileAttachment {
    /// The id of the attachment.
    pub id: PartId,
    /// The session.
    #[serde(rename = "sessionID")]
    pub session_id: SessionId,
    /// The message.
    #[serde(rename = "messageID")]
    pub message_id: MessageId,
    /// Always `file`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The media type.
    pub mime: String,
    /// The file name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// A `data:` URL.
    pub url: String,
}

/// The end of a model call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepFinish {
    /// Why the model stopped: `stop`, `tool-calls`, `length`, ….
    pub reason: String,
    /// The snapshot of the worktree after the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// The cost in US dollars.
    pub cost: f64,
    /// The tokens used.
    pub tokens: TokenUsage,
}

impl ToolState {
    /// Returns the state of a call that the model is still writing.
    #[must_use]
    pub fn pending() -> Self {
        Self::Pending { input: Map::new(), raw: String::new() }
    }

    /// Returns whether the call has neither a result nor an error yet.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Pending { .. } | Self::Running { .. })
    }
}
