//! Cohere Chat, version 2: named events; blocks and calls are numbered separately.

use serde_json::{Value, json};

use super::{Block, Part, Wire, write_json};
use crate::request::{ToolResult, View, text_of};
use crate::script::{Finish, StreamError, Usage};

mod check;

pub(super) use check::check;

/// Reads a body.
pub(super) fn view(body: &Value) -> View {
    let mut view = View::default();
    let mut system = Vec::new();
    for message in body["messages"].as_array().into_iter().flatten() {
        let content = text_of(&message["content"]);
        match message["role"].as_str().unwrap_or_default() {
            "system" => system.push(content),
            "user" => {
                view.users.push(content);
                view.round = 0;
            }
            "assistant" => view.round += 1,
            "tool" => view.results.push(ToolResult {
                id: message["tool_call_id"].as_str().unwrap_or_default().to_owned(),
                text: content,
            }),
            _ => {}
        }
    }
    view.system = system.join("\n");
    let tools = body["tools"].as_array().into_iter().flatten();
    view.tools = tools.filter_map(|tool| tool["function"]["name"].as_str().map(str::to_owned)).collect();
    view
}

/// Returns an error in the provider's format.
pub(super) fn error_body(_: &str, message: &str) -> Value {
    json!({"id": "mock-error", "message": message})
}

/// Writes an answer.
pub(super) struct Cohere {
    id: String,
    usage: Usage,
    contents: usize,
    calls: usize,
}

impl Cohere {
    pub(super) fn new(label: &str, usage: Usage) -> Self {
        Self { id: format!("mock-{label}"), usage, contents: 0, calls: 0 }
    }

    fn counts(&self) -> Value {
        let Usage { input, output, cache_read, cache_write: _, reasoning: _ } = self.usage;
        let seen = input.saturating_add(cache_read);
        // The provider sends numbers with fractions.
        json!({
            "billed_units": {"input_tokens": input as f64, "output_tokens": output as f64},
            "tokens": {"input_tokens": seen as f64, "output_tokens": output as f64},
            "cached_tokens": cache_read as f64,
        })
    }

    /// Writes a delta of one string without building a `Value`, because floods consist of these.
    fn string_delta(&self, out: &mut Vec<u8>, field: &str, piece: &str) {
        out.extend_from_slice(b"event: content-delta\ndata: {\"type\":\"content-delta\",\"index\":");
        write_json(out, &self.contents);
        out.extend_from_slice(b",\"delta\":{\"message\":{\"content\":{\"");
        out.extend_from_slice(field.as_bytes());
        out.extend_from_slice(b"\":");
        write_json(out, piece);
        out.extend_from_slice(b"}}}}\n\n");
    }
}

impl Wire for Cohere {
    fn begin(&mut self, out: &mut Vec<u8>) {
        let message =
            json!({"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []});
        let body = json!({"id": self.id, "type": "message-start", "delta": {"message": message}});
        event(out, "message-start", &body);
    }

    fn open(&mut self, out: &mut Vec<u8>, block: Block<'_>) {
        let (name, index, message) = match block {
            Block::Text => ("content-start", self.contents, json!({"content": {"type": "text", "text": ""}})),
            Block::Reasoning { .. } => {
                ("content-start", self.contents, json!({"content": {"type": "thinking", "thinking": ""}}))
            }
            Block::Tool { id, name, .. } => {
                let function = json!({"name": name, "arguments": ""});
                let call = json!({"id": id, "type": "function", "function": function});
                ("tool-call-start", self.calls, json!({"tool_calls": call}))
            }
        };
        event(out, name, &json!({"type": name, "index": index, "delta": {"message": message}}));
    }

    fn delta(&mut self, out: &mut Vec<u8>, block: Block<'_>, piece: &str) {
        match block {
            Block::Text => self.string_delta(out, "text", piece),
            Block::Reasoning { .. } => self.string_delta(out, "thinking", piece),
            Block::Tool { .. } => {
                let message = json!({"tool_calls": {"function": {"arguments": piece}}});
                let delta = json!({"message": message});
                let body = json!({"type": "tool-call-delta", "index": self.calls, "delta": delta});
                event(out, "tool-call-delta", &body);
            }
        }
    }

    fn close(&mut self, out: &mut Vec<u8>, block: Block<'_>) {
        let (name, index) = match block {
            Block::Text | Block::Reasoning { .. } => ("content-end", &mut self.contents),
            Block::Tool { .. } => ("tool-call-end", &mut self.calls),
        };
        event(out, name, &json!({"type": name, "index": *index}));
        *index += 1;
    }

    fn error(&mut self, out: &mut Vec<u8>, error: &StreamError) {
        // The provider reports errors as a reason to stop.
        let delta = json!({"finish_reason": "ERROR", "error": error.message, "usage": self.counts()});
        event(out, "message-end", &json!({"id": self.id, "type": "message-end", "delta": delta}));
    }

    fn end(&mut self, out: &mut Vec<u8>, finish: &Finish) {
        let delta = json!({"finish_reason": word(finish), "usage": self.counts()});
        event(out, "message-end", &json!({"id": self.id, "type": "message-end", "delta": delta}));
    }

    fn whole(&self, parts: &[Part], finish: &Finish) -> Value {
        let (mut content, mut calls) = (Vec::new(), Vec::new());
        for part in parts {
            match part {
                Part::Text(text) => content.push(json!({"type": "text", "text": text})),
                Part::Reasoning { text, .. } => content.push(json!({"type": "thinking", "thinking": text})),
                Part::Tool { id, name, args, .. } => {
                    let function = json!({"name": name, "arguments": args});
                    calls.push(json!({"id": id, "type": "function", "function": function}));
                }
            }
        }
        json!({
            "id": self.id,
            "message": {"role": "assistant", "content": content, "tool_calls": calls},
            "finish_reason": word(finish),
            "usage": self.counts(),
        })
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
        Finish::Stop => "COMPLETE",
        Finish::Length => "MAX_TOKENS",
        Finish::Tool => "TOOL_CALL",
        Finish::ContentFilter => "ERROR_TOXIC",
        Finish::Other(word) => word,
    }
}
