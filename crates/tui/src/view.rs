//! Draws the state on a screen.
//!
//! [`arrange`] computes the layout and the visible rows of the transcript. [`view`] paints them.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::link::{self, Link};
use crate::scroll::Position;
use crate::state::{Link as Connection, Route, State};
use crate::transcript::Row;

mod home;
mod layer;
pub(crate) mod mini;
mod page;
mod prompt;
mod request;
mod review;
mod search;
pub(crate) mod sidebar;
pub(crate) mod trust;
mod usage;

pub(crate) use prompt::thousands;

/// The minimum width of a screen with a sidebar.
pub(crate) const SIDEBAR_FROM: u16 = 120;
const SIDEBAR_WIDTH: u16 = 42;
/// The smallest terminal that can show anything.
const MIN_SIZE: (u16, u16) = (20, 6);

/// The areas of the screen.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Layout {
    pub(crate) transcript: Rect,
    pub(crate) bottom: Rect,
    pub(crate) footer: Rect,
    pub(crate) sidebar: Option<Rect>,
    /// The width of the prompt's text.
    pub(crate) prompt_width: u16,
}

/// The content of the screen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Screen {
    pub(crate) layout: Layout,
    pub(crate) rows: Vec<Row>,
    /// The links in the rows.
    pub(crate) links: Vec<Link>,
    /// The prompt, or the dialog in its place.
    pub(crate) bottom: Bottom,
}

/// The lines at the bottom, and the position of the cursor in them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bottom {
    pub(crate) lines: Vec<Line<'static>>,
    pub(crate) cursor: Option<(u16, u16)>,
}

/// Computes the content of the screen.
pub(crate) fn arrange(state: &mut State) {
    let (width, height) = state.size;
    if width < MIN_SIZE.0 || height < MIN_SIZE.1 {
        state.screen = Screen::default();
        return;
    }
    match state.route.clone() {
        Route::Home => {
            let box_width = home::prompt_width(width);
            let bottom = prompt::lines(state, box_width, height / 2);
            let layout = home::layout(state, (width, height), &bottom);
            state.screen = Screen { layout, bottom, ..Screen::default() };
        }
        Route::Session(id) => {
            let is_enabled = state.local.sidebar.unwrap_or(true);
            let sidebar = (width >= SIDEBAR_FROM && is_enabled).then_some(SIDEBAR_WIDTH);
            let main = width - sidebar.unwrap_or(0);
            let bottom = if state.search.is_some() {
                search::lines(state, main)
            } else if state.requests.permission.is_some() || state.requests.question.is_some() {
                request::lines(state, main, height)
            } else {
                prompt::lines(state, main, height / 3)
            };
            let footer = height - 1;
            let count = u16::try_from(bottom.lines.len()).unwrap_or(u16::MAX).min(footer.saturating_sub(1));
            let layout = Layout {
                transcript: Rect::new(0, 0, main, footer - count),
                bottom: Rect::new(0, footer - count, main, count),
                footer: Rect::new(0, footer, main, 1),
                sidebar: sidebar.map(|sidebar| Rect::new(main, 0, sidebar, height)),
                prompt_width: prompt::text_width(main),
            };
            state.screen = Screen { layout, bottom, ..Screen::default() };
            if let Some(mut transcript) = state.mirror.transcripts.remove(&id) {
                let area = state.screen.layout.transcript;
                let look = state.look(usize::from(area.width));
                let rows = transcript.rows(&look, usize::from(area.height));
                state.mirror.transcripts.insert(id, transcript);
                state.screen.links = link::collect(&rows);
                state.screen.rows = rows;
            }
        }
    }
}

/// Paints the content of the screen.
pub(crate) fn view(state: &State, frame: &mut Frame<'_>) {
    let area = frame.area();
    let theme = &state.theme;
    let buffer = frame.buffer_mut();
    buffer.set_style(area, Style::new().fg(theme.text).bg(theme.background));
    if area.width < MIN_SIZE.0 || area.height < MIN_SIZE.1 {
        let text = Line::from("terminal too small");
        put(buffer, area, 0, &text);
        return;
    }
    match state.route {
        Route::Home => home::view(state, buffer, area),
        Route::Session(_) => session(state, buffer),
    }
    prompt::completions(state, buffer);
    let mut cursor = bottom_cursor(state);
    for layer in &state.layers {
        cursor = layer::view(state, layer, buffer, area);
    }
    notes(state, buffer, area);
    if let Some((x, y)) = cursor.filter(|(x, y)| *x < area.width && *y < area.height) {
        frame.set_cursor_position((x, y));
    }
    if state.options.ascii {
        crate::ascii::screen(frame.buffer_mut());
    }
}

fn bottom_cursor(state: &State) -> Option<(u16, u16)> {
    let bottom = state.screen.layout.bottom;
    let (x, y) = state.screen.bottom.cursor?;
    (y < bottom.height).then_some((bottom.x + x, bottom.y + y))
}

fn session(state: &State, buffer: &mut Buffer) {
    let layout = state.screen.layout;
    let rows = &state.screen.rows;
    // A short transcript begins at the top.
    for (at, row) in (0..).zip(rows) {
        put(buffer, layout.transcript, at, &row.line);
    }
    if rows.is_empty() {
        empty(state, buffer, layout.transcript);
    }
    search::mark(state, buffer);
    selected(state, buffer);
    for (at, line) in (0..).zip(&state.screen.bottom.lines) {
        put(buffer, layout.bottom, at, line);
    }
    put(buffer, layout.footer, 0, &prompt::footer(state, layout.footer.width));
    if let Some(area) = layout.sidebar {
        sidebar::view(state, buffer, area);
    }
}

/// Marks the cells that are selected with the mouse.
fn selected(state: &State, buffer: &mut Buffer) {
    let Some(selection) = &state.selection else { return };
    let area = state.screen.layout.transcript.intersection(buffer.area);
    for (y, row) in (area.y..area.y + area.height).zip(&state.screen.rows) {
        let position = Position { place: row.place, line: row.at };
        let Some((from, to)) = selection.columns(position) else { continue };
        for x in area.x.saturating_add(from)
            ..=area.x.saturating_add(to).min((area.x + area.width).saturating_sub(1))
        {
            let cell = &mut buffer[(x, y)];
            cell.modifier.insert(Modifier::REVERSED);
        }
    }
}

fn empty(state: &State, buffer: &mut Buffer, area: Rect) {
    let loaded =
        state.session_id().and_then(|id| state.mirror.transcripts.get(id)).is_some_and(|known| known.loaded);
    let text = if loaded { "     no messages yet" } else { "     loading…" };
    put(buffer, area, 1, &Line::from(Span::styled(text, Style::new().fg(state.theme.muted))));
}

/// Paints the notes at the upper right.
fn notes(state: &State, buffer: &mut Buffer, area: Rect) {
    use codewright_proto::ToastVariant;
    let width = area.width.saturating_sub(4).min(60);
    let mut y = 1;
    let lost = match &state.link {
        Connection::Lost(why) => {
            Some((format!("no connection to the server: {why}. Reconnecting…"), ToastVariant::Error))
        }
        Connection::Opening | Connection::Open => None,
    };
    let notes = state.notes.iter().map(|note| (note.text.clone(), note.variant));
    for (text, variant) in lost.into_iter().chain(notes) {
        let colour = match variant {
            ToastVariant::Info => state.theme.info,
            ToastVariant::Success => state.theme.success,
            ToastVariant::Warning => state.theme.warning,
            ToastVariant::Error => state.theme.error,
        };
        let style = Style::new().fg(state.theme.text);
        let wrapped = text.lines().take(8).flat_map(|line| {
            crate::wrap::words(&[Span::styled(line.to_owned(), style)], usize::from(width.saturating_sub(4)))
        });
        let lines: Vec<Line<'static>> = wrapped.take(10).collect();
        let height = u16::try_from(lines.len()).unwrap_or(1) + 2;
        if y + height > area.height {
            return;
        }
        let place = Rect::new(area.width.saturating_sub(width + 2), y, width, height);
        clear(buffer, place, state.theme.panel);
        for (at, line) in (0..).zip(&lines) {
            let inner = Rect::new(place.x + 2, place.y + 1, place.width.saturating_sub(4), place.height);
            put(buffer, inner, at, line);
        }
        for row in place.y..place.y + place.height {
            buffer[(place.x, row)].set_symbol("┃").set_fg(colour);
        }
        y += height + 1;
    }
}

/// Writes a line into a row of an area.
fn put(buffer: &mut Buffer, area: Rect, row: u16, line: &Line<'_>) {
    let area = area.intersection(buffer.area);
    if row >= area.height {
        return;
    }
    let y = area.y + row;
    if line.style != Style::default() {
        buffer.set_style(Rect::new(area.x, y, area.width, 1), line.style);
    }
    buffer.set_line(area.x, y, line, area.width);
    link::unmark(buffer, y, area.x..area.x + area.width);
}

/// Clears an area.
fn clear(buffer: &mut Buffer, area: Rect, back: Color) {
    let area = area.intersection(buffer.area);
    for y in area.y..area.y + area.height {
        for x in area.x..area.x + area.width {
            buffer[(x, y)].reset();
        }
    }
    buffer.set_style(area, Style::new().bg(back));
}

/// Returns a row with text at the left and at the right.
fn both_ends(left: Vec<Span<'static>>, right: Vec<Span<'static>>, width: u16) -> Line<'static> {
    let width_of = |spans: &[Span<'static>]| spans.iter().map(Span::width).sum::<usize>();
    let blank = usize::from(width).saturating_sub(width_of(&left) + width_of(&right));
    let mut spans = left;
    spans.push(Span::raw(" ".repeat(blank)));
    spans.extend(right);
    Line::from(spans)
}
