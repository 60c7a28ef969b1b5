//! The command palette: all actions and commands by name.

use super::{Item, Kind, Layer, List, Pick};
use crate::keys::{ACTIONS, Action, Group};
use crate::state::State;

/// The most common actions.
const SUGGESTED: [Action; 4] =
    [Action::SessionList, Action::SessionNew, Action::ModelList, Action::AgentList];

pub(crate) fn open(state: &mut State) {
    let item = |state: &State, action: Action, group: &str| {
        let row = action.row();
        Item::new(row.title, Pick::Action(action)).group(group).note(state.keys.first(action))
    };
    let mut items: Vec<Item> = SUGGESTED.iter().map(|action| item(state, *action, "Suggested")).collect();
    for group in [Group::Session, Group::Prompt, Group::Agent, Group::System] {
        let rows = ACTIONS.iter().filter(|row| row.group == group && row.action != Action::Palette);
        let rows = rows.filter(|row| crate::update::applies(state, row.action));
        items.extend(rows.map(|row| item(state, row.action, group.title())));
    }
    for command in state.mirror.commands.iter().filter(|command| command.is_offered()) {
        let detail = command.description.clone().unwrap_or_default();
        let item = Item::new(format!("/{}", command.name), Pick::Command(command.name.clone()));
        items.push(item.group("Commands").detail(detail));
    }
    state.layers.push(Layer::List(List::new(Kind::Palette, "Commands", items)));
}
