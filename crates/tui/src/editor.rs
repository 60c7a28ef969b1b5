//! A text editor with a cursor and undo steps.
//!
//! Positions are byte offsets at grapheme boundaries.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::wrap;

/// The maximum number of undo steps.
const MAX_STEPS: usize = 100;
/// The maximum length of the text.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// A text with a cursor.
#[derive(Debug, Clone, Default)]
pub(crate) struct Editor {
    text: String,
    cursor: usize,
    steps: Vec<(String, usize)>,
}

impl Editor {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    /// Returns the text before the cursor.
    pub(crate) fn before(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// Replaces the text. The cursor moves to the end.
    pub(crate) fn set(&mut self, text: impl Into<String>) {
        self.save_step();
        // The text may come from a file, which other programs can write.
        self.text = crate::clean::clean(&text.into());
        self.cursor = self.text.len();
    }

    /// Returns the text and clears the editor.
    pub(crate) fn take(&mut self) -> String {
        self.cursor = 0;
        self.steps.clear();
        std::mem::take(&mut self.text)
    }

    pub(crate) fn insert(&mut self, text: &str) {
        if self.text.len() + text.len() > MAX_BYTES {
            return;
        }
        // The letters of a word are one undo step.
        let continues =
            text.chars().all(char::is_alphanumeric) && self.before().ends_with(char::is_alphanumeric);
        if !continues || self.steps.is_empty() {
            self.save_step();
        }
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// Replaces a range of the text.
    pub(crate) fn replace(&mut self, range: Range<usize>, text: &str) {
        self.save_step();
        self.text.replace_range(range.clone(), text);
        self.cursor = range.start + text.len();
    }

    pub(crate) fn delete_before(&mut self) {
        let from = self.previous(self.cursor);
        self.delete(from..self.cursor);
    }

    pub(crate) fn delete_after(&mut self) {
        let to = self.next(self.cursor);
        self.delete(self.cursor..to);
    }

    pub(crate) fn delete_word_before(&mut self) {
        let from = self.word_before();
        self.delete(from..self.cursor);
    }

    pub(crate) fn delete_word_after(&mut self) {
        let to = self.word_after();
        self.delete(self.cursor..to);
    }

    pub(crate) fn delete_to_start(&mut self) {
        let start = self.line_start();
        // At the start of a line, the line is joined to the previous one.
        let from = if start == self.cursor { self.previous(start) } else { start };
        self.delete(from..self.cursor);
    }

    pub(crate) fn delete_to_end(&mut self) {
        let end = self.line_end();
        let to = if end == self.cursor { self.next(end) } else { end };
        self.delete(self.cursor..to);
    }

    pub(crate) fn delete(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.replace(range, "");
        }
    }

    pub(crate) fn left(&mut self) {
        self.cursor = self.previous(self.cursor);
    }

    pub(crate) fn right(&mut self) {
        self.cursor = self.next(self.cursor);
    }

    pub(crate) fn word_left(&mut self) {
        self.cursor = self.word_before();
    }

    pub(crate) fn word_right(&mut self) {
        self.cursor = self.word_after();
    }

    pub(crate) fn line_home(&mut self) {
        self.cursor = self.line_start();
    }

    pub(crate) fn line_tail(&mut self) {
        self.cursor = self.line_end();
    }

    /// Moves up a line of a width. Returns `false` in the first line.
    pub(crate) fn up(&mut self, width: usize) -> bool {
        let (row, column) = self.position(width);
        if row == 0 {
            return false;
        }
        self.cursor = self.at(width, row - 1, column);
        true
    }

    /// Moves down a line of a width. Returns `false` in the last line.
    pub(crate) fn down(&mut self, width: usize) -> bool {
        let (row, column) = self.position(width);
        if row + 1 >= self.rows(width).len() {
            return false;
        }
        self.cursor = self.at(width, row + 1, column);
        true
    }

    /// Undoes the last change.
    pub(crate) fn undo(&mut self) {
        if let Some((text, cursor)) = self.steps.pop() {
            self.text = text;
            self.cursor = cursor;
        }
    }

    /// Returns the lines of the text, wrapped to a width.
    pub(crate) fn rows(&self, width: usize) -> Vec<Range<usize>> {
        rows(&self.text, width)
    }

    /// Returns the line and the column of the cursor in lines of a width.
    pub(crate) fn position(&self, width: usize) -> (usize, usize) {
        let rows = self.rows(width);
        let row = rows.iter().rposition(|row| row.start <= self.cursor).unwrap_or(0);
        let start = rows.get(row).map_or(0, |row| row.start);
        (row, wrap::width(&self.text[start..self.cursor]))
    }

    fn at(&self, width: usize, row: usize, column: usize) -> usize {
        let rows = self.rows(width);
        let Some(range) = rows.get(row) else { return self.text.len() };
        let line = self.text[range.clone()].trim_end_matches('\n');
        let fitting = range.start + wrap::fitting(line, column).len();
        // The end of a wrapped line is the start of the next.
        if fitting == range.end && row + 1 < rows.len() { self.previous(fitting) } else { fitting }
    }

    fn save_step(&mut self) {
        if self.steps.len() >= MAX_STEPS {
            self.steps.remove(0);
        }
        self.steps.push((self.text.clone(), self.cursor));
    }

    fn previous(&self, at: usize) -> usize {
        self.text[..at].grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn next(&self, at: usize) -> usize {
        self.text[at..].graphemes(true).next().map_or(at, |grapheme| at + grapheme.len())
    }

    fn line_start(&self) -> usize {
        self.before().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    fn word_before(&self) -> usize {
        let trimmed = self.before().trim_end();
        let mut words = trimmed.split_word_bound_indices();
        words.next_back().map_or(0, |(at, _)| at)
    }

    fn word_after(&self) -> usize {
        let rest = &self.text[self.cursor..];
        let skipped = rest.len() - rest.trim_start().len();
        let word = rest[skipped..].split_word_bounds().next().map_or(0, str::len);
        self.cursor + skipped + word
    }
}

/// Wraps a text to a width, after blanks if possible.
fn rows(text: &str, width: usize) -> Vec<Range<usize>> {
    let width = width.max(2);
    let mut rows = Vec::new();
    let (mut start, mut used) = (0, 0);
    // The last position where the line can be broken, and its column.
    let mut space: Option<(usize, usize)> = None;
    for (at, grapheme) in text.grapheme_indices(true) {
        if grapheme == "\n" || grapheme == "\r\n" {
            rows.push(start..at + grapheme.len());
            (start, used, space) = (at + grapheme.len(), 0, None);
            continue;
        }
        let cells = grapheme.width();
        if used + cells > width {
            let (cut, before) = space.unwrap_or((at, used));
            rows.push(start..cut);
            (start, used, space) = (cut, used - before, None);
        }
        used += cells;
        if grapheme == " " {
            space = Some((at + 1, used));
        }
    }
    rows.push(start..text.len());
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn editor(text: &str) -> Editor {
        let mut editor = Editor::default();
        editor.set(text);
        editor
    }

    #[test]
    fn lines_are_broken_after_blanks() {
        let shown = |text: &str, width| {
            rows(text, width).into_iter().map(|row| text[row].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(shown("one two three", 8), ["one two ", "three"]);
        assert_eq!(shown("abcdef", 4), ["abcd", "ef"]);
        assert_eq!(shown("a\nb\n", 4), ["a\n", "b\n", ""]);
        assert_eq!(shown("漢字漢", 4), ["漢字", "漢"]);
        assert_eq!(shown("", 4), [""]);
    }

    #[test]
    fn the_cursor_moves_by_graphemes() {
        let mut editor = editor("a👩‍👩‍👧e\u{301}");
        editor.left();
        assert_eq!(editor.before(), "a👩‍👩‍👧");
        editor.delete_before();
        assert_eq!(editor.text(), "ae\u{301}");
        editor.undo();
        assert_eq!(editor.text(), "a👩‍👩‍👧e\u{301}");
    }

    #[test]
    fn words_and_lines_are_deleted() {
        let mut editor = editor("one two\nthree four");
        editor.delete_word_before();
        assert_eq!(editor.text(), "one two\nthree ");
        editor.delete_to_start();
        assert_eq!(editor.text(), "one two\n");
        editor.delete_to_start();
        assert_eq!(editor.text(), "one two");
        editor.line_home();
        editor.delete_word_after();
        assert_eq!(editor.text(), " two");
        editor.delete_to_end();
        assert_eq!(editor.text(), "");
        editor.delete_before();
        editor.delete_after();
        assert_eq!(editor.text(), "");
    }

    #[test]
    fn control_sequences_are_removed() {
        let mut editor = Editor::default();
        editor.set("one\u{1b}]0;title\u{7}\ntwo\u{9b}2J");
        assert_eq!(editor.text(), "one\ntwo");
    }

    #[test]
    fn up_and_down_follow_wrapped_lines() {
        let mut editor = editor("one two three four");
        assert_eq!(editor.position(8), (2, 4));
        assert!(editor.up(8));
        assert_eq!(editor.before(), "one two thre");
        assert!(editor.up(8));
        assert_eq!(editor.before(), "one ");
        assert!(!editor.up(8));
        assert!(editor.down(8) && editor.down(8) && !editor.down(8));
    }
}
