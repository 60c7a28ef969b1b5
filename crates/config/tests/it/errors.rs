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
fn an_invalid_entry_of_a_server_is_reported_with_its_position() {
    for (text, expected) in [
        (
            "{\"mcp\": {\"a\": {\"type\": \"local\", \"command\": [\"x\"], \"enabled\": \"false\"}}}",
            "line 1, column 62: `mcp.a.enabled` must be `true` or `false`, found a string",
        ),
        (
            "{\"mcp\": {\"a\": {\"command\": \"python3 x.py\"}}}",
            "line 1, column 27: `mcp.a.command` must be a list of the program and its arguments, as in \
             `[\"npx\", \"-y\", \"x\"]`, found a string with spaces",
        ),
        (
            "{\"mcp\": {\"a\": {\"url\": 5}}}",
            "line 1, column 23: `mcp.a.url` must be a string, found a number",
        ),
        (
            "{\"mcp\": {\"a\": {\"environment\": {\"A\": 1}}}}",
            "line 1, column 37: `mcp.a.environment.A` must be a string, found a number",
        ),
        (
            "{\"mcp\": {\"a\": {\"headers\": []}}}",
            "line 1, column 27: `mcp.a.headers` must be an object, found a list",
        ),
        ("{\"mcp\": {\"a\": null}}", "line 1, column 15: `mcp.a` must be an object, found `null`"),
        (
            "{\"mcp\": {\"servers\": {\"a\": {\"oauth\": {\"clientId\": 1}}}}}",
            "line 1, column 50: `mcp.servers.a.oauth.clientId` must be a string, found a number",
        ),
    ] {
        message(text, expected);
    }
    for (text, key) in [
        (r#"{"mcp": {"a": {"command": ["x"], "timeout": "5000"}}}"#, "mcp.a.timeout"),
        (r#"{"mcp": {"a": {"command": ["x"], "timeout": 0}}}"#, "mcp.a.timeout"),
        (r#"{"mcp": {"a": {"url": "https://h", "oauth": "no"}}}"#, "mcp.a.oauth"),
    ] {
        let error = project(text).load().unwrap_err().to_string();
        assert!(error.contains(&format!("`{key}` must be")), "{error}");
    }
}

#[test]
fn entries_of_servers_that_were_valid_stay_valid() {
    for entry in [
        r#"{"enabled": true}"#,
        r#"{"enabled": false, "timeout": 5}"#,
        r#"{"type": "local", "command": ["x"], "environment": {"A": "1"}, "cwd": "/tmp", "timeout": 5}"#,
        r#"{"type": "local", "command": ["x"], "timeout": {"request": 100}}"#,
        r#"{"type": "local", "command": []}"#,
        r#"{"command": "npx", "args": ["-y", "x y"], "env": {"A": "1"}}"#,
        r#"{"command": "/a b/c", "args": []}"#,
        r#"{"type": "stdio", "command": "x", "confine": true, "network": false, "sampling": true}"#,
        r#"{"type": "remote", "url": "https://h", "headers": {"A": "b"}, "oauth": false}"#,
        r#"{"type": "remote", "url": "https://h", "oauth": {"clientId": "a", "clientSecret": "b", "scope": "c",
            "redirectUri": "http://127.0.0.1:1/c", "callbackPort": 1, "authorizationServer": "https://i"}}"#,
        r#"{"type": "http", "url": "https://h", "oauth": {}}"#,
    ] {
        for text in [
            format!(r#"{{"mcp": {{"a": {entry}}}}}"#),
            format!(r#"{{"mcp": {{"servers": {{"urls": {entry}}}}}}}"#),
        ] {
            let loaded = project(&text).load().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(loaded.warnings, [""; 0], "{text}");
        }
    }
}

/// The warnings of a project's configuration, without the place of the file.
#[track_caller]
fn warnings(text: &str) -> Vec<String> {
    let fixture = project(text);
    let file = format!("`{}` ", fixture.path("project/opencode.json").display());
    fixture.load().unwrap().warnings.iter().map(|warning| warning.replace(&file, "")).collect()
}

#[test]
fn a_slip_is_reported_with_what_is_meant() {
    for (text, expected) in [
        (
            r#"{"mcp": {"a": {"command": ["x"], "enviroment": {"A": "1"}}}}"#,
            "line 1, column 48: unknown key `mcp.a.enviroment`; did you mean `environment`?",
        ),
        (
            r#"{"mcp": {"a": {"command": ["x"], "zzz": 1}}}"#,
            "line 1, column 41: unknown key `mcp.a.zzz`; it has no effect",
        ),
        (
            r#"{"mcp": {"a": {"type": "lokal", "command": ["x"]}}}"#,
            "line 1, column 24: unknown `mcp.a.type`; it can be `local` or `remote`, so the server is not started",
        ),
        (r#"{"mcpServers": {}}"#, "line 1, column 16: `mcpServers` has no effect; use the key `mcp`"),
        (
            r#"{"permission": {"edti": "deny"}}"#,
            "line 1, column 25: unknown tool in `permission.edti`; did you mean `edit`?",
        ),
        (
            r#"{"permission": {"external_dir": {"*": "deny"}}}"#,
            "line 1, column 33: unknown tool in `permission.external_dir`; did you mean `external_directory`?",
        ),
        (
            r#"{"permission": {"write": "deny"}}"#,
            "line 1, column 26: `permission.write` has no effect: this tool needs the permission `edit`, so use that name",
        ),
        (
            r#"{"tools": {"wriet": false}}"#,
            "line 1, column 21: unknown tool in `tools.wriet`; did you mean `write`?",
        ),
        (
            r#"{"agent": {"build": {"permission": {"edti": "deny"}}}}"#,
            "line 1, column 45: unknown tool in `agent.build.permission.edti`; did you mean `edit`?",
        ),
        (
            "{\"permission\": {\"edit\": \"deny\"},\n \"permission\": {\"bash\": \"allow\"}}",
            "line 2, column 16: the key `permission` is there twice; only the last one counts",
        ),
        (
            r#"{"command": {"c": {"template": "a", "template": "b"}}}"#,
            "line 1, column 49: the key `command.c.template` is there twice; only the last one counts",
        ),
    ] {
        assert_eq!(warnings(text), [expected], "{text}");
    }
    for text in [
        r#"{"permission": {"edti_now": "deny", "edti": "deny"}, "mcp": {"edti": {"command": ["x"]}}}"#,
        r#"{"permission": {"write": "allow", "web*": "deny", "deploy": "ask"}, "tools": {"write": false, "patch": true}}"#,
        r#"{"agent": {"build": {"Tools": {"write": false}, "top_k": 4}}}"#,
    ] {
        assert_eq!(warnings(text), [""; 0], "{text}");
    }
    let fixture = project(r#"{"permission": {"raed": "deny", "raed_all": "deny"}}"#);
    fixture.write("home/.config/opencode/tool/raed.ts", "");
    assert_eq!(fixture.load().unwrap().warnings, [""; 0]);
}

#[test]
fn an_agent_with_a_misspelt_restriction_is_left_out() {
    for (text, expected) in [
        (r#"{"agent": {"x": {"permissions": {"edit": "deny"}}}}"#, "permission"),
        (r#"{"agent": {"x": {"tool": {"write": false}}}}"#, "tools"),
        (r#"{"agents": {"x": {"permision": {"edit": "deny"}}}}"#, "permission"),
        (r#"{"mode": {"x": {"disallowedTools": ["write"]}}}"#, "tools"),
    ] {
        let loaded = project(text).load().unwrap();
        assert_eq!(loaded.config.agent.get("x").unwrap().disable, Some(true), "{text}");
        let [warning] = &loaded.warnings[..] else { panic!("{text}: {:?}", loaded.warnings) };
        assert!(
            warning.contains(&format!("did you mean `{expected}`? The agent `x` is left out")),
            "{warning}"
        );
        // Another agent would begin sessions in the place of one that is built in.
        let error = project(&text.replace("\"x\"", "\"build\"")).load().unwrap_err().to_string();
        assert!(error.ends_with(&format!("did you mean `{expected}`?")), "{error}");
    }
    let fixture = project(r#"{"agent": {"rev": {"prompt": "p"}}}"#);
    fixture.write("home/.config/opencode/agent/rev.MD", "<!-- x -->\n---\ntools:\n  write: false\n---\nP");
    fixture.write("home/.config/opencode/agent/plan.md", "---\ntools: {\n---\nP");
    fixture.write("home/.config/opencode/agent/ok.MD", "---\ndescription: d\n---\nP");
    let loaded = fixture.load().unwrap();
    for name in ["rev", "plan"] {
        assert_eq!(loaded.config.agent.get(name).unwrap().disable, Some(true), "{:?}", loaded.warnings);
    }
    assert_eq!(loaded.config.agent.get("ok").unwrap().prompt.as_deref(), Some("P"));
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
