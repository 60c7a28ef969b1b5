//! Anthropic Messages: named events that open, fill and close numbered blocks.

use serde_json::{Value, json};

use super::{Block, Part, Wire, write_json};
use crate::request::{ToolResult, View, text_of};
use crate::script::{Finish, StreamError, Usage};

mod check;

pub(super) use check::{check, check_vertex};

/// The ends of Vertex AI's paths, for streamed and for whole answers.
const STREAMED: &str = ":streamRawPredict";
const WHOLE: &str = ":rawPredict";

/// Returns the model in a path of Vertex AI, and whether the path is for streams.
pub(super) fn vertex_model(path: &str) -> Option<(&str, bool)> {
    let (rest, last) = path.rsplit_once('/')?;
    if !rest.ends_with("/publishers/anthropic/models") {
        return None;
    }
    let streamed = last.strip_suffix(STREAMED).map(|model| (model, true));
    streamed.or_else(|| last.strip_suffix(WHOLE).map(|model| (model, false)))
}

/// Reads a body.
pub(super) fn view(body: &Value) -> View {
    let mut view = View { system: text_of(&body["system"]), ..View::default() };
    for message in body["messages"].as_array().into_iter().flatten() {
        let content = &message["content"];
        match message["role"].as_str().unwrap_or_default() {
            "user" => user(content, &mut view),
            "assistant" => view.round += 1,
            _ => {}
        }
    }
    let tools = body["tools"].as_array().into_iter().flatten();
    view.tools = tools.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect();
    view
}

/// Reads a user message. Tool results are user messages too, but not the user's text.
fn user(content: &Value, view: &mut View) {
    let Value::Array(blocks) = content else {
        view.users.push(text_of(content));
        view.round = 0;
        return;
    };
    let mut texts = Vec::new();
    for block in blocks {
        match block["type"].as_str().unwrap_or_default() {
            "text" => texts.push(text_of(block)),
            "tool_result" => view.results.push(ToolResult {
                id: block["tool_use_id"].as_str().unwrap_or_default().to_owned(),
                text: text_of(&block["content"]),
            }),
            _ => {}
        }
    }
    if !texts.is_empty() {
        view.users.push(texts.join("\n"));
        view.round = 0;
    }
}

/// Returns an error in the provider's format.
pub(super) fn error_body(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

/// Writes an answer.
pub(super) struct Anthropic {
    id: String,
    model: String,
    usage: Usage,
    index: usize,
}

impl Anthropic {
    pub(super) fn new(label: &str, model: &str, usage: Usage) -> Self {
        Self { id: format!("msg_mock_{label}"), model: model.to_owned(), usage, index: 0 }
    }

    /// Writes a delta of one string field without building a `Value`, because floods consist of
    /// these.
    fn text_delta(&self, out: &mut Vec<u8>, kind: &str, field: &str, piece: &str) {
        let head = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":";
        out.extend_from_slice(head.as_bytes());
        write_json(out, &self.index);
        out.extend_from_slice(b",\"delta\":{\"type\":\"");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\",\"");
        out.extend_from_slice(field.as_bytes());
        out.extend_from_slice(b"\":");
        write_json(out, piece);
        out.extend_from_slice(b"}}\n\n");
    }

    fn message(&self, content: &Value, stop: &Value, output: u64) -> Value {
        let usage = json!({
            "input_tokens": self.usage.input,
            "cache_creation_input_tokens": self.usage.cache_write,
            "cache_read_input_tokens": self.usage.cache_read,
            "output_tokens": output,
        });
        json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": null,
            "usage": usage,
        })
    }
}

impl Wire for Anthropic {
    fn begin(&mut self, out: &mut Vec<u8>) {
        let message = self.message(&json!([]), &Value::Null, 1);
        event(out, "message_start", &json!({"type": "message_start", "message": message}));
        event(out, "ping", &json!({"type": "ping"}));
    }

    fn open(&mut self, out: &mut Vec<u8>, block: Block<'_>) {
        let start = match block {
            Block::Text => json!({"type": "text", "text": ""}),
            Block::Reasoning { .. } => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Block::Tool { id, name, .. } => json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
        };
        let body = json!({"type": "content_block_start", "index": self.index, "content_block": start});
        event(out, "content_block_start", &body);
    }

    fn delta(&mut self, out: &mut Vec<u8>, block: Block<'_>, piece: &str) {
        let (kind, field) = match block {
            Block::Text => ("text_delta", "text"),
            Block::Reasoning { .. } => ("thinking_delta", "thinking"),
            Block::Tool { .. } => ("input_json_delta", "partial_json"),
        };
        self.text_delta(out, kind, field, piece);
    }

    fn close(&mut self, out: &mut Vec<u8>, block: Block<'_>) {
        match block {
            Block::Reasoning { signature, .. } => {
                self.text_delta(out, "signature_delta", "signature", signature);
            }
            Block::Text | Block::Tool { .. } => {}
        }
        event(out, "content_block_stop", &json!({"type": "content_block_stop", "index": self.index}));
        self.index += 1;
    }

    fn error(&mut self, out: &mut Vec<u8>, error: &StreamError) {
        let kind = error.kind.as_deref().unwrap_or("overloaded_error");
        event(out, "error", &error_body(kind, &error.message));
    }

    fn end(&mut self, out: &mut Vec<u8>, finish: &Finish) {
        let delta = json!({"stop_reason": word(finish), "stop_sequence": null});
        let usage = json!({"output_tokens": self.usage.output});
        event(out, "message_delta", &json!({"type": "message_delta", "delta": delta, "usage": usage}));
        event(out, "message_stop", &json!({"type": "message_stop"}));
    }

    fn whole(&self, parts: &[Part], finish: &Finish) -> Value {
        let block = |part: &Part| match part {
            Part::Text(text) => json!({"type": "text", "text": text}),
            Part::Reasoning { text, signature, .. } => {
                json!({"type": "thinking", "thinking": text, "signature": signature})
            }
            Part::Tool { id, name, args, .. } => {
                // Only a stream can contain arguments that are not JSON.
                let input = serde_json::from_str::<Value>(args).unwrap_or_else(|_| json!({}));
                json!({"type": "tool_use", "id": id, "name": name, "input": input})
            }
        };
        let content: Vec<_> = parts.iter().map(block).collect();
        self.message(&content.into(), &word(finish).into(), self.usage.output)
    }
}

fn event(out: &mut Vec<u8>, name: &str, body: &Value) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    write_json(out, body);
    out.extend_from_slice(b"\n\n");
}

fn word(finish: &Finish) -> &str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::Length => "max_tokens",
        Finish::Tool => "tool_use",
        Finish::ContentFilter => "refusal",
        Finish::Other(word) => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vertex_has_the_model_in_its_path() {
        let place = "/v1/projects/p/locations/global/publishers/anthropic/models";
        for (path, expected) in [
            (format!("{place}/claude-x@1:streamRawPredict"), Some(("claude-x@1", true))),
            (format!("{place}/claude-x@1:rawPredict"), Some(("claude-x@1", false))),
            (format!("{place}/claude-x@1"), None),
            ("/v1/models/claude-x:rawPredict".to_owned(), None),
        ] {
            assert_eq!(vertex_model(&path), expected, "{path}");
        }
    }
}
