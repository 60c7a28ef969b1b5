//! The list of MCP servers, to turn them on and off.

use crossterm::event::{KeyCode, KeyEvent};

use super::{Item, Kind, Layer, List, Pick};
use crate::msg::Cmd;
use crate::state::State;

pub(crate) fn open(state: &mut State) {
    let list = List::new(Kind::Mcp, "MCP servers", items(state));
    state.layers.push(Layer::List(list.hint("turn on or off space")));
}

/// Updates the open list.
pub(crate) fn refresh(state: &mut State) {
    let items = items(state);
    if let Some(Layer::List(list)) = state.layers.last_mut()
        && list.kind == Kind::Mcp
    {
        let selected = list.selected;
        list.fill(items);
        list.selected = selected.min(list.found.len().saturating_sub(1));
    }
}

pub(super) fn is_switch_key(key: KeyEvent) -> bool {
    matches!(key.code, KeyCode::Enter | KeyCode::Char(' '))
}

/// Connects to the selected server, or disconnects from it.
pub(super) fn switch(state: &mut State) -> Vec<Cmd> {
    let Some(Layer::List(list)) = state.layers.last_mut() else { return Vec::new() };
    let selected = list.found.get(list.selected).copied();
    let Some(item) = selected.and_then(|at| list.items.get_mut(at)) else { return Vec::new() };
    let Pick::Mcp { name, on } = item.pick.clone() else { return Vec::new() };
    "…".clone_into(&mut item.note);
    vec![Cmd::SwitchMcp { name, on: !on }]
}

fn items(state: &State) -> Vec<Item> {
    let items = state.mirror.mcp.iter().map(|server| {
        let on = server.status == "connected";
        let note = if on { "✓ on" } else { "○ off" };
        let pick = Pick::Mcp { name: server.name.clone(), on };
        Item::new(&server.name, pick).detail(status_text(&server.status, server.error.as_deref())).note(note)
    });
    items.collect()
}

/// Returns the status of a server as text.
pub(crate) fn status_text(status: &str, error: Option<&str>) -> String {
    match (status, error) {
        ("connected", _) => "connected".to_owned(),
        ("disabled", _) => "disabled".to_owned(),
        ("needs_auth", _) => "needs sign-in".to_owned(),
        (_, Some(error)) => format!("failed: {error}"),
        (status, None) => status.replace('_', " "),
    }
}
