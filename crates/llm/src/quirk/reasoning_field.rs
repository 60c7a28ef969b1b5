//! OpenRouter, Groq and others accept reasoning in the field `reasoning`.

use serde_json::Value;

use super::messages::messages;

pub(super) fn body(mut body: Value) -> Value {
    for message in messages(&mut body) {
        if let Some(fields) = message.as_object_mut()
            && let Some(thought) = fields.shift_remove("reasoning_content")
        {
            fields.insert("reasoning".into(), thought);
        }
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_reasoning_field_is_renamed() {
        let found = body(json!({"messages": [
            {"role": "assistant", "content": "a", "reasoning_content": "hm"},
            {"role": "user", "content": "b"},
        ]}));
        let expected = json!({"messages": [
            {"role": "assistant", "content": "a", "reasoning": "hm"},
            {"role": "user", "content": "b"},
        ]});
        assert_eq!(found, expected);
    }
}
