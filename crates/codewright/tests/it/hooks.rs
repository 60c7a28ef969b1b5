//! Command hooks: each event with shell and Python, the answers that they can give, and everything that they do wrong.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use codewright_testkit::{Finished, Project, Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, check_has, get, new_session, post, prompt, wait_until};

/// A stage whose user configured these hooks. Each hook appends its input to the file `log`.
fn stage(script: Script, hooks: &Value, more: Value) -> Result<Stage> {
    let stage = Stage::plain(script)?;
    let mut config = Project::config(&stage.server.url());
    // The user's configuration, not that of the repository.
    let mut own = json!({"hooks": hooks, "sandbox": {"mode": "off"}});
    for (key, value) in more.as_object().into_iter().flatten() {
        own[key] = value.clone();
    }
    config["plugin"] = json!([]);
    stage.project.write_config(&config)?;
    let path = stage.project.home().join(".config/codewright/codewright.json");
    fs::create_dir_all(path.parent().context("no parent")?)?;
    fs::write(path, own.to_string())?;
    Ok(stage)
}

/// A group of hooks with one command.
fn hook(matcher: &str, command: &str) -> Value {
    json!([{"matcher": matcher, "hooks": [{"type": "command", "command": command, "timeout": 20}]}])
}

fn log(stage: &Stage) -> String {
    stage.project.read("log").unwrap_or_default()
}

/// The inputs that hooks received for an event.
fn inputs(stage: &Stage, event: &str) -> Vec<Value> {
    let all =
        log(stage).lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect::<Vec<_>>();
    all.into_iter().filter(|input| input["hook_event_name"] == event).collect()
}

fn bash(command: &str) -> Script {
    Script::new()
        .turn(Turn::steps().tool("bash", json!({"command": command, "description": "x"})))
        .text("Done.")
}

fn run(stage: &Stage) -> Result<Finished> {
    stage.run(["go"])?.success()
}

const KEEP: &str = "cat >> log; echo >> log";

#[test]
fn every_event_has_its_input() -> Result<()> {
    let python = "python3 -c \"import json,sys; d=json.load(open('/dev/stdin')); open('log','a').write(json.dumps(d)+chr(10))\"";
    let hooks = json!({
        "SessionStart": hook("startup", KEEP),
        "SessionEnd": hook("*", KEEP),
        "UserPromptSubmit": hook("", python),
        "PreToolUse": hook("Bash", python),
        "PostToolUse": hook("bash|Edit", KEEP),
        "Stop": hook("", KEEP),
    });
    let stage = stage(bash("echo $((40 + 2))"), &hooks, json!({}))?;
    run(&stage)?;
    let one = |event: &str| -> Result<Value> {
        let mut found = inputs(&stage, event);
        ensure!(found.len() == 1, "{event}: {}", log(&stage));
        Ok(found.remove(0))
    };
    let start = one("SessionStart")?;
    assert_eq!(start["source"], "startup");
    assert!(start["session_id"].as_str().is_some_and(|id| id.starts_with("ses_")));
    assert_eq!(one("UserPromptSubmit")?["prompt"], "go");
    let before = one("PreToolUse")?;
    assert_eq!(
        (&before["tool_name"], &before["tool_input"]["command"]),
        (&json!("Bash"), &json!("echo $((40 + 2))"))
    );
    let after = one("PostToolUse")?;
    assert!(after["tool_response"]["output"].as_str().is_some_and(|output| output.contains("42")), "{after}");
    assert_eq!(one("Stop")?["stop_hook_active"], false);
    assert_eq!(one("SessionEnd")?["reason"], "other");
    stage.no_problems()
}

#[test]
fn texts_of_hooks_reach_the_model() -> Result<()> {
    let more = r#"echo '{"hookSpecificOutput": {"additionalContext": "from the tool"}}'"#;
    let hooks = json!({
        "SessionStart": hook("", "echo from the start"),
        "UserPromptSubmit": hook("", "echo from the prompt"),
        "PostToolUse": hook("*", more),
    });
    let stage = stage(bash("true"), &hooks, json!({}))?;
    run(&stage)?;
    let first = serde_json::to_string(&stage.messages(0)?)?;
    check_has(&first, &["from the start", "from the prompt"]);
    check_has(&stage.results(1)?.join(""), &["from the tool"]);
    Ok(())
}

#[test]
fn a_hook_before_a_call_denies_it_or_changes_its_arguments() -> Result<()> {
    let answer = |own: &Value| format!("echo '{}'", json!({"hookSpecificOutput": own}));
    let deny = answer(&json!({"permissionDecision": "deny", "permissionDecisionReason": "not today"}));
    for (command, expected) in [
        ("echo blocked by code >&2; exit 2", "blocked by code"),
        (deny.as_str(), "not today"),
        ("echo '{\"decision\": \"block\", \"reason\": \"the older form\"}'", "the older form"),
    ] {
        let stage = stage(bash("touch RAN"), &json!({"PreToolUse": hook("Bash", command)}), json!({}))?;
        run(&stage)?;
        check_has(&stage.results(1)?.join(""), &[expected]);
        assert!(!stage.project.path("RAN").exists(), "{command}");
    }
    let changed = answer(&json!({"updatedInput": {"command": "echo changed", "description": "x"}}));
    let stage = stage(bash("touch RAN"), &json!({"PreToolUse": hook("Bash", &changed)}), json!({}))?;
    run(&stage)?;
    check_has(&stage.results(1)?.join(""), &["changed"]);
    assert!(!stage.project.path("RAN").exists());
    Ok(())
}

#[test]
fn a_hook_of_the_user_answers_a_question_and_never_a_rule_that_denies() -> Result<()> {
    let allow = r#"echo '{"hookSpecificOutput": {"permissionDecision": "allow"}}'"#;
    let request = r#"echo '{"hookSpecificOutput": {"decision": {"behavior": "allow"}}}'"#;
    let ask = r#"echo '{"hookSpecificOutput": {"permissionDecision": "ask"}}'"#;
    for (event, command, rule, expected) in [
        ("PreToolUse", allow, "ask", true),
        ("PermissionRequest", request, "ask", true),
        ("PermissionRequest", "exit 2", "ask", false),
        ("PreToolUse", "true", "ask", false),
        ("PreToolUse", allow, "deny", false),
        ("PermissionRequest", request, "deny", false),
        ("PreToolUse", "true", "allow", true),
        ("PreToolUse", ask, "allow", false),
    ] {
        let rules = json!({"permission": {"bash": rule}});
        // Without a user each question is rejected.
        let stage = stage(bash("touch RAN"), &json!({event: hook("Bash", command)}), rules)?;
        stage.run(["go"])?;
        assert_eq!(stage.project.path("RAN").exists(), expected, "{event} {command} {rule}");
    }
    Ok(())
}

#[test]
fn a_stop_hook_continues_the_turn_a_limited_number_of_times() -> Result<()> {
    let script = (0..12).fold(Script::new(), |script, _| script.text("Done."));
    let hooks = json!({"Stop": hook("", "cat >> log; echo >> log; echo write the tests >&2; exit 2")});
    let stage = stage(script, &hooks, json!({}))?;
    run(&stage)?;
    let inputs = inputs(&stage, "Stop");
    assert_eq!(
        (inputs[0]["stop_hook_active"].clone(), inputs[1]["stop_hook_active"].clone()),
        (json!(false), json!(true))
    );
    assert_eq!(stage.server.main_requests().len(), 9, "the answer and eight repetitions");
    check_has(&serde_json::to_string(&stage.messages(1)?)?, &["write the tests"]);
    Ok(())
}

#[test]
fn the_end_of_a_subagent_has_an_event_of_its_own() -> Result<()> {
    let task = json!({"description": "part", "prompt": "SUBTASK look", "subagent_type": "general"});
    let sub = [Turn::text("Looked."), Turn::text("Looked again.")];
    let script = Script::new().session("SUBTASK", sub).tool("task", task).text("Done.");
    let once = "input=$(cat); echo \"$input\" >> log; case $input in *'active\":false'*) echo again >&2; exit 2;; esac";
    let hooks = json!({"SubagentStop": hook("", once), "Stop": hook("", KEEP)});
    let stage = stage(script, &hooks, json!({}))?;
    run(&stage)?;
    let ends = inputs(&stage, "SubagentStop");
    assert_eq!((ends.len(), inputs(&stage, "Stop").len()), (2, 1), "{}", log(&stage));
    assert_ne!(ends[0]["session_id"], inputs(&stage, "Stop")[0]["session_id"]);
    stage.no_problems()
}

#[test]
fn a_summary_is_announced() -> Result<()> {
    let script = Script::new().summary(Turn::text("The summary.")).text("One.").text("On.");
    let stage = stage(script, &json!({"PreCompact": hook("manual", KEEP)}), json!({}))?;
    let (_server, url) = stage.serve()?;
    let id = new_session(&url)?;
    post(&url, &format!("/session/{id}/message"), &prompt("go"))?;
    let messages = get(&url, &format!("/session/{id}/message"))?;
    let used = &messages[1]["info"];
    let model = json!({"providerID": used["providerID"], "modelID": used["modelID"]});
    let (status, reply) = post(&url, &format!("/session/{id}/summarize"), &model)?;
    ensure!(status == 200, "{status}: {reply}");
    wait_until("the hook", || !inputs(&stage, "PreCompact").is_empty())?;
    assert_eq!(inputs(&stage, "PreCompact")[0]["trigger"], "manual");
    Ok(())
}

#[test]
fn a_hook_refuses_a_prompt() -> Result<()> {
    let hooks = json!({"UserPromptSubmit": hook("", "echo no such prompts >&2; exit 2")});
    let stage = stage(Script::new().text("Done."), &hooks, json!({}))?;
    let done = stage.run(["go"])?;
    assert_ne!(done.code, Some(0));
    check_has(&format!("{}{}", done.stdout, done.stderr), &["no such prompts"]);
    assert_eq!(stage.server.main_requests().len(), 0);
    Ok(())
}

#[test]
fn misbehaving_hooks_never_fail_a_turn() -> Result<()> {
    for command in [
        "yes",
        "echo '{broken'",
        "/nonexistent/hook",
        "kill -9 $$",
        "exit 7",
        "sleep 300 & exec sleep 300",
        "head -c 3000000 /dev/zero",
    ] {
        let group = json!([{"hooks": [{"type": "command", "command": command, "timeout": 2}]}]);
        let hooks = json!({"PreToolUse": group, "UserPromptSubmit": group, "Stop": group});
        let stage = stage(bash("touch RAN"), &hooks, json!({}))?;
        let begun = Instant::now();
        run(&stage)?;
        assert!(stage.project.path("RAN").exists(), "{command}");
        assert!(begun.elapsed() < Duration::from_secs(40), "{command}: {:?}", begun.elapsed());
    }
    Ok(())
}

#[test]
fn hooks_of_a_repository_need_trust_and_cannot_allow() -> Result<()> {
    let allow = r#"echo ran >> log; echo '{"hookSpecificOutput": {"permissionDecision": "allow"}}'"#;
    let settings = json!({"hooks": {"PreToolUse": hook("Bash", allow)}});
    for (file, trust, ran) in [
        ("codewright.json", "all", true),
        ("codewright.json", "none", false),
        (".claude/settings.json", "all", true),
        (".claude/settings.local.json", "all", true),
        (".claude/settings.json", "none", false),
    ] {
        let stage = stage(bash("touch RAN"), &json!({}), json!({"permission": {"bash": "ask"}}))?;
        // The model is the user's, so that it exists without trust.
        let own = stage.project.home().join(".config/opencode/opencode.json");
        fs::create_dir_all(own.parent().context("no parent")?)?;
        fs::write(own, Project::config(&stage.server.url()).to_string())?;
        stage.project.write(file, settings.to_string())?;
        stage.program(["run", "go"]).env("CODEWRIGHT_TRUST", trust).finish()?;
        assert_eq!(log(&stage).contains("ran"), ran, "{file} {trust}");
        assert!(!stage.project.path("RAN").exists(), "{file} {trust}: a repository answered a question");
    }
    Ok(())
}

#[test]
fn hooks_of_claude_code_run_if_the_user_says_so() -> Result<()> {
    for (switch, expected) in [(true, true), (false, false)] {
        let stage = stage(bash("true"), &json!({}), json!({"claude_hooks": switch}))?;
        let path = stage.project.home().join(".claude/settings.json");
        fs::create_dir_all(path.parent().context("no parent")?)?;
        fs::write(path, json!({"hooks": {"PreToolUse": hook("Bash", KEEP)}}).to_string())?;
        run(&stage)?;
        assert_eq!(!inputs(&stage, "PreToolUse").is_empty(), expected);
    }
    Ok(())
}

#[test]
fn a_permission_request_is_a_notification() -> Result<()> {
    let hooks = json!({"Notification": hook("permission_prompt", KEEP)});
    let stage = stage(bash("true"), &hooks, json!({"permission": {"bash": "ask"}}))?;
    stage.run(["go"])?;
    wait_until("the notification", || !inputs(&stage, "Notification").is_empty())?;
    let message = inputs(&stage, "Notification")[0]["message"].clone();
    assert_eq!(message, "Codewright needs your permission for bash");
    Ok(())
}

/// The examples of the guide, which begin with a comment that names their event and tool.
#[test]
fn the_examples_of_the_guide_work() -> Result<()> {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/hooks.md");
    let guide = fs::read_to_string(guide)?;
    let script = |name: &str| -> Result<String> {
        let (_, rest) = guide.split_once(&format!("`{name}`:\n\n```")).context("no example")?;
        let (_, rest) = rest.split_once('\n').context("no code")?;
        Ok(rest.split_once("\n```").context("no end")?.0.to_owned() + "\n")
    };
    for (name, program) in [("no-secrets.sh", "sh"), ("no_main.py", "python3")] {
        let stage = stage(bash("git push origin main .env"), &json!({}), json!({}))?;
        let path = stage.project.write(name, script(name)?)?;
        let command = format!("{program} '{}'", path.display());
        let config = json!({"hooks": {"PreToolUse": hook("Bash", &command)}, "sandbox": {"mode": "off"}});
        fs::write(stage.project.home().join(".config/codewright/codewright.json"), config.to_string())?;
        run(&stage)?;
        check_has(&stage.results(1)?.join(""), &["may not"]);
    }
    Ok(())
}
