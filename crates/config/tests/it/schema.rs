//! Every key of the published schema is checked: a valid value is accepted, an invalid one rejected with a reason, and a
//! key without an effect reported.

use crate::{Fixture, project};

/// A key, a valid value and an invalid one.
const KEYS: &[(&str, &str, &str)] = &[
    ("$schema", r#""x""#, "1"),
    ("shell", r#""/bin/zsh""#, "1"),
    ("logLevel", r#""DEBUG""#, r#""LOUD""#),
    (
        "server",
        r#"{"port": 4096, "hostname": "h", "mdns": true, "mdnsDomain": "d", "cors": ["o"]}"#,
        r#"{"port": "x"}"#,
    ),
    ("command", r#"{"c": {"template": "t", "subtask": true}}"#, r#"{"c": {"template": 1}}"#),
    ("skills", r#"{"paths": ["p"], "urls": []}"#, r#"{"paths": "p"}"#),
    ("references", "{}", "[]"),
    ("reference", "{}", "1"),
    ("watcher", r#"{"ignore": []}"#, r#"{"ignore": {}}"#),
    ("snapshot", "false", r#""no""#),
    ("plugin", "[]", "{}"),
    ("share", r#""manual""#, r#""sometimes""#),
    ("autoshare", "false", "1"),
    ("autoupdate", "false", ""),
    ("disabled_providers", r#"["a"]"#, r#""a""#),
    ("enabled_providers", r#"["a"]"#, "[1]"),
    ("model", r#""a/b""#, r#""ab""#),
    ("small_model", r#""a/b""#, "false"),
    ("default_agent", r#""plan""#, "{}"),
    ("subagent_depth", "2", "-1"),
    ("username", r#""ann""#, "[]"),
    ("mode", r#"{"build": {"model": "a/b"}}"#, r#"{"build": {"steps": 0}}"#),
    ("agent", r#"{"x": {"hidden": true}}"#, r#"{"x": {"mode": "other"}}"#),
    ("provider", r#"{"p": {"options": {"baseURL": "u"}}}"#, r#"{"p": {"options": {"baseURL": 1}}}"#),
    ("mcp", "{}", "[]"),
    ("formatter", "false", r#"{"x": {"command": "c"}}"#),
    ("lsp", "{}", r#""on""#),
    ("instructions", r#"["a.md"]"#, r#""a.md""#),
    ("layout", r#""stretch""#, r#""wide""#),
    ("permission", r#"{"bash": {"*": "ask"}}"#, r#"{"bash": "maybe"}"#),
    ("tools", r#"{"write": false}"#, r#"{"write": "no"}"#),
    ("attachment", r#"{"image": {"auto_resize": false, "max_width": 5}}"#, r#"{"image": {"max_width": 0}}"#),
    ("enterprise", r#"{"url": "https://x"}"#, r#"{"url": 1}"#),
    ("tool_output", r#"{"max_lines": 10, "max_bytes": 100}"#, r#"{"max_lines": 0}"#),
    (
        "compaction",
        r#"{"auto": true, "prune": true, "tail_turns": 0, "preserve_recent_tokens": 1, "reserved": 1}"#,
        r#"{"tail_turns": -1}"#,
    ),
    ("experimental", r#"{"primary_tools": [], "continue_loop_on_deny": true}"#, r#"{"batch_tool": 1}"#),
];

/// A user's own configuration, which can set every key.
fn user(text: &str) -> Fixture {
    let fixture = Fixture::new();
    fixture.write("home/.config/opencode/opencode.json", text);
    fixture
}

#[test]
fn a_key_of_the_schema_accepts_valid_values_only() {
    assert_eq!(KEYS.len(), 36, "as many keys as the published schema has");
    for (key, right, wrong) in KEYS {
        let loaded = user(&format!(r#"{{"{key}": {right}}}"#)).load();
        let loaded = loaded.unwrap_or_else(|error| panic!("{key}: {error}"));
        assert!(loaded.warnings.is_empty(), "{key}: {:?}", loaded.warnings);
        if wrong.is_empty() {
            continue;
        }
        let fixture = user(&format!("{{\n  \"{key}\": {wrong}\n}}"));
        let message = fixture.message(&fixture.load().unwrap_err());
        assert!(message.contains("opencode/opencode.json` line 2") && message.contains(key), "{message}");
    }
}

#[test]
fn a_key_without_an_effect_is_reported_with_its_file_and_the_reason() {
    for (key, value) in [
        ("autoshare", "true"),
        ("autoupdate", "true"),
        ("autoupdate", r#""notify""#),
        ("experimental.disable_paste_summary", "true"),
    ] {
        let text = match key.split_once('.') {
            Some((section, key)) => format!(r#"{{"{section}": {{"{key}": {value}}}}}"#),
            None => format!(r#"{{"{key}": {value}}}"#),
        };
        let warnings = project(&text).load().unwrap().warnings;
        assert_eq!(warnings.len(), 1, "{key}: {warnings:?}");
        assert!(warnings[0].contains("opencode.json`: ") && warnings[0].contains(key), "{warnings:?}");
        assert!(warnings[0].contains("has no effect in this version: "), "{warnings:?}");
    }
}

#[test]
fn a_layout_that_is_not_followed_is_reported() {
    let warnings = project(r#"{"layout": "auto"}"#).load().unwrap().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("opencode.json`: ") && warnings[0].contains("always `stretch`"),
        "{warnings:?}"
    );
}
