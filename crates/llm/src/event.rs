//! The events of a model's answer, independent of the wire protocol.

use serde_json::Value;

/// One event of an answer.
///
/// Blocks of text and reasoning follow one another: a block starts only after the previous one has
/// ended. Tool calls may interleave, so each of their events carries the call's id.
/// [`ModelEvent::Finish`] is the last event of a complete answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// A block of text starts.
    TextStart,
    /// A piece of text; never empty.
    TextDelta(String),
    /// The block of text is complete.
    TextEnd,
    /// The open block of text was reasoning, and is complete.
    TextWasReasoning,
    /// A block of reasoning starts.
    ReasoningStart,
    /// A piece of reasoning; never empty.
    ReasoningDelta(String),
    /// The block of reasoning is complete.
    ReasoningEnd {
        /// Data that the provider needs back unchanged to recognize the block, such as
        /// `{"anthropic":{"signature":"…"}}`.
        metadata: Option<Value>,
    },
    /// A tool call starts.
    ToolStart {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// A piece of a call's arguments; never empty.
    ToolDelta {
        /// The call's id.
        id: String,
        /// Raw JSON text.
        text: String,
    },
    /// Data of the open text block or of an open call that is stored with it, because the provider
    /// needs it back unchanged, such as `{"google":{"thoughtSignature":"…"}}`, or because clients
    /// display it. Data that is available when a text block starts comes before its first delta.
    Metadata {
        /// The call's id, or `None` for the open text block.
        call: Option<String>,
        /// The data.
        metadata: Value,
    },
    /// A tool call is complete.
    ToolCall {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
        /// The JSON text as the model wrote it, possibly invalid; `{}` if the model wrote nothing.
        arguments: String,
    },
    /// The model wrote more after the arguments of a call that is complete. It is ignored.
    ToolExcess {
        /// The call's id.
        id: String,
    },
    /// The answer is complete.
    Finish {
        /// The reason.
        reason: FinishReason,
        /// The tokens used.
        usage: Usage,
    },
}

/// The reason why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishReason {
    /// The model finished its answer.
    Stop,
    /// The answer reached its token limit.
    Length,
    /// The model waits for the tool results.
    ToolCalls,
    /// The provider withheld the rest of the answer.
    ContentFilter,
    /// A reason that only this provider has.
    Other(String),
    /// The provider gave no reason.
    Unknown,
}

impl FinishReason {
    /// Returns the reason that fits the number of tool calls: servers may report a normal stop
    /// after calls, or calls that are missing. Waiting for their results would never end.
    pub(crate) fn with_calls(self, calls: usize) -> Self {
        match self {
            Self::Stop | Self::Unknown if calls > 0 => Self::ToolCalls,
            Self::ToolCalls if calls == 0 => Self::Stop,
            reason => reason,
        }
    }

    /// Returns the reason's name in the API.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool-calls",
            Self::ContentFilter => "content-filter",
            Self::Other(_) => "other",
            Self::Unknown => "unknown",
        }
    }
}

/// The tokens of an answer. Each token is counted in one field, except for `total`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input that was not cached.
    pub input: u64,
    /// Output without reasoning, if the provider reports them separately.
    pub output: u64,
    /// Reasoning.
    pub reasoning: u64,
    /// Input read from a cache.
    pub cache_read: u64,
    /// Input written to a cache.
    pub cache_write: u64,
    /// The provider's total, or `None` if it reported no usage.
    pub total: Option<u64>,
}
