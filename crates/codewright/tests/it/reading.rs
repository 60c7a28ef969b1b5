//! Searches omit files that permission rules withhold.

use std::os::unix::fs::symlink;

use anyhow::Result;
use codewright_testkit::{Project, Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, check_has};

fn stage(calls: impl IntoIterator<Item = (&'static str, Value)>, read: Value) -> Result<Stage> {
    let stage = Stage::git(Script::new().turn(Turn::tools(calls)).text("done"))?;
    let mut config = Project::config(&stage.server.url());
    config["permission"] = json!({ "read": read });
    config["tools"] = json!({ "list": true });
    stage.project.write_config(&config)?;
    stage.project.write("src/a.txt", "needle in a\n")?;
    stage.project.write(".env", "KEY=needle-secret\n")?;
    stage.project.write("sub/prod.env", "KEY=needle-secret\n")?;
    stage.project.write("secret/b.txt", "needle-secret\n")?;
    stage.project.write("secret/AGENTS.md", "needle-secret orders\n")?;
    Ok(stage)
}

fn call(tool: &'static str, input: Value) -> (&'static str, Value) {
    (tool, input)
}

#[test]
fn a_search_omits_unreadable_files() -> Result<()> {
    let rules = json!({"*": "allow", "*.env": "ask", "secret/*": "deny"});
    let calls = [
        call("grep", json!({"pattern": "needle"})),
        call("grep", json!({"pattern": "needle-secret", "path": "secret"})),
        call("grep", json!({"pattern": "no such text", "include": "*.env"})),
        call("glob", json!({"pattern": "**/*"})),
        call("list", json!({})),
        call("read", json!({"filePath": "secret"})),
    ];
    let stage = stage(calls, rules)?;
    stage.run(["do it"])?.success()?;
    let results = stage.results(1)?;
    assert!(!results.is_empty());
    for result in &results {
        for hidden in ["needle-secret", ".env", "b.txt"] {
            assert!(!result.contains(hidden), "{hidden} in {result}");
        }
    }
    check_has(&results[0], &["needle in a", "2 files need permission to read, 2 files are denied by a rule"]);
    check_has(&results[1], &["No files found", "2 files are denied by a rule"]);
    // The number of files does not reveal their content.
    check_has(&results[2], &["No files found", "2 files need permission to read"]);
    check_has(&results[3], &["src/a.txt", "2 files need permission to read"]);
    Ok(())
}

#[test]
fn an_env_file_is_omitted_by_default() -> Result<()> {
    let stage = stage([call("grep", json!({"pattern": "needle"}))], json!({}))?;
    stage.run(["do it"])?.success()?;
    let results = stage.results(1)?;
    check_has(&results[0], &["needle in a", "2 files need permission to read"]);
    assert!(!results[0].contains("KEY="), "{}", results[0]);
    Ok(())
}

#[test]
fn rules_apply_to_the_real_path_of_a_linked_directory() -> Result<()> {
    let calls = [
        call("grep", json!({"pattern": "needle", "path": "link"})),
        call("glob", json!({"pattern": "*", "path": "link"})),
    ];
    let stage = stage(calls, json!({"secret/*": "deny"}))?;
    symlink("secret", stage.project.path("link"))?;
    stage.run(["do it"])?.success()?;
    for result in stage.results(1)? {
        check_has(&result, &["2 files are denied by a rule"]);
        assert!(!result.contains("b.txt") && !result.contains("needle-secret"), "{result}");
    }
    Ok(())
}

#[test]
fn rules_apply_to_instructions_next_to_a_file() -> Result<()> {
    let calls = [call("read", json!({"filePath": "secret/c.txt"}))];
    let stage = stage(calls, json!({"secret/AGENTS.md": "deny"}))?;
    stage.project.write("secret/c.txt", "plain\n")?;
    stage.run(["do it"])?.success()?;
    let results = stage.results(1)?;
    check_has(&results[0], &["plain"]);
    assert!(!results[0].contains("orders"), "{}", results[0]);
    Ok(())
}

#[test]
fn a_search_without_withheld_files_is_unchanged() -> Result<()> {
    let stage = stage([call("grep", json!({"pattern": "needle", "path": "src"}))], json!({}))?;
    stage.run(["do it"])?.success()?;
    let results = stage.results(1)?;
    assert!(
        results[0].starts_with("Found 1 matches\n") && !results[0].contains("Left out"),
        "{}",
        results[0]
    );
    Ok(())
}
