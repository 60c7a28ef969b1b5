//! The mouse: scrolls, clicks, and selects text, which is copied when the button is released.

use codewright_proto::SessionId;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::{act, scroll, with_transcript};
use crate::layer::{self, Layer};
use crate::link::{self, Reference};
use crate::msg::Cmd;
use crate::scroll::Position;
use crate::selection::{PULL_MILLIS, Point, Pull, Selection};
use crate::state::State;
use crate::transcript::Body;

/// How many lines a step of the mouse wheel scrolls.
const WHEEL_LINES: isize = 3;
/// The maximum number of selected rows.
const MAX_ROWS: usize = 20_000;

pub(super) fn event(state: &mut State, mouse: MouseEvent) -> Vec<Cmd> {
    let (column, row) = (mouse.column, mouse.row);
    let wheel = match mouse.kind {
        MouseEventKind::ScrollUp => -WHEEL_LINES,
        MouseEventKind::ScrollDown => WHEEL_LINES,
        MouseEventKind::Down(MouseButton::Left) => return press(state, column, row),
        MouseEventKind::Drag(MouseButton::Left) => {
            drag(state, column, row);
            return Vec::new();
        }
        MouseEventKind::Up(MouseButton::Left) => return release(state, column, row),
        _ => return Vec::new(),
    };
    if let Some(layer) = state.layers.last_mut() {
        let code = if wheel < 0 { KeyCode::Up } else { KeyCode::Down };
        match layer {
            Layer::List(_) | Layer::Page(_) | Layer::Trust(_) => {
                return layer::key(state, KeyEvent::new(code, KeyModifiers::NONE));
            }
            Layer::Review(_) => return layer::review::wheel(state, wheel),
            Layer::Line(_) | Layer::Confirm(_) => return Vec::new(),
        }
    }
    scroll(state, wheel)
}

fn press(state: &mut State, column: u16, row: u16) -> Vec<Cmd> {
    state.selection = None;
    if let Some(Layer::Review(_)) = state.layers.last() {
        return layer::review::click(state, column, row);
    }
    let area = state.screen.layout.transcript;
    if state.layers.is_empty() && area.contains((column, row).into()) {
        state.selection = point(state, column, row).map(Selection::new);
    }
    Vec::new()
}

/// Returns the cell of the transcript at a cell of the screen, or the nearest one.
fn point(state: &State, column: u16, row: u16) -> Option<Point> {
    let area = state.screen.layout.transcript;
    let last = state.screen.rows.len().checked_sub(1)?;
    let at = usize::from(row.saturating_sub(area.y)).min(last);
    let shown = &state.screen.rows[at];
    let column = column.saturating_sub(area.x).min(area.width.saturating_sub(1));
    Some(Point { row: Position { place: shown.place, line: shown.at }, column })
}

fn drag(state: &mut State, column: u16, row: u16) {
    let area = state.screen.layout.transcript;
    let Some(at) = point(state, column, row) else { return };
    let is_reading = super::is_reading(state);
    let Some(selection) = state.selection.as_mut().filter(|selection| selection.is_held) else { return };
    selection.has_moved |= at != selection.anchor;
    selection.head = at;
    selection.pull = if row <= area.y {
        Some(Pull::Up)
    } else if row + 1 >= area.y + area.height && is_reading {
        Some(Pull::Down)
    } else {
        None
    };
}

/// Moves the transcript while the mouse pulls it at its edge.
pub(super) fn pull(state: &mut State) -> Vec<Cmd> {
    let now = state.now;
    let Some(selection) = &mut state.selection else { return Vec::new() };
    let Some(pull) = selection.pull.filter(|_| now >= selection.pulled_at + PULL_MILLIS) else {
        return Vec::new();
    };
    selection.pulled_at = now;
    let column = selection.head.column;
    let cmds = scroll(state, if pull == Pull::Up { -1 } else { 1 });
    crate::view::arrange(state);
    let area = state.screen.layout.transcript;
    let row = if pull == Pull::Up { area.y } else { area.y + area.height.saturating_sub(1) };
    let at = point(state, area.x + column, row);
    let is_at_end = !super::is_reading(state);
    if let (Some(selection), Some(at)) = (&mut state.selection, at) {
        selection.has_moved |= at != selection.anchor;
        selection.head = at;
        if is_at_end && pull == Pull::Down {
            selection.pull = None;
        }
    }
    cmds
}

fn release(state: &mut State, column: u16, row: u16) -> Vec<Cmd> {
    let Some(selection) = &mut state.selection else { return Vec::new() };
    (selection.pull, selection.is_held) = (None, false);
    if !selection.has_moved {
        state.selection = None;
        return click(state, column, row);
    }
    let text = selected_text(state);
    if text.trim().is_empty() {
        state.selection = None;
        return Vec::new();
    }
    vec![Cmd::Copy(text)]
}

fn selected_text(state: &mut State) -> String {
    let Some(selection) = state.selection.clone() else { return String::new() };
    let (first, last) = selection.ends();
    let rows = with_transcript(state, |transcript, look, _| {
        transcript.lines_between(look, first.row, last.row, MAX_ROWS)
    });
    let rows = rows.unwrap_or_default();
    if rows.len() >= MAX_ROWS {
        state.warn(format!("only the first {MAX_ROWS} selected rows were copied"));
    }
    selection.text(&rows)
}

/// Handles a click: opens a file, or folds or unfolds a part.
fn click(state: &mut State, column: u16, row: u16) -> Vec<Cmd> {
    let area = state.screen.layout.transcript;
    if !state.layers.is_empty() || !area.contains((column, row).into()) {
        return Vec::new();
    }
    let (column, row) = (column - area.x, row - area.y);
    if let Some(Reference::File(file)) = link::at(&state.screen.links, column, row)
        && state.options.has_local_files
    {
        return vec![Cmd::OpenFile(file.clone())];
    }
    let Some(row) = state.screen.rows.get(usize::from(row)) else { return Vec::new() };
    let place = row.place;
    let Some(id) = state.session_id().cloned() else { return Vec::new() };
    let Some(transcript) = state.mirror.transcripts.get(&id) else { return Vec::new() };
    let part = transcript.entries.get(place.entry).and_then(|entry| entry.parts.get(place.part));
    let Some(part) = part else { return Vec::new() };
    match &part.body {
        Body::Tool(_) | Body::Reasoning { .. } => {
            let child = match &part.body {
                Body::Tool(tool) if tool.tool == "task" => act::child_of(tool),
                Body::Tool(_) | Body::Reasoning { .. } | Body::Text { .. } | Body::Other(_) => None,
            };
            let part = part.id.clone();
            let is_opened = !state.expanded.remove(&part);
            if is_opened {
                state.expanded.insert(part);
            }
            child.filter(|_| is_opened).map(|child| load_child(state, child)).unwrap_or_default()
        }
        Body::Text { .. } | Body::Other(_) => Vec::new(),
    }
}

/// Fetches the calls of a subagent that is opened in place.
fn load_child(state: &mut State, child: SessionId) -> Vec<Cmd> {
    state.mirror.open(&child);
    // The session on the screen stays the most recent one.
    if let Some(id) = state.session_id().cloned() {
        state.mirror.open(&id);
    }
    match state.mirror.transcripts.get_mut(&child) {
        Some(transcript) if !transcript.loaded && !transcript.fetching => {
            transcript.begin_fetch();
            vec![Cmd::LoadMessages(child)]
        }
        Some(_) | None => Vec::new(),
    }
}
