//! The body of a Gemini request.

use serde_json::{Map, Value, json};

use super::schema;
use crate::options::{join, merge};
use crate::protocol::openai_chat::request::{MEDIA_LEAD_IN, left_out, number, plain_text};
use crate::request::NO_OUTPUT;
use crate::{AssistantContent, File, FileData, Message, Model, Request, ToolChoice, ToolResult, UserContent};

/// The `topK` of Gemini models before version 3.
const TOP_K: u64 = 64;
/// A placeholder for a missing signature: Gemini 3 rejects a call of the current turn without one,
/// and Google documents this value for that case.
pub(crate) const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Returns the body. The order of fields is fixed, so equal requests are equal bytes.
pub(crate) fn lower(request: &Request, model: &Model) -> Value {
    let mut options = join(&model.options, &request.options, wire_name);
    let mut body = Map::new();
    let generation = generation(request, model, &mut options);
    if !generation.is_empty() {
        body.insert("generationConfig".into(), Value::Object(generation));
    }
    // Gemma models have no system prompt.
    let pieces: Vec<&str> = request.system_pieces().collect();
    let (system, lead) =
        if is_gemma(model) { (Vec::new(), pieces.join("\n")) } else { (pieces, String::new()) };
    body.insert("contents".into(), Value::Array(contents(request, model, &lead)));
    if !system.is_empty() {
        let parts: Vec<_> = system.into_iter().map(|piece| json!({"text": piece})).collect();
        body.insert("systemInstruction".into(), json!({"parts": parts}));
    }
    if !request.tools.is_empty() {
        body.insert("tools".into(), json!([{"functionDeclarations": declarations(request)}]));
        let mode = mode(request.tool_choice);
        body.insert("toolConfig".into(), json!({"functionCallingConfig": {"mode": mode}}));
    }
    merge(&mut body, options);
    Value::Object(body)
}

/// Returns limits, sampling and reasoning settings. Removes the options that belong here.
fn generation(request: &Request, model: &Model, options: &mut Map<String, Value>) -> Map<String, Value> {
    let mut generation = Map::new();
    if request.max_output_tokens > 0 {
        generation.insert("maxOutputTokens".into(), json!(request.max_output_tokens));
    }
    if let Some(temperature) = request.temperature {
        generation.insert("temperature".into(), number(temperature));
    }
    if needs_top_k(&model.api_id) {
        generation.insert("topK".into(), json!(TOP_K));
    }
    if let Some(top_p) = request.top_p {
        generation.insert("topP".into(), number(top_p));
    }
    if model.capabilities.reasoning {
        generation.insert("thinkingConfig".into(), json!({"includeThoughts": true}));
    }
    let (own, rest) = std::mem::take(options).into_iter().partition(|(name, _)| is_of_generation(name));
    *options = rest;
    merge(&mut generation, own);
    if let Some(Value::Object(whole)) = options.shift_remove("generationConfig") {
        merge(&mut generation, whole);
    }
    if let Some(thinking) = generation.get_mut("thinkingConfig").and_then(Value::as_object_mut) {
        fix_thinking(thinking);
    }
    generation
}

/// Reasoning has either a budget or a level. A budget of zero excludes thoughts.
fn fix_thinking(thinking: &mut Map<String, Value>) {
    if thinking.contains_key("thinkingBudget") {
        thinking.shift_remove("thinkingLevel");
    }
    if thinking.get("thinkingBudget") == Some(&json!(0)) {
        thinking.shift_remove("includeThoughts");
    }
}

/// Google advises against these settings for newer Gemini models.
pub(super) fn needs_top_k(id: &str) -> bool {
    let id = id.to_lowercase();
    id.contains("gemini") && !is_gemini_3(&id)
}

fn is_gemini_3(id: &str) -> bool {
    id.to_lowercase().contains("gemini-3")
}

fn is_gemma(model: &Model) -> bool {
    model.api_id.starts_with("gemma-")
}

/// Returns a known field's name. The server rejects unknown fields.
fn wire_name(name: &str) -> Option<&str> {
    let name = match name {
        "top_k" => "topK",
        "top_p" => "topP",
        "max_output_tokens" | "maxTokens" => "maxOutputTokens",
        name => name,
    };
    const OF_THE_BODY: &[&str] =
        &["cachedContent", "generationConfig", "labels", "safetySettings", "serviceTier", "toolConfig"];
    (OF_THE_BODY.contains(&name) || is_of_generation(name)).then_some(name)
}

fn is_of_generation(name: &str) -> bool {
    const OF_GENERATION: &[&str] = &[
        "audioTimestamp",
        "frequencyPenalty",
        "imageConfig",
        "maxOutputTokens",
        "mediaResolution",
        "presencePenalty",
        "responseJsonSchema",
        "responseMimeType",
        "responseModalities",
        "responseSchema",
        "seed",
        "stopSequences",
        "temperature",
        "thinkingConfig",
        "topK",
        "topP",
    ];
    OF_GENERATION.contains(&name)
}

fn declarations(request: &Request) -> Value {
    let tool = |tool: &crate::ToolSpec| {
        let mut declaration = json!({"name": tool.name, "description": tool.description});
        if let Some(parameters) = schema::parameters(&tool.parameters) {
            declaration["parameters"] = parameters;
        }
        declaration
    };
    request.tools.iter().map(tool).collect()
}

fn mode(choice: ToolChoice) -> &'static str {
    match choice {
        ToolChoice::Auto => "AUTO",
        ToolChoice::Required => "ANY",
        ToolChoice::None => "NONE",
    }
}

/// The sender of a turn. Results have the user's role on the wire, but the server matches them with
/// the calls before, so they must not be mixed with other parts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    User,
    Model,
    Results,
}

/// Returns the conversation. Drops empty turns and joins neighbors of one sender.
fn contents(request: &Request, model: &Model, lead: &str) -> Vec<Value> {
    let mut turns: Vec<(Turn, Vec<Value>)> = Vec::with_capacity(request.messages.len());
    let mut add = |turn: Turn, parts: Vec<Value>| match turns.last_mut() {
        _ if parts.iter().all(is_reasoning) => {}
        Some((last, into)) if *last == turn => into.extend(parts),
        _ => turns.push((turn, parts)),
    };
    add(Turn::User, text_part(lead).into_iter().collect());
    for message in &request.messages {
        match message {
            Message::User(content) => {
                add(Turn::User, content.iter().filter_map(|part| user_part(part, model)).collect());
            }
            Message::Assistant(content) => add(Turn::Model, assistant(content)),
            Message::Tool(results) => {
                add(Turn::Results, results.iter().map(|result| response(result, model)).collect());
                add(Turn::User, media(results, model));
            }
        }
    }
    if is_gemini_3(&model.api_id) {
        sign_calls(&mut turns);
    }
    let content = |(turn, parts)| {
        let role = match turn {
            Turn::User | Turn::Results => "user",
            Turn::Model => "model",
        };
        json!({"role": role, "parts": parts})
    };
    turns.into_iter().map(content).collect()
}

/// Adds a placeholder to calls without a signature, such as calls of another provider's model or of
/// an aborted stream. Only the current turn needs it, but a previous turn must keep its bytes for
/// the server's cache.
fn sign_calls(turns: &mut [(Turn, Vec<Value>)]) {
    for (_, parts) in turns {
        sign_first_call(parts);
    }
}

/// Of parallel calls, only the first has a signature.
fn sign_first_call(parts: &mut [Value]) {
    if let Some(call) = parts.iter_mut().find(|part| part.get("functionCall").is_some())
        && call.get("thoughtSignature").is_none()
    {
        call["thoughtSignature"] = json!(NO_SIGNATURE);
    }
}

/// Adds the placeholder to the calls of a body whose signatures were removed, if the model needs one.
pub(crate) fn sign_contents(body: &mut Value, model: &Model) {
    if !is_gemini_3(&model.api_id) {
        return;
    }
    for content in body["contents"].as_array_mut().into_iter().flatten() {
        if let Some(parts) = content["parts"].as_array_mut() {
            sign_first_call(parts);
        }
    }
}

/// Returns whether a part is reasoning, which cannot be the only content of a turn.
fn is_reasoning(part: &Value) -> bool {
    part["thought"] == true
}

fn text_part(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({"text": text}))
}

fn user_part(part: &UserContent, model: &Model) -> Option<Value> {
    match part {
        UserContent::Text(text) => text_part(text),
        UserContent::File(file) => Some(file_part(file, model)),
    }
}

fn file_part(file: &File, model: &Model) -> Value {
    let input = model.capabilities.input;
    let is_seen = match file.mime.split('/').next().unwrap_or_default() {
        "image" => input.image,
        "audio" => input.audio,
        "video" => input.video,
        _ => file.mime == "application/pdf" && input.pdf,
    };
    if is_seen {
        return match &file.data {
            FileData::Base64(data) => inline(&file.mime, data),
            FileData::Url(url) => json!({"fileData": {"mimeType": file.mime, "fileUri": url}}),
        };
    }
    let text = match &file.data {
        FileData::Base64(data) if file.mime.starts_with("text/") => plain_text(data),
        FileData::Base64(_) | FileData::Url(_) => None,
    };
    json!({"text": text.map_or_else(|| left_out(file)["text"].take(), Value::from)})
}

fn inline(mime: &str, data: &str) -> Value {
    json!({"inlineData": {"mimeType": mime, "data": data}})
}

fn assistant(content: &[AssistantContent]) -> Vec<Value> {
    let mut parts: Vec<Value> = Vec::with_capacity(content.len());
    for part in content {
        match part {
            AssistantContent::Text(text) => parts.extend(text_part(text)),
            AssistantContent::Reasoning { text, metadata } => {
                let Some(mut part) = text_part(text) else { continue };
                part["thought"] = json!(true);
                sign(&mut part, metadata.as_ref());
                parts.push(part);
            }
            AssistantContent::ToolCall { name, input, .. } => {
                let args = if input.is_object() { input.clone() } else { json!({}) };
                parts.push(json!({"functionCall": {"name": name, "args": args}}));
            }
            AssistantContent::Metadata(metadata) => {
                if let Some(part) = parts.last_mut() {
                    sign(part, Some(metadata));
                }
            }
        }
    }
    parts
}

/// Restores the signature of a part.
fn sign(part: &mut Value, metadata: Option<&Value>) {
    let mine = metadata.and_then(|metadata| metadata.get("google").or_else(|| metadata.get("vertex")));
    if let Some(signature) = mine.and_then(|mine| mine.get("thoughtSignature")) {
        part["thoughtSignature"] = signature.clone();
    }
}

fn response(result: &ToolResult, model: &Model) -> Value {
    let output = if result.output.is_empty() { NO_OUTPUT } else { &result.output };
    let mut response = json!({"name": result.name, "response": {"name": result.name, "content": output}});
    let files: Vec<Value> = result
        .attachments
        .iter()
        .filter(|file| is_allowed_in_result(file, model))
        .map(|file| file_part(file, model))
        .collect();
    if !files.is_empty() {
        response["parts"] = Value::Array(files);
    }
    json!({"functionResponse": response})
}

/// Returns whether a file can be part of a result. Older models accept only text there.
fn is_allowed_in_result(file: &File, model: &Model) -> bool {
    const KINDS: &[&str] = &["application/pdf", "image/jpeg", "image/png", "image/webp"];
    let is_inline = matches!(file.data, FileData::Base64(_));
    let input = model.capabilities.input;
    let is_seen = if file.mime == "application/pdf" { input.pdf } else { input.image };
    is_gemini_3(&model.api_id) && is_inline && is_seen && KINDS.contains(&file.mime.as_str())
}

/// Returns user parts with the files that cannot be part of a result.
fn media(results: &[ToolResult], model: &Model) -> Vec<Value> {
    let files = results.iter().flat_map(|result| &result.attachments);
    let files: Vec<Value> =
        files.filter(|file| !is_allowed_in_result(file, model)).map(|file| file_part(file, model)).collect();
    if files.is_empty() {
        return files;
    }
    text_part(MEDIA_LEAD_IN).into_iter().chain(files).collect()
}

#[cfg(test)]
mod tests;
