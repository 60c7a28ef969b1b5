//! Hooks: commands that the configuration runs at events of a session.
//!
//! The events, the input on standard input and the answers have the form of Claude Code's command hooks, so existing
//! hooks work. Hooks can make the rules stricter, add text for the model and end a turn. They cannot permit what a rule
//! denies or the sandbox prevents.

pub(crate) mod answer;
pub(crate) mod fire;
mod process;
pub(crate) mod settings;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use codewright_config::Parts;
use regex::Regex;
use serde_json::{Map, Value};

use crate::extension::Extension;

/// The key of the configuration.
const KEY: &str = "hooks";
/// The time of a hook without `timeout`.
const DEADLINE: Duration = Duration::from_secs(60);
/// The longest time of a hook.
const MAX_DEADLINE: Duration = Duration::from_secs(600);
/// The largest number of hooks of a configuration.
const MAX_HOOKS: usize = 200;
/// The longest command, and the longest matcher.
const MAX_TEXT_BYTES: usize = 16 * 1024;
/// The size of a compiled matcher.
const MAX_MATCHER_BYTES: usize = 256 * 1024;

/// An event at which hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookEvent {
    SessionStart,
    SessionEnd,
    UserPromptSubmit,
    PreToolUse,
    PostToolUse,
    PermissionRequest,
    Notification,
    Stop,
    SubagentStop,
    PreCompact,
}

impl HookEvent {
    const ALL: [Self; 10] = [
        Self::SessionStart,
        Self::SessionEnd,
        Self::UserPromptSubmit,
        Self::PreToolUse,
        Self::PostToolUse,
        Self::PermissionRequest,
        Self::Notification,
        Self::Stop,
        Self::SubagentStop,
        Self::PreCompact,
    ];

    /// The name in the configuration and in the input of hooks.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PermissionRequest => "PermissionRequest",
            Self::Notification => "Notification",
            Self::Stop => "Stop",
            Self::SubagentStop => "SubagentStop",
            Self::PreCompact => "PreCompact",
        }
    }
}

/// The author of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    User,
    /// The repository, which the user trusts.
    Repository,
}

/// A configured hook.
#[derive(Debug, Clone)]
pub(crate) struct Hook {
    pub(crate) event: HookEvent,
    /// `None` matches everything.
    matcher: Option<Regex>,
    pub(crate) command: String,
    pub(crate) deadline: Duration,
    pub(crate) author: Author,
}

impl Hook {
    /// Whether the hook is for one of these names.
    fn matches(&self, names: &[String]) -> bool {
        self.matcher.as_ref().is_none_or(|matcher| names.iter().any(|name| matcher.is_match(name)))
    }
}

/// The hooks of a directory.
#[derive(Default)]
pub(crate) struct Hooks {
    all: List,
    /// The extension that runs them, once it is needed.
    pub(crate) opened: OnceLock<Arc<dyn Extension>>,
}

/// The hooks, in the order of the configuration. Clones share everything.
#[derive(Debug, Clone, Default)]
pub(crate) struct List(Arc<Vec<Hook>>);

/// A document with hooks that is not the configuration itself.
pub(crate) struct Document {
    /// The content of a `settings.json`.
    pub(crate) content: Value,
    pub(crate) author: Author,
    /// The path, for warnings.
    pub(crate) name: String,
}

impl Hooks {
    /// Reads the hooks of a configuration and of other documents. Invalid ones are left out with a warning.
    pub(crate) fn read(
        config: &Value,
        parts: Option<&Parts>,
        documents: &[Document],
        warnings: &mut Vec<String>,
    ) -> Self {
        let mut hooks = Vec::new();
        let (user, repository) = match parts {
            Some(parts) => (&parts.user.raw, Some(&parts.repository.raw)),
            None => (config, None),
        };
        let mut add = |content: &Value, author, name: &str| {
            let mut faults = Vec::new();
            read(content.get(KEY).unwrap_or(&Value::Null), author, &mut hooks, &mut faults);
            warnings.extend(faults.into_iter().map(|fault| format!("{name}: {fault}; the hook is ignored")));
        };
        add(user, Author::User, "`hooks`");
        if let Some(repository) = repository {
            add(repository, Author::Repository, "`hooks` of the repository");
        }
        for document in documents {
            add(&document.content, document.author, &format!("`{}`", document.name));
        }
        if hooks.len() > MAX_HOOKS {
            warnings.push(format!("there are more than {MAX_HOOKS} hooks; the rest is ignored"));
            hooks.truncate(MAX_HOOKS);
        }
        Self { all: List(Arc::new(hooks)), opened: OnceLock::new() }
    }

    /// The hooks.
    pub(crate) fn list(&self) -> &List {
        &self.all
    }
}

impl List {
    /// Returns the hooks of an event for a thing with these names. Of equal commands one is returned.
    pub(crate) fn of(&self, event: HookEvent, names: &[String]) -> Vec<&Hook> {
        let mut found: Vec<&Hook> = Vec::new();
        for hook in self.0.iter().filter(|hook| hook.event == event && hook.matches(names)) {
            if !found.iter().any(|other| other.command == hook.command && other.author == hook.author) {
                found.push(hook);
            }
        }
        found
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is a hook of an event.
    pub(crate) fn has(&self, event: HookEvent) -> bool {
        self.0.iter().any(|hook| hook.event == event)
    }
}

fn read(hooks: &Value, author: Author, found: &mut Vec<Hook>, faults: &mut Vec<String>) {
    let Some(hooks) = hooks.as_object() else {
        if !hooks.is_null() {
            faults.push("`hooks` is not an object of events".to_owned());
        }
        return;
    };
    for (name, groups) in hooks {
        let Some(event) = HookEvent::ALL.into_iter().find(|event| event.name() == name) else {
            // Events of other programs are not an error.
            faults.push(format!("there is no event `{name}`"));
            continue;
        };
        let Some(groups) = groups.as_array() else {
            faults.push(format!("`{name}` is not a list"));
            continue;
        };
        for group in groups {
            let matcher = match matcher(group.get("matcher")) {
                Ok(matcher) => matcher,
                Err(fault) => {
                    faults.push(format!("`{name}`: {fault}"));
                    continue;
                }
            };
            for entry in group["hooks"].as_array().into_iter().flatten() {
                match hook(entry) {
                    Ok((command, deadline)) => {
                        found.push(Hook { event, matcher: matcher.clone(), command, deadline, author });
                    }
                    Err(fault) => faults.push(format!("`{name}`: {fault}")),
                }
            }
        }
    }
}

/// The matcher of a group: a regular expression for whole names. Empty and `*` match everything.
fn matcher(written: Option<&Value>) -> Result<Option<Regex>, String> {
    let text = match written {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) if text.is_empty() || text == "*" => return Ok(None),
        Some(Value::String(text)) if text.len() <= MAX_TEXT_BYTES => text,
        Some(_) => return Err("`matcher` is not a text of at most 16 KiB".to_owned()),
    };
    let built = regex::RegexBuilder::new(&format!("^(?:{text})$")).size_limit(MAX_MATCHER_BYTES).build();
    built.map(Some).map_err(|_| format!("`matcher` is not a regular expression: `{text}`"))
}

fn hook(entry: &Value) -> Result<(String, Duration), String> {
    if entry.get("type").is_some_and(|kind| kind != "command") {
        return Err("only hooks of the type `command` are supported".to_owned());
    }
    let command = entry["command"].as_str().filter(|command| !command.trim().is_empty());
    let command = command.filter(|command| command.len() <= MAX_TEXT_BYTES);
    let command = command.ok_or("`command` is not a text of at most 16 KiB")?;
    let deadline = match entry.get("timeout") {
        None | Some(Value::Null) => DEADLINE,
        Some(seconds) => {
            let seconds = seconds.as_f64().filter(|seconds| *seconds > 0.0 && seconds.is_finite());
            let seconds = seconds.ok_or("`timeout` is not a number of seconds")?;
            Duration::from_secs_f64(seconds.min(MAX_DEADLINE.as_secs_f64()))
        }
    };
    Ok((command.to_owned(), deadline))
}

/// The names of a tool for matchers: ours and Claude Code's.
pub(crate) fn tool_names(tool: &str) -> Vec<String> {
    const NAMES: &[(&str, &[&str])] = &[
        ("bash", &["Bash"]),
        ("edit", &["Edit", "MultiEdit"]),
        ("multiedit", &["MultiEdit"]),
        ("write", &["Write"]),
        ("patch", &["Edit"]),
        ("apply_patch", &["Edit"]),
        ("read", &["Read"]),
        ("grep", &["Grep"]),
        ("glob", &["Glob"]),
        ("task", &["Task"]),
        ("webfetch", &["WebFetch"]),
        ("websearch", &["WebSearch"]),
        ("todowrite", &["TodoWrite"]),
        ("todoread", &["TodoRead"]),
        ("skill", &["Skill"]),
        ("question", &["AskUserQuestion"]),
    ];
    let others = NAMES.iter().find(|(name, _)| *name == tool).map_or(&[][..], |(_, others)| *others);
    others.iter().map(|&name| name.to_owned()).chain([tool.to_owned()]).collect()
}

/// The arguments of a tool with the names that hooks for Claude Code expect, beside ours.
pub(crate) fn tool_input(input: &Value) -> Value {
    const NAMES: &[(&str, &str)] = &[
        ("filePath", "file_path"),
        ("oldString", "old_string"),
        ("newString", "new_string"),
        ("replaceAll", "replace_all"),
    ];
    let Value::Object(own) = input else { return input.clone() };
    let mut shown: Map<String, Value> = own.clone();
    for (name, other) in NAMES {
        if let (Some(value), false) = (own.get(*name), own.contains_key(*other)) {
            shown.insert((*other).to_owned(), value.clone());
        }
    }
    Value::Object(shown)
}

/// The arguments that a hook changed, with our names.
pub(crate) fn own_input(changed: Value, before: &Value) -> Value {
    const NAMES: &[(&str, &str)] = &[
        ("file_path", "filePath"),
        ("old_string", "oldString"),
        ("new_string", "newString"),
        ("replace_all", "replaceAll"),
    ];
    let Value::Object(mut changed) = changed else { return before.clone() };
    for (other, own) in NAMES {
        // A key that the tool has itself stays.
        if before.get(*other).is_some() {
            continue;
        }
        if let Some(value) = changed.remove(*other)
            && (!changed.contains_key(*own) || changed.get(*own) == before.get(*own))
        {
            changed.insert((*own).to_owned(), value);
        }
    }
    Value::Object(changed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hooks(written: Value) -> (Hooks, Vec<String>) {
        let mut warnings = Vec::new();
        let hooks = Hooks::read(&json!({"hooks": written}), None, &[], &mut warnings);
        (hooks, warnings)
    }

    #[track_caller]
    fn check(matcher: &str, tool: &str, expected: bool) {
        let group = json!({"matcher": matcher, "hooks": [{"type": "command", "command": "x"}]});
        let (hooks, warnings) = hooks(json!({"PreToolUse": [group]}));
        assert_eq!(warnings, [""; 0]);
        let found = hooks.list().of(HookEvent::PreToolUse, &tool_names(tool));
        assert_eq!(!found.is_empty(), expected, "{matcher} {tool}");
    }

    #[test]
    fn matchers_know_both_names_of_a_tool() {
        for (matcher, tool, expected) in [
            ("*", "bash", true),
            ("", "bash", true),
            ("Bash", "bash", true),
            ("bash", "bash", true),
            ("Edit|Write", "write", true),
            ("Edit|Write", "read", false),
            ("Ba", "bash", false),
            ("mcp__git__.*", "mcp__git__log", true),
            (".*", "own_tool", true),
        ] {
            check(matcher, tool, expected);
        }
    }

    #[test]
    fn invalid_hooks_are_ignored_with_a_warning() {
        for written in [
            json!([]),
            json!({"Unknown": []}),
            json!({"Stop": {}}),
            json!({"Stop": [{"matcher": "(", "hooks": []}]}),
            json!({"Stop": [{"matcher": 1, "hooks": []}]}),
            json!({"Stop": [{"hooks": [{"type": "prompt", "prompt": "x"}]}]}),
            json!({"Stop": [{"hooks": [{"type": "command"}]}]}),
            json!({"Stop": [{"hooks": [{"command": "x", "timeout": -1}]}]}),
            json!({"Stop": [{"matcher": "(a{1000}){1000}", "hooks": [{"command": "x"}]}]}),
        ] {
            let (hooks, warnings) = hooks(written.clone());
            assert!(!hooks.list().has(HookEvent::Stop) && warnings.len() == 1, "{written}: {warnings:?}");
        }
    }

    #[test]
    fn arguments_have_both_names() {
        let input = json!({"filePath": "a", "content": "b"});
        assert_eq!(tool_input(&input), json!({"filePath": "a", "content": "b", "file_path": "a"}));
        let changed = json!({"filePath": "a", "content": "b", "file_path": "c"});
        assert_eq!(own_input(changed, &input), json!({"filePath": "c", "content": "b"}));
        assert_eq!(own_input(json!({"file_path": "c"}), &input), json!({"filePath": "c"}));
        assert_eq!(own_input(json!("x"), &input), input);
    }
}
