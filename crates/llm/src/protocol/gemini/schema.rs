//! Converts JSON Schema to the subset that Gemini accepts.
//!
//! The schemas of tools may contain anything, and the server rejects a request with an unknown
//! keyword. Therefore known keywords are copied instead of unknown ones removed. Keywords that
//! Gemini lacks are replaced by similar ones.

use serde_json::{Map, Value, json};

/// Limit of nesting. Deeper schemas accept any value. Without a limit, schemas that refer to
/// themselves would never end.
const DEPTH_LIMIT: usize = 32;
/// Limit of the schemas in one declaration, because references to references multiply.
const NODES_LIMIT: usize = 4096;

/// Returns the schema of a tool's arguments, or `None` for a tool without arguments.
pub(super) fn parameters(schema: &Value) -> Option<Value> {
    let mut lowering = Lowering { root: schema, nodes: 0 };
    let mut lowered = lowering.schema(schema, 0);
    // Arguments are always an object.
    if lowered["type"] != "object" {
        return None;
    }
    let properties = lowered["properties"].as_object();
    if properties.is_none_or(Map::is_empty) {
        // The server rejects an object without properties here. Omitting it means the same.
        return None;
    }
    if let Some(object) = lowered.as_object_mut() {
        object.shift_remove("nullable");
    }
    Some(lowered)
}

struct Lowering<'a> {
    root: &'a Value,
    nodes: usize,
}

impl Lowering<'_> {
    fn schema(&mut self, schema: &Value, depth: usize) -> Value {
        self.nodes += 1;
        if depth > DEPTH_LIMIT || self.nodes > NODES_LIMIT {
            return json!({"type": "string"});
        }
        // `true` and `{}` accept anything. The server requires a type, and text can express
        // anything.
        let Some(given) = schema.as_object() else { return json!({"type": "string"}) };
        if let Some(target) = given.get("$ref").and_then(Value::as_str).and_then(|to| self.target(to)) {
            let mut lowered = self.schema(&target, depth + 1);
            copy_text(given, &mut lowered);
            return lowered;
        }
        if let Some(merged) = all_of(given) {
            return self.schema(&merged, depth + 1);
        }
        self.object(given, depth)
    }

    fn object(&mut self, given: &Map<String, Value>, depth: usize) -> Value {
        let mut out = Map::new();
        let (kinds, mut nullable) = kinds(given);
        nullable |= given.get("nullable") == Some(&json!(true));
        if let Some(text) = given.get("description").filter(|text| text.is_string()) {
            out.insert("description".into(), text.clone());
        }
        if let Some(required) = required(given) {
            out.insert("required".into(), required);
        }
        match kinds.as_slice() {
            [] => {}
            [kind] => {
                out.insert("type".into(), json!(kind));
            }
            // Several types become several schemas.
            several => {
                let each = several.iter().map(|kind| {
                    let mut one = given.clone();
                    one.shift_remove("description");
                    one.insert("type".into(), json!(kind));
                    self.schema(&Value::Object(one), depth + 1)
                });
                out.insert("anyOf".into(), Value::Array(each.collect()));
                return with_nullable(out, nullable);
            }
        }
        if let Some(values) = values(given) {
            // The server supports lists of values only for text.
            nullable |= listed(given).any(Value::is_null);
            out.insert("type".into(), json!("string"));
            out.insert("enum".into(), values);
            return with_nullable(out, nullable);
        }
        if let Some(choices) = ["anyOf", "oneOf"].iter().find_map(|name| given.get(*name)?.as_array()) {
            let (nulls, rest): (Vec<&Value>, Vec<&Value>) =
                choices.iter().partition(|choice| is_null(choice));
            nullable |= !nulls.is_empty();
            return self.choices(out, rest, nullable, depth);
        }
        self.contents(given, &mut out, depth);
        with_nullable(out, nullable)
    }

    /// Adds alternatives. A single one is merged into the schema.
    fn choices(
        &mut self,
        mut out: Map<String, Value>,
        choices: Vec<&Value>,
        nullable: bool,
        depth: usize,
    ) -> Value {
        let mut lowered: Vec<Value> =
            choices.into_iter().map(|choice| self.schema(choice, depth + 1)).collect();
        if lowered.len() > 1 {
            out.shift_remove("type");
            out.shift_remove("required");
            out.insert("anyOf".into(), Value::Array(lowered));
            return with_nullable(out, nullable);
        }
        if let Some(Value::Object(only)) = lowered.pop() {
            for (name, value) in only {
                out.entry(name).or_insert(value);
            }
        }
        with_nullable(out, nullable)
    }

    /// Adds the properties of an object and the items of a list.
    fn contents(&mut self, given: &Map<String, Value>, out: &mut Map<String, Value>, depth: usize) {
        let is = |out: &Map<String, Value>, kind: &str| out.get("type").is_some_and(|found| found == kind);
        if let Some(properties) = given.get("properties").and_then(Value::as_object) {
            out.entry("type").or_insert_with(|| json!("object"));
            if is(out, "object") {
                let lowered =
                    properties.iter().map(|(name, schema)| (name.clone(), self.schema(schema, depth + 1)));
                let lowered: Map<String, Value> = lowered.collect();
                out.insert("properties".into(), Value::Object(lowered));
            }
        }
        if given.contains_key("items") || given.contains_key("prefixItems") {
            out.entry("type").or_insert_with(|| json!("array"));
        }
        if is(out, "array") {
            let first = |list: &Value| list.as_array().and_then(|list| list.first()).cloned();
            let items = given.get("items").or_else(|| given.get("prefixItems"));
            let items =
                items.map(
                    |items| {
                        if items.is_array() { first(items).unwrap_or(Value::Null) } else { items.clone() }
                    },
                );
            // The server requires the type of a list's items.
            out.insert("items".into(), self.schema(&items.unwrap_or(Value::Null), depth + 1));
        }
        if is(out, "string")
            && let Some(format) =
                given.get("format").filter(|format| matches!(format.as_str(), Some("date-time" | "enum")))
        {
            out.insert("format".into(), format.clone());
        }
        out.entry("type").or_insert_with(|| json!("string"));
    }

    /// Returns the target of a reference within the document.
    fn target(&self, reference: &str) -> Option<Value> {
        crate::fit::target(self.root, reference).cloned()
    }
}

/// Returns whether an alternative is `null`.
fn is_null(choice: &Value) -> bool {
    choice["type"] == "null" || choice.get("const").is_some_and(Value::is_null)
}

/// Removes required names without a property, because the server rejects them.
fn prune(out: &mut Map<String, Value>) {
    let Some(required) = out.get("required").and_then(Value::as_array) else { return };
    let properties = out.get("properties").and_then(Value::as_object);
    let known = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        properties.is_some_and(|properties| properties.contains_key(name))
    };
    let kept: Vec<Value> = required.iter().filter(|name| known(name)).cloned().collect();
    if kept.is_empty() {
        out.shift_remove("required");
    } else {
        out.insert("required".into(), Value::Array(kept));
    }
}

fn with_nullable(mut out: Map<String, Value>, nullable: bool) -> Value {
    prune(&mut out);
    if nullable {
        out.insert("nullable".into(), json!(true));
    }
    Value::Object(out)
}

fn copy_text(given: &Map<String, Value>, lowered: &mut Value) {
    if let Some(text) = given.get("description").filter(|text| text.is_string()) {
        lowered["description"] = text.clone();
    }
}

/// Merges the schemas of an `allOf` with the schema that contains it.
fn all_of(given: &Map<String, Value>) -> Option<Value> {
    let parts = given.get("allOf")?.as_array()?;
    let mut merged = given.clone();
    merged.shift_remove("allOf");
    for part in parts.iter().filter_map(Value::as_object) {
        for (name, value) in part {
            match (merged.get_mut(name), value) {
                (Some(Value::Object(old)), Value::Object(new)) => {
                    old.extend(new.iter().map(|(name, value)| (name.clone(), value.clone())));
                }
                (Some(Value::Array(old)), Value::Array(new)) => old.extend(new.iter().cloned()),
                (Some(_), _) => {}
                (None, value) => drop(merged.insert(name.clone(), value.clone())),
            }
        }
    }
    Some(Value::Object(merged))
}

/// Returns the types of a schema, and whether `null` is one of them.
fn kinds(given: &Map<String, Value>) -> (Vec<String>, bool) {
    const KNOWN: [&str; 6] = ["string", "number", "integer", "boolean", "array", "object"];
    let named: Vec<&str> = match given.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => Vec::new(),
    };
    let nullable = named.contains(&"null");
    let mut kinds: Vec<String> = Vec::new();
    for kind in named.iter().map(|kind| kind.to_ascii_lowercase()) {
        if KNOWN.contains(&kind.as_str()) && !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    (kinds, nullable)
}

fn required(given: &Map<String, Value>) -> Option<Value> {
    let names: Vec<&Value> =
        given.get("required")?.as_array()?.iter().filter(|name| name.is_string()).collect();
    (!names.is_empty()).then(|| json!(names))
}

/// Returns the values of an `enum` or a `const`.
fn listed(given: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let list = given.get("enum").and_then(Value::as_array).into_iter().flatten();
    list.chain(given.get("const"))
}

/// Returns these values as unique texts. The server rejects empty ones.
fn values(given: &Map<String, Value>) -> Option<Value> {
    let mut texts: Vec<String> = Vec::new();
    for value in listed(given) {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Null => continue,
            other => other.to_string(),
        };
        if !text.is_empty() && !texts.contains(&text) {
            texts.push(text);
        }
    }
    (!texts.is_empty()).then(|| json!(texts))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Converts a property. The order of fields matters.
    #[track_caller]
    fn check(given: Value, expected: Value) {
        let schema = json!({"type": "object", "properties": {"p": given}});
        assert_eq!(parameters(&schema).unwrap()["properties"]["p"].to_string(), expected.to_string());
    }

    #[test]
    fn a_declaration_matches_the_recorded_one() {
        let given = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "command": {"description": "c", "type": "string"},
                "timeout": {"description": "t", "type": "integer", "minimum": 0, "exclusiveMinimum": 0,
                    "maximum": 9_007_199_254_740_991_u64, "default": 5},
                "format": {"description": "f", "default": "markdown", "type": "string", "enum": ["text", "html"]},
            },
            "required": ["command"],
            "additionalProperties": false,
        });
        let expected = json!({
            "required": ["command"],
            "type": "object",
            "properties": {
                "command": {"description": "c", "type": "string"},
                "timeout": {"description": "t", "type": "integer"},
                "format": {"description": "f", "type": "string", "enum": ["text", "html"]},
            },
        });
        assert_eq!(parameters(&given).unwrap().to_string(), expected.to_string());
    }

    #[test]
    fn a_tool_without_arguments_has_no_schema() {
        for given in [
            json!({}),
            json!({"type": "object"}),
            json!({"type": "object", "properties": {}, "required": ["x"]}),
            json!({"type": "string"}),
            Value::Null,
            json!(true),
        ] {
            assert_eq!(parameters(&given), None, "{given}");
        }
    }

    #[test]
    fn null_types_become_nullable() {
        check(json!({"type": ["string", "null"]}), json!({"type": "string", "nullable": true}));
        check(
            json!({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "description": "d"}),
            json!({"description": "d", "type": "integer", "nullable": true}),
        );
        check(json!({"enum": ["a", null]}), json!({"type": "string", "enum": ["a"], "nullable": true}));
    }

    #[test]
    fn choices_are_kept() {
        check(
            json!({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "number"}}]}),
            json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "number"}}]}),
        );
        check(
            json!({"type": ["string", "integer", "null"]}),
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}], "nullable": true}),
        );
    }

    #[test]
    fn enum_values_become_text() {
        check(json!({"type": "integer", "enum": [1, 2, 2]}), json!({"type": "string", "enum": ["1", "2"]}));
        check(json!({"const": true}), json!({"type": "string", "enum": ["true"]}));
        check(json!({"type": "string", "enum": ["", "a"]}), json!({"type": "string", "enum": ["a"]}));
        check(json!({"type": "string", "enum": []}), json!({"type": "string"}));
    }

    #[test]
    fn a_list_has_an_item_type() {
        check(json!({"type": "array"}), json!({"type": "array", "items": {"type": "string"}}));
        check(
            json!({"items": {"type": "integer"}, "uniqueItems": true}),
            json!({"type": "array", "items": {"type": "integer"}}),
        );
        check(
            json!({"type": "array", "prefixItems": [{"type": "number"}]}),
            json!({"type": "array", "items": {"type": "number"}}),
        );
        check(json!({"type": "array", "items": true}), json!({"type": "array", "items": {"type": "string"}}));
    }

    #[test]
    fn a_nested_object_may_be_empty_and_requires_only_its_properties() {
        check(
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object"}),
        );
        check(
            json!({"properties": {"a": {"type": "string"}}, "required": ["a", "b"]}),
            json!({"required": ["a"], "type": "object", "properties": {"a": {"type": "string"}}}),
        );
    }

    #[test]
    fn a_schema_without_a_type_becomes_text() {
        check(json!({}), json!({"type": "string"}));
        check(json!(true), json!({"type": "string"}));
        check(json!({"description": "d"}), json!({"description": "d", "type": "string"}));
    }

    #[test]
    fn unknown_keywords_are_dropped() {
        check(
            json!({"type": "string", "format": "uri", "pattern": "^a", "minLength": 1, "title": "T", "examples": []}),
            json!({"type": "string"}),
        );
        check(
            json!({"type": "string", "format": "date-time"}),
            json!({"type": "string", "format": "date-time"}),
        );
    }

    #[test]
    fn the_parts_of_all_of_are_merged() {
        check(
            json!({"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"properties": {"b": {"type": "integer"}}, "required": ["b"]}]}),
            json!({"required": ["a", "b"], "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}),
        );
    }

    #[test]
    fn references_are_followed_and_end() {
        let given = json!({
            "type": "object",
            "properties": {"node": {"$ref": "#/$defs/node", "description": "root"}, "lost": {"$ref": "#/nowhere"}},
            "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
        });
        let lowered = parameters(&given).unwrap();
        assert_eq!(lowered["properties"]["node"]["description"], "root");
        assert_eq!(lowered["properties"]["node"]["properties"]["next"]["type"], "object");
        assert_eq!(lowered["properties"]["lost"], json!({"type": "string"}));
        assert!(lowered.to_string().len() < 16 * 1024);
        let twice = json!({
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/n"}},
            "$defs": {"n": {"anyOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/n"}]}},
        });
        assert!(parameters(&twice).unwrap().to_string().len() < 1024 * 1024);
    }
}
