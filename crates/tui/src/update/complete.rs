//! Completion in the prompt: commands after `/`; files, agents, symbols and resources after `@`.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;

use super::{act, applies};
use crate::channel::Context;
use crate::fuzzy;
use crate::keys::ACTIONS;
use crate::msg::Cmd;
use crate::prompt::{Body, Completion, Offer, Pick};
use crate::resource::Resource;
use crate::state::State;
use crate::symbol::Symbol;

/// The maximum number of completions.
const MAX_OFFERS: usize = 50;
/// The maximum number of symbols among them.
const MAX_SYMBOLS: usize = 10;
/// The maximum number of resources among them.
const MAX_RESOURCES: usize = 10;
/// The characters from which symbols are searched.
const SYMBOL_CHARS: usize = 2;
/// How much each earlier mention adds to the score of a file.
const MENTION_SCORE: i64 = 20;

/// Updates the completions for the text at the cursor.
pub(super) fn refresh(state: &mut State) -> Vec<Cmd> {
    if let Some(name) = state.prompt.slash().map(str::to_owned) {
        let offers = commands(state, &name);
        offer(state, 0, name, offers);
        return Vec::new();
    }
    if let Some((from, word)) = state.prompt.mention().map(|(from, word)| (from, word.to_owned())) {
        let offers = named(state, &word);
        let kept = offered(state, from, |pick| matches!(pick, Pick::File(_)));
        let symbols = offered_symbols(state, from, &word);
        offer(state, from, word.clone(), offers.into_iter().chain(kept).chain(symbols).collect());
        let has_server = state.mirror.lsp.iter().any(|server| server.status == "connected");
        let symbols = has_server && word.chars().count() >= SYMBOL_CHARS && !word.contains(['/', '.', '#']);
        let symbols = symbols.then(|| Cmd::FindSymbols(word.clone()));
        let resources = wants_resources(state).then_some(Cmd::FindResources);
        return symbols.into_iter().chain(resources).chain([Cmd::FindFiles(word)]).collect();
    }
    state.prompt.completion = None;
    Vec::new()
}

/// Whether the resources of the MCP servers must be fetched. They are fetched once for a state of the servers.
fn wants_resources(state: &mut State) -> bool {
    let has_server = state.mirror.mcp.iter().any(|server| server.status == "connected");
    let is_wanted = has_server && state.mirror.resources.is_none();
    if is_wanted {
        state.mirror.resources = Some(Vec::new());
    }
    is_wanted
}

/// Stores the resources and adds those that fit the word at the cursor.
pub(super) fn add_resources(state: &mut State, value: &Value) {
    state.mirror.resources = Some(Resource::read_all(value));
    let Some((from, word)) = state.prompt.mention().map(|(from, word)| (from, word.to_owned())) else {
        return;
    };
    let found = resources(state, &word);
    let others = offered(state, from, |pick| !matches!(pick, Pick::Resource(_)));
    offer(state, from, word, found.into_iter().chain(others).collect());
}

/// Adds the files that were found for a word.
pub(super) fn add_files(state: &mut State, query: &str, files: Vec<String>) {
    let Some((from, word)) = state.prompt.mention().map(|(from, word)| (from, word.to_owned())) else {
        return;
    };
    // The user has typed more meanwhile, and another search is running.
    if word != query {
        return;
    }
    let mentioned = |file: &str| i64::from(state.local.mentioned.get(file).copied().unwrap_or(0).min(10));
    let mut ranked: Vec<(i64, String)> =
        (0..).zip(files).map(|(at, file)| (mentioned(&file) * MENTION_SCORE - at, file)).collect();
    ranked.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let files = ranked.into_iter().map(|(_, file)| Offer {
        label: crate::clean::clean_line(&file),
        detail: String::new(),
        pick: Pick::File(file),
    });
    let symbols = offered_symbols(state, from, &word);
    let offers = named(state, &word).into_iter().chain(files).chain(symbols).collect();
    offer(state, from, word, offers);
}

/// Adds the symbols that were found for a word, after the files.
pub(super) fn add_symbols(state: &mut State, query: &str, symbols: &[Value]) {
    let Some((from, word)) = state.prompt.mention().map(|(from, word)| (from, word.to_owned())) else {
        return;
    };
    if word != query {
        return;
    }
    let found = symbols.iter().filter_map(|symbol| Symbol::read(symbol, &state.mirror.directory));
    let mut ranked: Vec<(i64, Symbol)> =
        found.filter_map(|symbol| Some((fuzzy::score(&word, &symbol.name)?, symbol))).collect();
    ranked.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let symbols = ranked.into_iter().take(MAX_SYMBOLS).map(|(_, symbol)| Offer {
        label: format!("@{}", symbol.name),
        detail: symbol.place(),
        pick: Pick::Symbol(symbol),
    });
    let others = offered(state, from, |pick| !matches!(pick, Pick::Symbol(_)));
    let offers = others.into_iter().take(MAX_OFFERS - MAX_SYMBOLS).chain(symbols).collect();
    offer(state, from, word, offers);
}

fn offer(state: &mut State, from: usize, query: String, mut offers: Vec<Offer>) {
    offers.truncate(MAX_OFFERS);
    let same = state.prompt.completion.as_ref().filter(|known| known.from == from && known.query == query);
    let selected = same.map_or(0, |known| known.selected).min(offers.len().saturating_sub(1));
    state.prompt.completion = (!offers.is_empty()).then_some(Completion { from, query, offers, selected });
}

/// Returns completions that are offered already. They stay until others are found.
fn offered(state: &State, from: usize, is_kept: impl Fn(&Pick) -> bool) -> Vec<Offer> {
    let known = state.prompt.completion.as_ref().filter(|known| known.from == from);
    let offers = known.into_iter().flat_map(|known| &known.offers);
    offers.filter(|offer| is_kept(&offer.pick)).cloned().collect()
}

/// Returns the offered symbols that still match.
fn offered_symbols(state: &State, from: usize, word: &str) -> Vec<Offer> {
    let matches = |pick: &Pick| match pick {
        Pick::Symbol(symbol) => fuzzy::score(word, &symbol.name).is_some(),
        Pick::Action(_)
        | Pick::Command(_)
        | Pick::File(_)
        | Pick::Agent(_)
        | Pick::Editor(_)
        | Pick::Resource(_) => false,
    };
    offered(state, from, matches)
}

fn commands(state: &State, name: &str) -> Vec<Offer> {
    let own = ACTIONS.iter().filter(|row| applies(state, row.action)).filter_map(|row| {
        let slash = row.slash.first()?;
        // The server's command of that name is the one that runs.
        if state.mirror.commands.iter().any(|command| command.name == *slash) {
            return None;
        }
        let names = row.slash.iter().filter_map(|slash| fuzzy::score(name, slash));
        let score = names.max()?;
        let offer = Offer {
            label: format!("/{slash}"),
            detail: row.title.to_owned(),
            pick: Pick::Action(row.action),
        };
        Some((score, offer))
    });
    let served = state.mirror.commands.iter().filter(|command| command.is_offered()).filter_map(|command| {
        let offer = Offer {
            label: format!("/{}", crate::clean::clean_line(&command.name)),
            detail: crate::clean::clean_line(command.description.as_deref().unwrap_or_default()),
            pick: Pick::Command(command.name.clone()),
        };
        Some((fuzzy::score(name, &command.name)?, offer))
    });
    let mut scored: Vec<(i64, Offer)> = own.chain(served).collect();
    scored.sort_by(|(one, a), (other, b)| other.cmp(one).then_with(|| a.label.cmp(&b.label)));
    scored.into_iter().map(|(_, offer)| offer).collect()
}

/// Returns the agents, the resources of MCP servers, and what the editor offers.
fn named(state: &State, word: &str) -> Vec<Offer> {
    let contexts = state.options.channel.iter().flat_map(|_| Context::ALL);
    let contexts = contexts.filter(|context| fuzzy::score(word, context.name()).is_some());
    let offer = |context: Context| Offer {
        label: format!("@{}", context.name()),
        detail: context.detail().to_owned(),
        pick: Pick::Editor(context),
    };
    contexts.map(offer).chain(agents(state, word)).chain(resources(state, word)).collect()
}

fn agents(state: &State, word: &str) -> Vec<Offer> {
    let agents = state.mirror.agents.iter().filter(|agent| agent.mode != "primary" && !agent.hidden);
    let scored = agents.filter_map(|agent| {
        fuzzy::score(word, &agent.name)?;
        Some(Offer {
            label: format!("@{}", crate::clean::clean_line(&agent.name)),
            detail: "agent".to_owned(),
            pick: Pick::Agent(agent.name.clone()),
        })
    });
    scored.collect()
}

/// The resources whose name or address matches. Without a word there are none, because files come first.
fn resources(state: &State, word: &str) -> Vec<Offer> {
    let all = state.mirror.resources.iter().flatten().filter(|_| !word.is_empty());
    let scored = all.filter_map(|resource| {
        let score = fuzzy::score(word, &resource.name).max(fuzzy::score(word, &resource.uri))?;
        Some((score, resource))
    });
    let mut scored: Vec<(i64, &Resource)> = scored.collect();
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let offer = |(_, resource): (i64, &Resource)| Offer {
        label: format!("@{}", resource.name),
        detail: resource.place(),
        pick: Pick::Resource(resource.clone()),
    };
    scored.into_iter().take(MAX_RESOURCES).map(offer).collect()
}

/// Handles a key while completions are offered. Returns `None` if they do not use the key.
pub(super) fn key(state: &mut State, key: KeyEvent) -> Option<Vec<Cmd>> {
    let completion = state.prompt.completion.as_mut()?;
    let count = completion.offers.len();
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Up => completion.selected = (completion.selected + count - 1) % count,
        KeyCode::Down => completion.selected = (completion.selected + 1) % count,
        KeyCode::Char('p') if control => completion.selected = (completion.selected + count - 1) % count,
        KeyCode::Char('n') if control => completion.selected = (completion.selected + 1) % count,
        KeyCode::Esc => state.prompt.completion = None,
        KeyCode::Tab | KeyCode::Enter if key.modifiers.is_empty() => {
            let from = completion.from;
            let offer = completion.offers.get(completion.selected)?.clone();
            state.prompt.completion = None;
            return Some(accept(state, from, offer, key.code == KeyCode::Enter));
        }
        _ => return None,
    }
    Some(Vec::new())
}

/// Accepts a completion.
fn accept(state: &mut State, from: usize, offer: Offer, entered: bool) -> Vec<Cmd> {
    let range = from..state.prompt.editor.cursor();
    match offer.pick {
        Pick::Action(action) => {
            state.prompt.clear();
            act(state, action)
        }
        Pick::Command(name) => {
            let is_whole = state.prompt.editor.text() == format!("/{name}");
            if entered && is_whole {
                return super::send::submit(state);
            }
            state.prompt.editor.replace(range, &format!("/{name} "));
            Vec::new()
        }
        Pick::Editor(context) => {
            state.prompt.editor.delete(range);
            vec![Cmd::ReadContext(context)]
        }
        Pick::Agent(name) => {
            state.prompt.editor.delete(range);
            state.prompt.attach(offer.label, Body::Agent(name));
            Vec::new()
        }
        Pick::Symbol(symbol) => {
            state.prompt.editor.delete(range);
            state.prompt.attach(offer.label, Body::Symbol(symbol));
            Vec::new()
        }
        Pick::Resource(resource) => {
            state.prompt.editor.delete(range);
            state.prompt.attach(offer.label, Body::Resource(resource));
            Vec::new()
        }
        Pick::File(path) if path.ends_with('/') && !entered => {
            state.prompt.editor.replace(range, &format!("@{path}"));
            refresh(state)
        }
        Pick::File(path) => {
            state.prompt.editor.delete(range);
            *state.local.mentioned.entry(path.clone()).or_default() += 1;
            // Files that were mentioned once are forgotten first.
            if state.local.mentioned.len() > 500 {
                state.local.mentioned.retain(|_, count| *count > 1);
            }
            state.prompt.attach(format!("@{path}"), Body::File(path));
            vec![Cmd::Save(state.saved_choices())]
        }
    }
}
