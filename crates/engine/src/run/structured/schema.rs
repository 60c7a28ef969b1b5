//! Checks whether a value matches a JSON schema.
//!
//! The validation keywords of draft 2020-12 are supported, and `$ref` within the schema. Annotations (`format`,
//! `title`, …), unknown keywords and invalid schemas are ignored, because the model's server has already accepted the
//! schema.

use regex::Regex;
use serde_json::{Map, Value};

/// The depth of nested schemas that is checked. References may form a cycle.
const MAX_DEPTH: usize = 64;
/// The characters of an invalid value that are quoted to the model.
const MAX_QUOTED_CHARS: usize = 200;

/// Returns where and why the value does not match.
pub(crate) fn check(schema: &Value, value: &Value) -> Result<(), String> {
    Schema { root: schema, depth: 0 }.check(schema, value, "")
}

#[derive(Clone, Copy)]
struct Schema<'a> {
    root: &'a Value,
    depth: usize,
}

impl Schema<'_> {
    fn check(self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        if self.depth >= MAX_DEPTH {
            return Ok(());
        }
        let deeper = Self { depth: self.depth + 1, ..self };
        let schema = match schema {
            Value::Bool(false) => return Err(fault(at, "nothing is allowed here", value)),
            Value::Object(schema) => schema,
            Value::Bool(true) | Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Ok(());
            }
        };
        if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|name| self.named(name)) {
            deeper.check(target, value, at)?;
        }
        has_type(schema, value, at)?;
        deeper.combined(schema, value, at)?;
        match value {
            Value::Object(object) => deeper.object(schema, object, at),
            Value::Array(list) => deeper.list(schema, list, at),
            Value::String(text) => string(schema, text, at),
            Value::Number(_) => number(schema, value, at),
            Value::Null | Value::Bool(_) => Ok(()),
        }
    }

    /// Returns the schema at `#/some/path`.
    fn named(&self, name: &str) -> Option<&Value> {
        self.root.pointer(name.strip_prefix('#')?)
    }

    fn combined(self, schema: &Map<String, Value>, value: &Value, at: &str) -> Result<(), String> {
        let list = |word: &str| schema.get(word).and_then(Value::as_array);
        for part in list("allOf").into_iter().flatten() {
            self.check(part, value, at)?;
        }
        if let Some(parts) = list("anyOf") {
            let mut reasons = parts.iter().map(|part| self.check(part, value, at));
            if !reasons.any(|reason| reason.is_ok()) {
                return Err(fault(at, "it fits none of the alternatives", value));
            }
        }
        if let Some(parts) = list("oneOf") {
            let fitting = parts.iter().filter(|part| self.check(part, value, at).is_ok()).count();
            if fitting != 1 {
                return Err(fault(
                    at,
                    &format!("it fits {fitting} of the alternatives instead of one"),
                    value,
                ));
            }
        }
        if schema.get("not").is_some_and(|part| self.check(part, value, at).is_ok()) {
            return Err(fault(at, "it is what is excluded", value));
        }
        if let Some(condition) = schema.get("if") {
            let word = if self.check(condition, value, at).is_ok() { "then" } else { "else" };
            if let Some(part) = schema.get(word) {
                self.check(part, value, at)?;
            }
        }
        Ok(())
    }

    fn object(
        self,
        schema: &Map<String, Value>,
        object: &Map<String, Value>,
        at: &str,
    ) -> Result<(), String> {
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            if name.as_str().is_some_and(|name| !object.contains_key(name)) {
                return Err(format!("{}: {name} is missing", place(at)));
            }
        }
        within(schema, &PROPERTIES, object.len() as f64, at)?;
        let properties = schema.get("properties").and_then(Value::as_object);
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let patterns: Vec<_> = patterns
            .into_iter()
            .flatten()
            .filter_map(|(pattern, part)| Some((Regex::new(pattern).ok()?, part)))
            .collect();
        for (name, value) in object {
            let at = format!("{at}/{name}");
            let own = properties.and_then(|properties| properties.get(name));
            let matching: Vec<_> = patterns
                .iter()
                .filter(|(pattern, _)| pattern.is_match(name))
                .map(|(_, part)| *part)
                .collect();
            let known = own.is_some() || !matching.is_empty();
            for part in own.into_iter().chain(matching) {
                self.check(part, value, &at)?;
            }
            if let (false, Some(rest)) = (known, schema.get("additionalProperties")) {
                self.check(rest, value, &at)?;
            }
        }
        Ok(())
    }

    fn list(self, schema: &Map<String, Value>, list: &[Value], at: &str) -> Result<(), String> {
        within(schema, &ITEMS, list.len() as f64, at)?;
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            let twice = list.iter().enumerate().find(|(index, item)| list[..*index].contains(item));
            if let Some((_, item)) = twice {
                return Err(fault(at, "an item is there twice", item));
            }
        }
        let first = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (index, item) in list.iter().enumerate() {
            if let Some(part) = first.get(index).or_else(|| schema.get("items")) {
                self.check(part, item, &format!("{at}/{index}"))?;
            }
        }
        Ok(())
    }
}

fn has_type(schema: &Map<String, Value>, value: &Value, at: &str) -> Result<(), String> {
    let is = |name: &Value| match name.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("number") => value.is_number(),
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        Some(_) | None => true,
    };
    let fits = match schema.get("type") {
        Some(Value::Array(names)) => names.iter().any(is),
        Some(name) => is(name),
        None => true,
    };
    if !fits {
        let wanted = schema.get("type").map(Value::to_string).unwrap_or_default();
        return Err(fault(at, &format!("expected the type {wanted}"), value));
    }
    if let Some(options) = schema.get("enum").and_then(Value::as_array)
        && !options.contains(value)
    {
        return Err(fault(at, &format!("expected one of {}", Value::from(options.clone())), value));
    }
    match schema.get("const") {
        Some(only) if only != value => Err(fault(at, &format!("expected {only}"), value)),
        Some(_) | None => Ok(()),
    }
}

fn string(schema: &Map<String, Value>, text: &str, at: &str) -> Result<(), String> {
    within(schema, &LENGTH, text.chars().count() as f64, at)?;
    let pattern = schema.get("pattern").and_then(Value::as_str);
    match pattern.and_then(|pattern| Regex::new(pattern).ok()) {
        Some(pattern) if !pattern.is_match(text) => {
            Err(fault(at, &format!("expected a match of `{pattern}`"), &text.into()))
        }
        Some(_) | None => Ok(()),
    }
}

fn number(schema: &Map<String, Value>, value: &Value, at: &str) -> Result<(), String> {
    let Some(number) = value.as_f64() else { return Ok(()) };
    within(schema, &NUMBER, number, at)?;
    let bound = |word: &str| schema.get(word).and_then(Value::as_f64);
    if bound("exclusiveMinimum").is_some_and(|least| number <= least) {
        return Err(fault(at, "it is too small", value));
    }
    if bound("exclusiveMaximum").is_some_and(|most| number >= most) {
        return Err(fault(at, "it is too large", value));
    }
    let step = bound("multipleOf").filter(|step| *step > 0.0);
    if let Some(step) = step
        && ((number / step).round() * step - number).abs() > 1e-9 * number.abs().max(1.0)
    {
        return Err(fault(at, &format!("expected a multiple of {step}"), value));
    }
    Ok(())
}

/// The keywords of a range, and its unit with a leading space.
struct Range {
    least: &'static str,
    most: &'static str,
    unit: &'static str,
}

const PROPERTIES: Range = Range { least: "minProperties", most: "maxProperties", unit: " properties" };
const ITEMS: Range = Range { least: "minItems", most: "maxItems", unit: " items" };
const LENGTH: Range = Range { least: "minLength", most: "maxLength", unit: " characters" };
const NUMBER: Range = Range { least: "minimum", most: "maximum", unit: "" };

/// Checks a number against a range of a schema.
fn within(schema: &Map<String, Value>, range: &Range, number: f64, at: &str) -> Result<(), String> {
    let bound = |word: &str| schema.get(word).and_then(Value::as_f64);
    let unit = range.unit;
    if let Some(least) = bound(range.least).filter(|least| number < *least) {
        return Err(format!("{}: expected at least {least}{unit}, got {number}", place(at)));
    }
    if let Some(most) = bound(range.most).filter(|most| number > *most) {
        return Err(format!("{}: expected at most {most}{unit}, got {number}", place(at)));
    }
    Ok(())
}

fn place(at: &str) -> String {
    if at.is_empty() { "the value".to_owned() } else { format!("`{at}`") }
}

fn fault(at: &str, reason: &str, value: &Value) -> String {
    let text = value.to_string();
    let quoted = match text.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    };
    format!("{}: {reason}, got {quoted}", place(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn fits(schema: &Value, values: &[Value]) {
        for value in values {
            assert_eq!(check(schema, value), Ok(()), "{value}");
        }
    }

    #[track_caller]
    fn fails(schema: &Value, value: Value, reason: &str) {
        let error = check(schema, &value).expect_err("it does not fit");
        assert!(error.contains(reason), "{error}");
    }

    #[test]
    fn an_object_has_the_required_properties_and_no_excluded_ones() {
        let schema = json!({
            "type": "object",
            "properties": { "answer": { "type": "number" }, "kind": { "enum": ["a", "b"] } },
            "required": ["answer"],
            "additionalProperties": false,
        });
        fits(&schema, &[json!({ "answer": 42 }), json!({ "answer": 1.5, "kind": "a" })]);
        fails(&schema, json!({}), "the value: \"answer\" is missing");
        fails(&schema, json!({ "answer": "42" }), "`/answer`: expected the type \"number\", got \"42\"");
        fails(&schema, json!({ "answer": 1, "kind": "c" }), "expected one of [\"a\",\"b\"]");
        fails(&schema, json!({ "answer": 1, "more": 1 }), "`/more`: nothing is allowed here");
        fails(&schema, json!([1]), "expected the type \"object\"");
    }

    #[test]
    fn lists_strings_and_numbers_have_bounds() {
        let schema = json!({
            "type": "array", "minItems": 1, "maxItems": 3, "uniqueItems": true,
            "prefixItems": [{ "type": "string", "minLength": 2, "pattern": "^[a-z]+$" }],
            "items": { "type": "integer", "minimum": 1, "exclusiveMaximum": 10, "multipleOf": 2 },
        });
        fits(&schema, &[json!(["ab"]), json!(["ab", 2, 8.0])]);
        fails(&schema, json!([]), "at least 1 items");
        fails(&schema, json!(["ab", 2, 4, 6]), "at most 3 items");
        fails(&schema, json!(["ab", 2, 2]), "twice");
        fails(&schema, json!(["a"]), "at least 2 characters");
        fails(&schema, json!(["AB"]), "a match of");
        fails(&schema, json!(["ab", 10]), "too large");
        fails(&schema, json!(["ab", 3]), "a multiple of 2");
        fails(&schema, json!(["ab", 2.5]), "`/1`: expected the type \"integer\"");
    }

    #[test]
    fn schemas_are_combined_and_referenced() {
        let tree = json!({
            "$ref": "#/$defs/node",
            "$defs": { "node": {
                "type": "object",
                "properties": { "next": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/node" }] } },
                "required": ["next"],
            } },
        });
        fits(&tree, &[json!({ "next": null }), json!({ "next": { "next": null } })]);
        fails(&tree, json!({ "next": { "next": 1 } }), "`/next`: it fits none of the alternatives");
        let one = json!({ "oneOf": [{ "type": "integer" }, { "type": "number", "minimum": 5 }], "not": { "const": 3 } });
        fits(&one, &[json!(1), json!(5.5)]);
        fails(&one, json!(7), "it fits 2 of the alternatives");
        fails(&one, json!(3), "excluded");
        let nullable = json!({ "type": ["string", "null"] });
        fits(&nullable, &[json!(null), json!("x")]);
        fails(&nullable, json!(1), "expected the type");
    }

    #[test]
    fn a_cyclic_or_invalid_schema_accepts_everything() {
        let circle = json!({ "$ref": "#" });
        fits(&circle, &[json!(1)]);
        fits(
            &json!({ "type": 5, "pattern": "(", "required": "x", "$ref": "elsewhere" }),
            &[json!("a"), json!({})],
        );
        fits(&json!(true), &[json!(1)]);
    }
}
