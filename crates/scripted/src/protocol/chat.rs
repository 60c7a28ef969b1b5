//! OpenAI Chat Completions: unnamed events of choice deltas, ended by `[DONE]`.

use serde_json::{Value, json};

use super::{Block, CREATED, Part, Wire, write_json};
use crate::request::{ToolResult, View, text_of};
use crate::script::{Finish, StreamError, Usage};

mod check;

pub(super) use check::check;

/// Reads a body.
pub(super) fn view(body: &Value) -> View {
    let mut view = View::default();
    let mut system = Vec::new();
    for message in body["messages"].as_array().into_iter().flatten() {
        let text = text_of(&message["content"]);
        match message["role"].as_str().unwrap_or_default() {
            "system" | "developer" => system.push(text),
            "user" => {
                view.users.push(text);
                view.round = 0;
            }
            "assistant" => view.round += 1,
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap_or_default().to_owned();
                view.results.push(ToolResult { id, text });
            }
            _ => {}
        }
    }
    view.system = system.join("\n");
    let tools = body["tools"].as_array().into_iter().flatten();
    view.tools = tools.filter_map(|tool| tool["function"]["name"].as_str().map(str::to_owned)).collect();
    view
}

/// Returns an error in the provider's format.
pub(super) fn error_body(kind: &str, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
}

/// Writes an answer.
pub(super) struct Chat {
    id: String,
    model: String,
    usage: Usage,
    /// The start of all streamed events, up to the delta.
    prefix: Vec<u8>,
    calls: usize,
}

impl Chat {
    pub(super) fn new(label: &str, model: &str, usage: Usage) -> Self {
        let id = format!("chatcmpl-mock-{label}");
        let mut prefix = b"data: ".to_vec();
        let head = json!({"id": id, "object": "chat.completion.chunk", "created": CREATED, "model": model});
        write_json(&mut prefix, &head);
        prefix.pop();
        prefix.extend_from_slice(b",\"choices\":[{\"index\":0,\"delta\":");
        Self { id, model: model.to_owned(), usage, prefix, calls: 0 }
    }

    fn chunk(&self, out: &mut Vec<u8>, delta: &Value, finish: &Value) {
        out.extend_from_slice(&self.prefix);
        write_json(out, delta);
        out.extend_from_slice(b",\"finish_reason\":");
        write_json(out, finish);
        out.extend_from_slice(b"}]}\n\n");
    }

    /// Writes a chunk of one string field without building a `Value`, because floods consist of
    /// these.
    fn text_chunk(&self, out: &mut Vec<u8>, field: &str, piece: &str) {
        out.extend_from_slice(&self.prefix);
        out.extend_from_slice(b"{\"");
        out.extend_from_slice(field.as_bytes());
        out.extend_from_slice(b"\":");
        write_json(out, piece);
        out.extend_from_slice(b"},\"finish_reason\":null}]}\n\n");
    }

    fn call_chunk(&self, out: &mut Vec<u8>, call: &Value) {
        self.chunk(out, &json!({"tool_calls": [call]}), &Value::Null);
    }

    fn usage(&self) -> Value {
        let Usage { input, output, cache_read, cache_write: _, reasoning } = self.usage;
        let prompt = input.saturating_add(cache_read);
        json!({
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "total_tokens": prompt.saturating_add(output),
            "prompt_tokens_details": {"cached_tokens": cache_read},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        })
    }
}

impl Wire for Chat {
    fn begin(&mut self, out: &mut Vec<u8>) {
        self.chunk(out, &json!({"role": "assistant", "content": ""}), &Value::Null);
    }

    fn open(&mut self, out: &mut Vec<u8>, block: Block<'_>) {
        match block {
            Block::Text | Block::Reasoning { .. } => {}
            Block::Tool { id, name, .. } => {
                let function = json!({"name": name, "arguments": ""});
                let call = json!({"index": self.calls, "id": id, "type": "function", "function": function});
                self.call_chunk(out, &call);
            }
        }
    }

    fn delta(&mut self, out: &mut Vec<u8>, block: Block<'_>, piece: &str) {
        match block {
            Block::Text => self.text_chunk(out, "content", piece),
            Block::Reasoning { .. } => self.text_chunk(out, "reasoning_content", piece),
            Block::Tool { .. } => {
                self.call_chunk(out, &json!({"index": self.calls, "function": {"arguments": piece}}));
            }
        }
    }

    fn close(&mut self, _: &mut Vec<u8>, block: Block<'_>) {
        match block {
            Block::Text | Block::Reasoning { .. } => {}
            Block::Tool { .. } => self.calls += 1,
        }
    }

    fn error(&mut self, out: &mut Vec<u8>, error: &StreamError) {
        let StreamError { kind, code, message } = error;
        out.extend_from_slice(b"data: ");
        write_json(out, &json!({"error": {"message": message, "type": kind, "code": code}}));
        out.extend_from_slice(b"\n\n");
    }

    fn end(&mut self, out: &mut Vec<u8>, finish: &Finish) {
        self.chunk(out, &json!({}), &Value::from(word(finish)));
        out.extend_from_slice(b"data: ");
        let last = json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": self.model,
            "choices": [],
            "usage": self.usage(),
        });
        write_json(out, &last);
        out.extend_from_slice(b"\n\ndata: [DONE]\n\n");
    }

    fn whole(&self, parts: &[Part], finish: &Finish) -> Value {
        let (mut content, mut thought, mut calls) = (String::new(), String::new(), Vec::new());
        for part in parts {
            match part {
                Part::Text(text) => content.push_str(text),
                Part::Reasoning { text, .. } => thought.push_str(text),
                Part::Tool { id, name, args, .. } => {
                    let function = json!({"name": name, "arguments": args});
                    calls.push(json!({"id": id, "type": "function", "function": function}));
                }
            }
        }
        let mut message = json!({"role": "assistant", "content": content});
        if !thought.is_empty() {
            message["reasoning_content"] = thought.into();
        }
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        json!({
            "id": self.id,
            "object": "chat.completion",
            "created": CREATED,
            "model": self.model,
            "choices": [{"index": 0, "message": message, "finish_reason": word(finish)}],
            "usage": self.usage(),
        })
    }
}

fn word(finish: &Finish) -> &str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::Tool => "tool_calls",
        Finish::ContentFilter => "content_filter",
        Finish::Other(word) => word,
    }
}
