//! The list of MCP servers, to turn them on and off.

use crossterm::event::{KeyCode, KeyEvent};

use super::{Item, Kind, Layer, Line, List, Pick, Purpose};
use crate::clean::clean_line;
use crate::editor::Editor;
use crate::mirror::Mcp;
use crate::msg::Cmd;
use crate::state::State;

pub(crate) fn open(state: &mut State) {
    let list = List::new(Kind::Mcp, "MCP servers", items(state));
    state.layers.push(Layer::List(list.hint("turn on or off space")));
}

/// Updates the open list, and closes the sign-in to a server that is connected now.
pub(crate) fn refresh(state: &mut State) {
    let mirror = &state.mirror;
    let is_connected =
        |name: &str| mirror.mcp.iter().any(|server| server.name == name && server.status == "connected");
    state.layers.retain(|layer| match layer {
        Layer::Line(Line { purpose: Purpose::McpCode(name), .. }) => !is_connected(name),
        _ => true,
    });
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

/// Displays the page of a sign-in. It ends by itself if the browser returns to the server's machine.
pub(crate) fn show_url(state: &mut State, name: String, url: &str) -> Vec<Cmd> {
    let url = clean_line(url);
    state.layers.push(Layer::Line(Line {
        title: format!("Sign in to {}", clean_line(&name)),
        about: format!(
            "Open {url} in a browser. This continues automatically when you have signed in. If the browser is on another \
             machine, paste the address that it ends at here, then enter."
        ),
        editor: Editor::default(),
        secret: false,
        purpose: Purpose::McpCode(name),
    }));
    vec![Cmd::Copy(url)]
}

/// Connects to the selected server, or disconnects from it. Starts a sign-in if the server needs one.
pub(super) fn switch(state: &mut State) -> Vec<Cmd> {
    let Some(Layer::List(list)) = state.layers.last_mut() else { return Vec::new() };
    let selected = list.found.get(list.selected).copied();
    let Some(item) = selected.and_then(|at| list.items.get_mut(at)) else { return Vec::new() };
    let Pick::Mcp { name, on } = item.pick.clone() else { return Vec::new() };
    "…".clone_into(&mut item.note);
    let needs_sign_in = |server: &Mcp| server.name == name && server.status == "needs_auth";
    if state.mirror.mcp.iter().any(needs_sign_in) {
        return vec![Cmd::BeginMcpSignIn(name)];
    }
    vec![Cmd::SwitchMcp { name, on: !on }]
}

fn items(state: &State) -> Vec<Item> {
    let items = state.mirror.mcp.iter().map(|server| {
        let on = server.status == "connected";
        let note = match server.status.as_str() {
            "connected" => "✓ on",
            "needs_auth" => "sign in",
            _ => "○ off",
        };
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
