//! Separates an answer's text from reasoning and calls that some servers write into it.
//!
//! Reasoning may be in `<think>` tags at the start, and a call may be printed. Text is held back
//! only while it may become one of these; most answers show with their first character that it will
//! not.

use super::code::Code;
use crate::ToolSpec;
use crate::quirk::printed_calls::{self, Call};

const TAGS: &[(&str, &str)] = &[("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// A parsed piece of text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Thought(String),
    /// The text so far was a thought that only has a closing tag.
    WasThought,
    Call(Call),
}

/// The state between two pieces of text.
#[derive(Debug, Default)]
pub(super) struct Prose {
    stage: Stage,
    /// Text that may still become something else.
    held: String,
    /// The reasoning has started, so line breaks belong to it.
    has_thought: bool,
    /// The tools that a printed call may name; empty if calls are not printed.
    tools: Vec<ToolSpec>,
    /// A closing tag without an opening one ends a thought.
    expects_thought: bool,
    /// The thoughts came in a field of their own. A closing tag at the start of the text belongs to them.
    has_separate_thoughts: bool,
    /// Whether the text so far ends in Markdown code, where a tag is only mentioned.
    code: Code,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Begin,
    /// Between the tags with this index.
    Thought(usize),
    /// White space after the tags belongs to them. More tags may follow.
    AfterThought,
    /// Text at this point may be a printed call.
    Body,
    Text,
}

impl Prose {
    /// Sets the tools whose calls the model may print as text.
    pub(super) fn set_tools(&mut self, tools: &[ToolSpec]) {
        self.tools = tools.to_vec();
    }

    /// Expects thoughts of which only the closing tag is written, because the model's template contains the other one.
    pub(super) fn expect_thoughts(&mut self) {
        self.expects_thought = true;
    }

    /// The server sends thoughts in their own field, so tags are text.
    pub(super) fn thoughts_are_separate(&mut self) {
        self.expects_thought = false;
        self.has_separate_thoughts = true;
    }

    /// Returns whether this text, as it follows, is plain text.
    pub(super) fn is_plain(&self, text: &str) -> bool {
        self.stage == Stage::Text
            && (!self.expects_thought
                || (self.held.is_empty() && !text.contains('<') && !self.code.is_changed_by(text)))
    }

    /// Returns whether all further text without a tag is plain text.
    pub(super) fn may_repeat(&self) -> bool {
        self.stage == Stage::Text && self.held.is_empty()
    }

    /// Adds text.
    pub(super) fn push(&mut self, text: &str, out: &mut Vec<Piece>) {
        self.held.push_str(text);
        while self.step(out) {}
    }

    /// Releases held text before something else follows.
    pub(super) fn interrupt(&mut self, out: &mut Vec<Piece>) {
        self.release(out);
    }

    /// Releases held text at the end. Printed calls count only if there are no real ones.
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
        // White space after the tags is not part of the text, but the start of another tag is.
        let is_dropped = self.stage == Stage::AfterThought && held.trim_start().is_empty();
        if !is_dropped && !held.is_empty() {
            out.push(if is_thought { Piece::Thought(held) } else { Piece::Text(held) });
            if !is_thought {
                self.stage = Stage::Text;
            }
        }
    }

    /// Classifies held text. Returns false if more text is needed.
    fn step(&mut self, out: &mut Vec<Piece>) -> bool {
        match self.stage {
            Stage::Begin => self.begin(Stage::Body),
            Stage::Thought(tag) => self.thought(TAGS[tag].1, out),
            Stage::AfterThought => {
                self.held = self.held.trim_start().to_owned();
                !self.held.is_empty() && self.begin(Stage::Body)
            }
            Stage::Body => {
                let may_be = !self.tools.is_empty() && printed_calls::may_be(&self.held, &self.tools);
                if !may_be {
                    self.stage = Stage::Text;
                }
                !may_be
            }
            Stage::Text if self.expects_thought => self.watch(out),
            Stage::Text => {
                if !self.held.is_empty() {
                    out.push(Piece::Text(std::mem::take(&mut self.held)));
                }
                false
            }
        }
    }

    /// Looks for a tag at the start of the held text. Without a tag, the next stage is `next`.
    fn begin(&mut self, next: Stage) -> bool {
        let begin = self.held.trim_start();
        if let Some(tag) = TAGS.iter().position(|(open, _)| starts_with(begin, open)) {
            self.held = begin[TAGS[tag].0.len()..].to_owned();
            self.stage = Stage::Thought(tag);
            self.expects_thought = false;
            return true;
        }
        let is_closed = self.has_separate_thoughts && self.stage == Stage::Begin;
        if let Some((_, close)) = TAGS.iter().find(|(_, close)| is_closed && starts_with(begin, close)) {
            self.held = begin[close.len()..].to_owned();
            self.stage = Stage::AfterThought;
            return true;
        }
        let may_be = |(open, close): &(&str, &str)| {
            starts_with(open, begin) || (is_closed && starts_with(close, begin))
        };
        if TAGS.iter().any(may_be) {
            return false;
        }
        self.stage = next;
        true
    }

    /// Looks for a closing tag without an opening one in text. A tag in Markdown code is only mentioned.
    fn watch(&mut self, out: &mut Vec<Piece>) -> bool {
        let mut passed = 0;
        while let Some((at, tag, is_closing)) = next_tag(&self.held, passed) {
            self.code.scan(&self.held[passed..at]);
            if self.code.is_inside() {
                passed = at + tag.len();
                self.code.scan(tag);
                continue;
            }
            self.expects_thought = false;
            // The closing tag belongs to the opening one, so both are text.
            if !is_closing {
                return true;
            }
            let rest = self.held.split_off(at);
            let last = std::mem::replace(&mut self.held, rest[tag.len()..].to_owned());
            if !last.is_empty() {
                out.push(Piece::Text(last));
            }
            out.push(Piece::WasThought);
            self.stage = Stage::AfterThought;
            return true;
        }
        // The end of the text may be the start of a tag.
        let begins =
            |text: &str| TAGS.iter().any(|(open, close)| starts_with(open, text) || starts_with(close, text));
        let end = self.held.rfind('<').filter(|at| *at >= passed && begins(&self.held[*at..]));
        let kept = self.held.split_off(end.unwrap_or(self.held.len()));
        self.code.scan(&self.held[passed..]);
        let text = std::mem::replace(&mut self.held, kept);
        if !text.is_empty() {
            out.push(Piece::Text(text));
        }
        false
    }

    fn thought(&mut self, close: &str, out: &mut Vec<Piece>) -> bool {
        if !self.has_thought {
            self.held = self.held.trim_start_matches('\n').to_owned();
            self.has_thought = !self.held.is_empty();
        }
        if let Some(at) = find(&self.held, close) {
            let rest = self.held.split_off(at);
            let thought = std::mem::replace(&mut self.held, rest[close.len()..].to_owned());
            if !thought.trim().is_empty() {
                out.push(Piece::Thought(thought));
            }
            self.stage = Stage::AfterThought;
            return true;
        }
        // The end of the text may be the start of the tag.
        let ends = |length: &usize| ends_with(&self.held, &close[..*length]);
        let kept = (1..close.len()).rev().find(ends).unwrap_or(0);
        let kept = self.held.split_off(self.held.len() - kept);
        let thought = std::mem::replace(&mut self.held, kept);
        if !thought.is_empty() {
            out.push(Piece::Thought(thought));
        }
        false
    }
}

/// Reports whether a text starts with a tag in any case. Tags are ASCII.
fn starts_with(text: &str, tag: &str) -> bool {
    text.get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag))
}

fn ends_with(text: &str, tag: &str) -> bool {
    let tail = text.len().checked_sub(tag.len()).and_then(|at| text.get(at..));
    tail.is_some_and(|tail| tail.eq_ignore_ascii_case(tag))
}

fn find(text: &str, tag: &str) -> Option<usize> {
    text.match_indices('<').map(|(at, _)| at).find(|at| starts_with(&text[*at..], tag))
}

/// Returns the first tag from a position on, and whether it is a closing one.
fn next_tag(text: &str, from: usize) -> Option<(usize, &'static str, bool)> {
    let tag_at = |at: usize| {
        TAGS.iter().find_map(|(open, close)| {
            let is = |tag: &'static str| starts_with(&text[at..], tag).then_some(tag);
            is(open).map(|tag| (at, tag, false)).or_else(|| is(close).map(|tag| (at, tag, true)))
        })
    };
    text.match_indices('<').map(|(at, _)| at).filter(|at| *at >= from).find_map(tag_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// Parses `text` in pieces of `size` bytes and formats the result.
    fn read(text: &str, size: usize) -> String {
        read_with(Prose::default(), text, size)
    }

    fn read_with(mut prose: Prose, text: &str, size: usize) -> String {
        let mut out = Vec::new();
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
                Piece::WasThought => ('x', String::new()),
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
    fn text_is_separated_regardless_of_cuts() {
        for (text, expected) in [
            ("Hello", "|t:Hello"),
            (" \n Hello <think>no</think>", "|t: \n Hello <think>no</think>"),
            ("<think>\nhm </thin\n</think>\n\nHello", "|r:hm </thin\n|t:Hello"),
            ("\n<thinking>a</thinking>b", "|r:a|t:b"),
            ("<think>\n\n</think>\n\nHi", "|t:Hi"),
            ("<think>never ends", "|r:never ends"),
            ("<think>a</think>\n", "|r:a"),
            ("<THINK>a</Think>b", "|r:a|t:b"),
            ("<think>a</think>\n<think>b</think>\n\nc", "|r:ab|t:c"),
            ("<think>a</think>\n<thi", "|r:a|t:<thi"),
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
    fn a_lone_closing_tag_ends_a_thought() {
        for (text, expected) in [
            ("hm\n</think>\n\nFour.", "|t:hm\n|x:|t:Four."),
            ("hm</thinking>Four.", "|t:hm|x:|t:Four."),
            ("</think>Four.", "|x:|t:Four."),
            ("a < b </b> c", "|t:a < b </b> c"),
            ("Write `<think>` and `</think>`.", "|t:Write `<think>` and `</think>`."),
            ("<think>a</think>b </think> c", "|r:a|t:b </think> c"),
            ("a</think>b</think>c", "|t:a|x:|t:b</think>c"),
            (r#"hm</think>{"name":"read","arguments":{}}"#, "|t:hm|x:|c:read {}"),
            ("The tag `</think>` ends it.", "|t:The tag `</think>` ends it."),
            ("Tag `</think>`, hm</think>Four.", "|t:Tag `</think>`, hm|x:|t:Four."),
            ("about `a`</think>Four.", "|t:about `a`|x:|t:Four."),
            ("ends `</think>", "|t:ends `</think>"),
            ("never ends </thi", "|t:never ends </thi"),
            ("hm\n</THINK>Four.", "|t:hm\n|x:|t:Four."),
            ("It prints `</think>` as the tag.", "|t:It prints `</think>` as the tag."),
            ("It prints ``a ` </think>`` there.", "|t:It prints ``a ` </think>`` there."),
            ("A line:\n```\n</think>\n```\nEnd.", "|t:A line:\n```\n</think>\n```\nEnd."),
            ("~~~~xml\n~~~\n</think>\n~~~~\nEnd.", "|t:~~~~xml\n~~~\n</think>\n~~~~\nEnd."),
            ("So `</think>` it is.\n</think>\nFour.", "|t:So `</think>` it is.\n|x:|t:Four."),
            ("```\nx\n```\n</think>Four.", "|t:```\nx\n```\n|x:|t:Four."),
            ("One ` of\nthem.</think>Four.", "|t:One ` of\nthem.|x:|t:Four."),
            ("`<think>`?\n</think>Four.", "|t:`<think>`?\n|x:|t:Four."),
        ] {
            for size in [1, 2, 3, 5, 8, 100] {
                let prose = Prose { expects_thought: true, ..Prose::default() };
                assert_eq!(read_with(prose, text, size), expected, "{text} by {size}");
            }
        }
    }

    #[test]
    fn a_closing_tag_at_the_start_of_the_text_ends_separate_thoughts() {
        for (text, expected) in [
            ("</think>\n\nFour.", "|t:Four."),
            ("\n</thinking>Four.", "|t:Four."),
            ("Four </think>", "|t:Four </think>"),
            ("</thi", "|t:</thi"),
            ("</b>", "|t:</b>"),
        ] {
            for size in [1, 2, 3, 5, 8, 100] {
                let prose = Prose { has_separate_thoughts: true, ..Prose::default() };
                assert_eq!(read_with(prose, text, size), expected, "{text} by {size}");
            }
        }
        assert_eq!(read("</think>Four.", 100), "|t:</think>Four.");
    }

    #[test]
    fn a_printed_call_next_to_a_real_one_is_text() {
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
