//! OpenAI Responses: named, numbered events that open, fill and close output items.
//!
//! Content that was sent in pieces is repeated when its item is closed, and again when the answer
//! ends.

use serde_json::{Value, json};

use super::{Block, CREATED, Part, Wire, write_json};
use crate::flood::Flood;
use crate::request::{ToolResult, View, text_of};
use crate::script::{Finish, StreamError, Usage};

mod check;

pub(super) use check::check;

/// The encrypted content of reasoning that has just started. The finished item contains the final
/// one.
const FIRST_SEAL: &str = "YmVndW4=";

/// Reads a body.
pub(super) fn view(body: &Value) -> View {
    let mut view = View::default();
    let mut system = vec![text_of(&body["instructions"])];
    if let Value::String(text) = &body["input"] {
        view.users.push(text.clone());
    }
    // One answer of the model consists of several items.
    let mut is_answer = false;
    for item in body["input"].as_array().into_iter().flatten() {
        let kind = item["type"].as_str().unwrap_or("message");
        let of_model = match (kind, item["role"].as_str().unwrap_or_default()) {
            ("function_call_output" | "custom_tool_call_output", _) => {
                let id = item["call_id"].as_str().unwrap_or_default().to_owned();
                view.results.push(ToolResult { id, text: text_of(&item["output"]) });
                false
            }
            ("message", "system" | "developer") => {
                system.push(text_of(&item["content"]));
                false
            }
            ("message", "user") => {
                view.users.push(text_of(&item["content"]));
                view.round = 0;
                false
            }
            _ => true,
        };
        view.round += usize::from(of_model && !is_answer);
        is_answer = of_model;
    }
    system.retain(|text| !text.is_empty());
    view.system = system.join("\n");
    let tools = body["tools"].as_array().into_iter().flatten();
    view.tools = tools.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect();
    view
}

/// Returns an error in the provider's format.
pub(super) fn error_body(kind: &str, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
}

/// Writes an answer.
pub(super) struct Responses {
    label: String,
    model: String,
    usage: Usage,
    /// The number of the next event.
    sequence: usize,
    /// The number of the first event that filled the open item.
    opened: usize,
    /// The finished items.
    items: Vec<Value>,
    /// The content of the open item so far.
    text: String,
}

impl Responses {
    pub(super) fn new(label: &str, model: &str, usage: Usage) -> Self {
        Self {
            label: label.to_owned(),
            model: model.to_owned(),
            usage,
            sequence: 0,
            opened: 0,
            items: Vec::new(),
            text: String::new(),
        }
    }

    fn item_id(&self, block: Block<'_>, index: usize) -> String {
        let kind = match block {
            Block::Text => "msg",
            Block::Reasoning { .. } => "rs",
            Block::Tool { is_custom: false, .. } => "fc",
            Block::Tool { is_custom: true, .. } => "ctc",
        };
        format!("{kind}_mock_{}_{index}", self.label)
    }

    /// Writes an event. Its type and number come before the fields.
    fn event(&mut self, out: &mut Vec<u8>, kind: &str, fields: Value) {
        let mut body = json!({"type": kind, "sequence_number": self.sequence});
        if let (Value::Object(body), Value::Object(fields)) = (&mut body, fields) {
            body.extend(fields);
        }
        self.sequence += 1;
        out.extend_from_slice(b"event: ");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\ndata: ");
        write_json(out, &body);
        out.extend_from_slice(b"\n\n");
    }

    /// Writes an event of the open item. Its id and index come before the fields.
    fn item_event(&mut self, out: &mut Vec<u8>, block: Block<'_>, kind: &str, fields: Value) {
        let index = self.items.len();
        let mut all = json!({"item_id": self.item_id(block, index), "output_index": index});
        if let (Value::Object(all), Value::Object(fields)) = (&mut all, fields) {
            all.extend(fields);
        }
        self.event(out, kind, all);
    }

    fn response(&self, status: &str, output: &Value) -> Value {
        json!({
            "id": format!("resp_mock_{}", self.label),
            "object": "response",
            "created_at": CREATED,
            "status": status,
            "error": null,
            "incomplete_details": null,
            "model": self.model,
            "output": output,
            "parallel_tool_calls": true,
            "store": false,
            "usage": null,
        })
    }

    fn counts(&self) -> Value {
        let Usage { input, output, cache_read, cache_write: _, reasoning } = self.usage;
        let input = input.saturating_add(cache_read);
        json!({
            "input_tokens": input,
            "input_tokens_details": {"cached_tokens": cache_read},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": reasoning},
            "total_tokens": input.saturating_add(output),
        })
    }

    fn finished_response(&self, output: &Value, finish: &Finish) -> Value {
        let reason = incomplete(finish);
        let mut response = self.response(if reason.is_some() { "incomplete" } else { "completed" }, output);
        if let Some(reason) = reason {
            response["incomplete_details"] = json!({"reason": reason});
        }
        response["usage"] = self.counts();
        response
    }
}

impl Wire for Responses {
    fn begin(&mut self, out: &mut Vec<u8>) {
        let response = self.response("in_progress", &json!([]));
        self.event(out, "response.created", json!({"response": response}));
        self.event(out, "response.in_progress", json!({"response": response}));
    }

    fn open(&mut self, out: &mut Vec<u8>, block: Block<'_>) {
        self.text.clear();
        let index = self.items.len();
        let id = self.item_id(block, index);
        let item = match block {
            Block::Text => {
                json!({"id": id, "type": "message", "status": "in_progress", "role": "assistant", "content": []})
            }
            Block::Reasoning { .. } => {
                json!({"id": id, "type": "reasoning", "summary": [], "encrypted_content": FIRST_SEAL})
            }
            Block::Tool { .. } => item(&id, block, "", "in_progress"),
        };
        self.event(out, "response.output_item.added", json!({"output_index": index, "item": item}));
        if matches!(block, Block::Text) {
            let fields = json!({"content_index": 0, "part": output_text("")});
            self.item_event(out, block, "response.content_part.added", fields);
        }
        self.opened = self.sequence;
    }

    fn delta(&mut self, out: &mut Vec<u8>, block: Block<'_>, piece: &str) {
        // Empty reasoning has no part.
        if matches!(block, Block::Reasoning { .. }) && self.text.is_empty() {
            if piece.is_empty() {
                return;
            }
            let fields = json!({"summary_index": 0, "part": summary_text("")});
            self.item_event(out, block, "response.reasoning_summary_part.added", fields);
        }
        self.text.push_str(piece);
        let (kind, place) = match block {
            Block::Text => ("response.output_text.delta", ",\"content_index\":0"),
            Block::Reasoning { .. } => ("response.reasoning_summary_text.delta", ",\"summary_index\":0"),
            Block::Tool { is_custom: false, .. } => ("response.function_call_arguments.delta", ""),
            Block::Tool { is_custom: true, .. } => ("response.custom_tool_call_input.delta", ""),
        };
        // Written without building a `Value`, because floods consist of these.
        let index = self.items.len();
        let id = self.item_id(block, index);
        let sequence = self.sequence;
        let head = format!(
            "event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":{sequence},\"output_index\":{index}{place},\"item_id\":\"{id}\",\"delta\":"
        );
        out.extend_from_slice(head.as_bytes());
        write_json(out, piece);
        out.extend_from_slice(b"}\n\n");
        self.sequence += 1;
    }

    fn after_flood(&mut self, flood: Flood) {
        self.text = flood.text();
        // The sample that identifies cached floods uses one more number.
        self.sequence = self.opened + 1 + flood.clamped().deltas;
    }

    fn close(&mut self, out: &mut Vec<u8>, block: Block<'_>) {
        let text = std::mem::take(&mut self.text);
        match block {
            Block::Text => {
                let fields = json!({"content_index": 0, "text": text});
                self.item_event(out, block, "response.output_text.done", fields);
                let fields = json!({"content_index": 0, "part": output_text(&text)});
                self.item_event(out, block, "response.content_part.done", fields);
            }
            Block::Reasoning { .. } if text.is_empty() => {}
            Block::Reasoning { .. } => {
                let fields = json!({"summary_index": 0, "text": text});
                self.item_event(out, block, "response.reasoning_summary_text.done", fields);
                let fields = json!({"summary_index": 0, "part": summary_text(&text)});
                self.item_event(out, block, "response.reasoning_summary_part.done", fields);
            }
            Block::Tool { is_custom: false, .. } => {
                let fields = json!({"arguments": text});
                self.item_event(out, block, "response.function_call_arguments.done", fields);
            }
            Block::Tool { is_custom: true, .. } => {
                let fields = json!({"input": text});
                self.item_event(out, block, "response.custom_tool_call_input.done", fields);
            }
        }
        let index = self.items.len();
        let item = item(&self.item_id(block, index), block, &text, "completed");
        self.event(out, "response.output_item.done", json!({"output_index": index, "item": item}));
        self.items.push(item);
    }

    /// Writes an error with a type as a separate event, and one with only a code as part of the
    /// response.
    fn error(&mut self, out: &mut Vec<u8>, error: &StreamError) {
        let StreamError { kind, code, message } = error;
        if let Some(kind) = kind {
            let error = json!({"type": kind, "code": code, "message": message, "param": null});
            return self.event(out, "error", json!({"error": error}));
        }
        let mut response = self.response("failed", &json!([]));
        let code = code.clone().unwrap_or_else(|| json!("server_error"));
        response["error"] = json!({"code": code, "message": message});
        self.event(out, "response.failed", json!({"response": response}));
    }

    fn end(&mut self, out: &mut Vec<u8>, finish: &Finish) {
        let output = Value::Array(std::mem::take(&mut self.items));
        let response = self.finished_response(&output, finish);
        let kind = format!("response.{}", response["status"].as_str().unwrap_or_default());
        self.event(out, &kind, json!({"response": response}));
    }

    fn whole(&self, parts: &[Part], finish: &Finish) -> Value {
        let one = |(index, part): (usize, &Part)| {
            let (block, text) = match part {
                Part::Text(text) => (Block::Text, text),
                Part::Reasoning { text, signature, encrypted } => {
                    (Block::Reasoning { signature, encrypted }, text)
                }
                Part::Tool { id, name, args, is_custom } => {
                    (Block::Tool { id, name, is_custom: *is_custom }, args)
                }
            };
            item(&self.item_id(block, index), block, text, "completed")
        };
        self.finished_response(&parts.iter().enumerate().map(one).collect(), finish)
    }
}

/// Returns an item with this content.
fn item(id: &str, block: Block<'_>, text: &str, status: &str) -> Value {
    match block {
        Block::Text => json!({
            "id": id, "type": "message", "status": status, "role": "assistant", "content": [output_text(text)],
        }),
        Block::Reasoning { encrypted, .. } => {
            let summary: Vec<_> =
                Some(text).filter(|text| !text.is_empty()).map(summary_text).into_iter().collect();
            json!({"id": id, "type": "reasoning", "summary": summary, "encrypted_content": encrypted})
        }
        Block::Tool { id: call, name, is_custom: false } => json!({
            "id": id, "type": "function_call", "status": status, "call_id": call, "name": name, "arguments": text,
        }),
        Block::Tool { id: call, name, is_custom: true } => json!({
            "id": id, "type": "custom_tool_call", "status": status, "call_id": call, "name": name, "input": text,
        }),
    }
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

fn summary_text(text: &str) -> Value {
    json!({"type": "summary_text", "text": text})
}

/// Returns why the answer is incomplete, if it is.
fn incomplete(finish: &Finish) -> Option<&str> {
    match finish {
        Finish::Stop | Finish::Tool => None,
        Finish::Length => Some("max_output_tokens"),
        Finish::ContentFilter => Some("content_filter"),
        Finish::Other(word) => Some(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_items_of_one_answer_are_one_round() {
        let body = json!({
            "instructions": "Be good.",
            "tools": [{"type": "function", "name": "read"}],
            "input": [
                {"role": "developer", "content": "Be brief."},
                {"role": "user", "content": [{"type": "input_text", "text": "Look"}]},
                {"type": "reasoning", "summary": [], "encrypted_content": "x"},
                {"role": "assistant", "content": [{"type": "output_text", "text": "Looking."}]},
                {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "one"}]},
                {"type": "function_call", "call_id": "b", "name": "read", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "b", "output": "two"},
            ],
        });
        let view = view(&body);
        assert_eq!((view.system.as_str(), view.round), ("Be good.\nBe brief.", 2));
        assert_eq!((view.users, view.tools), (vec!["Look".to_owned()], vec!["read".to_owned()]));
        let results: Vec<_> = view.results.iter().map(|result| (&*result.id, &*result.text)).collect();
        assert_eq!(results, [("a", "one"), ("b", "two")]);
    }
}
