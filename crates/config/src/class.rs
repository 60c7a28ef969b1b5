//! The trust class of each configuration key: which keys of a repository's configuration take effect.
//!
//! A key without a class is a compile error, because the schema is compared with the table at compile time.

use crate::document::schema::{CONFIG_KEYS, OTHER_KEYS, Shape};

/// The condition for a key of a repository's configuration to take effect.
///
/// The user's own configuration always takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Takes effect in every repository, within the limits of the row's note.
    Inert,
    /// Takes effect once the user trusts the repository.
    NeedsTrust,
    /// Never takes effect from a repository.
    UserOnly,
}

impl Class {
    /// The name in the documentation.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Inert => "inert",
            Self::NeedsTrust => "needs trust",
            Self::UserOnly => "user only",
        }
    }
}

/// Each key with its class and a note: the reason, or the part that the class covers.
///
/// A dotted key is a part of the key before the dot with a separate class; `*` stands for any name.
pub const CLASSES: &[(&str, Class, &str)] = &[
    ("$schema", Class::Inert, "only editors read it"),
    ("model", Class::Inert, "only a model that the user can already use"),
    ("small_model", Class::Inert, "only a model that the user can already use"),
    ("default_agent", Class::Inert, "only an agent that the user already has"),
    ("username", Class::Inert, "only shown"),
    ("layout", Class::Inert, "only a warning: the layout is always `stretch`"),
    ("theme", Class::Inert, "only shown"),
    ("tui", Class::Inert, "only shown"),
    ("autoupdate", Class::Inert, "only a warning: the program never updates itself"),
    ("permission", Class::Inert, "only as far as it is stricter than the user's rules; the rest needs trust"),
    ("permissions", Class::Inert, "as `permission`"),
    ("tools", Class::Inert, "only `false`; the rest needs trust"),
    (
        "instructions",
        Class::Inert,
        "only files inside the worktree; URLs need trust, other files never apply",
    ),
    ("share", Class::Inert, "only `manual` and `disabled`; `auto` needs trust"),
    ("keybinds", Class::NeedsTrust, "a key could be moved to an approval"),
    ("command", Class::NeedsTrust, "templates can run shell commands"),
    ("agent", Class::NeedsTrust, "a prompt the model follows"),
    ("agents", Class::NeedsTrust, "as `agent`"),
    ("mode", Class::NeedsTrust, "as `agent`"),
    ("prompt", Class::NeedsTrust, "a prompt the model follows"),
    ("prompt.instructions", Class::UserOnly, "limits that keep instruction files inside the worktree"),
    ("skills", Class::NeedsTrust, "text the model follows"),
    ("references", Class::NeedsTrust, "names other directories"),
    ("reference", Class::NeedsTrust, "names other directories"),
    ("provider", Class::NeedsTrust, "decides where prompts and keys are sent"),
    ("provider.*.env", Class::UserOnly, "names the variables that hold credentials"),
    ("disabled_providers", Class::NeedsTrust, "decides where prompts are sent"),
    ("enabled_providers", Class::NeedsTrust, "decides where prompts are sent"),
    ("plugin", Class::NeedsTrust, "runs code"),
    ("plugin_host", Class::UserOnly, "decides what plugins can use and grant"),
    ("hooks", Class::NeedsTrust, "runs code"),
    ("claude_hooks", Class::UserOnly, "runs the hooks of another program"),
    ("mcp", Class::NeedsTrust, "starts programs and connects to servers"),
    ("mcp_tool_budget", Class::NeedsTrust, "raises what a turn can cost"),
    ("lsp", Class::NeedsTrust, "starts programs"),
    ("lsp_install", Class::UserOnly, "downloads and runs programs"),
    ("formatter", Class::NeedsTrust, "starts programs"),
    ("shell", Class::NeedsTrust, "names the program that runs every command"),
    ("snapshot", Class::NeedsTrust, "can turn undo off"),
    ("autoshare", Class::NeedsTrust, "publishes sessions"),
    ("logLevel", Class::NeedsTrust, "can fill the log"),
    ("watcher", Class::NeedsTrust, "can hide changes of files"),
    ("subagent_depth", Class::NeedsTrust, "raises what a turn can cost"),
    ("attachment", Class::NeedsTrust, "changes what is sent to a provider"),
    ("tool_output", Class::NeedsTrust, "raises what a turn can cost"),
    ("compaction", Class::NeedsTrust, "raises what a turn can cost"),
    ("experimental", Class::NeedsTrust, "turns features on"),
    ("experimental.openTelemetry", Class::UserOnly, "sends data to a collector"),
    ("server", Class::UserOnly, "decides who can reach the server"),
    ("auth", Class::UserOnly, "decides who can use the server, and for what"),
    ("store", Class::UserOnly, "names the database of all sessions"),
    ("node", Class::UserOnly, "connects servers that share a database"),
    ("sandbox", Class::UserOnly, "decides what commands can reach"),
    ("enterprise", Class::UserOnly, "decides where sessions are published"),
];

/// The class of a key. Unknown keys need trust.
#[must_use]
pub(crate) fn class_of(key: &str) -> Class {
    let row = CLASSES.iter().find(|(known, ..)| *known == key);
    row.map_or(Class::NeedsTrust, |(_, class, _)| *class)
}

/// The dotted keys that a repository cannot set.
pub(crate) fn user_only_parts() -> impl Iterator<Item = &'static str> {
    let rows = CLASSES.iter().filter(|(key, class, _)| *class == Class::UserOnly && key.contains('.'));
    rows.map(|(key, ..)| *key)
}

// Fails the build when a key of the schema has no row.
const _: () = {
    check(CONFIG_KEYS);
    check(OTHER_KEYS);
};

const fn check(keys: &[(&str, Shape)]) {
    let mut at = 0;
    while at < keys.len() {
        assert!(is_classified(keys[at].0), "a key of the configuration has no row in `CLASSES`");
        at += 1;
    }
}

const fn is_classified(key: &str) -> bool {
    let mut at = 0;
    while at < CLASSES.len() {
        if is_equal(CLASSES[at].0.as_bytes(), key.as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}

const fn is_equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_needs_trust() {
        assert_eq!(class_of("no_such_key"), Class::NeedsTrust);
        assert_eq!(class_of("theme"), Class::Inert);
        assert_eq!(class_of("server"), Class::UserOnly);
    }

    #[test]
    fn every_row_names_a_known_key_once() {
        let known = |key: &str| CONFIG_KEYS.iter().chain(OTHER_KEYS).any(|(name, _)| *name == key);
        for (at, (key, _, note)) in CLASSES.iter().enumerate() {
            let top = key.split('.').next().unwrap_or_default();
            assert!(known(top), "{key}");
            assert!(!note.is_empty(), "{key}");
            assert!(CLASSES[..at].iter().all(|(other, ..)| other != key), "{key} twice");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test's own switch, not configuration of the program")]
    fn the_documentation_lists_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let text = std::fs::read_to_string(path).unwrap();
        let rows =
            CLASSES.iter().map(|(key, class, note)| format!("| `{key}` | {} | {note} |\n", class.name()));
        let table: String =
            ["| key | class | note |\n|---|---|---|\n".to_owned()].into_iter().chain(rows).collect();
        let (start, end) = ("<!-- classes: generated -->\n", "<!-- end of classes -->");
        let (before, rest) = text.split_once(start).expect("the marker is in the document");
        let (current, after) = rest.split_once(end).expect("the end marker is in the document");
        if std::env::var_os("UPDATE_DOCS").is_some() && current != table {
            std::fs::write(path, format!("{before}{start}{table}{end}{after}")).unwrap();
        } else {
            assert_eq!(current, table, "run this test with UPDATE_DOCS=1");
        }
    }
}
