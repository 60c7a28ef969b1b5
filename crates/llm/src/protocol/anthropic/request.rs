//! The body and the headers of an Anthropic message.

use serde_json::{Map, Value, json};

use crate::options::{join, merge};
use crate::protocol::openai_chat::request::{left_out, number, plain_text};
use crate::request::NO_OUTPUT;
use crate::{
    AssistantContent, Endpoint, File, FileData, Message, Model, Request, ToolChoice, ToolResult, UserContent,
};

const VERSION: &str = "2023-06-01";
const VERTEX_VERSION: &str = "vertex-2023-10-16";
const TOOLS_BETA: &str = "structured-outputs-2025-11-13";
/// The limit that is sent if the caller sets none, because the protocol requires one.
const OUTPUT_LIMIT_TOKENS: u64 = 4096;
/// The number of messages with a cache mark, counted from the end: the provider reads the entry of
/// the previous request and writes one for this request.
const MARKED_MESSAGES: usize = 2;

/// Returns the headers that the protocol needs.
pub(crate) fn headers(request: &Request, model: &Model) -> Vec<(&'static str, String)> {
    // Vertex expects the version in the body and rejects unknown beta features.
    if model.endpoint == Endpoint::Vertex {
        return Vec::new();
    }
    let mut headers = vec![("anthropic-version", VERSION.to_owned())];
    if !request.tools.is_empty() {
        headers.push(("anthropic-beta", TOOLS_BETA.to_owned()));
    }
    headers
}

/// Returns the body. The order of fields is fixed, so equal requests are equal bytes.
pub(crate) fn lower(request: &Request, model: &Model) -> Value {
    let options = wire_options(join(&model.options, &request.options, wire_name));
    let thinking = options.get("thinking").filter(|thinking| thinking["type"] == "enabled");
    let mut body = Map::new();
    if model.endpoint == Endpoint::Vertex {
        body.insert("anthropic_version".into(), json!(VERTEX_VERSION));
    } else {
        body.insert("model".into(), json!(model.api_id));
    }
    body.insert("max_tokens".into(), json!(limit(request, model, thinking)));
    // The server rejects sampling settings together with a reasoning budget.
    if thinking.is_none() {
        if let Some(temperature) = request.temperature {
            body.insert("temperature".into(), number(temperature));
        }
        if let Some(top_p) = request.top_p {
            body.insert("top_p".into(), number(top_p));
        }
    }
    // Options come before the conversation, so that all settings are together. They are merged
    // again at the end, because they win over the other fields.
    merge(&mut body, options.clone());
    let mut system: Vec<_> =
        request.system_pieces().map(|piece| json!({"type": "text", "text": piece})).collect();
    if let Some(last) = system.last_mut() {
        // A mark covers everything before it, and a request has few.
        *last = with_mark(last.take());
        body.insert("system".into(), Value::Array(system));
    }
    body.insert("messages".into(), Value::Array(messages(request, model)));
    if !request.tools.is_empty() {
        body.insert("tools".into(), tools(request, model));
        body.insert("tool_choice".into(), json!({"type": tool_choice(request.tool_choice)}));
    }
    body.insert("stream".into(), json!(true));
    merge(&mut body, options);
    Value::Object(body)
}

/// Returns the output limit. A reasoning budget is added to the answer's limit, up to the model's
/// limit.
fn limit(request: &Request, model: &Model, thinking: Option<&Value>) -> u64 {
    let budget = thinking.and_then(|thinking| thinking["budget_tokens"].as_u64()).unwrap_or(0);
    let requested =
        if request.max_output_tokens > 0 { request.max_output_tokens } else { OUTPUT_LIMIT_TOKENS };
    let sum = requested.saturating_add(budget);
    match model.limits.output {
        output if output > budget => sum.min(output.max(requested)),
        // The limit is unknown or leaves no room for the answer. The server decides.
        _ => sum,
    }
}

fn wire_name(name: &str) -> Option<&str> {
    Some(match name {
        "topK" => "top_k",
        "stopSequences" => "stop_sequences",
        "serviceTier" => "service_tier",
        "outputConfig" => "output_config",
        // Switches of the JavaScript library.
        "sendReasoning"
        | "structuredOutputMode"
        | "toolStreaming"
        | "cacheControl"
        | "disableParallelToolUse" => return None,
        name => name,
    })
}

/// Converts the budget's spelling and moves `effort` to its place.
fn wire_options(mut options: Map<String, Value>) -> Map<String, Value> {
    if let Some(thinking) = options.get_mut("thinking").and_then(Value::as_object_mut)
        && let Some(budget) = thinking.remove("budgetTokens")
    {
        thinking.insert("budget_tokens".into(), budget);
    }
    if let Some(effort) = options.shift_remove("effort") {
        merge(&mut options, Map::from_iter([("output_config".to_owned(), json!({"effort": effort}))]));
    }
    options
}

fn tools(request: &Request, model: &Model) -> Value {
    let tool = |tool: &crate::ToolSpec| {
        let mut tool =
            json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters});
        // Vertex rejects this field.
        if model.endpoint != Endpoint::Vertex {
            tool["eager_input_streaming"] = json!(true);
        }
        tool
    };
    request.tools.iter().map(tool).collect()
}

fn tool_choice(choice: ToolChoice) -> &'static str {
    match choice {
        ToolChoice::Auto => "auto",
        ToolChoice::Required => "any",
        ToolChoice::None => "none",
    }
}

/// Returns the conversation. Drops empty messages, marks the last ones and joins neighbors with the
/// same role.
fn messages(request: &Request, model: &Model) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> =
        request.messages.iter().map(|message| turn(message, model)).collect();
    turns.retain(|(_, blocks)| !blocks.iter().all(is_reasoning));
    trim_last(&mut turns);
    for (_, blocks) in turns.iter_mut().rev().take(MARKED_MESSAGES) {
        if let Some(block) = blocks.iter_mut().rfind(|block| !is_reasoning(block)) {
            *block = with_mark(block.take());
        }
    }
    let mut joined: Vec<(&str, Vec<Value>)> = Vec::with_capacity(turns.len());
    for (role, blocks) in turns {
        match joined.last_mut() {
            Some((last, into)) if *last == role => into.extend(blocks),
            _ => joined.push((role, blocks)),
        }
    }
    joined.into_iter().map(|(role, blocks)| json!({"role": role, "content": blocks})).collect()
}

fn turn(message: &Message, model: &Model) -> (&'static str, Vec<Value>) {
    match message {
        Message::User(content) => {
            ("user", content.iter().filter_map(|part| user_block(part, model)).collect())
        }
        Message::Assistant(content) => ("assistant", content.iter().filter_map(assistant_block).collect()),
        Message::Tool(results) => {
            ("user", results.iter().map(|result| result_block(result, model)).collect())
        }
    }
}

/// The server rejects an unfinished answer that ends in white space.
fn trim_last(turns: &mut Vec<(&str, Vec<Value>)>) {
    let Some(("assistant", blocks)) = turns.last_mut() else { return };
    let Some(block) = blocks.last_mut().filter(|block| block["type"] == "text") else { return };
    let text = block["text"].as_str().unwrap_or_default().trim_end().to_owned();
    if !text.is_empty() {
        block["text"] = json!(text);
        return;
    }
    blocks.pop();
    if blocks.iter().all(is_reasoning) {
        turns.pop();
    }
}

/// Returns whether a block is reasoning, which cannot be marked and cannot be the only content of a
/// message.
fn is_reasoning(block: &Value) -> bool {
    matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
}

fn with_mark(mut block: Value) -> Value {
    block["cache_control"] = json!({"type": "ephemeral"});
    block
}

fn user_block(part: &UserContent, model: &Model) -> Option<Value> {
    match part {
        UserContent::Text(text) => text_block(text),
        UserContent::File(file) => Some(file_block(file, model)),
    }
}

/// The server rejects text that consists of white space.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

fn file_block(file: &File, model: &Model) -> Value {
    let input = model.capabilities.input;
    let source = match &file.data {
        FileData::Base64(data) => json!({"type": "base64", "media_type": file.mime, "data": data}),
        FileData::Url(url) => json!({"type": "url", "url": url}),
    };
    if file.mime.starts_with("image/") && input.image {
        return json!({"type": "image", "source": source});
    }
    if file.mime == "application/pdf" && input.pdf {
        return match &file.filename {
            Some(name) => json!({"type": "document", "source": source, "title": name}),
            None => json!({"type": "document", "source": source}),
        };
    }
    let text = match &file.data {
        FileData::Base64(data) if file.mime.starts_with("text/") => plain_text(data),
        FileData::Base64(_) | FileData::Url(_) => None,
    };
    text.and_then(|text| text_block(&text)).unwrap_or_else(|| left_out(file))
}

fn assistant_block(part: &AssistantContent) -> Option<Value> {
    match part {
        AssistantContent::Text(text) => text_block(text),
        AssistantContent::Reasoning { text, metadata } => {
            let mine = metadata.as_ref()?.get("anthropic")?;
            if let Some(data) = mine.get("redactedData") {
                return Some(json!({"type": "redacted_thinking", "data": data}));
            }
            // Reasoning of other providers has no signature, and the server would reject it.
            let signature = mine.get("signature")?;
            Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
        }
        AssistantContent::ToolCall { id, name, input } => {
            let input = if input.is_object() { input.clone() } else { json!({}) };
            Some(json!({"type": "tool_use", "id": sanitize_id(id), "name": name, "input": input}))
        }
        // Anthropic sends no metadata, and other providers' metadata is useless to it.
        AssistantContent::Metadata(_) => None,
    }
}

/// Replaces characters that Anthropic rejects in the ids of other providers.
fn sanitize_id(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).collect()
}

fn result_block(result: &ToolResult, model: &Model) -> Value {
    let content = if result.attachments.is_empty() {
        json!(if result.output.is_empty() { NO_OUTPUT } else { &result.output })
    } else {
        let files = result.attachments.iter().map(|file| file_block(file, model));
        text_block(&result.output).into_iter().chain(files).collect()
    };
    let mut block =
        json!({"type": "tool_result", "tool_use_id": sanitize_id(&result.call_id), "content": content});
    if result.is_error {
        block["is_error"] = json!(true);
    }
    block
}

#[cfg(test)]
mod tests;
