//! The removal of content from an exported session.
//!
//! The course of the session remains: its parts with their times, models, tools, tokens and results. Each
//! text is replaced by its kind and the id of its item, in OpenCode's form if it has one. Errors,
//! structured answers, addresses, rules and attached values are removed too; OpenCode keeps them.

use codewright_proto::Map;
use serde_json::Value;

/// Removes the texts from the session's own fields.
pub(super) fn session(info: &mut Value) {
    let id = id(info);
    let Some(fields) = info.as_object_mut() else { return };
    fields.retain(|key, _| SESSION.contains(&key.as_str()));
    text(fields, "directory", "session-directory", &id);
    text(fields, "title", "session-title", &id);
    if let Some(path) = fields.get_mut("path").filter(|path| path.as_str() != Some("")) {
        *path = mark("session-path", &id);
    }
    diffs(fields.get_mut("summary"), "session-diff");
    object(fields, "metadata", "session-metadata", &id);
    if let Some(share) = fields.get_mut("share").and_then(Value::as_object_mut) {
        text(share, "url", "share-url", &id);
    }
    if let Some(revert) = fields.get_mut("revert").and_then(Value::as_object_mut) {
        text(revert, "snapshot", "revert-snapshot", &id);
        text(revert, "diff", "revert-diff", &id);
        revert.remove("kept");
    }
    for rule in fields.get_mut("permission").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(pattern) = rule.get_mut("pattern").filter(|pattern| pattern.as_str() != Some("*")) {
            *pattern = mark("session-pattern", &id);
        }
    }
}

/// The session fields that are kept; all others are removed.
const SESSION: [&str; 19] = [
    "id",
    "slug",
    "projectID",
    "workspaceID",
    "directory",
    "path",
    "parentID",
    "title",
    "agent",
    "model",
    "version",
    "summary",
    "cost",
    "tokens",
    "share",
    "metadata",
    "revert",
    "permission",
    "time",
];

/// The message fields that are kept; all others are removed.
const MESSAGE: [&str; 21] = [
    "id",
    "sessionID",
    "role",
    "time",
    "format",
    "summary",
    "agent",
    "model",
    "system",
    "tools",
    "error",
    "parentID",
    "modelID",
    "providerID",
    "mode",
    "path",
    "cost",
    "tokens",
    "structured",
    "variant",
    "finish",
];

/// Removes the texts from a message and its parts.
pub(super) fn message(message: &mut Value) {
    if let Some(info) = message.get_mut("info") {
        message_info(info);
    }
    for value in message.get_mut("parts").and_then(Value::as_array_mut).into_iter().flatten() {
        part(value);
    }
    if let Some(fields) = message.as_object_mut() {
        fields.retain(|key, _| key == "info" || key == "parts");
    }
}

fn message_info(info: &mut Value) {
    let id = id(info);
    let Some(fields) = info.as_object_mut() else {
        *info = Value::Null;
        return;
    };
    fields.retain(|key, _| MESSAGE.contains(&key.as_str()));
    text(fields, "system", "system", &id);
    if let Some(path) = fields.get_mut("path").and_then(Value::as_object_mut) {
        text(path, "cwd", "cwd", &id);
        text(path, "root", "root", &id);
    }
    if let Some(summary) = fields.get_mut("summary").and_then(Value::as_object_mut) {
        text(summary, "title", "summary-title", &id);
        text(summary, "body", "summary-body", &id);
    }
    diffs(fields.get_mut("summary"), "message-diff");
    object(fields, "structured", "structured", &id);
    if let Some(format) = fields.get_mut("format").and_then(Value::as_object_mut) {
        object(format, "schema", "format-schema", &id);
    }
    error(fields, &id);
}

fn error(fields: &mut Map, id: &str) {
    let Some(data) =
        fields.get_mut("error").and_then(|error| error.get_mut("data")).and_then(Value::as_object_mut)
    else {
        return;
    };
    data.retain(|key, _| {
        matches!(key.as_str(), "message" | "statusCode" | "isRetryable" | "providerID" | "retries")
    });
    text(data, "message", "error-message", id);
}

fn part(value: &mut Value) {
    let id = id(value);
    let Some(fields) = value.as_object_mut() else {
        *value = Value::Null;
        return;
    };
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let known: &[&str] = match kind.as_str() {
        "text" => &["text", "synthetic", "ignored", "time", "metadata"],
        "reasoning" => &["text", "time", "metadata"],
        "file" => &["mime", "filename", "url", "source"],
        "tool" => &["callID", "tool", "state", "metadata"],
        "step-start" | "snapshot" => &["snapshot"],
        "step-finish" => &["reason", "snapshot", "cost", "tokens"],
        "patch" => &["hash", "files"],
        "agent" => &["name", "source"],
        "subtask" => &["prompt", "description", "agent", "model", "command"],
        "retry" => &["attempt", "error", "time"],
        "compaction" => &["auto", "overflow", "tail_start_id"],
        _ => &[],
    };
    fields.retain(|key, _| {
        matches!(key.as_str(), "id" | "sessionID" | "messageID" | "type") || known.contains(&key.as_str())
    });
    let metadata = format!("{kind}-metadata");
    object(fields, "metadata", &metadata, &id);
    text(fields, "snapshot", "snapshot", &id);
    match kind.as_str() {
        "text" | "reasoning" => text(fields, "text", &kind, &id),
        "file" => file(fields, &id),
        "tool" => state(fields, &id),
        "patch" => {
            text(fields, "hash", "patch", &id);
            for (n, file) in
                fields.get_mut("files").and_then(Value::as_array_mut).into_iter().flatten().enumerate()
            {
                *file = mark("patch-file", &format!("{id}-{n}"));
            }
        }
        "agent" => {
            if let Some(source) = fields.get_mut("source").and_then(Value::as_object_mut) {
                text(source, "value", "agent-source", &id);
            }
        }
        "subtask" => {
            for key in ["prompt", "description", "command"] {
                text(fields, key, &format!("subtask-{key}"), &id);
            }
        }
        "retry" => error(fields, &id),
        _ => {}
    }
}

fn file(fields: &mut Map, id: &str) {
    text(fields, "filename", "file-name", id);
    text(fields, "url", "file-url", id);
    let Some(source) = fields.get_mut("source").and_then(Value::as_object_mut) else { return };
    for (key, kind) in
        [("path", "file-path"), ("name", "file-symbol"), ("clientName", "file-client"), ("uri", "file-uri")]
    {
        text(source, key, kind, id);
    }
    if let Some(place) = source.get_mut("text").and_then(Value::as_object_mut) {
        text(place, "value", "file-text", id);
    }
}

fn state(fields: &mut Map, part: &str) {
    let Some(state) = fields.get_mut("state").and_then(Value::as_object_mut) else { return };
    object(state, "input", "tool-input", part);
    object(state, "metadata", "tool-state-metadata", part);
    for key in ["raw", "output", "title", "error"] {
        text(state, key, &format!("tool-{key}"), part);
    }
    for attachment in state.get_mut("attachments").and_then(Value::as_array_mut).into_iter().flatten() {
        let id = id(attachment);
        if let Some(fields) = attachment.as_object_mut() {
            file(fields, &id);
        }
    }
}

fn diffs(summary: Option<&mut Value>, kind: &str) {
    let diffs = summary.and_then(|summary| summary.get_mut("diffs")).and_then(Value::as_array_mut);
    for (n, diff) in diffs.into_iter().flatten().enumerate() {
        if let Some(diff) = diff.as_object_mut() {
            text(diff, "file", &format!("{kind}-file"), &n.to_string());
            text(diff, "patch", &format!("{kind}-patch"), &n.to_string());
        }
    }
}

/// Replaces a text if it is present.
fn text(fields: &mut Map, key: &str, kind: &str, id: &str) {
    if let Some(value) = fields.get_mut(key).filter(|value| !value.is_null()) {
        *value = mark(kind, id);
    }
}

/// Replaces a value if it is present and not an empty object.
fn object(fields: &mut Map, key: &str, kind: &str, id: &str) {
    if let Some(value) = fields.get_mut(key)
        && value.as_object().is_none_or(|fields| !fields.is_empty())
    {
        *value = Map::from_iter([("redacted".to_owned(), format!("{kind}:{id}").into())]).into();
    }
}

fn mark(kind: &str, id: &str) -> Value {
    format!("[redacted:{kind}:{id}]").into()
}

fn id(value: &Value) -> String {
    value.get("id").and_then(Value::as_str).unwrap_or_default().to_owned()
}
