//! A call of a server's tool through the search tool: as the model writes it, and as it is recorded.
//!
//! It is recorded like a direct call of the tool, so that rules, clients and the detection of repetitions see that tool.
//! A fact in the metadata says that the model wrote the other form, and later requests contain that form.

use codewright_proto::{Map, ToolState};
use serde_json::{Value, json};

/// The name of the search tool. The name of a server's tool contains `_`, so none is equal.
pub(crate) const TOOL: &str = "mcp";
/// The argument that names the tool of a call.
pub(crate) const NAME: &str = "tool";
/// The argument with the arguments of that tool.
pub(crate) const ARGUMENTS: &str = "arguments";
/// The metadata key whose value is the tool that the model called.
const THROUGH: &str = "through";

/// Returns the tool that a call of the search tool names, and its arguments. Models also write the arguments as text, or
/// leave them out.
pub(crate) fn inner_call(input: &Value) -> Option<(&str, Value)> {
    let name = input.get(NAME)?.as_str().map(str::trim).filter(|name| !name.is_empty())?;
    let arguments = match input.get(ARGUMENTS) {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(Value::String(text)) if text.trim().is_empty() => Value::Object(Map::new()),
        Some(Value::String(text)) => serde_json::from_str(text).ok()?,
        Some(arguments) => arguments.clone(),
    };
    arguments.is_object().then_some((name, arguments))
}

/// Returns the arguments of the search tool for a call of a tool.
pub(crate) fn outer_arguments(tool: &str, input: &Value) -> Value {
    json!({ NAME: tool, ARGUMENTS: input })
}

/// Records that a call was made through the search tool.
pub(crate) fn mark(state: &mut ToolState) {
    let metadata = match state {
        ToolState::Pending { .. } => return,
        ToolState::Completed { metadata, .. } => metadata,
        ToolState::Running { metadata, .. } | ToolState::Error { metadata, .. } => {
            metadata.get_or_insert_default()
        }
    };
    metadata.insert(THROUGH.to_owned(), TOOL.into());
}

/// Reports whether a call was made through the search tool.
pub(crate) fn is_marked(state: &ToolState) -> bool {
    let metadata = match state {
        ToolState::Pending { .. } => None,
        ToolState::Completed { metadata, .. } => Some(metadata),
        ToolState::Running { metadata, .. } | ToolState::Error { metadata, .. } => metadata.as_ref(),
    };
    metadata.and_then(|metadata| metadata.get(THROUGH)).is_some_and(|value| value == TOOL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_may_be_missing_or_written_as_text() {
        for (input, expected) in [
            (json!({"tool": "s_a", "arguments": {"x": 1}}), Some(("s_a", json!({"x": 1})))),
            (json!({"tool": " s_a ", "arguments": "{\"x\": 1}"}), Some(("s_a", json!({"x": 1})))),
            (json!({"tool": "s_a"}), Some(("s_a", json!({})))),
            (json!({"tool": "s_a", "arguments": null}), Some(("s_a", json!({})))),
            (json!({"tool": "s_a", "arguments": [1]}), None),
            (json!({"tool": "s_a", "arguments": "text"}), None),
            (json!({"tool": ""}), None),
            (json!({"search": "x"}), None),
            (json!("x"), None),
        ] {
            assert_eq!(inner_call(&input), expected, "{input}");
        }
        let outer = outer_arguments("s_a", &json!({"x": 1}));
        assert_eq!(outer.to_string(), r#"{"tool":"s_a","arguments":{"x":1}}"#);
    }
}
