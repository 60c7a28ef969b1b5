//! What a model says, piece by piece, free of any wire protocol.

use serde_json::Value;

/// One piece of an answer.
///
/// Text and reasoning are blocks that follow one another: a new one never
/// starts before the last has ended. Calls carry their id on every event
/// because they may interleave. [`ModelEvent::Finish`] is the last event of
/// every complete answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// A block of text begins.
    TextStart,
    /// More of the text; never empty.
    TextDelta(String),
    /// The block of text is complete.
    TextEnd,
    /// A block of reasoning begins.
    ReasoningStart,
    /// More of the reasoning; never empty.
    ReasoningDelta(String),
    /// The block of reasoning is complete.
    ReasoningEnd {
        /// What the provider needs to recognise the block, to be sent back as it is,
        /// such as `{"anthropic":{"signature":"…"}}`.
        metadata: Option<Value>,
    },
    /// A call begins.
    ToolStart {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// More of a call's arguments; never empty.
    ToolDelta {
        /// The call's id.
        id: String,
        /// Raw JSON text.
        text: String,
    },
    /// What belongs to the open block of text or to an open call and is kept with it, because the
    /// provider needs it back as it is, such as `{"google":{"thoughtSignature":"…"}}`, or because
    /// clients are told of it. What is known when a text begins comes before the first word of it.
    Metadata {
        /// The call's id; the open block of text is meant without one.
        call: Option<String>,
        /// What to send back.
        metadata: Value,
    },
    /// A call is complete.
    ToolCall {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
        /// Raw JSON text as the model wrote it, right or wrong; `{}` when it wrote none.
        arguments: String,
    },
    /// The answer is complete.
    Finish {
        /// Why it ended.
        reason: FinishReason,
        /// What it used.
        usage: Usage,
    },
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishReason {
    /// The model had said what it wanted.
    Stop,
    /// The answer reached its token limit.
    Length,
    /// The model waits for the results of its calls.
    ToolCalls,
    /// The provider withheld the rest.
    ContentFilter,
    /// The provider gave a reason of its own.
    Other(String),
    /// The provider gave no reason.
    Unknown,
}

impl FinishReason {
    /// The name clients know it by.
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

/// Tokens an answer used; no token is counted in two fields but `total`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input that no cache held.
    pub input: u64,
    /// Output without reasoning, where the provider tells them apart.
    pub output: u64,
    /// Reasoning.
    pub reasoning: u64,
    /// Input read from a cache.
    pub cache_read: u64,
    /// Input written to a cache.
    pub cache_write: u64,
    /// All of it as the provider sums it up; absent when it reported nothing.
    pub total: Option<u64>,
}
