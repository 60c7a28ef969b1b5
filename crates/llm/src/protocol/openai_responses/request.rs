//! The body and the headers of a Responses request.
//!
//! The provider stores nothing: every request contains the whole conversation with encrypted
//! reasoning.

use serde_json::{Map, Value, json};

use crate::options::{join, merge};
use crate::protocol::openai_chat::request::{arguments, left_out, number, plain_text, tool_choice};
use crate::request::NO_OUTPUT;
use crate::{AssistantContent, File, FileData, Message, Model, Request, ToolResult, UserContent};

mod schema;

/// The name of this program at OpenAI.
const ORIGINATOR: &str = "codewright";
/// The start of the address of OpenAI's own servers.
const OPENAI: &str = "https://api.openai.com/";
/// Reasoning in a form that the provider can decrypt again.
const ENCRYPTED_THOUGHT: &str = "reasoning.encrypted_content";

/// Returns the headers that the protocol needs. The session's id lets its requests reach the same
/// cache.
pub(crate) fn headers(request: &Request, model: &Model) -> Vec<(&'static str, String)> {
    if !is_official(model) {
        return Vec::new();
    }
    let session = request.session().map(|id| ("session-id", id.to_owned()));
    [("originator", ORIGINATOR.to_owned())].into_iter().chain(session).collect()
}

/// Returns the body. The order of fields is fixed, so equal requests are equal bytes.
pub(crate) fn lower(request: &Request, model: &Model) -> Value {
    let options = nest(join(&model.options, &request.options, wire_name));
    let mut body = Map::new();
    body.insert("model".into(), json!(model.api_id));
    if model.is_codex() {
        body.insert("instructions".into(), json!(request.system));
    }
    body.insert("input".into(), Value::Array(input(request, model)));
    if accepts_sampling(model, &options) {
        if let Some(temperature) = request.temperature {
            body.insert("temperature".into(), number(temperature));
        }
        if let Some(top_p) = request.top_p {
            body.insert("top_p".into(), number(top_p));
        }
    }
    if request.max_output_tokens > 0 && !is_official(model) {
        body.insert("max_output_tokens".into(), json!(request.max_output_tokens));
    }
    body.insert("store".into(), json!(false));
    let is_stored = options.get("store").is_some_and(|store| *store == json!(true));
    if !is_stored && (is_reasoning_model(model) || model.capabilities.reasoning) {
        body.insert("include".into(), json!([ENCRYPTED_THOUGHT]));
    }
    // A request without tools is not part of a session's conversation, so it has no cache entry.
    if let Some(session) = request.session().filter(|_| !request.tools.is_empty()) {
        body.insert("prompt_cache_key".into(), json!(session));
    }
    merge(&mut body, options.clone());
    if !request.tools.is_empty() {
        body.insert("tools".into(), tools(request));
        body.insert("tool_choice".into(), json!(tool_choice(request.tool_choice)));
    }
    body.insert("stream".into(), json!(true));
    merge(&mut body, options);
    Value::Object(body)
}

fn is_official(model: &Model) -> bool {
    model.provider_id == "openai" || model.is_codex()
}

/// Returns whether a model reasons, by OpenAI's names. Such models have a `developer` role instead
/// of `system`.
fn is_reasoning_model(model: &Model) -> bool {
    let id = model.api_id.as_str();
    ["o1", "o3", "o4-mini", "gpt-5"].iter().any(|family| id.starts_with(family))
        && !id.starts_with("gpt-5-chat")
}

/// Returns whether a model accepts sampling settings. Reasoning models reject them, unless the
/// effort is `none`, which newer ones support.
fn accepts_sampling(model: &Model, options: &Map<String, Value>) -> bool {
    let effort = options.get("reasoning").and_then(|reasoning| reasoning.get("effort"));
    !is_reasoning_model(model)
        || (model.api_id.starts_with("gpt-5.") && effort.is_some_and(|effort| effort == "none"))
}

fn wire_name(name: &str) -> Option<&str> {
    Some(match name {
        "reasoningEffort" => "reasoning_effort",
        "reasoningSummary" => "reasoning_summary",
        "textVerbosity" => "verbosity",
        "promptCacheKey" => "prompt_cache_key",
        "promptCacheRetention" => "prompt_cache_retention",
        "safetyIdentifier" => "safety_identifier",
        "serviceTier" => "service_tier",
        "parallelToolCalls" => "parallel_tool_calls",
        "maxToolCalls" => "max_tool_calls",
        "maxOutputTokens" | "max_tokens" | "max_completion_tokens" => "max_output_tokens",
        "previousResponseId" => "previous_response_id",
        // Switches of the JavaScript library.
        "forceReasoning" | "strictJsonSchema" | "systemMessageMode" | "logprobs" => return None,
        name => name,
    })
}

/// Moves options into the objects of this protocol.
fn nest(mut options: Map<String, Value>) -> Map<String, Value> {
    for (flat, object, field) in [
        ("verbosity", "text", "verbosity"),
        ("reasoning_effort", "reasoning", "effort"),
        ("reasoning_summary", "reasoning", "summary"),
    ] {
        if let Some(value) = options.shift_remove(flat) {
            let inner = Map::from_iter([(field.to_owned(), value)]);
            let into = options.entry(object).or_insert_with(|| json!({}));
            match into.as_object_mut() {
                Some(into) => merge(into, inner),
                None => *into = Value::Object(inner),
            }
        }
    }
    options
}

fn tools(request: &Request) -> Value {
    let tool = |tool: &crate::ToolSpec| {
        json!({
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": schema::dialect(&tool.parameters),
            "strict": false,
        })
    };
    request.tools.iter().map(tool).collect()
}

fn input(request: &Request, model: &Model) -> Vec<Value> {
    let mut input = Vec::with_capacity(request.messages.len() + 1);
    if !model.is_codex() {
        let role = if is_reasoning_model(model) { "developer" } else { "system" };
        input.extend(request.system_pieces().map(|piece| json!({"role": role, "content": piece})));
    }
    for message in &request.messages {
        match message {
            Message::User(content) => input.extend(user(content, model)),
            Message::Assistant(content) => assistant(content, &mut input),
            Message::Tool(results) => input.extend(results.iter().map(|result| output(result, model))),
        }
    }
    if !is_reasoning_model(model) && !model.base_url.starts_with(OPENAI) {
        input = input.into_iter().map(with_type).collect();
    }
    input
}

/// Gives an answer its type. The servers of OpenAI and of its models need none, and llama.cpp's refuses an item without
/// it.
fn with_type(item: Value) -> Value {
    match item {
        Value::Object(fields) if fields.get("role").is_some_and(|role| role == "assistant") => {
            let kind = ("type".to_owned(), json!("message"));
            Value::Object([kind].into_iter().chain(fields).collect())
        }
        other => other,
    }
}

fn user(content: &[UserContent], model: &Model) -> Option<Value> {
    let part = |part: &UserContent| match part {
        UserContent::Text(text) => text_part(text),
        UserContent::File(file) => Some(file_part(file, model)),
    };
    let parts: Vec<Value> = content.iter().filter_map(part).collect();
    (!parts.is_empty()).then(|| json!({"role": "user", "content": parts}))
}

fn text_part(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({"type": "input_text", "text": text}))
}

fn file_part(file: &File, model: &Model) -> Value {
    let input = model.capabilities.input;
    let inline = match &file.data {
        FileData::Base64(data) => format!("data:{};base64,{data}", file.mime),
        FileData::Url(url) => url.clone(),
    };
    if file.mime.starts_with("image/") && input.image {
        return json!({"type": "input_image", "image_url": inline});
    }
    if file.mime == "application/pdf" && input.pdf {
        return match &file.data {
            FileData::Base64(_) => {
                let name = file.filename.as_deref().unwrap_or("file.pdf");
                json!({"type": "input_file", "filename": name, "file_data": inline})
            }
            FileData::Url(url) => json!({"type": "input_file", "file_url": url}),
        };
    }
    let text = match &file.data {
        FileData::Base64(data) if file.mime.starts_with("text/") => plain_text(data),
        FileData::Base64(_) | FileData::Url(_) => None,
    };
    let text = text.map_or_else(|| left_out(file)["text"].take(), Value::String);
    json!({"type": "input_text", "text": text})
}

/// Converts an assistant's message. Each part becomes an item.
fn assistant(content: &[AssistantContent], input: &mut Vec<Value>) {
    let is_thought = |part: &AssistantContent| {
        matches!(part, AssistantContent::Reasoning { .. } | AssistantContent::Metadata(_))
    };
    if content
        .iter()
        .all(|part| is_thought(part) || matches!(part, AssistantContent::Text(text) if text.is_empty()))
    {
        // The server rejects reasoning without a following item.
        return;
    }
    let start = input.len();
    let mut thinking: Option<Thought> = None;
    for part in content {
        if let AssistantContent::Reasoning { text, metadata } = part {
            let next = metadata.as_ref().and_then(Thought::of).map(|thought| thought.with_text(text));
            match (&mut thinking, next) {
                (Some(open), Some(next)) if open.id == next.id => open.join(next),
                (_, next) => {
                    input.extend(thinking.take().and_then(Thought::item));
                    thinking = next;
                }
            }
            continue;
        }
        input.extend(thinking.take().and_then(Thought::item));
        match part {
            AssistantContent::Text(text) if !text.is_empty() => {
                input.push(json!({"role": "assistant", "content": [{"type": "output_text", "text": text}]}));
            }
            AssistantContent::ToolCall { id, name, input: given } => input.push(
                json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments(given)}),
            ),
            // Only the provider that sent the metadata can use it.
            AssistantContent::Text(_)
            | AssistantContent::Reasoning { .. }
            | AssistantContent::Metadata(_) => {}
        }
    }
    // A thought at the end has no item that follows, so the server would reject it.
    while input.len() > start && input.last().is_some_and(|item| item["type"] == "reasoning") {
        input.pop();
    }
}

/// A reasoning item, assembled from its parts.
struct Thought {
    id: Option<String>,
    encrypted: Option<Value>,
    summary: Vec<Value>,
}

impl Thought {
    /// Returns the reasoning of this protocol. The server would reject reasoning of other
    /// protocols.
    fn of(metadata: &Value) -> Option<Self> {
        let mine = ["openai", "azure", "xai"].iter().find_map(|name| metadata.get(name))?;
        Some(Self {
            id: mine.get("itemId").and_then(Value::as_str).map(str::to_owned),
            encrypted: mine.get("reasoningEncryptedContent").filter(|text| text.is_string()).cloned(),
            summary: Vec::new(),
        })
    }

    fn with_text(mut self, text: &str) -> Self {
        if !text.is_empty() {
            self.summary.push(json!({"type": "summary_text", "text": text}));
        }
        self
    }

    fn join(&mut self, next: Self) {
        self.encrypted = next.encrypted.or(self.encrypted.take());
        self.summary.extend(next.summary);
    }

    /// Returns the item, unless it is not encrypted. Its id is not sent, because nothing is stored
    /// under it.
    fn item(self) -> Option<Value> {
        let encrypted = self.encrypted?;
        Some(json!({"type": "reasoning", "encrypted_content": encrypted, "summary": self.summary}))
    }
}

fn output(result: &ToolResult, model: &Model) -> Value {
    let output = if result.attachments.is_empty() {
        json!(if result.output.is_empty() { NO_OUTPUT } else { &result.output })
    } else {
        let files = result.attachments.iter().map(|file| file_part(file, model));
        text_part(&result.output).into_iter().chain(files).collect()
    };
    json!({"type": "function_call_output", "call_id": result.call_id, "output": output})
}

#[cfg(test)]
mod tests;
