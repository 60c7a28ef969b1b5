//! References in the schemas of tools.
//!
//! A reference that leads nowhere is removed, because strict servers refuse the whole request for it. The schema then
//! accepts any value there. A reference by a name (`#foo`) or by an address in the schema becomes a pointer
//! (`#/$defs/Foo`), which all servers understand.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value};

use super::schema::each;

/// The keywords for references.
const WORDS: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// The keywords that name a schema within its document. `$id` and `id` do so with `#foo`, in old drafts.
const ANCHORS: [&str; 2] = ["$anchor", "$dynamicAnchor"];
/// The keywords with the address of a schema.
const ADDRESSES: [&str; 2] = ["$id", "id"];
/// Limit of nesting.
const DEPTH_LIMIT: usize = 64;
/// The characters that are escaped in a pointer.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'$').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns the schema that a reference such as `#/$defs/with%20space` leads to.
pub(crate) fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    let decoded = percent_decode_str(pointer).decode_utf8().ok()?;
    let found = root.pointer(&decoded).or_else(|| root.pointer(pointer));
    found.filter(|schema| schema.is_object() || schema.is_boolean())
}

/// Removes the references of a schema that lead nowhere, and turns the others into pointers.
pub(super) fn resolved(schema: Value) -> Value {
    if !has_reference(&schema, 0) {
        return schema;
    }
    let mut names = Vec::new();
    collect_names(&schema, "", 0, &mut names);
    let document = Document { root: schema.clone(), names };
    each(schema, &|fields| document.settled(fields))
}

struct Document {
    root: Value,
    /// The names and addresses of schemas, with the pointers to them.
    names: Vec<(String, String)>,
}

impl Document {
    fn settled(&self, mut fields: Map<String, Value>) -> Map<String, Value> {
        for word in WORDS {
            let Some(given) = fields.get(word) else { continue };
            match given.as_str().and_then(|reference| self.pointer(reference)) {
                Some(pointer) if word == "$ref" => drop(fields.insert(word.to_owned(), pointer.into())),
                Some(pointer) => {
                    fields.shift_remove(word);
                    fields.entry("$ref").or_insert_with(|| pointer.into());
                }
                None => drop(fields.shift_remove(word)),
            }
        }
        fields
    }

    /// Returns a reference as a pointer, if it leads somewhere.
    fn pointer(&self, reference: &str) -> Option<String> {
        if target(&self.root, reference).is_some() {
            return Some(reference.to_owned());
        }
        let known = |name: &str| self.names.iter().find(|(known, _)| known == name).map(|(_, to)| to);
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let pointer = match (known(reference), known(address)) {
            (Some(to), _) => format!("#{to}"),
            (None, Some(to)) if fragment.starts_with('/') => format!("#{to}{fragment}"),
            // A name within the schema with that address.
            (None, Some(_)) => format!("#{}", known(&format!("#{fragment}"))?),
            (None, None) => return None,
        };
        target(&self.root, &pointer).map(|_| pointer)
    }
}

fn has_reference(value: &Value, depth: usize) -> bool {
    match value {
        _ if depth > DEPTH_LIMIT => false,
        Value::Object(fields) => fields
            .iter()
            .any(|(word, value)| WORDS.contains(&word.as_str()) || has_reference(value, depth + 1)),
        Value::Array(list) => list.iter().any(|value| has_reference(value, depth + 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Adds the names and addresses of all schemas in a value.
fn collect_names(value: &Value, pointer: &str, depth: usize, out: &mut Vec<(String, String)>) {
    if depth > DEPTH_LIMIT {
        return;
    }
    match value {
        Value::Object(fields) => {
            let text =
                |word: &&str| fields.get(*word).and_then(Value::as_str).filter(|text| !text.is_empty());
            let anchors = ANCHORS.iter().filter_map(text).map(|name| format!("#{name}"));
            let addresses = ADDRESSES.iter().filter_map(text);
            let addresses = addresses.map(|text| text.strip_suffix('#').unwrap_or(text).to_owned());
            out.extend(anchors.chain(addresses).map(|name| (name, pointer.to_owned())));
            for (key, value) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                let key = utf8_percent_encode(&key, ESCAPED);
                collect_names(value, &format!("{pointer}/{key}"), depth + 1, out);
            }
        }
        Value::Array(list) => {
            for (at, value) in list.iter().enumerate() {
                collect_names(value, &format!("{pointer}/{at}"), depth + 1, out);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(property: Value, more: Value, expected: Value) {
        let mut schema = json!({"type": "object", "properties": {"x": property}});
        if let (Some(into), Value::Object(more)) = (schema.as_object_mut(), more) {
            into.extend(more);
        }
        assert_eq!(resolved(schema.clone())["properties"]["x"], expected, "{schema}");
    }

    #[test]
    fn a_reference_that_leads_nowhere_is_removed() {
        for reference in ["#/$defs/Nope", "https://example.com/s.json", "#foo", "other.json#/a", "", "#/type"]
        {
            check(json!({"$ref": reference, "description": "d"}), json!({}), json!({"description": "d"}));
            check(
                json!({"type": "array", "items": {"$ref": reference}}),
                json!({}),
                json!({"type": "array", "items": {}}),
            );
        }
        check(json!({"$dynamicRef": "#node"}), json!({}), json!({}));
    }

    #[test]
    fn a_reference_by_a_name_or_an_address_becomes_a_pointer() {
        let defs = json!({"definitions": {"a b": {"$id": "#foo", "type": "string"}, "B": {"$anchor": "bar"}},
            "$id": "https://example.com/root.json"});
        for (reference, expected) in [
            ("#foo", "#/definitions/a%20b"),
            ("#bar", "#/definitions/B"),
            ("https://example.com/root.json#/definitions/B", "#/definitions/B"),
            ("https://example.com/root.json#bar", "#/definitions/B"),
            ("https://example.com/root.json", "#"),
            ("#/definitions/B", "#/definitions/B"),
            ("#/definitions/a%20b", "#/definitions/a%20b"),
            ("#", "#"),
        ] {
            check(json!({"$ref": reference}), defs.clone(), json!({"$ref": expected}));
        }
        check(json!({"$dynamicRef": "#bar"}), defs, json!({"$ref": "#/definitions/B"}));
    }

    #[test]
    fn a_property_may_have_the_name_of_a_keyword() {
        let schema =
            json!({"type": "object", "properties": {"$ref": {"type": "string"}, "id": {"type": "string"}}});
        assert_eq!(resolved(schema.clone()), schema);
    }
}
