//! Structured answers: values that match a JSON schema.
//!
//! A prompt may request a value with a schema. The model must then call a tool that takes the value, which is checked
//! against the schema. A valid value ends the turn. Everything else is a failed attempt: the request is repeated until
//! the limit of attempts is reached.

pub(crate) mod schema;

use codewright_llm::ToolSpec;
use codewright_proto::{
    AssistantMessage, Map, Message, MessageError, MessageId, MessageWithParts, OutputFormat, PartBody,
    ToolSpan, ToolState, UserMessage,
};
use serde_json::Value;

/// The name of the tool that takes the value.
pub(crate) const TOOL: &str = "StructuredOutput";
const CAPTURED: &str = "Structured output captured successfully.";
const DESCRIPTION: &str = "Submits the final answer. The arguments are the answer itself and must fit this tool's \
                           schema. First find out everything you need with the other tools, then call this one \
                           exactly once; the call ends the work, and any other text is ignored.";
/// The block of the system text about the tool.
pub(crate) const INSTRUCTION: &str = "A program reads your answer. When the work is done, submit the answer with the \
                                      StructuredOutput tool; an answer in plain text is lost.";
/// The message to a model that ended without a value.
pub(crate) const REMINDER: &str = "<system-reminder>\nNo answer was submitted. Call the StructuredOutput tool with the \
                                   answer.\n</system-reminder>";
/// The default number of retries.
const DEFAULT_RETRIES: u32 = 2;
/// The largest number of retries that a prompt can request.
const MAX_RETRIES: u32 = 20;

/// Returns the schema that a prompt requests.
pub(crate) fn requested_schema(prompt: &UserMessage) -> Option<&Value> {
    match &prompt.format {
        Some(OutputFormat::JsonSchema { schema, .. }) => Some(schema),
        Some(OutputFormat::Text) | None => None,
    }
}

/// Returns the definition of the tool.
pub(crate) fn spec(schema: &Value) -> ToolSpec {
    let mut parameters = schema.clone();
    if let Some(schema) = parameters.as_object_mut() {
        schema.remove("$schema");
    }
    ToolSpec { name: TOOL.to_owned(), description: DESCRIPTION.to_owned(), parameters }
}

/// Returns the state of a call with a value.
pub(crate) fn judged(input: Value, schema: &Value, time: ToolSpan) -> ToolState {
    match schema::check(schema, &input) {
        Ok(()) => ToolState::Completed {
            input,
            output: CAPTURED.to_owned(),
            title: "Structured Output".to_owned(),
            metadata: Map::from_iter([("valid".to_owned(), Value::Bool(true))]),
            time,
            attachments: None,
        },
        Err(reason) => {
            let error = format!(
                "The answer does not fit the schema: {reason}. Call {TOOL} again with a valid answer."
            );
            ToolState::Error { input, error, metadata: None, time }
        }
    }
}

/// Returns the value of a call if it was accepted.
pub(crate) fn captured(tool: &str, state: &ToolState) -> Option<Value> {
    match state {
        ToolState::Completed { input, .. } if tool == TOOL => Some(input.clone()),
        ToolState::Pending { .. }
        | ToolState::Running { .. }
        | ToolState::Completed { .. }
        | ToolState::Error { .. } => None,
    }
}

/// Counts the failed attempts to answer a prompt: an invalid value, or an end without a call.
pub(crate) fn misses(transcript: &[MessageWithParts], prompt: &MessageId) -> u32 {
    let answers = transcript.iter().filter_map(|message| match &message.info {
        Message::Assistant(info) if info.parent_id == *prompt => Some((info, message)),
        Message::Assistant(_) | Message::User(_) => None,
    });
    answers.map(|(info, message)| failed_attempts(info, message)).sum()
}

fn failed_attempts(info: &AssistantMessage, message: &MessageWithParts) -> u32 {
    let calls = message.parts.iter().filter_map(|part| match &part.body {
        PartBody::Tool(call) => Some(call),
        _ => None,
    });
    let (mut called, mut refused) = (false, 0);
    for call in calls {
        called = true;
        if call.tool == TOOL && matches!(call.state, ToolState::Error { .. }) {
            refused = 1;
        }
    }
    if info.structured.is_some() || info.error.is_some() || info.finish.is_none() {
        return 0;
    }
    if called { refused } else { 1 }
}

/// Returns the error of a turn whose attempts are used up.
pub(crate) fn given_up(prompt: &UserMessage, misses: u32) -> Option<MessageError> {
    let Some(OutputFormat::JsonSchema { retry_count, .. }) = &prompt.format else { return None };
    let allowed = retry_count.unwrap_or(DEFAULT_RETRIES).min(MAX_RETRIES);
    (misses > allowed).then(|| MessageError::StructuredOutputError {
        message: "the model did not hand in an answer that fits the schema".to_owned(),
        retries: misses - 1,
    })
}
