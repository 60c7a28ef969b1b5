//! Sessions in PostgreSQL, through the program.

use std::io::{BufRead as _, BufReader};
use std::thread;

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{Postgres, Project, Script};
use serde_json::{Value, json};

use crate::support::{
    Stage, ask, check_code, check_has, database, files, get, holds_bytes, lines, new_session, of_type, post,
    program, prompt, serve, session_of,
};

/// A password that nothing may contain. The server accepts any.
const WORD: &str = "hush-0123456789-hush";

/// The address of a server's database with a password.
fn address(server: &Postgres) -> String {
    server.url("postgres", "").replace("codewright@", &format!("codewright:{WORD}@"))
}

#[test]
fn a_turn_is_stored_in_postgresql_and_its_password_nowhere() -> Result<()> {
    let Some(server) = Postgres::start() else { return Ok(()) };
    let script = Script::new().tool("bash", json!({"command": "env"})).text("Done.").text("Again.");
    let stage = Stage::git(script)?;
    let url = address(&server);
    let args = ["run", "--store", &url, "--format", "json", "--print-logs", "--log-level", "DEBUG", "hi"];
    let done = stage.program(args).finish()?.success()?;
    let events = lines(&done)?;
    let id = session_of(&events)?;
    let output = of_type(&events, "tool_use")[0]["part"]["state"]["output"].as_str().context("no output")?;
    check_has(output, &["CODEWRIGHT=1"]);
    let all = format!("{}{}", done.stdout, done.stderr);
    ensure!(!all.contains(WORD) && !output.contains("PGPASSWORD"), "{all}");

    // By the variable and by the key of the user's configuration.
    let run = stage.program(["run", "-s", &id, "again"]).env("CODEWRIGHT_STORE", &url);
    let done = run.env("PGPASSWORD", WORD).finish()?.success()?;
    check_has(&done.stdout, &["Again."]);
    ensure!(!database(&stage.project).exists(), "there is a file of sessions");
    let mut config = Project::config(&stage.server.url());
    config["store"] = "{env:MY_STORE}".into();
    stage.project.write_config(&config)?;
    let shown = |args: &[&str]| {
        program(&stage.project, args.iter().copied()).env("MY_STORE", &url).finish()?.success()
    };
    let exported: Value = serde_json::from_str(&shown(&["export", &id])?.stdout)?;
    assert_eq!(exported["messages"].as_array().map(Vec::len), Some(5), "{exported}");
    check_has(&shown(&["session", "list"])?.stdout, &[&id]);
    let merged = shown(&["debug", "config"])?.stdout;
    ensure!(merged.contains("(hidden)") && !merged.contains(WORD), "{merged}");
    for command in [&["stats"][..], &["db", "SELECT 1"], &["db", "path"]] {
        let done = program(&stage.project, command.iter().copied()).env("MY_STORE", &url).finish()?;
        check_code(&done, 1);
        check_has(&done.stderr, &["the sessions are in PostgreSQL"]);
    }
    for path in files(stage.project.home())? {
        ensure!(!holds_bytes(&std::fs::read(&path)?, WORD), "{}", path.display());
    }
    stage.no_problems()
}

#[test]
fn two_servers_on_one_database_share_sessions_and_events() -> Result<()> {
    let Some(database) = Postgres::start() else { return Ok(()) };
    let stage = Stage::git(Script::new().text("From the first.").text("From the second."))?;
    let url = database.url("postgres", "");
    // Another home: nothing but the database is shared.
    let other = Project::git()?;
    other.configure(&stage.server.url())?;
    let start = |project| serve(program(project, ["serve"]).env("CODEWRIGHT_STORE", &url));
    let ((_one, first), (_two, second)) = (start(&stage.project)?, start(&other)?);
    let id = new_session(&first)?;
    let events = BufReader::new(ask(&second, "/global/event")?);
    let seen = thread::scope(|scope| -> Result<bool> {
        let posting = scope.spawn(|| post(&first, &format!("/session/{id}/message"), &prompt("hi")));
        let mut seen = false;
        for line in events.lines() {
            let line = line?;
            if line.starts_with("data: ") && line.contains("From the first.") && line.contains(&id) {
                seen = true;
                break;
            }
        }
        let (status, reply) = posting.join().expect("no panic")?;
        ensure!(status == 200, "{status}: {reply}");
        Ok(seen)
    })?;
    ensure!(seen, "the second server sent no event of the first");
    let path = format!("/session/{id}/message");
    assert_eq!(get(&second, &path)?, get(&first, &path)?);
    // The same session continues on the first server after a prompt of a run in a third process.
    let args = ["run", "-s", &id, "--store", &url, "go on"];
    let done = program(&stage.project, args).finish()?.success()?;
    check_has(&done.stdout, &["From the second."]);
    assert_eq!(get(&second, &path)?.as_array().map(Vec::len), Some(4));
    stage.no_problems()
}

#[test]
fn a_repository_cannot_name_a_store() -> Result<()> {
    let stage = Stage::git(Script::new().text("Done."))?;
    stage.project.write("opencode.json", r#"{"store": "postgres://me@127.0.0.1:1/theirs"}"#)?;
    let done = stage.program(["run", "hi"]).env("CODEWRIGHT_TRUST", "all").finish()?.success()?;
    check_has(&done.stdout, &["Done."]);
    ensure!(database(&stage.project).exists(), "the file of sessions is missing");
    Ok(())
}

#[test]
fn a_store_that_cannot_be_opened_is_explained() -> Result<()> {
    let stage = Stage::git(Script::new())?;
    let cases = [
        ("mysql://me:hush@h/d", "does not start with `postgres://`"),
        ("postgres://me:hush@127.0.0.1:1/d", "cannot be reached"),
        ("postgres://me:hush@127.0.0.1:1/d?sslmode=perhaps", "`sslmode` must be one of"),
    ];
    for (url, expected) in cases {
        let done = stage.program(["run", "--store", url, "hi"]).finish()?;
        check_code(&done, 1);
        check_has(&done.stderr, &[expected]);
        ensure!(!done.stderr.contains("hush") && done.stdout.is_empty(), "{done:?}");
    }
    ensure!(!database(&stage.project).exists(), "another store was used");
    Ok(())
}

#[test]
fn a_turn_survives_a_restart_of_the_database() -> Result<()> {
    let Some(mut database) = Postgres::with("UTF8", "on") else { return Ok(()) };
    let script = Script::new().tool("bash", json!({"command": "sleep 3; echo slept"})).text("Done.");
    let stage = Stage::git(script)?;
    let url = database.url("postgres", "");
    let (server, address) = serve(stage.program(["serve"]).env("CODEWRIGHT_STORE", &url))?;
    let id = new_session(&address)?;
    let (status, reply) = thread::scope(|scope| {
        let posting = scope.spawn(|| post(&address, &format!("/session/{id}/message"), &prompt("hi")));
        // The model has asked for the command.
        crate::support::wait_until("a request", || !stage.server.main_requests().is_empty())?;
        database.order("crash");
        database.order("start");
        posting.join().expect("no panic")
    })?;
    ensure!(status == 200, "{status}: {reply}");
    let messages = get(&address, &format!("/session/{id}/message"))?;
    let text = messages.to_string();
    check_has(&text, &["slept", "Done."]);
    server.terminate()?;
    server.finish()?.success()?;
    stage.no_problems()
}
