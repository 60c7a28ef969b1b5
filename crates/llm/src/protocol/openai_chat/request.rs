//! The body of a chat completion request.

use base64::Engine as _;
use serde_json::{Map, Value, json};

use super::rules::wants_reasoning;
use crate::options::{join, merge};
use crate::quirk;
use crate::request::NO_OUTPUT;
use crate::{
    AssistantContent, File, FileData, Message, Model, Quirk, Request, ToolChoice, ToolResult, UserContent,
};

/// Clients match on this line, so its text must not change.
pub(crate) const MEDIA_LEAD_IN: &str = "Attached media from tool result:";

/// The field for the details of reasoning, such as signatures.
const DETAILS: &str = "reasoning_details";

/// Returns the body. The order of fields is fixed, so equal requests are equal bytes.
pub(crate) fn lower(request: &Request, model: &Model) -> Value {
    let options = join(&model.options, &request.options, wire_name);
    let mut body = Map::new();
    body.insert("model".into(), json!(model.api_id));
    if request.max_output_tokens > 0 {
        body.insert(limit_field(model).into(), json!(request.max_output_tokens));
    }
    if let Some(temperature) = request.temperature {
        body.insert("temperature".into(), number(temperature));
    }
    if let Some(top_p) = request.top_p {
        body.insert("top_p".into(), number(top_p));
    }
    // Options come before the conversation, so that all settings are together. They are merged
    // again at the end, because they win over the other fields.
    merge(&mut body, options.clone());
    body.insert("messages".into(), Value::Array(messages(request, model)));
    if !request.tools.is_empty() {
        body.insert("tools".into(), tools(request));
        body.insert("tool_choice".into(), json!(tool_choice(request.tool_choice)));
    }
    body.insert("stream".into(), json!(true));
    body.insert("stream_options".into(), json!({"include_usage": true}));
    if needs_cache_key(model, request)
        && let Some(session) = request.session()
    {
        body.insert("prompt_cache_key".into(), json!(session));
    }
    merge(&mut body, options);
    quirk::body(&model.quirks, Value::Object(body))
}

/// Returns whether to send a cache key. The user must enable it, because not all compatible servers
/// support it.
fn needs_cache_key(model: &Model, request: &Request) -> bool {
    let setting = request.options.get("setCacheKey").or_else(|| model.options.get("setCacheKey"));
    setting == Some(&Value::Bool(true))
}

/// Returns the name of the output limit. OpenAI's reasoning models reject the older name, and most
/// imitations support only that.
fn limit_field(model: &Model) -> &'static str {
    if model.base_url.starts_with("https://api.openai.com/")
        || model.base_url.ends_with("/proxy/openai/v1")
        || model.base_url.contains(".snowflakecomputing.com/")
    {
        "max_completion_tokens"
    } else {
        "max_tokens"
    }
}

/// Writes whole numbers without a fraction, like JavaScript.
pub(crate) fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e15 { json!(value as i64) } else { json!(value) }
}

fn wire_name(name: &str) -> Option<&str> {
    Some(match name {
        "reasoningEffort" => "reasoning_effort",
        "textVerbosity" => "verbosity",
        "promptCacheKey" => "prompt_cache_key",
        "promptCacheRetention" => "prompt_cache_retention",
        "safetyIdentifier" => "safety_identifier",
        "serviceTier" => "service_tier",
        "parallelToolCalls" => "parallel_tool_calls",
        "logitBias" => "logit_bias",
        "maxCompletionTokens" => "max_completion_tokens",
        // Only the Responses protocol and the JavaScript library have these.
        "reasoningSummary" | "include" | "forceReasoning" | "strictJsonSchema" => return None,
        name => name,
    })
}

fn tools(request: &Request) -> Value {
    let tool = |tool: &crate::ToolSpec| {
        json!({
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            },
        })
    };
    request.tools.iter().map(tool).collect()
}

/// Returns the name of a tool choice, for this protocol and for Responses.
pub(crate) fn tool_choice(choice: ToolChoice) -> &'static str {
    match choice {
        ToolChoice::Auto => "auto",
        ToolChoice::Required => "required",
        ToolChoice::None => "none",
    }
}

fn messages(request: &Request, model: &Model) -> Vec<Value> {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    messages.extend(request.system_pieces().map(|piece| json!({"role": "system", "content": piece})));
    for message in &request.messages {
        match message {
            Message::User(content) => messages.extend(user(content, model)),
            Message::Assistant(content) => messages.extend(assistant(content, model)),
            Message::Tool(results) => {
                messages.extend(results.iter().map(tool_result));
                messages.extend(media(results, model));
            }
        }
    }
    messages
}

fn user(content: &[UserContent], model: &Model) -> Option<Value> {
    let mut parts: Vec<Value> = content.iter().filter_map(|part| user_part(part, model)).collect();
    let lone_text = match parts.as_mut_slice() {
        [] => return None,
        [part] => part.get_mut("text").map(Value::take),
        _ => None,
    };
    Some(json!({"role": "user", "content": lone_text.unwrap_or(Value::Array(parts))}))
}

fn user_part(part: &UserContent, model: &Model) -> Option<Value> {
    match part {
        UserContent::Text(text) if text.is_empty() => None,
        UserContent::Text(text) => Some(json!({"type": "text", "text": text})),
        UserContent::File(file) => Some(file_part(file, model)),
    }
}

fn file_part(file: &File, model: &Model) -> Value {
    let input = model.capabilities.input;
    let name = file.filename.as_deref().unwrap_or("file");
    let url = match &file.data {
        FileData::Base64(data) => format!("data:{};base64,{data}", file.mime),
        FileData::Url(url) => url.clone(),
    };
    let kind = file.mime.split('/').next().unwrap_or_default();
    match (kind, &file.data) {
        ("image", _) if input.image => json!({"type": "image_url", "image_url": {"url": url}}),
        ("video", _) if input.video => json!({"type": "video_url", "video_url": {"url": url}}),
        ("audio", FileData::Base64(data)) if input.audio => {
            let format = match file.mime.as_str() {
                "audio/mpeg" | "audio/mp3" => "mp3",
                mime => mime.trim_start_matches("audio/").trim_start_matches("x-"),
            };
            json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
        }
        _ if file.mime == "application/pdf" && input.pdf => {
            json!({"type": "file", "file": {"filename": name, "file_data": url}})
        }
        ("text", FileData::Base64(data)) => match plain_text(data) {
            Some(text) => json!({"type": "text", "text": text}),
            None => left_out(file),
        },
        _ => left_out(file),
    }
}

/// Returns the text of a base64 file, unless it is empty or not text.
pub(crate) fn plain_text(data: &str) -> Option<String> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(data).ok()?;
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

/// Returns a text part that names a file the model cannot read, so that the model can report it.
pub(crate) fn left_out(file: &File) -> Value {
    let name = file.filename.as_deref().unwrap_or("a file");
    json!({"type": "text", "text": format!("[{name} ({}) is left out: this model cannot read it. Say so to the user.]", file.mime)})
}

fn assistant(content: &[AssistantContent], model: &Model) -> Option<Value> {
    let (mut text, mut thought, mut calls, mut details) =
        (String::new(), String::new(), Vec::new(), Vec::new());
    for part in content {
        match part {
            AssistantContent::Text(more) => text.push_str(more),
            AssistantContent::Reasoning { text: more, metadata } => {
                thought.push_str(more);
                let mine =
                    metadata.as_ref().and_then(|metadata| metadata.pointer("/openrouter/reasoning_details"));
                details.extend(mine.and_then(Value::as_array).into_iter().flatten().cloned());
            }
            AssistantContent::ToolCall { id, name, input } => calls.push(json!({
                "id": id,
                "type": "function",
                "function": {"name": name, "arguments": arguments(input)},
            })),
            // Only the provider that sent it can use it.
            AssistantContent::Metadata(_) => {}
        }
    }
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = Map::new();
    message.insert("role".into(), json!("assistant"));
    message.insert("content".into(), json!(text));
    // Details are not text, so the text next to them keeps its usual name.
    let named = model.thought_field.as_deref();
    let field = named.filter(|name| *name != DETAILS).unwrap_or("reasoning_content");
    if !thought.is_empty() {
        message.insert(field.into(), json!(thought));
    } else if !calls.is_empty() && wants_reasoning(model) {
        // The reasoning of another model is not sent. An empty text counts as missing.
        message.insert(field.into(), json!(" "));
    }
    let takes_details = model.quirks.contains(&Quirk::ReasoningDetails) || named == Some(DETAILS);
    if !details.is_empty() && takes_details {
        message.insert(DETAILS.into(), Value::Array(details));
    }
    if !calls.is_empty() {
        message.insert("tool_calls".into(), Value::Array(calls));
    }
    Some(Value::Object(message))
}

/// Returns arguments as text. Missing arguments become an empty object.
pub(crate) fn arguments(input: &Value) -> String {
    if input.is_null() { "{}".to_owned() } else { input.to_string() }
}

fn tool_result(result: &ToolResult) -> Value {
    let content = if result.output.is_empty() { NO_OUTPUT } else { &result.output };
    json!({"role": "tool", "tool_call_id": result.call_id, "content": content})
}

/// Returns a user message with the files of tool results, which a `tool` message cannot contain.
fn media(results: &[ToolResult], model: &Model) -> Option<Value> {
    let files = results.iter().flat_map(|result| &result.attachments).map(|file| file_part(file, model));
    let mut parts = vec![json!({"type": "text", "text": MEDIA_LEAD_IN})];
    parts.extend(files);
    (parts.len() > 1).then(|| json!({"role": "user", "content": parts}))
}

#[cfg(test)]
mod tests;
