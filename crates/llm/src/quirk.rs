//! Deviations of servers from their protocol. A provider's row lists them by name.
//!
//! The protocol modules implement the original protocols. A quirk of requests is a function that
//! converts a request or its body.

use std::borrow::Cow;

use serde_json::Value;

use crate::Request;

mod messages;
mod mistral_ids;
mod mistral_messages;
mod noop_tool;
pub(crate) mod printed_calls;
mod reasoning_field;

/// A deviation of a server from its protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quirk {
    /// Ids of calls must have exactly nine letters and digits.
    MistralIds,
    /// A user message must not follow a tool message, reasoning is not sent back, and unknown
    /// fields are rejected.
    MistralMessages,
    /// A conversation with calls must declare tools, even if none is offered.
    NoopTool,
    /// Reasoning is sent back as `reasoning` instead of `reasoning_content`.
    ReasoningField,
    /// Reasoning is sent back with its details, such as signatures.
    ReasoningDetails,
    /// The model may print calls as text.
    PrintedCalls,
}

/// Converts a request for a server with these quirks.
pub(crate) fn request<'a>(quirks: &[Quirk], request: &'a Request) -> Cow<'a, Request> {
    if quirks.contains(&Quirk::NoopTool) { noop_tool::request(request) } else { Cow::Borrowed(request) }
}

/// Converts a body for a server with these quirks.
pub(crate) fn body(quirks: &[Quirk], body: Value) -> Value {
    quirks.iter().fold(body, |body, quirk| match quirk {
        Quirk::MistralIds => mistral_ids::body(body),
        Quirk::MistralMessages => mistral_messages::body(body),
        Quirk::ReasoningField => reasoning_field::body(body),
        // Handled in `request`, where messages are created, and where answers are decoded.
        Quirk::NoopTool | Quirk::ReasoningDetails | Quirk::PrintedCalls => body,
    })
}
