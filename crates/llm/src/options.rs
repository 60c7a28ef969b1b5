//! Options that a user or a model adds to the body of a request.
//!
//! Configuration files use two spellings: the wire format's, and the camel case of a JavaScript
//! library. Both are accepted and converted to the wire format's.

use serde_json::{Map, Value};

/// Settings of the library or the connection that users write next to real options. They are not
/// part of any body, and `apiKey` must never get into one.
const NOT_OF_THE_BODY: &[&str] = &[
    "apiKey",
    "baseURL",
    "baseUrl",
    "chunkTimeout",
    "fetch",
    "headers",
    "includeUsage",
    "name",
    "setCacheKey",
    "timeout",
];

/// Merges the options of the model and of the request; the request wins.
///
/// `rename` returns a field's name on the wire, or `None` if the wire format does not have it.
pub(crate) fn join(
    model: &Map<String, Value>,
    request: &Map<String, Value>,
    rename: fn(&str) -> Option<&str>,
) -> Map<String, Value> {
    let mut all = Map::new();
    for (name, value) in model.iter().chain(request) {
        if NOT_OF_THE_BODY.contains(&name.as_str()) {
            continue;
        }
        if let Some(name) = rename(name) {
            put(&mut all, name, value.clone());
        }
    }
    all
}

/// Merges `options` into `body`: objects are merged, `null` removes a field, other values replace.
pub(crate) fn merge(body: &mut Map<String, Value>, options: Map<String, Value>) {
    for (name, value) in options {
        if value.is_null() {
            body.shift_remove(&name);
        } else {
            put(body, &name, value);
        }
    }
}

fn put(into: &mut Map<String, Value>, name: &str, value: Value) {
    match (into.get_mut(name), value) {
        (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
        (Some(old), new) => *old = new,
        (None, new) => {
            into.insert(name.to_owned(), new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn the_request_wins_over_the_model_and_keys_are_dropped() {
        let all = join(
            &map(json!({"apiKey": "sk", "timeout": 5, "a": {"x": 1, "y": 1}, "drop": 1})),
            &map(json!({"a": {"y": 2}, "b": null})),
            |name| if name == "drop" { None } else { Some(name) },
        );
        assert_eq!(Value::Object(all), json!({"a": {"x": 1, "y": 2}, "b": null}));
    }

    #[test]
    fn null_removes_and_objects_merge() {
        let mut body = map(json!({"max_tokens": 5, "stream_options": {"include_usage": true}, "n": 1}));
        merge(&mut body, map(json!({"max_tokens": null, "stream_options": {"x": 1}, "n": 2})));
        let expected = json!({"stream_options": {"include_usage": true, "x": 1}, "n": 2});
        assert_eq!(Value::Object(body).to_string(), expected.to_string());
    }
}
