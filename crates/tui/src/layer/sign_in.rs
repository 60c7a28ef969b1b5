//! Signing in to a provider, with a key or in a browser.
//!
//! A sign-in can need texts and choices first, such as the address of a GitHub Enterprise server. They
//! are asked one after another, and the sign-in starts with the answers.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Item, Kind, Layer, Line, List, Pick, Purpose};
use crate::clean::clean_line;
use crate::editor::Editor;
use crate::msg::Cmd;
use crate::state::State;

/// The maximum number of questions before a sign-in.
const MAX_QUESTIONS: usize = 16;

/// A sign-in with open questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignIn {
    provider: String,
    name: String,
    /// The index of the method in the provider's list.
    method: usize,
    /// The answers by the keys of their questions.
    inputs: BTreeMap<String, String>,
    /// The index of the displayed question.
    at: usize,
}

/// Starts a sign-in: displays its first question, or begins at once if it has none.
pub(super) fn start(state: &mut State, provider: &str, name: &str, method: usize) -> Vec<Cmd> {
    let (provider, name) = (provider.to_owned(), name.to_owned());
    proceed(state, SignIn { provider, name, method, inputs: BTreeMap::new(), at: 0 })
}

/// Stores the answer of a question and displays the next one.
pub(super) fn answer(state: &mut State, mut sign_in: SignIn, answer: String) -> Vec<Cmd> {
    let method = &state.sign_ins[sign_in.provider.as_str()][sign_in.method];
    if let Some(key) = method["prompts"][sign_in.at]["key"].as_str() {
        sign_in.inputs.insert(key.to_owned(), answer);
    }
    sign_in.at += 1;
    proceed(state, sign_in)
}

/// Displays the next question that applies. After the last one, begins the sign-in or requests the key.
fn proceed(state: &mut State, mut sign_in: SignIn) -> Vec<Cmd> {
    let method = state.sign_ins[sign_in.provider.as_str()][sign_in.method].clone();
    let questions = method["prompts"].as_array().map(Vec::as_slice).unwrap_or_default();
    if questions.len() > MAX_QUESTIONS {
        state.warn("this sign-in has too many questions");
        return Vec::new();
    }
    while let Some(question) = questions.get(sign_in.at) {
        let options = question["options"].as_array().map(Vec::as_slice).unwrap_or_default();
        match (question["key"].as_str(), options) {
            (Some(key), [only]) if applies(question, &sign_in.inputs) => {
                let value = only["value"].as_str().unwrap_or_default();
                sign_in.inputs.insert(key.to_owned(), value.to_owned());
            }
            (Some(_), []) if applies(question, &sign_in.inputs) => {
                ask_text(state, question, sign_in);
                return Vec::new();
            }
            (Some(_), _) if applies(question, &sign_in.inputs) => {
                ask_choice(state, question, &sign_in);
                return Vec::new();
            }
            _ => {}
        }
        sign_in.at += 1;
    }
    let SignIn { provider, name, method: at, inputs, .. } = sign_in;
    if method["type"] == "api" {
        ask_key(state, &provider, &name, inputs);
        return Vec::new();
    }
    vec![Cmd::BeginSignIn { provider, method: at, inputs }]
}

/// Whether a question applies after these answers.
fn applies(question: &Value, inputs: &BTreeMap<String, String>) -> bool {
    let when = &question["when"];
    let answer = when["key"].as_str().and_then(|key| inputs.get(key)).map(String::as_str);
    let is_equal = answer == when["value"].as_str();
    when.is_null() || is_equal == (when["op"] != "neq")
}

fn ask_text(state: &mut State, question: &Value, sign_in: SignIn) {
    let example = question["placeholder"].as_str().unwrap_or_default();
    let about = match example {
        "" => "Enter continues, escape cancels.".to_owned(),
        example => format!("For example: {}. Enter continues, escape cancels.", clean_line(example)),
    };
    state.layers.push(Layer::Line(Line {
        title: clean_line(question["message"].as_str().unwrap_or_default()),
        about,
        editor: Editor::default(),
        secret: false,
        purpose: Purpose::SignInText(Box::new(sign_in)),
    }));
}

fn ask_choice(state: &mut State, question: &Value, sign_in: &SignIn) {
    let options = question["options"].as_array().into_iter().flatten();
    let items = options.map(|option| {
        let text = |key: &str| option[key].as_str().unwrap_or_default();
        let pick = Pick::SignInChoice { sign_in: Box::new(sign_in.clone()), value: text("value").to_owned() };
        Item::new(text("label"), pick).detail(text("hint"))
    });
    let hint = clean_line(question["message"].as_str().unwrap_or_default());
    let list = List::new(Kind::SignIns, "Sign in", items.collect());
    state.layers.push(Layer::List(list.hint(hint)));
}

/// Opens a line for a key, which is stored with the answers.
pub(super) fn ask_key(state: &mut State, provider: &str, name: &str, inputs: BTreeMap<String, String>) {
    state.layers.push(Layer::Line(Line {
        title: format!("Key for {}", clean_line(name)),
        about: "The server stores the key. It is never displayed. Enter stores it, escape cancels."
            .to_owned(),
        editor: Editor::default(),
        secret: true,
        purpose: Purpose::Key { provider: provider.to_owned(), inputs },
    }));
}

/// Displays the URL of a sign-in, with a line for the code if the user must enter one.
pub(crate) fn show_url(state: &mut State, provider: String, method: usize, sign_in: &Value) -> Vec<Cmd> {
    let text = |key: &str| clean_line(sign_in[key].as_str().unwrap_or_default());
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
pub(crate) fn finish(state: &mut State) {
    state.layers.retain(|layer| !matches!(layer, Layer::Line(Line { purpose: Purpose::Waiting, .. })));
}
