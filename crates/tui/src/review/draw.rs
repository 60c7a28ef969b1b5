//! The rows of the viewer as lines of the screen.

use std::rc::Rc;

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::patch::Code;
use super::{Content, Review, Row};
use crate::clean::clean_name;
use crate::diff::{self, Side};
use crate::scroll::{self, Position, RenderedBlock, Scrollable};
use crate::theme::Theme;
use crate::{highlight, wrap};

/// How many characters of a line are drawn.
const MAX_LINE_CHARS: usize = 2_000;

/// How rows are drawn.
#[derive(Clone, Copy)]
pub(crate) struct DrawOptions<'a> {
    pub(crate) theme: &'a Theme,
    pub(crate) width: usize,
    /// Whether old and new lines are side by side.
    pub(crate) split: bool,
}

/// The rows of a viewer, as they are drawn. A place is the index of a row.
struct Rows<'a> {
    review: &'a Review,
    drawn: DrawOptions<'a>,
    rows: &'a [Row],
}

impl Scrollable for Rows<'_> {
    type Place = usize;

    fn next(&self, at: usize) -> Option<usize> {
        (at + 1 < self.rows.len()).then_some(at + 1)
    }

    fn previous(&self, at: usize) -> Option<usize> {
        at.checked_sub(1)
    }

    fn last(&self) -> Option<usize> {
        self.rows.len().checked_sub(1)
    }

    fn block(&self, at: usize) -> RenderedBlock {
        RenderedBlock { gap: false, lines: Rc::new(self.review.lines(&self.rows[at], self.drawn)) }
    }
}

impl Rows<'_> {
    /// Returns the position of the first visible line.
    fn top(&self) -> Position<usize> {
        let top = self.review.top;
        let place = self.rows.partition_point(|row| row.unified <= top.place).saturating_sub(1);
        Position { place, line: top.line }
    }

    /// Returns a position with the unified row as its place, which is valid in both layouts.
    fn unified(&self, at: Position<usize>) -> Position<usize> {
        Position { place: self.rows[at.place].unified, line: at.line }
    }

    /// Returns the position of the last page, with the unified row as its place.
    fn last_page(&self, height: usize) -> Position<usize> {
        scroll::last_page(self, height).map(|at| self.unified(at)).unwrap_or_default()
    }
}

impl Review {
    fn drawn<'a>(&'a self, drawn: DrawOptions<'a>) -> Rows<'a> {
        Rows { review: self, drawn, rows: if drawn.split { &self.split } else { &self.unified } }
    }

    /// Returns the lines of a screen of a height.
    pub(crate) fn screen(&self, drawn: DrawOptions<'_>, height: usize) -> Vec<Line<'static>> {
        let rows = self.drawn(drawn);
        if rows.rows.is_empty() {
            return Vec::new();
        }
        let Position { place, line } = rows.top();
        // A row can be shorter now than it was when the position was set.
        let line = line.min(rows.block(place).len().saturating_sub(1));
        let lines = scroll::rows_from(&rows, Position { place, line }, height);
        lines.into_iter().map(|row| row.line).collect()
    }

    /// Scrolls by a number of lines, to the last page at most.
    pub(crate) fn scroll(&mut self, drawn: DrawOptions<'_>, by: isize, height: usize) {
        if self.unified.is_empty() {
            return;
        }
        let rows = self.drawn(drawn);
        // A jump to a file or a hunk may have gone beyond the last page.
        let last = rows.last_page(height).max(self.top);
        let (to, _) = scroll::move_by(&rows, rows.top(), by);
        let to = rows.unified(to);
        self.top = if by > 0 { to.min(last) } else { to };
        self.select_visible();
    }

    /// Scrolls to the last page.
    pub(crate) fn go_to_end(&mut self, drawn: DrawOptions<'_>, height: usize) {
        self.top = self.drawn(drawn).last_page(height);
        self.select_visible();
    }

    fn lines(&self, row: &Row, drawn: DrawOptions<'_>) -> Vec<Line<'static>> {
        let theme = drawn.theme;
        let muted = Style::new().fg(theme.muted);
        let note = |text: String| vec![Line::from(Span::styled(text, muted))];
        match row.content {
            Content::Head => vec![self.head(row.file, drawn)],
            Content::Gap => vec![Line::from(Span::styled("  ⋮", Style::new().fg(theme.diff_hunk)))],
            Content::Empty => {
                note("  no lines to show: a binary file, or only its name or mode changed".to_owned())
            }
            Content::Cut(count) => note(format!("  … {count} more lines are not shown")),
            Content::Blank => vec![Line::default()],
            Content::Line(code) => self.unified_line(row.file, code, drawn),
            Content::Pair(old, new) => self.side_by_side(row.file, [old, new], drawn),
        }
    }

    fn head(&self, file: usize, drawn: DrawOptions<'_>) -> Line<'static> {
        let theme = drawn.theme;
        let Some(change) = self.files.get(file) else { return Line::default() };
        let added = format!(" +{}", change.additions);
        let removed = format!(" -{} ", change.deletions);
        let mark = if self.is_reviewed(file) { " ✓" } else { "" };
        let used = added.len() + removed.len() + wrap::width(mark) + 1;
        let name = wrap::shorten_front(&clean_name(&change.file), drawn.width.saturating_sub(used));
        let blank = drawn.width.saturating_sub(wrap::width(&name) + used);
        Line::from(vec![
            Span::styled(format!(" {name}"), Style::new().fg(theme.text).add_modifier(Modifier::BOLD)),
            Span::styled(format!("{mark}{}", " ".repeat(blank)), Style::new().fg(theme.success)),
            Span::styled(added, Style::new().fg(theme.diff_added)),
            Span::styled(removed, Style::new().fg(theme.diff_removed)),
        ])
        .style(Style::new().bg(theme.element))
    }

    /// Returns the text of a line, without control sequences.
    fn text(&self, file: usize, code: Code) -> String {
        let patch = self.files.get(file).map_or("", |file| &file.patch);
        let text = patch.get(code.start as usize..code.end as usize).unwrap_or_default();
        // A very long line must not make drawing slow.
        let end = text.char_indices().nth(MAX_LINE_CHARS).map_or(text.len(), |(at, _)| at);
        let more = if end < text.len() { "…" } else { "" };
        format!("{}{more}", crate::clean::clean_code(text[..end].trim_end_matches('\r')).replace('\n', " "))
    }

    fn unified_line(&self, file: usize, code: Code, drawn: DrawOptions<'_>) -> Vec<Line<'static>> {
        let digits = self.digits(file);
        let number = |number: u32, shown: bool| if shown { number.to_string() } else { String::new() };
        let gutter = format!(
            "{:>digits$} {:>digits$} ",
            number(code.old, code.side != Side::Added),
            number(code.new, code.side != Side::Removed)
        );
        let language = self.language(file);
        let line =
            diff::CodeLine { side: code.side, gutter: &gutter, code: &self.text(file, code), language };
        diff::cell(&line, drawn.theme, drawn.width)
    }

    fn side_by_side(
        &self,
        file: usize,
        [old, new]: [Option<Code>; 2],
        drawn: DrawOptions<'_>,
    ) -> Vec<Line<'static>> {
        let digits = self.digits(file);
        let half = drawn.width.saturating_sub(1) / 2;
        let half_of = |code: Option<Code>, number: fn(Code) -> u32| {
            let Some(code) = code else { return Vec::new() };
            let gutter = format!("{:>digits$} ", number(code));
            let (code_text, language) = (self.text(file, code), self.language(file));
            let line = diff::CodeLine { side: code.side, gutter: &gutter, code: &code_text, language };
            diff::cell(&line, drawn.theme, half)
        };
        let left = half_of(old, |code| code.old);
        let right = half_of(new, |code| code.new);
        let line = |at: usize| {
            let mut spans = half_line(left.get(at), half);
            spans.push(Span::styled("│", Style::new().fg(drawn.theme.border_subtle)));
            spans.extend(half_line(right.get(at), drawn.width.saturating_sub(half + 1)));
            Line::from(spans)
        };
        (0..left.len().max(right.len()).max(1)).map(line).collect()
    }

    fn language(&self, file: usize) -> &str {
        highlight::of_file(self.files.get(file).map_or("", |file| &file.file))
    }

    /// Returns the width of the line numbers of a file.
    fn digits(&self, file: usize) -> usize {
        let end = self.heads.get(file + 1).map_or(self.unified.len(), |next| *next);
        let rows = self.unified[..end].iter().rev();
        let last = rows.take(4).find_map(|row| match row.content {
            Content::Line(code) => Some(code.old.max(code.new)),
            Content::Head
            | Content::Gap
            | Content::Pair(..)
            | Content::Empty
            | Content::Cut(_)
            | Content::Blank => None,
        });
        last.unwrap_or(0).max(999).to_string().len()
    }
}

/// Returns one half of a split line, padded to its width.
fn half_line(line: Option<&Line<'static>>, width: usize) -> Vec<Span<'static>> {
    let Some(line) = line else { return vec![Span::raw(" ".repeat(width))] };
    let back = line.style;
    let used = line.width();
    let spans = line.spans.iter().map(|span| Span::styled(span.content.clone(), back.patch(span.style)));
    let mut spans: Vec<Span<'static>> = spans.collect();
    spans.push(Span::styled(" ".repeat(width.saturating_sub(used)), back));
    spans
}
