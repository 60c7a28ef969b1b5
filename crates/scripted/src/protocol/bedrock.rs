//! Bedrock ConverseStream: binary frames with checksums. The path contains the model and whether to
//! stream.

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::{Block, Part, Wire, write_json};
use crate::request::{ToolResult, View, text_of};
use crate::script::{Finish, StreamError, Usage};

mod check;

pub(super) use check::check;

/// The content type of a stream.
pub(super) const STREAM_TYPE: &str = "application/vnd.amazon.eventstream";
const STREAMED: &str = "/converse-stream";
const WHOLE: &str = "/converse";
/// Real servers hide the length of a text with this field.
const PADDING: &str = "abcdefghijk";
/// The type of a header whose value is text.
const TEXT: u8 = 7;

/// Returns the model in a path and whether to stream, if the path belongs to this protocol.
pub(super) fn requested_model(path: &str) -> Option<(String, bool)> {
    let streamed = path.strip_suffix(STREAMED).map(|rest| (rest, true));
    let (rest, stream) = streamed.or_else(|| path.strip_suffix(WHOLE).map(|rest| (rest, false)))?;
    // The id is one segment, so a slash in it must be escaped.
    let (rest, model) = rest.rsplit_once('/')?;
    let model = percent_decode_str(model).decode_utf8().ok()?.into_owned();
    rest.ends_with("/model").then_some((model, stream))
}

/// Reads a body.
pub(super) fn view(body: &Value) -> View {
    let mut view = View { system: text_of(&body["system"]), ..View::default() };
    for message in body["messages"].as_array().into_iter().flatten() {
        match message["role"].as_str().unwrap_or_default() {
            "user" => user(&message["content"], &mut view),
            "assistant" => view.round += 1,
            _ => {}
        }
    }
    let tools = body["toolConfig"]["tools"].as_array().into_iter().flatten();
    let names = tools.filter_map(|tool| tool["toolSpec"]["name"].as_str());
    view.tools = names.map(str::to_owned).collect();
    view
}

/// Reads a user message. Tool results are user messages too, but not the user's text.
fn user(content: &Value, view: &mut View) {
    let mut texts = Vec::new();
    for block in content.as_array().into_iter().flatten() {
        let result = &block["toolResult"];
        if result.is_object() {
            view.results.push(ToolResult {
                id: result["toolUseId"].as_str().unwrap_or_default().to_owned(),
                text: text_of(&result["content"]),
            });
        } else if let Some(text) = block["text"].as_str() {
            texts.push(text);
        }
    }
    if !texts.is_empty() {
        view.users.push(texts.join("\n"));
        view.round = 0;
    }
}

/// Returns an error in the provider's format.
pub(super) fn error_body(_: &str, message: &str) -> Value {
    json!({"message": message})
}

/// Returns the headers of an error, which name its exception.
pub(super) fn error_headers(kind: &str) -> Vec<(String, String)> {
    vec![("x-amzn-errortype".to_owned(), exception(kind, Case::Upper))]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    /// In a header.
    Upper,
    /// In a frame.
    Lower,
}

/// Returns the name of an exception. Keeps a kind that is already one.
fn exception(kind: &str, case: Case) -> String {
    let name = match kind {
        "invalid_request_error" | "request_too_large" => "ValidationException",
        "authentication_error" => "UnrecognizedClientException",
        "permission_error" => "AccessDeniedException",
        "not_found_error" => "ResourceNotFoundException",
        "rate_limit_error" => "ThrottlingException",
        "overloaded_error" => "ServiceUnavailableException",
        name if name.ends_with("Exception") => name,
        _ => "InternalServerException",
    };
    match case {
        Case::Upper => name.to_owned(),
        Case::Lower => name[..1].to_ascii_lowercase() + &name[1..],
    }
}

/// Writes an answer.
pub(super) struct Bedrock {
    usage: Usage,
    index: usize,
}

impl Bedrock {
    pub(super) fn new(usage: Usage) -> Self {
        Self { usage, index: 0 }
    }

    fn counts(&self) -> Value {
        let Usage { input, output, cache_read, cache_write, reasoning: _ } = self.usage;
        let all = [input, output, cache_read, cache_write].into_iter().fold(0, u64::saturating_add);
        json!({
            "inputTokens": input,
            "outputTokens": output,
            "totalTokens": all,
            "cacheReadInputTokens": cache_read,
            "cacheWriteInputTokens": cache_write,
        })
    }

    /// Writes a delta of one string without building a `Value`, because floods consist of these.
    fn string_delta(&self, out: &mut Vec<u8>, before: &str, after: &str, piece: &str) {
        let mut payload = Vec::with_capacity(piece.len() + 96);
        payload.extend_from_slice(b"{\"contentBlockIndex\":");
        write_json(&mut payload, &self.index);
        payload.extend_from_slice(b",\"delta\":{");
        payload.extend_from_slice(before.as_bytes());
        write_json(&mut payload, piece);
        payload.extend_from_slice(after.as_bytes());
        payload.extend_from_slice(b"},\"p\":");
        write_json(&mut payload, PADDING);
        payload.push(b'}');
        frame(out, "event", "contentBlockDelta", &payload);
    }
}

impl Wire for Bedrock {
    fn begin(&mut self, out: &mut Vec<u8>) {
        event(out, "messageStart", &json!({"role": "assistant", "p": PADDING}));
    }

    fn open(&mut self, out: &mut Vec<u8>, block: Block<'_>) {
        // Only calls are announced.
        if let Block::Tool { id, name, .. } = block {
            let start = json!({"toolUse": {"toolUseId": id, "name": name}});
            let body = json!({"contentBlockIndex": self.index, "start": start, "p": PADDING});
            event(out, "contentBlockStart", &body);
        }
    }

    fn delta(&mut self, out: &mut Vec<u8>, block: Block<'_>, piece: &str) {
        let (before, after) = match block {
            Block::Text => ("\"text\":", ""),
            Block::Reasoning { .. } => ("\"reasoningContent\":{\"text\":", "}"),
            Block::Tool { .. } => ("\"toolUse\":{\"input\":", "}"),
        };
        self.string_delta(out, before, after, piece);
    }

    fn close(&mut self, out: &mut Vec<u8>, block: Block<'_>) {
        match block {
            Block::Reasoning { signature, .. } => {
                self.string_delta(out, "\"reasoningContent\":{\"signature\":", "}", signature);
            }
            Block::Text | Block::Tool { .. } => {}
        }
        event(out, "contentBlockStop", &json!({"contentBlockIndex": self.index, "p": PADDING}));
        self.index += 1;
    }

    fn error(&mut self, out: &mut Vec<u8>, error: &StreamError) {
        let name = exception(error.kind.as_deref().unwrap_or("overloaded_error"), Case::Lower);
        frame(out, "exception", &name, json!({"message": error.message}).to_string().as_bytes());
    }

    fn end(&mut self, out: &mut Vec<u8>, finish: &Finish) {
        event(out, "messageStop", &json!({"stopReason": word(finish), "p": PADDING}));
        let metrics = json!({"latencyMs": 1});
        event(out, "metadata", &json!({"usage": self.counts(), "metrics": metrics, "p": PADDING}));
    }

    fn whole(&self, parts: &[Part], finish: &Finish) -> Value {
        let block = |part: &Part| match part {
            Part::Text(text) => json!({"text": text}),
            Part::Reasoning { text, signature, .. } => {
                json!({"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}})
            }
            Part::Tool { id, name, args, .. } => {
                // Only a stream can contain arguments that are not JSON.
                let input = serde_json::from_str::<Value>(args).unwrap_or_else(|_| json!({}));
                json!({"toolUse": {"toolUseId": id, "name": name, "input": input}})
            }
        };
        let content: Vec<_> = parts.iter().map(block).collect();
        json!({
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": word(finish),
            "usage": self.counts(),
            "metrics": {"latencyMs": 1},
        })
    }
}

/// Returns one frame of Bedrock's stream: an `event` or `exception` with this name.
pub fn bedrock_frame(kind: &str, name: &str, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame(&mut out, kind, name, payload);
    out
}

fn event(out: &mut Vec<u8>, name: &str, body: &Value) {
    frame(out, "event", name, body.to_string().as_bytes());
}

/// Appends a frame: lengths and their checksum, headers, the payload, a checksum of everything.
fn frame(out: &mut Vec<u8>, kind: &str, name: &str, payload: &[u8]) {
    let begin = out.len();
    out.extend_from_slice(&[0; 12]);
    let name_header = if kind == "event" { ":event-type" } else { ":exception-type" };
    let headers = [(":message-type", kind), (name_header, name), (":content-type", "application/json")];
    for (header, value) in headers {
        let length = |text: &str| u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes();
        out.push(length(header)[1]);
        out.extend_from_slice(header.as_bytes());
        out.push(TEXT);
        out.extend_from_slice(&length(value));
        out.extend_from_slice(value.as_bytes());
    }
    let number = |size: usize| u32::try_from(size).unwrap_or(u32::MAX).to_be_bytes();
    let headers_bytes = out.len() - begin - 12;
    out.extend_from_slice(payload);
    let total = out.len() - begin + 4;
    out[begin..begin + 4].copy_from_slice(&number(total));
    out[begin + 4..begin + 8].copy_from_slice(&number(headers_bytes));
    let checksum = crc32fast::hash(&out[begin..begin + 8]).to_be_bytes();
    out[begin + 8..begin + 12].copy_from_slice(&checksum);
    let checksum = crc32fast::hash(&out[begin..]).to_be_bytes();
    out.extend_from_slice(&checksum);
}

fn word(finish: &Finish) -> &str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::Length => "max_tokens",
        Finish::Tool => "tool_use",
        Finish::ContentFilter => "content_filtered",
        Finish::Other(word) => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_contains_the_model_and_the_form() {
        let known = |model: &str, stream| Some((model.to_owned(), stream));
        for (path, expected) in [
            ("/model/us.anthropic.claude%3A0/converse-stream", known("us.anthropic.claude:0", true)),
            ("/model/arn%3Aaws%2Fx/converse", known("arn:aws/x", false)),
            ("/v1/converse", None),
            ("/model/a/b/converse", None),
            ("/model/a/invoke", None),
        ] {
            assert_eq!(requested_model(path), expected, "{path}");
        }
    }

    #[test]
    fn a_frame_is_the_one_of_the_specification() {
        // The lengths can be counted by hand, and the checksums match these bytes.
        let mut out = Vec::new();
        frame(&mut out, "event", "x", b"{}");
        let headers = ":message-type".len() + ":event-type".len() + ":content-type".len();
        let values = "event".len() + "x".len() + "application/json".len();
        let headers_bytes = headers + values + 3 * 4;
        assert_eq!(out.len(), 12 + headers_bytes + 2 + 4);
        assert_eq!(out[..4], u32::try_from(out.len()).unwrap().to_be_bytes());
        assert_eq!(out[4..8], u32::try_from(headers_bytes).unwrap().to_be_bytes());
        assert_eq!(out[8..12], crc32fast::hash(&out[..8]).to_be_bytes());
        assert_eq!(out[out.len() - 4..], crc32fast::hash(&out[..out.len() - 4]).to_be_bytes());
        assert_eq!(out[12..26], *b"\x0d:message-type");
        assert_eq!(out[26..34], *b"\x07\0\x05event");
    }

    #[test]
    fn an_error_has_the_name_of_an_exception() {
        assert_eq!(exception("rate_limit_error", Case::Lower), "throttlingException");
        assert_eq!(exception("ModelErrorException", Case::Upper), "ModelErrorException");
        assert_eq!(exception("whatever", Case::Lower), "internalServerException");
    }
}
