//! Sessions in PostgreSQL, through the program.

use std::io::{BufRead as _, BufReader};
use std::thread;

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{Postgres, Project, Script};
use serde_json::{Value, json};

use crate::support::{
    Stage, ask, check_code, check_has, database, files, get, holds_bytes, lines, new_session, of_type, post,
    program, prompt, serve, session_of, wait_until,
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
    ensure!(!all.contains(WORD) && !output.contains("PGPASSWORD") && !output.contains("PGSSLKEY"), "{all}");
    check_has(&done.stderr, &["the password in `--store` can be read by other programs"]);

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
    let usage = shown(&["stats"])?.stdout;
    check_has(
        &usage,
        &[
            "│Sessions                                              1 │",
            "│Messages                                              5 │",
        ],
    );
    for command in [&["db", "SELECT 1"][..], &["db", "path"]] {
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
        wait_until("a request", || !stage.server.main_requests().is_empty())?;
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

#[test]
fn an_installation_is_copied_to_postgresql_and_continues_there() -> Result<()> {
    let Some(server) = Postgres::start() else { return Ok(()) };
    let stage = Stage::git(Script::new().text("In the file.").text("In the database."))?;
    let id = session_of(&stage.json(["hi"])?)?;
    let (file, url) = (database(&stage.project), server.url("postgres", ""));
    let file = file.to_str().context("a plain path")?;
    let done = stage.program(["db", "copy", file, &url]).finish()?.success()?;
    check_has(
        &done.stdout,
        &["of 1 sessions with 2 messages are in both stores, 0 of them from an earlier copy"],
    );
    let done = stage.program(["run", "--store", &url, "-s", &id, "go on"]).finish()?.success()?;
    check_has(&done.stdout, &["In the database."]);
    // Back into a new file, and an error for a source that does not exist.
    let new = stage.project.path("new.db");
    let new = new.to_str().context("a plain path")?;
    let done = stage.program(["db", "copy", &url, new]).finish()?.success()?;
    check_has(&done.stdout, &["of 1 sessions with 4 messages"]);
    let done = stage.program(["db", "copy", "nowhere.db", &url]).finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["there is no file `nowhere.db`"]);
    let done = stage.program(["db", "copy", file, &url]).finish()?;
    check_code(&done, 1);
    check_has(&done.stderr, &["the target has events that the source does not have"]);
    stage.no_problems()
}

/// Sends a signal to a process.
fn signal(name: &str, process: u32) -> Result<()> {
    let status = std::process::Command::new("kill").args([name, &process.to_string()]).status()?;
    ensure!(status.success(), "kill {name} {process}: {status}");
    Ok(())
}

#[test]
fn a_prompt_at_another_server_joins_the_running_turn() -> Result<()> {
    let Some(database) = Postgres::start() else { return Ok(()) };
    let script =
        Script::new().tool("bash", json!({"command": "sleep 2; echo slept"})).text("One.").text("Two.");
    let stage = Stage::git(script)?;
    let url = database.url("postgres", "");
    let start = || serve(stage.program(["serve"]).env("CODEWRIGHT_STORE", &url));
    let ((_one, first), (_two, second)) = (start()?, start()?);
    let id = new_session(&first)?;
    let path = format!("/session/{id}/message");
    thread::scope(|scope| -> Result<()> {
        let posting = scope.spawn(|| post(&first, &path, &prompt("hi")));
        wait_until("a request", || !stage.server.main_requests().is_empty())?;
        let (status, reply) = post(&second, &path, &prompt("and this"))?;
        ensure!(status == 200, "{status}: {reply}");
        let (status, reply) = posting.join().expect("no panic")?;
        ensure!(status == 200, "{status}: {reply}");
        Ok(())
    })?;
    let messages = get(&first, &path)?;
    assert_eq!(get(&second, &path)?, messages);
    let text = messages.to_string();
    assert_eq!(text.matches("\"callID\"").count(), 1, "{text}");
    assert_eq!(stage.server.main_requests().len(), 2, "a turn ran twice");
    stage.no_problems()
}

#[test]
fn a_server_that_was_paused_stores_nothing_of_a_session_that_another_has_taken() -> Result<()> {
    let Some(database) = Postgres::start() else { return Ok(()) };
    let script = Script::new().tool("bash", json!({"command": "sleep 3; echo slept"})).text("Taken over.");
    let stage = Stage::git(script.text("Spare."))?;
    let url = database.url("postgres", "");
    let start = || serve(stage.program(["serve"]).env("CODEWRIGHT_STORE", &url));
    let ((one, first), (_two, second)) = (start()?, start()?);
    let id = new_session(&first)?;
    let path = format!("/session/{id}/message");
    let (status, _) = post(&first, &format!("/session/{id}/prompt_async"), &prompt("hi"))?;
    ensure!(status == 204, "{status}");
    wait_until("a running command", || {
        get(&second, &path).is_ok_and(|messages| messages.to_string().contains("\"status\":\"running\""))
    })?;
    signal("-STOP", one.id())?;
    // The second server waits until the first one counts as dead, and continues the session.
    let (status, reply) = post(&second, &path, &prompt("go on"))?;
    signal("-CONT", one.id())?;
    ensure!(status == 200, "{status}: {reply}");
    let taken = get(&second, &path)?;
    check_has(&taken.to_string(), &["Taken over."]);
    // The first one has read the database again and notices that the session is not its own.
    wait_until("the same messages", || get(&first, &path).is_ok_and(|messages| messages == taken))?;
    thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(get(&second, &path)?, taken, "the paused server stored something");
    ensure!(!taken.to_string().contains("slept\\n"), "{taken}");
    Ok(())
}
