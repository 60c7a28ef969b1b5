//! Draws tables.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::theme::Theme;
use crate::{link, wrap};

/// The minimum width of a column.
const MIN_COLUMN: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Center,
    Right,
}

type Cell = Vec<Span<'static>>;

pub(super) struct Table {
    aligns: Vec<Align>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(super) fn new(aligns: Vec<Align>) -> Self {
        Self { aligns, rows: Vec::new() }
    }

    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn begin_cell(&mut self) {
        if let Some(row) = self.rows.last_mut() {
            row.push(Vec::new());
        }
    }

    pub(super) fn push(&mut self, text: &str, style: Style) {
        if let Some(cell) = self.rows.last_mut().and_then(|row| row.last_mut()) {
            cell.push(Span::styled(text.replace(['\n', '\t'], " "), style));
        }
    }

    pub(super) fn lines(&self, width: usize, theme: &Theme) -> Vec<Line<'static>> {
        let widths = self.widths(width);
        let border = Style::new().fg(theme.border);
        let rule = |left: &str, middle: &str, right: &str| {
            let bars: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            Line::from(Span::styled(format!("{left}{}{right}", bars.join(middle)), border))
        };
        let mut lines = vec![rule("┌", "┬", "┐")];
        for (at, row) in self.rows.iter().enumerate() {
            if at > 0 {
                lines.push(rule("├", "┼", "┤"));
            }
            lines.extend(self.row(row, &widths, border));
        }
        lines.push(rule("└", "┴", "┘"));
        lines
    }

    /// Returns the widths of the columns. The widest columns are narrowed until the table fits.
    fn widths(&self, width: usize) -> Vec<usize> {
        let columns = self.aligns.len();
        let natural = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.iter().map(Span::width).sum()).max().unwrap_or(0).max(MIN_COLUMN)
        };
        let mut widths: Vec<usize> = (0..columns).map(natural).collect();
        let room = width.saturating_sub(columns + 1).max(columns * MIN_COLUMN);
        let mut excess = widths.iter().sum::<usize>().saturating_sub(room);
        while excess > 0 {
            // The widest column is narrowed to the width of the next one.
            let Some(widest) = (0..columns).max_by_key(|column| widths[*column]) else { break };
            let top = widths[widest];
            let next = widths.iter().copied().filter(|width| *width < top).max().unwrap_or(MIN_COLUMN);
            let give = (top - next.max(MIN_COLUMN)).clamp(1, excess);
            widths[widest] -= give;
            excess -= give;
        }
        widths
    }

    fn row(&self, row: &[Cell], widths: &[usize], border: Style) -> Vec<Line<'static>> {
        let empty = Vec::new();
        let wrapped = widths.iter().enumerate().map(|(column, width)| {
            let cell = row.get(column).unwrap_or(&empty);
            // A link that is broken in a column could be continued by the text of another one.
            wrap::words(&link::mark_fitting(cell, *width), *width)
        });
        let wrapped: Vec<Vec<Line<'static>>> = wrapped.collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
        let line = |at: usize| {
            let mut spans = vec![Span::styled("│", border)];
            for (column, lines) in wrapped.iter().enumerate() {
                let line = lines.get(at).cloned().unwrap_or_default();
                let blank = widths[column].saturating_sub(line.width());
                let (before, after) = match self.aligns[column] {
                    Align::Left => (0, blank),
                    Align::Center => (blank / 2, blank - blank / 2),
                    Align::Right => (blank, 0),
                };
                spans.push(Span::raw(" ".repeat(before)));
                spans.extend(line.spans);
                spans.push(Span::raw(" ".repeat(after)));
                spans.push(Span::styled("│", border));
            }
            Line::from(spans)
        };
        (0..height).map(line).collect()
    }
}
