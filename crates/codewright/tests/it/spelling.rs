//! Names with decomposed letters and compatibility characters mean what a person means by them.

use anyhow::Result;
use codewright_testkit::{Project, Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, check_has};

/// The name that macOS gives to a screenshot.
const SCREENSHOT: &str = "Screenshot 2026-11-27 at 10.00.00\u{202f}AM.txt";
const TYPED: &str = "Screenshot 2026-11-27 at 10.00.00 AM.txt";

fn stage(calls: Vec<(&'static str, Value)>, permission: &Value) -> Result<Stage> {
    let stage = Stage::git(Script::new().turn(Turn::tools(calls)).text("done"))?;
    let mut config = Project::config(&stage.server.url());
    config["permission"] = permission.clone();
    stage.project.write_config(&config)?;
    Ok(stage)
}

#[test]
fn a_name_that_a_person_types_finds_the_file() -> Result<()> {
    let calls = vec![
        ("read", json!({"filePath": TYPED})),
        ("read", json!({"filePath": "caf\u{e9}/menu.txt"})),
        ("glob", json!({"pattern": TYPED})),
        ("glob", json!({"pattern": "**/caf\u{e9}/*"})),
        ("grep", json!({"pattern": "CONTENT", "path": "caf\u{e9}"})),
        ("read", json!({"filePath": "two b.txt"})),
        ("read", json!({"filePath": "both b.txt"})),
    ];
    let stage = stage(calls, &json!({}))?;
    for (name, content) in [
        (SCREENSHOT, "PICTURE"),
        ("cafe\u{301}/menu.txt", "CONTENT"),
        ("two\u{a0}b.txt", "WRONG"),
        ("two\u{202f}b.txt", "WRONG"),
        ("both\u{a0}b.txt", "WRONG"),
        ("both b.txt", "EXACT"),
    ] {
        stage.project.write(name, content)?;
    }
    stage.run(["do it"])?.success()?;
    let results = stage.results(1)?;
    for (result, expected) in
        results.iter().zip(["PICTURE", "CONTENT", SCREENSHOT, "menu.txt", "CONTENT", "not found", "EXACT"])
    {
        check_has(result, &[expected]);
        assert!(!result.contains("WRONG"), "{result}");
    }
    Ok(())
}

#[test]
fn a_file_of_a_prompt_and_of_a_command_may_be_typed() -> Result<()> {
    let stage = Stage::git(Script::new().text("done").text("done"))?;
    stage.project.write(SCREENSHOT, "PICTURE")?;
    stage.project.write("cafe\u{301}.txt", "CONTENT")?;
    stage.project.write(".opencode/command/menu.md", "Look at @caf\u{e9}.txt")?;
    stage.program(["run", "--command", "menu"]).env("CODEWRIGHT_TRUST", "all").finish()?.success()?;
    let sent = serde_json::to_string(&stage.messages(0)?)?;
    assert!(sent.contains("CONTENT"), "{sent}");
    Ok(())
}

#[test]
fn a_rule_that_denies_names_every_spelling() -> Result<()> {
    let calls = vec![
        ("read", json!({"filePath": "cafe\u{301}.txt"})),
        ("read", json!({"filePath": "caf\u{e9}.txt"})),
        ("read", json!({"filePath": SCREENSHOT})),
        ("read", json!({"filePath": TYPED})),
        ("grep", json!({"pattern": "SECRET"})),
        ("bash", json!({"command": "cat *", "description": "x"})),
    ];
    let rules = json!({"read": {"*": "allow", "caf\u{e9}.txt": "deny", "Screenshot*0 AM.txt": "deny"}});
    let stage = stage(calls, &rules)?;
    stage.project.write("cafe\u{301}.txt", "SECRET")?;
    stage.project.write(SCREENSHOT, "SECRET")?;
    stage.project.write("open.txt", "OPEN")?;
    stage.run(["do it"])?.success()?;
    for result in stage.results(1)? {
        assert!(!result.contains("SECRET"), "{result}");
    }
    Ok(())
}

#[test]
fn a_rule_that_allows_means_the_file_with_its_own_name() -> Result<()> {
    let calls = vec![
        ("read", json!({"filePath": "cafe\u{301}.txt"})),
        ("read", json!({"filePath": "caf\u{e9}.txt"})),
        ("read", json!({"filePath": "a b.txt"})),
        ("read", json!({"filePath": "x\u{a0}y.txt"})),
        ("read", json!({"filePath": "x y.txt"})),
    ];
    let rules =
        json!({"read": {"*": "deny", "caf\u{e9}.txt": "allow", "a b.txt": "allow", "x y.txt": "allow"}});
    let stage = stage(calls, &rules)?;
    for (name, content) in [
        ("cafe\u{301}.txt", "OPEN"),
        ("a\u{202f}b.txt", "OPEN"),
        ("x\u{a0}y.txt", "OTHER"),
        ("x y.txt", "OPEN"),
    ] {
        stage.project.write(name, content)?;
    }
    stage.run(["do it"])?.success()?;
    let results = stage.results(1)?;
    for (at, result) in results.iter().enumerate() {
        assert_eq!(result.contains("OPEN"), at != 3, "{at}: {result}");
        assert!(!result.contains("OTHER"), "{result}");
    }
    Ok(())
}

#[test]
fn a_name_with_marks_of_a_glob_is_found_literally() -> Result<()> {
    let calls = vec![
        ("glob", json!({"pattern": "#hash/*"})),
        ("glob", json!({"pattern": "#hash/h.ts"})),
        ("glob", json!({"pattern": "b\\s/*"})),
        ("glob", json!({"pattern": "!draft/*"})),
        ("glob", json!({"pattern": "#missing/*"})),
    ];
    let stage = stage(calls, &json!({}))?;
    for name in ["#hash/h.ts", "b\\s/back.ts", "!draft/d.ts", "other/o.ts"] {
        stage.project.write(name, "x")?;
    }
    stage.run(["do it"])?.success()?;
    for (result, expected) in
        stage.results(1)?.iter().zip(["h.ts", "h.ts", "back.ts", "d.ts", "No files found"])
    {
        check_has(result, &[expected]);
        assert!(!result.contains("o.ts"), "{result}");
    }
    Ok(())
}

#[test]
fn names_in_another_case_and_values_of_another_type_have_one_reading() -> Result<()> {
    let calls = vec![
        ("task", json!({"description": "d", "prompt": "p", "subagent_type": "GENERAL"})),
        ("skill", json!({"name": "S1"})),
        ("skill", json!({"skill": "s1"})),
        ("read", json!({"filePath": "a.txt", "offset": "null"})),
        ("write", json!({"filePath": "n.txt", "content": 42})),
        ("grep", json!({"pattern": 42})),
        ("read", json!([{"filePath": "a.txt"}])),
    ];
    let stage = stage(calls, &json!({}))?;
    stage.project.write("a.txt", "AAA")?;
    let skill = stage.project.home().join(".config/opencode/skill/s1/SKILL.md");
    std::fs::create_dir_all(skill.parent().expect("it has a directory"))?;
    std::fs::write(skill, "---\nname: s1\ndescription: D\n---\nBODY")?;
    stage.run(["do it"])?.success()?;
    let last = stage.server.main_requests().len() - 1;
    let results = stage.results(last)?;
    for (result, expected) in results.iter().zip(["task", "BODY", "BODY", "AAA", "", "", "AAA"]) {
        check_has(result, &[expected]);
        assert!(
            !result.contains("invalid arguments")
                && !result.contains("not found")
                && !result.contains("Unknown agent"),
            "{expected}: {result}"
        );
    }
    assert_eq!(stage.project.read("n.txt")?, "42");
    assert_eq!(results.len(), 7);
    Ok(())
}
