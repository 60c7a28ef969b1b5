//! Compares the types with recordings of the OpenCode API.
//!
//! `recorded/` holds sessions and event streams of OpenCode 1.18.33 with paths, prompts and
//! descriptions replaced.

use std::path::PathBuf;

use codewright_proto::{MessageWithParts, Notice, Session};
use serde_json::Value;

fn recorded(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/recorded").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Compares numbers by value: OpenCode writes a cost of zero as `0`, we write `0.0`.
fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
        }
        _ => ours == theirs,
    }
}

#[track_caller]
fn check_session(name: &str) {
    let whole: Value =
        serde_json::from_str(&recorded(&format!("{name}.json"))).expect("the recording is JSON");
    let session: Session = serde_json::from_value(whole["session"].clone()).expect("the session is valid");
    let ours = serde_json::to_value(&session).expect("a session is JSON");
    assert!(same(&ours, &whole["session"]), "{ours:#}\nis not\n{:#}", whole["session"]);
    let messages: Vec<MessageWithParts> =
        serde_json::from_value(whole["messages"].clone()).expect("the messages are valid");
    assert!(!messages.is_empty());
    let ours = serde_json::to_value(&messages).expect("messages are JSON");
    assert!(same(&ours, &whole["messages"]), "{ours:#}\nis not\n{:#}", whole["messages"]);
}

#[test]
fn recorded_sessions_round_trip_without_loss() {
    for name in [
        "simple-text",
        "reasoning-text",
        "read-edit",
        "abort-tool",
        "error-401",
        "retry-429",
        "tool-errors",
        "permission-reject",
        "overflow-error-compaction",
        "shell",
    ] {
        check_session(name);
    }
}

#[test]
fn recorded_events_round_trip_without_loss() {
    for name in ["read-edit", "permission-once", "abort-tool", "error-400", "retry-429", "question"] {
        let mut read = 0;
        for line in recorded(&format!("{name}.jsonl")).lines() {
            let theirs: Value = serde_json::from_str(line).expect("the recording is JSON");
            let Some(notice) = Notice::parse(line) else {
                let kind = theirs["type"].as_str().unwrap_or_default();
                // Events of features that do not exist here.
                let later = ["reference.updated"];
                assert!(later.contains(&kind), "unknown event `{kind}` in {name}: {line}");
                continue;
            };
            let ours = serde_json::to_value(&notice).expect("a notice is JSON");
            assert!(same(&ours, &theirs), "{ours:#}\nis not\n{theirs:#}");
            read += 1;
        }
        assert!(read > 10, "{name} has {read} events");
    }
}

#[test]
fn unknown_and_invalid_notices_are_not_parsed() {
    for json in [
        "",
        "{}",
        "null",
        r#"{"id":"evt_1","type":"later.invented","properties":{}}"#,
        r#"{"id":"evt_1","type":"session.idle"}"#,
    ] {
        assert_eq!(Notice::parse(json), None, "{json}");
    }
}
