//! The conversation as a model is shown it.
//!
//! Pure: stored messages in, request messages out. Whatever state a transcript was
//! left in, every call in the result is answered exactly once, no message is
//! empty, and what a given-up attempt said does not appear.

use codewright_llm::{AssistantContent, File, FileData, Message, ToolResult, UserContent};
use codewright_proto::{
    AssistantMessage, Message as Stored, MessageError, MessageWithParts, PartBody, ToolPart, ToolState,
};
use serde_json::Value;

use super::system::date;

/// What the model is told about a call that the process did not live to finish.
const INTERRUPTED: &str = "The call was interrupted before it finished; it may have had an effect.";
/// What stands for a tool's output that said nothing: some providers refuse an empty one.
const NO_OUTPUT: &str = "(no output)";

/// Turns a transcript into the messages of a request.
///
/// What has been sent before is sent again to the letter, so that providers can keep it in
/// their caches. The system text gives the day on which the session began; a prompt of a
/// later day says so itself.
pub(crate) fn history(transcript: &[MessageWithParts]) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut today = transcript.first().map(|first| date(first.info.created()));
    for stored in transcript {
        match &stored.info {
            Stored::User(_) => push_user(&mut messages, stored, &mut today),
            Stored::Assistant(info) => push_assistant(&mut messages, info, stored),
        }
    }
    messages
}

fn push_user(messages: &mut Vec<Message>, stored: &MessageWithParts, today: &mut Option<String>) {
    let mut content: Vec<UserContent> =
        stored.parts.iter().filter_map(|part| user_content(&part.body)).collect();
    if content.is_empty() {
        return;
    }
    let day = date(stored.info.created());
    if today.as_ref() != Some(&day) {
        let note = format!("<system-reminder>\nToday's date is now {day}.\n</system-reminder>");
        content.push(UserContent::Text(note));
        *today = Some(day);
    }
    messages.push(Message::User(content));
}

fn user_content(body: &PartBody) -> Option<UserContent> {
    match body {
        PartBody::Text(text) if text.ignored == Some(true) || text.text.trim().is_empty() => None,
        PartBody::Text(text) => Some(UserContent::Text(text.text.to_string())),
        // Text and directories were expanded into text parts when the prompt was admitted.
        PartBody::File { mime, .. } if mime.starts_with("text/") || mime == "application/x-directory" => None,
        PartBody::File { mime, filename, url, .. } => {
            Some(UserContent::File(file(mime, filename.as_deref(), url)))
        }
        PartBody::Subtask { .. }
        | PartBody::Agent { .. }
        | PartBody::Compaction { .. }
        | PartBody::Reasoning { .. }
        | PartBody::Tool(_)
        | PartBody::StepStart { .. }
        | PartBody::StepFinish(_)
        | PartBody::Snapshot { .. }
        | PartBody::Patch { .. }
        | PartBody::Retry { .. } => None,
    }
}

fn push_assistant(messages: &mut Vec<Message>, info: &AssistantMessage, stored: &MessageWithParts) {
    let aborted = matches!(info.error, Some(MessageError::MessageAbortedError { .. }));
    let called = stored.parts.iter().any(|part| matches!(part.body, PartBody::Tool(_)));
    // An answer that failed says nothing; its calls, though, have happened.
    let spoke = info.error.is_none() || (aborted && called);
    // Reasoning is bound to an answer that the provider finished; a cut one is refused when sent back.
    let finished = info.finish.is_some() && info.error.is_none();
    let mut content = Vec::new();
    let mut results = Vec::new();
    for part in &stored.parts {
        match &part.body {
            PartBody::Text(text) if spoke && !text.text.trim().is_empty() => {
                content.push(AssistantContent::Text(text.text.to_string()));
                content.extend(text.metadata.clone().map(AssistantContent::Metadata));
            }
            PartBody::Reasoning { text, metadata, .. }
                if finished && (!text.is_empty() || metadata.is_some()) =>
            {
                content
                    .push(AssistantContent::Reasoning { text: text.to_string(), metadata: metadata.clone() });
            }
            PartBody::Tool(call) => {
                content.push(tool_call(call));
                content.extend(call.metadata.clone().map(AssistantContent::Metadata));
                results.push(tool_result(call));
            }
            PartBody::Text(_)
            | PartBody::Reasoning { .. }
            | PartBody::File { .. }
            | PartBody::StepStart { .. }
            | PartBody::StepFinish(_)
            | PartBody::Snapshot { .. }
            | PartBody::Patch { .. }
            | PartBody::Agent { .. }
            | PartBody::Subtask { .. }
            | PartBody::Retry { .. }
            | PartBody::Compaction { .. } => {}
        }
    }
    let says_something = content.iter().any(|item| !matches!(item, AssistantContent::Reasoning { .. }));
    if says_something {
        messages.push(Message::Assistant(content));
    }
    if !results.is_empty() {
        messages.push(Message::Tool(results));
    }
}

fn tool_call(call: &ToolPart) -> AssistantContent {
    let input = match &call.state {
        ToolState::Pending { .. } => Value::Object(serde_json::Map::new()),
        ToolState::Running { input, .. }
        | ToolState::Completed { input, .. }
        | ToolState::Error { input, .. } => input.clone(),
    };
    // Providers take objects only, whatever the model once wrote.
    let input = if input.is_object() { input } else { Value::Object(serde_json::Map::new()) };
    AssistantContent::ToolCall { id: call.call_id.clone(), name: call.tool.clone(), input }
}

fn tool_result(call: &ToolPart) -> ToolResult {
    let (output, is_error, attachments) = match &call.state {
        ToolState::Completed { output, attachments, .. } => {
            let files = attachments.iter().flatten();
            (output.clone(), false, files.map(|f| file(&f.mime, f.filename.as_deref(), &f.url)).collect())
        }
        ToolState::Error { error, .. } => (error.clone(), true, Vec::new()),
        ToolState::Pending { .. } | ToolState::Running { .. } => (INTERRUPTED.to_owned(), true, Vec::new()),
    };
    let output = if output.trim().is_empty() { NO_OUTPUT.to_owned() } else { output };
    ToolResult { call_id: call.call_id.clone(), name: call.tool.clone(), output, is_error, attachments }
}

fn file(mime: &str, filename: Option<&str>, url: &str) -> File {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let data = match inline {
        Some((_, base64)) => FileData::Base64(base64.to_owned()),
        None => FileData::Url(url.to_owned()),
    };
    File { mime: mime.to_owned(), filename: filename.map(str::to_owned), data }
}
