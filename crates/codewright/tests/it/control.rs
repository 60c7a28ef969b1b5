//! Files that control the agent or another program: writing them always needs permission.

use std::fs;
use std::os::unix::fs::symlink;

use anyhow::Result;
use codewright_testkit::{BlockingServer, Project, Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, check_code, check_has, of_type, program};

/// A stage whose user allows edits and commands, with more rules about edits.
fn stage(script: Script, more: &[(&str, &str)]) -> Result<Stage> {
    let stage = Stage::git(script)?;
    let mut config = Project::config(&stage.server.url());
    let mut edit = serde_json::Map::from_iter([("*".to_owned(), json!("allow"))]);
    edit.extend(more.iter().map(|(pattern, action)| ((*pattern).to_owned(), json!(action))));
    config["permission"] = json!({ "edit": edit, "bash": "allow", "external_directory": "allow" });
    stage.project.write_config(&config)?;
    stage.project.write("opencode.json", "{\"permission\": {}}")?;
    Ok(stage)
}

fn write(path: &str) -> (&'static str, Value) {
    ("write", json!({"filePath": path, "content": "x\n"}))
}

/// Checks that a call needs permission although edits are allowed, and that the request names the path.
#[track_caller]
fn check_asks((tool, input): (&str, Value), path: &str) {
    let turn = Turn::steps().tool(tool, input.clone());
    let stage = stage(Script::new().turn(turn).text("done"), &[]).unwrap();
    fs::create_dir_all(stage.project.path("sub/.claude")).unwrap();
    symlink("sub/.claude", stage.project.path("link")).unwrap();
    symlink(".git/hooks/post-commit", stage.project.path("innocent")).unwrap();
    let done = stage.run(["do it"]).unwrap();
    check_code(&done, 0);
    assert!(
        done.stderr.contains("! permission requested: edit (") && done.stderr.contains(path),
        "{tool} {input} needed no permission:\n{}",
        done.stderr
    );
}

#[test]
fn file_tools_ask_before_they_write_a_control_file() {
    for (call, path) in [
        (write("opencode.jsonc"), "opencode.jsonc"),
        (write("deep/er/.OPENCODE/command/x.md"), ".OPENCODE/command/x.md"),
        (write("a/../.mcp.json"), ".mcp.json"),
        (write("link/settings.json"), "sub/.claude/settings.json"),
        (write("innocent"), ".git/hooks/post-commit"),
        (write("../.bashrc"), ".bashrc"),
        (
            (
                "edit",
                json!({"filePath": "opencode.json", "oldString": "\"permission\"", "newString": "\"permission\" "}),
            ),
            "opencode.json",
        ),
    ] {
        check_asks(call, path);
    }
}

#[test]
fn a_patch_asks_before_it_writes_a_control_file() -> Result<()> {
    let patch = "*** Begin Patch\n*** Add File: .vscode/tasks.json\n+{}\n*** End Patch";
    let server =
        BlockingServer::start(Script::new().tool("apply_patch", json!({"patchText": patch})).text("done"))?;
    let project = Project::git()?;
    project.write_config(&json!({
        "model": "openai/gpt-5",
        "provider": {"openai": {"options": {"baseURL": format!("{}/v1", server.url()), "apiKey": "sk-x"}}},
        "permission": {"edit": "allow"},
    }))?;
    let done = program(&project, ["run", "Patch it"]).finish()?.success()?;
    check_has(&done.stderr, &["! permission requested: edit (.vscode/tasks.json)"]);
    assert!(!project.path(".vscode").exists());
    Ok(())
}

#[test]
fn commands_ask_before_they_write_a_control_file() {
    for (command, path) in [
        ("echo x > .git/hooks/pre-commit", ".git/hooks/pre-commit"),
        ("mkdir -p .claude && cp opencode.json .claude/settings.json", ".claude/settings.json"),
        ("cd sub && tee .envrc < /dev/null", "sub/.envrc"),
        ("printf x >> link/CLAUDE.local.md", "sub/.claude/CLAUDE.local.md"),
        ("rm -rf .git", ".git"),
        ("mv sub/x .husky/pre-commit", ".husky/pre-commit"),
    ] {
        check_asks(("bash", json!({"command": command})), path);
    }
}

#[test]
fn ordinary_files_need_no_permission() -> Result<()> {
    let turn = Turn::tools([
        write("src/main.rs"),
        write(".gitignore"),
        write("AGENTS.md"),
        write(".github/workflows/ci.yml"),
        (
            "bash",
            json!({"command": "mkdir -p out && echo x > out/a && for f in *; do cp -r $f out/ 2>/dev/null; done; true"}),
        ),
    ]);
    let stage = stage(Script::new().turn(turn).text("done"), &[])?;
    let done = stage.run(["do it"])?.success()?;
    assert!(!done.stderr.contains("permission requested"), "{}", done.stderr);
    Ok(())
}

#[test]
fn a_rule_that_names_the_files_allows_them() -> Result<()> {
    let turn = Turn::tools([write(".opencode/command/x.md"), write(".claude/x")]);
    let stage = stage(Script::new().turn(turn).text("done"), &[(".opencode/**", "allow")])?;
    let done = stage.run(["do it"])?;
    assert!(stage.project.path(".opencode/command/x.md").exists(), "{}", done.stderr);
    check_has(&done.stderr, &["! permission requested: edit (.claude/x)"]);
    assert!(!stage.project.path(".claude/x").exists());
    Ok(())
}

#[test]
fn a_denial_applies_and_a_reply_allows_once() -> Result<()> {
    let turn = || Turn::tools([write(".opencode/x.md"), write(".husky/x")]);
    let stage = stage(Script::new().turn(turn()).text("done"), &[(".husky/*", "deny")])?;
    let lines = stage.json(["--auto", "do it"])?;
    let mut states: Vec<_> = of_type(&lines, "tool_use")
        .iter()
        .map(|line| {
            (line["part"]["state"]["input"]["filePath"].clone(), line["part"]["state"]["status"].clone())
        })
        .collect();
    states.sort_by_key(|(path, _)| path.to_string());
    assert_eq!(states, [(json!(".husky/x"), json!("error")), (json!(".opencode/x.md"), json!("completed"))]);
    Ok(())
}
