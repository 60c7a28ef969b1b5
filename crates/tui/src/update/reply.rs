//! Applies the results of commands.

use codewright_proto::{MessageWithParts, Session, SessionId, ToastVariant};
use serde_json::Value;

use super::{complete, open};
use crate::clipboard::Clip;
use crate::layer::skills::Skill;
use crate::layer::{self, Layer};
use crate::msg::{Cmd, Reply, StartData};
use crate::prompt::{Body, Draft};
use crate::state::{BugReport, Route, State};

/// Applies the result of a command.
#[expect(
    clippy::too_many_lines,
    reason = "one line for each result, so that the compiler lists the missing ones"
)]
pub(super) fn apply(state: &mut State, reply: Reply) -> Vec<Cmd> {
    match reply {
        Reply::Started(data) => return apply_start(state, *data),
        Reply::Opened(session) => return open_session(state, *session),
        Reply::ReviewBegun(session) => {
            state.reviewing = Some(session.id.clone());
            return open_session(state, *session);
        }
        Reply::Findings { session, review: Ok(review) } => layer::findings::show(state, session, review),
        Reply::Findings { review: Err(error), .. } => state.fail(error),
        Reply::FindingApplied { key, result } => layer::findings::applied(state, key, result),
        Reply::BugReported(Ok((path, advice))) => state.bug = BugReport::Written { path, advice },
        Reply::BugReported(Err(error)) => state.bug = BugReport::Failed(error),
        Reply::Sessions(sessions) => put_sessions(state, sessions),
        Reply::Session(session) => state.mirror.put_session(*session),
        Reply::Moved(session) => {
            let place = crate::look::display_path(&session.directory, "", &state.mirror.home);
            state.notify(format!("session moved to {place}"), ToastVariant::Success);
            state.mirror.put_session(*session);
        }
        Reply::Followed(directory) => {
            state.mirror.directory.clone_from(&directory);
            state.is_entering = true;
            return vec![Cmd::Enter(directory)];
        }
        Reply::Messages { session, messages, older } => put_messages(state, &session, messages, older),
        Reply::Older { session, messages, older } => put_older(state, &session, messages, older),
        Reply::Unfetched { session, error } => {
            if let Some(transcript) = state.mirror.transcripts.get_mut(&session) {
                transcript.fetching = false;
            }
            state.fail(error);
        }
        Reply::Unsent { draft, error } => restore_draft(state, draft, error),
        Reply::Todos { session, todos } => drop(state.mirror.todos.insert(session, todos)),
        Reply::Symbols { query, symbols } => complete::add_symbols(state, &query, &symbols),
        Reply::Resources(value) => complete::add_resources(state, &value),
        Reply::Files { query, files } => complete::add_files(state, &query, files),
        Reply::Connected { provider, providers, check } => {
            put_connected(state, &provider, &providers, &check);
        }
        Reply::AllProviders { providers, methods } => {
            state.all_providers = provider_names(&providers["all"]);
            state.sign_ins = methods;
            layer::providers::refresh(state);
        }
        Reply::SignIn { provider, method, authorization } => {
            return layer::sign_in::show_url(state, provider, method, &authorization);
        }
        Reply::McpSignIn { name, url } => return layer::mcp::show_url(state, name, &url),
        Reply::Skills(value) => put_skills(state, &value),
        Reply::Servers { mcp, lsp, formatters } => {
            state.mirror.put_servers(mcp, lsp, formatters);
            layer::mcp::refresh(state);
        }
        Reply::Sandbox(value) => state.mirror.put_sandbox(&value),
        Reply::Directories { directories, workspaces } => {
            layer::directories::fill(state, &directories, &workspaces);
        }
        Reply::Changes { source, changes } => layer::review::show_changes(state, &source, changes),
        Reply::SandboxSetting(value) => state.mirror.put_sandbox_label(&value),
        Reply::ToolBytes(bytes) => state.mirror.tool_bytes = Some(bytes),
        Reply::TakenBack(draft) => super::queue::restore(state, draft),
        Reply::Copied { mut note, is_copied } => {
            if state.options.ignores_copies && note.contains("OSC 52") && !note.starts_with("copied with") {
                note.push_str(
                    "\nThis terminal is known to ignore it: hold shift to select with the terminal itself.",
                );
            }
            let variant = if is_copied { ToastVariant::Success } else { ToastVariant::Warning };
            state.notify(note, variant);
        }
        Reply::Trust { directory, reply } => crate::trust::store_reply(state, &directory, reply),
        Reply::TrustDecided { directory, decision, answer } => {
            layer::trust::apply_decision(state, &directory, decision, answer);
        }
        Reply::TrustDismissed { directory, is_noted } => {
            layer::trust::apply_dismissal(state, &directory, is_noted);
        }
        Reply::Pasted(Ok(Clip::Text(text))) => return super::paste(state, &text),
        Reply::Pasted(Ok(Clip::Picture(picture))) => state.prompt.attach_picture(&picture),
        Reply::Pasted(Err(error)) => state.warn(error),
        Reply::Context(Ok(attachment)) => {
            state.prompt.attach(attachment.label, Body::Paste(attachment.text));
        }
        Reply::Context(Err(why)) => state.warn(why),
        Reply::Edited(text) => state.prompt.editor.set(text.trim_end()),
        Reply::Failed(text) => state.fail(text),
        Reply::Done(text) => state.notify(text, ToastVariant::Success),
    }
    Vec::new()
}

fn open_session(state: &mut State, session: Session) -> Vec<Cmd> {
    let id = session.id.clone();
    if std::mem::take(&mut state.opening) {
        // The session was created for the prompt that was sent here.
        state.mark_prompted(&id);
    }
    state.mirror.put_session(session);
    open(state, id)
}

fn put_sessions(state: &mut State, sessions: Vec<Session>) {
    for session in sessions {
        state.mirror.put_session(session);
    }
    layer::sessions::refresh(state);
}

fn put_messages(
    state: &mut State,
    session: &SessionId,
    messages: Vec<MessageWithParts>,
    older: Option<String>,
) {
    let revert = state.mirror.sessions.get(session).and_then(|session| session.revert.clone());
    if let Some(transcript) = state.mirror.transcripts.get_mut(session) {
        transcript.load(messages, older);
        transcript.end_before(revert.as_ref().map(|revert| &revert.message_id));
    }
}

fn put_older(state: &mut State, session: &SessionId, messages: Vec<MessageWithParts>, older: Option<String>) {
    let is_shown = state.session_id() == Some(session);
    let Some(transcript) = state.mirror.transcripts.get_mut(session) else { return };
    let before = transcript.entries.len();
    transcript.load_older(messages, older);
    let added = transcript.entries.len() - before;
    if let Some(selection) = state.selection.as_mut().filter(|_| is_shown) {
        selection.shift(added);
    }
}

/// Restores the draft of a prompt that could not be sent, unless the user has typed another one.
fn restore_draft(state: &mut State, draft: Draft, error: String) {
    state.opening = false;
    state.fail(error);
    if state.prompt.is_empty() {
        state.prompt.restore(draft);
    }
}

/// Stores the providers after a sign-in, says what the provider thinks of the key, and offers its models.
fn put_connected(state: &mut State, provider: &str, providers: &Value, check: &Value) {
    state.mirror.put_providers(providers);
    layer::sign_in::finish(state);
    let why = check["message"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
    match check["status"].as_str() {
        Some("refused") => {
            state.fail(format!(
                "the provider is connected, but refuses the key{why}\n/connect stores another one"
            ));
            return;
        }
        Some("accepted") => {
            state.notify("the provider is connected and accepts the key", ToastVariant::Success);
        }
        Some("unreachable") => state.warn(format!("the provider is connected, but was not reached{why}")),
        Some(_) | None => state.notify("the provider is connected", ToastVariant::Success),
    }
    // A dialog that the user opened meanwhile stays.
    if state.layers.is_empty() {
        layer::models::open_for(state, provider);
    }
}

fn put_skills(state: &mut State, value: &Value) {
    let skills = value.as_array().into_iter().flatten();
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let skills = skills.map(|skill| Skill {
        name: text(skill, "name"),
        description: text(skill, "description"),
        content: text(skill, "content"),
        location: text(skill, "location"),
    });
    state.skills = skills.collect();
    if matches!(state.layers.last(), Some(Layer::List(list)) if list.kind == layer::Kind::Skills) {
        state.layers.pop();
        layer::skills::open(state);
    }
}

fn provider_names(value: &Value) -> Vec<(String, String)> {
    let providers = value.as_array().into_iter().flatten();
    let named = providers.filter_map(|provider| {
        let id = provider["id"].as_str()?.to_owned();
        let name = provider["name"].as_str().unwrap_or(&id).to_owned();
        Some((id, name))
    });
    let mut named: Vec<(String, String)> = named.collect();
    named.sort_by_key(|(_, name)| name.to_lowercase());
    named
}

fn apply_start(state: &mut State, started: StartData) -> Vec<Cmd> {
    for failed in &started.failed {
        state.fail(failed.clone());
    }
    if let Some(path) = started.path {
        state.mirror.directory = path.directory;
        state.mirror.worktree = path.worktree;
        state.mirror.home = path.home;
    }
    let mirror = &mut state.mirror;
    // Data that could not be fetched does not change.
    if let Some(agents) = started.agents {
        mirror.agents = serde_json::from_value(agents).unwrap_or_default();
    }
    if let Some(commands) = started.commands {
        mirror.put_commands(serde_json::from_value(commands).unwrap_or_default());
    }
    if let Some(providers) = started.providers {
        mirror.put_providers(&providers);
    }
    mirror.branch = started.branch.unwrap_or(mirror.branch.take());
    if let Some(statuses) = started.statuses {
        mirror.statuses = statuses.into_iter().collect();
    }
    mirror.permissions = started.permissions.unwrap_or(std::mem::take(&mut mirror.permissions));
    mirror.questions = started.questions.unwrap_or(std::mem::take(&mut mirror.questions));
    for session in started.sessions.into_iter().flatten() {
        mirror.put_session(session);
    }
    mirror.end_fetch();
    if let Some(config) = started.config {
        apply_config(state, config);
    }
    let mut is_first = false;
    if !state.mirror.ready {
        state.mirror.ready = true;
        unknown_choice(state);
        note_guess(state);
        is_first = true;
    }
    if let Route::Session(id) = &state.route
        && !state.mirror.transcripts.contains_key(id)
    {
        state.route = Route::Home;
    }
    let mut cmds = state.auto_approvals(&state.mirror.permissions);
    if state.mirror.sandbox_label.is_none() {
        cmds.push(Cmd::LoadSandboxSetting);
    }
    if is_first && state.options.sends_prompt {
        cmds.extend(super::send::submit(state));
    }
    cmds
}

/// Applies the theme and the keys of the server's configuration, unless `tui.json` sets them.
fn apply_config(state: &mut State, config: Value) {
    let setting = |key: &str| state.options.config[key].is_null().then(|| config[key].clone());
    let keybinds = setting("keybinds").filter(Value::is_object);
    let theme = setting("theme").and_then(|theme| theme.as_str().map(str::to_owned));
    if let Some(keybinds) = keybinds {
        for warning in state.keys.configure(&keybinds) {
            state.warn(warning);
        }
    }
    if let Some(theme) = theme.filter(|theme| state.local.theme.is_none() && *theme != state.theme_name)
        && let Err(error) = state.choose_theme(&theme)
    {
        state.warn(format!("{error}; using `{}`", state.theme_name));
    }
    if state.mirror.config["username"] != config["username"] {
        // Prompts that were drawn before have the old name.
        state.generation += 1;
    }
    state.mirror.config = config;
}

/// Says which model the next prompt uses, if neither the user nor the configuration chose one.
fn note_guess(state: &mut State) {
    let is_unchosen = state.mirror.is_guess && state.local.recent.is_empty() && state.options.model.is_none();
    let server_model = state.mirror.server_model.clone().flatten();
    if let Some((provider, model)) =
        state.model().filter(|model| is_unchosen && server_model.as_ref() == Some(model))
    {
        state.warn(format!("no model was chosen: using {provider}/{model}; change it with /models"));
    }
}

/// Warns if the agent or the model of the command line does not exist.
fn unknown_choice(state: &mut State) {
    if let Some(name) = state.choice.agent.clone()
        && !state.primary_agents().iter().any(|agent| agent.name == name)
    {
        state.warn(format!("no agent named `{name}`; using the default agent"));
        state.choice.agent = None;
    }
    if let Some(name) = state.options.model.clone() {
        let model = state.choice.model.clone();
        let known = model.is_some_and(|(provider, model)| state.mirror.model(&provider, &model).is_some());
        if !known {
            state.warn(format!("no model named `{name}`; using the default model"));
            state.choice.model = None;
        }
    }
}
