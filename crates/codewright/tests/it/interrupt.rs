//! Interrupting a run: the turn stops, its child processes end, and the session can be continued.

use std::time::{Duration, Instant};

use anyhow::Result;
use codewright_testkit::{Finished, Running, Script, Turn};
use serde_json::json;

use crate::support::{DEADLINE, Stage, check_code, is_running, wait_until};

/// A time limit for a loaded machine, before a user would press again.
const PROMPTLY: Duration = Duration::from_secs(10);

/// Interrupts a run and expects it to end soon.
#[track_caller]
fn interrupted(run: Running) -> Finished {
    let pressed = Instant::now();
    run.interrupt().unwrap();
    let done = run.finish().unwrap();
    check_code(&done, 130);
    assert!(pressed.elapsed() < PROMPTLY, "{:?}", pressed.elapsed());
    done
}

/// Checks that the stored answer was aborted and that the session can be continued.
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
fn one_interrupt_stops_an_answer() -> Result<()> {
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
fn one_interrupt_stops_the_wait_for_an_answer() -> Result<()> {
    let stage = Stage::plain(Script::new().turn(Turn::Silent).text("Back again."))?;
    let run = stage.program(["run", "hi"]).start()?;
    stage.server.wait_for_request(1, DEADLINE)?;
    interrupted(run);
    check_aborted_and_usable(&stage);
    Ok(())
}

#[test]
fn one_interrupt_stops_the_wait_for_a_retry() -> Result<()> {
    let busy = Turn::http_error(429).header("retry-after", "300");
    let stage = Stage::plain(Script::new().turn(busy).text("Back again."))?;
    let run = stage.program(["run", "hi"]).start()?;
    // Time passes between the answer of the provider and the line.
    let waiting = ["300", "299", "298"].map(|seconds| format!("retrying in {seconds} s"));
    wait_until("the notice", || waiting.iter().any(|line| run.so_far().contains(line)))?;
    interrupted(run);
    check_aborted_and_usable(&stage);
    Ok(())
}

#[test]
fn one_interrupt_ends_a_command_and_its_children() -> Result<()> {
    // A unique sleep time; the process group, a child, and one that ignores signals.
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
fn a_second_interrupt_exits_immediately() -> Result<()> {
    // Ignores signals, so that the first interrupt takes some time.
    let own = format!("6005.{}", std::process::id());
    let command = format!("trap '' TERM INT HUP; sleep {own}; sleep {own}");
    let script = Script::new().tool("bash", json!({"command": command})).text("Back again.");
    let stage = Stage::plain(script)?;
    let run = stage.program(["run", "hi"]).start()?;
    wait_until("the command", || is_running(&own))?;
    run.interrupt()?;
    // If the first interrupt was enough, the process has ended already.
    run.interrupt().unwrap_or_default();
    check_code(&run.finish()?, 130);
    wait_until("the end of the children", || !is_running(&own))?;
    check_aborted_and_usable(&stage);
    Ok(())
}

#[test]
fn a_termination_signal_is_like_an_interrupt() -> Result<()> {
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
fn the_session_of_a_killed_run_can_be_continued() -> Result<()> {
    let own = format!("6003.{}", std::process::id());
    let call = Turn::text("Before.").tool("bash", json!({"command": format!("sleep {own}")}));
    let stage = Stage::plain(Script::new().turn(call).text("Back again."))?;
    let run = stage.program(["run", "hi"]).start()?;
    wait_until("the command", || is_running(&own))?;
    // Dropping kills the process immediately.
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
