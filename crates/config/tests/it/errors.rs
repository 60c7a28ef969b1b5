//! Errors and their positions.

use crate::{Fixture, project};

#[track_caller]
fn message(text: &str, expected: &str) {
    let fixture = project(text);
    let error = fixture.load().unwrap_err();
    assert_eq!(fixture.message(&error), format!("`project/opencode.json` {expected}"));
    assert!(error.hint().is_some());
}

#[test]
fn a_value_of_the_wrong_type_is_reported_with_its_position() {
    for (text, expected) in [
        (
            "{\"provider\": {\"a\": {\"models\": {\"m\": {\n  \"limit\": {\"context\": \"200k\"}}}}}}",
            "line 2, column 24: `provider.a.models.m.limit.context` must be a number of at least 0, found a string",
        ),
        (
            "{\n\t\"model\": 5}",
            "line 2, column 11: `model` must be a string of the form `provider/model`, found a number",
        ),
        (
            "{\"model\": \"gpt-5\"}",
            "line 1, column 11: `model` must be a string of the form `provider/model`, found another string",
        ),
        ("[]", "line 1, column 1: `configuration` must be an object, found a list"),
        ("null", "line 1, column 1: `configuration` must be an object, found `null`"),
        (
            "\u{feff}{\"share\": \"never\"}",
            "line 1, column 11: `share` must be one of `manual`, `auto`, `disabled`, found another string",
        ),
        (
            "{\"é\": 1, \"snapshot\": \"no\"}",
            "line 1, column 22: `snapshot` must be `true` or `false`, found a string",
        ),
        (
            "{\"instructions\": [\"a\",\r\n {}]}",
            "line 2, column 2: `instructions[1]` must be a string, found an object",
        ),
        ("{\"instructions\": \"a\"}", "line 1, column 18: `instructions` must be a list, found a string"),
        (
            "{\"tools\": {\"bash\": null}}",
            "line 1, column 20: `tools.bash` must be `true` or `false`, found `null`",
        ),
        (
            "{\"agent\": {\"a\": {\"steps\": 0}}}",
            "line 1, column 27: `agent.a.steps` must be a whole number of at least 1, found another number",
        ),
        (
            "{\"agent\": {\"a\": {\"steps\": 1.5}}}",
            "line 1, column 27: `agent.a.steps` must be a whole number of at least 1, found another number",
        ),
        (
            "{\"agent\": {\"a\": {\"mode\": \"x\"}}}",
            "line 1, column 26: `agent.a.mode` must be one of `subagent`, `primary`, `all`, found another string",
        ),
        ("{\"agent\": {\"a\": false}}", "line 1, column 17: `agent.a` must be an object, found `false`"),
        (
            "{\"agent\": {\"a\": {\"temperature\": \"0.5\"}}}",
            "line 1, column 33: `agent.a.temperature` must be a number, found a string",
        ),
        (
            "{\"permission\": []}",
            "line 1, column 16: `permission` must be one of `ask`, `allow`, `deny` or an object, found a list",
        ),
        (
            "{\"permission\": {\"bash\": {\"*\": \"maybe\"}}}",
            "line 1, column 31: `permission.bash.*` must be one of `ask`, `allow`, `deny`, found another string",
        ),
        (
            "{\"provider\": {\"a\": {\"options\": {\"timeout\": true}}}}",
            "line 1, column 44: `provider.a.options.timeout` must be a whole number of milliseconds or `false`, found `true`",
        ),
        (
            "{\"provider\": {\"a\": {\"options\": {\"timeout\": -1}}}}",
            "line 1, column 44: `provider.a.options.timeout` must be a whole number of milliseconds or `false`, found another number",
        ),
        (
            "{\"provider\": {\"a\": {\"models\": []}}}",
            "line 1, column 31: `provider.a.models` must be an object, found a list",
        ),
    ] {
        message(text, expected);
    }
}

#[test]
fn a_syntax_error_is_reported_with_its_position() {
    message("{\n  \"a\": 1,,\n}", "line 2, column 10: unexpected token in object");
    message("{\n  \"a\": 1", "line 1, column 1: unterminated object");
}

#[test]
fn an_error_in_a_variable_names_the_variable() {
    for name in ["OPENCODE_CONFIG_CONTENT", "CODEWRIGHT_CONFIG_CONTENT"] {
        let mut fixture = Fixture::new();
        fixture.set(name, "{\"model\": 1}");
        let error = fixture.load().unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{name}` line 1, column 11: `model` must be")), "{error}");
    }
    let mut fixture = Fixture::new();
    fixture.set("OPENCODE_PERMISSION", "{\"bash\": 1}");
    let error = fixture.load().unwrap_err().to_string();
    assert!(error.starts_with("`OPENCODE_PERMISSION` line 1, column 10: `bash` must be"), "{error}");
}

#[test]
fn an_unreadable_file_is_reported_with_the_reason() {
    let fixture = Fixture::new();
    std::fs::create_dir_all(fixture.path("project/opencode.json")).unwrap();
    assert_eq!(
        fixture.message(&fixture.load().unwrap_err()),
        "`project/opencode.json` is a directory, not a file"
    );

    let fixture = Fixture::new();
    fixture.write("project/opencode.json", b"{\"a\": \"\xff\"}");
    assert_eq!(fixture.message(&fixture.load().unwrap_err()), "`project/opencode.json` is not UTF-8 text");

    let fixture = project(&format!("{{\"a\": \"{}\"}}", "x".repeat(1024 * 1024)));
    assert_eq!(
        fixture.message(&fixture.load().unwrap_err()),
        "`project/opencode.json` exceeds the limit of 1048576 bytes"
    );
}

#[cfg(unix)]
#[test]
fn a_link_cycle_is_an_error_and_a_dangling_link_is_a_missing_file() {
    let fixture = Fixture::new();
    std::os::unix::fs::symlink("opencode.json", fixture.path("project/opencode.json")).unwrap();
    let error = fixture.load().unwrap_err();
    assert!(fixture.message(&error).starts_with("`project/opencode.json` cannot be read ("), "{error}");

    let fixture = Fixture::new();
    std::os::unix::fs::symlink("nowhere", fixture.path("project/opencode.json")).unwrap();
    assert!(fixture.load().is_ok());
}

#[cfg(unix)]
#[test]
fn a_device_does_not_block() {
    let mut fixture = Fixture::new();
    fixture.set("OPENCODE_CONFIG", "/dev/zero");
    assert_eq!(fixture.load().unwrap_err().to_string(), "`/dev/zero` is not a regular file");
}

#[test]
fn a_missing_inserted_file_is_reported_with_the_document_and_the_path() {
    let fixture = Fixture::new();
    fixture.write(
        "home/.config/opencode/opencode.json",
        "{\n  \"username\": \"{file:secrets/{env:WHICH}.txt}\"\n}",
    );
    let error = fixture.load().unwrap_err();
    assert_eq!(
        fixture.message(&error),
        "`home/.config/opencode/opencode.json` line 2, column 15: `{file:secrets/{env:WHICH}.txt}` refers to a file that does not exist"
    );
    assert!(error.hint().unwrap().contains("relative path"));
}

#[test]
fn no_message_and_no_debug_text_contains_a_secret() {
    for text in [
        r#"{"share": "{env:TOKEN}"}"#,
        r#"{"share": "{file:key}"}"#,
        r#"{"model": "hush"}"#,
        r#"{"provider": {"a": {"options": {"apiKey": ["hush"]}}}}"#,
        "{\"apiKey\": hush}",
        "{\"apiKey\": \"hush}",
    ] {
        let mut fixture = project(text);
        fixture.set("TOKEN", "hush");
        fixture.write("project/key", "hush");
        let error = fixture.load().unwrap_err();
        assert!(!format!("{error} {error:?} {:?}", error.hint()).contains("hush"), "{text}: {error:?}");
    }
    let fixture = project(
        r#"{"other": "hush", "provider": {"a": {"options": {"apiKey": "hush", "headers": {"X": "hush"}, "y": "hush"},
            "models": {"m": {"options": {"z": "hush"}, "headers": {"Y": "hush"}}}}}, "agent": {"b": {"options": {"k": "hush"}}}}"#,
    );
    let loaded = fixture.load().unwrap();
    let provider = loaded.config.provider.get("a").unwrap();
    let parts = (provider, provider.models.get("m"), loaded.config.agent.get("b"));
    let text = format!("{loaded:?} {parts:?}");
    assert!(text.contains("has_key: true") && !text.contains("hush"), "{text}");
}
