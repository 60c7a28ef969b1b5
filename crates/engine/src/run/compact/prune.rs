//! Selects old outputs that are left out of later requests.

use codewright_proto::{Message, MessageWithParts, Part, PartBody, ToolPart, ToolState};

/// The most recent outputs, which are always sent, in tokens.
const PROTECTED: u64 = 40_000;
/// The least saving that justifies the loss of a provider's cache, in tokens.
const MINIMUM: u64 = 20_000;
/// Tools whose outputs are kept because they apply to the whole session.
const PROTECTED_TOOLS: [&str; 1] = ["skill"];

/// The outputs to clear, and the tokens that this frees.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Prunable {
    /// The parts, marked as cleared.
    pub(super) parts: Vec<Part>,
    pub(super) tokens: u64,
}

/// Returns the outputs that can be cleared.
pub(super) fn prunable(transcript: &[MessageWithParts], now: u64) -> Prunable {
    let mut seen = 0;
    let mut found = Prunable::default();
    'all: for message in transcript.iter().rev() {
        // A summary replaces everything before it.
        if matches!(&message.info, Message::Assistant(info) if info.summary == Some(true)) {
            break;
        }
        for part in message.parts.iter().rev() {
            let PartBody::Tool(call) = &part.body else { continue };
            let ToolState::Completed { output, time, .. } = &call.state else { continue };
            if PROTECTED_TOOLS.contains(&call.tool.as_str()) {
                continue;
            }
            // The earlier outputs were checked when this one was cleared.
            if time.compacted.is_some() {
                break 'all;
            }
            let tokens = estimate(output);
            seen += tokens;
            if seen > PROTECTED {
                found.tokens += tokens;
                found.parts.push(cleared(part, call, now));
            }
        }
    }
    if found.tokens < MINIMUM { Prunable::default() } else { found }
}

fn cleared(part: &Part, call: &ToolPart, now: u64) -> Part {
    let mut call = call.clone();
    if let ToolState::Completed { time, .. } = &mut call.state {
        time.compacted = Some(now);
    }
    Part { body: PartBody::Tool(call), ..part.clone() }
}

/// Estimates the tokens of a text.
fn estimate(text: &str) -> u64 {
    (text.len() as u64 + 2) / 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Calls in short form: the tool, a colon, the thousands of tokens of the output; `!` if it is cleared.
    fn talk(calls: &str) -> Vec<MessageWithParts> {
        let parts: Vec<_> = calls
            .split_whitespace()
            .enumerate()
            .map(|(n, call)| {
                let (tool, size) = call.split_once(':').unwrap();
                let cleared = size.ends_with('!');
                let size: usize = size.trim_end_matches('!').parse().unwrap();
                let mut time = json!({"start": 1, "end": 2});
                if cleared {
                    time["compacted"] = json!(3);
                }
                json!({
                    "id": format!("prt_{n}"), "sessionID": "ses_1", "messageID": "msg_1", "type": "tool",
                    "callID": "c", "tool": tool, "state": {
                        "status": "completed", "input": {}, "output": "x".repeat(size * 4000), "title": "",
                        "metadata": {}, "time": time,
                    },
                })
            })
            .collect();
        let info = json!({
            "role": "assistant", "id": "msg_1", "sessionID": "ses_1", "time": {"created": 1}, "parentID": "msg_0",
            "modelID": "m", "providerID": "p", "mode": "build", "agent": "build", "path": {"cwd": "/", "root": "/"},
            "cost": 0.0, "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
        });
        vec![serde_json::from_value(json!({"info": info, "parts": parts})).unwrap()]
    }

    #[track_caller]
    fn check(calls: &str, expected: &[&str], tokens: u64) {
        let found = prunable(&talk(calls), 9);
        let ids: Vec<_> = found.parts.iter().map(|part| part.id.as_str()).collect();
        assert_eq!((ids.as_slice(), found.tokens), (expected, tokens * 1000));
        for part in &found.parts {
            let PartBody::Tool(call) = &part.body else { panic!("a call") };
            assert!(matches!(&call.state, ToolState::Completed { time, .. } if time.compacted == Some(9)));
        }
    }

    #[test]
    fn the_last_forty_thousand_tokens_are_kept() {
        check("read:20 read:20 read:20", &["prt_0"], 20);
        check("read:20 read:40", &["prt_0"], 20);
        check("read:30 read:40", &["prt_0"], 30);
        check("read:40", &[], 0);
    }

    #[test]
    fn a_small_saving_is_not_worth_it() {
        check("read:19 read:40", &[], 0);
        check("read:19 read:1 read:40", &["prt_1", "prt_0"], 20);
    }

    #[test]
    fn some_outputs_are_kept_and_cleared_ones_are_not_cleared_again() {
        check("skill:50 read:20 read:40", &["prt_1"], 20);
        check("read:90 read:1! read:20 read:40", &["prt_2"], 20);
    }
}
