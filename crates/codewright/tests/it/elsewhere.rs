//! Sessions that are continued in another directory, and sessions whose directory has changed.

use std::time::{Duration, Instant};

use anyhow::Result;
use codewright_testkit::{Finished, Project, Script, Turn};
use serde_json::json;

use crate::support::{Stage, check_code, check_has, lines, session_of};

/// Runs `run --format json` in a directory next to the project.
fn run_in(stage: &Stage, directory: &str, args: &[&str]) -> Result<Finished> {
    let directory = stage.project.path(directory);
    std::fs::create_dir_all(&directory)?;
    stage
        .program(["run", "--format", "json"].into_iter().chain(args.iter().copied()))
        .directory(directory)
        .finish()
}

fn talker(texts: &[&str]) -> Script {
    texts.iter().fold(Script::new(), |script, text| script.text(*text))
}

#[test]
fn a_session_is_continued_from_another_directory() -> Result<()> {
    let stage = Stage::plain(talker(&["One.", "Two.", "Three.", "Four."]))?;
    let id = session_of(&stage.json(["first"])?)?;
    for args in
        [vec!["-s", &id, "second"], vec!["-s", &id, "--fork", "third"], vec!["-s", &id, "--dir", ".", "x"]]
    {
        let done = run_in(&stage, "../elsewhere", &args)?.success()?;
        check_has(&done.stdout, &["\"type\":\"text\""]);
    }
    stage.no_problems()
}

#[test]
fn the_last_session_is_that_of_the_directory_or_below_it() -> Result<()> {
    let stage = Stage::git(talker(&["One.", "Two.", "Three.", "Four.", "Five."]))?;
    stage.project.run_git(&["worktree", "add", "-q", "-b", "other", "nested"])?;
    let first = session_of(&stage.json(["first"])?)?;
    let nested = session_of(&lines(&run_in(&stage, "nested", &["-c", "second"])?.success()?)?)?;
    assert_ne!(nested, first, "another worktree has its own sessions");
    let again = session_of(&stage.json(["-c", "third"])?)?;
    assert_eq!(again, first, "the nested worktree does not belong to the directory");
    let below = session_of(&lines(&run_in(&stage, "sub", &["-c", "fourth"])?.success()?)?)?;
    assert_ne!(below, first, "the directory above does not count");
    assert_eq!(session_of(&stage.json(["-c", "fifth"])?)?, below, "the directories below do");
    stage.no_problems()
}

#[test]
fn sessions_stay_listed_after_the_first_commit_and_their_changes_can_be_undone() -> Result<()> {
    let script = Script::new()
        .tool("write", json!({"filePath": "made.txt", "content": "x"}))
        .text("Made.")
        .text("On.");
    let stage = Stage::plain(script)?;
    let id = session_of(&stage.json(["build it"])?)?;
    let listed = || Ok::<_, anyhow::Error>(stage.program(["session", "list"]).finish()?.success()?.stdout);
    for git in [
        vec!["init", "--quiet"],
        vec!["add", "--all"],
        vec!["-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "--quiet", "--message=x"],
    ] {
        stage.project.run_git(&git)?;
        check_has(&listed()?, &[&id]);
    }
    stage.program(["session", "undo", &id]).finish()?.success()?;
    assert!(!stage.project.path("made.txt").exists(), "the change of the first prompt is undone");
    assert_eq!(session_of(&stage.json(["-c", "go on"])?)?, id);
    std::fs::remove_dir_all(stage.project.path(".git"))?;
    check_has(&listed()?, &[&id]);
    stage.no_problems()
}

#[test]
fn a_session_whose_directory_was_renamed_is_moved_with_a_flag() -> Result<()> {
    let stage = Stage::plain(talker(&["One.", "Two.", "Three."]))?;
    let first = run_in(&stage, "../before", &["first"])?.success()?;
    let id = session_of(&lines(&first)?)?;
    std::fs::rename(stage.project.path("../before"), stage.project.path("../after"))?;
    let refused = run_in(&stage, "../after", &["-s", &id, "second"])?;
    check_code(&refused, 1);
    check_has(&refused.stderr, &["no longer exists", "--dir"]);
    let done = run_in(&stage, "../after", &["-s", &id, "--dir", ".", "second"])?.success()?;
    check_has(&done.stdout, &["Two."]);
    let again = session_of(&lines(&run_in(&stage, "../after", &["-c", "third"])?.success()?)?)?;
    assert_eq!(again, id, "it belongs to the new directory");
    stage.no_problems()
}

#[test]
fn an_interrupt_ends_a_continued_session_quickly() -> Result<()> {
    let stage = Stage::plain(Script::new().text("One.").turn(Turn::text("Two.\n").hang()))?;
    let id = session_of(&stage.json(["first"])?)?;
    let mut run = stage.program(["run", "-s", &id, "second"]).directory(stage.project.home()).start()?;
    assert_eq!(run.line()?.as_deref(), Some("Two."));
    let begun = Instant::now();
    run.interrupt()?;
    check_code(&run.finish()?, 130);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    Ok(())
}

#[test]
fn a_rule_that_names_a_symlink_allows_its_target() -> Result<()> {
    let stage =
        Stage::plain(Script::new().tool("read", json!({"filePath": "../notes/a.txt"})).text("Read."))?;
    let outside = |name: &str| stage.project.path("..").join(name);
    std::fs::create_dir(outside("disk"))?;
    std::fs::write(outside("disk/a.txt"), "CONTENT")?;
    std::os::unix::fs::symlink("disk", outside("notes"))?;
    let notes = outside("").canonicalize()?.join("notes");
    let mut config = Project::config(&stage.server.url());
    config["permission"] =
        json!({"external_directory": {"*": "deny", format!("{}/**", notes.display()): "allow"}});
    stage.project.write_config(&config)?;
    stage.run(["read my notes"])?.success()?;
    check_has(&stage.results(1)?.join("\n"), &["CONTENT"]);
    stage.no_problems()
}

#[test]
fn a_name_with_brackets_is_found() -> Result<()> {
    let stage =
        Stage::plain(Script::new().tool("glob", json!({"pattern": "app/[id]/page.tsx"})).text("Found."))?;
    stage.project.write("app/[id]/page.tsx", "right")?;
    stage.project.write("app/i/page.tsx", "other")?;
    stage.run(["open the page"])?.success()?;
    let found = stage.results(1)?.join("\n");
    check_has(&found, &["app/[id]/page.tsx"]);
    assert!(!found.contains("app/i/page.tsx"), "{found}");
    stage.no_problems()
}

#[test]
fn an_agent_whose_restrictions_are_not_understood_is_left_out() -> Result<()> {
    let stage = Stage::plain(talker(&["Done."]))?;
    let agents = stage.project.home().join(".config/opencode/agent");
    std::fs::create_dir_all(&agents)?;
    std::fs::write(
        agents.join("spaced.md"),
        "--- \ndescription: d\ntools:\n  write: false\n--- \nReview.\n",
    )?;
    std::fs::write(agents.join("broken.md"), "---\ndescription: d\npermission: {edit: deny\n---\nReview.\n")?;
    std::fs::write(agents.join("listed.md"), "---\ndescription: d\ntools: Read, Grep\n---\nReview.\n")?;
    let names = |n: usize| {
        let request = &stage.server.main_requests()[n];
        let tools = request.body["tools"].as_array().cloned().unwrap_or_default();
        tools
            .iter()
            .map(|tool| tool["function"]["name"].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    stage.run(["--agent", "spaced", "hi"])?.success()?;
    assert!(!names(0).contains(&"write".to_owned()), "{:?}", names(0));
    stage.run(["--agent", "listed", "hi"])?;
    let listed = names(stage.server.main_requests().len() - 1);
    assert!(listed.iter().all(|name| ["read", "grep"].contains(&name.as_str())), "{listed:?}");
    let refused = stage.run(["--agent", "broken", "hi"])?;
    check_code(&refused, 1);
    check_has(&refused.stderr, &["the agent `broken` is left out", "there is no such agent"]);
    Ok(())
}

#[test]
fn a_restriction_with_a_slip_never_leaves_the_agent_with_more_rights() -> Result<()> {
    let stage = Stage::plain(talker(&["Done."]))?;
    let agents = stage.project.home().join(".config/opencode/agent");
    std::fs::create_dir_all(&agents)?;
    let front = "description: d\nmode: primary\ntools:\n  write: false\n";
    for (name, text) in [
        ("twice", format!("---\n{front}tools:\n  bash: false\n---\nReview.\n")),
        ("late", format!("<!-- reviewer -->\n---\n{front}---\nReview.\n")),
        ("unseen", format!("\u{200b}---\n{front}---\nReview.\n")),
        ("fenced", format!("```yaml\n---\n{front}---\n```\nReview.\n")),
        ("braces", "---\n{\"mode\": \"primary\", \"tools\": {\"write\": false}}\n---\nReview.\n".to_owned()),
    ] {
        std::fs::write(agents.join(format!("{name}.MD")), text)?;
    }
    stage.run(["--agent", "braces", "hi"])?.success()?;
    let sent = stage.server.main_requests()[0].body["tools"].to_string();
    assert!(sent.contains("\"bash\"") && !sent.contains("\"write\""), "{sent}");
    let count = stage.server.main_requests().len();
    for name in ["twice", "late", "unseen", "fenced"] {
        let refused = stage.run(["--agent", name, "hi"])?;
        check_code(&refused, 1);
        check_has(&refused.stderr, &[&format!("the agent `{name}` is left out")]);
    }
    let mut config = Project::config(&stage.server.url());
    config["agent"] = json!({"build": {"tool": {"write": false}}});
    stage.project.write_config(&config)?;
    let refused = stage.run(["hi"])?;
    check_code(&refused, 1);
    check_has(&refused.stderr, &["unknown key `agent.build.tool`; did you mean `tools`?"]);
    assert_eq!(stage.server.main_requests().len(), count, "no request without the restriction");
    Ok(())
}

#[test]
fn a_rule_that_names_a_link_or_a_directory_holds_for_the_files_themselves() -> Result<()> {
    for (permission, call) in [
        (json!({"read": {"link/**": "deny"}}), ("read", json!({"filePath": "secrets/k.txt"}))),
        (json!({"read": {"link.txt": "deny"}}), ("read", json!({"filePath": "secrets/k.txt"}))),
        (
            json!({"edit": {"link/**": "deny"}}),
            ("write", json!({"filePath": "secrets/n.txt", "content": "SECRET"})),
        ),
        (json!({"read": {"secrets": "deny"}}), ("read", json!({"filePath": "secrets/k.txt"}))),
        (json!({"read": {"secrets/": "deny"}}), ("read", json!({"filePath": "secrets/k.txt"}))),
        (json!({"read": {"link": "deny"}}), ("read", json!({"filePath": "secrets/k.txt"}))),
    ] {
        for is_repository in [false, true] {
            let script = Script::new().turn(Turn::tools(vec![call.clone()])).text("done");
            let stage = if is_repository { Stage::git(script)? } else { Stage::plain(script)? };
            let mut config = Project::config(&stage.server.url());
            config["permission"] = permission.clone();
            stage.project.write_config(&config)?;
            stage.project.write("secrets/k.txt", "SECRET")?;
            std::os::unix::fs::symlink("secrets", stage.project.path("link"))?;
            std::os::unix::fs::symlink("secrets/k.txt", stage.project.path("link.txt"))?;
            stage.run(["--auto", "go"])?;
            let results = stage.results(1)?.join("\n");
            assert!(!results.contains("SECRET"), "{permission} {is_repository}: {results}");
            assert!(!stage.project.path("secrets/n.txt").exists(), "{permission} {is_repository}");
        }
    }
    Ok(())
}

#[test]
fn a_server_with_a_switch_in_quotes_is_not_started() -> Result<()> {
    let stage = Stage::plain(talker(&["Done."]))?;
    let mut config = Project::config(&stage.server.url());
    let mark = stage.project.path("started");
    config["mcp"] = json!({"a": {"type": "local", "command": ["touch", mark], "enabled": "false"}});
    stage.project.write_config(&config)?;
    let refused = stage.run(["hi"])?;
    check_code(&refused, 1);
    check_has(&refused.stderr, &["`mcp.a.enabled` must be `true` or `false`, found a string"]);
    assert!(!mark.exists());
    Ok(())
}
