//! Commands on machines that cannot enforce the sandbox: each needs a reply, and the reason is stated.

use anyhow::{Context, Result};
use codewright_testkit::{Run, Script, Turn};
use serde_json::{Value, json};

use crate::permissions::{begin, question, reply, rules};
use crate::support::{Stage, check_has, serve};

/// The variables of a machine with at most one mechanism, and without another sandbox.
fn limited(run: Run, mechanism: &str) -> Run {
    run.without_env("CODEWRIGHT_SANDBOX_OUTER").env("CODEWRIGHT_SANDBOX_MECHANISM", mechanism)
}

fn bash(command: &str) -> Turn {
    Turn::steps().tool("bash", json!({ "command": command })).into()
}

fn script(commands: &[&str]) -> Script {
    commands.iter().fold(Script::new(), |script, command| script.turn(bash(command)).text("Done."))
}

#[test]
fn without_a_user_a_command_is_rejected_with_the_reason() -> Result<()> {
    for mechanism in ["none", "landlock"] {
        let stage = Stage::git(script(&["touch made"]))?;
        let done = limited(stage.program(["run", "go"]), mechanism).finish()?.success()?;
        let results = stage.results(1)?;
        check_has(&results[0], &["No user is present", "cannot enforce the sandbox", "sandbox.outer"]);
        check_has(&done.stderr, &["auto-rejecting", "cannot enforce the sandbox"]);
        assert!(!stage.project.path("made").exists(), "{mechanism}");
        limited(stage.program(["run", "--auto", "go"]), mechanism).finish()?.success()?;
    }
    Ok(())
}

#[test]
fn the_user_or_an_outer_sandbox_permits_commands() -> Result<()> {
    for mechanism in ["none", "landlock"] {
        let stage = Stage::git(script(&["touch made"]))?;
        limited(stage.program(["run", "--auto", "go"]), mechanism).finish()?.success()?;
        assert!(stage.project.path("made").exists(), "{mechanism}");
        let stage = Stage::git(script(&["touch made"]))?;
        let run = limited(stage.program(["run", "go"]), mechanism).env("CODEWRIGHT_SANDBOX_OUTER", "1");
        run.finish()?.success()?;
        assert!(stage.project.path("made").exists(), "{mechanism}");
    }
    Ok(())
}

#[test]
fn always_covers_exactly_the_same_command() -> Result<()> {
    let commands = ["touch one", "touch one", "touch two"];
    let stage = Stage::git(script(&commands))?;
    let here = stage.project.directory().to_owned();
    let (_server, url) = serve(limited(stage.program(["serve"]), "none"))?;
    let session = begin(&url, &here)?;
    let asked = question(&url, &session)?.context("there is no request")?;
    let reason = asked["metadata"]["sandbox"].as_str().context("there is no reason")?;
    check_has(reason, &["cannot enforce the sandbox", "bubblewrap"]);
    assert_eq!(asked["always"], json!(["touch one"]));
    reply(&url, &asked, "always")?;
    assert!(question(&url, &session)?.is_none());
    let session = begin(&url, &here)?;
    assert!(question(&url, &session)?.is_none(), "the same command needs no second reply");
    let session = begin(&url, &here)?;
    let asked = question(&url, &session)?.context("another command needs no reply")?;
    reply(&url, &asked, "reject")?;
    assert!(stage.project.path("one").exists() && !stage.project.path("two").exists());
    Ok(())
}

#[test]
fn only_a_rule_of_the_user_that_names_the_command_replaces_the_reply() -> Result<()> {
    let allow = |rule: Value| json!({ "bash": rule });
    for (permission, of_repository, runs) in [
        (allow(json!("allow")), json!({}), false),
        (allow(json!({"touch *": "allow"})), json!({}), true),
        (allow(json!({"touch *": "deny"})), json!({}), false),
        (json!({}), allow(json!({"touch *": "allow"})), false),
    ] {
        let stage = Stage::git(script(&["touch made"]))?;
        rules(&stage, permission.clone())?;
        if of_repository != json!({}) {
            let config = json!({ "permission": of_repository }).to_string();
            stage.project.write(".opencode/opencode.json", config)?;
        }
        limited(stage.program(["run", "go"]), "none").finish()?.success()?;
        assert_eq!(stage.project.path("made").exists(), runs, "{permission} {of_repository}");
    }
    Ok(())
}

#[test]
fn the_plan_agent_needs_no_reply_if_writing_is_prevented() -> Result<()> {
    let stage = Stage::git(script(&["echo inside > /dev/null; touch made; echo end"]))?;
    let done = limited(stage.program(["sandbox", "--json"]), "landlock").finish()?.success()?;
    let report: Value = serde_json::from_str(&done.stdout)?;
    if report["mechanism"] != "landlock" {
        return Ok(());
    }
    let run = limited(stage.program(["run", "--sandbox", "read-only", "go"]), "landlock");
    run.finish()?.success()?;
    let results = stage.results(1)?;
    assert!(!stage.project.path("made").exists());
    // Landlock before version 6 does not restrict signals.
    assert!(results[0].contains("end") || results[0].contains("cannot enforce"), "{}", results[0]);
    Ok(())
}
