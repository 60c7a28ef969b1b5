//! The list of agents.

use super::{Item, Kind, Layer, List, Pick};
use crate::state::State;

pub(crate) fn open(state: &mut State) {
    let current = state.agent().map(|agent| agent.name.clone());
    let agents = state.primary_agents();
    let items = agents.into_iter().map(|agent| {
        let native = if agent.native { "built in" } else { "" };
        Item::new(&agent.name, Pick::Agent(agent.name.clone()))
            .detail(agent.description.clone().unwrap_or_default())
            .note(native)
            .current(Some(&agent.name) == current.as_ref())
    });
    let items = items.collect();
    state.layers.push(Layer::List(List::new(Kind::Agents, "Select agent", items)));
}
