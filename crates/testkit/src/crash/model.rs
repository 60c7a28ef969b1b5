//! The answers of the model in crash tests: reasoning, text, and commands that append a line to a file.

use std::time::Duration;

use codewright_scripted::{Request, Script, Steps, Turn};
use serde_json::json;

/// The file to which each command appends its line.
pub(crate) const EFFECTS: &str = "effects.log";
/// The number of steps with tool calls for each prompt.
const CALLING_ROUNDS: usize = 2;

/// Returns the text of a prompt. The number identifies its commands, the dice choose them.
pub(crate) fn prompt(number: u64, dice: u64) -> String {
    format!("Please do task-{number}-{:x}.", dice & 0xffff)
}

pub(crate) fn script() -> Script {
    Script::new().title("Crash").default_turn(Turn::respond(answer))
}

/// Returns the line that a call appends. The id of a call contains the prompt, the round and the call.
pub(crate) fn mark(call_id: &str) -> Option<&str> {
    call_id.strip_prefix("call_").filter(|mark| mark.starts_with("task-"))
}

fn answer(request: &Request) -> Steps {
    let task = task(request.last_user());
    let dice = task.rsplit('-').next().and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0);
    let slow = dice % 7;
    if request.round >= CALLING_ROUNDS {
        return Turn::text(format!("Task {task} is done, and this is a sentence about it. ").repeat(4))
            .chunk_size(9)
            .chunk_delay_ms(slow);
    }
    let call = |number: usize| format!("{task}-{}-{number}", request.round);
    let nap = (dice >> 3) % 4;
    let steps = Turn::steps()
        .reasoning("Which command comes first is not important here.")
        .text("I run the commands of this round now, one next to the other.")
        .chunk_size(7)
        .chunk_delay_ms(slow);
    let steps = bash(steps, &call(0), &format!("echo {} >> {EFFECTS}", call(0)));
    let steps =
        bash(steps, &call(1), &format!("sleep 0.0{nap}; echo {} >> {EFFECTS}; sleep 0.{nap}", call(1)));
    match dice % 3 {
        0 => steps,
        1 => steps.delay(Duration::from_millis(slow * 10)),
        _ => bash(steps, &call(2), &format!("echo {} >> {EFFECTS}", call(2))),
    }
}

fn bash(steps: Steps, mark: &str, command: &str) -> Steps {
    steps
        .tool("bash", json!({"command": command, "description": "Appends a line"}))
        .id(format!("call_{mark}"))
}

/// Returns the `task-NUMBER-DICE` of a prompt.
fn task(prompt: &str) -> String {
    let (_, rest) = prompt.rsplit_once("task-").unwrap_or(("", "0-0"));
    let end = rest.find(|c: char| !c.is_ascii_hexdigit() && c != '-').unwrap_or(rest.len());
    format!("task-{}", &rest[..end])
}
