//! Mistral rejects unknown fields, and a user message directly after a tool message.

use serde_json::{Map, Value, json};

/// The text of the assistant message that is inserted between a tool message and a user message.
const BRIDGE: &str = "Done.";

pub(super) fn body(mut body: Value) -> Value {
    let given =
        body.get_mut("messages").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
    let mut kept: Vec<Value> = Vec::with_capacity(given.len());
    for mut message in given {
        let is_after_tool = kept.last().is_some_and(|last| last["role"] == "tool");
        if is_after_tool && message["role"] == "user" {
            kept.push(json!({"role": "assistant", "content": BRIDGE}));
        }
        if let Some(fields) = message.as_object_mut() {
            for name in ["reasoning_content", "reasoning", "reasoning_details"] {
                fields.shift_remove(name);
            }
        }
        kept.push(message);
    }
    // Marks a final assistant message as one to continue.
    if let Some(last) = kept.last_mut().filter(|last| last["role"] == "assistant") {
        last["prefix"] = json!(true);
    }
    if let Some(fields) = body.as_object_mut() {
        fields.insert("messages".into(), Value::Array(kept));
        fix_fields(fields);
    }
    body
}

fn fix_fields(fields: &mut Map<String, Value>) {
    fields.shift_remove("stream_options");
    if fields.get("tool_choice").is_some_and(|choice| choice == "required") {
        fields.insert("tool_choice".into(), json!("any"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assistant_message_separates_tool_and_user() {
        let found = body(json!({
            "messages": [
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": []},
                {"role": "tool", "content": "b"},
                {"role": "tool", "content": "c"},
                {"role": "user", "content": "d"},
                {"role": "assistant", "content": "e"},
            ],
            "tool_choice": "required",
            "stream": true,
            "stream_options": {"include_usage": true},
        }));
        let expected = json!({
            "messages": [
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": "", "tool_calls": []},
                {"role": "tool", "content": "b"},
                {"role": "tool", "content": "c"},
                {"role": "assistant", "content": BRIDGE},
                {"role": "user", "content": "d"},
                {"role": "assistant", "content": "e", "prefix": true},
            ],
            "tool_choice": "any",
            "stream": true,
        });
        assert_eq!(found.to_string(), expected.to_string());
    }
}
