//! The keys of the changes viewer, and the sources of the changes.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;

use super::Layer;
use crate::msg::Cmd;
use crate::request;
use crate::review::{Change, DrawOptions, Focus, Review, Source, merge_files, split_files};
use crate::state::State;
use crate::view::sidebar;

/// The maximum number of changes that are remembered as reviewed.
const MAX_REVIEWED: usize = 2_000;

/// Opens the viewer with the changes in git, or outside a repository with those of the session.
pub(crate) fn open(state: &mut State) -> Vec<Cmd> {
    let session = state.session_id().cloned().filter(|_| state.mirror.branch.is_none());
    show(state, session.map_or(Source::WorkingTree, Source::Session))
}

/// Opens the viewer with the diff of the pending permission request.
pub(crate) fn open_request(state: &mut State) {
    if let Some(id) = request::permission(state).map(|request| request.id.clone()) {
        // The diff is part of the request, so nothing is fetched.
        drop(show(state, Source::Request(id)));
    }
}

fn show(state: &mut State, source: Source) -> Vec<Cmd> {
    let mut review = Review::new(source);
    review.reviewed = std::mem::take(&mut state.reviewed);
    state.layers.push(Layer::Review(Box::new(review)));
    load(state)
}

/// Fills the viewer, or returns the command that fetches the changes.
fn load(state: &mut State) -> Vec<Cmd> {
    let Some(Layer::Review(review)) = state.layers.last() else { return Vec::new() };
    let source = review.source.clone();
    let changes = match &source {
        Source::WorkingTree | Source::Branch => return vec![Cmd::LoadChanges(source)],
        Source::Session(_) => sidebar::diffs(state).map(Change::from).collect(),
        Source::LastTurn(_) => sidebar::last_diffs(state).iter().map(Change::from).collect(),
        Source::Request(_) => request_changes(state),
    };
    if let Some(Layer::Review(review)) = state.layers.last_mut() {
        review.load(merge_files(changes));
    }
    Vec::new()
}

fn request_changes(state: &State) -> Vec<Change> {
    let Some(request) = request::permission(state) else { return Vec::new() };
    let text = |key: &str| request.metadata.get(key).and_then(Value::as_str).unwrap_or_default();
    let path = match text("filepath") {
        "" => request.patterns.join(", "),
        path => crate::look::display_path(path, &state.mirror.directory, &state.mirror.home),
    };
    let mut changes = split_files(text("diff"), &path);
    if let [only] = changes.as_mut_slice() {
        // The name of the file in the request is more precise than in the diff.
        only.file = path;
    }
    changes
}

/// Displays fetched changes if the viewer still has their source.
pub(crate) fn show_changes(state: &mut State, source: &Source, changes: Result<Vec<Change>, String>) {
    let shown = state.layers.iter_mut().find_map(|layer| match layer {
        Layer::Review(review) if review.source == *source => Some(review),
        _ => None,
    });
    match (shown, changes) {
        (Some(review), Ok(changes)) => review.load(changes),
        (Some(review), Err(why)) => review.fail(crate::clean::clean(&why)),
        (None, _) => {}
    }
}

/// Closes the viewer of a request that is no longer pending.
pub(crate) fn refresh(state: &mut State) {
    let pending = request::permission(state).map(|request| request.id.clone());
    state.layers.retain(|layer| match layer {
        Layer::Review(review) => match &review.source {
            Source::Request(id) => Some(id) == pending.as_ref(),
            Source::WorkingTree | Source::Branch | Source::Session(_) | Source::LastTurn(_) => true,
        },
        Layer::List(_) | Layer::Line(_) | Layer::Page(_) | Layer::Confirm(_) | Layer::Trust(_) => true,
    });
}

fn close(state: &mut State) {
    if let Some(Layer::Review(review)) = state.layers.pop() {
        state.reviewed = review.reviewed;
        if state.reviewed.len() > MAX_REVIEWED {
            state.reviewed.clear();
        }
    }
}

/// Shows the changes of the next source.
fn next_source(state: &mut State) -> Vec<Cmd> {
    let session = state.session_id().cloned();
    let Some(Layer::Review(review)) = state.layers.last_mut() else { return Vec::new() };
    let next = match (&review.source, session) {
        (Source::Request(_), _) => return Vec::new(),
        (Source::WorkingTree, _) => Source::Branch,
        (Source::Branch, Some(session)) => Source::Session(session),
        (Source::Session(session), _) => Source::LastTurn(session.clone()),
        (Source::Branch | Source::LastTurn(_), _) => Source::WorkingTree,
    };
    let mut new = Review::new(next);
    new.reviewed = std::mem::take(&mut review.reviewed);
    (new.wants_split, new.has_tree) = (review.wants_split, review.has_tree);
    **review = new;
    load(state)
}

pub(super) fn key(state: &mut State, key: KeyEvent) -> Vec<Cmd> {
    let size = state.size;
    let theme = state.theme.clone();
    let Some(Layer::Review(review)) = state.layers.last_mut() else { return Vec::new() };
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if std::mem::take(&mut review.help) {
        return Vec::new();
    }
    let panes = review.panes(size);
    let (width, height) = panes
        .changes
        .map_or((1, 1), |pane| (usize::from(pane.width).max(1), usize::from(pane.height).max(1)));
    let drawn = DrawOptions { theme: &theme, width, split: panes.split };
    let in_tree = review.focus == Focus::Tree && panes.tree.is_some();
    let page = isize::try_from(height).unwrap_or(1);
    let by = |review: &mut Review, lines: isize| {
        if in_tree { review.select(lines) } else { review.scroll(drawn, lines, height) }
    };
    match key.code {
        KeyCode::Esc | KeyCode::Char('q') => close(state),
        KeyCode::Char('c') if control => close(state),
        KeyCode::Char('d') if control => by(review, page / 2),
        KeyCode::Char('u') if control => by(review, -(page / 2)),
        KeyCode::Char('f') if control => close(state),
        KeyCode::Tab | KeyCode::BackTab => {
            review.focus = if in_tree { Focus::Changes } else { Focus::Tree };
            review.has_tree = true;
        }
        KeyCode::Up | KeyCode::Char('k') => by(review, -1),
        KeyCode::Down | KeyCode::Char('j') => by(review, 1),
        KeyCode::PageUp => by(review, -page),
        KeyCode::PageDown | KeyCode::Char(' ') => by(review, page),
        KeyCode::Home | KeyCode::Char('g') if in_tree => by(review, isize::MIN),
        KeyCode::End | KeyCode::Char('G') if in_tree => by(review, isize::MAX),
        KeyCode::Home | KeyCode::Char('g') => review.go_to_start(),
        KeyCode::End | KeyCode::Char('G') => review.go_to_end(drawn, height),
        KeyCode::Left | KeyCode::Char('h') if in_tree => review.fold_or_up(),
        KeyCode::Right | KeyCode::Char('l') | KeyCode::Enter if in_tree => review.enter(),
        KeyCode::Char('n') => review.next_file(true),
        KeyCode::Char('p') => review.next_file(false),
        KeyCode::Char(']') => review.next_hunk(true),
        KeyCode::Char('[') => review.next_hunk(false),
        KeyCode::Char('m') => {
            review.toggle_reviewed();
            if review.focus == Focus::Changes {
                review.next_file(true);
            }
        }
        KeyCode::Char('v') => review.wants_split = Some(!panes.split),
        KeyCode::Char('t') => review.has_tree = !review.has_tree,
        KeyCode::Char('d') => return next_source(state),
        KeyCode::Char('r') => return load(state),
        KeyCode::Char('?') => review.help = true,
        KeyCode::Char('o') => {
            let Some(change) = review.shown_change() else { return Vec::new() };
            if state.options.channel.is_none() {
                state.warn("no editor that shows changes was found: this terminal has no editor channel");
                return Vec::new();
            }
            return vec![Cmd::ShowChange(Box::new(change))];
        }
        _ => {}
    }
    Vec::new()
}

pub(crate) fn wheel(state: &mut State, lines: isize) -> Vec<Cmd> {
    let size = state.size;
    let theme = state.theme.clone();
    if let Some(Layer::Review(review)) = state.layers.last_mut() {
        let panes = review.panes(size);
        if let Some(pane) = panes.changes {
            let drawn =
                DrawOptions { theme: &theme, width: usize::from(pane.width).max(1), split: panes.split };
            review.scroll(drawn, lines, usize::from(pane.height).max(1));
        }
    }
    Vec::new()
}

/// Handles a click in the tree: shows a file or folds a directory.
pub(crate) fn click(state: &mut State, column: u16, row: u16) -> Vec<Cmd> {
    let size = state.size;
    if let Some(Layer::Review(review)) = state.layers.last_mut()
        && let Some(tree) = review.panes(size).tree.filter(|tree| tree.contains((column, row).into()))
    {
        let at = review.first_node(usize::from(tree.height)) + usize::from(row - tree.y);
        if at < review.nodes.len() {
            review.selected = at;
            if !review.toggle_fold() {
                review.show_selected();
            }
        }
    }
    Vec::new()
}
