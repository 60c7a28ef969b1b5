//! Gemini: unnamed events of complete parts. The path contains the model and whether to stream.

use serde_json::{Value, json};

use super::{Block, Part, Wire, write_json};
use crate::request::{ToolResult, View, text_of};
use crate::script::{Finish, StreamError, Usage};

mod check;

pub(super) use check::check;

/// The signature of calls.
const SIGNATURE: &str = "c2lnbmF0dXJl";
const STREAMED: &str = ":streamGenerateContent";
const WHOLE: &str = ":generateContent";

/// Returns the model in a path and whether to stream, if the path belongs to this protocol.
pub(super) fn requested_model(path: &str) -> Option<(&str, bool)> {
    let last = path.rsplit('/').next()?;
    let streamed = last.strip_suffix(STREAMED).map(|model| (model, true));
    streamed.or_else(|| last.strip_suffix(WHOLE).map(|model| (model, false)))
}

/// Reads a body.
pub(super) fn view(body: &Value) -> View {
    let mut view = View { system: text_of(&body["systemInstruction"]), ..View::default() };
    for content in body["contents"].as_array().into_iter().flatten() {
        match content["role"].as_str().unwrap_or_default() {
            "user" => user(&content["parts"], &mut view),
            "model" => view.round += 1,
            _ => {}
        }
    }
    let tools = body["tools"].as_array().into_iter().flatten();
    let declarations = tools.flat_map(|tool| tool["functionDeclarations"].as_array().into_iter().flatten());
    view.tools = declarations.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect();
    view
}

/// Reads user parts. Results of calls have the user's role too, but are not the user's text. They
/// have names and no ids.
fn user(parts: &Value, view: &mut View) {
    let mut texts = Vec::new();
    for part in parts.as_array().into_iter().flatten() {
        let response = &part["functionResponse"];
        if response.is_object() {
            view.results.push(ToolResult {
                id: response["name"].as_str().unwrap_or_default().to_owned(),
                text: text_of(&response["response"]),
            });
        } else if part["text"].is_string() {
            texts.push(text_of(part));
        }
    }
    if !texts.is_empty() {
        view.users.push(texts.join("\n"));
        view.round = 0;
    }
}

/// Returns an error in the provider's format.
pub(super) fn error_body(kind: &str, message: &str) -> Value {
    let (code, status) = match kind {
        "invalid_request_error" => (400, "INVALID_ARGUMENT"),
        "authentication_error" => (401, "UNAUTHENTICATED"),
        "permission_error" => (403, "PERMISSION_DENIED"),
        "not_found_error" => (404, "NOT_FOUND"),
        "request_too_large" => (413, "INVALID_ARGUMENT"),
        "rate_limit_error" => (429, "RESOURCE_EXHAUSTED"),
        "overloaded_error" => (503, "UNAVAILABLE"),
        _ => (500, "INTERNAL"),
    };
    json!({"error": {"code": code, "message": message, "status": status}})
}

/// Writes an answer.
pub(super) struct Gemini {
    id: String,
    model: String,
    usage: Usage,
    /// The arguments of the open call, which are sent as a whole.
    args: String,
}

impl Gemini {
    pub(super) fn new(label: &str, model: &str, usage: Usage) -> Self {
        Self { id: format!("mock-{label}"), model: model.to_owned(), usage, args: String::new() }
    }

    fn counts(&self) -> Value {
        let Usage { input, output, cache_read, cache_write: _, reasoning } = self.usage;
        let prompt = input.saturating_add(cache_read);
        json!({
            "promptTokenCount": prompt,
            "cachedContentTokenCount": cache_read,
            "candidatesTokenCount": output.saturating_sub(reasoning),
            "thoughtsTokenCount": reasoning,
            "totalTokenCount": prompt.saturating_add(output),
        })
    }

    fn answer(&self, parts: &Value, finish: &Finish) -> Value {
        json!({
            "candidates": [
                {"content": {"parts": parts, "role": "model"}, "finishReason": word(finish), "index": 0}
            ],
            "usageMetadata": self.counts(),
            "modelVersion": self.model,
            "responseId": self.id,
        })
    }
}

impl Wire for Gemini {
    fn begin(&mut self, _: &mut Vec<u8>) {}

    fn open(&mut self, _: &mut Vec<u8>, _: Block<'_>) {
        self.args.clear();
    }

    fn delta(&mut self, out: &mut Vec<u8>, block: Block<'_>, piece: &str) {
        // Written without building a `Value`, because floods consist of these.
        let end: &[u8] = match block {
            Block::Text => b"}],\"role\":\"model\"},\"index\":0}]}\n\n",
            Block::Reasoning { .. } => b",\"thought\":true}],\"role\":\"model\"},\"index\":0}]}\n\n",
            Block::Tool { .. } => return self.args.push_str(piece),
        };
        out.extend_from_slice(b"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":");
        write_json(out, piece);
        out.extend_from_slice(end);
    }

    fn close(&mut self, out: &mut Vec<u8>, block: Block<'_>) {
        match block {
            Block::Text | Block::Reasoning { .. } => {}
            Block::Tool { name, .. } => {
                let content = json!({"parts": [call(name, &self.args)], "role": "model"});
                event(out, &json!({"candidates": [{"content": content, "index": 0}]}));
            }
        }
    }

    fn error(&mut self, out: &mut Vec<u8>, error: &StreamError) {
        event(out, &error_body(error.kind.as_deref().unwrap_or("api_error"), &error.message));
    }

    fn end(&mut self, out: &mut Vec<u8>, finish: &Finish) {
        event(out, &self.answer(&json!([{"text": ""}]), finish));
    }

    fn whole(&self, parts: &[Part], finish: &Finish) -> Value {
        let part = |part: &Part| match part {
            Part::Text(text) => json!({"text": text}),
            Part::Reasoning { text, .. } => json!({"text": text, "thought": true}),
            Part::Tool { name, args, .. } => call(name, args),
        };
        self.answer(&parts.iter().map(part).collect(), finish)
    }
}

fn call(name: &str, args: &str) -> Value {
    // This protocol cannot send arguments that are not JSON.
    let args = serde_json::from_str::<Value>(args).ok().filter(Value::is_object);
    let call = json!({"name": name, "args": args.unwrap_or_else(|| json!({}))});
    json!({"functionCall": call, "thoughtSignature": SIGNATURE})
}

fn event(out: &mut Vec<u8>, body: &Value) {
    out.extend_from_slice(b"data: ");
    write_json(out, body);
    out.extend_from_slice(b"\n\n");
}

fn word(finish: &Finish) -> &str {
    match finish {
        Finish::Stop | Finish::Tool => "STOP",
        Finish::Length => "MAX_TOKENS",
        Finish::ContentFilter => "SAFETY",
        Finish::Other(word) => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_contains_the_model_and_the_form() {
        for (path, expected) in [
            ("/v1beta/models/gemini-2.5-pro:streamGenerateContent", Some(("gemini-2.5-pro", true))),
            ("/v1beta/models/gemini-2.5-pro:generateContent", Some(("gemini-2.5-pro", false))),
            ("/v1beta/models/gemini-2.5-pro", None),
        ] {
            assert_eq!(requested_model(path), expected, "{path}");
        }
    }
}
