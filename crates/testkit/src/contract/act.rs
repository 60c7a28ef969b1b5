//! The user's actions in each recorded case.

use std::thread;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::recording::Recording;
use super::stage::Stage;

/// Repeats the recorded actions.
pub(super) fn act(stage: &Stage, recording: &Recording) -> Result<()> {
    let sessions = recording.sessions();
    let own = sessions.first().and_then(|info| info["id"].as_str()).unwrap_or_default();
    let prompts = recording.prompts(own);
    match recording.name.as_str() {
        "session-crud" => session_crud(stage),
        "no-reply" => {
            let mut body = prompts.first().context("no prompt")?.clone();
            body["noReply"] = true.into();
            prompt(stage, &body)
        }
        "shell" => {
            let call = json!({"agent": "build", "command": "echo hi; echo err >&2; exit 2"});
            expect(stage, "/shell", &call)?;
            prompts.iter().try_for_each(|body| prompt(stage, body))
        }
        "command-init" => {
            let done = recording.events.iter().find(|event| event["type"] == "command.executed");
            let done = done.context("no command was executed")?;
            let arguments = &done["properties"]["arguments"];
            expect(stage, "/command", &json!({"command": "init", "arguments": arguments}))
        }
        "abort-stream" => {
            start(stage, &prompts)?;
            // The recorded abort came after the title and the whole text; on a busy machine they arrive one by one.
            let text = deltas(&recording.events);
            stage.until_all("the text", |events| deltas(events) == text)?;
            stage.until("the title", |event| event["properties"]["info"]["title"] == "Mock title")?;
            expect(stage, "/abort", &json!({}))
        }
        "abort-tool" => {
            start(stage, &prompts)?;
            stage.until("output", |event| {
                event["properties"]["part"]["state"]["metadata"]["output"] == "start\n"
            })?;
            expect(stage, "/abort", &json!({}))
        }
        "prompt-while-busy" => {
            start(stage, &prompts)?;
            stage.until("a running call", |event| {
                event["properties"]["part"]["state"]["status"] == "running"
            })?;
            let second = prompts.get(1).context("no second prompt")?;
            expect(stage, "/prompt_async", second)?;
            idle(stage, 1)
        }
        "summarize" => {
            for body in prompts.iter().take(2) {
                prompt(stage, body)?;
            }
            expect(stage, "/summarize", &json!({"providerID": "mockchat", "modelID": "plain-model"}))?;
            prompts.iter().skip(2).try_for_each(|body| prompt(stage, body))
        }
        "fork" => fork(stage, recording, &prompts),
        "revert" => revert(stage, &prompts),
        _ => prompts.iter().try_for_each(|body| prompt(stage, body)),
    }
}

/// Returns the streamed text of all events.
fn deltas(events: &[Value]) -> String {
    events.iter().filter_map(|event| event["properties"]["delta"].as_str()).collect()
}

/// Sends a prompt and waits for the answer.
fn prompt(stage: &Stage, body: &Value) -> Result<()> {
    let before = stage.count(is_idle);
    expect(stage, "/message", body)?;
    if body["noReply"] == true { Ok(()) } else { idle(stage, before + 1) }
}

/// Sends the first prompt without waiting for the answer.
fn start(stage: &Stage, prompts: &[Value]) -> Result<()> {
    expect(stage, "/prompt_async", prompts.first().context("no prompt")?)
}

fn expect(stage: &Stage, route: &str, body: &Value) -> Result<()> {
    let path = stage.route(route);
    let (status, answer) = stage.post(&path, body)?;
    if status >= 300 {
        bail!("POST {path} answered {status} {answer}");
    }
    Ok(())
}

fn is_idle(event: &Value) -> bool {
    event["type"] == "session.idle"
}

/// Waits until the session was idle `times` times.
fn idle(stage: &Stage, times: usize) -> Result<()> {
    let session = stage.session.clone();
    while stage.count(|event| is_idle(event) && event["properties"]["sessionID"] == *session) < times {
        stage.until("`session.idle`", is_idle)?;
        thread::sleep(std::time::Duration::from_millis(5));
    }
    Ok(())
}

fn session_crud(stage: &Stage) -> Result<()> {
    let call = |method: &str, path: &str, body: Option<&Value>| {
        let (status, answer) = stage.address.call(method, path, body)?;
        if status == 200 { Ok(answer) } else { bail!("{method} {path} answered {status} {answer}") }
    };
    let child = json!({"parentID": stage.session, "title": "Child"});
    call("POST", "/session", Some(&child))?;
    call("PATCH", &stage.route(""), Some(&json!({"title": "Renamed"})))?;
    call("PATCH", &stage.route(""), Some(&json!({"time": {"archived": 1_700_000_000_000_u64}})))?;
    call("DELETE", &stage.route(""), None)?;
    Ok(())
}

fn fork(stage: &Stage, recording: &Recording, prompts: &[Value]) -> Result<()> {
    for body in prompts {
        prompt(stage, body)?;
    }
    let sent = stage.prompts()?;
    let at = sent.get(1).context("no second prompt")?;
    let (_, forked) = stage.post(&stage.route("/fork"), &json!({"messageID": at}))?;
    expect(stage, "/fork", &json!({}))?;
    let ids: Vec<_> = recording.sessions().iter().map(|info| info["id"].clone()).collect();
    let copy = ids.get(1).and_then(Value::as_str).context("no fork")?;
    let prompt = recording.prompts(copy).pop().context("no prompt for the fork")?;
    let id = forked["id"].as_str().context("no fork")?;
    let (status, answer) = stage.post(&format!("/session/{id}/message"), &prompt)?;
    if status == 200 { Ok(()) } else { bail!("the fork answered {status} {answer}") }
}

fn revert(stage: &Stage, prompts: &[Value]) -> Result<()> {
    for body in prompts.iter().take(2) {
        prompt(stage, body)?;
    }
    let sent = stage.prompts()?;
    let [first, second] = sent.as_slice() else { bail!("there are {} prompts", sent.len()) };
    expect(stage, "/revert", &json!({"messageID": second}))?;
    expect(stage, "/revert", &json!({"messageID": first}))?;
    expect(stage, "/unrevert", &json!({}))?;
    expect(stage, "/revert", &json!({"messageID": second}))?;
    prompts.iter().skip(2).try_for_each(|body| prompt(stage, body))
}
