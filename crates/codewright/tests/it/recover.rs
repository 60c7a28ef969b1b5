//! Recovery after a kill, and two programs with one session.

use std::time::Duration;

use anyhow::{Context as _, Result};
use codewright_testkit::{Finished, Running, Script, Turn, is_default_store};
use serde_json::{Value, json};

use crate::support::{
    Stage, check_code, check_has, get, is_running, lines, new_session, post, prompt, session_of, wait_until,
};

/// Kills a process. Dropping does the same.
fn kill(run: Running) {
    drop(run);
}

/// The parts of a kind in the message `back` positions before the last.
fn parts<'a>(messages: &'a [Value], back: usize, kind: &str) -> Vec<&'a Value> {
    let message = &messages[messages.len() - 1 - back];
    let parts = message["parts"].as_array().into_iter().flatten();
    parts.filter(|part| part["type"] == kind).collect()
}

/// Ends processes that a killed program left, found by a unique argument.
fn end(argument: &str) -> Result<()> {
    for process in std::fs::read_dir("/proc")?.flatten() {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        if line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes()) {
            let id = process.file_name().to_string_lossy().into_owned();
            std::process::Command::new("kill").args(["-9", &id]).status()?;
        }
    }
    Ok(())
}

#[track_caller]
fn goes_on(stage: &Stage) -> Finished {
    let done = stage.run(["-c", "go on"]).unwrap();
    check_code(&done, 0);
    assert_eq!(done.stdout, "Back again.\n");
    stage.no_problems().unwrap();
    done
}

#[test]
fn a_kill_during_an_answer() -> Result<()> {
    if !is_default_store() {
        return Ok(());
    }
    let answer = Turn::text("What was said so far").hang();
    let stage = Stage::plain(Script::new().turn(answer).text("Back again."))?;
    let (server, url) = stage.serve()?;
    let id = new_session(&url)?;
    post(&url, &format!("/session/{id}/prompt_async"), &prompt("go"))?;
    let said = || {
        let messages = get(&url, &format!("/session/{id}/message")).unwrap();
        messages[1]["parts"][1]["text"] == "What was said so far"
    };
    // A growing text is stored before it is complete.
    wait_until("the text", said)?;
    kill(server);

    // A new server completes what the killed one left open.
    let (server, url) = stage.serve()?;
    let path = format!("/session/{id}/message");
    wait_until("the end", || get(&url, &path).unwrap()[1]["info"]["time"]["completed"].is_u64())?;
    let messages = get(&url, &path)?;
    assert_eq!(messages[1]["info"]["error"]["name"], "MessageAbortedError");
    let text = &messages[1]["parts"][1];
    assert_eq!(text["text"], "What was said so far");
    assert!(text["time"]["end"].is_u64(), "{text}");
    server.terminate()?;
    server.finish()?.success()?;
    goes_on(&stage);
    Ok(())
}

#[test]
fn an_interrupted_turn_can_be_continued_without_a_message() -> Result<()> {
    let own = format!("6300.{}", std::process::id());
    let command = json!({ "command": format!("sleep {own}") });
    let stage = Stage::plain(Script::new().tool("bash", command).text("Back again."))?;
    let run = stage.program(["run", "hi"]).start()?;
    wait_until("the command", || is_running(&own))?;
    kill(run);
    let done = stage.run(["--continue"])?.success()?;
    assert_eq!(done.stdout, "Back again.\n");
    end(&own)?;
    // The turn is answered now, so there is nothing to continue.
    let refused = stage.run(["--continue"])?;
    check_code(&refused, 1);
    check_has(&refused.stderr, &["You must provide a message", "was not interrupted"]);
    stage.no_problems()
}

#[test]
fn a_kill_during_a_command() -> Result<()> {
    let own = format!("6200.{}", std::process::id());
    let command = format!("echo x >> effects; echo begun; sleep {own}");
    let stage = Stage::plain(Script::new().tool("bash", json!({ "command": command })).text("Back again."))?;
    let run = stage.program(["run", "hi"]).start()?;
    wait_until("the command", || is_running(&own))?;
    kill(run);
    goes_on(&stage);
    end(&own)?;
    let stored = stage.stored()?;
    let call = &parts(&stored[..2], 0, "tool")[0]["state"];
    assert_eq!(call["status"], "error");
    assert_eq!(call["metadata"]["interrupted"], "uncertain", "{call}");
    let results = stage.results(1)?;
    assert!(results.len() == 1 && results[0].contains("uncertain"), "{results:?}");
    // It was not run again.
    assert_eq!(stage.project.read("effects")?, "x\n");
    Ok(())
}

#[test]
fn a_kill_during_an_edit() -> Result<()> {
    // Reading a pipe blocks the edit.
    let stage = Stage::plain(
        Script::new()
            .turn(
                Turn::steps()
                    .tool("bash", json!({ "command": "touch begun; cat pipe" }))
                    .tool("write", json!({ "filePath": "made", "content": "once\n" })),
            )
            .text("Back again."),
    )?;
    std::process::Command::new("mkfifo").arg(stage.project.path("pipe")).status()?;
    let run = stage.program(["run", "hi"]).start()?;
    wait_until("both calls", || stage.project.path("begun").exists() && stage.project.path("made").exists())?;
    kill(run);
    goes_on(&stage);
    let stored = stage.stored()?;
    for call in parts(&stored[..2], 0, "tool") {
        let state = &call["state"];
        let known = state["status"] == "completed" || state["metadata"]["interrupted"] == "uncertain";
        assert!(known, "{call}");
    }
    assert_eq!(stage.project.read("made")?, "once\n");
    Ok(())
}

#[test]
fn a_kill_during_a_permission_request() -> Result<()> {
    let stage =
        Stage::plain(Script::new().tool("bash", json!({ "command": "touch made" })).text("Back again."))?;
    let mut config = codewright_testkit::Project::config(&stage.server.url());
    config["permission"] = json!({ "bash": "ask" });
    stage.project.write_config(&config)?;
    let (server, url) = stage.serve()?;
    let id = new_session(&url)?;
    post(&url, &format!("/session/{id}/prompt_async"), &prompt("go"))?;
    wait_until("the question", || get(&url, "/permission").unwrap() != json!([]))?;
    kill(server);
    goes_on(&stage);
    let stored = stage.stored()?;
    let call = &parts(&stored[..2], 0, "tool")[0]["state"];
    assert_eq!(call["metadata"]["interrupted"], "not_started", "{call}");
    assert!(!stage.project.path("made").exists());
    Ok(())
}

/// A server whose turn is blocked by a command until a file exists.
fn held(stage: &Stage) -> Result<(Running, String, String)> {
    let (server, url) = stage.serve()?;
    let id = new_session(&url)?;
    post(&url, &format!("/session/{id}/prompt_async"), &prompt("first"))?;
    wait_until("the command", || stage.project.path("begun").exists())?;
    Ok((server, url, id))
}

fn holding(own: &str) -> Turn {
    let command =
        format!("echo x >> effects; touch begun; while [ ! -e free ]; do sleep {own}; done; echo freed");
    Turn::steps().tool("bash", json!({ "command": command })).into()
}

#[test]
fn a_prompt_of_a_second_program_is_answered_by_the_first() -> Result<()> {
    let stage = Stage::plain(Script::new().turn(holding("0.05")).text("Both answered."))?;
    let (server, url, id) = held(&stage)?;
    let second = stage.program(["run", "--format", "json", "-s", &id, "second"]).start()?;
    // Its prompt is stored immediately, although the session runs in the other program.
    let messages = || get(&url, &format!("/session/{id}/message")).unwrap();
    wait_until("the prompt", || messages().to_string().contains("second"))?;
    assert_eq!(stage.server.main_requests().len(), 1);
    stage.project.write("free", "")?;
    let done = second.finish()?.success()?;
    let lines = lines(&done)?;
    assert_eq!(session_of(&lines)?, id);
    assert!(done.stdout.contains("Both answered."), "{}", done.stdout);
    // One request contained both prompts.
    assert_eq!(stage.server.main_requests().len(), 2);
    let sent = stage.messages(1)?;
    let said: Vec<_> = sent.iter().filter(|message| message["role"] == "user").collect();
    assert_eq!(said.len(), 2, "{sent:?}");
    stage.no_problems()?;
    server.terminate()?;
    server.finish()?.success()?;
    Ok(())
}

#[test]
fn a_second_program_takes_over_when_the_first_is_killed() -> Result<()> {
    let own = format!("6201.{}", std::process::id());
    let stage = Stage::plain(Script::new().turn(holding(&own)).text("Taken over."))?;
    let (server, url, id) = held(&stage)?;
    let second = stage.program(["run", "-s", &id, "second"]).start()?;
    let messages = || get(&url, &format!("/session/{id}/message")).unwrap();
    wait_until("the prompt", || messages().to_string().contains("second"))?;
    std::thread::sleep(Duration::from_millis(200));
    kill(server);
    let done = second.finish()?.success()?;
    end(&own)?;
    assert_eq!(done.stdout, "Taken over.\n");
    assert_eq!(stage.project.read("effects")?, "x\n");
    let results = stage.results(1)?;
    assert!(results.len() == 1 && results[0].contains("uncertain"), "{results:?}");
    stage.no_problems()
}

#[test]
fn a_server_does_not_touch_the_work_of_a_living_program() -> Result<()> {
    let stage = Stage::plain(Script::new().turn(holding("0.05")).text("Done."))?;
    let (server, _, id) = held(&stage)?;
    let (other, url) = stage.serve()?;
    // Longer than a check takes.
    std::thread::sleep(Duration::from_millis(500));
    let messages = get(&url, &format!("/session/{id}/message"))?;
    let state = &messages[1]["parts"][1]["state"];
    assert_eq!(state["status"], "running", "{state}");
    stage.project.write("free", "")?;
    let last = || {
        let messages = get(&url, &format!("/session/{id}/message")).unwrap();
        messages.as_array().and_then(|all| all.last()).is_some_and(|last| last.to_string().contains("Done."))
    };
    wait_until("the answer", last)?;
    for server in [server, other] {
        server.terminate()?;
        server.finish()?.success().context("a server")?;
    }
    Ok(())
}

/// A generous limit for a loaded machine.
const SOON: Duration = Duration::from_secs(2);

#[test]
fn a_turn_is_stopped_from_another_program() -> Result<()> {
    let own = format!("6202.{}", std::process::id());
    let stage = Stage::plain(Script::new().turn(holding(&own)).text("Back again."))?;
    let (server, url, id) = held(&stage)?;
    let (other, other_url) = stage.serve()?;
    let asked = std::time::Instant::now();
    assert_eq!(post(&other_url, &format!("/session/{id}/abort"), &json!({}))?, (200, json!(true)));
    let took = asked.elapsed();
    assert!(took < SOON, "{took:?}");
    // The turn has ended when the response is sent: the session is consistent and free.
    let messages = get(&other_url, &format!("/session/{id}/message"))?;
    assert_eq!(messages[1]["info"]["error"]["name"], "MessageAbortedError", "{messages}");
    wait_until("the status", || get(&url, "/session/status").unwrap() == json!({}))?;
    wait_until("the end of the command", || !is_running(&own))?;
    // Only the turn was stopped, not the session.
    let (_, again) = post(&url, &format!("/session/{id}/message"), &prompt("again"))?;
    assert_eq!(again["parts"][1]["text"], "Back again.", "{again}");
    assert_eq!(post(&other_url, &format!("/session/{id}/abort"), &json!({}))?, (200, json!(true)));
    stage.no_problems()?;
    for server in [server, other] {
        server.terminate()?;
        server.finish()?.success()?;
    }
    Ok(())
}

#[test]
fn a_question_is_answered_in_another_program() -> Result<()> {
    let both = Turn::steps()
        .tool("bash", json!({ "command": "touch made" }))
        .tool("bash", json!({ "command": "touch also" }));
    let stage = Stage::plain(Script::new().turn(both).text("Made."))?;
    let mut config = codewright_testkit::Project::config(&stage.server.url());
    config["permission"] = json!({ "bash": "ask" });
    stage.project.write_config(&config)?;
    let (server, url) = stage.serve()?;
    let (other, other_url) = stage.serve()?;
    let id = new_session(&url)?;
    let answer = |reply: &str| {
        let asked = get(&other_url, "/permission")?;
        let path = format!("/permission/{}/reply", asked[0]["id"].as_str().context("no question")?);
        assert_eq!(post(&other_url, &path, &json!({ "reply": reply }))?, (200, json!(true)));
        assert_eq!(post(&other_url, &path, &json!({ "reply": reply }))?.0, 404, "it is answered once");
        anyhow::Ok(())
    };
    post(&url, &format!("/session/{id}/prompt_async"), &prompt("go"))?;
    let asked = || get(&other_url, "/permission").unwrap().as_array().map_or(0, Vec::len);
    wait_until("both questions", || asked() == 2)?;
    answer("always")?;
    // An approval with "always" applies immediately.
    wait_until("both files", || stage.project.path("made").exists() && stage.project.path("also").exists())?;
    wait_until("the end", || get(&url, "/session/status").unwrap() == json!({}))?;
    assert_eq!(get(&other_url, "/permission")?, json!([]));

    stage.no_problems()?;
    for server in [server, other] {
        server.terminate()?;
        server.finish()?.success()?;
    }
    Ok(())
}
