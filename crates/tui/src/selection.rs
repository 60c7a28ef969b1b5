//! The text that is selected with the mouse.
//!
//! Its ends are positions in the transcript and not on the screen, so that it can be longer than the screen.

use ratatui::text::Line;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use crate::scroll::Position;
use crate::transcript::Place;

/// How often the transcript moves while the mouse pulls it, in milliseconds.
pub(crate) const PULL_MILLIS: u64 = 40;
/// The columns at the left that can be decoration: blanks and the bars of panels.
const MARGIN: usize = 5;

/// A cell of the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    pub(crate) row: Position<Place>,
    pub(crate) column: u16,
}

/// The direction in which the mouse pulls the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pull {
    Up,
    Down,
}

/// The selected text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selection {
    /// The cell where the button was pressed.
    pub(crate) anchor: Point,
    /// The cell of the mouse.
    pub(crate) head: Point,
    /// Whether the mouse is at the edge of the transcript, with the button held.
    pub(crate) pull: Option<Pull>,
    /// When the transcript was last moved by the mouse.
    pub(crate) pulled_at: u64,
    /// Whether the mouse has moved since the button was pressed.
    pub(crate) has_moved: bool,
    /// Whether the button is held.
    pub(crate) is_held: bool,
}

impl Selection {
    pub(crate) fn new(at: Point) -> Self {
        Self { anchor: at, head: at, pull: None, pulled_at: 0, has_moved: false, is_held: true }
    }

    /// Returns the first and the last cell.
    pub(crate) fn ends(&self) -> (Point, Point) {
        (self.anchor.min(self.head), self.anchor.max(self.head))
    }

    /// Returns the selected columns of a row, the last one included, or `None` if the row is not selected.
    pub(crate) fn columns(&self, row: Position<Place>) -> Option<(u16, u16)> {
        let (first, last) = self.ends();
        if !self.has_moved || row < first.row || row > last.row {
            return None;
        }
        let from = if row == first.row { first.column } else { 0 };
        let to = if row == last.row { last.column } else { u16::MAX };
        Some((from, to))
    }

    /// Moves the ends after messages were added before all others.
    pub(crate) fn shift(&mut self, entries: usize) {
        self.anchor.row.place.entry += entries;
        self.head.row.place.entry += entries;
    }

    /// Returns the text of the selected rows, without decoration.
    pub(crate) fn text(&self, rows: &[Line<'_>]) -> String {
        let (first, last) = self.ends();
        let count = rows.len();
        let lines = rows.iter().enumerate().map(|(at, row)| {
            let from = if at == 0 { usize::from(first.column) } else { 0 };
            let to = if at + 1 == count { usize::from(last.column) } else { usize::MAX };
            cut(&row.to_string(), from, to)
        });
        let lines: Vec<String> = lines.collect();
        lines.join("\n").trim_matches('\n').to_owned()
    }
}

/// Returns the columns of a row, the last one included. A wide character belongs to both of its columns.
fn cut(row: &str, from: usize, to: usize) -> String {
    let mut text = String::new();
    let (mut column, mut is_margin) = (0, true);
    for grapheme in row.graphemes(true) {
        let next = column + grapheme.width();
        is_margin &= column < MARGIN && matches!(grapheme, " " | "┃" | "▀" | "╹");
        if !is_margin && next > from && column <= to {
            text.push_str(grapheme);
        }
        column = next;
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(row: &str, from: usize, to: usize, expected: &str) {
        assert_eq!(cut(row, from, to), expected, "{row:?} {from}..={to}");
    }

    #[test]
    fn a_row_is_cut_at_cells_and_has_no_decoration() {
        check("     hello world   ", 0, usize::MAX, "hello world");
        check("     hello world", 6, 10, "ello");
        check("  ┃  $ ls -l", 0, usize::MAX, "$ ls -l");
        check("  ┃    indented", 0, usize::MAX, "  indented");
        check("     漢字 ab", 6, 7, "漢字");
        check("     漢字 ab", 7, 7, "字");
        check("     👩‍👩‍👧 x", 5, 5, "👩‍👩‍👧");
        check("", 0, 10, "");
    }
}
