//! Slash commands with an argument: `/model NAME`, `/agent NAME`, `/theme NAME`, `/rename TITLE`, `/review RANGE`,
//! `/export FILE`.

use std::collections::BTreeSet;

use super::act::transcript_text;
use super::{act, applies, send};
use crate::keys::Action;
use crate::layer::{self, Item, Layer, Pick};
use crate::msg::Cmd;
use crate::state::State;

/// The number of names that an error offers.
const MAX_OFFERED: usize = 3;

/// Performs an action with an argument. Returns `None` for an action without arguments. The error is shown to the user.
pub(super) fn perform(state: &mut State, action: Action, argument: &str) -> Option<Result<Vec<Cmd>, String>> {
    if matches!(action, Action::ModelList | Action::AgentList | Action::ThemeList) {
        return Some(choose(state, action, argument));
    }
    if !matches!(action, Action::SessionRename | Action::Export | Action::Review) {
        return None;
    }
    if !applies(state, action) {
        return Some(Err("this command has no effect here".to_owned()));
    }
    let argument = argument.to_owned();
    Some(Ok(match (action, state.session_id().cloned()) {
        (Action::Review, _) => layer::findings::begin(state, Some(argument)),
        (Action::SessionRename, Some(session)) => vec![Cmd::Rename { session, title: argument }],
        _ => vec![Cmd::WriteNew { name: argument, text: transcript_text(state) }],
    }))
}

/// Chooses the entry of a list that has a name, or a part of it that no other entry has. With several entries, the list
/// is opened with those.
fn choose(state: &mut State, action: Action, wanted: &str) -> Result<Vec<Cmd>, String> {
    let theme = state.theme_name.clone();
    let mut cmds = act(state, action);
    let Some(Layer::List(list)) = state.layers.last() else { return Ok(cmds) };
    let kind = list.kind.clone();
    // Favourites are in two groups.
    let mut items: Vec<&Item> = Vec::new();
    for item in &list.items {
        if !items.iter().any(|known| known.pick == item.pick) {
            items.push(item);
        }
    }
    let fitting = fitting(&items, wanted);
    match fitting[..] {
        [only] => {
            let item = only.clone();
            state.layers.pop();
            cmds.extend(layer::pick(state, &kind, item));
            Ok(cmds)
        }
        [] => {
            let names: BTreeSet<String> = items.iter().flat_map(|item| names(item)).collect();
            let nearest = send::nearest(wanted, names.iter().map(String::as_str), MAX_OFFERED);
            state.layers.pop();
            if state.theme_name != theme {
                // The theme was active before, so it is valid.
                drop(state.choose_theme(&theme));
            }
            let wanted = crate::clean::clean_line(wanted);
            Err(match nearest[..] {
                [] => format!("nothing is named `{wanted}`: without a name the command lists what there is"),
                _ => format!("nothing is named `{wanted}`: did you mean `{}`?", nearest.join("`, `")),
            })
        }
        _ => {
            layer::paste(state, wanted);
            Ok(cmds)
        }
    }
}

/// Returns the names of an entry, the most precise first.
fn names(item: &Item) -> Vec<String> {
    if let Pick::Model { provider, model } = &item.pick {
        return vec![format!("{provider}/{model}"), model.clone(), item.label.clone()];
    }
    if let Pick::Agent(name) | Pick::Theme(name) = &item.pick {
        return vec![name.clone()];
    }
    Vec::new()
}

/// Returns the entries that have a name; if there is none, those that contain it.
fn fitting<'a>(items: &[&'a Item], wanted: &str) -> Vec<&'a Item> {
    let wanted = wanted.to_lowercase();
    let all: Vec<(&Item, Vec<String>)> = items
        .iter()
        .map(|item| (*item, names(item).iter().map(|name| name.to_lowercase()).collect()))
        .collect();
    let select = |fits: &dyn Fn(&String) -> bool| {
        let found = all.iter().filter(|(_, names)| names.iter().any(fits));
        found.map(|(item, _)| *item).collect::<Vec<_>>()
    };
    let exact = select(&|name| *name == wanted);
    if exact.is_empty() { select(&|name| name.contains(&wanted)) } else { exact }
}
