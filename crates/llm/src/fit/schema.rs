//! The schemas of tools in the dialects of providers.
//!
//! A schema that has nothing unusual stays as it is, byte for byte. What a dialect cannot express is widened: the schema
//! then accepts more, and the arguments are checked against the original when they return.

use std::cell::Cell;

use serde_json::{Map, Value, json};

use super::names::rename_properties;
use super::references::{resolved, target};
use crate::protocol::rules::Dialect;

/// Limit of nesting and of references. Deeper parts accept any value.
const DEPTH_LIMIT: usize = 32;
/// Limit of the schemas that are merged.
const NODES_LIMIT: usize = 2048;
/// The keywords for variants.
const VARIANTS: [&str; 3] = ["oneOf", "anyOf", "allOf"];
/// The keywords that no provider accepts at the top. They only narrow the arguments.
const NOT_AT_THE_TOP: [&str; 8] =
    ["not", "enum", "const", "if", "then", "else", "dependentSchemas", "dependentRequired"];
/// The known types.
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];

/// Converts the schema of a tool's arguments.
pub(super) fn fit(schema: &Value, dialects: &[Dialect]) -> Value {
    let mut schema = resolved(with_object(repaired(schema, 0)));
    for dialect in dialects {
        schema = match dialect {
            Dialect::FlatTop => flat(schema),
            Dialect::ListItems => each(schema, &list_items),
            Dialect::Draft2020 => each(schema, &draft_2020),
            Dialect::PropertyNames => rename_properties(schema),
            Dialect::Moonshot => each(schema, &moonshot),
        };
    }
    // A conversion may have moved what a reference points to.
    resolved(schema)
}

/// Arguments are always an object with properties.
fn with_object(schema: Value) -> Value {
    let Value::Object(mut fields) = schema else { return json!({"type": "object", "properties": {}}) };
    if fields.get("type").is_none_or(|kind| kind != "object") {
        fields.insert("type".into(), json!("object"));
    }
    fields.entry("properties").or_insert_with(|| json!({}));
    Value::Object(fields)
}

/// Removes keywords whose value is not what JSON Schema says, because some servers refuse the request for them.
fn repaired(schema: &Value, depth: usize) -> Value {
    let Some(fields) = schema.as_object() else {
        return if schema.is_boolean() { schema.clone() } else { json!({}) };
    };
    if depth > DEPTH_LIMIT {
        return json!({});
    }
    let mut out = Map::new();
    for (word, value) in fields {
        if let Some(value) = repaired_keyword(word, value, depth) {
            out.insert(word.clone(), value);
        }
    }
    Value::Object(out)
}

/// Returns the value of a keyword, or `None` if it is not valid.
fn repaired_keyword(word: &str, value: &Value, depth: usize) -> Option<Value> {
    match word {
        "type" => match value {
            Value::String(kind) => {
                let kind = kind.to_ascii_lowercase();
                TYPES.contains(&kind.as_str()).then(|| json!(kind))
            }
            Value::Array(kinds) => {
                let mut known: Vec<&Value> = Vec::new();
                for kind in kinds {
                    if kind.as_str().is_some_and(|kind| TYPES.contains(&kind)) && !known.contains(&kind) {
                        known.push(kind);
                    }
                }
                (!known.is_empty()).then(|| json!(known))
            }
            _ => None,
        },
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            let named = value.as_object()?;
            let named = named.iter().map(|(name, schema)| (name.clone(), repaired(schema, depth + 1)));
            Some(Value::Object(named.collect()))
        }
        "required" => {
            let mut names: Vec<&Value> = Vec::new();
            for name in value.as_array()?.iter().filter(|name| name.is_string()) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            Some(json!(names))
        }
        "enum" => value.as_array().filter(|values| !values.is_empty()).map(|_| value.clone()),
        "oneOf" | "anyOf" | "allOf" | "prefixItems" => {
            let list = value.as_array().filter(|list| !list.is_empty())?;
            Some(list.iter().map(|schema| repaired(schema, depth + 1)).collect())
        }
        "items" => match value {
            Value::Array(list) => Some(list.iter().map(|schema| repaired(schema, depth + 1)).collect()),
            Value::Object(_) | Value::Bool(_) => Some(repaired(value, depth + 1)),
            _ => None,
        },
        "additionalProperties" | "not" | "if" | "then" | "else" | "contains" | "propertyNames" => {
            (value.is_object() || value.is_boolean()).then(|| repaired(value, depth + 1))
        }
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            value.as_u64().map(|_| value.clone())
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            value.is_number().then(|| value.clone())
        }
        "description" | "title" | "pattern" | "format" | "$ref" | "$schema" | "$id" => {
            value.is_string().then(|| value.clone())
        }
        _ => Some(value.clone()),
    }
}

/// Merges the variants at the top into one object with the properties of all. Required is what each of them requires.
fn flat(schema: Value) -> Value {
    let Some(fields) = schema.as_object() else { return schema };
    let is_flat =
        !VARIANTS.iter().chain(&NOT_AT_THE_TOP).chain(&["$ref"]).any(|word| fields.contains_key(*word));
    if is_flat {
        return schema;
    }
    let merge = Merge { root: &schema, nodes: Cell::new(0) };
    let mut merged = merge.merged(fields, 0);
    if let Some(defs) = fields.get("$defs").cloned() {
        merged.entry("$defs").or_insert(defs);
    }
    if let Some(defs) = fields.get("definitions").cloned() {
        merged.entry("definitions").or_insert(defs);
    }
    with_object(Value::Object(merged))
}

/// The state while variants are merged.
struct Merge<'a> {
    /// The schema that references point into.
    root: &'a Value,
    /// The schemas so far, because references to references multiply.
    nodes: Cell<usize>,
}

impl Merge<'_> {
    /// Returns the properties that a schema and its variants have together.
    fn merged(&self, fields: &Map<String, Value>, depth: usize) -> Map<String, Value> {
        let is_kept =
            |word: &str| !VARIANTS.contains(&word) && !NOT_AT_THE_TOP.contains(&word) && word != "$ref";
        let kept = fields.iter().filter(|(word, _)| is_kept(word));
        let mut out: Map<String, Value> = kept.map(|(word, value)| (word.clone(), value.clone())).collect();
        self.nodes.set(self.nodes.get() + 1);
        if depth > DEPTH_LIMIT || self.nodes.get() > NODES_LIMIT {
            return out;
        }
        let part = |schema: &Value| schema.as_object().map(|fields| self.merged(fields, depth + 1));
        let target = fields.get("$ref").and_then(Value::as_str).and_then(|to| target(self.root, to));
        let all = fields.get("allOf").and_then(Value::as_array).into_iter().flatten();
        for part in target.into_iter().chain(all).filter_map(part) {
            let required = names_of(&part, "required");
            add_properties(&mut out, part);
            add_required(&mut out, required);
        }
        for word in ["oneOf", "anyOf"] {
            let Some(variants) = fields.get(word).and_then(Value::as_array) else { continue };
            let objects = variants.iter().filter(|variant| variant["type"] != "null");
            let variants: Vec<_> = objects.filter_map(part).collect();
            let each = variants.iter().map(|variant| names_of(variant, "required"));
            let both = |common: Vec<String>, names: Vec<String>| {
                common.into_iter().filter(|name| names.contains(name)).collect()
            };
            add_required(&mut out, each.reduce(both).unwrap_or_default());
            note_variants(&mut out, &variants);
            variants.into_iter().for_each(|variant| add_properties(&mut out, variant));
            // It would forbid the properties of the variants.
            out.shift_remove("additionalProperties");
        }
        out
    }
}

/// Describes the sets of arguments, so that the model mixes none of them.
fn note_variants(out: &mut Map<String, Value>, variants: &[Map<String, Value>]) {
    let sets: Vec<String> = variants
        .iter()
        .map(|variant| names_of(variant, "required").join(", "))
        .filter(|set| !set.is_empty())
        .collect();
    if sets.len() < 2 {
        return;
    }
    let note = format!("Give one of these sets of arguments: {}.", sets.join("; or "));
    let text = match out.get("description").and_then(Value::as_str) {
        Some(text) => format!("{text} {note}"),
        None => note,
    };
    out.insert("description".into(), json!(text));
}

fn names_of(fields: &Map<String, Value>, word: &str) -> Vec<String> {
    let list = fields.get(word).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn add_required(out: &mut Map<String, Value>, names: Vec<String>) {
    let mut required = names_of(out, "required");
    for name in names {
        if !required.contains(&name) {
            required.push(name);
        }
    }
    if !required.is_empty() {
        out.insert("required".into(), json!(required));
    }
}

/// Adds properties. One that both have accepts the values of both.
fn add_properties(out: &mut Map<String, Value>, part: Map<String, Value>) {
    for (word, value) in part {
        match (word.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                let into = out.entry("properties").or_insert_with(|| json!({}));
                let Some(into) = into.as_object_mut() else { continue };
                for (name, schema) in properties {
                    match into.get_mut(&name) {
                        None => drop(into.insert(name, schema)),
                        Some(known) if *known == schema => {}
                        Some(known) => *known = either(known.take(), schema),
                    }
                }
            }
            ("$defs" | "definitions", Value::Object(defs)) => {
                let into = out.entry(word.as_str()).or_insert_with(|| json!({}));
                if let Some(into) = into.as_object_mut() {
                    for (name, schema) in defs {
                        into.entry(name).or_insert(schema);
                    }
                }
            }
            ("required" | "additionalProperties", _) => {}
            (_, value) => drop(out.entry(word).or_insert(value)),
        }
    }
}

/// Returns a schema that accepts what one of two accepts.
fn either(first: Value, second: Value) -> Value {
    let values = |schema: &Value| match (schema.get("enum").and_then(Value::as_array), schema.get("const")) {
        (Some(list), _) => Some(list.clone()),
        (None, Some(value)) => Some(vec![value.clone()]),
        (None, None) => None,
    };
    if let (Some(mut all), Some(more)) = (values(&first), values(&second)) {
        for value in more {
            if !all.contains(&value) {
                all.push(value);
            }
        }
        let mut out = first.as_object().cloned().unwrap_or_default();
        out.shift_remove("const");
        out.insert("enum".into(), Value::Array(all));
        return Value::Object(out);
    }
    let mut choices = match first {
        Value::Object(fields) if fields.len() == 1 && fields.contains_key("anyOf") => {
            fields["anyOf"].as_array().cloned().unwrap_or_default()
        }
        other => vec![other],
    };
    if !choices.contains(&second) {
        choices.push(second);
    }
    json!({"anyOf": choices})
}

/// Applies a conversion to a schema and all schemas in it, from the inside out.
pub(super) fn each(schema: Value, convert: &dyn Fn(Map<String, Value>) -> Map<String, Value>) -> Value {
    let Value::Object(fields) = schema else { return schema };
    let field = |(word, value): (String, Value)| {
        let value = match (word.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(named),
            ) => named
                .into_iter()
                .map(|(name, schema)| (name, each(schema, convert)))
                .collect::<Map<_, _>>()
                .into(),
            ("oneOf" | "anyOf" | "allOf" | "prefixItems" | "items", Value::Array(list)) => {
                list.into_iter().map(|schema| each(schema, convert)).collect()
            }
            (
                "items"
                | "additionalProperties"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames",
                schema @ Value::Object(_),
            ) => each(schema, convert),
            (_, value) => value,
        };
        (word, value)
    };
    Value::Object(convert(fields.into_iter().map(field).collect()))
}

fn is_list(fields: &Map<String, Value>) -> bool {
    match fields.get("type") {
        Some(Value::String(kind)) => kind == "array",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
        _ => false,
    }
}

/// A list describes its items by one schema.
fn list_items(mut fields: Map<String, Value>) -> Map<String, Value> {
    let several = match fields.get("items") {
        Some(Value::Array(list)) => Some(list.clone()),
        Some(_) => return fields,
        None => fields.get("prefixItems").and_then(Value::as_array).cloned(),
    };
    match several {
        Some(list) => {
            fields.shift_remove("prefixItems");
            fields.insert("items".into(), one_of(list));
        }
        None if is_list(&fields) => drop(fields.insert("items".into(), json!({}))),
        None => {}
    }
    fields
}

/// Returns one schema for items that have several.
fn one_of(list: Vec<Value>) -> Value {
    let mut choices: Vec<Value> = Vec::new();
    for schema in list {
        if !choices.contains(&schema) {
            choices.push(schema);
        }
    }
    match choices.len() {
        0 => json!({}),
        1 => choices.swap_remove(0),
        _ => json!({"anyOf": choices}),
    }
}

/// The draft of JSON Schema that current servers expect.
const DRAFT_2020: &str = "https://json-schema.org/draft/2020-12/schema";

/// Replaces what older drafts have.
fn draft_2020(mut fields: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Array(list)) = fields.get("items") {
        let list = list.clone();
        fields.shift_remove("items");
        let rest = fields.shift_remove("additionalItems");
        if !list.is_empty() {
            fields.insert("prefixItems".into(), Value::Array(list));
        }
        if let Some(rest) = rest.filter(|rest| rest.is_object() || rest.is_boolean()) {
            fields.insert("items".into(), rest);
        }
    }
    // The server compares it with its own draft, which is the one that our own tools name.
    if fields.get("$schema").is_some_and(|draft| draft != DRAFT_2020) {
        fields.shift_remove("$schema");
    }
    fields
}

/// A reference has no other keyword, a list one schema for its items, and a node with choices no type of its own.
fn moonshot(mut fields: Map<String, Value>) -> Map<String, Value> {
    if let Some(target) = fields.get("$ref") {
        return Map::from_iter([("$ref".to_owned(), target.clone())]);
    }
    if let Some(all) = fields.get("allOf").and_then(Value::as_array).cloned() {
        fields.shift_remove("allOf");
        for part in all {
            if let Value::Object(part) = part {
                for (word, value) in part {
                    fields.entry(word).or_insert(value);
                }
            }
        }
        // The part may be a reference, whose other keywords are those around it.
        if let Some(target) = fields.get("$ref") {
            return Map::from_iter([("$ref".to_owned(), target.clone())]);
        }
    }
    if let Some(choices) = fields.shift_remove("oneOf") {
        fields.entry("anyOf").or_insert(choices);
    }
    if fields.contains_key("anyOf")
        && let (Some(kind), Some(choices)) =
            (fields.shift_remove("type"), fields.get_mut("anyOf").and_then(Value::as_array_mut))
    {
        for choice in choices.iter_mut().filter_map(Value::as_object_mut) {
            if !choice.contains_key("type") && !choice.contains_key("$ref") {
                choice.insert("type".into(), kind.clone());
            }
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANTHROPIC: &[Dialect] = &[Dialect::FlatTop, Dialect::Draft2020, Dialect::PropertyNames];
    const OPENAI: &[Dialect] = &[Dialect::FlatTop, Dialect::ListItems];
    const MOONSHOT: &[Dialect] = &[Dialect::FlatTop, Dialect::Moonshot, Dialect::ListItems];

    #[test]
    fn an_ordinary_schema_stays_as_it_is() {
        let schema = json!({"type": "object", "properties": {
            "path": {"type": "string", "description": "d", "pattern": "^a"},
            "list": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            "n": {"type": "integer", "minimum": 1, "default": 3, "x-own": true},
        }, "required": ["path"], "additionalProperties": false});
        for dialects in [ANTHROPIC, OPENAI, MOONSHOT] {
            assert_eq!(fit(&schema, dialects).to_string(), schema.to_string());
        }
    }

    #[test]
    fn variants_at_the_top_are_merged() {
        let variant = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
        for word in ["oneOf", "anyOf"] {
            let found =
                fit(&json!({"type": "object", word: [variant("content"), variant("url")]}), ANTHROPIC);
            assert_eq!(
                found,
                json!({"type": "object", "description": "Give one of these sets of arguments: content; or url.",
                    "properties": {"content": {"type": "string"}, "url": {"type": "string"}}})
            );
        }
        let found = fit(
            &json!({"allOf": [variant("a"), {"$ref": "#/$defs/b"}], "$defs": {"b": variant("b")}}),
            OPENAI,
        );
        assert_eq!(found["required"], json!(["a", "b"]));
        assert!(found["properties"]["b"].is_object() && found.get("allOf").is_none(), "{found}");
        let kinds = json!({"oneOf": [
            {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "string"}}, "required": ["kind", "x"]},
            {"type": "object", "properties": {"kind": {"const": "b"}, "x": {"type": "number"}}, "required": ["kind"]},
        ]});
        let found = fit(&kinds, OPENAI);
        assert_eq!(found["properties"]["kind"]["enum"], json!(["a", "b"]));
        assert_eq!(found["properties"]["x"]["anyOf"], json!([{"type": "string"}, {"type": "number"}]));
        assert_eq!(found["required"], json!(["kind"]));
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let found = fit(&json!({"$ref": "#", "type": "object"}), OPENAI);
        assert_eq!(found["type"], "object");
        let found = fit(
            &json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}),
            OPENAI,
        );
        assert_eq!(found["type"], "object");
    }

    #[test]
    fn moonshot_gets_its_dialect() {
        let found = fit(
            &json!({"type": "object", "$defs": {"K": {"type": "string"}}, "properties": {
                "kind": {"$ref": "#/$defs/K", "description": "d", "default": "x"},
                "range": {"type": "array", "items": [{"type": "string"}, {"type": "number"}]},
                "choice": {"type": "string", "anyOf": [{"const": "a"}, {"type": "null"}]},
            }}),
            MOONSHOT,
        );
        assert_eq!(found["properties"]["kind"], json!({"$ref": "#/$defs/K"}));
        assert_eq!(
            found["properties"]["range"]["items"],
            json!({"anyOf": [{"type": "string"}, {"type": "number"}]})
        );
        assert_eq!(
            found["properties"]["choice"],
            json!({"anyOf": [{"const": "a", "type": "string"}, {"type": "null"}]})
        );
    }

    #[test]
    fn references_lead_somewhere_in_every_dialect() {
        let schema = json!({"type": "object", "properties": {
            "a": {"$ref": "#/$defs/Nope"}, "b": {"$ref": "#/oneOf/0"}, "c": {"$ref": "#/$defs/with%20space"},
        }, "oneOf": [{"properties": {"d": {"type": "string"}}}], "$defs": {"with space": {"type": "integer"}}});
        for dialects in [ANTHROPIC, OPENAI, MOONSHOT] {
            let properties = fit(&schema, dialects)["properties"].take();
            assert_eq!(properties["a"], json!({}));
            assert_eq!(properties["b"], json!({}), "the variants at the top are merged");
            assert_eq!(properties["c"], json!({"$ref": "#/$defs/with%20space"}));
        }
        let merged =
            fit(&json!({"$ref": "#/$defs/a%20b", "$defs": {"a b": {"properties": {"x": {}}}}}), OPENAI);
        assert_eq!(merged["properties"], json!({"x": {}}));
    }

    #[test]
    fn invalid_keywords_are_removed() {
        let found = fit(
            &json!({"type": "any", "properties": {
                "a": {"type": "STRING", "required": true, "enum": [], "exclusiveMinimum": true, "minLength": -1},
                "b": null, "c": {"type": "array"}, "d": {"type": ["string", "string", "any"]},
            }, "required": ["a", "a", 3]}),
            OPENAI,
        );
        assert_eq!(
            found,
            json!({"properties": {"a": {"type": "string"}, "b": {}, "c": {"type": "array", "items": {}},
                "d": {"type": ["string"]}}, "required": ["a"], "type": "object"})
        );
        for schema in [json!(null), json!([]), json!("x"), json!(true)] {
            assert_eq!(fit(&schema, OPENAI), json!({"type": "object", "properties": {}}));
        }
    }

    #[test]
    fn tuples_and_property_names_suit_anthropic() {
        let found = fit(
            &json!({"type": "object", "properties": {"$filter": {"type": "array", "items": [{"type": "string"}]}},
                "required": ["$filter"]}),
            ANTHROPIC,
        );
        let (name, schema) = found["properties"].as_object().unwrap().iter().next().unwrap();
        assert!(name.starts_with("_filter_"), "{name}");
        assert_eq!(*schema, json!({"type": "array", "prefixItems": [{"type": "string"}]}));
        assert_eq!(found["required"], json!([name]));
    }
}
