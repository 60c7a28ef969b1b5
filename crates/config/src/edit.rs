//! Changes to a configuration text that leave comments, order and layout as they are.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstObject, CstRootNode},
};
use serde_json::Value;

use crate::{
    Error, Map,
    document::{self, Origin, schema},
};

/// The content of a configuration text, as it says it.
pub fn parsed(name: &str, text: &str) -> Result<Value, Error> {
    Ok(Origin::new(name, text).read(&schema::Shape::Any, None)?.into_value())
}

/// The text with a patch laid over it: objects are merged, `null` removes, all else replaces.
///
/// The result is checked as any document is, so that nothing is written that could not be read.
pub fn edited(name: &str, text: &str, patch: &Map) -> Result<String, Error> {
    let origin = Origin::new(name, text);
    // Syntax errors are told with their place.
    origin.read(&schema::Shape::Any, None)?;
    let options: ParseOptions = document::accepted();
    let broken = |problem: String| Error::Syntax { place: origin.place(0), problem };
    let root = CstRootNode::parse(text, &options).map_err(|error| broken(error.to_string()))?;
    let object =
        root.object_value_or_create().ok_or_else(|| broken("the document is no object".to_owned()))?;
    lay(&object, patch);
    let changed = root.to_string();
    Origin::new(name, &changed).read(&schema::CONFIG, None)?;
    Ok(changed)
}

fn lay(object: &CstObject, patch: &Map) {
    for (key, value) in patch {
        match (object.get(key), value) {
            (Some(there), Value::Null) => there.remove(),
            (None, Value::Null) => {}
            (Some(there), Value::Object(entries)) => match there.object_value() {
                Some(below) => lay(&below, entries),
                None => there.set_value(input(value)),
            },
            (Some(there), value) => there.set_value(input(value)),
            (None, value) => {
                object.append(key, input(value));
            }
        }
    }
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
        assert_eq!(edited("f", text, &patch).unwrap(), expected);
    }

    #[test]
    fn comments_stay_where_they_are() {
        check(
            "{\n  // mine\n  \"model\": \"a/b\", // why\n  \"agent\": {\n    \"build\": { \"steps\": 1 }, /* x */\n  },\n}\n",
            json!({"model": "c/d", "agent": {"build": {"steps": 2}}, "username": "ann"}),
            "{\n  // mine\n  \"model\": \"c/d\", // why\n  \"agent\": {\n    \"build\": { \"steps\": 2 }, /* x */\n  },\n  \"username\": \"ann\",\n}\n",
        );
    }

    #[test]
    fn null_removes_and_an_empty_text_is_begun() {
        check("{\n  \"a\": 1,\n  \"b\": 2\n}", json!({"a": null, "z": null}), "{\n  \"b\": 2\n}");
        let Value::Object(patch) = json!({"model": "a/b"}) else { panic!("an object") };
        let text = edited("f", "", &patch).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!({"model": "a/b"}));
    }

    #[test]
    fn what_could_not_be_read_is_not_written() {
        let Value::Object(patch) = json!({"model": 7}) else { panic!("an object") };
        assert!(matches!(edited("f", "{}", &patch), Err(Error::Value { key, .. }) if key == "model"));
        assert!(matches!(edited("f", "{,", &patch), Err(Error::Syntax { .. })));
    }
}
