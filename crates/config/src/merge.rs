//! Merges configuration documents.

use std::collections::HashSet;

use serde_json::Value;

use crate::Map;

/// The lists that are joined across documents instead of replaced.
pub(crate) const APPENDED_LISTS: [&str; 2] = ["instructions", "plugin"];

/// Merges a document into the earlier ones. Later values win; see [`APPENDED_LISTS`] for the exceptions.
pub(crate) fn apply(under: &mut Map, over: Map) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Array(there)), Value::Array(more)) if APPENDED_LISTS.contains(&key.as_str()) => {
                add(there, more);
            }
            (Some(there), value) => merge(there, value),
            (None, Value::Array(more)) if APPENDED_LISTS.contains(&key.as_str()) => {
                let mut list = Vec::new();
                add(&mut list, more);
                under.insert(key, Value::Array(list));
            }
            (None, value) => {
                under.insert(key, value);
            }
        }
    }
}

/// Merges objects key by key; any other value replaces the old one.
///
/// Existing keys keep their position, new keys are appended.
pub(crate) fn merge(under: &mut Value, over: Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => merge_maps(under, over),
        (under, over) => *under = over,
    }
}

/// Merges objects key by key, at every depth.
pub(crate) fn merge_maps(under: &mut Map, over: Map) {
    for (key, value) in over {
        match under.get_mut(&key) {
            Some(there) => merge(there, value),
            None => {
                under.insert(key, value);
            }
        }
    }
}

fn add(list: &mut Vec<Value>, more: Vec<Value>) {
    let mut there: HashSet<String> = list.iter().map(Value::to_string).collect();
    list.extend(more.into_iter().filter(|entry| there.insert(entry.to_string())));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(under: Value, over: Value, expected: &str) {
        let (Value::Object(mut under), Value::Object(over)) = (under, over) else { panic!("objects") };
        apply(&mut under, over);
        assert_eq!(Value::Object(under).to_string(), expected);
    }

    #[test]
    fn objects_merge_and_everything_else_replaces() {
        check(
            json!({"b": {"x": 1, "y": [1, 2]}, "a": 1}),
            json!({"c": null, "a": {"n": 1}, "b": {"y": [3], "z": 2}}),
            r#"{"b":{"x":1,"y":[3],"z":2},"a":{"n":1},"c":null}"#,
        );
    }

    #[test]
    fn instructions_and_plugins_are_joined_without_duplicates() {
        check(
            json!({"instructions": ["a", "b"]}),
            json!({"instructions": ["b", "c", "c"], "plugin": ["p", "p"], "other": {"plugin": [1, 1]}}),
            r#"{"instructions":["a","b","c"],"plugin":["p"],"other":{"plugin":[1,1]}}"#,
        );
    }

    /// Documents in which a key always has the same type of value, as in checked documents.
    fn document() -> impl Strategy<Value = Value> {
        let leaf = prop::collection::btree_map("[s][a-c]", any::<u8>().prop_map(|n| json!(n)), 0..3)
            .prop_map(|entries| Value::Object(entries.into_iter().collect()));
        leaf.prop_recursive(3, 24, 4, |inner| {
            let scalar = ("[s][a-c]", any::<u8>().prop_map(|n| json!(n)));
            let list = ("[l][a-c]", prop::collection::vec(any::<u8>(), 0..3).prop_map(|list| json!(list)));
            let entry = prop_oneof![scalar, list, ("[o][a-c]", inner)];
            prop::collection::vec(entry, 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect()))
        })
    }

    fn merged(mut under: Value, over: Value) -> Value {
        merge(&mut under, over);
        under
    }

    proptest! {
        #[test]
        fn merging_is_associative_and_keeps_order(a in document(), b in document(), c in document()) {
            let left = merged(merged(a.clone(), b.clone()), c.clone());
            let right = merged(a, merged(b, c));
            prop_assert_eq!(left.to_string(), right.to_string());
        }

        #[test]
        fn merging_a_document_with_itself_changes_nothing(a in document()) {
            prop_assert_eq!(merged(a.clone(), a.clone()).to_string(), a.to_string());
        }
    }
}
