//! Reads the arguments of a call as a model wrote them.
//!
//! Models write raw line breaks into strings, commas before closing brackets, fences around the value, or a second value
//! after it. Such arguments are read if only one reading fits the schema.

use serde_json::{Map, Value};

use crate::schema::conform;

/// The number of characters of invalid arguments that are quoted to the model.
const MAX_QUOTED_CHARS: usize = 2000;
/// The largest number of values in one text.
const MAX_VALUES: usize = 16;

/// Arguments that were read.
#[derive(Debug, Clone, PartialEq)]
pub struct Arguments {
    /// The value, corrected if it needs to and only one correction fits the schema. Otherwise it is as the model wrote it.
    pub input: Value,
    /// Whether the value differs from what the model wrote.
    pub is_repaired: bool,
}

/// Reads arguments for a tool with this schema. Empty arguments are an empty object.
///
/// # Errors
///
/// Fails if the text is not JSON and has no single reading. The message quotes it.
pub fn arguments(text: &str, schema: &Value) -> Result<Arguments, String> {
    if text.trim().is_empty() {
        return Ok(Arguments { input: Value::Object(Map::new()), is_repaired: false });
    }
    match serde_json::from_str::<Value>(text) {
        Ok(written) => Ok(match conform("", schema, written.clone()) {
            Ok(input) => Arguments { is_repaired: input != written, input },
            // The tool or its server reports the reason.
            Err(_) => Arguments { input: written, is_repaired: false },
        }),
        Err(error) => {
            let quoted: String = text.chars().take(MAX_QUOTED_CHARS).collect();
            let failed = || format!("the arguments are not valid JSON ({error}): {quoted}");
            let read = values(text).map_err(|_| failed())?;
            let single = if read.len() == 1 { read.first().cloned() } else { None };
            let mut readings: Vec<Value> = Vec::new();
            for input in read.into_iter().filter_map(|value| conform("", schema, value).ok()) {
                if !readings.contains(&input) {
                    readings.push(input);
                }
            }
            let input = if readings.len() == 1 { readings.pop() } else { single };
            input.map(|input| Arguments { input, is_repaired: true }).ok_or_else(failed)
        }
    }
}

/// Returns the JSON values in a text, which may contain the mistakes of models.
///
/// # Errors
///
/// Fails if there is anything else in the text.
pub(crate) fn values(text: &str) -> Result<Vec<Value>, serde_json::Error> {
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(vec![value]);
    }
    let text = strict(unfenced(text.trim()));
    let mut stream = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let mut values = Vec::new();
    while values.len() < MAX_VALUES {
        match stream.next() {
            Some(Ok(value)) => values.push(value),
            Some(Err(_)) if !values.is_empty() && is_surplus(&text[stream.byte_offset()..]) => break,
            Some(Err(error)) => return Err(error),
            None => break,
        }
    }
    Ok(values)
}

/// Reports whether a text after a value contains only closing brackets and marks of chat templates, such as
/// `}}<|im_end|>`.
fn is_surplus(text: &str) -> bool {
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = match rest.strip_prefix('<') {
            Some(_) => rest.find('>').map(|at| at + 1),
            None => rest.starts_with(['}', ']']).then_some(1),
        };
        let Some(end) = end else { return false };
        rest = rest[end..].trim_start();
    }
    true
}

fn unfenced(text: &str) -> &str {
    let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    // Protocols that end arguments with their value drop the second fence.
    inner.map(str::trim).map_or(text, |inner| inner.strip_suffix("```").unwrap_or(inner).trim())
}

/// Escapes control characters in strings, and removes commas before closing brackets.
fn strict(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut in_string, mut is_escaped) = (false, false);
    for (at, c) in text.char_indices() {
        if in_string {
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '"' => in_string = false,
                _ => {}
            }
            match c {
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
                c => out.push(c),
            }
            continue;
        }
        in_string = c == '"';
        let is_last = c == ',' && text[at + 1..].trim_start().starts_with(['}', ']']);
        if !is_last {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({"type": "object", "properties": {"path": {"type": "string"}, "lines": {"type": "array"}}, "required": ["path"]})
    }

    #[test]
    fn arguments_with_mistakes_are_read() {
        for (text, expected, is_repaired) in [
            (r#"{"path":"a"}"#, json!({"path": "a"}), false),
            ("", json!({}), false),
            ("{\"path\":\"a\nb\tc\"}", json!({"path": "a\nb\tc"}), true),
            (r#"{"path":"a",}"#, json!({"path": "a"}), true),
            (r#"{"path":"a, ]","lines":[1,2,],}"#, json!({"path": "a, ]", "lines": [1, 2]}), true),
            (r#"{"path":"a"}{"path":"a"}"#, json!({"path": "a"}), true),
            (r#"{"path":"a"} {"other":"b"}"#, json!({"path": "a"}), true),
            (r#"{}{"path":"b"}"#, json!({"path": "b"}), true),
            (r#"{"path":"a"}}}<|im_end|> </tool_call>"#, json!({"path": "a"}), true),
            ("```json\n{\"path\":\"a\"}\n```", json!({"path": "a"}), true),
            ("```json\n{\"path\":\"a\"}", json!({"path": "a"}), true),
            (r#""{\"path\":\"a\"}""#, json!({"path": "a"}), true),
            (r#"{"path":"a","lines":"[1]"}"#, json!({"path": "a", "lines": [1]}), true),
            // What does not fit stays as it is, and its receiver reports it.
            (r#"{"lines":3}"#, json!({"lines": 3}), false),
        ] {
            assert_eq!(arguments(text, &schema()), Ok(Arguments { input: expected, is_repaired }), "{text}");
        }
    }

    #[test]
    fn arguments_with_several_readings_or_none_are_refused() {
        for text in
            [r#"{"path":"a"}{"path":"b"}"#, r#"{"path":"a""#, r#"{"path":"a"} and more"#, "{path: a}", "{,}x"]
        {
            let error = arguments(text, &schema()).unwrap_err();
            assert!(
                error.starts_with("the arguments are not valid JSON (") && error.contains(text),
                "{error}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,80}") {
            drop(arguments(&text, &schema()));
        }

        #[test]
        fn valid_json_stays_as_it_is(text in r#"[ -~\n]{0,20}"#) {
            let value = json!({"path": text, "more": [text]});
            let read = arguments(&value.to_string(), &schema()).unwrap();
            prop_assert_eq!(read, Arguments { input: value, is_repaired: false });
        }
    }
}
