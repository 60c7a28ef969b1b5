//! Signing in to a provider, with a key or in a browser.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Item, Kind, Layer, Line, List, Pick, Purpose};
use crate::editor::Editor;
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

fn key_line(id: &str, name: &str) -> Line {
    Line {
        title: format!("Key for {}", crate::clean::clean_line(name)),
        about: "The server stores the key. It is never displayed. Enter stores it, escape cancels."
            .to_owned(),
        editor: Editor::default(),
        secret: true,
        purpose: Purpose::Key(id.to_owned()),
    }
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
    let layer = match methods {
        [] => Layer::Line(key_line(id, name)),
        [only] if only["type"] == "api" => Layer::Line(key_line(id, name)),
        _ => Layer::List(List::new(Kind::SignIns, "Sign in", items)),
    };
    state.layers.push(layer);
    Vec::new()
}

/// Starts a sign-in. Sign-ins that need typed input are only supported on the command line.
pub(super) fn sign_in(state: &mut State, provider: &str, name: &str, method: usize) -> Vec<Cmd> {
    let about = state.sign_ins[provider][method].clone();
    if about["type"] == "api" {
        state.layers.push(Layer::Line(key_line(provider, name)));
        return Vec::new();
    }
    let Some(inputs) = inputs(&about["prompts"]) else {
        state.warn(format!("this sign-in needs more input: run `codewright providers login {provider}`"));
        return Vec::new();
    };
    vec![Cmd::BeginSignIn { provider: provider.to_owned(), method, inputs }]
}

/// Returns the first choice of each prompt, or `None` if a prompt has no choices.
fn inputs(prompts: &Value) -> Option<BTreeMap<String, String>> {
    let mut inputs = BTreeMap::new();
    for prompt in prompts.as_array().into_iter().flatten() {
        let key = prompt["key"].as_str()?.to_owned();
        let when = &prompt["when"];
        let applies = when.is_null()
            || when["key"].as_str().and_then(|key| inputs.get(key)).map(String::as_str)
                == when["value"].as_str();
        if applies {
            inputs.insert(key, prompt["options"][0]["value"].as_str()?.to_owned());
        }
    }
    Some(inputs)
}

/// Displays the URL of a sign-in, with a line for the code if the user must enter one.
pub(crate) fn sign_in_started(
    state: &mut State,
    provider: String,
    method: usize,
    sign_in: &Value,
) -> Vec<Cmd> {
    let text = |key: &str| crate::clean::clean_line(sign_in[key].as_str().unwrap_or_default());
    let with_code = sign_in["method"] == "code";
    let how = if with_code {
        "Paste the code here, then enter."
    } else {
        "This continues automatically when you have signed in."
    };
    let about = format!("Open {} in a browser. {} {how}", text("url"), text("instructions"));
    let purpose =
        if with_code { Purpose::Code { provider: provider.clone(), method } } else { Purpose::Waiting };
    let title = "Sign in".to_owned();
    state.layers.push(Layer::Line(Line { title, about, editor: Editor::default(), secret: false, purpose }));
    let mut cmds = vec![Cmd::Copy(text("url"))];
    if !with_code {
        cmds.push(Cmd::FinishSignIn { provider, method, code: None });
    }
    cmds
}

/// Closes the message about a running sign-in.
pub(crate) fn sign_in_finished(state: &mut State) {
    state.layers.retain(|layer| !matches!(layer, Layer::Line(Line { purpose: Purpose::Waiting, .. })));
}
