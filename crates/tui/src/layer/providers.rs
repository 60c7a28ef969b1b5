//! Signing in to a provider: with a key, or elsewhere in a browser.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Item, Kind, Layer, Line, List, Pick, What};
use crate::editor::Editor;
use crate::msg::Cmd;
use crate::state::State;

/// The providers that most people have.
const POPULAR: [&str; 7] =
    ["anthropic", "openai", "google", "openrouter", "github-copilot", "opencode", "groq"];

pub(crate) fn open(state: &mut State) {
    let list = List::new(Kind::Providers, "Connect a provider", items(state));
    state.layers.push(Layer::List(list.hint("keys and sign-ins are kept by the server")));
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

fn key_line(id: &str, name: &str) -> Line {
    Line {
        title: format!("Key for {}", crate::clean::clean_line(name)),
        about: "It is stored by the server and never shown. Enter stores it, escape does nothing.".to_owned(),
        editor: Editor::default(),
        secret: true,
        what: What::Key(id.to_owned()),
    }
}

/// The ways to sign in to a provider, if there are several; else a line for its key.
pub(super) fn picked(state: &mut State, id: &str, name: &str) -> Vec<Cmd> {
    let methods = state.sign_ins[id].as_array().map(Vec::as_slice).unwrap_or_default();
    let items = methods.iter().enumerate().map(|(at, method)| {
        let label = method["label"].as_str().unwrap_or_default();
        let pick = Pick::SignIn { provider: id.to_owned(), name: name.to_owned(), method: at };
        Item::new(label, pick)
    });
    let items: Vec<Item> = items.collect();
    let layer = match methods {
        [] => Layer::Line(key_line(id, name)),
        [only] if only["type"] == "api" => Layer::Line(key_line(id, name)),
        _ => Layer::List(List::new(Kind::SignIns, "Sign in", items)),
    };
    state.layers.push(layer);
    Vec::new()
}

/// Begins a sign-in; what has to be asked first is asked by the command line.
pub(super) fn sign_in(state: &mut State, provider: &str, name: &str, method: usize) -> Vec<Cmd> {
    let about = state.sign_ins[provider][method].clone();
    if about["type"] == "api" {
        state.layers.push(Layer::Line(key_line(provider, name)));
        return Vec::new();
    }
    let Some(inputs) = inputs(&about["prompts"]) else {
        state.warn(format!("this sign-in asks for more: run `codewright providers login {provider}`"));
        return Vec::new();
    };
    vec![Cmd::BeginSignIn { provider: provider.to_owned(), method, inputs }]
}

/// The first choice of each question that has choices; none if something has to be written.
fn inputs(prompts: &Value) -> Option<BTreeMap<String, String>> {
    let mut inputs = BTreeMap::new();
    for prompt in prompts.as_array().into_iter().flatten() {
        let key = prompt["key"].as_str()?.to_owned();
        let when = &prompt["when"];
        let is_asked = when.is_null()
            || when["key"].as_str().and_then(|key| inputs.get(key)).map(String::as_str)
                == when["value"].as_str();
        if is_asked {
            inputs.insert(key, prompt["options"][0]["value"].as_str()?.to_owned());
        }
    }
    Some(inputs)
}

/// Says where to go, and takes the code that is brought back if there is one.
pub(crate) fn begun(state: &mut State, provider: String, method: usize, told: &Value) -> Vec<Cmd> {
    let text = |key: &str| crate::clean::clean_line(told[key].as_str().unwrap_or_default());
    let with_code = told["method"] == "code";
    let how = if with_code {
        "Paste the code here, then enter."
    } else {
        "This goes on by itself when you are done there."
    };
    let about = format!("Open {} in a browser. {} {how}", text("url"), text("instructions"));
    let what = if with_code { What::Code { provider: provider.clone(), method } } else { What::Waiting };
    let title = "Sign in".to_owned();
    state.layers.push(Layer::Line(Line { title, about, editor: Editor::default(), secret: false, what }));
    let mut cmds = vec![Cmd::Copy(text("url"))];
    if !with_code {
        cmds.push(Cmd::FinishSignIn { provider, method, code: None });
    }
    cmds
}

/// Takes away what told of a sign-in that is done.
pub(crate) fn ended(state: &mut State) {
    state.layers.retain(|layer| !matches!(layer, Layer::Line(Line { what: What::Waiting, .. })));
}
