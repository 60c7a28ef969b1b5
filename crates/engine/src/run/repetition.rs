//! Detects a model that repeats the same call.
//!
//! Calls are the same if their tools and their arguments, as JSON values, are equal. Only consecutive calls count: a
//! different call in between starts the count again. The calls of earlier steps count if they also had the same result,
//! because a call that waits for a change is usually repeated until it sees one.

use codewright_proto::{Message, MessageWithParts, PartBody, ToolPart, ToolState};
use serde_json::Value;

/// The number of equal calls before one of the same step that needs permission.
const IN_STEP: usize = 2;
/// The number of equal calls before one of the same turn that needs permission.
const IN_TURN: usize = 9;

/// The last call of a turn and how often it was repeated.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Repetition {
    last: Option<(String, Value)>,
    /// The number of equal calls in this step.
    in_step: usize,
    /// The number of equal calls in this turn, including this step.
    in_turn: usize,
}

impl Repetition {
    /// Returns the state before the first call of the next step.
    pub(crate) fn of(transcript: &[MessageWithParts]) -> Self {
        let turn =
            transcript.iter().rev().take_while(|message| matches!(message.info, Message::Assistant(_)));
        let mut calls =
            turn.flat_map(|message| message.parts.iter().rev()).filter_map(|part| match &part.body {
                PartBody::Tool(call) => Some(call),
                _ => None,
            });
        let Some(last) = calls.next() else { return Self::default() };
        let Some((input, _)) = arguments_and_result(&last.state) else { return Self::default() };
        let equal = calls.take_while(|call| is_equal(call, last)).take(IN_TURN).count();
        Self { last: Some((last.tool.clone(), input.clone())), in_step: 0, in_turn: 1 + equal }
    }

    /// Adds a call. Returns whether it needs permission because it repeats the calls before it.
    pub(crate) fn add(&mut self, tool: &str, input: Value) -> bool {
        if !self.last.as_ref().is_some_and(|(name, last)| name == tool && *last == input) {
            *self = Self { last: Some((tool.to_owned(), input)), in_step: 0, in_turn: 0 };
        }
        let repeats = self.in_step >= IN_STEP || self.in_turn >= IN_TURN;
        self.in_step += 1;
        self.in_turn += 1;
        repeats
    }
}

/// Reports whether two calls have the same tool, arguments and result.
fn is_equal(one: &ToolPart, other: &ToolPart) -> bool {
    let ended = (arguments_and_result(&one.state), arguments_and_result(&other.state));
    one.tool == other.tool && matches!(ended, (Some(one), Some(other)) if one == other)
}

/// Returns the arguments of a call that has ended, and its output or error.
fn arguments_and_result(state: &ToolState) -> Option<(&Value, &str)> {
    match state {
        ToolState::Pending { .. } | ToolState::Running { .. } => None,
        ToolState::Completed { input, output, .. } => Some((input, output)),
        ToolState::Error { input, error, .. } => Some((input, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Adds the calls of a step after the calls of earlier steps. A call is its arguments; after `=` stands its result.
    /// Returns the calls that need permission.
    #[track_caller]
    fn check(earlier: &[&str], step: &[&str], expected: &[bool]) {
        let part = |n: usize, call: &str| {
            let (input, output) = call.split_once('=').unwrap_or((call, "ok"));
            json!({"info": {
                "id": format!("msg_{n}"), "sessionID": "ses_1", "role": "assistant", "time": {"created": 1},
                "parentID": "msg_0", "modelID": "m", "providerID": "p", "mode": "build", "agent": "build",
                "path": {"cwd": "/", "root": "/"}, "cost": 0,
                "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
            }, "parts": [{
                "id": format!("prt_{n}"), "sessionID": "ses_1", "messageID": format!("msg_{n}"), "type": "tool",
                "tool": "bash", "callID": "c", "state": {
                    "status": "completed", "input": value(input), "output": output, "title": "", "metadata": {},
                    "time": {"start": 1, "end": 2},
                },
            }]})
        };
        let transcript = earlier.iter().enumerate().map(|(n, call)| part(n, call));
        let transcript: Vec<MessageWithParts> = serde_json::from_value(transcript.collect()).unwrap();
        let mut repetition = Repetition::of(&transcript);
        let found: Vec<_> = step.iter().map(|call| repetition.add("bash", value(call))).collect();
        assert_eq!(found, expected, "{earlier:?} {step:?}");
    }

    fn value(text: &str) -> Value {
        serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
    }

    #[test]
    fn the_third_equal_call_of_a_step_needs_permission() {
        check(&[], &["a", "a", "a", "a"], &[false, false, true, true]);
        check(&[], &["a", "b", "a", "a"], &[false; 4]);
    }

    #[test]
    fn arguments_are_compared_as_values() {
        check(
            &[],
            &[r#"{"x":1,"y":2}"#, r#"{ "y": 2, "x": 1 }"#, r#"{"x":1, "y":2}"#],
            &[false, false, true],
        );
    }

    #[test]
    fn the_tenth_equal_call_of_a_turn_needs_permission() {
        check(&["a"; 8], &["a", "a"], &[false, true]);
        check(&["a"; 9], &["a"], &[true]);
        check(&["a"; 20], &["a", "b", "a"], &[true, false, false]);
    }

    #[test]
    fn a_different_call_or_result_starts_the_count_again() {
        let reset = ["a", "a", "a", "a", "b", "a", "a", "a", "a", "a", "a", "a"];
        check(&reset, &["a", "a"], &[false, false]);
        check(&["a=1", "a=2", "a", "a", "a", "a", "a", "a", "a", "a"], &["a", "a"], &[false, true]);
    }
}
