//! Restricts a repository's documents: the part that takes effect without trust, and keys that only the user can set.

use serde_json::{Value, json};

use super::normalize::object_at;
use crate::{
    Error, Map,
    class::{self, Class},
    document::{
        Node,
        schema::{self},
    },
    merge,
};

/// Whether a path stays inside its base directory.
pub(super) fn is_inside(entry: &str) -> bool {
    let is_up = |part: &str| part == "..";
    !entry.starts_with(['/', '~', '$']) && !entry.contains(['{', '\\']) && !entry.split('/').any(is_up)
}

/// The harmless part of a repository's document, which takes effect without trust.
pub(super) fn inert(document: Map) -> Result<Map, Error> {
    let mut kept = Map::new();
    for (key, value) in document {
        if class::class_of(&key) != Class::Inert || has_reference(&value) {
            continue;
        }
        let value = match key.as_str() {
            "tools" => only(&value, |on| *on == false),
            "share" if value == "auto" => continue,
            _ => value,
        };
        kept.insert(key, value);
    }
    let node = Node::from(&Value::Object(kept.clone()));
    schema::check(&node, &schema::CONFIG).map_err(|fault| {
        let schema::Fault { key, expected, found, .. } = fault;
        Error::Permission { key, expected, found }
    })?;
    Ok(kept)
}

/// The permission rules of an untrusted document for single agents. They restrict existing agents and define none.
pub(super) fn restrictions(document: &Map) -> Map {
    let mut agents = object_at(document, "agent");
    merge::merge_maps(&mut agents, object_at(document, "mode"));
    let rules = |(name, agent): (&String, &Value)| {
        let permission =
            agent.get("permission").filter(|rules| !has_reference(rules) && is_permission(rules))?;
        Some((name.clone(), json!({ "permission": permission })))
    };
    let agents: Map = agents.iter().filter_map(rules).collect();
    if agents.is_empty() { agents } else { Map::from_iter([("agent".to_owned(), Value::Object(agents))]) }
}

fn is_permission(value: &Value) -> bool {
    schema::check(&Node::from(value), &schema::PERMISSION).is_ok()
}

/// The entries of an object whose values match.
fn only(value: &Value, matches: impl Fn(&Value) -> bool) -> Value {
    let entries = value.as_object().into_iter().flatten().filter(|(_, value)| matches(value));
    Value::Object(entries.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// Whether a value references a variable or a file.
fn has_reference(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{env:") || text.contains("{file:"),
        Value::Array(entries) => entries.iter().any(has_reference),
        Value::Object(entries) => entries.values().any(has_reference),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Removes the keys that a repository cannot set, and returns them.
pub(super) fn remove_user_only(document: &mut Map) -> Vec<String> {
    let mut removed = Vec::new();
    let keys: Vec<_> =
        document.keys().filter(|key| class::class_of(key) == Class::UserOnly).cloned().collect();
    for key in keys {
        document.shift_remove(&key);
        removed.push(key);
    }
    for part in class::user_only_parts() {
        let names: Vec<&str> = part.split('.').collect();
        if remove_part(document, &names) {
            removed.push(part.to_owned());
        }
    }
    removed
}

fn remove_part(map: &mut Map, names: &[&str]) -> bool {
    match names {
        [] => false,
        [last] => map.shift_remove(*last).is_some(),
        ["*", rest @ ..] => {
            let inner = map.iter_mut().filter_map(|(_, value)| value.as_object_mut());
            // Every entry is visited.
            inner.fold(false, |removed, map| remove_part(map, rest) | removed)
        }
        [name, rest @ ..] => {
            map.get_mut(*name).and_then(Value::as_object_mut).is_some_and(|map| remove_part(map, rest))
        }
    }
}
