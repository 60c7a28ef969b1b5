//! The output of `run --format json`: one JSON object per line, in the recorded format.

use anyhow::Result;
use codewright_testkit::{Script, Turn, Usage};
use serde_json::{Value, json};

use crate::support::{Stage, check_code, keys, lines, of_type, session_of};

/// Checks the keys of every line, and that the parts belong to the line's session.
#[track_caller]
fn check_lines(lines: &[Value]) {
    let session = session_of(lines).unwrap();
    for line in lines {
        let payload = if line["type"] == "error" { "error" } else { "part" };
        let mut expected = [payload, "sessionID", "timestamp", "type"];
        expected.sort_unstable();
        assert_eq!(keys(line), expected.join(" "), "{line}");
        assert_eq!(line["sessionID"], *session, "{line}");
        assert!(line["timestamp"].as_u64().is_some_and(|time| time > 1_700_000_000_000), "{line}");
        if payload == "part" {
            assert_eq!(line["part"]["sessionID"], *session, "{line}");
            assert!(line["part"]["id"].as_str().unwrap().starts_with("prt_"), "{line}");
            assert!(line["part"]["messageID"].as_str().unwrap().starts_with("msg_"), "{line}");
        }
    }
}

/// Checks the recorded keys; a snapshot is included if the directory has any.
#[track_caller]
fn check_keys(value: &Value, expected: &str) {
    assert_eq!(keys(value).replace("snapshot ", ""), expected, "{value}");
}

fn types(lines: &[Value]) -> Vec<&str> {
    lines.iter().filter_map(|line| line["type"].as_str()).collect()
}

#[test]
fn a_fork_gives_the_lines_of_its_own_turn() -> Result<()> {
    let stage = Stage::git(Script::new().text("first answer").text("second answer"))?;
    let first = session_of(&stage.json(["one"])?)?;
    let lines = stage.json(["-s", &first, "--fork", "two"])?;
    assert_ne!(session_of(&lines)?, first);
    assert_eq!(types(&lines), ["step_start", "text", "step_finish"]);
    assert_eq!(lines[1]["part"]["text"], "second answer");
    stage.no_problems()
}

#[test]
fn a_turn_gives_the_recorded_lines() -> Result<()> {
    let script = Script::new().turn(Turn::text("Working.").tool("bash", json!({"command": "echo hi"}))).turn(
        Turn::text("All done.").usage(Usage { input: 50, output: 9, cache_read: 30, ..Usage::default() }),
    );
    let stage = Stage::git(script)?;
    let done = stage.run(["--format", "json", "do it"])?.success()?;
    assert_eq!(done.stderr, "");
    let lines = lines(&done)?;
    check_lines(&lines);
    let expected = ["step_start", "text", "tool_use", "step_finish", "step_start", "text", "step_finish"];
    assert_eq!(types(&lines), expected);
    check_keys(&lines[0]["part"], "id messageID sessionID type");
    assert_eq!(lines[0]["part"]["type"], "step-start");
    check_keys(&lines[1]["part"], "id messageID sessionID text time type");
    assert_eq!(lines[1]["part"]["text"], "Working.");
    assert_eq!(keys(&lines[1]["part"]["time"]), "end start");
    let call = &lines[2]["part"];
    check_keys(call, "callID id messageID sessionID state tool type");
    check_keys(&call["state"], "input metadata output status time title");
    assert_eq!((&call["tool"], &call["state"]["status"]), (&json!("bash"), &json!("completed")));
    assert_eq!(call["state"]["output"], "hi\n");
    assert_eq!(call["state"]["title"], "echo hi");
    assert_eq!(call["state"]["metadata"], json!({"output": "hi\n", "exit": 0, "truncated": false}));
    let finish = &lines[3]["part"];
    check_keys(finish, "cost id messageID reason sessionID tokens type");
    assert_eq!((&finish["reason"], &finish["type"]), (&json!("tool-calls"), &json!("step-finish")));
    let tokens =
        json!({"total": 120, "input": 100, "output": 20, "reasoning": 0, "cache": {"write": 0, "read": 0}});
    assert_eq!(finish["tokens"], tokens);
    assert_eq!(lines[6]["part"]["reason"], "stop");
    let tokens = &lines[6]["part"]["tokens"];
    assert_eq!((&tokens["input"], &tokens["cache"]["read"]), (&json!(50), &json!(30)));
    assert_eq!((&tokens["output"], &tokens["total"]), (&json!(9), &json!(89)));
    Ok(())
}

#[test]
fn a_failed_call_is_printed_once() -> Result<()> {
    let script = Script::new().tool("read", json!({"filePath": "missing.txt"})).text("I see.");
    let stage = Stage::plain(script)?;
    let lines = stage.json(["hi"])?;
    check_lines(&lines);
    let calls = of_type(&lines, "tool_use");
    assert_eq!(calls.len(), 1);
    let state = &calls[0]["part"]["state"];
    check_keys(state, "error input status time");
    assert_eq!(state["status"], "error");
    let path = stage.project.path("missing.txt");
    assert_eq!(state["error"], format!("File not found: {}", path.display()));
    Ok(())
}

#[test]
fn reasoning_is_only_printed_with_the_flag() -> Result<()> {
    let answer = || Turn::steps().reasoning("Hm.").text("Said.");
    let stage = Stage::plain(Script::new().turn(answer()).turn(answer()))?;
    assert_eq!(types(&stage.json(["hi"])?), ["step_start", "text", "step_finish"]);
    let lines = stage.json(["--thinking", "hi"])?;
    assert_eq!(types(&lines), ["step_start", "reasoning", "text", "step_finish"]);
    check_keys(&lines[1]["part"], "id messageID sessionID text time type");
    assert_eq!(lines[1]["part"]["text"], "Hm.");
    Ok(())
}

#[test]
fn a_rejected_key_is_an_error_line_and_exit_code_1() -> Result<()> {
    let error = Turn::http_error(401).body(json!({"error": {"message": "Invalid key"}}));
    let stage = Stage::plain(Script::new().turn(error))?;
    let done = stage.run(["--format", "json", "do it"])?;
    check_code(&done, 1);
    let lines = lines(&done)?;
    check_lines(&lines);
    assert_eq!(types(&lines), ["error"]);
    let error = &lines[0]["error"];
    assert_eq!(error["name"], "APIError");
    let data = &error["data"];
    assert_eq!(keys(data), "isRetryable message metadata responseBody responseHeaders statusCode");
    assert!(data["message"].as_str().is_some_and(|said| said.starts_with("Invalid key (")), "{data}");
    assert_eq!(data["statusCode"], 401);
    assert_eq!(data["isRetryable"], false);
    assert_eq!(data["responseHeaders"]["content-type"], "application/json");
    assert_eq!(data["metadata"]["url"], format!("{}/v1/chat/completions", stage.server.url()));
    Ok(())
}
