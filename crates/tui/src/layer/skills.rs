//! The list of skills.

use super::{Item, Kind, Layer, List, Pick};
use crate::state::State;

pub(crate) fn open(state: &mut State) {
    let items = state
        .skills
        .iter()
        .map(|(name, about)| Item::new(name, Pick::Skill(name.clone())).detail(about.clone()));
    let items = items.collect();
    state.layers.push(Layer::List(List::new(Kind::Skills, "Skills", items)));
}
