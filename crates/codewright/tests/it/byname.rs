//! Files that need permission by name: other files make them control files, commands do not see them, or rules deny what a
//! link leads to.

use std::os::unix::fs::symlink;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{Project, Script, Turn};
use serde_json::{Value, json};

use crate::asked::requests;
use crate::support::{Stage, check_has};
use crate::users::Team;

fn call(tool: &str, input: Value) -> Turn {
    Turn::steps().tool(tool, input).into()
}

fn write(path: &str) -> Turn {
    call("write", json!({"filePath": path, "content": "changed\n"}))
}

/// A repository whose git settings and links make ordinary files decisive.
fn stage(calls: &[(Turn, Option<&str>)]) -> Result<Stage> {
    // A rejection ends the turn.
    let script = calls.iter().fold(Script::new(), |script, (call, asked)| {
        let script = script.turn(call.clone());
        if asked.is_some() { script } else { script.text("done") }
    });
    let stage = Stage::git(script)?;
    let files = [
        "tools/watch.sh",
        "env/x",
        "ai/settings.json",
        "scripts/pre-push",
        "docs/config",
        "bare/HEAD",
        "a/.env",
        "keep/x",
        "notes.txt",
    ];
    for name in files {
        stage.project.write(name, "x\n")?;
    }
    for name in ["docs/objects/x", "docs/refs/x", "bare/objects/x", "bare/refs/x"] {
        stage.project.write(name, "")?;
    }
    symlink("env/x", stage.project.path(".envrc"))?;
    symlink("ai", stage.project.path(".claude"))?;
    std::fs::create_dir_all(stage.project.path(".git/hooks"))?;
    symlink("../../scripts/pre-push", stage.project.path(".git/hooks/pre-push"))?;
    for (key, value) in [("core.fsmonitor", "tools/watch.sh"), ("include.path", "../inc/cfg")] {
        let done = Command::new("git")
            .args(["config", key, value])
            .current_dir(stage.project.directory())
            .status()?;
        ensure!(done.success(), "git config {key}");
    }
    Ok(stage)
}

/// Writes the user's configuration: rules, and a model that is offered patches or single replacements.
fn configure(stage: &Stage, permission: Value, model: &str) -> Result<()> {
    let mut config = Project::config(&stage.server.url());
    if !permission.is_null() {
        config["permission"] = permission;
    }
    config["provider"]["mock"]["models"][model] =
        json!({"name": model, "limit": {"context": 200_000, "output": 32_000}});
    config["model"] = format!("mock/{model}").into();
    stage.project.write_config(&config)
}

/// A model that is offered patches.
const PATCHES: &str = "gpt-5";
/// A model that is offered replacements.
const EDITS: &str = "plain-model";

/// Checks which calls lead to a request, without rules of the user.
fn check(calls: &[(Turn, Option<&str>)], permission: Value, model: &str) -> Result<Stage> {
    let stage = stage(calls)?;
    configure(&stage, permission, model)?;
    let found = requests(&stage, calls.len(), "reject")?;
    for (number, (asked, (_, expected))) in found.iter().zip(calls).enumerate() {
        let kind = asked.as_ref().and_then(|asked| asked["permission"].as_str());
        assert_eq!(kind, *expected, "call {number}: {asked:?}");
    }
    Ok(stage)
}

#[test]
fn a_tool_asks_before_it_writes_what_settings_of_git_or_links_name() -> Result<()> {
    let stage = check(
        &[
            (write("tools/watch.sh"), Some("edit")),
            (write("inc/cfg"), Some("edit")),
            (write("env/x"), Some("edit")),
            (write(".envrc"), Some("edit")),
            (write("ai/settings.json"), Some("edit")),
            (write("ai/new.json"), Some("edit")),
            (write("scripts/pre-push"), Some("edit")),
            (write("bare/config"), Some("edit")),
            (write("bare/hooks/post-update"), Some("edit")),
            (write("docs/HEAD"), Some("edit")),
            (
                call("edit", json!({"filePath": "tools/watch.sh", "oldString": "x", "newString": "y"})),
                Some("edit"),
            ),
            (write("notes.txt"), None),
            (write("docs/page"), None),
            (write("src/config"), None),
        ],
        Value::Null,
        EDITS,
    )?;
    let watch = std::fs::read_to_string(stage.project.path("tools/watch.sh"))?;
    assert_eq!(watch, "x\n");
    Ok(())
}

#[test]
fn a_patch_asks_for_the_same_files_and_is_rejected_as_a_whole() -> Result<()> {
    let patch = "*** Begin Patch\n*** Add File: ci.sh\n+x\n*** Update File: tools/watch.sh\n@@\n-x\n+y\n*** End Patch";
    let patch = call("apply_patch", json!({ "patchText": patch }));
    let stage = check(&[(patch, Some("edit"))], Value::Null, PATCHES)?;
    let watch = std::fs::read_to_string(stage.project.path("tools/watch.sh"))?;
    assert_eq!(watch, "x\n");
    ensure!(!stage.project.path("ci.sh").exists(), "a part of the rejected patch was written");
    Ok(())
}

#[test]
fn a_redirection_and_an_argument_of_a_command_ask_for_the_same_files() -> Result<()> {
    let bash = |command: &str| call("bash", json!({"command": command, "description": "x"}));
    let wider =
        json!({"command": "python3 -c pass", "description": "x", "sandbox": {"write": ["tools/watch.sh"]}});
    check(
        &[
            (bash("printf y > tools/watch.sh"), Some("edit")),
            (bash("printf y > scripts/pre-push"), Some("edit")),
            (bash("printf y > docs/HEAD"), Some("edit")),
            (call("bash", wider), Some("edit")),
            (bash("printf y > notes.txt"), None),
        ],
        Value::Null,
        EDITS,
    )?;
    Ok(())
}

#[test]
fn a_rule_that_names_the_file_allows_it() -> Result<()> {
    let rule = json!({"edit": {"*": "allow", "tools/watch.sh": "allow"}});
    check(&[(write("tools/watch.sh"), None), (write("scripts/pre-push"), Some("edit"))], rule, EDITS)?;
    Ok(())
}

/// The rules of the tests about reading.
fn reads() -> Value {
    json!({"read": {"*": "allow", "*.env": "ask", "keep/*": "deny"}})
}

#[test]
fn what_is_denied_to_read_is_not_guessed() -> Result<()> {
    let guess = |old: &str| call("edit", json!({"filePath": "keep/x", "oldString": old, "newString": "z"}));
    let stage = check(&[(guess("x"), Some("read")), (guess("not there"), None)], reads(), EDITS)?;
    let results: String =
        stage.server.main_requests().iter().map(|request| request.body.to_string()).collect();
    ensure!(!results.contains("Could not find"), "the edit of a denied file says what is in it");
    Ok(())
}

#[test]
fn what_is_denied_to_read_is_not_moved() -> Result<()> {
    let moved = |from: &str| {
        let patch =
            format!("*** Begin Patch\n*** Update File: {from}\n*** Move to: open.txt\n@@\n+y\n*** End Patch");
        call("apply_patch", json!({ "patchText": patch }))
    };
    let calls = [(moved("keep/x"), None), (moved("a/.env"), Some("read")), (moved("notes.txt"), None)];
    let stage = check(&calls, reads(), PATCHES)?;
    ensure!(
        stage.project.path("a/.env").exists() && stage.project.path("keep/x").exists(),
        "a file was moved"
    );
    ensure!(stage.project.path("open.txt").exists(), "an ordinary file was not moved");
    Ok(())
}

#[test]
fn instructions_that_are_links_to_denied_files_do_not_reach_the_model() -> Result<()> {
    for (target, is_sent) in [("secrets/key", false), (".env", false), ("docs/rules.md", true)] {
        let stage = Stage::git(Script::new().text("done"))?;
        stage.project.write("secrets/key", "zebra-secret\n")?;
        stage.project.write(".env", "KEY=zebra-secret\n")?;
        stage.project.write("docs/rules.md", "zebra-secret is only a word here\n")?;
        symlink(target, stage.project.path("AGENTS.md"))?;
        configure(&stage, json!({"read": {"*": "allow", "*.env": "ask", "secrets/*": "deny"}}), EDITS)?;
        stage.program(["run", "go"]).finish()?.success()?;
        let request = stage.server.main_requests().first().context("no request")?.body.to_string();
        assert_eq!(request.contains("zebra-secret"), is_sent, "{target}");
    }
    Ok(())
}

#[test]
fn what_commands_do_not_see_is_read_and_found_after_a_reply_only() -> Result<()> {
    let calls = [
        (call("read", json!({"filePath": "hidden/key"})), Some("read")),
        (call("grep", json!({"pattern": "zebra"})), None),
        (write("hidden/new"), Some("edit")),
        (call("read", json!({"filePath": "notes.txt"})), None),
    ];
    let stage = stage(&calls)?;
    let key = stage.project.write("hidden/key", "zebra\n")?;
    let hidden = key.parent().context("no parent")?.display().to_string();
    let config = stage.project.home().join(".config/codewright/codewright.json");
    std::fs::create_dir_all(config.parent().context("no parent")?)?;
    std::fs::write(config, json!({"sandbox": {"hide": [hidden]}}).to_string())?;
    let found = requests(&stage, calls.len(), "reject")?;
    let kinds: Vec<_> =
        found.iter().map(|asked| asked.as_ref().and_then(|asked| asked["permission"].as_str())).collect();
    assert_eq!(kinds, calls.map(|(_, kind)| kind));
    let results: String =
        stage.server.main_requests().iter().map(|request| request.body.to_string()).collect();
    ensure!(
        !results.contains("zebra\\n") && !results.contains(": zebra"),
        "the search returned what is hidden"
    );
    Ok(())
}

#[test]
fn users_see_no_file_that_the_operator_denied_or_hid() -> Result<()> {
    let stage = Stage::git(Script::new().text("done"))?;
    for (name, text) in
        [("private/p.txt", "zebra-one"), ("hid/h.txt", "zebra-two"), ("open.txt", "zebra-three")]
    {
        stage.project.write(name, text)?;
    }
    let hid = stage.project.path("hid").display().to_string();
    let config = stage.project.home().join(".config/codewright/codewright.json");
    std::fs::create_dir_all(config.parent().context("no parent")?)?;
    std::fs::write(config, json!({"sandbox": {"hide": [hid]}}).to_string())?;
    let team = Team::on(stage, "none", |config| {
        config["permission"] = json!({"read": {"*": "allow", "private/*": "deny"}});
    })?;
    for name in ["private/p.txt", "hid/h.txt"] {
        for path in [format!("/file/content?path={name}"), format!("/api/fs/read/{name}")] {
            let (status, text) = team.call("rita", "GET", &path, &Value::Null)?;
            ensure!(status >= 400 && !text.contains("zebra"), "{path}: {status} {text}");
            let (_, text) = team.call("root", "GET", &path, &Value::Null)?;
            check_has(&text, &["zebra"]);
        }
    }
    let (_, text) = team.call("rita", "GET", "/find?pattern=zebra", &Value::Null)?;
    ensure!(
        text.contains("zebra-three") && !text.contains("zebra-one") && !text.contains("zebra-two"),
        "{text}"
    );
    let session = team.json("alice", "POST", "/session", &json!({}))?;
    let id = session["id"].as_str().context("no id")?;
    let file = |name: &str| {
        let url = format!("file://{}", team.stage.project.path(name).display());
        json!({"parts": [{"type": "text", "text": "go"}, {"type": "file", "mime": "text/plain", "filename": name, "url": url}]})
    };
    for (name, expected) in [("private/p.txt", 403), ("hid/h.txt", 403), ("open.txt", 200)] {
        let (status, text) = team.call("alice", "POST", &format!("/session/{id}/message"), &file(name))?;
        assert_eq!(status, expected, "{name}: {text}");
    }
    let received = team.received();
    ensure!(!received.contains("zebra-one") && !received.contains("zebra-two"), "the model got a kept file");
    Ok(())
}

#[test]
fn commands_do_not_see_what_a_rule_denies_by_the_path_of_a_link() -> Result<()> {
    // Commands have a temporary directory of their own, so what they could see is elsewhere.
    let disk = tempfile::Builder::new().prefix("linked").tempdir_in("/var/tmp")?;
    std::fs::create_dir_all(disk.path().join("private/tmp"))?;
    std::fs::create_dir_all(disk.path().join("data"))?;
    std::fs::write(disk.path().join("private/tmp/secret"), "zebra\n")?;
    std::fs::write(disk.path().join("data/secret"), "zebra\n")?;
    symlink("private/tmp", disk.path().join("tmp"))?;
    symlink("../../data", disk.path().join("private/tmp/link"))?;
    let root = disk.path().display();
    let look = format!(
        "cat {root}/data/secre? {root}/private/tmp/secre?; grep -r . {root}; grep -r . {root}/tmp/link/; true"
    );
    for pattern in ["tmp/link/secret", "tmp/link/*", "tmp/l*/secret", "tmp/*/secret", "private/tmp/*/sec*"] {
        let stage = Stage::git(Script::new().turn(call("bash", json!({"command": look}))).text("done"))?;
        let read =
            json!({"*": "allow", format!("{root}/{pattern}"): "deny", format!("{root}/tmp/secret"): "deny"});
        configure(&stage, json!({"*": "allow", "external_directory": "allow", "read": read}), EDITS)?;
        stage.program(["run", "--auto", "go"]).finish()?.success()?;
        let results = stage.results(1)?.join("");
        ensure!(!results.contains("zebra"), "{pattern}: {results}");
    }
    Ok(())
}
