//! Converts documents to the form in which they are merged.

use serde_json::{Value, json};

use crate::{Map, document::schema, merge, permission};

/// Converts a document to the form in which documents are merged.
pub(crate) fn normalize(mut document: Map) -> Map {
    fold_aliases(&mut document);
    if let Some(written) = document.get_mut("permission") {
        *written = Value::Object(permission::as_map(written.take()));
    }
    for key in ["agent", "mode"] {
        let agents = document.get_mut(key).and_then(Value::as_object_mut).into_iter().flatten();
        for (_, agent) in agents {
            if let Value::Object(written) = agent.take() {
                *agent = Value::Object(normalize_agent(written));
            }
        }
    }
    document
}

/// Converts two alternative keys: `agents`, and `permissions` with its lists of patterns.
fn fold_aliases(document: &mut Map) {
    if let Some(Value::Object(more)) = document.shift_remove("agents") {
        let mut agents = object_at(document, "agent");
        merge::merge_maps(&mut agents, more);
        document.insert("agent".to_owned(), Value::Object(agents));
    }
    if let Some(Value::Object(listed)) = document.shift_remove("permissions") {
        let mut rules = permission::as_map(document.get("permission").cloned().unwrap_or_default());
        for (tool, lists) in listed {
            // The last matching rule decides, so `deny` is last.
            let patterns = ["allow", "ask", "deny"].into_iter().flat_map(|action| {
                let written = lists[action].as_array().cloned().unwrap_or_default();
                written
                    .into_iter()
                    .filter_map(move |pattern| Some((pattern.as_str()?.to_owned(), json!(action))))
            });
            let patterns: Map = patterns.collect();
            merge::merge_maps(&mut rules, Map::from_iter([(tool, Value::Object(patterns))]));
        }
        document.insert("permission".to_owned(), Value::Object(rules));
    }
}

/// Converts an agent's tools to permissions and its unknown keys to options.
fn normalize_agent(mut agent: Map) -> Map {
    let mut options = object_at(&agent, "options");
    let unknown = |key: &str| schema::AGENT_KEYS.iter().all(|(known, _)| *known != key);
    options.extend(
        agent.iter().filter(|(key, _)| unknown(key)).map(|(key, value)| (key.clone(), value.clone())),
    );
    let mut rules = permission::from_tools(&object_at(&agent, "tools"));
    rules.extend(permission::as_map(agent.get("permission").cloned().unwrap_or_default()));
    if !agent.contains_key("steps")
        && let Some(steps) = agent.get("maxSteps").cloned()
    {
        agent.insert("steps".to_owned(), steps);
    }
    agent.insert("options".to_owned(), Value::Object(options));
    agent.insert("permission".to_owned(), Value::Object(rules));
    sorted(agent, schema::AGENT_KEYS)
}

/// Removes what is only converted in documents: the older keys, and unknown keys of agents, which are options there.
///
/// A plugin leaves an agent in the form that is used, so OpenCode ignores these keys. Plugins keep notes of their own in
/// them, for example `order`, that no provider knows.
pub(super) fn remove_converted(document: &mut Map) {
    for key in ["mode", "tools"] {
        document.shift_remove(key);
    }
    let agents = document.get_mut("agent").and_then(Value::as_object_mut).into_iter().flatten();
    for agent in agents.filter_map(|(_, agent)| agent.as_object_mut()) {
        agent.retain(|key, _| {
            let is_known = schema::AGENT_KEYS.iter().any(|(known, _)| known == key);
            is_known && !["tools", "maxSteps"].contains(&key.as_str())
        });
    }
}

/// Converts the older `mode` entries to primary agents.
pub(super) fn fold_modes(raw: &mut Map) {
    let modes = object_at(raw, "mode");
    if modes.is_empty() {
        return;
    }
    let mut agents = object_at(raw, "agent");
    for (name, mut mode) in modes {
        if let Some(mode) = mode.as_object_mut() {
            mode.insert("mode".to_owned(), json!("primary"));
        }
        merge::merge_maps(&mut agents, Map::from_iter([(name, mode)]));
    }
    raw.insert("agent".to_owned(), Value::Object(agents));
}

/// The object of a key, or an empty object.
pub(super) fn object_at(map: &Map, key: &str) -> Map {
    map.get(key).and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Sorts the entries: known keys first, in the order of the schema.
pub(super) fn sorted(mut map: Map, keys: &[(&str, schema::Shape)]) -> Map {
    let known = keys.iter().filter_map(|(key, _)| map.shift_remove_entry(*key)).collect::<Vec<_>>();
    known.into_iter().chain(map).collect()
}

/// The permission rules of a document. Those of the older `tools` map are first.
pub(super) fn rules_of(raw: &Map) -> Map {
    let mut rules = permission::from_tools(&object_at(raw, "tools"));
    merge::merge_maps(&mut rules, object_at(raw, "permission"));
    rules
}
