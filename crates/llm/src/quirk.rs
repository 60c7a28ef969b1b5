//! Oddities of servers, each under a name that a provider's row can list.
//!
//! A protocol folder says what its inventors meant; here is what others made
//! of it. A quirk of the request is a function from body to body.

use serde_json::Value;

mod mistral_ids;
mod mistral_messages;
mod noop_tool;
pub(crate) mod printed_calls;
mod reasoning_field;

/// An oddity of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quirk {
    /// Ids of calls must be nine letters and digits.
    MistralIds,
    /// No user speaks right after a tool, thought is not sent back, and unknown fields are refused.
    MistralMessages,
    /// A conversation with calls must come with tools, even when none is offered.
    NoopTool,
    /// Thought is sent back as `reasoning`, not as `reasoning_content`.
    ReasoningField,
    /// Thought is sent back with the details it came with, signatures among them.
    ReasoningDetails,
    /// Calls may come printed as text.
    PrintedCalls,
}

/// The body as a server with these quirks takes it.
pub(crate) fn body(quirks: &[Quirk], body: Value) -> Value {
    quirks.iter().fold(body, |body, quirk| match quirk {
        Quirk::MistralIds => mistral_ids::body(body),
        Quirk::MistralMessages => mistral_messages::body(body),
        Quirk::NoopTool => noop_tool::body(body),
        Quirk::ReasoningField => reasoning_field::body(body),
        // These are minded where messages are made and answers read.
        Quirk::ReasoningDetails | Quirk::PrintedCalls => body,
    })
}

/// The messages of a chat body.
fn messages(body: &mut Value) -> &mut [Value] {
    body.get_mut("messages").and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default()
}
