//! Validation of arguments against a tool's schema.
//!
//! It covers the part of JSON Schema that tools use: objects, arrays, strings, numbers with bounds, booleans
//! and enums. The wording of a mismatch must stay, because models and clients know it.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::ToolError;

/// The number of characters of an invalid value that are quoted.
const MAX_QUOTED_CHARS: usize = 200;

/// Validates arguments, and corrects small mistakes.
///
/// Other spellings of a key are accepted (`file_path` and `path` for `filePath`), `null` means that a value
/// is missing, and an integer may have a fraction of zero. Keys that are not in the schema are kept.
///
/// # Errors
///
/// Returns the first mismatch and its path.
pub fn conform(tool: &str, schema: &Value, mut input: Value) -> Result<Value, ToolError> {
    let mut at = Vec::new();
    match check(schema, &mut input, &mut at) {
        Ok(()) => Ok(input),
        Err(reason) => Err(mismatch(tool, &reason, &at)),
    }
}

/// Validates arguments and deserializes them.
pub(crate) fn decode<T: DeserializeOwned>(tool: &str, schema: &Value, input: Value) -> Result<T, ToolError> {
    let input = conform(tool, schema, input)?;
    serde_json::from_value(input).map_err(|error| mismatch(tool, &error.to_string(), &[]))
}

fn mismatch(tool: &str, reason: &str, at: &[Step]) -> ToolError {
    let place: String = at.iter().map(Step::text).collect();
    let place = if place.is_empty() { place } else { format!("\n  at {place}") };
    ToolError::Model(format!(
        "The {tool} tool was called with invalid arguments: SchemaError({reason}{place}).\n\
         Please rewrite the input so it satisfies the expected schema."
    ))
}

enum Step {
    Key(String),
    Index(usize),
}

impl Step {
    fn text(&self) -> String {
        match self {
            Self::Key(key) => format!("[{}]", Value::from(key.as_str())),
            Self::Index(index) => format!("[{index}]"),
        }
    }
}

fn check(schema: &Value, value: &mut Value, at: &mut Vec<Step>) -> Result<(), String> {
    if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        return one_of(options, value);
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => object(schema, value, at),
        Some("array") => array(schema, value, at),
        Some("string") => expect(value.is_string(), "string", value),
        Some("boolean") => expect(value.is_boolean(), "boolean", value),
        Some("number") => expect(value.is_number(), "number", value).and_then(|()| bounds(schema, value)),
        Some("integer") => integer(schema, value),
        Some(_) | None => Ok(()),
    }
}

fn expect(holds: bool, what: &str, value: &Value) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("Expected {what}, got {}", quoted(value))) }
}

fn quoted(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

fn one_of(options: &[Value], value: &Value) -> Result<(), String> {
    let names: Vec<String> = options.iter().map(Value::to_string).collect();
    expect(options.contains(value), &names.join(" | "), value)
}

fn object(schema: &Value, value: &mut Value, at: &mut Vec<Step>) -> Result<(), String> {
    expect(value.is_object(), "object", value)?;
    let (Some(fields), Some(properties)) =
        (value.as_object_mut(), schema.get("properties").and_then(Value::as_object))
    else {
        return Ok(());
    };
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (key, part) in properties {
        rename_spelling(fields, key, properties);
        let is_required = required.contains(&key.as_str());
        if !is_required && fields.get(key).is_some_and(Value::is_null) {
            fields.remove(key);
        }
        at.push(Step::Key(key.clone()));
        match fields.get_mut(key) {
            Some(field) => check(part, field, at)?,
            None if is_required => return Err("Missing key".to_owned()),
            None => {}
        }
        at.pop();
    }
    Ok(())
}

fn rename_spelling(fields: &mut Map<String, Value>, key: &str, properties: &Map<String, Value>) {
    if fields.contains_key(key) {
        return;
    }
    let plain = if key == "filePath" { Some("path") } else { None };
    let spellings = [Some(snake(key)), plain.map(str::to_owned)];
    for spelling in spellings.into_iter().flatten().filter(|name| !properties.contains_key(name)) {
        if let Some(value) = fields.remove(&spelling) {
            fields.insert(key.to_owned(), value);
            return;
        }
    }
}

fn snake(key: &str) -> String {
    let mut out = String::new();
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

fn array(schema: &Value, value: &mut Value, at: &mut Vec<Step>) -> Result<(), String> {
    expect(value.is_array(), "array", value)?;
    let Some(items) = schema.get("items") else { return Ok(()) };
    for (index, item) in value.as_array_mut().into_iter().flatten().enumerate() {
        at.push(Step::Index(index));
        check(items, item, at)?;
        at.pop();
    }
    Ok(())
}

fn integer(schema: &Value, value: &mut Value) -> Result<(), String> {
    expect(value.is_number(), "number", value)?;
    bounds(schema, value)?;
    if value.is_f64() {
        let number = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 9e15);
        let Some(number) = number else {
            return Err(format!("Expected an integer, got {}", quoted(value)));
        };
        #[expect(clippy::cast_possible_truncation, reason = "an integer and small, checked above")]
        let number = number as i64;
        *value = number.into();
    }
    Ok(())
}

fn bounds(schema: &Value, value: &Value) -> Result<(), String> {
    let Some(number) = value.as_f64() else { return Ok(()) };
    type Holds = fn(&f64, &f64) -> bool;
    let rules: [(&str, Holds, &str); 3] = [
        ("exclusiveMinimum", f64::gt, "greater than"),
        ("minimum", f64::ge, "greater than or equal to"),
        ("maximum", f64::le, "less than or equal to"),
    ];
    for (key, holds, words) in rules {
        if let Some(bound) = schema.get(key)
            && bound.as_f64().is_some_and(|bound| !holds(&number, &bound))
        {
            return Err(format!("Expected a value {words} {bound}, got {}", quoted(value)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "filePath": {"type": "string"},
                "offset": {"minimum": 0, "type": "integer", "maximum": 100},
                "timeout": {"exclusiveMinimum": 0, "type": "integer"},
                "mode": {"type": "string", "enum": ["a", "b"]},
                "todos": {"type": "array", "items": {
                    "type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"],
                }},
            },
            "required": ["filePath"],
        })
    }

    #[test]
    fn a_mismatch_is_reported_with_its_path() {
        let cases = [
            (json!({"file": "x"}), "Missing key\n  at [\"filePath\"]"),
            (json!({"filePath": 5}), "Expected string, got 5\n  at [\"filePath\"]"),
            (json!({"filePath": null}), "Expected string, got null\n  at [\"filePath\"]"),
            (
                json!({"filePath": "x", "offset": -1}),
                "Expected a value greater than or equal to 0, got -1\n  at [\"offset\"]",
            ),
            (json!({"filePath": "x", "offset": 1.5}), "Expected an integer, got 1.5\n  at [\"offset\"]"),
            (json!({"filePath": "x", "offset": "3"}), "Expected number, got \"3\"\n  at [\"offset\"]"),
            (
                json!({"filePath": "x", "timeout": 0}),
                "Expected a value greater than 0, got 0\n  at [\"timeout\"]",
            ),
            (json!({"filePath": "x", "mode": "c"}), "Expected \"a\" | \"b\", got \"c\"\n  at [\"mode\"]"),
            (json!({"filePath": "x", "todos": [{}]}), "Missing key\n  at [\"todos\"][0][\"content\"]"),
            (json!("x"), "Expected object, got \"x\""),
        ];
        for (input, reason) in cases {
            let error = conform("read", &schema(), input).expect_err(reason);
            let expected = format!(
                "The read tool was called with invalid arguments: SchemaError({reason}).\n\
                 Please rewrite the input so it satisfies the expected schema."
            );
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn small_mistakes_are_corrected() {
        let cases = [
            (json!({"filePath": "x", "extra": 1}), json!({"filePath": "x", "extra": 1})),
            (json!({"file_path": "x"}), json!({"filePath": "x"})),
            (json!({"path": "x"}), json!({"filePath": "x"})),
            (json!({"filePath": "x", "offset": null}), json!({"filePath": "x"})),
            (json!({"filePath": "x", "offset": 3.0}), json!({"filePath": "x", "offset": 3})),
        ];
        for (input, expected) in cases {
            assert_eq!(conform("read", &schema(), input).expect("fits"), expected);
        }
    }
}
