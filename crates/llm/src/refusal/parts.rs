//! The parts of a body that can be left out.

use serde_json::Value;

use crate::Protocol;
use crate::protocol::gemini::request::NO_SIGNATURE;

/// The kind of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Picture,
    Document,
    Reasoning,
    Call,
    Result,
    Tool,
}

impl Kind {
    pub(super) fn is_file(self) -> bool {
        matches!(self, Self::Picture | Self::Document)
    }
}

/// A part of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// The JSON pointer to it.
    pub(super) pointer: String,
    pub(super) kind: Kind,
    /// The id of a call or of the call of a result, or the name of a tool.
    pub(super) name: String,
}

/// Returns all parts of a body in the order of their messages.
pub(super) fn parts(protocol: Protocol, body: &Value) -> Vec<Part> {
    let mut out = Vec::new();
    let (messages, content) = match protocol {
        Protocol::OpenAiResponses => ("/input", "content"),
        Protocol::Gemini => ("/contents", "parts"),
        Protocol::OpenAiChat | Protocol::Cohere | Protocol::Anthropic | Protocol::Bedrock => {
            ("/messages", "content")
        }
    };
    for (at, message) in list(body.pointer(messages)).enumerate() {
        let pointer = format!("{messages}/{at}");
        message_parts(&pointer, message, &mut out);
        blocks(&format!("{pointer}/{content}"), message.get(content), &mut out);
    }
    let tools = match protocol {
        Protocol::Bedrock => "/toolConfig/tools",
        Protocol::Gemini => "/tools/0/functionDeclarations",
        Protocol::OpenAiChat | Protocol::OpenAiResponses | Protocol::Cohere | Protocol::Anthropic => "/tools",
    };
    for (at, tool) in list(body.pointer(tools)).enumerate() {
        let names = ["/name", "/function/name", "/toolSpec/name"];
        let name = names.iter().find_map(|name| tool.pointer(name)?.as_str());
        let name = name.unwrap_or_default().to_owned();
        out.push(Part { pointer: format!("{tools}/{at}"), kind: Kind::Tool, name });
    }
    out
}

fn list(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flatten()
}

/// Adds what a message is or has besides its content.
fn message_parts(pointer: &str, message: &Value, out: &mut Vec<Part>) {
    let text = |name: &str| message[name].as_str().unwrap_or_default().to_owned();
    let mut add = |pointer: String, kind: Kind, name: String| out.push(Part { pointer, kind, name });
    match message["type"].as_str() {
        Some("reasoning") => add(pointer.to_owned(), Kind::Reasoning, String::new()),
        Some("function_call") => add(pointer.to_owned(), Kind::Call, text("call_id")),
        Some("function_call_output") => add(pointer.to_owned(), Kind::Result, text("call_id")),
        Some(_) | None => {}
    }
    if message["role"] == "tool" {
        add(pointer.to_owned(), Kind::Result, text("tool_call_id"));
    }
    for field in ["reasoning_content", "reasoning", "reasoning_details", "tool_plan"] {
        if !message[field].is_null() {
            add(format!("{pointer}/{field}"), Kind::Reasoning, String::new());
        }
    }
    for (at, call) in list(message.get("tool_calls")).enumerate() {
        let id = call["id"].as_str().unwrap_or_default().to_owned();
        add(format!("{pointer}/tool_calls/{at}"), Kind::Call, id);
    }
    blocks(&format!("{pointer}/output"), message.get("output"), out);
}

/// Adds the blocks of a content, and those in results.
fn blocks(pointer: &str, content: Option<&Value>, out: &mut Vec<Part>) {
    for (at, block) in list(content).enumerate() {
        let pointer = format!("{pointer}/{at}");
        if block["thoughtSignature"].as_str().is_some_and(|signature| signature != NO_SIGNATURE) {
            out.push(Part {
                pointer: format!("{pointer}/thoughtSignature"),
                kind: Kind::Reasoning,
                name: String::new(),
            });
        }
        let Some((kind, name)) = kind_of(block) else { continue };
        out.push(Part { pointer: pointer.clone(), kind, name });
        if kind == Kind::Result {
            blocks(&format!("{pointer}/content"), block.get("content"), out);
            blocks(&format!("{pointer}/toolResult/content"), block.pointer("/toolResult/content"), out);
            blocks(
                &format!("{pointer}/functionResponse/parts"),
                block.pointer("/functionResponse/parts"),
                out,
            );
        }
    }
}

fn kind_of(block: &Value) -> Option<(Kind, String)> {
    let id = |pointer: &str| block.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let plain = |kind: Kind| Some((kind, String::new()));
    if let Some(name) = block["type"].as_str() {
        return match name {
            "text" | "input_text" | "output_text" => plain(Kind::Text),
            "image" | "image_url" | "input_image" => plain(Kind::Picture),
            "document" | "file" | "input_file" | "input_audio" | "video_url" => plain(Kind::Document),
            "thinking" | "redacted_thinking" => plain(Kind::Reasoning),
            "tool_use" => Some((Kind::Call, id("/id"))),
            "tool_result" => Some((Kind::Result, id("/tool_use_id"))),
            _ => None,
        };
    }
    let mime = block.pointer("/inlineData/mimeType").or_else(|| block.pointer("/fileData/mimeType"));
    match () {
        () if block["thought"] == true || block.get("reasoningContent").is_some() => plain(Kind::Reasoning),
        () if block.get("toolUse").is_some() => Some((Kind::Call, id("/toolUse/toolUseId"))),
        () if block.get("toolResult").is_some() => Some((Kind::Result, id("/toolResult/toolUseId"))),
        () if block.get("functionCall").is_some() => Some((Kind::Call, id("/functionCall/name"))),
        () if block.get("functionResponse").is_some() => Some((Kind::Result, id("/functionResponse/name"))),
        () if block.get("image").is_some() => plain(Kind::Picture),
        () if block.get("document").is_some() => plain(Kind::Document),
        () if mime.and_then(Value::as_str).is_some_and(|mime| mime.starts_with("image/")) => {
            plain(Kind::Picture)
        }
        () if mime.is_some() => plain(Kind::Document),
        () if block.get("text").is_some() => plain(Kind::Text),
        () => None,
    }
}

/// Returns the results in a list of messages: the number of the message, the pointer, and the id of the call.
pub(super) fn parts_of_results(body: &Value, list_at: &str) -> Vec<(usize, String, String)> {
    let mut found = Vec::new();
    for (at, message) in list(body.pointer(list_at)).enumerate() {
        let mut out = Vec::new();
        message_parts(&format!("{list_at}/{at}"), message, &mut out);
        for content in ["content", "parts"] {
            blocks(&format!("{list_at}/{at}/{content}"), message.get(content), &mut out);
        }
        let results = out.into_iter().filter(|part| part.kind == Kind::Result);
        found.extend(results.map(|part| (at, part.pointer, part.name)));
    }
    found
}
