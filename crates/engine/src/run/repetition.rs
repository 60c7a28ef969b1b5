//! Detects a model that repeats the same calls.
//!
//! Calls are the same if their tools and their arguments, as JSON values, are equal. A call is repeated if it equals the
//! one before it, or if it continues a cycle of a few calls, such as A, B, A, B. Any other call starts the count again. The
//! calls of earlier steps count if they also had the same result, because a call that waits for a change is usually
//! repeated until it sees one.

use std::collections::VecDeque;

use codewright_proto::{Message, MessageWithParts, PartBody, ToolPart, ToolState};
use serde_json::Value;

/// The number of equal calls before one of the same step that needs permission.
const IN_STEP: usize = 2;
/// The number of equal calls before one of the same turn that needs permission.
const IN_TURN: usize = 9;
/// The number of calls of the longest cycle that is noticed.
const MAX_CYCLE: usize = 3;
/// The number of complete rounds of a cycle before a call that continues it and needs permission.
const ROUNDS: usize = 5;

/// The last calls of a turn and how often they were repeated.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Repetition {
    /// The last calls, the newest first.
    last: VecDeque<(String, Value)>,
    /// The number of calls at the end of this step that are equal.
    in_step: usize,
    /// For each length of a cycle: the number of calls at the end of the turn that equal the one a cycle before them.
    in_cycle: [usize; MAX_CYCLE],
}

impl Repetition {
    /// Returns the state before the first call of the next step.
    pub(crate) fn of(transcript: &[MessageWithParts]) -> Self {
        let turn =
            transcript.iter().rev().take_while(|message| matches!(message.info, Message::Assistant(_)));
        let calls = turn.flat_map(|message| message.parts.iter().rev()).filter_map(|part| match &part.body {
            PartBody::Tool(call) => Some(call),
            _ => None,
        });
        let calls: Vec<_> = calls.take((IN_TURN + 1).max((ROUNDS + 1) * MAX_CYCLE)).collect();
        let ended = calls.iter().map_while(|call| Some((*call, arguments_and_result(&call.state)?.0)));
        let last = ended.take(MAX_CYCLE).map(|(call, input)| (call.tool.clone(), input.clone())).collect();
        let in_cycle = std::array::from_fn(|at| {
            let before = calls.iter().skip(at + 1);
            calls.iter().zip(before).take_while(|(call, before)| is_equal(call, before)).count()
        });
        Self { last, in_step: 0, in_cycle }
    }

    /// Adds a call. Returns whether it needs permission because it repeats the calls before it.
    pub(crate) fn add(&mut self, tool: &str, input: Value) -> bool {
        let mut repeats = false;
        for (at, count) in self.in_cycle.iter_mut().enumerate() {
            let length = at + 1;
            let is_same = self.last.get(at).is_some_and(|(name, last)| name == tool && *last == input);
            let needed = if length == 1 { IN_TURN } else { ROUNDS * length };
            // The calls of the first round have no counterpart.
            repeats |= is_same && *count + length >= needed;
            *count = if is_same { *count + 1 } else { 0 };
        }
        // The first count is zero if the call differs from the one before it.
        self.in_step = if self.in_cycle[0] == 0 { 0 } else { self.in_step };
        repeats |= self.in_step >= IN_STEP;
        self.in_step += 1;
        self.last.truncate(MAX_CYCLE - 1);
        self.last.push_front((tool.to_owned(), input));
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
    fn a_call_that_continues_a_cycle_of_five_rounds_needs_permission() {
        let two = ["a", "b"].repeat(5);
        check(&two, &["a", "b", "a"], &[true, true, true]);
        check(&two[1..], &["a", "b"], &[false, true]);
        check(&two, &["b"], &[false]);
        check(&two, &["c", "a", "b"], &[false; 3]);
        let three = ["a", "b", "c"].repeat(5);
        check(&three, &["a"], &[true]);
        check(&three[1..], &["a", "b"], &[false, true]);
        check(&["a", "b", "c", "d"].repeat(8), &["a"], &[false]);
        // Within a step, where the results are not known yet.
        check(&[], &["a", "b", "a", "b", "a", "b", "a", "b", "a", "b", "a"], &{
            let mut expected = [false; 11];
            expected[10] = true;
            expected
        });
    }

    #[test]
    fn a_cycle_whose_results_change_is_no_repetition() {
        let waiting =
            ["wait", "look=1", "wait", "look=2", "wait", "look=3", "wait", "look=4", "wait", "look=5"];
        check(&waiting, &["wait"], &[false]);
        check(&waiting.repeat(3), &["wait"], &[false]);
    }

    #[test]
    fn a_different_call_or_result_starts_the_count_again() {
        let reset = ["a", "a", "a", "a", "b", "a", "a", "a", "a", "a", "a", "a"];
        check(&reset, &["a", "a"], &[false, false]);
        check(&["a=1", "a=2", "a", "a", "a", "a", "a", "a", "a", "a"], &["a", "a"], &[false, true]);
    }
}
