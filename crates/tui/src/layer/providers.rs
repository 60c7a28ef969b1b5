//! The lists of providers and of their sign-in methods.

use std::collections::BTreeMap;

use super::{Item, Kind, Layer, List, Pick, sign_in};
use crate::msg::Cmd;
use crate::state::State;

/// The most popular providers.
const POPULAR: [&str; 7] =
    ["anthropic", "openai", "google", "openrouter", "github-copilot", "opencode", "groq"];

pub(crate) fn open(state: &mut State) {
    let list = List::new(Kind::Providers, "Connect a provider", items(state));
    state.layers.push(Layer::List(list.hint("the server stores keys and sign-ins")));
}

/// Updates the open list.
pub(crate) fn refresh(state: &mut State) {
    let items = items(state);
    if let Some(Layer::List(list)) = state.layers.last_mut()
        && list.kind == Kind::Providers
    {
        list.fill(items);
    }
}

fn items(state: &State) -> Vec<Item> {
    let is_connected = |id: &str| state.mirror.providers.iter().any(|provider| provider.id == id);
    let item = |(id, name): &(String, String), group: &str| {
        let pick = Pick::Provider { id: id.clone(), name: name.clone() };
        Item::new(name, pick).group(group).note(if is_connected(id) { "connected" } else { "" })
    };
    let popular =
        POPULAR.iter().filter_map(|popular| state.all_providers.iter().find(|(id, _)| id == popular));
    let mut items: Vec<Item> = popular.map(|provider| item(provider, "Popular")).collect();
    let others = state.all_providers.iter().filter(|(id, _)| !POPULAR.contains(&id.as_str()));
    items.extend(others.map(|provider| item(provider, "Providers")));
    items
}

/// Opens the sign-in methods of a provider if there are several, or else a line for its key.
pub(super) fn pick(state: &mut State, id: &str, name: &str) -> Vec<Cmd> {
    let methods = state.sign_ins[id].as_array().map(Vec::as_slice).unwrap_or_default();
    let items = methods.iter().enumerate().map(|(at, method)| {
        let label = method["label"].as_str().unwrap_or_default();
        let pick = Pick::SignIn { provider: id.to_owned(), name: name.to_owned(), method: at };
        Item::new(label, pick)
    });
    let items: Vec<Item> = items.collect();
    match methods {
        [] => sign_in::ask_key(state, id, name, BTreeMap::new()),
        [only] if only["type"] == "api" => return sign_in::start(state, id, name, 0),
        _ => state.layers.push(Layer::List(List::new(Kind::SignIns, "Sign in", items))),
    }
    Vec::new()
}
