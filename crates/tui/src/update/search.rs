//! Keys of the search in the transcript.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{older, with_transcript};
use crate::msg::Cmd;
use crate::request::type_into;
use crate::search::{Occurrence, Progress, Search, occurrences};
use crate::state::State;
use crate::transcript::{Body, Place, Sought};

/// Opens the search.
pub(crate) fn open(state: &mut State) {
    if state.options.mini.is_some() {
        state.warn("the messages are in the scrollback of the terminal, which has its own search");
        return;
    }
    state.search = Some(Search::default());
}

/// The direction of a move between occurrences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Move {
    Older,
    Newer,
}

pub(super) fn key(state: &mut State, key: KeyEvent) -> Vec<Cmd> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let Some(search) = &mut state.search else { return Vec::new() };
    let step = match key.code {
        KeyCode::Esc => return close(state),
        KeyCode::Char('c') if control => return close(state),
        KeyCode::Char('p') if control => Some(Move::Older),
        KeyCode::Char('n') if control => Some(Move::Newer),
        KeyCode::Up => Some(Move::Older),
        KeyCode::Down => Some(Move::Newer),
        KeyCode::Enter if !search.is_moving => {
            search.is_moving = search.current().is_some();
            None
        }
        KeyCode::Enter | KeyCode::Char('n') if search.is_moving => Some(Move::Older),
        KeyCode::Char('N' | 'p') if search.is_moving => Some(Move::Newer),
        KeyCode::Char('q') if search.is_moving => return close(state),
        KeyCode::Char('/') | KeyCode::Backspace if search.is_moving => {
            search.is_moving = false;
            None
        }
        KeyCode::PageUp => return super::scroll(state, -super::act::page(state)),
        KeyCode::PageDown => return super::scroll(state, super::act::page(state)),
        _ if search.is_moving => None,
        _ => {
            type_into(&mut search.editor, key);
            restart(state);
            None
        }
    };
    match step {
        Some(step) => go(state, step),
        None => Vec::new(),
    }
}

/// Pastes text into the search.
pub(super) fn paste(state: &mut State, text: &str) {
    if let Some(search) = &mut state.search {
        search.editor.insert(&crate::clean::clean_line(text));
        restart(state);
    }
}

fn close(state: &mut State) -> Vec<Cmd> {
    state.search = None;
    Vec::new()
}

fn restart(state: &mut State) {
    let transcript = state.session_id().and_then(|id| state.mirror.transcripts.get(id));
    if let (Some(search), Some(transcript)) = (&mut state.search, transcript) {
        search.restart(transcript);
    }
}

fn go(state: &mut State, step: Move) -> Vec<Cmd> {
    let Some(search) = &mut state.search else { return Vec::new() };
    let moved = match step {
        Move::Older => search.older(),
        Move::Newer => search.newer(),
    };
    if moved {
        show(state);
    }
    Vec::new()
}

/// Continues the search, and shows the place that it found.
pub(super) fn advance(state: &mut State) -> Vec<Cmd> {
    let Some(mut search) = state.search.take() else { return Vec::new() };
    let transcript = state.session_id().and_then(|id| state.mirror.transcripts.get(id));
    let Some(transcript) = transcript else { return Vec::new() };
    let progress = search.advance(transcript);
    state.search = Some(search);
    match progress {
        Progress::Done => Vec::new(),
        Progress::Found => {
            show(state);
            Vec::new()
        }
        Progress::NeedsOlder => older(state),
    }
}

/// Scrolls to the current occurrence, and unfolds the part that contains it.
fn show(state: &mut State) {
    let Some(search) = &state.search else { return };
    let Some(found) = search.current() else { return };
    let needle = search.needle().to_owned();
    unfold(state, &found);
    with_transcript(state, |transcript, look, height| {
        let Some(entry) = transcript.find(&found.message) else { return };
        let place = Place { entry, part: found.part, block: 0 };
        transcript.seek(look, Sought { place, nth: found.nth }, height, &|row| occurrences(row, &needle));
    });
}

fn unfold(state: &mut State, found: &Occurrence) {
    let Some(transcript) = state.session_id().and_then(|id| state.mirror.transcripts.get(id)) else { return };
    let entry = transcript.find(&found.message).and_then(|at| transcript.entries.get(at));
    let Some(part) = entry.and_then(|entry| entry.parts.get(found.part)) else { return };
    let can_fold = matches!(part.body, Body::Tool(_) | Body::Reasoning { .. });
    if can_fold && !state.look(80).is_open(part) {
        let id = part.id.clone();
        if !state.expanded.remove(&id) {
            state.expanded.insert(id);
        }
    }
}
