//! Signing in to a provider with a key.

use super::{Item, Kind, Layer, Line, List, Pick, What};
use crate::editor::Editor;
use crate::state::State;

/// The providers that most people have.
const POPULAR: [&str; 7] =
    ["anthropic", "openai", "google", "openrouter", "github-copilot", "opencode", "groq"];

pub(crate) fn open(state: &mut State) {
    let list = List::new(Kind::Providers, "Connect a provider", items(state));
    let hint = "a key is stored by the server; for sign-ins in a browser run `codewright providers login`";
    state.layers.push(Layer::List(list.hint(hint)));
}

/// Shows what has become known meanwhile.
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
        POPULAR.iter().filter_map(|wanted| state.known_providers.iter().find(|(id, _)| id == wanted));
    let mut items: Vec<Item> = popular.map(|provider| item(provider, "Popular")).collect();
    let others = state.known_providers.iter().filter(|(id, _)| !POPULAR.contains(&id.as_str()));
    items.extend(others.map(|provider| item(provider, "Providers")));
    items
}

pub(super) fn key_line(id: &str, name: &str) -> Line {
    Line {
        title: format!("Key for {}", crate::clean::clean_line(name)),
        about: "It is stored by the server and never shown. Enter stores it, escape does nothing.".to_owned(),
        editor: Editor::default(),
        secret: true,
        what: What::Key(id.to_owned()),
    }
}
