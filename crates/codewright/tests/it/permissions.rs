//! Approvals that are given with "always": their scope, lifetime and removal.

use std::path::Path;

use anyhow::{Context, Result};
use codewright_testkit::{Project, Script, Turn, is_default_store};
use serde_json::{Value, json};

use crate::support::{
    DEADLINE, Stage, check_code, check_has, database, get, post, program, prompt, serve, wait_until,
};

fn bash(command: &str) -> Turn {
    Turn::steps().tool("bash", json!({ "command": command })).into()
}

/// A stage in a repository, with rules of the user for every directory.
fn stage(script: Script, permission: Value) -> Result<Stage> {
    let stage = Stage::git(script)?;
    rules(&stage, permission)?;
    Ok(stage)
}

pub(crate) fn rules(stage: &Stage, permission: Value) -> Result<()> {
    let mut config = Project::config(&stage.server.url());
    config["permission"] = permission;
    let directory = stage.project.home().join(".config/opencode");
    std::fs::create_dir_all(&directory)?;
    Ok(std::fs::write(directory.join("opencode.json"), config.to_string())?)
}

/// A new session in a directory with a running prompt.
pub(crate) fn begin(url: &str, directory: &Path) -> Result<String> {
    let query = format!("?directory={}", directory.display());
    let (_, session) = post(url, &format!("/session{query}"), &json!({}))?;
    let id = session["id"].as_str().context("no session")?.to_owned();
    post(url, &format!("/session/{id}/prompt_async{query}"), &prompt("go"))?;
    Ok(id)
}

/// The pending request of a session, unless the session finishes first.
pub(crate) fn question(url: &str, session: &str) -> Result<Option<Value>> {
    let about = get(url, &format!("/session/{session}"))?;
    let directory = about["directory"].as_str().context("the session has no directory")?;
    let look = || -> Result<Option<Option<Value>>> {
        let asked = get(url, &format!("/permission?directory={directory}"))?;
        let asked =
            asked.as_array().into_iter().flatten().find(|asked| asked["sessionID"] == session).cloned();
        if asked.is_some() {
            return Ok(Some(asked));
        }
        let messages = get(url, &format!("/session/{session}/message"))?;
        let is_done =
            messages.as_array().into_iter().flatten().any(|message| message["info"]["finish"] == "stop");
        Ok(is_done.then_some(None))
    };
    wait_until("a question or an end", || look().is_ok_and(|found| found.is_some()))?;
    look()?.context("neither a question nor an end")
}

pub(crate) fn reply(url: &str, asked: &Value, reply: &str) -> Result<()> {
    let id = asked["id"].as_str().context("no id")?;
    let (status, _) = post(url, &format!("/permission/{id}/reply"), &json!({ "reply": reply }))?;
    assert_eq!(status, 200);
    Ok(())
}

/// Replies to the first request of a new session.
fn answer(url: &str, directory: &Path, with: &str) -> Result<Value> {
    let session = begin(url, directory)?;
    let Some(asked) = question(url, &session)? else {
        let messages = get(url, &format!("/session/{session}/message"))?;
        anyhow::bail!("there is no request: {messages:#}");
    };
    reply(url, &asked, with)?;
    assert!(question(url, &session)?.is_none());
    Ok(asked)
}

#[track_caller]
fn check_silent(url: &str, directory: &Path) {
    let session = begin(url, directory).unwrap();
    assert_eq!(question(url, &session).unwrap(), None);
}

fn saved(url: &str) -> Result<Vec<Value>> {
    Ok(get(url, "/api/permission/saved")?["data"].as_array().context("no list")?.clone())
}

#[test]
fn an_approval_applies_in_its_project_and_survives_a_restart() -> Result<()> {
    let script = Script::new().turn(bash("echo one")).text("done").turn(bash("echo two")).text("done");
    let script = script.turn(bash("echo three")).text("done").turn(bash("echo four")).text("done");
    let stage = stage(script, json!({"bash": "ask"}))?;
    let other = stage.project.home().join("other");
    std::fs::create_dir(&other)?;
    let here = stage.project.directory().canonicalize()?;
    let (server, url) = stage.serve()?;
    assert_eq!(answer(&url, &here, "always")?["always"], json!(["echo *"]));
    // A running server and one that starts later.
    check_silent(&url, &here);
    let elsewhere = begin(&url, &other)?;
    let asked = question(&url, &elsewhere)?.context("another directory has no request")?;
    reply(&url, &asked, "once")?;
    question(&url, &elsewhere)?;
    server.terminate()?;
    server.finish()?.success()?;
    let (_server, url) = stage.serve()?;
    check_silent(&url, &here);
    let all = saved(&url)?;
    assert_eq!(all.len(), 1, "{all:#?}");
    assert_eq!((&all[0]["action"], &all[0]["resource"]), (&json!("bash"), &json!("echo *")));
    let project = all[0]["projectID"].as_str().context("no project")?;
    assert_eq!(get(&url, &format!("/api/permission/saved?projectID={project}"))?["data"], json!(all));
    assert_eq!(get(&url, "/api/permission/saved?projectID=none")?["data"], json!([]));
    Ok(())
}

#[test]
fn a_copy_of_a_repository_elsewhere_asks_for_itself() -> Result<()> {
    let script = Script::new().turn(bash("echo one")).text("done").turn(bash("echo two")).text("done");
    let stage = stage(script, json!({"bash": "ask"}))?;
    let copy = stage.project.home().join("copy");
    stage.project.write("a", "x")?;
    stage.project.run_git(&["add", "a"])?;
    stage.project.run_git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"])?;
    stage.project.run_git(&["clone", "-q", ".", &copy.display().to_string()])?;
    let (_server, url) = stage.serve()?;
    answer(&url, stage.project.directory(), "always")?;
    let session = begin(&url, &copy)?;
    let asked = question(&url, &session)?.context("the copy has no request")?;
    reply(&url, &asked, "reject")
}

#[test]
fn approvals_are_listed_and_revoked_while_a_server_runs() -> Result<()> {
    let turn = || bash("echo one");
    let script = Script::new().turn(turn()).text("done").turn(turn()).text("done").turn(turn()).text("done");
    let stage = stage(script, json!({"bash": "ask"}))?;
    let here = stage.project.directory().to_owned();
    let run = |args: &[&str]| program(&stage.project, args.iter().copied()).finish();
    let none = run(&["permissions", "list"])?.success()?;
    assert_eq!(none.stdout, "");
    check_has(&none.stderr, &["No permissions are saved in this project"]);
    let (_server, url) = stage.serve()?;
    answer(&url, &here, "always")?;
    let list = run(&["permissions", "list"])?.success()?.stdout;
    check_has(&list, &["ID", "Permission", "bash", "echo *", &here.canonicalize()?.display().to_string()]);
    let json: Value =
        serde_json::from_str(&run(&["permissions", "list", "--format", "json"])?.success()?.stdout)?;
    let id = json[0]["id"].as_str().context("no id")?;
    // Another directory has none, and lists all only with the flag.
    let other = stage.project.home().join("other");
    std::fs::create_dir(&other)?;
    let there = |args: &[&str]| program(&stage.project, args.iter().copied()).directory(&other).finish();
    assert_eq!(there(&["permissions", "list"])?.success()?.stdout, "");
    check_has(&there(&["permissions", "list", "--all"])?.success()?.stdout, &["echo *"]);
    check_silent(&url, &here);
    let unknown = run(&["permissions", "revoke", "per_unknown"])?;
    check_code(&unknown, 1);
    check_has(&unknown.stderr, &["there is no saved permission `per_unknown`", "permissions list --all"]);
    check_code(&run(&["permissions", "revoke"])?, 1);
    check_has(&run(&["permissions", "revoke", id])?.success()?.stderr, &["revoked"]);
    answer(&url, &here, "always")?;
    check_has(&run(&["permissions", "revoke", "--all"])?.success()?.stderr, &["1 permission revoked"]);
    assert_eq!(saved(&url)?, Vec::<Value>::new());
    Ok(())
}

#[test]
fn a_stricter_rule_overrides_an_approval() -> Result<()> {
    let write = |path: &str| -> Turn {
        Turn::steps().tool("write", json!({"filePath": path, "content": "x"})).into()
    };
    let script = Script::new().turn(write("a.txt")).text("done").turn(write("b.txt")).text("done");
    let script = script.turn(write("infra/c.txt")).text("done").turn(write("d.txt")).text("done");
    let stage = stage(script, json!({"edit": "ask"}))?;
    let here = stage.project.directory().to_owned();
    {
        let (server, url) = stage.serve()?;
        assert_eq!(answer(&url, &here, "always")?["always"], json!(["*"]));
        check_silent(&url, &here);
        server.terminate()?;
        server.finish()?.success()?;
    }
    rules(&stage, json!({"edit": {"*": "ask", "infra/*": "ask", "d.txt": "deny"}}))?;
    let (_server, url) = stage.serve()?;
    answer(&url, &here, "once")?;
    // A denial needs no request.
    check_silent(&url, &here);
    assert!(!stage.project.path("d.txt").exists());
    Ok(())
}

#[test]
fn two_servers_on_one_database_share_approvals() -> Result<()> {
    let turn = || bash("echo one");
    let stage =
        stage(Script::new().turn(turn()).text("done").turn(turn()).text("done"), json!({"bash": "ask"}))?;
    let (_first, one) = stage.serve()?;
    let (_second, two) = serve(program(&stage.project, ["serve", "--port", "0"]).deadline(DEADLINE))?;
    answer(&one, stage.project.directory(), "always")?;
    check_silent(&two, stage.project.directory());
    Ok(())
}

#[test]
fn a_row_of_another_program_has_no_effect() -> Result<()> {
    if !is_default_store() {
        return Ok(());
    }
    let turn = || bash("echo one");
    let stage =
        stage(Script::new().turn(turn()).text("done").turn(turn()).text("done"), json!({"bash": "ask"}))?;
    let here = stage.project.directory().to_owned();
    let (_server, url) = stage.serve()?;
    answer(&url, &here, "once")?;
    // The format of another program, without the scope.
    let sql = "INSERT INTO permission SELECT 'x', id, 'bash', '*', 1, 1 FROM project";
    assert!(rusqlite::Connection::open(database(&stage.project))?.execute(sql, [])? > 0);
    answer(&url, &here, "once")?;
    Ok(())
}
