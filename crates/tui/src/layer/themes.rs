//! The list of themes. The selected theme is previewed.

use super::{Item, Kind, Layer, List, Pick};
use crate::state::State;

pub(crate) fn open(state: &mut State) {
    let before = state.theme_name.clone();
    let items = state.theme_names().into_iter().map(|name| {
        let current = name == before;
        Item::new(&name, Pick::Theme(name.clone())).current(current)
    });
    let list = List::new(Kind::Themes(before.clone()), "Themes", items.collect());
    state.layers.push(Layer::List(list));
}

/// Switches to the selected theme. An invalid theme is reported when it is picked.
pub(super) fn preview(state: &mut State) {
    let Some(Layer::List(list)) = state.layers.last() else { return };
    if let Some(Item { pick: Pick::Theme(name), .. }) = list.selected_item() {
        let name = name.clone();
        drop(state.choose_theme(&name));
    }
}
