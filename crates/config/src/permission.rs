//! Parses permission values into rules.

use std::path::Path;

use codewright_proto::{Action, Rule};
use serde_json::Value;

use crate::{
    Error, Map,
    document::{
        Node,
        schema::{self, Fault},
    },
    markdown::same_name,
};

/// The names of tools and permissions that people write in other spellings, such as those of other agents.
const NAMES: [&str; 25] = [
    "apply_patch",
    "bash",
    "batch",
    "codesearch",
    "doom_loop",
    "edit",
    "external_directory",
    "glob",
    "grep",
    "list",
    "lsp",
    "multiedit",
    "network",
    "patch",
    "plan_enter",
    "plan_exit",
    "question",
    "read",
    "skill",
    "task",
    "todoread",
    "todowrite",
    "webfetch",
    "websearch",
    "write",
];

/// The tools that need the permission `edit`, so that a rule about their names is about no call.
const EDITING: [&str; 4] = ["apply_patch", "multiedit", "patch", "write"];
/// The length of the longest name.
const MAX_NAME_LETTERS: usize = 18;
/// A name is taken for a misspelt one if at most one of this many characters is wrong.
const CHARS_PER_SLIP: usize = 3;
/// The least length of a name that is taken for the beginning of another one.
const MIN_BEGINNING: usize = 6;

/// Why a name below `permission` or `tools` is probably not what its author means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misnomer {
    /// The name of no built-in tool, but similar to one.
    Nearest(&'static str),
    /// The name of a tool that needs the permission `edit`.
    Covered,
}

/// Checks the name of a tool or permission.
pub(crate) fn misnomer(name: &str) -> Option<Misnomer> {
    if name.contains(['*', '?']) {
        return None;
    }
    let usual = usual_name(name);
    if EDITING.contains(&usual) {
        return Some(Misnomer::Covered);
    }
    let letters = |name: &str| name.to_lowercase().replace(['_', '-'], "");
    let own = letters(name);
    if NAMES.contains(&usual) || own.len() > 2 * MAX_NAME_LETTERS {
        return None;
    }
    // Tools of plugins often have such names.
    let is_plural =
        own.strip_suffix('s').is_some_and(|one| NAMES.into_iter().any(|known| letters(known) == one));
    if is_plural {
        return None;
    }
    let distance = |known: &str| strsim::damerau_levenshtein(&own, &letters(known));
    let is_beginning = |known: &str| {
        let known = letters(known);
        own.len() >= MIN_BEGINNING && known.starts_with(&own) && own.len() * 2 > known.len()
    };
    let similar = NAMES
        .into_iter()
        .filter(|known| distance(known) * CHARS_PER_SLIP <= own.len() || is_beginning(known));
    similar.min_by_key(|known| distance(known)).map(Misnomer::Nearest)
}

/// Parses a `permission` value into rules, in order. The last matching rule decides.
///
/// `"ask"` applies to every permission, `{"bash": "ask"}` to every pattern. `~` and `$HOME` at the start of a pattern
/// stand for the home directory.
pub fn permission_rules(value: &Value, home: &Path) -> Result<Vec<Rule>, Error> {
    schema::check(&Node::from(value), &schema::PERMISSION).map_err(|fault| {
        let Fault { key, expected, found, .. } = fault;
        Error::Permission { key, expected, found }
    })?;
    Ok(rules(value, home))
}

/// The rules of a checked value. Entries that are not rules are skipped.
pub(crate) fn rules(value: &Value, home: &Path) -> Vec<Rule> {
    let Value::Object(permissions) = value else {
        return action(value).map(|action| Rule::new("*", "*", action)).into_iter().collect();
    };
    let mut rules = Vec::new();
    for (permission, value) in permissions {
        let permission = usual_name(permission);
        match value {
            Value::Object(patterns) => rules.extend(patterns.iter().filter_map(|(pattern, value)| {
                Some(Rule::new(permission, &from_home(pattern, home), action(value)?))
            })),
            value => rules.extend(action(value).map(|action| Rule::new(permission, "*", action))),
        }
    }
    rules
}

/// A permission value as a map, so that those of several documents can be merged.
pub(crate) fn as_map(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        Value::Null => Map::new(),
        action => Map::from_iter([("*".to_owned(), action)]),
    }
}

/// Converts the older `tools` map to a permission value. Every tool that changes files becomes `edit`.
pub(crate) fn from_tools(tools: &Map) -> Map {
    let rule = |(tool, on): (&String, &Value)| {
        let key = match usual_name(tool) {
            "write" | "edit" | "patch" | "multiedit" => "edit",
            other => other,
        };
        let action = if on == &Value::Bool(true) { "allow" } else { "deny" };
        (key.to_owned(), Value::from(action))
    };
    tools.iter().map(rule).collect()
}

/// A name of a tool or permission in its usual spelling: `WebFetch` is `webfetch`. Names of other tools stay as they are.
fn usual_name(name: &str) -> &str {
    NAMES.into_iter().find(|known| same_name(known, name)).unwrap_or(name)
}

fn action(value: &Value) -> Option<Action> {
    match value.as_str()? {
        "allow" => Some(Action::Allow),
        "ask" => Some(Action::Ask),
        "deny" => Some(Action::Deny),
        _ => None,
    }
}

fn from_home(pattern: &str, home: &Path) -> String {
    let below = ["$HOME", "${HOME}", "~"].into_iter().find_map(|name| pattern.strip_prefix(name));
    match below {
        Some(below) if below.is_empty() || below.starts_with('/') => format!("{}{below}", home.display()),
        _ => pattern.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(rule: &Rule) -> String {
        format!("{} {} {:?}", rule.permission, rule.pattern, rule.action).to_lowercase()
    }

    #[track_caller]
    fn check(written: &str, expected: &[&str]) {
        let value: Value = serde_json::from_str(written).unwrap();
        let rules = permission_rules(&value, Path::new("/home/ann")).unwrap();
        assert_eq!(rules.iter().map(line).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_plain_action_applies_to_everything() {
        check(r#""ask""#, &["* * ask"]);
    }

    #[test]
    fn rules_keep_the_order_they_are_written_in() {
        check(
            r#"{"edit": "deny", "bash": {"git *": "allow", "*": "ask", "a": "deny"}, "*": "allow"}"#,
            &["edit * deny", "bash git * allow", "bash * ask", "bash a deny", "* * allow"],
        );
        check("{}", &[]);
    }

    #[test]
    fn names_of_tools_are_read_in_any_spelling() {
        check(
            r#"{"Bash": "deny", "WebFetch": "ask", "todo_write": "deny", "External-Directory": {"*": "deny"}}"#,
            &["bash * deny", "webfetch * ask", "todowrite * deny", "external_directory * deny"],
        );
        check(r#"{"My_Tool": "deny", "B*": "deny"}"#, &["my_tool * deny", "b* * deny"]);
        let tools = Map::from_iter([("Write".to_owned(), Value::Bool(false))]);
        assert_eq!(Value::Object(from_tools(&tools)), serde_json::json!({"edit": "deny"}));
    }

    #[test]
    fn a_misspelt_name_of_a_tool_is_recognized() {
        for (name, expected) in [
            ("edti", Some(Misnomer::Nearest("edit"))),
            ("wriet", Some(Misnomer::Nearest("write"))),
            ("Web_Fech", Some(Misnomer::Nearest("webfetch"))),
            ("external_dir", Some(Misnomer::Nearest("external_directory"))),
            ("externaldirektory", Some(Misnomer::Nearest("external_directory"))),
            ("reads", None),
            ("write", Some(Misnomer::Covered)),
            ("Multi-Edit", Some(Misnomer::Covered)),
            ("edit", None),
            ("WebFetch", None),
            ("web*", None),
            ("*", None),
            ("web", None),
            ("files_read", None),
            ("deploy", None),
            ("", None),
        ] {
            assert_eq!(misnomer(name), expected, "{name}");
        }
        assert_eq!(misnomer(&"x".repeat(100_000)), None);
    }

    #[test]
    fn a_tilde_stands_for_the_home_directory() {
        check(
            r#"{"external_directory": {"~/src/*": "allow", "$HOME": "ask", "~ann/x": "deny", "a/~/b": "deny"}}"#,
            &[
                "external_directory /home/ann/src/* allow",
                "external_directory /home/ann ask",
                "external_directory ~ann/x deny",
                "external_directory a/~/b deny",
            ],
        );
    }

    #[test]
    fn an_invalid_rule_is_reported() {
        for (written, expected) in [
            ("true", "`configuration` must be one of `ask`, `allow`, `deny` or an object, found `true`"),
            (r#"{"edit": 1}"#, "`edit` must be one of `ask`, `allow`, `deny` or an object, found a number"),
            (
                r#"{"bash": {"rm *": "no"}}"#,
                "`bash.rm *` must be one of `ask`, `allow`, `deny`, found another string",
            ),
            (
                r#"{"network": {"*.example.com:443": "allow", "example.com:70000": "allow"}}"#,
                "`network.example.com:70000` must be named `host:port` in lower case with a port of 1 to 65535, or \
                 with wildcards, found another name",
            ),
            (
                r#"{"network": {"example.com:443": true}}"#,
                "`network.example.com:443` must be one of `ask`, `allow`, `deny`, found `true`",
            ),
        ] {
            let value: Value = serde_json::from_str(written).unwrap();
            let error = permission_rules(&value, Path::new("/")).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn the_older_tools_map_becomes_permissions() {
        let tools: Map =
            serde_json::from_str(r#"{"write": false, "bash": true, "patch": true, "web*": false}"#).unwrap();
        let value = Value::Object(from_tools(&tools));
        assert_eq!(value.to_string(), r#"{"edit":"allow","bash":"allow","web*":"deny"}"#);
    }
}
