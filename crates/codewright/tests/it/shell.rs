//! Commands that the user runs in a session.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use codewright_testkit::{Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, get, is_running, new_session, post, prompt, wait_until};

fn command(line: &str) -> Value {
    json!({"agent": "build", "command": line, "model": {"providerID": "mock", "modelID": "plain-model"}})
}

#[test]
fn a_command_is_recorded_for_clients_and_sent_to_the_model() -> Result<()> {
    let stage = Stage::git(Script::new().title("Mock title").text("After shell."))?;
    let (server, url) = stage.serve()?;
    let id = new_session(&url)?;
    let path = format!("/session/{id}/shell");
    let (status, done) = post(&url, &path, &command("echo hi; echo err >&2; exit 2"))?;
    assert_eq!(status, 200, "{done}");
    let info = &done["info"];
    let expected = json!({"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}});
    assert_eq!((&info["role"], &info["tokens"]), (&json!("assistant"), &expected), "{done}");
    assert!(info["time"]["completed"].is_u64() && info["finish"].is_null(), "{done}");
    let state = &done["parts"][0]["state"];
    assert_eq!(done["parts"].as_array().map(Vec::len), Some(1), "{done}");
    assert_eq!(state["input"], json!({"command": "echo hi; echo err >&2; exit 2"}));
    assert_eq!((&state["status"], &state["title"]), (&json!("completed"), &json!("")));
    assert_eq!(
        (&state["output"], &state["metadata"]),
        (&json!("hi\nerr\n"), &json!({"output": "hi\nerr\n"}))
    );
    assert_eq!(done["parts"][0]["callID"].as_str().map(str::len), Some(26));
    let messages = get(&url, &format!("/session/{id}/message"))?;
    let asked = &messages[0];
    assert_eq!(asked["parts"][0]["text"], "The following tool was executed by the user");
    assert_eq!(asked["parts"][0]["synthetic"], true);
    assert_eq!(get(&url, "/session/status")?, json!({}));
    let (_, silent) = post(&url, &path, &command("true"))?;
    assert_eq!(silent["parts"][0]["state"]["output"], "", "{silent}");
    let (status, answer) = post(&url, &format!("/session/{id}/message"), &prompt("what happened"))?;
    assert_eq!((status, &answer["parts"][1]["text"]), (200, &json!("After shell.")), "{answer}");
    let messages = stage.messages(0)?;
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap_or_default()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user", "assistant", "tool", "user"]);
    assert_eq!(messages[1]["content"], "The following tool was executed by the user");
    assert_eq!(messages[2]["tool_calls"][0]["function"]["name"], "bash");
    assert_eq!(messages[3]["content"], "hi\nerr\n");
    stage.no_problems()?;
    for (session, body, expected) in [
        ("ses_000000000000AAAAAAAAAAAAAA", command("true"), 404),
        (id.as_str(), json!({"command": "true"}), 400),
        (id.as_str(), json!({"agent": "build"}), 400),
    ] {
        let (status, refused) = post(&url, &format!("/session/{session}/shell"), &body)?;
        assert_eq!(status, expected, "{refused}");
    }
    server.terminate()?;
    server.finish()?.success()?;
    Ok(())
}

#[test]
fn a_command_makes_its_session_busy_and_can_be_stopped() -> Result<()> {
    let own = format!("71.{}", std::process::id());
    let stage = Stage::plain(Script::new().turn(Turn::text("Answered.")))?;
    let (server, url) = stage.serve()?;
    let id = new_session(&url)?;
    let path = format!("/session/{id}");
    let (there, begun) = (format!("{path}/shell"), Instant::now());
    let (url_, line) = (url.clone(), format!("echo a; setsid sleep {own} & sleep {own}; echo b"));
    let running = thread::spawn(move || post(&url_, &there, &command(&line)));
    wait_until("the command", || is_running(&own))?;
    assert_eq!(get(&url, "/session/status")?[&id]["type"], "busy");
    let (status, refused) = post(&url, &format!("{path}/shell"), &command("echo no"))?;
    assert_eq!((status, &refused["_tag"]), (409, &json!("SessionBusyError")), "{refused}");
    // A prompt is admitted, and answered after the command.
    post(&url, &format!("{path}/prompt_async"), &prompt("go on"))?;
    let (status, _) = post(&url, &format!("{path}/abort"), &json!({}))?;
    assert_eq!(status, 200);
    let (status, stopped) = running.join().ok().context("the request broke")??;
    assert!(begun.elapsed() < Duration::from_secs(30));
    let expected = "a\n\n\n<metadata>\nUser aborted the command\n</metadata>";
    assert_eq!((status, &stopped["parts"][0]["state"]["output"]), (200, &json!(expected)), "{stopped}");
    wait_until("the end of the processes", || !is_running(&own))?;
    let answered =
        || get(&url, &format!("{path}/message")).is_ok_and(|all| all.to_string().contains("Answered."));
    wait_until("the answer", answered)?;
    server.terminate()?;
    server.finish()?.success()?;
    Ok(())
}

#[test]
fn a_killed_server_ends_its_commands() -> Result<()> {
    let own = format!("72.{}", std::process::id());
    let stage = Stage::plain(Script::new())?;
    let (server, url) = stage.serve()?;
    let path = format!("/session/{}/shell", new_session(&url)?);
    let line = format!("trap '' TERM HUP; (setsid sleep {own} &); setsid sleep {own} & sleep {own}");
    let url_ = url.clone();
    let running = thread::spawn(move || post(&url_, &path, &command(&line)));
    wait_until("the command", || is_running(&own))?;
    // Only its process group is killed, which contains no command.
    drop(server);
    wait_until("the end of the processes", || !is_running(&own))?;
    // The server printed nothing else.
    drop(running.join());
    Ok(())
}
