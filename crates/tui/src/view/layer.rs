//! Draws the layers over the views.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line as Text, Span};

use super::{both_ends, clear, page, put, review, trust};
use crate::clean::clean_line;
use crate::layer::{Confirm, Kind, Layer, Line, List};
use crate::state::State;
use crate::theme::Theme;
use crate::wrap;

/// The maximum height of a list.
const MAX_HEIGHT: u16 = 28;

/// Paints a layer. Returns the position of the cursor.
pub(super) fn view(state: &State, layer: &Layer, buffer: &mut Buffer, area: Rect) -> Option<(u16, u16)> {
    match layer {
        Layer::List(list) => list_view(state, list, buffer, area),
        Layer::Line(line) => line_view(state, line, buffer, area),
        Layer::Page(shown) => {
            page::view(state, shown, buffer, area);
            None
        }
        Layer::Confirm(confirm) => {
            confirm_view(state, confirm, buffer, area);
            None
        }
        Layer::Review(shown) => {
            review::view(state, shown, buffer, area);
            None
        }
        Layer::Trust(shown) => {
            trust::view(state, shown, buffer, area);
            None
        }
    }
}

/// Paints a box in the middle of the screen. Returns its inner area.
pub(super) fn frame(state: &State, buffer: &mut Buffer, area: Rect, size: (u16, u16)) -> Rect {
    frame_in(&state.theme, buffer, area, size)
}

/// Paints a box in the middle of the screen, in the colours of a theme. Returns its inner area.
pub(super) fn frame_in(theme: &Theme, buffer: &mut Buffer, area: Rect, (width, height): (u16, u16)) -> Rect {
    let width = width.min(area.width.saturating_sub(2));
    let height = height.min(area.height.saturating_sub(2));
    let y = (area.height - height) / 3;
    let outer = Rect::new((area.width - width) / 2, y.max(1).min(area.height - height), width, height);
    clear(buffer, outer, theme.panel);
    buffer.set_style(outer, Style::new().fg(theme.text));
    Rect::new(outer.x + 2, outer.y + 1, outer.width.saturating_sub(4), outer.height.saturating_sub(2))
}

pub(super) fn heading(state: &State, title: &str, width: u16) -> Text<'static> {
    heading_in(&state.theme, title, width)
}

/// Returns the title line of a box, in the colours of a theme.
pub(super) fn heading_in(theme: &Theme, title: &str, width: u16) -> Text<'static> {
    let bold = Style::new().fg(theme.text).add_modifier(Modifier::BOLD);
    let muted = Style::new().fg(theme.muted);
    let title = wrap::shorten(&clean_line(title), usize::from(width).saturating_sub(5));
    both_ends(vec![Span::styled(title, bold)], vec![Span::styled("esc", muted)], width)
}

/// A row of a list. An entry is an index of the found items.
enum Row {
    Blank,
    Group(String),
    Entry(usize),
}

fn list_view(state: &State, list: &List, buffer: &mut Buffer, area: Rect) -> Option<(u16, u16)> {
    let wide = matches!(
        list.kind,
        Kind::Sessions
            | Kind::Timeline
            | Kind::History
            | Kind::Fork
            | Kind::Skills
            | Kind::Children
            | Kind::Mcp
            | Kind::Directories
            | Kind::Findings
    );
    let rows = rows(list);
    let foot = u16::from(!list.hint.is_empty()) * 2;
    let height = u16::try_from(rows.len()).unwrap_or(MAX_HEIGHT).clamp(1, MAX_HEIGHT) + 6 + foot;
    let size = (if wide { 88 } else { 64 }, height.min(MAX_HEIGHT));
    let inner = frame(state, buffer, area, size);
    let muted = Style::new().fg(state.theme.muted);
    put(buffer, inner, 0, &heading(state, list.title, inner.width));
    let query = clean_line(list.query.text());
    let shown = if query.is_empty() { Span::styled("Search", muted) } else { Span::raw(query.clone()) };
    put(buffer, inner, 2, &Text::from(shown));
    let body = Rect::new(inner.x, inner.y + 4, inner.width, inner.height.saturating_sub(4 + foot));
    if list.found.is_empty() {
        let text = match (&list.kind, list.items.is_empty()) {
            (_, false) => "no matches",
            (Kind::Mcp, true) => "no MCP server is configured: `codewright mcp add` adds one",
            (_, true) => "empty",
        };
        for (y, line) in
            (0..body.height).zip(wrap::words(&[Span::styled(text, muted)], usize::from(body.width)))
        {
            put(buffer, body, y, &line);
        }
    }
    let at =
        rows.iter().position(|row| matches!(row, Row::Entry(entry) if *entry == list.selected)).unwrap_or(0);
    let first = at.saturating_sub(usize::from(body.height).saturating_sub(1) / 2);
    let first = first.min(rows.len().saturating_sub(usize::from(body.height)));
    for (y, row) in (0..body.height).zip(rows.iter().skip(first)) {
        match row {
            Row::Blank => {}
            Row::Group(name) => {
                let style = Style::new().fg(state.theme.accent).add_modifier(Modifier::BOLD);
                put(buffer, body, y, &Text::from(Span::styled(name.clone(), style)));
            }
            Row::Entry(entry) => put(buffer, body, y, &item(state, list, *entry, body.width)),
        }
    }
    if !list.hint.is_empty() {
        let hint = wrap::shorten(&list.hint, usize::from(inner.width));
        put(buffer, inner, inner.height.saturating_sub(1), &Text::from(Span::styled(hint, muted)));
    }
    let x = inner.x + u16::try_from(wrap::width(&query)).unwrap_or(0);
    Some((x.min(inner.x + inner.width), inner.y + 2))
}

fn rows(list: &List) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut group: Option<&str> = None;
    for (place, at) in list.found.iter().enumerate() {
        let item = &list.items[*at];
        if list.is_grouped() && group != Some(&item.group) {
            if !item.group.is_empty() {
                if !rows.is_empty() {
                    rows.push(Row::Blank);
                }
                rows.push(Row::Group(item.group.clone()));
            }
            group = Some(&item.group);
        }
        rows.push(Row::Entry(place));
    }
    rows
}

fn item(state: &State, list: &List, place: usize, width: u16) -> Text<'static> {
    let Some(at) = list.found.get(place) else { return Text::default() };
    let item = &list.items[*at];
    let selected = place == list.selected;
    let doomed = list.doomed == Some(*at);
    let theme = &state.theme;
    let (text, muted) = match (selected, doomed) {
        (true, true) => {
            (Style::new().fg(theme.selected_text).bg(theme.error), Style::new().fg(theme.selected_text))
        }
        (true, false) => {
            (Style::new().fg(theme.selected_text).bg(theme.primary), Style::new().fg(theme.selected_text))
        }
        (false, _) => (Style::new().fg(theme.text), Style::new().fg(theme.muted)),
    };
    let mark = if item.current {
        "● "
    } else if selected {
        "› "
    } else {
        "  "
    };
    let note = if doomed { "press again to delete".to_owned() } else { item.note.clone() };
    let room = usize::from(width).saturating_sub(wrap::width(&note) + 3);
    let label = wrap::shorten(&item.label, room.saturating_sub(2));
    let rest = room.saturating_sub(wrap::width(&label) + 3);
    let detail = if rest > 6 { wrap::shorten(&item.detail, rest) } else { String::new() };
    let left = vec![Span::styled(format!("{mark}{label} "), text), Span::styled(detail, muted)];
    let line = both_ends(left, vec![Span::styled(format!("{note} "), muted)], width);
    if selected { line.style(text) } else { line }
}

fn confirm_view(state: &State, confirm: &Confirm, buffer: &mut Buffer, area: Rect) {
    let theme = &state.theme;
    let width = 64_u16.min(area.width.saturating_sub(2));
    let style = Style::new().fg(theme.text);
    let about =
        wrap::words(&[Span::styled(confirm.about.clone(), style)], usize::from(width.saturating_sub(4)));
    let count = u16::try_from(about.len()).unwrap_or(0);
    let inner = frame(state, buffer, area, (width, count + 6));
    put(buffer, inner, 0, &heading(state, confirm.title, inner.width));
    for (at, line) in (2..).zip(&about) {
        put(buffer, inner, at, line);
    }
    let buttons = [("Cancel", !confirm.sure), (confirm.button, confirm.sure)].map(|(name, selected)| {
        let style = if selected {
            Style::new().fg(theme.selected_text).bg(theme.primary).add_modifier(Modifier::BOLD)
        } else {
            Style::new().fg(theme.muted)
        };
        // Without colours the brackets show the selection.
        Span::styled(if selected { format!("[{name}]") } else { format!(" {name} ") }, style)
    });
    let [cancel, button] = buttons;
    let right = vec![cancel, Span::raw(" "), button];
    let hint = Span::styled("⇆ select  enter confirm", Style::new().fg(theme.muted));
    put(buffer, inner, inner.height.saturating_sub(1), &both_ends(vec![hint], right, inner.width));
}

fn line_view(state: &State, line: &Line, buffer: &mut Buffer, area: Rect) -> Option<(u16, u16)> {
    let muted = Style::new().fg(state.theme.muted);
    let width = 64_u16.min(area.width.saturating_sub(2));
    let about = wrap::words(&[Span::styled(line.about.clone(), muted)], usize::from(width.saturating_sub(4)));
    let about = if line.about.is_empty() { Vec::new() } else { about };
    let height = 6 + u16::try_from(about.len()).unwrap_or(0);
    let inner = frame(state, buffer, area, (width, height));
    put(buffer, inner, 0, &heading(state, &line.title, inner.width));
    let text = if line.secret {
        "•".repeat(line.editor.text().chars().count())
    } else {
        clean_line(line.editor.text())
    };
    let before =
        if line.secret { line.editor.before().chars().count() } else { wrap::width(line.editor.before()) };
    let room = usize::from(inner.width).saturating_sub(1);
    let skipped = before.saturating_sub(room);
    let shown = wrap::fitting(&text, before + room).to_owned();
    let shown: String = if skipped > 0 { wrap::shorten_front(&shown, room) } else { shown };
    put(buffer, inner, 2, &Text::from(Span::raw(shown)));
    for (at, line) in (4..).zip(&about) {
        put(buffer, inner, at, line);
    }
    Some((inner.x + u16::try_from(before - skipped).unwrap_or(0), inner.y + 2))
}
