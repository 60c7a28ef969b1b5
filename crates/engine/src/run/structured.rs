//! An answer of a given form.
//!
//! A prompt may ask for a value that a JSON schema accepts. The model is given a tool that
//! takes the value, and told to call some tool; what it hands in is held against the schema.
//! A value that fits ends the turn. Everything else is a miss, which the model is told of,
//! until its misses are more than the prompt allows.

pub(crate) mod schema;

use codewright_llm::ToolSpec;
use codewright_proto::{
    AssistantMessage, Map, Message, MessageError, MessageId, MessageWithParts, OutputFormat, PartBody,
    ToolSpan, ToolState, UserMessage,
};
use serde_json::Value;

/// The tool that takes the value.
pub(crate) const TOOL: &str = "StructuredOutput";
const CAPTURED: &str = "Structured output captured successfully.";
const DESCRIPTION: &str = "Submits the final answer. The arguments are the answer itself and must fit this tool's \
                           schema. First find out everything you need with the other tools, then call this one \
                           exactly once; the call ends the work, and any other text is ignored.";
/// The block of the system text that goes with it.
pub(crate) const INSTRUCTION: &str = "A program reads your answer. When the work is done, submit the answer with the \
                                      StructuredOutput tool; an answer in plain text is lost.";
/// What the model is told when it ended without handing anything in.
pub(crate) const REMINDER: &str = "<system-reminder>\nNo answer was submitted. Call the StructuredOutput tool with the \
                                   answer.\n</system-reminder>";
/// Misses that are sent back if the prompt does not say how many.
const DEFAULT_RETRIES: u32 = 2;
/// The most misses that are sent back, whatever the prompt says.
const MAX_RETRIES: u32 = 20;

/// The schema that a prompt asks for.
pub(crate) fn wanted(prompt: &UserMessage) -> Option<&Value> {
    match &prompt.format {
        Some(OutputFormat::JsonSchema { schema, .. }) => Some(schema),
        Some(OutputFormat::Text) | None => None,
    }
}

/// How the tool is offered.
pub(crate) fn spec(schema: &Value) -> ToolSpec {
    let mut parameters = schema.clone();
    if let Some(schema) = parameters.as_object_mut() {
        schema.remove("$schema");
    }
    ToolSpec { name: TOOL.to_owned(), description: DESCRIPTION.to_owned(), parameters }
}

/// What becomes of a value that was handed in.
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

/// The value that a call handed in, if it was accepted.
pub(crate) fn captured(tool: &str, state: &ToolState) -> Option<Value> {
    match state {
        ToolState::Completed { input, .. } if tool == TOOL => Some(input.clone()),
        ToolState::Pending { .. }
        | ToolState::Running { .. }
        | ToolState::Completed { .. }
        | ToolState::Error { .. } => None,
    }
}

/// How often the answers to a prompt missed: a refused value, or an end without any call.
pub(crate) fn misses(transcript: &[MessageWithParts], prompt: &MessageId) -> u32 {
    let answers = transcript.iter().filter_map(|message| match &message.info {
        Message::Assistant(info) if info.parent_id == *prompt => Some((info, message)),
        Message::Assistant(_) | Message::User(_) => None,
    });
    answers.map(|(info, message)| missed(info, message)).sum()
}

fn missed(info: &AssistantMessage, message: &MessageWithParts) -> u32 {
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

/// The error of a turn that missed too often.
pub(crate) fn given_up(prompt: &UserMessage, misses: u32) -> Option<MessageError> {
    let Some(OutputFormat::JsonSchema { retry_count, .. }) = &prompt.format else { return None };
    let allowed = retry_count.unwrap_or(DEFAULT_RETRIES).min(MAX_RETRIES);
    (misses > allowed).then(|| MessageError::StructuredOutputError {
        message: "the model did not hand in an answer that fits the schema".to_owned(),
        retries: misses - 1,
    })
}
