//! Sends the prompt.

use codewright_proto::{CommandInput, PartInput, PromptInput, PromptModel, ShellInput};

use super::{act, applies, arguments, is_offered};
use crate::fuzzy;
use crate::keys::ACTIONS;
use crate::layer::{Confirm, Layer};
use crate::msg::Cmd;
use crate::permission_mode::missing_rules;
use crate::prompt::Draft;
use crate::state::State;

/// How many letters of a mistyped command may differ from the command that is suggested.
const MAX_DISTANCE: usize = 2;

pub(super) fn submit(state: &mut State) -> Vec<Cmd> {
    let text = state.prompt.whole_text();
    let trimmed = text.trim().to_owned();
    if trimmed.is_empty() {
        return Vec::new();
    }
    if matches!(trimmed.as_str(), "exit" | "quit" | ":q") {
        return vec![Cmd::Quit];
    }
    if state.prompt.shell {
        return shell(state, trimmed);
    }
    if let Some(name) = trimmed.strip_prefix('/').filter(|name| !name.contains(char::is_whitespace))
        && let Some(row) = ACTIONS.iter().find(|row| row.slash.contains(&name))
        && !state.mirror.commands.iter().any(|command| command.name == name)
    {
        let draft = state.prompt.draft();
        state.prompt.clear();
        if applies(state, row.action) {
            return act(state, row.action);
        }
        state.warn(format!("`/{name}` has no effect here"));
        state.prompt.restore(draft);
        return Vec::new();
    }
    if let Some((name, argument)) = with_argument(&trimmed)
        && let Some(row) = ACTIONS.iter().find(|row| row.slash.contains(&name))
        && is_offered(state, row.action)
        && !state.mirror.commands.iter().any(|command| command.name == name)
        && let Some(done) = arguments::perform(state, row.action, argument)
    {
        match done {
            Ok(cmds) => {
                state.prompt.clear();
                return cmds;
            }
            Err(error) => state.warn(error),
        }
        return Vec::new();
    }
    if let Some(unknown) = unknown_command(state, &trimmed) {
        state.warn(unknown);
        return Vec::new();
    }
    if state.model().is_none() && state.mirror.ready {
        state.warn("no model is available yet: /connect stores the key of a provider");
        return Vec::new();
    }
    if state.opening {
        state.warn("the session is being created");
        return Vec::new();
    }
    if let Some(about) = unseen_picture(state) {
        let confirm = Confirm { title: "Picture", about, button: "Send anyway", sure: false };
        state.layers.push(Layer::Confirm(confirm));
        return Vec::new();
    }
    send_prompt(state, &trimmed)
}

/// Sends the prompt although the model cannot see its pictures.
pub(crate) fn send_anyway(state: &mut State) -> Vec<Cmd> {
    let text = state.prompt.whole_text().trim().to_owned();
    if text.is_empty() { Vec::new() } else { send_prompt(state, &text) }
}

/// Returns a warning if the prompt has a picture that the model cannot see.
fn unseen_picture(state: &State) -> Option<String> {
    let (provider, model) = state.model()?;
    let (_, model) = state.mirror.model(&provider, &model)?;
    let is_blind = model.sees == Some(false) && state.prompt.has_picture();
    let key = state.keys.first(crate::keys::Action::ModelList);
    is_blind.then(|| {
        format!(
            "{} cannot see pictures, so it gets only their names. {key} chooses another model.",
            model.name
        )
    })
}

/// Returns the name and the argument of a slash command in one line.
fn with_argument(text: &str) -> Option<(&str, &str)> {
    let (name, argument) = text.strip_prefix('/')?.split_once(char::is_whitespace)?;
    let argument = argument.trim();
    (!argument.is_empty() && !argument.contains('\n')).then_some((name, argument))
}

/// Returns an error for a slash command that does not exist. Paths are not commands.
fn unknown_command(state: &State, text: &str) -> Option<String> {
    let rest = text.strip_prefix('/')?;
    let name = rest.split(char::is_whitespace).next().filter(|name| !name.is_empty())?;
    let is_name = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.'));
    // Until they are fetched, every name may be one of the server's commands.
    if !is_name || !state.mirror.ready || state.mirror.commands.iter().any(|command| command.name == name) {
        return None;
    }
    let own =
        ACTIONS.iter().filter(|row| is_offered(state, row.action)).flat_map(|row| row.slash.iter().copied());
    let served = state.mirror.commands.iter().map(|command| command.name.as_str());
    let names: Vec<&str> = own.chain(served).collect();
    if names.contains(&name) {
        return Some(format!("`/{name}` takes no arguments"));
    }
    let offered = nearest(name, names.iter().copied(), 2);
    let hint = match offered[..] {
        [] => "type / for the list".to_owned(),
        _ => format!("did you mean `/{}`?", offered.join("` or `/")),
    };
    Some(format!("unknown command `/{}`: {hint}", crate::clean::clean_line(name)))
}

/// Returns the names that differ from a word in few letters, or else the one that has its letters in order.
pub(super) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>, count: usize) -> Vec<&'a str> {
    let names: Vec<&str> = names.collect();
    let mut near: Vec<(usize, &str)> = names.iter().map(|known| (distance(word, known), *known)).collect();
    near.retain(|(distance, _)| *distance <= MAX_DISTANCE);
    near.sort_by_key(|(distance, _)| *distance);
    let offered: Vec<&str> = near.into_iter().map(|(_, known)| known).take(count).collect();
    if !offered.is_empty() {
        return offered;
    }
    let scored = names.iter().filter_map(|known| Some((fuzzy::score(word, known)?, *known)));
    scored.max_by_key(|(score, _)| *score).map(|(_, known)| known).into_iter().collect()
}

/// Returns the number of letters that differ between two words.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, a) in one.chars().enumerate() {
        let mut corner = row[0];
        row[0] = at + 1;
        for (at, b) in other.iter().enumerate() {
            let next = (corner + usize::from(a != *b)).min(row[at] + 1).min(row[at + 1] + 1);
            corner = std::mem::replace(&mut row[at + 1], next);
        }
    }
    row[other.len()]
}

fn send_prompt(state: &mut State, trimmed: &str) -> Vec<Cmd> {
    let session = state.session_id().cloned();
    let rules = missing_rules(state, session.as_ref());
    let draft = state.prompt.draft();
    let parts = state.prompt.parts(&state.mirror.directory);
    let (agent, model, variant) = responder(state);
    if let Some((name, arguments)) = command(state, trimmed) {
        let input = CommandInput {
            command: name,
            arguments,
            agent,
            model: model.map(|model| format!("{}/{}", model.provider_id, model.model_id)),
            // The client never guesses a provider without a key.
            chosen: Some(true),
            variant,
            parts: parts.into_iter().filter(|part| matches!(part, PartInput::File { .. })).collect(),
            ..CommandInput::default()
        };
        let cmd = Cmd::Command { session, rules, input: Box::new(input), draft: draft.clone() };
        return enqueue(state, cmd, draft);
    }
    let input = PromptInput { agent, model, chosen: Some(true), variant, parts, ..PromptInput::default() };
    enqueue(state, Cmd::Send { session, rules, input: Box::new(input), draft: draft.clone() }, draft)
}

/// Returns the agent, the model and the variant for the next prompt.
fn responder(state: &State) -> (Option<String>, Option<PromptModel>, Option<String>) {
    let agent = state.agent().map(|agent| agent.name.clone());
    let variant = state.variant();
    let model =
        state.model().map(|(provider_id, model_id)| PromptModel { provider_id, model_id, variant: None });
    (agent, model, variant)
}

/// Returns the server's command at the start of a text, and its arguments.
fn command(state: &State, text: &str) -> Option<(String, String)> {
    let rest = text.strip_prefix('/')?;
    let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let known = state.mirror.commands.iter().any(|command| command.name == name);
    known.then(|| (name.to_owned(), arguments.trim().to_owned()))
}

fn shell(state: &mut State, command: String) -> Vec<Cmd> {
    if state.opening {
        state.warn("the session is being created");
        return Vec::new();
    }
    let session = state.session_id().cloned();
    let (agent, model, _) = responder(state);
    let input =
        ShellInput { message_id: None, agent: agent.unwrap_or_else(|| "build".to_owned()), model, command };
    let rules = missing_rules(state, session.as_ref());
    let draft = state.prompt.draft();
    enqueue(state, Cmd::Shell { session, rules, input: Box::new(input), draft: draft.clone() }, draft)
}

/// Clears the prompt, adds it to the history and returns the command that sends it.
fn enqueue(state: &mut State, cmd: Cmd, mut draft: Draft) -> Vec<Cmd> {
    draft.text.truncate(draft.text.trim_end().len());
    state.opening = state.session_id().is_none();
    state.prompt.clear();
    // Keys from now on are no longer meant for this prompt.
    state.typed_at = None;
    state.prompt.remember(draft.clone());
    if let Some(id) = state.session_id().cloned() {
        state.mark_prompted(&id);
        if let Some(transcript) = state.mirror.transcripts.get_mut(&id) {
            transcript.scroll = crate::transcript::Scroll::End;
        }
    }
    let mut cmds = vec![cmd, Cmd::Remember(draft)];
    if let Some((provider, model)) = state.model() {
        let name = format!("{provider}/{model}");
        if state.local.recent.first() != Some(&name) {
            let variant = state.choice.variant.clone();
            state.choose_model(&provider, &model);
            state.choice.variant = variant;
            cmds.push(Cmd::Save(state.saved_choices()));
        }
    }
    cmds
}
