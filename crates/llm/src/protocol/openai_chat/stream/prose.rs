//! The text of an answer, told apart from what some servers write into it.
//!
//! Thought may stand between `<think>` tags at the very beginning, and a call
//! may be printed instead of made. Text is held back only while it may still be
//! one of these; most answers show with their first letter that it is not.

use crate::ToolSpec;
use crate::quirk::printed_calls::{self, Call};

const TAGS: &[(&str, &str)] = &[("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// What became of text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Thought(String),
    Call(Call),
}

/// The state between two pieces of text.
#[derive(Debug, Default)]
pub(super) struct Prose {
    stage: Stage,
    /// Text that may still become something else.
    held: String,
    /// The thought has begun, so line ends belong to it.
    has_thought: bool,
    /// The tools that a printed call may name; none where calls are not printed.
    tools: Vec<ToolSpec>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Begin,
    /// Between the tags; the number says which.
    Thought(usize),
    /// White space after the tags belongs to them.
    AfterThought,
    /// Whatever begins here may be a printed call.
    Body,
    Text,
}

impl Prose {
    /// Calls of these tools may come printed.
    pub(super) fn set_tools(&mut self, tools: &[ToolSpec]) {
        self.tools = tools.to_vec();
    }

    /// Whether text is simply text from here on.
    pub(super) fn is_plain(&self) -> bool {
        self.stage == Stage::Text
    }

    /// Reads more text.
    pub(super) fn push(&mut self, text: &str, out: &mut Vec<Piece>) {
        self.held.push_str(text);
        while self.step(out) {}
    }

    /// Something else follows, so what is held is what it seems.
    pub(super) fn interrupt(&mut self, out: &mut Vec<Piece>) {
        self.release(out);
    }

    /// Nothing more will come; printed calls count only if no other was made.
    pub(super) fn close(&mut self, has_calls: bool, out: &mut Vec<Piece>) {
        if self.stage == Stage::Body
            && !has_calls
            && let Some(calls) = printed_calls::read(&self.held, &self.tools)
        {
            self.held.clear();
            out.extend(calls.into_iter().map(Piece::Call));
        }
        self.release(out);
    }

    fn release(&mut self, out: &mut Vec<Piece>) {
        let held = std::mem::take(&mut self.held);
        let is_thought = matches!(self.stage, Stage::Thought(_));
        if self.stage != Stage::AfterThought && !held.is_empty() {
            out.push(if is_thought { Piece::Thought(held) } else { Piece::Text(held) });
            if !is_thought {
                self.stage = Stage::Text;
            }
        }
    }

    /// Decides what can be decided about the held text; false if more is needed.
    fn step(&mut self, out: &mut Vec<Piece>) -> bool {
        match self.stage {
            Stage::Begin => {
                let begin = self.held.trim_start();
                if let Some(tag) = TAGS.iter().position(|(open, _)| begin.starts_with(open)) {
                    self.held = begin[TAGS[tag].0.len()..].to_owned();
                    self.stage = Stage::Thought(tag);
                    return true;
                }
                let may_be = TAGS.iter().any(|(open, _)| open.starts_with(begin));
                if !may_be {
                    self.stage = Stage::Body;
                }
                !may_be
            }
            Stage::Thought(tag) => self.thought(TAGS[tag].1, out),
            Stage::AfterThought => {
                self.held = self.held.trim_start().to_owned();
                if !self.held.is_empty() {
                    self.stage = Stage::Body;
                }
                !self.held.is_empty()
            }
            Stage::Body => {
                let may_be = !self.tools.is_empty() && printed_calls::may_be(&self.held, &self.tools);
                if !may_be {
                    self.stage = Stage::Text;
                }
                !may_be
            }
            Stage::Text => {
                if !self.held.is_empty() {
                    out.push(Piece::Text(std::mem::take(&mut self.held)));
                }
                false
            }
        }
    }

    fn thought(&mut self, close: &str, out: &mut Vec<Piece>) -> bool {
        if !self.has_thought {
            self.held = self.held.trim_start_matches('\n').to_owned();
            self.has_thought = !self.held.is_empty();
        }
        if let Some(at) = self.held.find(close) {
            let rest = self.held.split_off(at);
            let thought = std::mem::replace(&mut self.held, rest[close.len()..].to_owned());
            if !thought.trim().is_empty() {
                out.push(Piece::Thought(thought));
            }
            self.stage = Stage::AfterThought;
            return true;
        }
        // The end of the text may be the beginning of the tag.
        let kept = (1..close.len()).rev().find(|length| self.held.ends_with(&close[..*length])).unwrap_or(0);
        let kept = self.held.split_off(self.held.len() - kept);
        let thought = std::mem::replace(&mut self.held, kept);
        if !thought.is_empty() {
            out.push(Piece::Thought(thought));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// Reads `text` in pieces of `size` bytes, and writes down what it becomes.
    fn read(text: &str, size: usize) -> String {
        let (mut prose, mut out) = (Prose::default(), Vec::new());
        prose.set_tools(&[ToolSpec {
            name: "read".into(),
            description: String::new(),
            parameters: Value::Null,
        }]);
        for piece in text.as_bytes().chunks(size) {
            prose.push(std::str::from_utf8(piece).unwrap(), &mut out);
        }
        prose.close(false, &mut out);
        let mut whole = String::new();
        let mut last = ' ';
        for piece in out {
            let (mark, text) = match piece {
                Piece::Text(text) => ('t', text),
                Piece::Thought(text) => ('r', text),
                Piece::Call((name, arguments)) => ('c', format!("{name} {arguments}")),
            };
            if mark != last {
                whole.push_str(&format!("|{mark}:"));
                last = mark;
            }
            whole.push_str(&text);
        }
        whole
    }

    #[test]
    fn text_is_told_apart_however_it_is_cut() {
        for (text, expected) in [
            ("Hello", "|t:Hello"),
            (" \n Hello <think>no</think>", "|t: \n Hello <think>no</think>"),
            ("<think>\nhm </thin\n</think>\n\nHello", "|r:hm </thin\n|t:Hello"),
            ("\n<thinking>a</thinking>b", "|r:a|t:b"),
            ("<think>\n\n</think>\n\nHi", "|t:Hi"),
            ("<think>never ends", "|r:never ends"),
            ("<think>a</think>\n", "|r:a"),
            ("<thin", "|t:<thin"),
            ("<things>", "|t:<things>"),
            ("  ", "|t:  "),
            (r#"{"name":"read","arguments":{"a":1}}"#, r#"|c:read {"a":1}"#),
            (r#"<think>x</think><tool_call>{"name":"read","arguments":{}}</tool_call>"#, "|r:x|c:read {}"),
            (r#"{"name":"read","arguments":"#, r#"|t:{"name":"read","arguments":"#),
            (r#"{"name":"mine"}"#, r#"|t:{"name":"mine"}"#),
        ] {
            for size in [1, 2, 3, 5, 8, 100] {
                assert_eq!(read(text, size), expected, "{text} by {size}");
            }
        }
    }

    #[test]
    fn a_printed_call_beside_a_real_one_is_text() {
        let (mut prose, mut out) = (Prose::default(), Vec::new());
        prose.set_tools(&[ToolSpec {
            name: "read".into(),
            description: String::new(),
            parameters: Value::Null,
        }]);
        let text = r#"{"name":"read","arguments":{}}"#;
        prose.push(text, &mut out);
        prose.interrupt(&mut out);
        prose.close(true, &mut out);
        assert_eq!(out, [Piece::Text(text.into())]);
    }
}
