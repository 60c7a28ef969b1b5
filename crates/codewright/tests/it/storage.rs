//! The stored data.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result};
use codewright_testkit::{Script, Turn};
use serde_json::{Value, json};

use crate::support::{
    Stage, check_code, check_has, data, database, get, keys, of_type, session_of, user_text,
};

#[test]
fn a_second_process_sees_the_session() -> Result<()> {
    let stage = Stage::plain(Script::new().text("Noted.").text("Remembered."))?;
    let first = session_of(&stage.json(["remember this"])?)?;
    assert_eq!(session_of(&stage.json(["-c", "what was it?"])?)?, first);
    assert_eq!(user_text(&stage.server.main_requests()[1]), "remember this\nwhat was it?");
    stage.no_problems()
}

#[test]
fn the_database_is_private() -> Result<()> {
    let stage = Stage::plain(Script::new().text("Hi."))?;
    stage.run(["hi"])?.success()?;
    let mode = |path: &std::path::Path| Ok::<_, anyhow::Error>(path.metadata()?.permissions().mode() & 0o777);
    assert_eq!(mode(&database(&stage.project))?, 0o600);
    assert_eq!(mode(&data(&stage.project))? & 0o077, 0);
    Ok(())
}

/// Checks the recorded keys, some of which are optional.
#[track_caller]
fn check_keys(value: &Value, recorded: &str, optional: &[&str]) {
    let found = keys(value);
    let known: Vec<_> = recorded.split(' ').collect();
    for key in found.split(' ') {
        assert!(known.contains(&key) || optional.contains(&key), "`{key}` is not recorded: {value}");
    }
    for key in known {
        assert!(value.get(key).is_some(), "`{key}` is missing: {value}");
    }
}

#[test]
fn messages_and_parts_have_the_recorded_keys() -> Result<()> {
    let script = Script::new()
        .turn(Turn::steps().reasoning("Hm.").text("I will look.").tool("read", json!({"filePath": "a.txt"})))
        .turn(Turn::tools([
            ("edit", json!({"filePath": "a.txt", "oldString": "one", "newString": "two"})),
            ("write", json!({"filePath": "b.txt", "content": "b"})),
            ("bash", json!({"command": "echo x"})),
            ("glob", json!({"pattern": "*.txt"})),
            ("grep", json!({"pattern": "two"})),
            ("unheard_of", json!({})),
            ("read", json!({"filePath": "absent"})),
        ]))
        .text("All done.");
    let stage = Stage::git(script)?;
    stage.project.write("a.txt", "one\n")?;
    let id = session_of(&stage.json(["go"])?)?;
    let (_server, url) = stage.serve()?;
    let session = get(&url, &format!("/session/{id}"))?;
    check_keys(
        &session,
        "agent cost directory id model path permission projectID slug summary time title tokens version",
        &[],
    );
    assert_eq!(session["title"], "Mock title");
    assert_eq!(session["tokens"]["input"], 300);
    let messages = get(&url, &format!("/session/{id}/message"))?;
    let messages = messages.as_array().context("no messages")?;
    assert_eq!(messages.len(), 4);
    check_keys(&messages[0]["info"], "agent id model role sessionID summary time", &[]);
    let assistant = "agent cost finish id mode modelID parentID path providerID role sessionID time tokens";
    messages[1..].iter().for_each(|message| check_keys(&message["info"], assistant, &[]));
    let parts: Vec<_> = messages.iter().flat_map(|message| message["parts"].as_array().unwrap()).collect();
    let kinds: Vec<_> = parts.iter().map(|part| part["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..6], ["text", "step-start", "reasoning", "text", "tool", "step-finish"]);
    let base = |more: &str| {
        let mut keys: Vec<_> =
            "id messageID sessionID type".split(' ').chain(more.split_whitespace()).collect();
        keys.sort_unstable();
        keys.join(" ")
    };
    for part in parts {
        match part["type"].as_str().unwrap() {
            "text" => check_keys(part, &base("text"), &["time"]),
            "reasoning" => check_keys(part, &base("text time"), &[]),
            "step-start" => check_keys(part, &base("snapshot"), &[]),
            "step-finish" => check_keys(part, &base("cost reason snapshot tokens"), &[]),
            // The tree after it is our own extension.
            "patch" => check_keys(part, &base("files hash"), &["after"]),
            "tool" => check_call(part, &base("callID state tool")),
            other => panic!("`{other}` was not expected: {part}"),
        }
    }
    Ok(())
}

#[track_caller]
fn check_call(part: &Value, recorded: &str) {
    check_keys(part, recorded, &[]);
    let state = &part["state"];
    if state["status"] == "error" {
        return check_keys(state, "error input status time", &[]);
    }
    check_keys(state, "input metadata output status time title", &[]);
    let metadata = match part["tool"].as_str().unwrap() {
        "bash" => "exit output truncated",
        "edit" => "diagnostics diff filediff truncated",
        "write" => "diagnostics exists filepath truncated",
        "read" => "display loaded preview truncated",
        "glob" => "count truncated",
        "grep" => "matches truncated",
        "invalid" => "truncated",
        other => panic!("`{other}` was not expected"),
    };
    check_keys(&state["metadata"], metadata, &[]);
}

#[test]
fn many_runs_share_one_data_directory() -> Result<()> {
    let stage = Stage::git(Script::new().default_turn(Turn::text("Done.")))?;
    let all: Vec<_> = thread::scope(|scope| {
        let run = |n: usize| {
            let stage = &stage;
            scope.spawn(move || stage.run(["--format", "json", &format!("prompt {n}")]))
        };
        let running: Vec<_> = (0..8).map(run).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut sessions = std::collections::BTreeSet::new();
    for done in all {
        let done = done?;
        check_code(&done, 0);
        let lines = crate::support::lines(&done)?;
        assert_eq!(of_type(&lines, "text")[0]["part"]["text"], "Done.");
        sessions.insert(session_of(&lines)?);
    }
    assert_eq!(sessions.len(), 8);
    let (_server, url) = stage.serve()?;
    let listed = get(&url, "/session")?;
    assert_eq!(listed.as_array().map(Vec::len), Some(8));
    stage.no_problems()
}

/// A preloaded library that makes every sync of the disk fail.
const FAILING_SYNC: &str = r"
#include <errno.h>
int fsync(int fd) { (void)fd; errno = EIO; return -1; }
int fdatasync(int fd) { (void)fd; errno = EIO; return -1; }
";

#[test]
fn a_failing_disk_is_reported_and_loses_nothing() -> Result<()> {
    let stage = Stage::plain(Script::new().text("First.").text("Second.").text("Third."))?;
    let source = stage.project.write("sync.c", FAILING_SYNC)?;
    let library = stage.project.path("sync.so");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status()?;
    anyhow::ensure!(built.success(), "the library cannot be built");
    let failing =
        |words: &[&str]| stage.program(words.iter().copied()).env("LD_PRELOAD", library.as_os_str()).finish();

    // A new session fails with an error.
    let refused = failing(&["run", "one"])?;
    check_code(&refused, 1);
    check_has(&refused.stderr, &["cannot be written", "check the disk"]);
    assert!(stage.server.requests().is_empty(), "no model gets a request when nothing can be kept");

    // A running session continues as far as possible, and stored data stays.
    let id = session_of(&stage.json(["one"])?)?;
    let second = failing(&["run", "-s", &id, "two"])?;
    let was_answered = second.code == Some(0);
    assert!(was_answered || second.stderr.contains("check the disk"), "{second:?}");
    stage.run(["-s", &id, "three"])?.success()?;
    let messages = stage.stored()?;
    let texts = messages.iter().map(|message| message["parts"].to_string()).collect::<String>();
    check_has(&texts, &["First.", "three"]);
    if was_answered {
        check_has(&texts, &["two", "Second."]);
    }
    stage.no_problems()
}

#[test]
fn an_invalid_database_is_reported_and_kept() -> Result<()> {
    let stage = Stage::plain(Script::new().text("Hello."))?;
    let path = database(&stage.project);
    let folder = path.parent().context("a folder")?;
    std::fs::create_dir_all(folder)?;
    let text = "this is no database, however long it may be".repeat(100);
    std::fs::write(&path, &text)?;
    let done = stage.run(["hi"])?.success()?;
    assert_eq!(done.stdout, "Hello.\n");
    check_has(&done.stderr, &["damaged", &path.display().to_string()]);
    let kept = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let kept: Vec<_> = kept.filter(|path| path.to_string_lossy().contains(".damaged-")).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(std::fs::read_to_string(&kept[0])?, text);
    Ok(())
}
