//! `run --attach`: the same turn over a socket.

use std::fs;

use anyhow::Result;
use codewright_testkit::{Run, Script, Turn};
use serde_json::json;

use crate::support::{DEADLINE, Stage, check_code, check_has, lines, of_type, program, serve, user_text};

/// A client outside the project, which must not read the configuration itself.
fn client<'a>(stage: &Stage, args: impl IntoIterator<Item = &'a str>) -> Run {
    program(&stage.project, args).directory(stage.project.home())
}

#[test]
fn an_attached_run_streams_and_works_in_the_servers_directory() -> Result<()> {
    let script = Script::new()
        .tool("bash", json!({"command": "pwd"}))
        .turn(Turn::text("First line.\n").delay(std::time::Duration::from_millis(50)).text("Second."))
        .turn(Turn::text("Shown.\n").hang());
    let stage = Stage::plain(script)?;
    let (server, url) = stage.serve()?;
    let done = client(&stage, ["run", "--attach", &url, "hi"]).finish()?.success()?;
    check_has(&done.stdout, &["First line.\n", "Second.\n"]);
    check_has(&stage.results(1)?[0], &[&stage.project.directory().display().to_string()]);
    let mut hanging = client(&stage, ["run", "--attach", &url, "more"]).start()?;
    assert_eq!(hanging.line()?.as_deref(), Some("Shown."));
    hanging.interrupt()?;
    check_code(&hanging.finish()?, 130);
    // The turn ended on the server too.
    assert_eq!(crate::support::get(&url, "/session/status")?, json!({}));
    server.terminate()?;
    check_code(&server.finish()?, 0);
    stage.no_problems()
}

#[test]
fn an_attached_run_can_select_the_directory_and_continue() -> Result<()> {
    let script = Script::new().tool("bash", json!({"command": "pwd"})).text("One.").text("Two.");
    let stage = Stage::plain(script)?;
    let other = stage.project.home().join("other");
    fs::create_dir(&other)?;
    let other = other.display().to_string();
    let (_server, url) = stage.serve()?;
    let args = ["run", "--attach", &url, "--dir", &other];
    client(&stage, args.into_iter().chain(["hi"])).finish()?.success()?;
    check_has(&stage.results(1)?[0], &[&other]);
    client(&stage, args.into_iter().chain(["-c", "again"])).finish()?.success()?;
    let requests = stage.server.main_requests();
    check_has(&user_text(&requests[2]), &["hi", "again"]);
    stage.no_problems()
}

#[test]
fn an_attached_run_attaches_its_own_files() -> Result<()> {
    let stage = Stage::plain(Script::new().text("Read."))?;
    let (_server, url) = stage.serve()?;
    fs::write(stage.project.home().join("note.txt"), "the note's text\n")?;
    client(&stage, ["run", "--attach", &url, "-f", "note.txt", "--", "hi"]).finish()?.success()?;
    check_has(&user_text(&stage.server.main_requests()[0]), &["the note's text"]);
    stage.no_problems()
}

#[test]
fn a_server_with_a_password_requires_it() -> Result<()> {
    let stage = Stage::plain(Script::new().default_turn(Turn::text("In.")))?;
    let (_server, url) =
        serve(program(&stage.project, ["serve"]).env("OPENCODE_SERVER_PASSWORD", "pass word"))?;
    let right =
        client(&stage, ["run", "--attach", &url, "--password", "pass word", "hi"]).finish()?.success()?;
    assert_eq!(right.stdout, "In.\n");
    let run = client(&stage, ["run", "--attach", &url, "hi"]).env("OPENCODE_SERVER_PASSWORD", "pass word");
    run.finish()?.success()?;
    for args in [&["-p", "wrong"][..], &["-p", "pass word", "-u", "other"], &[]] {
        let args = ["run", "--attach", &url, "hi"].into_iter().chain(args.iter().copied());
        let done = client(&stage, args).finish()?;
        check_code(&done, 1);
        check_has(&done.stderr, &["Error: ", "password"]);
        assert!(!done.stderr.contains("pass word"), "{}", done.stderr);
    }
    Ok(())
}

#[test]
fn an_attached_run_rejects_permission_requests() -> Result<()> {
    let script = Script::new().tool("read", json!({"filePath": "/etc/hostname"}));
    let stage = Stage::plain(script)?;
    let (_server, url) = stage.serve()?;
    let args = ["run", "--attach", &url, "--format", "json", "hi"];
    let done = client(&stage, args).finish()?.success()?;
    check_has(&done.stderr, &["permission requested: external_directory (/etc/*); auto-rejecting"]);
    let lines = lines(&done)?;
    assert_eq!(of_type(&lines, "tool_use")[0]["part"]["state"]["status"], "error");
    Ok(())
}

#[test]
fn a_killed_server_is_reported() -> Result<()> {
    let stage = Stage::plain(Script::new().turn(Turn::text("Shown.\n").hang()))?;
    let (server, url) = stage.serve()?;
    let mut run = client(&stage, ["run", "--attach", &url, "hi"]).start()?;
    assert_eq!(run.line()?.as_deref(), Some("Shown."));
    // Dropping kills it.
    drop(server);
    let done = run.finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["Error: ", "server"]);
    Ok(())
}

#[test]
fn a_missing_server_is_reported() -> Result<()> {
    let stage = Stage::plain(Script::new())?;
    let url = "http://127.0.0.1:1";
    let done = client(&stage, ["run", "--attach", url, "hi"]).finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["Error: cannot reach the server at", url, "check that the server is running"]);
    // A listener with another protocol.
    let other = stage.server.url();
    let done = client(&stage, ["run", "--attach", &other, "hi"]).deadline(DEADLINE).finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["Error: "]);
    let done = client(&stage, ["run", "--attach", "nonsense", "hi"]).finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["Error: ", "nonsense", "http://127.0.0.1:4096"]);
    Ok(())
}
