//! Aborting a turn over HTTP: the response is fast in every state of the turn.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use codewright_testkit::{Kind, Project, Recorded, Running, Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, get, is_running, new_session, post, prompt, wait_until};

/// A generous limit for a loaded machine.
const SOON: Duration = Duration::from_secs(1);

/// Aborts a session when `busy` returns true. Returns the aborted message.
#[track_caller]
fn stopped(stage: &Stage, busy: impl Fn(&str, &str) -> bool) -> Value {
    stopped_at(stage, stage.serve().unwrap(), busy)
}

#[track_caller]
fn stopped_at(stage: &Stage, (server, url): (Running, String), busy: impl Fn(&str, &str) -> bool) -> Value {
    let id = new_session(&url).unwrap();
    let path = format!("/session/{id}");
    post(&url, &format!("{path}/prompt_async"), &prompt("go")).unwrap();
    wait_until("the phase", || busy(&url, &id)).unwrap();
    let asked = Instant::now();
    let answer = post(&url, &format!("{path}/abort"), &json!({})).unwrap();
    let took = asked.elapsed();
    assert_eq!(answer, (200, json!(true)));
    assert!(took < SOON, "{took:?}");
    // No wait is needed: the session is consistent and free.
    assert_eq!(get(&url, "/session/status").unwrap(), json!({}));
    assert_eq!(get(&url, "/permission").unwrap(), json!([]));
    let messages = get(&url, &format!("{path}/message")).unwrap();
    let stopped = messages[1].clone();
    assert_eq!(stopped["info"]["error"]["name"], "MessageAbortedError", "{stopped}");
    assert!(stopped["info"]["time"]["completed"].is_u64(), "{stopped}");
    for part in stopped["parts"].as_array().unwrap() {
        let is_open = match part["type"].as_str().unwrap() {
            "tool" => part["state"]["time"]["end"].is_null(),
            "text" | "reasoning" => part["time"]["end"].is_null(),
            _ => false,
        };
        assert!(!is_open, "{part}");
    }
    let (status, again) = post(&url, &format!("{path}/message"), &prompt("again")).unwrap();
    assert_eq!((status, &again["parts"][1]["text"]), (200, &json!("Back again.")), "{again}");
    stage.no_problems().unwrap();
    server.terminate().unwrap();
    server.finish().unwrap().success().unwrap();
    stopped
}

fn parts(url: &str, id: &str) -> Vec<Value> {
    let messages = get(url, &format!("/session/{id}/message")).unwrap();
    messages[1]["parts"].as_array().cloned().unwrap_or_default()
}

#[test]
fn abort_before_the_first_output() -> Result<()> {
    let stage = Stage::plain(Script::new().turn(Turn::Silent).text("Back again."))?;
    stopped(&stage, |_, _| !stage.server.main_requests().is_empty());
    Ok(())
}

#[test]
fn abort_during_the_answer() -> Result<()> {
    let script = Script::new().turn(Turn::text("Starting to speak").hang()).text("Back again.");
    let stage = Stage::plain(script)?;
    let answer = stopped(&stage, |url, id| parts(url, id).len() > 1);
    assert_eq!(answer["parts"][1]["text"], "Starting to speak");
    Ok(())
}

#[test]
fn abort_during_the_wait_for_a_retry() -> Result<()> {
    let busy = Turn::http_error(429).header("retry-after", "300");
    let stage = Stage::plain(Script::new().turn(busy).text("Back again."))?;
    stopped(&stage, |url, id| get(url, "/session/status").unwrap()[id]["type"] == "retry");
    Ok(())
}

#[test]
fn abort_during_a_command() -> Result<()> {
    let own = format!("6100.{}", std::process::id());
    let command = json!({ "command": format!("echo begun; sleep {own}") });
    let stage = Stage::plain(Script::new().tool("bash", command).text("Back again."))?;
    let answer = stopped(&stage, |_, _| is_running(&own));
    let state = &answer["parts"][1]["state"];
    assert_eq!(state["status"], "completed", "{state}");
    assert_eq!(state["output"], "begun\n\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>");
    wait_until("the end of the command", || !is_running(&own))
}

#[test]
fn abort_during_a_command_that_ignores_signals() -> Result<()> {
    let own = format!("6101.{}", std::process::id());
    let deaf = format!("6102.{}", std::process::id());
    let command = format!(
        "trap '' TERM INT HUP; sh -c \"trap '' TERM INT HUP; sleep {deaf}\" & echo begun; sleep {own}; sleep {own}"
    );
    let script = Script::new().tool("bash", json!({ "command": command })).text("Back again.");
    let stage = Stage::plain(script)?;
    let answer = stopped(&stage, |_, _| is_running(&own) && is_running(&deaf));
    let state = &answer["parts"][1]["state"];
    assert_eq!(state["status"], "completed", "{state}");
    // The server has ended, and it ends after its child processes.
    assert!(!is_running(&own) && !is_running(&deaf));
    Ok(())
}

#[test]
fn abort_during_a_permission_request() -> Result<()> {
    let script = Script::new().tool("bash", json!({ "command": "touch made" })).text("Back again.");
    let stage = Stage::plain(script)?;
    let mut config = Project::config(&stage.server.url());
    config["permission"] = json!({ "bash": "ask" });
    stage.project.write_config(&config)?;
    let answer = stopped(&stage, |url, _| get(url, "/permission").unwrap() != json!([]));
    assert_eq!(answer["parts"][1]["state"]["error"], "Tool execution aborted");
    assert!(!stage.project.path("made").exists());
    Ok(())
}

#[test]
fn abort_during_the_title() -> Result<()> {
    // This address neither answers nor refuses.
    let silent = std::net::TcpListener::bind("127.0.0.1:0")?;
    let stage = Stage::plain(Script::new().turn(Turn::Silent).text("Back again."))?;
    let mut config = Project::config(&stage.server.url());
    let mut small: Value = config["provider"]["mock"].clone();
    small["options"]["baseURL"] = format!("http://{}/v1", silent.local_addr()?).into();
    config["provider"]["small"] = small;
    config["small_model"] = json!("small/plain-model");
    stage.project.write_config(&config)?;
    stopped(&stage, |_, _| !stage.server.main_requests().is_empty());
    Ok(())
}

#[test]
fn abort_during_a_summary() -> Result<()> {
    let stage = Stage::plain(Script::new().summary(Turn::Silent).text("First.").text("Back again."))?;
    let (server, url) = stage.serve()?;
    let id = new_session(&url)?;
    let path = format!("/session/{id}");
    post(&url, &format!("{path}/message"), &prompt("go"))?;
    let model = json!({ "providerID": "mock", "modelID": "plain-model" });
    let summarise = std::thread::spawn({
        let (url, path) = (url.clone(), format!("{path}/summarize"));
        move || post(&url, &path, &model)
    });
    let is_summary = |request: &Recorded| request.kind == Kind::Summary;
    wait_until("the summary", || stage.server.requests().iter().any(is_summary))?;
    let asked = Instant::now();
    assert_eq!(post(&url, &format!("{path}/abort"), &json!({}))?, (200, json!(true)));
    let took = asked.elapsed();
    assert!(took < SOON, "{took:?}");
    let answered = summarise.join().map_err(|_| anyhow::anyhow!("the request failed"))?;
    assert_eq!(answered?.0, 200);
    let messages = get(&url, &format!("{path}/message"))?;
    let summary = &messages[3]["info"];
    assert_eq!(summary["summary"], true, "{messages}");
    assert_eq!(summary["error"]["name"], "MessageAbortedError", "{summary}");
    assert!(summary["time"]["completed"].is_u64(), "{summary}");
    // The messages that were not summarized are sent completely.
    let (status, again) = post(&url, &format!("{path}/message"), &prompt("again"))?;
    assert_eq!((status, &again["parts"][1]["text"]), (200, &json!("Back again.")), "{again}");
    let sent = stage.server.main_requests().pop().map(|request| crate::support::user_text(&request));
    assert!(sent.as_ref().is_some_and(|sent| sent.contains("go")), "{sent:?}");
    stage.no_problems()?;
    server.terminate()?;
    server.finish()?.success()?;
    Ok(())
}

#[test]
fn abort_during_the_scan_of_the_directory() -> Result<()> {
    let own = format!("6103.{}", std::process::id());
    let script = Script::new().tool("bash", json!({ "command": "touch made" })).text("Back again.");
    let stage = Stage::git(script)?;
    // A `git` that hangs while a file exists, and then runs the real one.
    let slow = stage.project.home().join("slow");
    std::fs::create_dir_all(&slow)?;
    let mark = slow.join("on");
    std::fs::write(&mark, "")?;
    let path =
        stage.project.environment().into_iter().find(|(name, _)| *name == "PATH").context("no PATH")?.1;
    let path = path.to_string_lossy();
    let git = format!(
        "#!/bin/sh\nPATH='{path}'\nif [ -e '{}' ]; then exec sleep {own}; fi\nexec git \"$@\"\n",
        mark.display()
    );
    std::fs::write(slow.join("git"), git)?;
    let runnable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(slow.join("git"), runnable)?;
    let run = stage.program(["serve"]).env("PATH", format!("{}:{path}", slow.display()));
    let answer = stopped_at(&stage, crate::support::serve(run)?, |url, id| {
        let is_looking = is_running(&own) && parts(url, id).iter().any(|part| part["type"] == "tool");
        is_looking && std::fs::remove_file(&mark).is_ok()
    });
    assert_eq!(answer["parts"][1]["state"]["status"], "error", "{answer}");
    assert!(!stage.project.path("made").exists());
    wait_until("the end of what looked", || !is_running(&own))
}
