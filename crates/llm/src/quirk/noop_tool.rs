//! LiteLLM proxies reject a conversation with calls that declares no tools.

use serde_json::{Value, json};

use super::messages::messages;

pub(super) fn body(mut body: Value) -> Value {
    let has_tools = body.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty());
    let has_calls = messages(&mut body).iter().any(|message| {
        message["role"] == "tool" || message["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty())
    });
    if has_calls && !has_tools {
        body["tools"] = json!([{
            "type": "function",
            "function": {
                "name": "_noop",
                "description": "Does nothing. Some proxies want a tool to be listed; leave it alone.",
                "parameters": {"type": "object", "properties": {}},
            },
        }]);
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_declared_only_if_needed() {
        let call = json!({"role": "assistant", "tool_calls": [{"id": "c"}]});
        let answer = json!({"role": "tool", "tool_call_id": "c"});
        let user = json!({"role": "user", "content": "hi"});
        for (given, expected) in [
            (json!({"messages": [call]}), Some("_noop")),
            (json!({"messages": [answer], "tools": []}), Some("_noop")),
            (json!({"messages": [user]}), None),
            (json!({"messages": [call], "tools": [{"function": {"name": "read"}}]}), Some("read")),
        ] {
            let found = body(given.clone());
            assert_eq!(found.pointer("/tools/0/function/name").and_then(Value::as_str), expected, "{given}");
            assert_eq!(found.get("tools").is_some(), expected.is_some(), "{given}");
        }
    }
}
