//! Edits configuration texts and keeps their comments, order and layout.

use jsonc_parser::{
    ParseOptions,
    cst::{CstArray, CstInputValue, CstObject, CstRootNode},
};
use serde_json::Value;

use crate::{
    Error, Map,
    document::{self, Origin, schema},
};

/// Parses a configuration text without checking its keys.
pub fn parse_document(name: &str, text: &str) -> Result<Value, Error> {
    Ok(Origin::new(name, text).read(&schema::Shape::Any, None)?.into_value())
}

/// Applies a patch to a text: objects are merged, `null` removes a key, other values replace.
///
/// # Errors
///
/// Fails if the text, or the result, is not a valid configuration.
pub fn edit_document(name: &str, text: &str, patch: &Map) -> Result<String, Error> {
    let origin = Origin::new(name, text);
    // Reports syntax errors with their position.
    origin.read(&schema::Shape::Any, None)?;
    let options: ParseOptions = document::accepted();
    let broken = |problem: String| Error::Syntax { position: origin.position(0), problem };
    let root = CstRootNode::parse(text, &options).map_err(|error| broken(error.to_string()))?;
    let object =
        root.object_value_or_create().ok_or_else(|| broken("the document is not an object".to_owned()))?;
    apply(&object, patch);
    let changed = root.to_string();
    Origin::new(name, &changed).read(&schema::CONFIG, None)?;
    Ok(changed)
}

fn apply(object: &CstObject, patch: &Map) {
    for (key, value) in patch {
        match (object.get(key), value) {
            (Some(there), Value::Null) => there.remove(),
            (None, Value::Null) => {}
            (Some(there), Value::Object(entries)) => match there.object_value() {
                Some(below) => apply(&below, entries),
                None => there.set_value(input(value)),
            },
            (Some(there), Value::Array(items)) => match there.array_value() {
                Some(list) if change_items(&list, items) => {}
                _ => there.set_value(input(value)),
            },
            (Some(there), value) => there.set_value(input(value)),
            (None, value) => {
                object.append(key, input(value));
            }
        }
    }
}

/// Removes and appends items of a list, so that the others keep their comments. `false` if that is not enough; then
/// nothing was changed.
fn change_items(list: &CstArray, items: &[Value]) -> bool {
    let before = list.elements();
    let mut kept = 0;
    let mut removed = Vec::new();
    for element in before {
        match element.to_serde_value() {
            Some(value) if items.get(kept) == Some(&value) => kept += 1,
            Some(value) if !items.contains(&value) => removed.push(element),
            _ => return false,
        }
    }
    for element in removed {
        element.remove();
    }
    for item in &items[kept..] {
        list.append(input(item));
    }
    true
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(switch) => CstInputValue::Bool(*switch),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(entries) => CstInputValue::Object(
            entries
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key.clone(), input(value)))
                .collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, patch: Value, expected: &str) {
        let Value::Object(patch) = patch else { panic!("an object") };
        assert_eq!(edit_document("f", text, &patch).unwrap(), expected);
    }

    #[test]
    fn comments_keep_their_place() {
        check(
            "{\n  // mine\n  \"model\": \"a/b\", // why\n  \"agent\": {\n    \"build\": { \"steps\": 1 }, /* x */\n  },\n}\n",
            json!({"model": "c/d", "agent": {"build": {"steps": 2}}, "username": "ann"}),
            "{\n  // mine\n  \"model\": \"c/d\", // why\n  \"agent\": {\n    \"build\": { \"steps\": 2 }, /* x */\n  },\n  \"username\": \"ann\",\n}\n",
        );
    }

    #[test]
    fn items_of_lists_keep_their_comments() {
        let text = "{\n  \"plugin\": [\n    // first\n    \"a\",\n    \"b\" // second\n  ]\n}\n";
        check(
            text,
            json!({"plugin": ["a", "b", ["c", {"x": 1}]]}),
            "{\n  \"plugin\": [\n    // first\n    \"a\",\n    \"b\", // second\n    [\n      \"c\",\n      {\n        \"x\": 1\n      }\n    ]\n  ]\n}\n",
        );
        check(text, json!({"plugin": ["a"]}), "{\n  \"plugin\": [\n    // first\n    \"a\"\n  ]\n}\n");
        check("{\"plugin\": [\"a\", \"b\"]}", json!({"plugin": ["b", "a"]}), "{\"plugin\": [\"b\", \"a\"]}");
    }

    #[test]
    fn null_removes_a_key_and_an_empty_text_becomes_an_object() {
        check("{\n  \"a\": 1,\n  \"b\": 2\n}", json!({"a": null, "z": null}), "{\n  \"b\": 2\n}");
        let Value::Object(patch) = json!({"model": "a/b"}) else { panic!("an object") };
        let text = edit_document("f", "", &patch).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!({"model": "a/b"}));
    }

    #[test]
    fn an_invalid_result_is_an_error() {
        let Value::Object(patch) = json!({"model": 7}) else { panic!("an object") };
        assert!(matches!(edit_document("f", "{}", &patch), Err(Error::Value { key, .. }) if key == "model"));
        assert!(matches!(edit_document("f", "{,", &patch), Err(Error::Syntax { .. })));
    }
}
