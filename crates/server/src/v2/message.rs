//! The conversion of stored messages into the schemas of the v2 API.

use codewright_proto::{
    AssistantMessage, FileAttachment, Map, Message, MessageError, MessageWithParts, ModelRef, Part, PartBody,
    TextPart, TokenUsage, ToolPart, ToolState, UserMessage,
};
use serde_json::{Value, json};

use super::prompt;

/// Why a conversation was compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It had become too long.
    Auto,
    /// The user requested it.
    Manual,
}

impl Reason {
    /// Returns the reason in a prompt, if the prompt requests a summary.
    pub(crate) fn of(parts: &[Part]) -> Option<Self> {
        parts.iter().find_map(|part| match &part.body {
            PartBody::Compaction { auto: true, .. } => Some(Self::Auto),
            PartBody::Compaction { auto: false, .. } => Some(Self::Manual),
            PartBody::Text(_)
            | PartBody::Reasoning { .. }
            | PartBody::File { .. }
            | PartBody::Tool(_)
            | PartBody::StepStart { .. }
            | PartBody::StepFinish(_)
            | PartBody::Snapshot { .. }
            | PartBody::Patch { .. }
            | PartBody::Agent { .. }
            | PartBody::Subtask { .. }
            | PartBody::Retry { .. } => None,
        })
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Manual => "manual",
        }
    }
}

/// Converts a message. If it is a summary, `reason` is the reason in its prompt.
pub(crate) fn message(stored: &MessageWithParts, reason: Reason) -> Value {
    match &stored.info {
        Message::User(info) => user(info, &stored.parts),
        Message::Assistant(info) if info.summary == Some(true) => json!({
            "type": "compaction",
            "id": info.id,
            "time": {"created": info.time.created},
            "reason": reason.text(),
            "summary": visible_text(&stored.parts),
            "recent": "",
        }),
        Message::Assistant(info) => match user_command(&stored.parts) {
            Some((call, command, output)) => json!({
                "type": "shell",
                "id": info.id,
                "time": info.time,
                "callID": call.call_id,
                "command": command,
                "output": output,
            }),
            None => assistant(info, &stored.parts),
        },
    }
}

fn user(info: &UserMessage, parts: &[Part]) -> Value {
    let (id, time) = (&info.id, info.time);
    let Some(mut value) = prompt::user_prompt(parts) else {
        let text = prompt::synthetic_text(parts);
        return json!({"type": "synthetic", "id": id, "time": time, "sessionID": info.session_id, "text": text});
    };
    value["type"] = json!("user");
    value["id"] = json!(id);
    value["time"] = json!(time);
    value
}

fn assistant(info: &AssistantMessage, parts: &[Part]) -> Value {
    let mut converted = json!({
        "type": "assistant",
        "id": info.id,
        "time": info.time,
        "agent": info.agent,
        "model": model(info),
        "content": parts.iter().filter_map(|part| content(part, info.time.created)).collect::<Value>(),
    });
    if let Some(snapshot) = snapshot(parts) {
        converted["snapshot"] = snapshot;
    }
    if let Some(finish) = info.finish.as_deref().or(info.error.as_ref().map(|_| "error")) {
        converted["finish"] = json!(finish);
    }
    if info.finish.is_some() {
        converted["cost"] = json!(info.cost);
        converted["tokens"] = tokens(&info.tokens);
    }
    if let Some(failed) = &info.error {
        converted["error"] = error(failed);
    }
    converted
}

/// Returns the model of a response.
pub(crate) fn model(info: &AssistantMessage) -> ModelRef {
    ModelRef {
        id: info.model_id.clone(),
        provider_id: info.provider_id.clone(),
        variant: info.variant.clone(),
    }
}

pub(crate) fn tokens(used: &TokenUsage) -> Value {
    let TokenUsage { input, output, reasoning, cache, .. } = used;
    json!({"input": input, "output": output, "reasoning": reasoning, "cache": cache})
}

pub(crate) fn error(failed: &MessageError) -> Value {
    unknown(failed.message())
}

/// Returns an error of unknown kind with a message.
pub(crate) fn unknown(message: &str) -> Value {
    json!({"type": "unknown", "message": message})
}

/// Returns the snapshots before and after the steps of a message, and the files that differ.
fn snapshot(parts: &[Part]) -> Option<Value> {
    let mut snapshot = Map::new();
    let mut changed: Vec<&String> = Vec::new();
    for part in parts {
        match &part.body {
            PartBody::StepStart { snapshot: Some(tree) } if !snapshot.contains_key("start") => {
                snapshot.insert("start".to_owned(), json!(tree));
            }
            PartBody::StepFinish(finish) => {
                if let Some(tree) = &finish.snapshot {
                    snapshot.insert("end".to_owned(), json!(tree));
                }
            }
            PartBody::Patch { files, .. } => changed.extend(files),
            PartBody::StepStart { .. }
            | PartBody::Text(_)
            | PartBody::Reasoning { .. }
            | PartBody::File { .. }
            | PartBody::Tool(_)
            | PartBody::Snapshot { .. }
            | PartBody::Agent { .. }
            | PartBody::Subtask { .. }
            | PartBody::Retry { .. }
            | PartBody::Compaction { .. } => {}
        }
    }
    if snapshot.contains_key("end") {
        snapshot.insert("files".to_owned(), json!(changed));
    }
    (!snapshot.is_empty()).then(|| snapshot.into())
}

/// Returns the visible text of a message.
pub(crate) fn visible_text(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match &part.body {
        PartBody::Text(TextPart { text, ignored, .. }) if *ignored != Some(true) => Some(&**text),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns the call, command line and output of a command that the user ran. Such a message has no step, because no
/// model was called.
fn user_command(parts: &[Part]) -> Option<(&ToolPart, &str, &str)> {
    let [Part { body: PartBody::Tool(call), .. }] = parts else { return None };
    Some((call, command(call)?, output(&call.state)))
}

/// Returns the command line of a call of `bash`.
pub(crate) fn command(call: &ToolPart) -> Option<&str> {
    let input = match &call.state {
        ToolState::Pending { .. } => return None,
        ToolState::Running { input, .. }
        | ToolState::Completed { input, .. }
        | ToolState::Error { input, .. } => input,
    };
    (call.tool == "bash").then(|| input["command"].as_str()).flatten()
}

/// Returns the output of a call so far.
pub(crate) fn output(state: &ToolState) -> &str {
    match state {
        ToolState::Pending { .. } => "",
        ToolState::Running { metadata, .. } => {
            metadata.as_ref().and_then(|metadata| metadata.get("output")?.as_str()).unwrap_or_default()
        }
        ToolState::Completed { output, .. } => output,
        ToolState::Error { error, .. } => error,
    }
}

fn content(part: &Part, created: u64) -> Option<Value> {
    match &part.body {
        PartBody::Text(text) => Some(json!({"type": "text", "id": part.id, "text": text.text})),
        PartBody::Reasoning { text, metadata, time } => {
            let mut converted = json!({"type": "reasoning", "id": part.id, "text": text});
            converted["time"] = json!({"created": time.start});
            if let Some(end) = time.end {
                converted["time"]["completed"] = json!(end);
            }
            if let Some(metadata) = provider_metadata(metadata.as_ref()) {
                converted["providerMetadata"] = metadata.clone();
            }
            Some(converted)
        }
        PartBody::Tool(call) => Some(tool(call, created)),
        PartBody::File { .. }
        | PartBody::StepStart { .. }
        | PartBody::StepFinish(_)
        | PartBody::Snapshot { .. }
        | PartBody::Patch { .. }
        | PartBody::Agent { .. }
        | PartBody::Subtask { .. }
        | PartBody::Retry { .. }
        | PartBody::Compaction { .. } => None,
    }
}

/// Returns the metadata for the provider, if it has the schema of the v2 API: objects by provider.
pub(crate) fn provider_metadata(metadata: Option<&Value>) -> Option<&Value> {
    metadata.filter(|value| value.as_object().is_some_and(|all| all.values().all(Value::is_object)))
}

/// Returns the field `provider` of a call. Calls are always executed by this program.
pub(crate) fn provider(call: &ToolPart) -> Value {
    let mut provider = json!({"executed": false});
    if let Some(metadata) = provider_metadata(call.metadata.as_ref()) {
        provider["metadata"] = metadata.clone();
    }
    provider
}

fn tool(call: &ToolPart, created: u64) -> Value {
    let (state, time) = match &call.state {
        // The partial arguments of a pending call are not stored.
        ToolState::Pending { .. } => (json!({"status": "pending", "input": ""}), json!({"created": created})),
        ToolState::Running { input, time, metadata, .. } => (
            json!({
                "status": "running",
                "input": object(input),
                "structured": structured(metadata.as_ref()),
                "content": progress(&call.state),
            }),
            json!({"created": time.start, "ran": time.start}),
        ),
        ToolState::Completed { input, time, .. } => {
            let mut state = json!({"status": "completed", "input": object(input)});
            merge(&mut state, result(&call.state));
            let mut times = json!({"created": time.start, "ran": time.start, "completed": time.end});
            if let Some(pruned) = time.compacted {
                times["pruned"] = json!(pruned);
            }
            (state, times)
        }
        ToolState::Error { input, time, metadata, error, .. } => (
            json!({
                "status": "error",
                "input": object(input),
                "content": [],
                "structured": structured(metadata.as_ref()),
                "error": unknown(error),
            }),
            json!({"created": time.start, "ran": time.start, "completed": time.end}),
        ),
    };
    json!({
        "type": "tool",
        "id": call.call_id,
        "name": call.tool,
        "provider": provider(call),
        "state": state,
        "time": time,
    })
}

/// Returns the result of a completed call: text, files and metadata.
pub(crate) fn result(state: &ToolState) -> Value {
    let ToolState::Completed { output, metadata, attachments, .. } = state else { return json!({}) };
    let files = attachments.iter().flatten();
    let text = std::iter::once(json!({"type": "text", "text": output}));
    let mut result = json!({
        "content": text.chain(files.map(file)).collect::<Value>(),
        "structured": metadata,
    });
    if let Some(path) = metadata.get("outputPath").filter(|path| path.is_string()) {
        result["outputPaths"] = json!([path]);
    }
    result
}

fn file(attached: &FileAttachment) -> Value {
    let mut converted = json!({"type": "file", "uri": attached.url, "mime": attached.mime});
    if let Some(name) = &attached.filename {
        converted["name"] = json!(name);
    }
    converted
}

/// Returns the output of a running call.
pub(crate) fn progress(state: &ToolState) -> Value {
    match output(state) {
        "" => json!([]),
        text => json!([{"type": "text", "text": text}]),
    }
}

pub(crate) fn structured(metadata: Option<&Map>) -> Value {
    metadata.map_or_else(|| json!({}), |metadata| json!(metadata))
}

/// Returns the arguments of a call. Invalid arguments, which are not an object, are replaced by an empty one.
pub(crate) fn object(input: &Value) -> Value {
    if input.is_object() { input.clone() } else { json!({}) }
}

pub(crate) fn merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(parts: &[Value], more: Value) -> Value {
        let mut info = json!({
            "role": "assistant", "id": "msg_2", "sessionID": "ses_1", "time": {"created": 6}, "parentID": "msg_1",
            "modelID": "m", "providerID": "p", "mode": "build", "agent": "build",
            "path": {"cwd": "/", "root": "/"}, "cost": 0.5,
            "tokens": {"input": 1, "output": 2, "reasoning": 3, "cache": {"read": 4, "write": 5}},
        });
        merge(&mut info, more);
        let parts = parts.iter().enumerate().map(|(at, part)| {
            let mut whole = json!({"id": format!("prt_{at}"), "sessionID": "ses_1", "messageID": "msg_2"});
            merge(&mut whole, part.clone());
            whole
        });
        let stored = json!({"info": info, "parts": parts.collect::<Value>()});
        message(&serde_json::from_value(stored).unwrap(), Reason::Auto)
    }

    #[track_caller]
    fn check_call(state: Value, expected: Value, time: Value) {
        let call = json!({"type": "tool", "callID": "c", "tool": "read", "state": state});
        let converted = answer(&[json!({"type": "step-start"}), call], json!({}));
        let call = &converted["content"][0];
        assert_eq!((&call["state"], &call["time"]), (&expected, &time));
        assert_eq!(
            (&call["id"], &call["name"], &call["provider"]),
            (&json!("c"), &json!("read"), &json!({"executed": false}))
        );
    }

    #[test]
    fn a_call_is_converted_in_each_state() {
        let pending = json!({"status": "pending", "input": {}, "raw": ""});
        check_call(pending, json!({"status": "pending", "input": ""}), json!({"created": 6}));
        let running = json!({"status": "running", "input": {"a": 1}, "metadata": {"output": "x"}, "time": {"start": 7}});
        check_call(
            running,
            json!({
                "status": "running", "input": {"a": 1}, "structured": {"output": "x"},
                "content": [{"type": "text", "text": "x"}],
            }),
            json!({"created": 7, "ran": 7}),
        );
        let file = json!({
            "id": "prt_f", "sessionID": "ses_1", "messageID": "msg_2", "type": "file", "mime": "image/png",
            "filename": "a.png", "url": "data:image/png;base64,xx",
        });
        let completed = json!({
            "status": "completed", "input": "nonsense", "output": "o", "title": "t",
            "metadata": {"outputPath": "/o"}, "time": {"start": 7, "end": 9, "compacted": 10}, "attachments": [file],
        });
        check_call(
            completed,
            json!({
                "status": "completed", "input": {}, "structured": {"outputPath": "/o"}, "outputPaths": ["/o"],
                "content": [
                    {"type": "text", "text": "o"},
                    {"type": "file", "uri": "data:image/png;base64,xx", "mime": "image/png", "name": "a.png"},
                ],
            }),
            json!({"created": 7, "ran": 7, "completed": 9, "pruned": 10}),
        );
        let failed = json!({"status": "error", "input": {}, "error": "no", "time": {"start": 7, "end": 9}});
        check_call(
            failed,
            json!({
                "status": "error", "input": {}, "structured": {}, "content": [],
                "error": {"type": "unknown", "message": "no"},
            }),
            json!({"created": 7, "ran": 7, "completed": 9}),
        );
    }

    #[test]
    fn a_response_has_its_snapshots_its_cost_and_its_finish_reason() {
        let parts = [
            json!({"type": "step-start", "snapshot": "a"}),
            json!({"type": "reasoning", "text": "hm", "time": {"start": 1, "end": 2}, "metadata": {"p": {"s": 1}}}),
            json!({
                "type": "step-finish", "reason": "stop", "snapshot": "b", "cost": 0.5,
                "tokens": {"input": 1, "output": 2, "reasoning": 3, "cache": {"read": 4, "write": 5}},
            }),
            json!({"type": "patch", "hash": "a", "files": ["/x"]}),
        ];
        let converted = answer(
            &parts,
            json!({"finish": "stop", "time": {"created": 6, "completed": 8}, "variant": "high"}),
        );
        let expected = json!({
            "type": "assistant", "id": "msg_2", "time": {"created": 6, "completed": 8}, "agent": "build",
            "model": {"id": "m", "providerID": "p", "variant": "high"},
            "content": [{
                "type": "reasoning", "id": "prt_1", "text": "hm", "time": {"created": 1, "completed": 2},
                "providerMetadata": {"p": {"s": 1}},
            }],
            "snapshot": {"start": "a", "end": "b", "files": ["/x"]},
            "finish": "stop",
            "cost": 0.5,
            "tokens": {"input": 1, "output": 2, "reasoning": 3, "cache": {"read": 4, "write": 5}},
        });
        assert_eq!(converted, expected);
        let failed = json!({"error": {"name": "MessageAbortedError", "data": {"message": "Aborted"}}});
        let converted = answer(&[], failed);
        assert_eq!(
            (&converted["finish"], &converted["error"], converted.get("cost")),
            (&json!("error"), &json!({"type": "unknown", "message": "Aborted"}), None)
        );
    }

    #[test]
    fn commands_and_summaries_are_separate_kinds_of_messages() {
        let command = json!({
            "type": "tool", "callID": "c", "tool": "bash", "state": {
                "status": "completed", "input": {"command": "ls"}, "output": "a", "title": "", "metadata": {},
                "time": {"start": 7, "end": 9},
            },
        });
        let converted = answer(std::slice::from_ref(&command), json!({}));
        let expected = json!({
            "type": "shell", "id": "msg_2", "time": {"created": 6}, "callID": "c", "command": "ls", "output": "a",
        });
        assert_eq!(converted, expected);
        // The same call in a step was made by the model.
        assert_eq!(answer(&[json!({"type": "step-start"}), command], json!({}))["type"], "assistant");
        let summary = answer(&[json!({"type": "text", "text": "all"})], json!({"summary": true}));
        let expected = json!({
            "type": "compaction", "id": "msg_2", "time": {"created": 6}, "reason": "auto", "summary": "all", "recent": "",
        });
        assert_eq!(summary, expected);
    }
}
