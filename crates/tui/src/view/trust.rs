//! The trust dialog: what a repository wants to do, and the buttons.

use codewright_proto::{TrustChangeKind, TrustStatus};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::{layer, put};
use crate::clean::{clean_line, clean_name};
use crate::layer::Layer;
use crate::layer::trust::{Button, Dialog};
use crate::state::State;
use crate::theme::{Theme, built_in};
use crate::wrap;

const WIDTH: u16 = 88;
/// Rows of the frame that are not text: its edges, the title, the hint and the blank rows between.
const AROUND: u16 = 6;

/// Paints the dialog.
pub(super) fn view(state: &State, dialog: &Dialog, buffer: &mut Buffer, area: Rect) {
    let theme = &theme(state);
    let Plan { width, text_rows, buttons, lines } = plan(dialog, theme, (area.width, area.height));
    let rows = u16::try_from(buttons.len()).unwrap_or(1);
    let inner = layer::frame_in(theme, buffer, area, (width, text_rows + AROUND + rows));
    put(buffer, inner, 0, &layer::heading_in(theme, "Workspace trust", inner.width));
    let below = inner.height.saturating_sub(rows);
    let body = Rect::new(inner.x, inner.y + 2, inner.width, below.saturating_sub(4).min(text_rows));
    let first = dialog.scroll.min(lines.len().saturating_sub(usize::from(body.height)));
    for (y, line) in (0..body.height).zip(lines.iter().skip(first)) {
        put(buffer, body, y, line);
    }
    let hidden = lines.len().saturating_sub(usize::from(body.height));
    if hidden > 0 {
        let last = first + usize::from(body.height);
        let hint = format!("↑↓ lines {}-{last} of {}", first + 1, lines.len());
        let hint = Line::from(Span::styled(hint, Style::new().fg(theme.muted)));
        put(buffer, inner, below.saturating_sub(2), &hint);
    }
    for (y, line) in (below..).zip(&buttons) {
        put(buffer, inner, y, line);
    }
}

/// How far the text of the top dialog can be scrolled.
pub(crate) fn last_scroll(state: &State) -> usize {
    let Some(Layer::Trust(dialog)) = state.layers.last() else { return 0 };
    let (width, height) = state.size;
    let size = match state.options.mini {
        Some(_) => (width.saturating_sub(1), super::mini::dialog_rows(state)),
        None => (width, height),
    };
    let plan = plan(dialog, &state.theme, size);
    plan.lines.len().saturating_sub(usize::from(plan.text_rows))
}

/// The layout of the dialog.
struct Plan {
    /// The width of the frame.
    width: u16,
    /// The rows of text that are visible.
    text_rows: u16,
    buttons: Vec<Line<'static>>,
    lines: Vec<Line<'static>>,
}

fn plan(dialog: &Dialog, theme: &Theme, (width, height): (u16, u16)) -> Plan {
    let width = WIDTH.min(width.saturating_sub(2));
    let room = usize::from(width.saturating_sub(4)).max(1);
    let (buttons, lines) = (buttons(dialog, theme, room), text(dialog, theme, room));
    let around = AROUND + 2 + u16::try_from(buttons.len()).unwrap_or(1);
    let most = height.saturating_sub(around).max(1);
    let text_rows = u16::try_from(lines.len()).unwrap_or(most).clamp(1, most);
    Plan { width, text_rows, buttons, lines }
}

/// The theme of the dialog. A theme from a file may come from the repository and could hide the text.
fn theme(state: &State) -> Theme {
    let is_from_file = state.themes.contains_key(&state.theme_name);
    let default = built_in::file(built_in::DEFAULT).filter(|_| is_from_file);
    let default = default.and_then(|file| Theme::parse(&file, state.mode).ok());
    default.map_or_else(|| state.theme.clone(), |theme| theme.at(state.options.depth))
}

fn text(dialog: &Dialog, theme: &Theme, room: usize) -> Vec<Line<'static>> {
    let plain = Style::new().fg(theme.text);
    let muted = Style::new().fg(theme.muted);
    let warning = Style::new().fg(theme.warning);
    let bold = plain.add_modifier(Modifier::BOLD);
    let reply = &dialog.reply;
    let words = |text: String, style: Style| wrap::words(&[Span::styled(text, style)], room);
    let mut lines = wrap::exact(&[Span::styled(clean_name(&reply.root), bold)], room);
    if let Some(notice) = &dialog.notice {
        lines.extend(words(format!("Not stored: {}", clean_line(notice)), Style::new().fg(theme.error)));
    }
    lines.push(Line::default());
    let (sentence, style) = if dialog.is_sending {
        ("Storing the decision…", muted)
    } else {
        match reply.status {
            TrustStatus::Unneeded => ("This repository requests nothing that needs trust.", plain),
            TrustStatus::Undecided => {
                ("Do you trust this repository? Until you do, its configuration does none of this:", plain)
            }
            TrustStatus::Trusted => ("This repository is trusted. Its configuration does this:", plain),
            TrustStatus::Restricted => {
                ("This repository is not trusted. Its configuration does none of this:", plain)
            }
        }
    };
    lines.extend(words(sentence.to_owned(), style));
    if let Some(limit) = &reply.limit {
        lines.extend(words(format!("It cannot be trusted: {}", clean_line(limit)), warning));
    }
    if !reply.changes.is_empty() {
        lines.push(Line::default());
        lines.extend(words("Changed since you decided:".to_owned(), warning));
        for change in &reply.changes {
            let kind = match change.kind {
                TrustChangeKind::Added => "new",
                TrustChangeKind::Changed => "changed",
                TrustChangeKind::Removed => "removed",
            };
            let spans =
                [Span::styled(clean_name(&change.path), plain), Span::styled(format!(" ({kind})"), muted)];
            lines.extend(item(&spans, room, warning));
        }
    }
    if !reply.requests.is_empty() {
        let count = reply.requests.len();
        lines.push(Line::default());
        lines.extend(words(format!("{count} request{}:", if count == 1 { "" } else { "s" }), bold));
    }
    for request in &reply.requests {
        let source = format!(" ({})", clean_name(&request.source));
        let spans = [Span::styled(clean_name(&request.text), plain), Span::styled(source, muted)];
        lines.extend(item(&spans, room, warning));
    }
    lines
}

/// An entry of a list. Its further lines are indent, so that no text can look like another entry.
fn item(spans: &[Span<'_>], room: usize, mark: Style) -> Vec<Line<'static>> {
    let wrapped = wrap::words(spans, room.saturating_sub(2).max(1));
    wrap::prefix_lines(wrapped, &Span::styled("• ", mark), &Span::raw("  "))
}

/// Returns the buttons in a row, or below each other if there is no room.
fn buttons(dialog: &Dialog, theme: &Theme, room: usize) -> Vec<Line<'static>> {
    let button = |(at, button): (usize, &Button)| {
        let label = button.label();
        if at == dialog.selected && !dialog.is_sending {
            let style = Style::new().fg(theme.selected_text).bg(theme.primary).add_modifier(Modifier::BOLD);
            // Without colours the brackets show the selection.
            Span::styled(format!("[{label}]"), style)
        } else {
            Span::styled(format!(" {label} "), Style::new().fg(theme.muted))
        }
    };
    let spans: Vec<Span<'static>> = dialog.buttons().iter().enumerate().map(button).collect();
    let used: usize = spans.iter().map(|span| span.width() + 1).sum();
    if used > room {
        return spans.into_iter().map(Line::from).collect();
    }
    let mut line = Line::default();
    for span in spans {
        line.spans.extend([span, Span::raw(" ")]);
    }
    vec![line]
}
