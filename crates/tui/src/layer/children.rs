//! The subagents of a session.

use super::{Item, Kind, Layer, List, Pick};
use crate::state::State;

pub(crate) fn open(state: &mut State) {
    let Some(id) = state.session_id() else { return };
    let children = state.mirror.children(id);
    let items = children.into_iter().map(|session| {
        let busy = if state.mirror.is_busy(&session.id) { "running" } else { "" };
        Item::new(&session.title, Pick::Session(session.id.clone())).note(busy)
    });
    let items = items.collect();
    state.layers.push(Layer::List(List::new(Kind::Children, "Subagents", items)));
}
