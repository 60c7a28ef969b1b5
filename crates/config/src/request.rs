//! The actions of a repository's configuration that need trust, as texts for the user.

use codewright_proto::{Action, Rule};
use serde_json::Value;

use crate::{
    Map,
    class::{self, Class},
    document::variables,
    permission,
};

/// The longest text in characters.
const MAX_CHARS: usize = 200;

/// File extensions that a JavaScript runtime loads.
const CODE: [&str; 8] = [".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"];

/// One action that needs trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustRequest {
    /// The file that requests it, relative to the root.
    pub source: String,
    /// The path of the configuration key, separated by dots.
    pub key: String,
    /// The action: "start the MCP server `x`: …".
    pub text: String,
}

impl TrustRequest {
    fn new(source: &str, key: &str, text: String) -> Self {
        Self { source: source.to_owned(), key: plain(key), text }
    }
}

/// The requests of a normalized document. `looser` returns whether a rule would loosen the user's rules.
pub(crate) fn of_document(document: &Map, source: &str, looser: &dyn Fn(&Rule) -> bool) -> Vec<TrustRequest> {
    let mut requests = Vec::new();
    for (key, value) in document {
        match key.as_str() {
            "permission" => requests.extend(of_rules(value, source, "permission", looser)),
            "agent" | "mode" => requests.extend(of_agents(key, value, source, looser)),
            "instructions" => requests.extend(of_urls(value, source)),
            "share" if value == "auto" => {
                requests.push(TrustRequest::new(source, key, "share every session".to_owned()));
            }
            "tools" => requests.extend(of_tools(value, source, looser)),
            _ if class::class_of(key) != Class::NeedsTrust => {}
            _ => requests.extend(of_key(key, value, source)),
        }
    }
    let names = variables(document);
    requests.extend(names.into_iter().map(|name| {
        let name = plain(&name);
        TrustRequest::new(source, "{env}", format!("read the environment variable `{name}`"))
    }));
    requests
}

/// The request of a code file that is loaded because of its directory.
pub(crate) fn of_code(path: &str) -> Option<TrustRequest> {
    let folder = path.rsplit('/').nth(1)?;
    let key = match folder {
        "plugin" | "plugins" => "plugin",
        "tool" | "tools" => "tool",
        _ => return None,
    };
    let is_configuration = [".opencode/", ".codewright/"].iter().any(|name| path.contains(name));
    let is_code = CODE.iter().any(|extension| path.ends_with(extension));
    let shown = plain(path);
    (is_configuration && is_code)
        .then(|| TrustRequest::new(&shown, key, format!("run the code of `{shown}`")))
}

/// The request of a file that binds keys of the terminal client.
pub(crate) fn of_keys(path: &str, keys: &Value) -> TrustRequest {
    TrustRequest::new(
        path,
        "keybinds",
        format!("bind keys of the terminal client: {}", plain(&keys.to_string())),
    )
}

/// The request of a skill.
pub(crate) fn of_skill(path: &str) -> TrustRequest {
    TrustRequest::new(path, "skills", format!("offer the skill `{path}` to the model"))
}

/// The directories in `skills.paths` of a document.
pub(crate) fn skill_folders(document: &Map) -> Vec<String> {
    let paths = document.get("skills").and_then(|skills| skills.get("paths")).and_then(Value::as_array);
    paths.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The permission for connections of commands, which a repository can only restrict.
const NETWORK: &str = "network";

/// The rules of a repository that allow a permission by name. A rule for all permissions is not an exception from the
/// user's rules, because it does not say which of them it would override. The hosts that commands reach are the user's
/// decision alone.
pub(crate) fn exceptions(rules: &[Rule]) -> Vec<Rule> {
    let is_named = |rule: &&Rule| {
        rule.action == Action::Allow && !rule.permission.contains(['*', '?']) && rule.permission != NETWORK
    };
    rules.iter().filter(is_named).cloned().collect()
}

fn of_rules(value: &Value, source: &str, key: &str, looser: &dyn Fn(&Rule) -> bool) -> Vec<TrustRequest> {
    // `~` for the home directory, so that patterns are displayed unchanged.
    let rules = permission::rules(value, std::path::Path::new("~"));
    let exceptions = exceptions(&rules).into_iter().filter(looser);
    let text = |rule: Rule| {
        let pattern = plain(&rule.pattern);
        let key = format!("{key}.{}", rule.permission);
        TrustRequest::new(
            source,
            &key,
            format!("allow `{} {pattern}` without asking", plain(&rule.permission)),
        )
    };
    exceptions.map(text).collect()
}

fn of_tools(value: &Value, source: &str, looser: &dyn Fn(&Rule) -> bool) -> Vec<TrustRequest> {
    let Value::Object(tools) = value else { return Vec::new() };
    let on: Map =
        tools.iter().filter(|(_, on)| **on == true).map(|(tool, on)| (tool.clone(), on.clone())).collect();
    of_rules(&Value::Object(permission::from_tools(&on)), source, "tools", looser)
}

fn of_agents(key: &str, value: &Value, source: &str, looser: &dyn Fn(&Rule) -> bool) -> Vec<TrustRequest> {
    let mut requests = Vec::new();
    for (name, agent) in value.as_object().into_iter().flatten() {
        let key = format!("{key}.{name}");
        requests.push(TrustRequest::new(source, &key, format!("define the agent `{}`", plain(name))));
        if agent.get("type").is_some() || agent.get("command").is_some() {
            let words = words(agent, "command").into_iter().chain(words(agent, "args"));
            let command = plain(&words.collect::<Vec<_>>().join(" "));
            let text = format!("start the program of the agent `{}`: {command}", plain(name));
            requests.push(TrustRequest::new(source, &key, text));
        }
        let rules = agent.get("permission").unwrap_or(&Value::Null);
        requests.extend(of_rules(rules, source, &format!("{key}.permission"), looser));
    }
    requests
}

/// The words of a command, which is a text or a list.
fn words<'a>(entry: &'a Value, key: &str) -> Vec<&'a str> {
    let written = entry.get(key).unwrap_or(&Value::Null);
    let list = written.as_array().into_iter().flatten();
    list.chain([written]).filter_map(Value::as_str).collect()
}

fn of_urls(value: &Value, source: &str) -> Vec<TrustRequest> {
    let entries = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    let urls = entries.filter(|entry| is_url(entry));
    urls.map(|url| {
        TrustRequest::new(source, "instructions", format!("fetch instructions from {}", plain(url)))
    })
    .collect()
}

pub(crate) fn is_url(entry: &str) -> bool {
    entry.starts_with("http://") || entry.starts_with("https://")
}

/// The requests of a key: one for each named entry, or one for the key as a whole.
fn of_key(key: &str, value: &Value, source: &str) -> Vec<TrustRequest> {
    let per_entry = |describe: &dyn Fn(&str, &Value) -> String| -> Vec<TrustRequest> {
        let entries = value.as_object().into_iter().flatten();
        let request = |(name, entry): (&String, &Value)| {
            TrustRequest::new(source, &format!("{key}.{name}"), describe(&plain(name), entry))
        };
        entries.map(request).collect()
    };
    match key {
        "provider" => per_entry(&provider),
        "mcp" => per_entry(&|name, entry| {
            let network = if has_network(entry) { WITH_NETWORK } else { "" };
            format!("start the MCP server `{name}`{}{network}", target(entry))
        }),
        "lsp" => with_known(
            per_entry(&|name, entry| format!("start the language server `{name}`{}", target(entry))),
            value,
            TrustRequest::new(source, key, "start the known language servers".to_owned()),
        ),
        "formatter" => with_known(
            per_entry(&|name, entry| format!("start the formatter `{name}`{}", target(entry))),
            value,
            TrustRequest::new(source, key, "format files with the known formatters".to_owned()),
        ),
        "command" => per_entry(&command),
        "plugin" => {
            let plugins = value.as_array().into_iter().flatten();
            let text = |plugin: &Value| format!("run the plugin `{}`", display(plugin));
            plugins.map(|plugin| TrustRequest::new(source, key, text(plugin))).collect()
        }
        "hooks" => hooks(value, source),
        "shell" => {
            vec![TrustRequest::new(source, key, format!("run commands in the shell `{}`", display(value)))]
        }
        _ if is_empty(value) => Vec::new(),
        _ => vec![TrustRequest::new(source, key, format!("set `{key}` to `{}`", display(value)))],
    }
}

/// The requests of hooks: one for each command.
pub(crate) fn hooks(value: &Value, source: &str) -> Vec<TrustRequest> {
    let mut requests = Vec::new();
    for (event, groups) in value.as_object().into_iter().flatten() {
        let key = format!("hooks.{event}");
        for group in groups.as_array().into_iter().flatten() {
            for hook in group.get("hooks").and_then(Value::as_array).into_iter().flatten() {
                let command = hook.get("command").unwrap_or(&Value::Null);
                let text = format!("run `{}` at the event `{}`", display(command), plain(event));
                requests.push(TrustRequest::new(source, &key, text));
            }
        }
    }
    requests
}

/// Adds the request of a key that also enables known programs.
fn with_known(mut requests: Vec<TrustRequest>, value: &Value, known: TrustRequest) -> Vec<TrustRequest> {
    if *value == Value::Bool(true) || value.as_object().is_some_and(Map::is_empty) {
        requests.push(known);
    }
    requests
}

fn provider(name: &str, entry: &Value) -> String {
    let url = entry.pointer("/options/baseURL").or_else(|| entry.get("api")).and_then(Value::as_str);
    match url {
        Some(url) => format!("send the prompts of the provider `{name}` to {}", plain(url)),
        None => format!("change the provider `{name}`"),
    }
}

fn command(name: &str, entry: &Value) -> String {
    let template = entry.get("template").and_then(Value::as_str).unwrap_or_default();
    let shells: Vec<String> = shells(template).map(|shell| format!("`{}`", plain(shell))).collect();
    if shells.is_empty() {
        return format!("define the command `/{name}`");
    }
    format!("define the command `/{name}`, which runs {}", shells.join(", "))
}

/// The shell commands of a template.
fn shells(template: &str) -> impl Iterator<Item = &str> {
    template.split("!`").skip(1).filter_map(|rest| rest.split('`').next())
}

/// The end of a request for a program with the network.
pub const WITH_NETWORK: &str = ", with the network";
/// Programs that fetch what they run, and the words after which others do.
const FETCHING: &[(&str, &[&str])] = &[
    ("npx", &[]),
    ("pnpx", &[]),
    ("bunx", &[]),
    ("uvx", &[]),
    ("dnx", &[]),
    ("pipx", &[]),
    ("npm", &["exec", "x"]),
    ("pnpm", &["dlx"]),
    ("yarn", &["dlx"]),
    ("bun", &["x"]),
    ("uv", &["run", "tool"]),
    ("deno", &["run"]),
    ("go", &["run"]),
    ("docker", &["run"]),
    ("podman", &["run"]),
];

/// Whether a command fetches the program that it runs, so that it needs the network.
#[must_use]
pub fn needs_network(words: &[&str]) -> bool {
    let named = |word: &str| {
        let name = word.rsplit('/').next().unwrap_or(word);
        FETCHING.iter().find(|(fetching, _)| *fetching == name)
    };
    let Some((at, (_, commands))) = words.iter().enumerate().find_map(|(at, word)| Some((at, named(word)?)))
    else {
        return false;
    };
    let mut rest = words[at + 1..].iter().filter(|word| !word.starts_with('-'));
    commands.is_empty() || rest.next().is_some_and(|word| commands.contains(word))
}

/// Whether the entry of a local MCP server says or shows that it needs the network.
fn has_network(entry: &Value) -> bool {
    let words: Vec<&str> = words(entry, "command").into_iter().chain(words(entry, "args")).collect();
    let is_confined = entry.get("confine") == Some(&Value::Bool(true));
    let named = entry.get("network").and_then(Value::as_bool);
    !words.is_empty() && !is_confined && named.unwrap_or_else(|| needs_network(&words))
}

/// The program or the address of an entry.
fn target(entry: &Value) -> String {
    let command = entry.get("command").and_then(Value::as_array).map(|words| {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        words.join(" ")
    });
    let url = || entry.get("url").and_then(Value::as_str).map(str::to_owned);
    command.or_else(url).map_or_else(String::new, |target| format!(": {}", plain(&target)))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(entries) => entries.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn display(value: &Value) -> String {
    match value {
        Value::String(text) => plain(text),
        other => plain(&other.to_string()),
    }
}

/// One line of bounded length without control characters and marks that change the direction of text. Backquotes are
/// replaced, because messages quote texts with them.
pub(crate) fn plain(text: &str) -> String {
    let is_invisible = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let mut plain: String =
        text.chars().take(MAX_CHARS + 1).map(|c| if is_invisible(c) { '\u{fffd}' } else { c }).collect();
    if plain.chars().count() > MAX_CHARS {
        plain = plain.chars().take(MAX_CHARS).collect::<String>() + "\u{2026}";
    }
    plain.replace('`', "'")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(document: Value, expected: &[&str]) {
        let Value::Object(document) = document else { panic!("an object") };
        let document = crate::load::normalize(document);
        let looser = |rule: &Rule| rule.permission != "todowrite";
        let texts: Vec<_> =
            of_document(&document, "f", &looser).into_iter().map(|request| request.text).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn harmless_keys_need_no_trust() {
        check(
            json!({
                "$schema": "s", "model": "a/b", "theme": "x", "tools": {"bash": false}, "share": "disabled",
                "instructions": ["docs/*.md"], "permission": {"bash": "deny", "edit": {"*": "ask"}, "todowrite": "allow"},
                "plugin": [], "mcp": {}, "server": {"port": 1},
            }),
            &[],
        );
    }

    #[test]
    fn each_action_has_a_request() {
        check(
            json!({
                "provider": {"p": {"options": {"baseURL": "http://h", "apiKey": "{env:KEY}"}}, "q": {"name": "Q"}},
                "mcp": {"m": {"command": ["npx", "x"]}, "n": {"url": "https://n"}},
                "command": {"c": {"template": "a !`ls` b !`rm x`"}, "d": {"template": "text"}},
                "agent": {"a": {"permission": {"bash": {"git *": "allow"}, "*": "allow"}}},
                "plugin": ["one"], "shell": "./x.sh", "share": "auto", "snapshot": false,
                "permission": {"read": "allow"}, "tools": {"write": true, "read": false},
                "instructions": ["https://i"],
            }),
            &[
                "send the prompts of the provider `p` to http://h",
                "change the provider `q`",
                "start the MCP server `m`: npx x, with the network",
                "start the MCP server `n`: https://n",
                "define the command `/c`, which runs `ls`, `rm x`",
                "define the command `/d`",
                "define the agent `a`",
                "allow `bash git *` without asking",
                "run the plugin `one`",
                "run commands in the shell `./x.sh`",
                "share every session",
                "set `snapshot` to `false`",
                "allow `read *` without asking",
                "allow `edit *` without asking",
                "fetch instructions from https://i",
                "read the environment variable `KEY`",
            ],
        );
    }

    #[test]
    fn code_is_recognized_by_its_directory() {
        for (path, expected) in [
            (".opencode/plugin/a.ts", true),
            ("sub/.codewright/tools/b.js", true),
            (".opencode/plugins/readme.md", false),
            ("src/plugin/a.ts", false),
            (".opencode/lib/a.ts", false),
        ] {
            assert_eq!(of_code(path).is_some(), expected, "{path}");
        }
    }

    #[test]
    fn a_text_has_no_invisible_characters() {
        assert_eq!(plain("a\u{1b}[2K\nb`c\u{202e}"), "a\u{fffd}[2K\u{fffd}b'c\u{fffd}");
        assert_eq!(plain(&"x".repeat(500)).chars().count(), MAX_CHARS + 1);
    }
}
