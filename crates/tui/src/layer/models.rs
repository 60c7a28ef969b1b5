//! The list of models: favourites, recent models, then all models by provider.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Item, Kind, Layer, List, Pick};
use crate::msg::Cmd;
use crate::state::{State, parse_model};

pub(crate) fn open(state: &mut State) {
    if state.mirror.providers.is_empty() && state.mirror.ready {
        return super::providers::open(state);
    }
    let list = List::new(Kind::Models, "Select model", items(state));
    state.layers.push(Layer::List(list.hint("connect provider ctrl+a   favourite ctrl+f")));
}

fn items(state: &State) -> Vec<Item> {
    let current = state.model();
    let item = |provider: &str, model: &str, group: &str| {
        let (provider, model) = state.mirror.model(provider, model)?;
        let pick = Pick::Model { provider: provider.id.clone(), model: model.id.clone() };
        let is_current = current.as_ref().is_some_and(|(id, name)| *id == provider.id && *name == model.id);
        let named = group != provider.name;
        Some(
            Item::new(&model.name, pick)
                .group(group)
                .detail(if named { provider.name.clone() } else { String::new() })
                .note(if model.is_free { "Free" } else { "" })
                .current(is_current),
        )
    };
    let listed = |names: &[String], group: &str| -> Vec<Item> {
        let models = names.iter().filter_map(|name| parse_model(Some(name)));
        models.filter_map(|(provider, model)| item(&provider, &model, group)).collect()
    };
    let mut items = listed(&state.local.favourites, "Favourites");
    let recent: Vec<String> = state
        .local
        .recent
        .iter()
        .filter(|name| !state.local.favourites.contains(name))
        .take(5)
        .cloned()
        .collect();
    items.extend(listed(&recent, "Recent"));
    for provider in &state.mirror.providers {
        // Embeddings, speech and pictures cannot work; a favourite or a recent model stays in the list.
        let agentic = provider.models.iter().filter(|model| model.is_agentic);
        items.extend(agentic.filter_map(|model| item(&provider.id, &model.id, &provider.name)));
    }
    items
}

pub(super) fn key(state: &mut State, key: KeyEvent) -> Option<Vec<Cmd>> {
    if !key.modifiers.contains(KeyModifiers::CONTROL) {
        return None;
    }
    match key.code {
        KeyCode::Char('a') => {
            state.layers.pop();
            super::providers::open(state);
            Some(vec![Cmd::LoadAllProviders])
        }
        KeyCode::Char('f') => {
            let Some(Layer::List(list)) = state.layers.last() else { return None };
            let Pick::Model { provider, model } = &list.selected_item()?.pick else { return None };
            let name = format!("{provider}/{model}");
            match state.local.favourites.iter().position(|known| *known == name) {
                Some(at) => drop(state.local.favourites.remove(at)),
                None => state.local.favourites.push(name),
            }
            let items = items(state);
            if let Some(Layer::List(list)) = state.layers.last_mut() {
                list.fill(items);
            }
            Some(vec![Cmd::Save(state.saved_choices())])
        }
        _ => None,
    }
}
