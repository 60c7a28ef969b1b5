//! Leaves parts of a body out, with notes for the model.

use serde_json::{Value, json};

use super::parts::{Kind, Part};
use crate::Protocol;

/// The characters of a call or a result that a note repeats.
const QUOTED_CHARS: usize = 8000;
/// The note for a content that is left out.
const NOTE: &str = "is left out here, because the provider refuses it. Say so to the user if it matters.]";
/// The last message if the conversation would end with the model.
const CONTINUE: &str = "Continue.";

/// Leaves out the parts. A call is left out with its result.
pub(super) fn leave_out(protocol: Protocol, body: &mut Value, refused: &[Part]) {
    // From the end, so that the places of the others stay.
    let mut refused: Vec<&Part> = refused.iter().collect();
    refused.sort_by(|a, b| place(&b.pointer).cmp(&place(&a.pointer)));
    refused.dedup();
    for part in &refused {
        match part.kind {
            Kind::Text | Kind::Picture | Kind::Document => replace(protocol, body, part),
            Kind::Result => clear_result(body, &part.pointer),
            Kind::Reasoning | Kind::Tool => drop(remove(body, &part.pointer)),
            Kind::Call => leave_out_call(protocol, body, part),
        }
    }
    let tools: Vec<&str> =
        refused.iter().filter(|part| part.kind == Kind::Tool).map(|part| &*part.name).collect();
    if !tools.is_empty() {
        note_tools(protocol, body, &tools);
    }
    tidy(protocol, body);
}

/// Returns a pointer as numbers and keys that can be compared.
fn place(pointer: &str) -> Vec<(usize, &str)> {
    pointer.split('/').map(|segment| (segment.parse().unwrap_or(0), segment)).collect()
}

fn text_block(protocol: Protocol, role: &Value, text: &str) -> Value {
    match protocol {
        Protocol::OpenAiResponses if *role == "assistant" => json!({"type": "output_text", "text": text}),
        Protocol::OpenAiResponses => json!({"type": "input_text", "text": text}),
        Protocol::Gemini | Protocol::Bedrock => json!({"text": text}),
        Protocol::OpenAiChat | Protocol::Cohere | Protocol::Anthropic => {
            json!({"type": "text", "text": text})
        }
    }
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Picture => "A picture",
        Kind::Document => "A document",
        Kind::Text => "A text",
        Kind::Reasoning => "A thought",
        Kind::Call | Kind::Result => "A result",
        Kind::Tool => "A tool",
    }
}

fn replace(protocol: Protocol, body: &mut Value, part: &Part) {
    let message: String = part.pointer.split('/').take(3).collect::<Vec<_>>().join("/");
    let role = body.pointer(&message).map(|message| message["role"].clone()).unwrap_or_default();
    let mut block = text_block(protocol, &role, &format!("[{} {NOTE}", word(part.kind)));
    if let Some(old) = body.pointer_mut(&part.pointer) {
        if let Some(mark) = old.get("cache_control") {
            block["cache_control"] = mark.clone();
        }
        *old = block;
    }
}

fn clear_result(body: &mut Value, pointer: &str) {
    let Some(result) = body.pointer_mut(pointer) else { return };
    let note = format!("[{} {NOTE}", word(Kind::Result));
    if let Some(inner) = result.get_mut("toolResult") {
        inner["content"] = json!([{"text": note}]);
    } else if let Some(inner) = result.get_mut("functionResponse") {
        inner["response"] = json!({"name": inner["name"], "content": note});
        if let Some(inner) = inner.as_object_mut() {
            inner.shift_remove("parts");
        }
    } else if result["type"] == "function_call_output" {
        result["output"] = json!(note);
    } else {
        result["content"] = json!(note);
    }
}

/// Removes the element of a list, or the field of an object.
fn remove(body: &mut Value, pointer: &str) -> Option<Value> {
    let (parent, last) = pointer.rsplit_once('/')?;
    match body.pointer_mut(parent)? {
        Value::Array(list) => {
            let at = last.parse::<usize>().ok().filter(|at| *at < list.len())?;
            Some(list.remove(at))
        }
        Value::Object(fields) => fields.shift_remove(last),
        _ => None,
    }
}

/// Removes a call and its result, and leaves both as text in the answer.
fn leave_out_call(protocol: Protocol, body: &mut Value, part: &Part) {
    let Some(call) = body.pointer(&part.pointer).cloned() else { return };
    let message_at: Vec<&str> = part.pointer.split('/').take(3).collect();
    let list = format!("/{}", message_at[1]);
    let number: usize = message_at[2].parse().unwrap_or_default();
    let result = result_of(body, &list, number, &part.name);
    let output = result.as_deref().and_then(|result| body.pointer(result)).map(ToString::to_string);
    let cut = |text: &str| text.chars().take(QUOTED_CHARS).collect::<String>();
    let note = format!(
        "[This call is left out as a call, because the provider refuses it: {} Its result: {}]",
        cut(&call.to_string()),
        cut(&output.unwrap_or_else(|| "none".to_owned()))
    );
    // The result comes later in the body, so it is removed first.
    if let Some(result) = result {
        remove(body, &result);
    }
    if protocol == Protocol::OpenAiResponses {
        if let Some(item) = body.pointer_mut(&part.pointer) {
            *item =
                json!({"role": "assistant", "content": [text_block(protocol, &json!("assistant"), &note)]});
        }
        return;
    }
    if matches!(protocol, Protocol::OpenAiChat | Protocol::Cohere) {
        remove(body, &part.pointer);
        if let Some(message) = body.pointer_mut(&format!("{list}/{number}")) {
            add_text(message, &note);
        }
    } else if let Some(block) = body.pointer_mut(&part.pointer) {
        *block = text_block(protocol, &Value::Null, &note);
    }
}

/// Adds text to an answer of Chat Completions or Cohere, and removes an empty list of calls.
fn add_text(message: &mut Value, note: &str) {
    if message["tool_calls"].as_array().is_some_and(Vec::is_empty)
        && let Some(fields) = message.as_object_mut()
    {
        fields.shift_remove("tool_calls");
        fields.shift_remove("tool_plan");
    }
    match &mut message["content"] {
        Value::Array(parts) => parts.push(json!({"type": "text", "text": note})),
        Value::String(text) if !text.is_empty() => *text = format!("{text}\n\n{note}"),
        content => *content = json!(note),
    }
}

/// Returns the pointer to the result of a call in the messages after it.
fn result_of(body: &Value, list: &str, number: usize, id: &str) -> Option<String> {
    let found = super::parts::parts_of_results(body, list);
    let result =
        |(message, pointer, of): (usize, String, String)| (message > number && of == id).then_some(pointer);
    found.into_iter().find_map(result)
}

/// Tells the model which tools are missing.
fn note_tools(protocol: Protocol, body: &mut Value, names: &[&str]) {
    for pointer in ["/tools", "/toolConfig/tools", "/tools/0/functionDeclarations"] {
        if body.pointer(pointer).and_then(Value::as_array).is_some_and(Vec::is_empty)
            && let Some(fields) = body.as_object_mut()
        {
            for field in ["tools", "tool_choice", "toolConfig"] {
                fields.shift_remove(field);
            }
        }
    }
    let note = format!(
        "The provider refuses the tools {}, so they are left out. Say so to the user.",
        names.join(", ")
    );
    let block = json!({"type": "text", "text": note});
    match protocol {
        Protocol::Anthropic => push(body, "/system", block),
        Protocol::Bedrock => push(body, "/system", json!({"text": note})),
        Protocol::Gemini => push(body, "/systemInstruction/parts", json!({"text": note})),
        Protocol::OpenAiChat | Protocol::Cohere | Protocol::OpenAiResponses => {
            let list = if protocol == Protocol::OpenAiResponses { "/input" } else { "/messages" };
            let Some(messages) = body.pointer_mut(list).and_then(Value::as_array_mut) else { return };
            match messages.first_mut() {
                Some(first) if first["role"] != "user" && first["content"].is_string() => {
                    first["content"] =
                        json!(format!("{}\n\n{note}", first["content"].as_str().unwrap_or_default()));
                }
                _ => messages.insert(0, json!({"role": "system", "content": note})),
            }
        }
    }
}

fn push(body: &mut Value, pointer: &str, block: Value) {
    match body.pointer_mut(pointer).and_then(Value::as_array_mut) {
        Some(list) => list.push(block),
        None => match pointer {
            "/systemInstruction/parts" => body["systemInstruction"] = json!({"parts": [block]}),
            _ => body["system"] = json!([block]),
        },
    }
}

/// Removes empty messages, joins neighbors of one role, and lets the user speak last.
fn tidy(protocol: Protocol, body: &mut Value) {
    let (list, content) = match protocol {
        Protocol::Anthropic | Protocol::Bedrock => ("/messages", "content"),
        Protocol::Gemini => ("/contents", "parts"),
        Protocol::OpenAiChat | Protocol::Cohere => ("/messages", ""),
        Protocol::OpenAiResponses => ("/input", ""),
    };
    let Some(messages) = body.pointer_mut(list).and_then(Value::as_array_mut) else { return };
    if content.is_empty() {
        messages.retain(|message| message["content"].as_array().is_none_or(|parts| !parts.is_empty()));
    } else {
        let given = std::mem::take(messages);
        for mut message in given {
            let blocks = message[content].as_array_mut().map(std::mem::take).unwrap_or_default();
            if blocks.is_empty() {
                continue;
            }
            let has_results =
                |blocks: &[Value]| blocks.iter().any(|block| block.get("functionResponse").is_some());
            match messages.last_mut() {
                Some(last)
                    if last["role"] == message["role"]
                        && last[content]
                            .as_array()
                            .is_some_and(|old| has_results(old) == has_results(&blocks)) =>
                {
                    if let Some(into) = last[content].as_array_mut() {
                        into.extend(blocks);
                    }
                }
                _ => {
                    message[content] = Value::Array(blocks);
                    messages.push(message);
                }
            }
        }
    }
    if messages.last().is_some_and(|last| last["role"] == "assistant" || last["role"] == "model") {
        let block = text_block(protocol, &Value::Null, CONTINUE);
        messages.push(match protocol {
            Protocol::Gemini => json!({"role": "user", "parts": [block]}),
            Protocol::OpenAiChat | Protocol::Cohere => json!({"role": "user", "content": CONTINUE}),
            Protocol::Anthropic | Protocol::Bedrock | Protocol::OpenAiResponses => {
                json!({"role": "user", "content": [block]})
            }
        });
    }
}
