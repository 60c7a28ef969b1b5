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
    merge, request,
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

/// The keys of a new agent that a plugin of a repository can set, besides its rules.
const AGENT_OF_PLUGIN: &[&str] = &[
    "description",
    "prompt",
    "mode",
    "hidden",
    "color",
    "temperature",
    "top_p",
    "steps",
    "model",
    "variant",
];
/// The names of the built-in agents and commands.
const BUILT_IN: [&str; 9] =
    ["build", "plan", "general", "explore", "compaction", "title", "summary", "init", "review"];
/// The keys of a new command that a plugin of a repository can set.
const COMMAND_OF_PLUGIN: &[&str] = &["template", "description", "agent", "subtask", "model", "variant"];

/// Reduces a document to what a plugin of a trusted repository can change, and returns the keys that it lost.
///
/// The question about trust lists the plugin, and not what it changes. So it can tighten rules and add agents and
/// commands with new names, which a person starts. What already holds stays: rules that allow, the shell, the addresses
/// of providers, and the prompts and programs of existing agents and commands. The document is normalized.
pub(super) fn keep_of_plugin(document: &mut Map, known: &Map) -> Vec<String> {
    let mut refused = Vec::new();
    for (key, value) in std::mem::take(document) {
        let kept = match key.as_str() {
            "permission" => Some(restricting(&value)),
            "tools" => Some(only(&value, |on| *on == false)),
            "agent" => Some(entries(&value, |name, agent| agent_of_plugin(name, agent, known))),
            "command" => Some(entries(&value, |name, command| {
                let is_known = is_known(name, &["command"], known);
                (!is_known).then(|| picked(command, COMMAND_OF_PLUGIN))
            })),
            // It could replace the agent whose prompt the user relies on.
            "default_agent" => None,
            "share" if value == "auto" => None,
            // The program would load a URL for the plugin, which has no network.
            "instructions" => Some(value.as_array().map_or(json!([]), |entries| {
                entries.iter().filter(|entry| !entry.as_str().is_some_and(request::is_url)).cloned().collect()
            })),
            _ => (class::class_of(&key) == Class::Inert).then(|| value.clone()),
        };
        if kept.as_ref() != Some(&value) {
            refused.push(key.clone());
        }
        document.extend(kept.map(|kept| (key, kept)));
    }
    refused
}

/// Whether the program or the configuration has an entry with this name already.
fn is_known(name: &str, keys: &[&str], known: &Map) -> bool {
    BUILT_IN.contains(&name) || keys.iter().any(|key| object_at(known, key).get(name).is_some())
}

/// A new agent, or the restrictions for an existing one.
fn agent_of_plugin(name: &str, agent: &Value, known: &Map) -> Option<Value> {
    let is_known = is_known(name, &["agent", "mode"], known);
    let mut kept = if is_known { json!({}) } else { picked(agent, AGENT_OF_PLUGIN) };
    // The normalized form has options always.
    if let Some(options) = agent.get("options").filter(|options| **options == json!({})) {
        kept["options"] = options.clone();
    }
    if let Some(rules) = agent.get("permission") {
        kept["permission"] = restricting(rules);
    }
    Some(kept)
}

/// The rules that ask or deny.
fn restricting(rules: &Value) -> Value {
    let is_kept = |action: &Value| matches!(action.as_str(), Some("ask" | "deny"));
    let rules = rules.as_object().into_iter().flatten().filter_map(|(tool, rule)| match rule {
        Value::Object(_) => Some((tool.clone(), only(rule, is_kept))),
        action => is_kept(action).then(|| (tool.clone(), action.clone())),
    });
    Value::Object(rules.collect())
}

/// The entries of an object that `keep` returns in some form.
fn entries(value: &Value, keep: impl Fn(&str, &Value) -> Option<Value>) -> Value {
    let entries = value.as_object().into_iter().flatten();
    Value::Object(entries.filter_map(|(name, value)| Some((name.clone(), keep(name, value)?))).collect())
}

/// The listed keys of an object.
fn picked(value: &Value, keys: &[&str]) -> Value {
    let entries = value.as_object().into_iter().flatten().filter(|(key, _)| keys.contains(&key.as_str()));
    Value::Object(entries.map(|(key, value)| (key.clone(), value.clone())).collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(changed: Value, kept: Value, refused: &[&str]) {
        let known = json!({ "command": { "test": {} }, "agent": { "mine": {} }, "mode": { "older": {} } });
        let (mut document, known) = (changed.as_object().cloned().unwrap(), known.as_object().unwrap());
        let found = keep_of_plugin(&mut document, known);
        assert_eq!(
            (Value::Object(document), found),
            (kept, refused.iter().map(|&key| key.to_owned()).collect())
        );
    }

    #[test]
    fn a_plugin_of_a_repository_only_tightens_rules() {
        let kept = json!({ "permission": { "edit": { "a": "deny" }, "bash": {}, "read": "ask" } });
        let changed = json!({ "permission": {
            "*": "allow", "edit": { "*": "allow", "a": "deny" }, "bash": { "*": "allow" }, "read": "ask",
        } });
        check(changed, kept, &["permission"]);
        let restriction = json!({ "permission": { "bash": { "git push*": "deny" } } });
        check(restriction.clone(), restriction, &[]);
        check(
            json!({ "tools": { "bash": true, "edit": false } }),
            json!({ "tools": { "edit": false } }),
            &["tools"],
        );
    }

    #[test]
    fn a_plugin_of_a_repository_replaces_nothing() {
        for name in ["build", "plan", "mine", "older"] {
            let changed =
                json!({ "agent": { name: { "prompt": "Obey me.", "permission": { "edit": "deny" } } } });
            check(changed, json!({ "agent": { name: { "permission": { "edit": "deny" } } } }), &["agent"]);
        }
        for name in ["test", "init", "review"] {
            check(
                json!({ "command": { name: { "template": "x" } } }),
                json!({ "command": {} }),
                &["command"],
            );
        }
        let files = json!({ "instructions": ["a.md"] });
        check(json!({ "instructions": ["a.md", "https://example.com/?secret"] }), files, &["instructions"]);
        for (key, value) in [
            ("shell", json!("/tmp/x")),
            ("hooks", json!({ "PreToolUse": [] })),
            ("formatter", json!({ "x": { "command": ["x"], "extensions": [".x"] } })),
            ("lsp", json!({ "x": { "command": ["x"], "extensions": [".x"] } })),
            ("provider", json!({ "anthropic": { "options": { "baseURL": "https://example.com" } } })),
            ("mcp", json!({ "x": { "type": "local", "command": ["x"] } })),
            ("default_agent", json!("greeter")),
            ("sandbox", json!({ "mode": "off" })),
            ("key_of_the_future", json!(1)),
        ] {
            check(json!({ key: value }), json!({}), &[key]);
        }
    }

    #[test]
    fn a_plugin_of_a_repository_adds_agents_and_commands() {
        let added = json!({
            "command": { "greet": { "template": "Say hello", "agent": "greeter" } },
            "agent": { "greeter": { "prompt": "You greet.", "mode": "primary", "options": {}, "permission": {} } },
        });
        check(added.clone(), added, &[]);
        let program = json!({ "agent": { "other": { "prompt": "x", "command": ["sh"], "type": "acp" } } });
        check(program, json!({ "agent": { "other": { "prompt": "x" } } }), &["agent"]);
    }
}
