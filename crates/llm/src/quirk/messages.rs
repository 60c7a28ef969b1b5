//! Access to the messages of a chat body.

use serde_json::Value;

/// Returns the messages of a chat body.
pub(super) fn messages(body: &mut Value) -> &mut [Value] {
    body.get_mut("messages").and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default()
}
