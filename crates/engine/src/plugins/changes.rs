//! The differences between two configurations. The functions here are pure.

use std::collections::BTreeSet;

use codewright_proto::Map;
use serde_json::{Value, json};

use crate::redact::HIDDEN;

/// The keys that plugins cannot change: they are already loaded.
const FIXED: [&str; 3] = ["$schema", "plugin", "plugin_host"];

/// Returns the values of `after` that are missing in `before` or different there. Removed values are not returned, because
/// a configuration is only extended.
pub(crate) fn changes(before: &Value, after: &Value) -> Map {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else { return Map::new() };
    let mut changes = Map::new();
    for (key, value) in after.iter().filter(|(key, _)| !FIXED.contains(&key.as_str())) {
        let known = before.get(key);
        let changed = match known {
            Some(known) if known == value => None,
            Some(known) if known.is_object() && value.is_object() => {
                Some(Value::Object(nested(known, value))).filter(|nested| *nested != json!({}))
            }
            _ => Some(value.clone()).filter(|value| value != HIDDEN && !value.is_null()),
        };
        if let Some(changed) = changed {
            changes.insert(key.clone(), changed);
        }
    }
    changes
}

/// Returns the values that plugins may change.
pub(crate) fn allowed(mut changes: Map) -> Map {
    changes.retain(|key, _| !FIXED.contains(&key.as_str()));
    changes
}

fn nested(before: &Value, after: &Value) -> Map {
    let mut changes = Map::new();
    for (key, value) in after.as_object().into_iter().flatten() {
        let changed = match &before[key] {
            known if known == value => continue,
            known if known.is_object() && value.is_object() => Value::Object(nested(known, value)),
            _ if value == HIDDEN || value.is_null() => continue,
            _ => value.clone(),
        };
        if changed != json!({}) || value == &json!({}) {
            changes.insert(key.clone(), changed);
        }
    }
    changes
}

/// Returns the part of the configuration that a plugin's sign-in adds to a provider: its options, and the prices of models
/// if the plugin has changed them.
pub(crate) fn provider_changes(options: &Value, before: &Value, after: &Value) -> Map {
    let mut provider = Map::new();
    if options.as_object().is_some_and(|options| !options.is_empty()) {
        provider.insert("options".to_owned(), options.clone());
    }
    let mut models = Map::new();
    for (id, model) in after["models"].as_object().into_iter().flatten() {
        let cost = &model["cost"];
        if cost.is_object() && *cost != before["models"][id]["cost"] {
            let number = |value: &Value| value.as_f64().unwrap_or_default();
            let cost = json!({
                "input": number(&cost["input"]),
                "output": number(&cost["output"]),
                "cache_read": number(&cost["cache"]["read"]),
                "cache_write": number(&cost["cache"]["write"]),
            });
            models.insert(id.clone(), json!({ "cost": cost }));
        }
    }
    if !models.is_empty() {
        provider.insert("models".to_owned(), Value::Object(models));
    }
    provider
}

/// The models that a plugin may add to a provider.
const MAX_MODELS: usize = 1000;

/// Returns models in the form of the API as models of a configuration.
pub(crate) fn provider_models(models: &Value) -> Map {
    let mut converted = Map::new();
    for (id, model) in models.as_object().into_iter().flatten().take(MAX_MODELS) {
        let mut own = Map::new();
        let mut put = |key: &str, value: &Value| {
            if !value.is_null() {
                own.insert(key.to_owned(), value.clone());
            }
        };
        put("id", &model["api"]["id"]);
        put("name", &model["name"]);
        put("options", &model["options"]);
        put("headers", &model["headers"]);
        let (can, limit, cost) = (&model["capabilities"], &model["limit"], &model["cost"]);
        let mut modalities = Map::new();
        for (key, of) in [
            ("tool_call", "toolcall"),
            ("reasoning", "reasoning"),
            ("attachment", "attachment"),
            ("temperature", "temperature"),
        ] {
            put(key, &can[of]);
        }
        for direction in ["input", "output"] {
            if let Some(kinds) = can[direction].as_object() {
                let kinds = kinds.iter().filter(|(_, can)| **can == Value::Bool(true)).map(|(kind, _)| kind);
                modalities.insert(direction.to_owned(), kinds.cloned().collect());
            }
        }
        if !modalities.is_empty() {
            put("modalities", &Value::Object(modalities));
        }
        if limit["context"].is_u64() && limit["output"].is_u64() {
            put("limit", &numbers([("context", limit), ("input", limit), ("output", limit)]));
        }
        if cost["input"].is_number() && cost["output"].is_number() {
            let mut prices = numbers([("input", cost), ("output", cost)]);
            for (key, of) in [("cache_read", "read"), ("cache_write", "write")] {
                if cost["cache"][of].is_number() {
                    prices[key] = cost["cache"][of].clone();
                }
            }
            put("cost", &prices);
        }
        converted.insert(id.clone(), Value::Object(own));
    }
    converted
}

/// Returns the numbers of an object that it has.
fn numbers<const N: usize>(keys: [(&str, &Value); N]) -> Value {
    let known = keys.into_iter().filter(|(key, of)| of[*key].is_number());
    Value::Object(known.map(|(key, of)| (key.to_owned(), of[key].clone())).collect())
}

/// The models of a provider before and after the plugins.
pub(crate) struct ListedModels<'a> {
    pub(crate) known: &'a Value,
    pub(crate) after: &'a Value,
    /// The provider in the configuration.
    pub(crate) configured: &'a Value,
    /// The models that plugins removed earlier.
    pub(crate) removed_before: &'a Value,
}

/// Returns the models that the provider must not offer any more. Plugins cannot remove models of the configuration.
pub(crate) fn removed_models(listed: &ListedModels<'_>) -> BTreeSet<String> {
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let known = listed.known.as_object().into_iter().flatten().map(|(id, _)| id.clone());
    let removed = known.chain(texts(listed.removed_before));
    let is_kept =
        |id: &String| listed.after.get(id).is_some() || listed.configured["models"].get(id).is_some();
    let mut removed: BTreeSet<_> = removed.filter(|id| !is_kept(id)).collect();
    if !removed.is_empty() {
        // A list of the configuration replaces another one.
        removed.extend(texts(&listed.configured["blacklist"]));
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: Value, after: Value, expected: Value) {
        assert_eq!(Value::Object(changes(&before, &after)), expected, "{before} {after}");
    }

    #[test]
    fn only_new_and_different_values_are_returned() {
        check(json!({"a": 1}), json!({"a": 1}), json!({}));
        check(json!({"a": 1, "b": 2}), json!({"a": 3}), json!({"a": 3}));
        check(json!({"a": {"x": 1}}), json!({"a": {"x": 1, "y": {"z": 2}}}), json!({"a": {"y": {"z": 2}}}));
        check(json!({"a": [1]}), json!({"a": [1, 2]}), json!({"a": [1, 2]}));
        check(json!({"a": {}}), json!({"a": {"b": {}}}), json!({"a": {"b": {}}}));
        check(json!({"k": HIDDEN}), json!({"k": HIDDEN, "l": HIDDEN, "m": null}), json!({}));
        check(json!({}), json!({"plugin": ["x"], "plugin_host": {"grant": ["x"]}}), json!({}));
        check(json!({}), json!("text"), json!({}));
    }

    #[test]
    fn models_of_the_api_become_models_of_a_configuration() {
        let models = json!({"m": {
            "name": "M", "api": {"id": "m-1"}, "limit": {"context": 10, "input": 9, "output": 5},
            "capabilities": {"toolcall": true, "reasoning": false, "input": {"text": true, "pdf": false}},
            "cost": {"input": 1.0, "output": 2.0, "cache": {"read": 0.5}},
        }});
        assert_eq!(
            Value::Object(provider_models(&models)),
            json!({"m": {
                "id": "m-1", "name": "M", "tool_call": true, "reasoning": false,
                "modalities": {"input": ["text"]}, "limit": {"context": 10, "input": 9, "output": 5},
                "cost": {"input": 1.0, "output": 2.0, "cache_read": 0.5},
            }})
        );
        assert!(provider_models(&json!([])).is_empty());
    }

    #[test]
    fn models_that_plugins_removed_are_found() {
        let removed = |known: &str, after: &str, configured: Value, before: Value| -> Vec<String> {
            let models =
                |ids: &str| Value::Object(ids.chars().map(|id| (id.to_string(), json!({}))).collect());
            let (known, after) = (models(known), models(after));
            let removed = removed_models(&ListedModels {
                known: &known,
                after: &after,
                configured: &configured,
                removed_before: &before,
            });
            removed.into_iter().collect()
        };
        assert!(removed("ab", "ab", json!({"blacklist": ["z"]}), Value::Null).is_empty());
        assert_eq!(removed("ab", "bc", json!({"blacklist": ["z"]}), Value::Null), ["a", "z"]);
        assert!(removed("ab", "b", json!({"models": {"a": {}}}), Value::Null).is_empty());
        assert_eq!(removed("b", "b", json!({}), json!(["a"])), ["a"]);
        assert!(removed("b", "ab", json!({}), json!(["a"])).is_empty());
    }

    #[test]
    fn prices_are_returned_if_they_changed() {
        let provider = |input: f64| json!({"models": {"m": {"cost": {"input": input, "output": 2.0, "cache": {"read": 0.5}}}}});
        assert!(provider_changes(&json!({}), &provider(1.0), &provider(1.0)).is_empty());
        let changed = provider_changes(&json!({"apiKey": "x"}), &provider(1.0), &provider(0.0));
        let cost = json!({"input": 0.0, "output": 2.0, "cache_read": 0.5, "cache_write": 0.0});
        assert_eq!(
            Value::Object(changed),
            json!({"options": {"apiKey": "x"}, "models": {"m": {"cost": cost}}})
        );
    }
}
