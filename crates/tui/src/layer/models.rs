//! The list of models: favourites, recent models, then all models by provider.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Item, Kind, Layer, List, Pick};
use crate::mirror::Model;
use crate::msg::Cmd;
use crate::state::{State, parse_model};

pub(crate) fn open(state: &mut State) {
    if state.mirror.providers.is_empty() && state.mirror.ready {
        return super::providers::open(state);
    }
    let list = List::new(Kind::Models, "Select model", items(state));
    state.layers.push(Layer::List(list.hint("connect provider ctrl+a   favourite ctrl+f")));
}

/// Offers the models of a provider that was just connected.
pub(crate) fn open_for(state: &mut State, provider: &str) {
    let is_of = |item: &Item| matches!(&item.pick, Pick::Model { provider: of, .. } if of == provider);
    let mut items: Vec<Item> = items(state).into_iter().filter(is_of).collect();
    items.dedup_by(|a, b| a.pick == b.pick);
    if items.is_empty() {
        state.warn("the provider has no models that can work here: /models lists those of the others");
        return;
    }
    let list = List::new(Kind::Models, "Select model", items);
    state.layers.push(Layer::List(list.hint("all models esc, then /models   favourite ctrl+f")));
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
                .note(note(model))
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

/// The size of the context, and the dollars for a million tokens of input and output.
fn note(model: &Model) -> String {
    let context = match model.context {
        0 => None,
        1_000_000.. => Some(format!("{}M", model.context / 1_000_000)),
        1_000.. => Some(format!("{}K", model.context / 1_000)),
        tokens => Some(tokens.to_string()),
    };
    let price = match model.price {
        _ if model.is_free => Some("Free".to_owned()),
        Some((input, output)) if input > 0.0 || output > 0.0 => Some(format!("${input}/${output}")),
        Some(_) | None => None,
    };
    context.into_iter().chain(price).collect::<Vec<_>>().join(" · ")
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
