//! Mistral refuses what it does not know, and a user who speaks right after a tool.

use serde_json::{Map, Value, json};

/// What the model is made to say between a tool's answer and the user.
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
    // A last word of the model's is one to be continued.
    if let Some(last) = kept.last_mut().filter(|last| last["role"] == "assistant") {
        last["prefix"] = json!(true);
    }
    if let Some(fields) = body.as_object_mut() {
        fields.insert("messages".into(), Value::Array(kept));
        refused(fields);
    }
    body
}

fn refused(fields: &mut Map<String, Value>) {
    fields.shift_remove("stream_options");
    if fields.get("tool_choice").is_some_and(|choice| choice == "required") {
        fields.insert("tool_choice".into(), json!("any"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_speaks_between_a_tool_and_the_user() {
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
