//! The JSON Schema dialect for tools in this protocol.

use serde_json::{Map, Value, json};

/// Annotations and bounds that OpenCode omits for this protocol.
const OMITTED: &[&str] =
    &["$schema", "default", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
/// Keywords whose value maps arbitrary names to schemas, so that its keys are not keywords.
const NAMED: &[&str] = &["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
/// Keywords whose value is data, even if it looks like a schema.
const DATA: &[&str] = &["enum", "const", "examples"];

/// Converts a tool's schema: an object with `properties`, without bounds.
pub(super) fn dialect(schema: &Value) -> Value {
    let mut schema = clean(schema);
    if let Some(root) = schema.as_object_mut()
        && root.get("type").is_none_or(|kind| kind == "object")
        && !root.contains_key("properties")
    {
        root.insert("properties".into(), json!({}));
        root.entry("type").or_insert(json!("object"));
    }
    schema
}

fn clean(schema: &Value) -> Value {
    match schema {
        Value::Object(keywords) => {
            let kept = keywords.iter().filter(|(name, _)| !OMITTED.contains(&name.as_str()));
            kept.map(|(name, value)| (name.clone(), keyword(name, value))).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(clean).collect(),
        other => other.clone(),
    }
}

fn keyword(name: &str, value: &Value) -> Value {
    match value {
        _ if DATA.contains(&name) => value.clone(),
        Value::Object(named) if NAMED.contains(&name) => {
            named.iter().map(|(name, schema)| (name.clone(), clean(schema))).collect::<Map<_, _>>().into()
        }
        value => clean(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_removed_and_names_are_kept() {
        for (schema, expected) in [
            (
                json!({"$schema": "s", "type": "object", "properties": {
                    "minimum": {"type": "integer", "minimum": 1, "maximum": 9, "default": 2},
                    "list": {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0}},
                    "kind": {"enum": [{"minimum": 1}]}}, "required": ["minimum"]}),
                json!({"type": "object", "properties": {
                    "minimum": {"type": "integer"},
                    "list": {"type": "array", "items": {"type": "number"}},
                    "kind": {"enum": [{"minimum": 1}]}}, "required": ["minimum"]}),
            ),
            (json!({"type": "object"}), json!({"type": "object", "properties": {}})),
            (json!({}), json!({"properties": {}, "type": "object"})),
            (json!({"anyOf": [{"maximum": 1}]}), json!({"anyOf": [{}], "properties": {}, "type": "object"})),
            (json!({"type": "string"}), json!({"type": "string"})),
            (json!(true), json!(true)),
        ] {
            assert_eq!(dialect(&schema), expected);
        }
    }
}
