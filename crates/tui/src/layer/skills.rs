//! The list of skills, and the preview of a skill's text.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::page::{Page, Topic};
use super::{Item, Kind, Layer, List, Pick};
use crate::msg::Cmd;
use crate::state::State;

/// A skill of the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Skill {
    pub(crate) name: String,
    pub(crate) description: String,
    /// The Markdown text that the model reads.
    pub(crate) content: String,
    /// The file of the skill.
    pub(crate) location: String,
}

pub(crate) fn open(state: &mut State) {
    let items = state.skills.iter().map(|skill| {
        Item::new(&skill.name, Pick::Skill(skill.name.clone())).detail(skill.description.clone())
    });
    let list = List::new(Kind::Skills, "Skills", items.collect());
    state.layers.push(Layer::List(list.hint("enter uses the skill  ·  tab shows its text")));
}

/// Handles the key that opens the text of the selected skill.
pub(super) fn key(state: &mut State, key: KeyEvent) -> Option<Vec<Cmd>> {
    if key.code != KeyCode::Tab || key.modifiers != KeyModifiers::NONE {
        return None;
    }
    let Some(Layer::List(list)) = state.layers.last() else { return None };
    if let Some(Pick::Skill(name)) = list.selected_item().map(|item| item.pick.clone()) {
        state.layers.push(Layer::Page(Page::new(Topic::Skill(name))));
    }
    Some(Vec::new())
}
