//! Files that one way keeps closed are closed by every other: tools that edit, redirections, patches that move, instructions.

use anyhow::Result;
use codewright_testkit::{Project, Script, Turn};
use serde_json::{Value, json};

use crate::sandbox::is_enforced;
use crate::support::{Stage, check_has};

const SECRET: &str = "zebra-key";

fn call(tool: &'static str, input: Value) -> Turn {
    Turn::tools([(tool, input)]).into()
}

/// Runs calls one after the other without a user. Returns the stage, the result of each call and what was said to the user.
fn played(
    prepare: impl FnOnce(&Stage, &mut Value) -> Result<()>,
    calls: Vec<Turn>,
) -> Result<(Stage, Vec<String>, String)> {
    let script = calls
        .into_iter()
        .fold(Script::new(), |script, call| script.turn(call))
        .default_turn(Turn::text("done"));
    let stage = Stage::git(script)?;
    let mut config = Project::config(&stage.server.url());
    prepare(&stage, &mut config)?;
    let directory = stage.project.home().join(".config/opencode");
    std::fs::create_dir_all(&directory)?;
    std::fs::write(directory.join("opencode.json"), config.to_string())?;
    let done = stage.run(["go"])?;
    // A rejection ends the turn.
    let results = stage.results(stage.server.main_requests().len().saturating_sub(1))?;
    Ok((stage, results, done.stderr))
}

#[test]
fn a_patch_that_moves_a_file_needs_the_permission_to_read_it() -> Result<()> {
    for (from, permission) in [(".env", json!({})), ("secrets/key", json!({"read": {"secrets/*": "deny"}}))] {
        let patch =
            format!("*** Begin Patch\n*** Update File: {from}\n*** Move to: open.txt\n@@\n+x\n*** End Patch");
        let ordinary = "*** Begin Patch\n*** Update File: a.txt\n*** Move to: b.txt\n@@\n+x\n*** End Patch";
        let calls = vec![
            call("apply_patch", json!({ "patchText": ordinary })),
            call("apply_patch", json!({ "patchText": patch })),
        ];
        let (stage, ..) = played(
            |stage, config| {
                config["permission"] = permission.clone();
                config["provider"]["mock"]["models"]["gpt-5"] =
                    json!({"name": "gpt-5", "limit": {"context": 200_000, "output": 32_000}});
                config["model"] = json!("mock/gpt-5");
                stage.project.write("a.txt", "a\n")?;
                stage.project.write(from, format!("{SECRET}\n")).map(drop)
            },
            calls,
        )?;
        assert!(stage.project.path("b.txt").exists(), "an ordinary file is moved");
        assert!(!stage.project.path("open.txt").exists(), "{from}");
        assert!(stage.project.read(from)?.contains(SECRET), "{from}");
    }
    Ok(())
}

#[test]
fn instructions_are_no_files_that_rules_close() -> Result<()> {
    for (target, permission, expected) in [
        (".env", json!({}), false),
        ("secrets/key", json!({"read": {"secrets/*": "deny"}}), false),
        ("docs/rules.md", json!({"read": {"secrets/*": "deny"}}), true),
    ] {
        let (stage, ..) = played(
            |stage, config| {
                config["permission"] = permission.clone();
                stage.project.write(target, format!("{SECRET}\n"))?;
                Ok(std::os::unix::fs::symlink(target, stage.project.path("AGENTS.md"))?)
            },
            Vec::new(),
        )?;
        let sent: String = stage.server.main_requests().iter().map(|one| one.body.to_string()).collect();
        assert_eq!(sent.contains(SECRET), expected, "{target}");
    }
    Ok(())
}

#[test]
fn hidden_files_of_the_project_need_a_reply_about_exactly_this_file() -> Result<()> {
    for (tool, input, asks) in [
        ("read", json!({"filePath": "hid/key"}), true),
        ("grep", json!({"pattern": SECRET}), false),
        ("write", json!({"filePath": "hid/key", "content": "x"}), true),
        ("read", json!({"filePath": "open.txt"}), false),
    ] {
        let calls = vec![call(tool, input.clone())];
        let (stage, results, stderr) = played(
            |stage, config| {
                stage.project.write("hid/key", format!("{SECRET}\n"))?;
                config["sandbox"] = json!({"hide": [stage.project.path("hid").canonicalize()?]});
                stage.project.write("open.txt", "nothing special\n").map(drop)
            },
            calls,
        )?;
        assert_eq!(stderr.contains("auto-rejecting"), asks, "{tool} {input}: {stderr}");
        let sent = results.join("\n");
        assert!(!sent.contains(SECRET), "{sent}");
        assert!(stage.project.read("hid/key")?.contains(SECRET));
    }
    Ok(())
}

#[test]
fn what_git_obeys_is_written_only_with_a_reply_by_every_tool() -> Result<()> {
    let bash = |command: &str| json!({"command": command, "description": "d"});
    for (tool, input, file) in [
        ("write", json!({"filePath": "tools/fsm.sh", "content": "new\n"}), "tools/fsm.sh"),
        ("write", json!({"filePath": "hk/pre-commit", "content": "new\n"}), "hk/pre-commit"),
        ("write", json!({"filePath": "env/x", "content": "new\n"}), "env/x"),
        ("write", json!({"filePath": "docs/HEAD", "content": "new\n"}), "docs/HEAD"),
        ("edit", json!({"filePath": "tools/fsm.sh", "oldString": "old", "newString": "new"}), "tools/fsm.sh"),
        ("bash", bash("echo new > tools/fsm.sh"), "tools/fsm.sh"),
        ("bash", bash("echo new > docs/HEAD"), "docs/HEAD"),
    ] {
        let calls = vec![
            call("write", json!({"filePath": "tools/other.sh", "content": "new\n"})),
            call(tool, input.clone()),
        ];
        let (stage, _, stderr) = played(
            |stage, _| {
                for name in [
                    "tools/fsm.sh",
                    "tools/other.sh",
                    "env/x",
                    "docs/config",
                    "docs/objects/x",
                    "docs/refs/x",
                ] {
                    stage.project.write(name, "old\n")?;
                }
                std::os::unix::fs::symlink("env/x", stage.project.path(".envrc"))?;
                for (key, value) in [("core.fsmonitor", "tools/fsm.sh"), ("core.hooksPath", "hk")] {
                    stage.project.run_git(&["config", key, value])?;
                }
                Ok(())
            },
            calls,
        )?;
        assert_eq!(stage.project.read("tools/other.sh")?, "new\n", "an ordinary file needs no reply");
        let content = stage.project.read(file).unwrap_or_default();
        assert!(!content.contains("new"), "{tool} {input}");
        check_has(&stderr, &["auto-rejecting"]);
    }
    Ok(())
}

#[test]
fn lines_with_git_alone_create_repositories_and_others_do_not() -> Result<()> {
    let stage = Stage::git(Script::new())?;
    if !is_enforced(&stage)? {
        return Ok(());
    }
    for (line, expected) in [
        ("git clone -q . copy && cat copy/a", true),
        ("git clone -q --conf core.fsmonitor=/x . copy", false),
        ("PATH=$PWD/bin:$PATH; git clone -q . copy", false),
    ] {
        let calls = vec![call("bash", json!({"command": line, "description": "d"}))];
        let (stage, results, _) = played(
            |stage, _| {
                stage.project.write("a", "x\n")?;
                stage.project.run_git(&["add", "a"])?;
                stage.project.run_git(&[
                    "-c",
                    "user.name=a",
                    "-c",
                    "user.email=a@b",
                    "commit",
                    "-qm",
                    "a",
                ])?;
                Ok(())
            },
            calls,
        )?;
        assert_eq!(stage.project.path("copy/.git").exists(), expected, "{line}: {results:?}");
    }
    Ok(())
}

#[test]
fn a_refused_clone_names_the_setting_that_is_the_reason() -> Result<()> {
    let calls = vec![call("bash", json!({"command": "git clone -q . copy", "description": "d"}))];
    let (stage, results, _) = played(
        |stage, _| {
            let text = "[user]\n\tname = a\n\temail = a@b\n[core]\n\thooksPath = .githooks\n";
            std::fs::write(stage.project.home().join(".gitconfig"), text)?;
            stage.project.write("a", "x\n")?;
            Ok(())
        },
        calls,
    )?;
    if is_enforced(&stage)? {
        assert!(!stage.project.path("copy/.git").exists());
        let setting = format!("`core.hooksPath` in `{}/.gitconfig`", stage.project.home().display());
        check_has(&results.join("\n"), &[&setting, "/.githooks` in the project, which git would run"]);
    }
    Ok(())
}

#[test]
fn the_hint_about_a_refused_redirection_names_its_file_and_not_the_shell() -> Result<()> {
    // The line does not name the file, so nothing is asked.
    let eval =
        |file: &str| call("bash", json!({"command": format!("eval \"$(cat {file})\""), "description": "d"}));
    let (stage, results, _) = played(
        |stage, config| {
            config["sandbox"] = json!({"hide": [stage.project.path("hid")]});
            stage.project.write("hid/old", "x\n")?;
            stage.project.write("inside", "echo x > hid/new")?;
            stage.project.write("outside", "echo x > /var/new-file")?;
            Ok(())
        },
        vec![eval("outside"), eval("inside")],
    )?;
    if is_enforced(&stage)? {
        let text = results.join("\n");
        check_has(&text, &["`/var/new-file` is read-only", r#"{"write":["/var/new-file"]}"#]);
        check_has(&text, &["hid/new` is in a hidden directory"]);
        assert!(!text.contains("bash` is"), "{text}");
        assert!(!stage.project.path("hid/new").exists());
    }
    Ok(())
}

#[test]
fn a_denial_outside_of_a_repository_means_the_directory() -> Result<()> {
    let rules = json!({"read": {"secret.txt": "deny", "keys/*": "deny"}, "edit": {"secret.txt": "deny"}});
    for (tool, input, is_denied) in [
        ("read", json!({"filePath": "secret.txt"}), true),
        ("read", json!({"filePath": "keys/one"}), true),
        ("read", json!({"filePath": "open.txt"}), false),
        ("write", json!({"filePath": "secret.txt", "content": "x"}), true),
        ("grep", json!({"pattern": SECRET}), true),
        ("bash", json!({"command": "cat secret.txt", "description": "d"}), true),
        ("bash", json!({"command": "grep -rh zebra . || true", "description": "d"}), true),
    ] {
        let script = Script::new().turn(call(tool, input.clone())).default_turn(Turn::text("done"));
        let stage = Stage::plain(script)?;
        let mut config = Project::config(&stage.server.url());
        config["permission"] = rules.clone();
        stage.project.write_config(&config)?;
        stage.project.write("secret.txt", format!("{SECRET}\n"))?;
        stage.project.write("keys/one", format!("{SECRET}\n"))?;
        stage.project.write("open.txt", "opened\n")?;
        stage.run(["go"])?;
        let results = stage.results(1)?.join("\n");
        assert!(!results.contains(SECRET), "{tool} {input}: {results}");
        assert_eq!(results.contains("opened"), !is_denied, "{tool} {input}: {results}");
        assert!(stage.project.read("secret.txt")?.contains(SECRET));
    }
    Ok(())
}
