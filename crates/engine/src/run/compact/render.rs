//! Renders a conversation as text for the model that summarizes it.
//!
//! Text can be cut to any size, and every provider accepts it, unlike calls of tools that the request does not offer.
//! If it does not fit, the middle is left out: the beginning contains the task, and the end the state of the work.

use codewright_proto::{Message, MessageWithParts, PartBody, ToolState};
use codewright_tools::tags::neutralize;

/// The bytes of one call's arguments.
const MAX_INPUT: usize = 2_000;
/// The bytes of one call's result.
const MAX_OUTPUT: usize = 2_000;
/// The bytes of one text.
const MAX_TEXT: usize = 50_000;

/// Renders a conversation in about `budget` bytes at most.
pub(super) fn render(messages: &[&MessageWithParts], budget: usize) -> String {
    let blocks: Vec<_> = messages.iter().filter_map(|message| block(message)).collect();
    let total: usize = blocks.iter().map(String::len).sum();
    if total <= budget {
        return blocks.join("\n");
    }
    let Some((first, rest)) = blocks.split_first() else { return String::new() };
    let first = cut(first, budget / 4);
    let mut left = budget.saturating_sub(first.len());
    let mut last: Vec<String> = Vec::new();
    for block in rest.iter().rev() {
        if block.len() > left {
            // A part of the newest message is better than an empty text.
            if last.is_empty() {
                last.push(cut(block, left));
            }
            break;
        }
        left -= block.len();
        last.push(block.clone());
    }
    let missing = rest.len() - last.len();
    let gap = if missing == 0 { String::new() } else { format!("({missing} messages omitted)\n") };
    last.push(gap);
    last.push(first);
    last.reverse();
    last.join("\n")
}

fn block(message: &MessageWithParts) -> Option<String> {
    let (speaker, is_summary) = match &message.info {
        Message::User(_) => ("User", false),
        Message::Assistant(info) => ("Assistant", info.summary == Some(true)),
    };
    let lines: Vec<_> = message.parts.iter().filter_map(|part| line(&part.body)).collect();
    if lines.is_empty() {
        return None;
    }
    let speaker = if is_summary { "Summary of earlier messages" } else { speaker };
    Some(format!("[{speaker}]\n{}\n", lines.join("\n")))
}

fn line(body: &PartBody) -> Option<String> {
    match body {
        PartBody::Text(text) if text.ignored == Some(true) || text.text.trim().is_empty() => None,
        PartBody::Text(text) => Some(cut(&text.text, MAX_TEXT)),
        PartBody::File { mime, filename, url, .. } => {
            let name = filename.as_deref().unwrap_or_else(|| if url.starts_with("data:") { "" } else { url });
            Some(format!("(attached: {} {mime})", cut(name, MAX_INPUT)))
        }
        PartBody::Tool(call) => Some(match &call.state {
            ToolState::Pending { .. } | ToolState::Running { .. } => {
                format!("(call of {}, interrupted)", call.tool)
            }
            ToolState::Completed { input, output, time, .. } => {
                let result = if time.compacted.is_some() {
                    "(cleared)".to_owned()
                } else {
                    cut(&neutralize(output), MAX_OUTPUT)
                };
                format!("(call of {}: {})\n{result}", call.tool, cut(&input.to_string(), MAX_INPUT))
            }
            ToolState::Error { input, error, .. } => {
                let input = cut(&input.to_string(), MAX_INPUT);
                format!("(call of {}: {input}; failed)\n{}", call.tool, cut(&neutralize(error), MAX_OUTPUT))
            }
        }),
        PartBody::Subtask { description, agent, .. } => {
            Some(format!("(delegated to {agent}: {description})"))
        }
        PartBody::Reasoning { .. }
        | PartBody::Agent { .. }
        | PartBody::StepStart { .. }
        | PartBody::StepFinish(_)
        | PartBody::Snapshot { .. }
        | PartBody::Patch { .. }
        | PartBody::Retry { .. }
        | PartBody::Compaction { .. } => None,
    }
}

/// Returns the text, or its beginning and end with a note about the bytes that are left out.
fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut head = limit * 2 / 3;
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    let mut tail = text.len() - limit / 3;
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    format!("{}\n({} bytes omitted)\n{}", &text[..head], tail - head, &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn message(role: &str, parts: &[Value]) -> MessageWithParts {
        let parts: Vec<_> = parts
            .iter()
            .map(|body| {
                let mut part = json!({"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1"});
                part.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
                part
            })
            .collect();
        let model = json!({"providerID": "p", "modelID": "m"});
        let info = json!({
            "role": role, "id": "msg_1", "sessionID": "ses_1", "time": {"created": 1}, "agent": "build",
            "model": model, "parentID": "msg_0", "modelID": "m", "providerID": "p", "mode": "build",
            "path": {"cwd": "/", "root": "/"}, "cost": 0.0,
            "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
        });
        serde_json::from_value(json!({"info": info, "parts": parts})).unwrap()
    }

    fn says(role: &str, text: &str) -> MessageWithParts {
        message(role, &[json!({"type": "text", "text": text})])
    }

    #[test]
    fn messages_and_calls_are_rendered_in_order() {
        let call = json!({"type": "tool", "callID": "c", "tool": "read", "state": {
            "status": "completed", "input": {"filePath": "a"}, "output": "content", "title": "", "metadata": {},
            "time": {"start": 1, "end": 2},
        }});
        let file = json!({"type": "file", "mime": "image/png", "filename": "x.png", "url": "data:image/png;base64,AAAA"});
        let thought = json!({"type": "reasoning", "text": "hidden", "time": {"start": 1}});
        let text = json!({"type": "text", "text": "look"});
        let (question, answer) = (message("user", &[text, file]), message("assistant", &[thought, call]));
        let expected = "[User]\nlook\n(attached: x.png image/png)\n\n[Assistant]\n(call of read: \
                        {\"filePath\":\"a\"})\ncontent\n";
        assert_eq!(render(&[&question, &answer], 10_000), expected);
    }

    #[test]
    fn the_middle_is_left_out_first() {
        let messages: Vec<_> =
            (0..20).map(|n| says("user", &format!("number {n} {}", "x".repeat(80)))).collect();
        let text = render(&messages.iter().collect::<Vec<_>>(), 500);
        assert!(text.len() < 600, "{}", text.len());
        for expected in ["number 0 ", "number 19 ", "messages omitted"] {
            assert!(text.contains(expected), "{text}");
        }
        assert!(!text.contains("number 9 "));
    }

    #[test]
    fn one_huge_message_is_cut_between_characters() {
        let (first, last) = (says("user", "wish"), says("assistant", &"\u{e4}".repeat(40_000)));
        let text = render(&[&first, &last], 3_001);
        assert!(text.len() < 3_300 && text.contains("wish") && text.contains("bytes omitted"));
        assert_eq!(render(&[], 10), "");
        assert!(render(&[&last], 400).len() < 500);
    }
}
