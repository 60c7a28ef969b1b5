//! The sessions of the project: open, pin, rename, delete, search.

use codewright_proto::{Session, SessionStatus};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Item, Kind, Layer, List, Pick};
use crate::msg::Cmd;
use crate::state::State;

const DAY: u64 = 86_400_000;

pub(crate) fn open(state: &mut State) -> Vec<Cmd> {
    let list = List::new(Kind::Sessions, "Sessions", items(state));
    state.layers.push(Layer::List(list.hint("pin ctrl+f   rename ctrl+r   delete ctrl+d")));
    vec![Cmd::ListSessions { search: String::new() }]
}

/// Shows what has become known meanwhile.
pub(crate) fn refresh(state: &mut State) {
    if !matches!(state.layers.last(), Some(Layer::List(list)) if list.kind == Kind::Sessions) {
        return;
    }
    let items = items(state);
    let Some(Layer::List(list)) = state.layers.last_mut() else { return };
    let pick_at = |list: &List, at: usize| list.items.get(at).map(|item| item.pick.clone());
    let (before, selected) = (list.picked().map(|item| item.pick.clone()), list.selected);
    let doomed = list.doomed.and_then(|at| pick_at(list, at));
    list.fill(items);
    if list.picked().map(|item| &item.pick) != before.as_ref() {
        // It is gone, and its neighbour stands in its place.
        list.selected = selected.min(list.found.len().saturating_sub(1));
    }
    // The items may stand elsewhere now, and a second key must not delete another.
    list.doomed = doomed.and_then(|pick| list.items.iter().position(|item| item.pick == pick));
}

/// The server knows sessions that are not here yet.
pub(super) fn searched(state: &State) -> Vec<Cmd> {
    match state.layers.last() {
        Some(Layer::List(list)) if list.kind == Kind::Sessions && !list.query.is_empty() => {
            vec![Cmd::ListSessions { search: list.query.text().to_owned() }]
        }
        _ => Vec::new(),
    }
}

fn items(state: &State) -> Vec<Item> {
    let sessions = state.mirror.sessions.values();
    let mut sessions: Vec<&Session> =
        sessions.filter(|session| session.parent_id.is_none() && session.time.archived.is_none()).collect();
    let is_pinned = |session: &Session| state.local.pinned.iter().any(|id| id == session.id.as_str());
    sessions.sort_by_key(|session| (!is_pinned(session), std::cmp::Reverse(session.time.updated)));
    let items = sessions.into_iter().map(|session| {
        let group =
            if is_pinned(session) { "Pinned".to_owned() } else { day(session.time.updated, state.now) };
        let busy = match state.mirror.statuses.get(&session.id) {
            Some(SessionStatus::Busy) => "at work",
            Some(SessionStatus::Retry { .. }) => "waits for the provider",
            Some(SessionStatus::Idle) | None => "",
        };
        let waits = state.mirror.permissions.iter().any(|request| request.session_id == session.id)
            || state.mirror.questions.iter().any(|request| request.session_id == session.id);
        Item::new(&session.title, Pick::Session(session.id.clone()))
            .group(group)
            .detail(if waits { "waits for you" } else { busy })
            .note(crate::look::clock(session.time.updated))
            .current(Some(&session.id) == state.session_id())
    });
    items.collect()
}

fn day(time: u64, now: u64) -> String {
    match (now / DAY).saturating_sub(time / DAY) {
        0 => "Today".to_owned(),
        1 => "Yesterday".to_owned(),
        days => date(time / DAY).unwrap_or_else(|| format!("{days} days ago")),
    }
}

/// A day since 1970 as a date of the calendar.
fn date(days: u64) -> Option<String> {
    // Howard Hinnant's days_from_civil, turned around.
    let shifted = i64::try_from(days).ok()? + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Some(format!("{year:04}-{month:02}-{day:02}"))
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
            Some(vec![Cmd::Save(state.saved())])
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_told_as_people_tell_them() {
        let now = 1_795_300_000_000;
        assert_eq!(day(now, now), "Today");
        assert_eq!(day(now - DAY, now), "Yesterday");
        assert_eq!(day(now - 3 * DAY, now), "2026-11-18");
        assert_eq!(date(0).unwrap(), "1970-01-01");
        assert_eq!(date(11_016).unwrap(), "2000-02-29");
    }
}
