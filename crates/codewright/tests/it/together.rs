//! Many processes with one data directory.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::{fs, thread};

use anyhow::{Context, Result};
use codewright_testkit::{Project, Script, is_default_store};
use serde_json::{Value, json};

use crate::support::{
    DEADLINE, Stage, ask, check_code, check_has, database, get, program, serve, session_of,
};

/// Starts several runs at once, each with a new session.
fn run_many(count: usize) -> Result<()> {
    let script = (0..count).fold(Script::new(), |script, _| script.text("Done."));
    let stage = Stage::plain(script)?;
    let failed: Vec<_> = thread::scope(|scope| {
        let runs: Vec<_> = (0..count)
            .map(|at| {
                let stage = &stage;
                scope.spawn(move || stage.run([format!("prompt {at}").as_str()]))
            })
            .collect();
        let done = runs.into_iter().map(|run| run.join().expect("no panic"));
        done.filter_map(|done| match done {
            Ok(done) if done.code == Some(0) && done.stdout.contains("Done.") => None,
            other => Some(format!("{other:?}")),
        })
        .collect()
    });
    assert!(failed.is_empty(), "{failed:#?}");
    let (_server, url) = stage.serve()?;
    let sessions = get(&url, &format!("/session?limit={}", count * 2))?;
    assert_eq!(sessions.as_array().context("no list")?.len(), count);
    for session in sessions.as_array().into_iter().flatten() {
        let id = session["id"].as_str().context("no id")?;
        let messages = get(&url, &format!("/session/{id}/message"))?;
        assert_eq!(messages.as_array().context("no messages")?.len(), 2, "{messages}");
    }
    Ok(())
}

#[test]
fn sixteen_processes_start_in_an_empty_directory_at_once() -> Result<()> {
    run_many(16)
}

#[test]
#[ignore = "long: 64 processes"]
fn sixty_four_processes_start_in_an_empty_directory_at_once() -> Result<()> {
    run_many(64)
}

#[test]
fn a_server_publishes_the_events_of_a_run_in_another_process() -> Result<()> {
    let stage = Stage::plain(Script::new().text("Hello."))?;
    let (_server, url) = stage.serve()?;
    let events = BufReader::new(ask(&url, "/event")?);
    let mut run = None;
    for line in events.lines() {
        let line = line?;
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let event: Value = serde_json::from_str(data)?;
        if event["type"] == "server.connected" {
            // Not attached: another process with its own engine.
            run = Some(program(&stage.project, ["run", "hi"]).start()?);
        }
        if event["type"] == "message.part.updated" && event["properties"]["part"]["text"] == "Hello." {
            break;
        }
    }
    run.context("not connected")?.finish()?.success()?;
    Ok(())
}

#[test]
fn a_damaged_database_is_repaired_with_one_warning() -> Result<()> {
    if !is_default_store() {
        return Ok(());
    }
    let stage = Stage::plain(Script::new().text("Noted.").text("Remembered.").text("Still here."))?;
    stage.run(["remember this"])?.success()?;
    let path = database(&stage.project);
    let mut bytes = fs::read(&path)?;
    bytes[..100].fill(0x5a);
    fs::write(&path, bytes)?;
    let log = path.with_extension("db-wal");
    if log.exists() {
        // The log would replace the damaged page, so it is deleted.
        fs::OpenOptions::new().write(true).open(&log)?.set_len(0)?;
    }
    let done = stage.run(["hello again"])?;
    check_code(&done, 0);
    check_has(&done.stderr, &["the store was damaged and has been repaired", "was kept as `", ".damaged-"]);
    let done = stage.run(["and again"])?.success()?;
    assert!(!done.stderr.contains("damaged"), "{}", done.stderr);
    Ok(())
}

#[test]
fn a_session_is_synchronized_to_another_data_directory_in_pages() -> Result<()> {
    let stage = Stage::plain(Script::new().text("One.").text("Two.").text("Three."))?;
    let id = session_of(&stage.json(["first"])?)?;
    for prompt in ["second", "third"] {
        stage.run(["-s", &id, prompt])?.success()?;
    }
    let (_server, url) = stage.serve()?;
    let all = get(&url, &format!("/session/{id}/message"))?;
    let all = all.as_array().context("no messages")?;
    assert_eq!(all.len(), 6);

    let mut joined: Vec<Value> = Vec::new();
    let mut path = Some(format!("/session/{id}/message?limit=4"));
    while let Some(at) = path.take() {
        let (head, body) = headed(&url, &at)?;
        let page: Vec<Value> = serde_json::from_str(&body)?;
        joined.splice(0..0, page);
        if let Some(cursor) = head.lines().find_map(|line| line.strip_prefix("x-next-cursor: ")) {
            let next =
                format!("link: <{url}/session/{id}/message?limit=4&before={}>; rel=\"next\"", cursor.trim());
            check_has(&head, &[&next, "access-control-expose-headers: "]);
            path = Some(format!("/session/{id}/message?limit=4&before={}", cursor.trim()));
        }
    }
    assert_eq!(&joined, all);
    // The same as OpenCode's responses.
    for (query, expected) in [
        ("before=x", " 400 "),
        ("before=x&limit=2", " 400 "),
        // A cursor with an invalid id: {"id":"nope","time":5}
        ("before=eyJpZCI6Im5vcGUiLCJ0aW1lIjo1fQ&limit=2", " 400 "),
        ("limit=-1", " 400 "),
        ("limit=abc", " 400 "),
        ("limit=1.5", " 400 "),
        ("limit=99999999999999999999", " 400 "),
        ("limit=2&limit=3", " 400 "),
        ("limit=", " 200 "),
        ("limit=0", " 200 "),
        ("limit=0&before=x", " 200 "),
        ("limit=1e1", " 200 "),
        ("limit=2&before=", " 200 "),
    ] {
        check_has(&headed(&url, &format!("/session/{id}/message?{query}"))?.0, &[expected]);
    }
    let (head, _) = headed(&url, &format!("/session/{id}/message?limit=2&directory=%2Ftmp"))?;
    check_has(&head, &["/message?limit=2&directory=%2Ftmp&before="]);

    let history = post(&url, "/sync/history", &json!({}))?;
    let events: Vec<Value> = history.as_array().context("no events")?.iter().map(as_sent).collect();
    assert!(events.len() > 6);
    let other = Project::plain()?;
    let (_other, other_url) = serve(program(&other, ["serve"]))?;
    let directory = other.directory().to_str().context("a plain path")?;
    let replay = |events: &[Value]| {
        post(&other_url, "/sync/replay", &json!({"directory": directory, "events": events}))
    };
    assert_eq!(replay(&events[1..])?["name"], "BadRequest", "a gap is refused");
    for _ in 0..2 {
        assert_eq!(replay(&events)?, json!({"sessionID": id}));
    }
    let moved = get(&other_url, &format!("/session/{id}/message"))?;
    assert_eq!(moved.as_array().context("no messages")?, all);
    let known = json!({&id: events.len() - 2});
    assert_eq!(post(&url, "/sync/history", &known)?.as_array().map(Vec::len), Some(1));
    Ok(())
}

fn as_sent(event: &Value) -> Value {
    json!({"id": event["id"], "aggregateID": event["aggregate_id"], "seq": event["seq"],
        "type": event["type"], "data": event["data"]})
}

/// The response of a route to JSON, with any status.
fn post(url: &str, path: &str, body: &Value) -> Result<Value> {
    let address = url.strip_prefix("http://").context("no address")?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    let body = body.to_string();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").context("no body")?;
    Ok(serde_json::from_str(body)?)
}

/// The head of a response with lower-case names, and its body.
fn headed(url: &str, path: &str) -> Result<(String, String)> {
    let mut answer = String::new();
    ask(url, path)?.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no body")?;
    let head: Vec<_> = head
        .lines()
        .map(|line| match line.split_once(": ") {
            Some((name, value)) => format!("{}: {value}", name.to_ascii_lowercase()),
            None => line.to_owned(),
        })
        .collect();
    Ok((head.join("\n"), body.to_owned()))
}
