//! Splits a growing Markdown text into blocks.
//!
//! A block ends at a blank line before an unindented line, at a code fence, or when it is long. Only the
//! last block can change. Each line is read once, so the cost is linear in the length of the text, and
//! drawing costs as much as the visible blocks.

use std::ops::Range;

use crate::highlight::{self, Inside};

/// The length after which a block is cut.
const MAX_BLOCK_BYTES: usize = 8 * 1024;
/// The number of lines of code in a block.
const CODE_LINES: usize = 40;

/// The kind of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Markdown, except code between fences.
    Prose,
    /// Lines between fences.
    Code {
        /// The language of the fence.
        language: Box<str>,
        /// The state of the highlighter at the first line.
        inside: Inside,
    },
}

/// One block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// The bytes of the text.
    pub(crate) range: Range<usize>,
    pub(crate) kind: Kind,
    /// Whether it continues the previous block without a blank line.
    pub(crate) continues: bool,
}

#[derive(Debug, Clone)]
struct Fence {
    mark: char,
    length: usize,
}

/// The blocks of a text.
#[derive(Debug, Clone)]
pub(crate) struct Blocks {
    done: Vec<Block>,
    open: Block,
    /// The fence of the open code block.
    fence: Option<Fence>,
    /// The fence of code inside a list, which is part of the list.
    inner: Option<Fence>,
    lines: usize,
    blank: bool,
    has_text: bool,
    /// The start of the unfinished line.
    line: usize,
    /// The unfinished line has no newline before this position.
    scanned: usize,
}

impl Default for Blocks {
    fn default() -> Self {
        Self {
            done: Vec::new(),
            open: Block { range: 0..0, kind: Kind::Prose, continues: false },
            fence: None,
            inner: None,
            lines: 0,
            blank: false,
            has_text: false,
            line: 0,
            scanned: 0,
        }
    }
}

impl Blocks {
    /// Returns the blocks of a complete text.
    #[cfg(test)]
    pub(crate) fn of(text: &str) -> Self {
        let mut blocks = Self::default();
        blocks.extend(text);
        blocks
    }

    /// Reads the text that was added.
    pub(crate) fn extend(&mut self, text: &str) {
        while let Some(newline) = text[self.scanned..].find('\n') {
            let end = self.scanned + newline + 1;
            let line = &text[self.line..end];
            self.read_line(text, line);
            self.line = end;
            self.scanned = end;
        }
        self.scanned = text.len();
        self.open.range.end = text.len();
        self.cut_long_line(text);
        // The start of a closing fence is not part of the code.
        let rest = &text[self.line..];
        if self.fence.as_ref().is_some_and(|fence| rest.trim().chars().all(|c| c == fence.mark)) {
            self.open.range.end = self.line;
        }
    }

    /// Returns the number of blocks.
    pub(crate) fn len(&self) -> usize {
        self.done.len() + usize::from(self.has_open())
    }

    /// Returns a block.
    pub(crate) fn get(&self, at: usize) -> Option<&Block> {
        self.done.get(at).or_else(|| (at == self.done.len() && self.has_open()).then_some(&self.open))
    }

    /// Whether a block can no longer change.
    pub(crate) fn is_done(&self, at: usize) -> bool {
        at < self.done.len()
    }

    fn has_open(&self) -> bool {
        self.has_text || self.line < self.open.range.end
    }

    fn read_line(&mut self, text: &str, line: &str) {
        let start = self.line;
        let end = start + line.len();
        if self.fence.is_some() {
            return self.read_code_line(text, line);
        }
        let indent = line.len() - line.trim_start().len();
        let trimmed = line.trim();
        if trimmed.is_empty() {
            self.blank = true;
            return;
        }
        if let Some(inner) = &self.inner {
            if closes(trimmed, inner) {
                self.inner = None;
            }
        } else if let Some((fence, language)) = opens(trimmed) {
            if indent == 0 || !self.has_text {
                self.close(start);
                self.begin(end, Kind::Code { language: language.into(), inside: Inside::Code }, false);
                self.fence = Some(fence);
                return;
            }
            self.inner = Some(fence);
        } else if self.blank && indent == 0 && self.has_text {
            self.close(start);
            self.begin(start, Kind::Prose, false);
        } else if end - self.open.range.start > MAX_BLOCK_BYTES && self.has_text {
            self.close(start);
            self.begin(start, Kind::Prose, true);
        }
        self.blank = false;
        self.has_text = true;
    }

    fn read_code_line(&mut self, text: &str, line: &str) {
        let start = self.line;
        let end = start + line.len();
        if self.fence.as_ref().is_some_and(|fence| closes(line.trim(), fence)) {
            self.close(start);
            self.begin(end, Kind::Prose, false);
            self.fence = None;
            return;
        }
        self.lines += 1;
        self.has_text = true;
        if self.lines >= CODE_LINES || end - self.open.range.start > MAX_BLOCK_BYTES {
            let kind = self.code_after(text, end);
            self.close(end);
            self.begin(end, kind, true);
        }
    }

    /// Returns the kind of the block that continues the open block.
    fn code_after(&self, text: &str, end: usize) -> Kind {
        match &self.open.kind {
            Kind::Prose => Kind::Prose,
            Kind::Code { language, inside } => {
                let inside = highlight::after(language, *inside, &text[self.open.range.start..end]);
                Kind::Code { language: language.clone(), inside }
            }
        }
    }

    fn close(&mut self, end: usize) {
        if self.has_text {
            let mut block = self.open.clone();
            block.range.end = end;
            self.done.push(block);
        }
    }

    fn begin(&mut self, start: usize, kind: Kind, continues: bool) {
        self.open = Block { range: start..start, kind, continues };
        self.lines = 0;
        self.blank = false;
        self.inner = None;
        self.has_text = false;
    }

    /// Cuts a very long line, because an unfinished line is read again with each addition.
    fn cut_long_line(&mut self, text: &str) {
        while text.len() - self.open.range.start > 2 * MAX_BLOCK_BYTES {
            let from = self.open.range.start.max(self.line);
            let mut cut = (from + MAX_BLOCK_BYTES).min(text.len());
            while !text.is_char_boundary(cut) {
                cut -= 1;
            }
            if let Some(blank) = text[from..cut].rfind(' ').filter(|blank| *blank > 0) {
                cut = from + blank + 1;
            }
            self.has_text = true;
            let kind = self.code_after(text, cut);
            self.close(cut);
            self.begin(cut, kind, true);
            self.line = cut;
            self.scanned = text.len();
            self.open.range.end = text.len();
        }
    }
}

fn opens(line: &str) -> Option<(Fence, &str)> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.chars().take_while(|c| *c == mark).count();
    let rest = &line[length..];
    if length < 3 || (mark == '`' && rest.contains('`')) {
        return None;
    }
    let language = rest.trim().split([' ', ',', '{', ':']).next().unwrap_or_default();
    Some((Fence { mark, length }, language))
}

fn closes(line: &str, fence: &Fence) -> bool {
    line.len() >= fence.length && line.chars().all(|c| c == fence.mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each block as its kind and its text.
    fn describe(text: &str, blocks: &Blocks) -> Vec<String> {
        let blocks = (0..blocks.len()).filter_map(|at| blocks.get(at));
        let shown = blocks.map(|block| {
            let kind = match &block.kind {
                Kind::Prose => "prose",
                Kind::Code { language, .. } => &format!("code {language}"),
            };
            format!("{kind}: {}", text[block.range.clone()].trim_end())
        });
        shown.collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(describe(text, &Blocks::of(text)), expected, "{text:?}");
        // The blocks are the same if the text arrives in pieces.
        let mut growing = Blocks::default();
        for (at, _) in text.char_indices().skip(1) {
            growing.extend(&text[..at]);
        }
        growing.extend(text);
        assert_eq!(describe(text, &growing), expected, "{text:?} in pieces");
    }

    #[test]
    fn blank_lines_and_fences_end_blocks() {
        check("one\ntwo\n\nthree\n", &["prose: one\ntwo", "prose: three"]);
        check(
            "say\n```rust\nfn a() {}\n\nfn b() {}\n```\nend",
            &["prose: say", "code rust: fn a() {}\n\nfn b() {}", "prose: end"],
        );
        check("~~~\n```\n~~~\n", &["code : ```"]);
        check("```sh\nls\n```", &["code sh: ls"]);
        check("", &[]);
        check("\n\n", &[]);
    }

    #[test]
    fn indented_lines_belong_to_the_block_before() {
        check("- a\n\n  more of a\n\n- b\n", &["prose: - a\n\n  more of a", "prose: - b"]);
        check("- a\n  ```\n  x\n\n  y\n  ```\n- b\n", &["prose: - a\n  ```\n  x\n\n  y\n  ```\n- b"]);
    }

    #[test]
    fn long_code_continues_in_another_block() {
        let text = format!("```c\n{}/* open\n{}```\n", "x;\n".repeat(CODE_LINES - 1), "y\n".repeat(3));
        let blocks = Blocks::of(&text);
        assert_eq!(blocks.len(), 2);
        let second = blocks.get(1).unwrap();
        assert!(second.continues);
        assert_eq!(second.kind, Kind::Code { language: "c".into(), inside: Inside::Comment });
    }

    #[test]
    fn no_block_is_longer_than_its_limit_and_nothing_is_lost() {
        for text in
            ["word ".repeat(100_000), "x".repeat(300_000), "漢".repeat(100_000), "line\n".repeat(50_000)]
        {
            let mut blocks = Blocks::default();
            let mut end = 0;
            while end < text.len() {
                end = (end + 1_000).min(text.len());
                while !text.is_char_boundary(end) {
                    end += 1;
                }
                blocks.extend(&text[..end]);
            }
            let mut at = 0;
            for block in (0..blocks.len()).filter_map(|at| blocks.get(at)) {
                assert_eq!(block.range.start, at);
                assert!(block.range.len() <= 2 * MAX_BLOCK_BYTES + 10, "{}", block.range.len());
                at = block.range.end;
            }
            assert_eq!(at, text.len());
        }
    }
}
