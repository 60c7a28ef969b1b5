//! The body of a Cohere chat request.

use serde_json::{Map, Value, json};

use crate::options::{join, merge};
use crate::protocol::openai_chat::request::{left_out, number, plain_text};
use crate::request::NO_OUTPUT;
use crate::{AssistantContent, File, FileData, Message, Model, Request, ToolChoice, ToolResult, UserContent};

const MEDIA_LEAD_IN: &str = "Attached media from tool result:";

/// Returns the body. The order of fields is fixed, so equal requests are equal bytes.
pub(crate) fn lower(request: &Request, model: &Model) -> Value {
    let options = wire_options(join(&model.options, &request.options, wire_name));
    let mut body = Map::new();
    body.insert("model".into(), json!(model.api_id));
    if request.max_output_tokens > 0 {
        body.insert("max_tokens".into(), json!(request.max_output_tokens));
    }
    if let Some(temperature) = request.temperature {
        body.insert("temperature".into(), number(temperature));
    }
    if let Some(top_p) = request.top_p {
        body.insert("p".into(), number(top_p));
    }
    // Options come before the conversation, so that all settings are together. They are merged
    // again at the end, because they win over the other fields.
    merge(&mut body, options.clone());
    body.insert("messages".into(), Value::Array(messages(request, model)));
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({"type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.parameters,
            }})
        });
        body.insert("tools".into(), tools.collect());
        match request.tool_choice {
            // Without a choice, the model decides.
            ToolChoice::Auto => {}
            ToolChoice::Required => drop(body.insert("tool_choice".into(), json!("REQUIRED"))),
            ToolChoice::None => drop(body.insert("tool_choice".into(), json!("NONE"))),
        }
    }
    body.insert("stream".into(), json!(true));
    merge(&mut body, options);
    Value::Object(body)
}

fn wire_name(name: &str) -> Option<&str> {
    Some(match name {
        "topK" | "top_k" => "k",
        "topP" | "top_p" => "p",
        "stopSequences" => "stop_sequences",
        "frequencyPenalty" => "frequency_penalty",
        "presencePenalty" => "presence_penalty",
        "safetyMode" => "safety_mode",
        "responseFormat" => "response_format",
        name => name,
    })
}

fn wire_options(mut options: Map<String, Value>) -> Map<String, Value> {
    if let Some(thinking) = options.get_mut("thinking").and_then(Value::as_object_mut)
        && let Some(budget) =
            thinking.shift_remove("tokenBudget").or_else(|| thinking.shift_remove("budgetTokens"))
    {
        thinking.insert("token_budget".into(), budget);
    }
    options
}

fn messages(request: &Request, model: &Model) -> Vec<Value> {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    messages.extend(request.system_pieces().map(|piece| json!({"role": "system", "content": piece})));
    for message in &request.messages {
        match message {
            Message::User(content) => messages.extend(user(content, model)),
            Message::Assistant(content) => messages.extend(assistant(content)),
            Message::Tool(results) => {
                messages.extend(results.iter().map(tool_result));
                messages.extend(media(results, model));
            }
        }
    }
    messages
}

fn user(content: &[UserContent], model: &Model) -> Option<Value> {
    let parts: Vec<Value> = content
        .iter()
        .filter_map(|part| match part {
            UserContent::Text(text) => text_part(text),
            UserContent::File(file) => Some(file_part(file, model)),
        })
        .collect();
    Some(json!({"role": "user", "content": simplest(parts)?}))
}

/// Returns a single text as a string, other parts as a list, and `None` without parts.
fn simplest(mut parts: Vec<Value>) -> Option<Value> {
    match parts.as_mut_slice() {
        [] => None,
        [part] if part["type"] == "text" => Some(part["text"].take()),
        _ => Some(Value::Array(parts)),
    }
}

fn text_part(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

fn file_part(file: &File, model: &Model) -> Value {
    let url = match &file.data {
        FileData::Base64(data) => format!("data:{};base64,{data}", file.mime),
        FileData::Url(url) => url.clone(),
    };
    if file.mime.starts_with("image/") && model.capabilities.input.image {
        return json!({"type": "image_url", "image_url": {"url": url}});
    }
    let text = match &file.data {
        FileData::Base64(data) if file.mime.starts_with("text/") => plain_text(data),
        FileData::Base64(_) | FileData::Url(_) => None,
    };
    text.and_then(|text| text_part(&text)).unwrap_or_else(|| left_out(file))
}

/// Returns an answer's message. Reasoning is sent back in its original field: the plan next to the
/// calls, the rest as content.
fn assistant(content: &[AssistantContent]) -> Option<Value> {
    let (mut parts, mut plan, mut calls) = (Vec::new(), String::new(), Vec::new());
    for part in content {
        match part {
            AssistantContent::Text(text) => parts.extend(text_part(text)),
            AssistantContent::Reasoning { text, metadata } => {
                let kind = metadata.as_ref().and_then(|metadata| metadata["cohere"]["type"].as_str());
                match kind {
                    Some("tool_plan") => plan.push_str(text),
                    Some("thinking") if !text.is_empty() => {
                        parts.push(json!({"type": "thinking", "thinking": text}));
                    }
                    Some(_) | None => {}
                }
            }
            // Metadata of other providers.
            AssistantContent::Metadata(_) => {}
            AssistantContent::ToolCall { id, name, input } => {
                let arguments = if input.is_object() { input.to_string() } else { "{}".to_owned() };
                calls.push(json!({
                    "id": id, "type": "function", "function": {"name": name, "arguments": arguments},
                }));
            }
        }
    }
    if calls.is_empty() && parts.iter().all(|part| part["type"] == "thinking") {
        return None;
    }
    let mut message = Map::from_iter([("role".to_owned(), json!("assistant"))]);
    if let Some(content) = simplest(parts) {
        message.insert("content".into(), content);
    }
    if !calls.is_empty() {
        if !plan.is_empty() {
            message.insert("tool_plan".into(), json!(plan));
        }
        message.insert("tool_calls".into(), Value::Array(calls));
    }
    Some(Value::Object(message))
}

fn tool_result(result: &ToolResult) -> Value {
    let content = if result.output.trim().is_empty() { NO_OUTPUT } else { &result.output };
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
