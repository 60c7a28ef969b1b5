//! The search in the history of prompts.

use super::{Item, Kind, Layer, List, Pick};
use crate::state::State;

pub(crate) fn open(state: &mut State) {
    let drafts = state.prompt.history.iter().enumerate().rev();
    let items = drafts.map(|(at, draft)| {
        let mut lines = draft.text.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or_default();
        let mark = if draft.shell { "! " } else { "" };
        let rest: Vec<&str> = lines.collect();
        Item::new(format!("{mark}{first}"), Pick::Draft(at)).detail(rest.join(" "))
    });
    let items = items.collect();
    let list = List::new(Kind::History, "Earlier prompts", items).hint("enter puts it into the prompt");
    state.layers.push(Layer::List(list));
}

/// Puts an earlier prompt into the prompt.
pub(super) fn pick(state: &mut State, at: usize) {
    if let Some(draft) = state.prompt.history.get(at).cloned() {
        state.prompt.restore(draft);
    }
}
