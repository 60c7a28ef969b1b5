//! Panels: boxes with a bar at the left.

use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};

use crate::theme::Theme;

/// The cells of a panel's width that are not content.
pub(crate) const SIDES: usize = 7;

/// Puts lines into a panel, with an empty line above and below.
pub(crate) fn panel(
    content: Vec<Line<'static>>,
    width: usize,
    bar: Color,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let back = Style::new().bg(theme.panel);
    let room = width.saturating_sub(SIDES);
    let edge = [Line::default()];
    let lines = edge.iter().cloned().chain(content).chain(edge.iter().cloned());
    let framed = lines.map(|line| {
        let blank = room.saturating_sub(line.width()) + 2;
        let mut spans =
            vec![Span::raw("  "), Span::styled("┃", Style::new().fg(bar)), Span::styled("  ", back)];
        let style = back.patch(line.style);
        spans.extend(line.spans.into_iter().map(|span| {
            let style = style.patch(span.style);
            Span::styled(span.content, style)
        }));
        spans.push(Span::styled(" ".repeat(blank), back));
        Line::from(spans)
    });
    framed.collect()
}

/// Indents lines.
pub(crate) fn indent(lines: Vec<Line<'static>>, by: usize) -> Vec<Line<'static>> {
    let blank = Span::raw(" ".repeat(by));
    crate::wrap::prefix_lines(lines, &blank, &blank)
}
