//! Sends the prompt.

use codewright_proto::{CommandInput, PartInput, PromptInput, PromptModel, ShellInput};

use super::act;
use crate::keys::ACTIONS;
use crate::msg::Cmd;
use crate::prompt::Draft;
use crate::state::State;

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
        state.prompt.clear();
        return act(state, row.action);
    }
    if state.model().is_none() && state.mirror.ready {
        state.warn("no model is available yet: /connect stores the key of a provider");
        return Vec::new();
    }
    if state.opening {
        state.warn("the session is being created");
        return Vec::new();
    }
    let session = state.session_id().cloned();
    let draft = state.prompt.draft();
    let parts = state.prompt.parts(&state.mirror.directory);
    let (agent, model, variant) = responder(state);
    if let Some((name, arguments)) = command(state, &trimmed) {
        let input = CommandInput {
            command: name,
            arguments,
            agent,
            model: model.map(|model| format!("{}/{}", model.provider_id, model.model_id)),
            variant,
            parts: parts.into_iter().filter(|part| matches!(part, PartInput::File { .. })).collect(),
            ..CommandInput::default()
        };
        return enqueue(state, Cmd::Command { session, input: Box::new(input), draft: draft.clone() }, draft);
    }
    let input = PromptInput { agent, model, variant, parts, ..PromptInput::default() };
    enqueue(state, Cmd::Send { session, input: Box::new(input), draft: draft.clone() }, draft)
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
    let draft = state.prompt.draft();
    enqueue(state, Cmd::Shell { session, input: Box::new(input), draft: draft.clone() }, draft)
}

/// Clears the prompt, adds it to the history and returns the command that sends it.
fn enqueue(state: &mut State, cmd: Cmd, mut draft: Draft) -> Vec<Cmd> {
    draft.text.truncate(draft.text.trim_end().len());
    state.opening = state.session_id().is_none();
    state.prompt.clear();
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
