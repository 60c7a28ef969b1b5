//! The list of the project's sessions, to open, pin, rename, delete and search.

use codewright_proto::{Session, SessionStatus};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Item, Kind, Layer, List, Pick};
use crate::msg::Cmd;
use crate::state::State;

pub(crate) fn open(state: &mut State) -> Vec<Cmd> {
    let list = List::new(Kind::Sessions, "Sessions", items(state));
    state.layers.push(Layer::List(list.hint("pin ctrl+f   rename ctrl+r   delete ctrl+d")));
    vec![Cmd::ListSessions { search: String::new() }]
}

/// Updates the open list.
pub(crate) fn refresh(state: &mut State) {
    if !matches!(state.layers.last(), Some(Layer::List(list)) if list.kind == Kind::Sessions) {
        return;
    }
    let items = items(state);
    let Some(Layer::List(list)) = state.layers.last_mut() else { return };
    let pick_at = |list: &List, at: usize| list.items.get(at).map(|item| item.pick.clone());
    let (before, selected) = (list.selected_item().map(|item| item.pick.clone()), list.selected);
    let doomed = list.doomed.and_then(|at| pick_at(list, at));
    list.fill(items);
    if list.selected_item().map(|item| &item.pick) != before.as_ref() {
        // The selected session was removed, so its neighbour is selected.
        list.selected = selected.min(list.found.len().saturating_sub(1));
    }
    // The items may have moved, and the second key must not delete another session.
    list.doomed = doomed.and_then(|pick| list.items.iter().position(|item| item.pick == pick));
}

/// Searches on the server, because not all sessions are fetched.
pub(super) fn search(state: &State) -> Vec<Cmd> {
    match state.layers.last() {
        Some(Layer::List(list)) if list.kind == Kind::Sessions && !list.query.is_empty() => {
            vec![Cmd::ListSessions { search: list.query.text().to_owned() }]
        }
        _ => Vec::new(),
    }
}

fn items(state: &State) -> Vec<Item> {
    let zone = &state.options.zone;
    let sessions = state.mirror.sessions.values();
    let mut sessions: Vec<&Session> =
        sessions.filter(|session| session.parent_id.is_none() && session.time.archived.is_none()).collect();
    let is_pinned = |session: &Session| state.local.pinned.iter().any(|id| id == session.id.as_str());
    sessions.sort_by_key(|session| (!is_pinned(session), std::cmp::Reverse(session.time.updated)));
    let items = sessions.into_iter().map(|session| {
        let group =
            if is_pinned(session) { "Pinned".to_owned() } else { zone.day(session.time.updated, state.now) };
        let busy = match state.mirror.statuses.get(&session.id) {
            Some(SessionStatus::Busy) => "running",
            Some(SessionStatus::Retry { .. }) => "waiting for the provider",
            Some(SessionStatus::Idle) | None => "",
        };
        let waits = state.mirror.permissions.iter().any(|request| request.session_id == session.id)
            || state.mirror.questions.iter().any(|request| request.session_id == session.id);
        Item::new(&session.title, Pick::Session(session.id.clone()))
            .group(group)
            .detail(if waits { "waiting for you" } else { busy })
            .note(zone.clock(session.time.updated))
            .current(Some(&session.id) == state.session_id())
    });
    items.collect()
}

pub(super) fn key(state: &mut State, key: KeyEvent) -> Option<Vec<Cmd>> {
    if !key.modifiers.contains(KeyModifiers::CONTROL) {
        return None;
    }
    let Some(Layer::List(list)) = state.layers.last_mut() else { return None };
    let at = *list.found.get(list.selected)?;
    let Pick::Session(id) = list.items.get(at)?.pick.clone() else { return None };
    match key.code {
        KeyCode::Char('d') if list.doomed == Some(at) => {
            list.doomed = None;
            Some(vec![Cmd::Delete(id)])
        }
        KeyCode::Char('d') => {
            list.doomed = Some(at);
            Some(Vec::new())
        }
        KeyCode::Char('r') => {
            super::rename::open(state, &id);
            Some(Vec::new())
        }
        KeyCode::Char('f') => {
            match state.local.pinned.iter().position(|known| known == id.as_str()) {
                Some(at) => drop(state.local.pinned.remove(at)),
                None => state.local.pinned.push(id.to_string()),
            }
            refresh(state);
            Some(vec![Cmd::Save(state.saved_choices())])
        }
        _ => None,
    }
}
