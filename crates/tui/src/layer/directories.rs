//! The directories that a session can be moved to: those of its project, a new worktree, and workspaces.

use serde_json::Value;

use super::{Item, Kind, Layer, Line, List, Pick, Purpose};
use crate::editor::Editor;
use crate::msg::Cmd;
use crate::state::State;

pub(crate) fn open(state: &mut State) -> Vec<Cmd> {
    state.layers.push(Layer::List(List::new(Kind::Directories, "Move session", Vec::new()).hint("loading…")));
    vec![Cmd::LoadDirectories]
}

/// Fills the open list.
pub(crate) fn fill(state: &mut State, directories: &Value, workspaces: &Value) {
    let current = state.session().map_or(&state.mirror.directory, |session| &session.directory).clone();
    let display = |path: &str| crate::look::display_path(path, "", &state.mirror.home);
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let mut items: Vec<Item> = Vec::new();
    for directory in directories.as_array().into_iter().flatten() {
        let path = text(directory, "directory");
        let is_current = path == current;
        let group = if is_current { "Current" } else { "Directories of the project" };
        items.push(Item::new(display(&path), Pick::Directory(path)).group(group).current(is_current));
    }
    items.sort_by_key(|item| !item.current);
    let known = workspaces.as_array().into_iter().flatten();
    let known = known.filter_map(|workspace| {
        let directory = workspace["directory"].as_str()?;
        let item = Item::new(text(workspace, "name"), Pick::Directory(directory.to_owned()));
        Some(item.group("Workspaces").detail(display(directory)).note(text(workspace, "type")))
    });
    let new = Item::new("New worktree…", Pick::NewWorktree);
    items.push(new.group("Create").detail("a directory with a branch of its own"));
    items.extend(known);
    if let Some(Layer::List(list)) = state.layers.last_mut()
        && list.kind == Kind::Directories
    {
        list.fill(items);
        list.hint.clear();
    }
}

pub(super) fn pick(state: &mut State, directory: String) -> Vec<Cmd> {
    match state.session() {
        Some(session) if session.directory != directory => {
            vec![Cmd::Move { session: session.id.clone(), directory }]
        }
        Some(_) | None => Vec::new(),
    }
}

/// Reads the name of a new worktree.
pub(super) fn name_worktree(state: &mut State) -> Vec<Cmd> {
    let Some(session) = state.session().map(|session| session.id.clone()) else { return Vec::new() };
    state.layers.push(Layer::Line(Line {
        title: "New worktree".to_owned(),
        about: "Uncommitted changes stay in this directory.".to_owned(),
        editor: Editor::default(),
        secret: false,
        purpose: Purpose::Worktree(session),
    }));
    Vec::new()
}
