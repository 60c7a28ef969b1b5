//! Draws unified diffs with line numbers and colours.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::clean::clean_code;
use crate::highlight::{self, Inside};
use crate::theme::Theme;
use crate::wrap;

/// The maximum number of lines that are read.
const MAX_LINES: usize = 20_000;

/// The side of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Added,
    Removed,
    Both,
}

/// The settings for drawing a diff.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) theme: &'a Theme,
    pub(crate) width: usize,
    /// The maximum number of lines. The number of further lines is displayed.
    pub(crate) limit: usize,
}

/// A line of code in a diff.
pub(crate) struct CodeLine<'a> {
    pub(crate) side: Side,
    /// The line numbers.
    pub(crate) gutter: &'a str,
    pub(crate) code: &'a str,
    pub(crate) language: &'a str,
}

/// Returns the lines of a diff of a file in a language.
pub(crate) fn lines(patch: &str, language: &str, view: View<'_>) -> Vec<Line<'static>> {
    let patch = clean_code(patch);
    let digits = digits(&patch);
    let mut lines = Vec::new();
    let (mut old, mut new) = (0_usize, 0_usize);
    let mut in_hunk = false;
    let mut hidden = 0;
    for text in patch.lines().take(MAX_LINES) {
        if let Some((before, after)) = hunk(text) {
            if in_hunk && lines.len() < view.limit {
                let gap = format!("{:>digits$} ⋮", "");
                lines.push(Line::from(Span::styled(gap, Style::new().fg(view.theme.diff_hunk))));
            }
            (old, new, in_hunk) = (before, after, true);
            continue;
        }
        let (side, code) = match text.chars().next() {
            _ if !in_hunk => continue,
            Some('+') => (Side::Added, &text[1..]),
            Some('-') => (Side::Removed, &text[1..]),
            Some(' ') => (Side::Both, &text[1..]),
            None => (Side::Both, text),
            // `\ No newline at end of file`, or the head of the next file.
            Some(_) => {
                in_hunk = text.starts_with('\\');
                continue;
            }
        };
        let number = if side == Side::Removed { old } else { new };
        old += usize::from(side != Side::Added);
        new += usize::from(side != Side::Removed);
        if lines.len() < view.limit {
            let gutter = format!("{number:>digits$} ");
            let line = CodeLine { side, gutter: &gutter, code, language };
            lines.extend(cell(&line, view.theme, view.width));
        } else {
            hidden += 1;
        }
    }
    if hidden > 0 {
        let more = format!("… {hidden} more lines");
        lines.push(Line::from(Span::styled(more, Style::new().fg(view.theme.muted))));
    }
    lines
}

/// Returns the width of the longest line number.
fn digits(patch: &str) -> usize {
    let last = patch.lines().filter_map(hunk).map(|(old, new)| old.max(new)).max().unwrap_or(0);
    (last + patch.lines().count().min(MAX_LINES)).to_string().len().max(2)
}

/// Parses the header of a hunk. Returns its first line in the old and in the new file.
pub(crate) fn hunk(line: &str) -> Option<(usize, usize)> {
    let mut words = line.strip_prefix("@@ -")?.split(' ');
    let first = |range: &str| range.split(',').next()?.parse().ok();
    let old = first(words.next()?)?;
    let new = first(words.next()?.strip_prefix('+')?)?;
    Some((old, new))
}

/// Returns a line of code with its numbers and its mark, wrapped.
pub(crate) fn cell(line: &CodeLine<'_>, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let CodeLine { side, gutter, code, language } = *line;
    let (mark, colour, back) = match side {
        Side::Added => ('+', theme.diff_added, theme.diff_added_back),
        Side::Removed => ('-', theme.diff_removed, theme.diff_removed_back),
        Side::Both => (' ', theme.diff_context, theme.diff_context_back),
    };
    let room = width.saturating_sub(gutter.len() + 2).max(4);
    let (spans, _) = highlight::line(language, Inside::Code, code, theme);
    // Without a background the colour of the text distinguishes the sides.
    let plain = back == ratatui::style::Color::Reset && side != Side::Both;
    let spans = spans.into_iter().map(|span| if plain { span.style(Style::new().fg(colour)) } else { span });
    let wrapped = wrap::exact(&spans.collect::<Vec<_>>(), room);
    let head = |at: usize| {
        let (number, mark) =
            if at == 0 { (gutter.to_owned(), mark) } else { (" ".repeat(gutter.len()), ' ') };
        [
            Span::styled(number, Style::new().fg(theme.diff_number)),
            Span::styled(format!("{mark} "), Style::new().fg(colour)),
        ]
    };
    let filled = |(at, line): (usize, Line<'static>)| {
        let blank = room.saturating_sub(line.width());
        let mut spans = head(at).to_vec();
        spans.extend(line.spans);
        if back == ratatui::style::Color::Reset {
            // Without a background the line has that of the area, and not that of the terminal.
            return Line::from(spans);
        }
        spans.push(Span::raw(" ".repeat(blank)));
        // The spans have the background, because the line may be indented.
        let spans = spans.into_iter().map(|span| {
            let style = span.style.bg(back);
            span.style(style)
        });
        Line::from(spans.collect::<Vec<_>>())
    };
    wrapped.into_iter().enumerate().map(filled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{Mode, built_in};

    #[test]
    fn lines_have_the_numbers_of_their_side() {
        let patch = "Index: a.rs\n===\n--- a.rs\n+++ a.rs\n@@ -8,4 +8,4 @@ fn\n a\n-old\u{1b}[2J\n+new\n b\n\\ No newline at end of file\n@@ -90 +90,2 @@\n c\n+d\n";
        let theme = Theme::parse(&built_in::file(built_in::DEFAULT).unwrap(), Mode::Dark).unwrap();
        let shown = |limit| {
            let lines = lines(patch, "rs", View { theme: &theme, width: 20, limit });
            lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(shown(99), "  8   a\n  9 - old\n  9 + new\n 10   b\n    ⋮\n 90   c\n 91 + d");
        assert_eq!(shown(3), "  8   a\n  9 - old\n  9 + new\n… 3 more lines");
    }
}
