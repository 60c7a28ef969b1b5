//! Ending a run early: the turn stops, its children die, the session goes on.

use std::time::{Duration, Instant};

use anyhow::Result;
use codewright_testkit::{Finished, Running, Script, Turn};
use serde_json::json;

use crate::support::{DEADLINE, Stage, check_code, is_running, wait_until};

/// What a person waits for without a second press, on a loaded machine.
const PROMPTLY: Duration = Duration::from_secs(10);

/// Interrupts and expects the end soon.
#[track_caller]
fn interrupted(run: Running) -> Finished {
    let pressed = Instant::now();
    run.interrupt().unwrap();
    let done = run.finish().unwrap();
    check_code(&done, 130);
    assert!(pressed.elapsed() < PROMPTLY, "{:?}", pressed.elapsed());
    done
}

/// The stored answer was aborted, and the session goes on.
#[track_caller]
fn check_aborted_and_usable(stage: &Stage) {
    let stored = stage.stored().unwrap();
    let answer = &stored[1]["info"];
    assert_eq!(answer["role"], "assistant");
    assert_eq!(answer["error"]["name"], "MessageAbortedError", "{answer}");
    assert!(answer["time"]["completed"].is_u64(), "{answer}");
    for part in stored[1]["parts"].as_array().unwrap() {
        let status = &part["state"]["status"];
        assert!(part["type"] != "tool" || status == "completed" || status == "error", "{part}");
    }
    let done = stage.run(["-c", "go on"]).unwrap();
    check_code(&done, 0);
    assert_eq!(done.stdout, "Back again.\n");
    stage.no_problems().unwrap();
}

#[test]
fn one_press_stops_an_answer() -> Result<()> {
    let stage =
        Stage::plain(Script::new().turn(Turn::text("Starting to speak\n").hang()).text("Back again."))?;
    let mut run = stage.program(["run", "hi"]).start()?;
    run.line()?;
    let done = interrupted(run);
    assert_eq!(done.stdout, "Starting to speak\n");
    let text = &stage.stored()?[1]["parts"][1];
    assert_eq!((&text["type"], &text["text"]), (&json!("text"), &json!("Starting to speak\n")));
    assert!(text["time"]["end"].is_u64(), "{text}");
    check_aborted_and_usable(&stage);
    Ok(())
}

#[test]
fn one_press_stops_a_wait_for_an_answer() -> Result<()> {
    let stage = Stage::plain(Script::new().turn(Turn::Silent).text("Back again."))?;
    let run = stage.program(["run", "hi"]).start()?;
    stage.server.wait_for_request(1, DEADLINE)?;
    interrupted(run);
    check_aborted_and_usable(&stage);
    Ok(())
}

#[test]
fn one_press_stops_a_wait_for_another_attempt() -> Result<()> {
    let busy = Turn::http_error(429).header("retry-after", "300");
    let stage = Stage::plain(Script::new().turn(busy).text("Back again."))?;
    let run = stage.program(["run", "hi"]).start()?;
    wait_until("the notice", || run.so_far().contains("trying again in 300 s"))?;
    interrupted(run);
    check_aborted_and_usable(&stage);
    Ok(())
}

#[test]
fn one_press_ends_a_command_and_its_children() -> Result<()> {
    // A length of sleep that no other process has; the group, a child of it and a deaf one.
    let own = format!("6000.{}", std::process::id());
    let deaf = format!("6001.{}", std::process::id());
    let command = format!("sleep {own} & sh -c \"trap '' TERM INT; sleep {deaf}\" & echo begun; sleep {own}");
    let script = Script::new().tool("bash", json!({"command": command})).text("Back again.");
    let stage = Stage::plain(script)?;
    let run = stage.program(["run", "hi"]).start()?;
    wait_until("the command", || is_running(&own) && is_running(&deaf))?;
    interrupted(run);
    wait_until("the end of the children", || !is_running(&own) && !is_running(&deaf))?;
    let stored = stage.stored()?;
    let state = &stored[1]["parts"][1]["state"];
    assert_eq!(state["status"], "completed", "{state}");
    assert_eq!(state["metadata"]["exit"], json!(null));
    let output = state["output"].as_str().unwrap();
    assert!(output.starts_with("begun\n") && output.contains("<shell_metadata>"), "{output}");
    check_aborted_and_usable(&stage);
    Ok(())
}

#[test]
fn a_second_press_leaves_at_once() -> Result<()> {
    // Deaf to everything polite, so that the first press takes its time.
    let own = format!("6005.{}", std::process::id());
    let command = format!("trap '' TERM INT HUP; sleep {own}; sleep {own}");
    let script = Script::new().tool("bash", json!({"command": command})).text("Back again.");
    let stage = Stage::plain(script)?;
    let run = stage.program(["run", "hi"]).start()?;
    wait_until("the command", || is_running(&own))?;
    run.interrupt()?;
    // If the first press was enough already, there is nobody left to hear the second.
    run.interrupt().unwrap_or_default();
    check_code(&run.finish()?, 130);
    wait_until("the end of the children", || !is_running(&own))?;
    check_aborted_and_usable(&stage);
    Ok(())
}

#[test]
fn being_told_to_end_is_like_an_interrupt() -> Result<()> {
    let own = format!("6002.{}", std::process::id());
    let script = Script::new().tool("bash", json!({"command": format!("sleep {own}")})).text("Back again.");
    let stage = Stage::plain(script)?;
    let run = stage.program(["run", "--format", "json", "hi"]).start()?;
    wait_until("the command", || is_running(&own))?;
    run.terminate()?;
    check_code(&run.finish()?, 143);
    wait_until("the end of the child", || !is_running(&own))?;
    check_aborted_and_usable(&stage);
    Ok(())
}

#[test]
fn a_run_that_is_killed_leaves_a_session_that_goes_on() -> Result<()> {
    let own = format!("6003.{}", std::process::id());
    let call = Turn::text("Before.").tool("bash", json!({"command": format!("sleep {own}")}));
    let stage = Stage::plain(Script::new().turn(call).text("Back again."))?;
    let run = stage.program(["run", "hi"]).start()?;
    wait_until("the command", || is_running(&own))?;
    // Dropping kills it, and gives it no time for anything.
    drop(run);
    let done = stage.run(["-c", "go on"])?;
    check_code(&done, 0);
    assert_eq!(done.stdout, "Back again.\n");
    let results = stage.results(1)?;
    assert!(results.len() == 1 && results[0].contains("uncertain"), "{results:?}");
    for process in std::fs::read_dir("/proc")?.flatten() {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        if line.split(|byte| *byte == 0).any(|word| word == own.as_bytes()) {
            let id = process.file_name().to_string_lossy().into_owned();
            std::process::Command::new("kill").args(["-9", &id]).status()?;
        }
    }
    stage.no_problems()
}
