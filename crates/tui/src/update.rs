//! Applies messages to the state and returns the commands to execute. Nothing here waits.

use codewright_proto::{Event, Fact, MessageId, Notice, SessionId, Signal, ToastVariant};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::keys::{ACTIONS, Action};
use crate::layer;
use crate::msg::{Cmd, Msg};
use crate::notification;
use crate::request;
use crate::state::{Link, Route, State};
use crate::trust;

mod act;
mod arguments;
mod complete;
pub(crate) mod mouse;
pub(crate) mod queue;
mod reply;
pub(crate) mod search;
mod send;
mod write;

pub(crate) use act::{act, applies, is_offered, is_reading};
pub(crate) use send::send_anyway;

/// How long the client waits for the key after the leader, in milliseconds.
const LEADER_MILLIS: u64 = 2_000;
/// How long a second escape interrupts the turn, in milliseconds.
pub(crate) const INTERRUPT_MILLIS: u64 = 5_000;
/// How long a second press of a key ends the client, in milliseconds.
const LEAVE_MILLIS: u64 = 3_000;

/// Applies a message at a time, in milliseconds since 1970.
pub(crate) fn update(state: &mut State, msg: Msg, now: u64) -> Vec<Cmd> {
    state.now = now;
    expire(state);
    let mut cmds = match msg {
        Msg::Key(key) if key.kind == KeyEventKind::Release => Vec::new(),
        Msg::Key(key) => press_key(state, key),
        Msg::Paste(text) => paste(state, &text),
        Msg::Mouse(mouse) => mouse::event(state, mouse),
        Msg::Resize(width, height) => {
            state.size = (width, height);
            Vec::new()
        }
        Msg::Focus(focus) => notification::focus(state, focus),
        Msg::Tick => Vec::new(),
        Msg::Notice(notice) => apply_notice(state, *notice),
        Msg::Connected => on_connected(state),
        Msg::Lost(why) => {
            state.link = Link::Lost(why);
            Vec::new()
        }
        Msg::Reply(reply) => reply::apply(state, reply),
    };
    cmds.extend(search::advance(state));
    cmds.extend(mouse::pull(state));
    cmds.extend(follow(state));
    cmds.extend(trust::refresh(state));
    request::refresh(state);
    cmds
}

/// Removes notes and waits whose time is over.
fn expire(state: &mut State) {
    let now = state.now;
    state.notes.retain(|note| note.until > now);
    state.leader = state.leader.filter(|until| *until > now);
    state.interrupt = state.interrupt.filter(|until| *until > now);
    state.leaving = state.leaving.filter(|until| *until > now);
}

/// Starts a fetch of all data.
fn start(state: &mut State) -> Cmd {
    state.mirror.begin_fetch();
    state.trust.expire();
    Cmd::Start
}

/// Returns the command that enters the directory of the open session, if it works in another one. Otherwise the client
/// would not receive its events.
fn follow(state: &mut State) -> Option<Cmd> {
    let directory = state.session()?.directory.clone();
    if directory == state.mirror.directory {
        state.followed.clear();
        return None;
    }
    if state.mirror.directory.is_empty() || directory.is_empty() || directory == state.followed {
        return None;
    }
    state.followed.clone_from(&directory);
    Some(Cmd::Follow(directory))
}

fn on_connected(state: &mut State) -> Vec<Cmd> {
    let is_first = !std::mem::replace(&mut state.was_connected, true);
    state.link = Link::Open;
    if is_first {
        return vec![start(state), Cmd::OpenFirst, Cmd::LoadServers];
    }
    if !std::mem::take(&mut state.is_entering) {
        state.notify("connected again", ToastVariant::Success);
    }
    // Events were missed, so everything is fetched again. Other sessions are fetched when they are opened.
    let current = state.session_id().cloned();
    state.mirror.close_others(current.as_ref());
    let mut cmds = vec![start(state), Cmd::LoadServers];
    if let Some(id) = state.session_id().cloned() {
        if let Some(transcript) = state.mirror.transcripts.get_mut(&id) {
            transcript.begin_fetch();
        }
        let load = [Cmd::LoadSession(id.clone()), Cmd::LoadMessages(id.clone()), Cmd::LoadTodos(id)];
        cmds.extend(load);
    }
    cmds
}

fn apply_notice(state: &mut State, notice: Notice) -> Vec<Cmd> {
    let mut cmds = notification::notify(state, &notice);
    match &notice.fact {
        Fact::Event(Event::PermissionAsked(request)) => cmds.extend(state.auto_approvals([request])),
        Fact::Event(Event::SessionDeleted { session_id, .. }) if state.session_id() == Some(session_id) => {
            state.warn("this session was deleted");
            state.route = Route::Home;
            cmds.push(Cmd::Title(String::new()));
        }
        // A mark in the title stays until the user returns.
        Fact::Event(Event::SessionUpdated { info, .. })
            if state.session_id() == Some(&info.id) && !state.is_marked =>
        {
            cmds.push(Cmd::Title(crate::mirror::readable_title(&info.title).to_owned()));
        }
        Fact::Signal(Signal::SessionIdle { session_id }) if state.reviewing.as_ref() == Some(session_id) => {
            state.reviewing = None;
            cmds.push(Cmd::LoadFindings(session_id.clone()));
        }
        Fact::Signal(Signal::SessionError { session_id: None, error }) => state.fail(error.message()),
        Fact::Signal(Signal::TuiToastShow { toast, .. }) => {
            let text = match &toast.title {
                Some(title) => format!("{title}: {}", toast.message),
                None => toast.message.clone(),
            };
            state.notify(text, toast.variant);
        }
        Fact::Signal(Signal::TuiPromptAppend { text, .. }) => {
            state.prompt.editor.insert(&crate::clean::clean(text));
        }
        Fact::Signal(Signal::TuiCommandExecute { command, .. }) => cmds.extend(execute(state, command)),
        Fact::Signal(Signal::TuiSessionSelect { session_id }) => {
            let id = session_id.clone();
            cmds.extend(open(state, id));
        }
        Fact::Signal(Signal::InstanceDisposed { .. } | Signal::GlobalDisposed {}) => {
            cmds.extend([start(state), Cmd::LoadServers]);
        }
        Fact::Signal(Signal::QuestionAsked(request)) => trust::note_question(state, request),
        Fact::Signal(Signal::VcsBranchUpdated { branch, .. }) => state.mirror.branch.clone_from(branch),
        Fact::Signal(Signal::LspUpdated { .. } | Signal::McpToolsChanged { .. }) => {
            cmds.push(Cmd::LoadServers);
        }
        Fact::Event(_) | Fact::Signal(_) => {}
    }
    state.mirror.apply(notice);
    layer::sessions::refresh(state);
    cmds
}

/// Performs an action that the server names.
fn execute(state: &mut State, command: &str) -> Vec<Cmd> {
    let row = ACTIONS.iter().find(|row| row.command == command || row.name == command);
    match row {
        Some(row) => act(state, row.action),
        None => Vec::new(),
    }
}

fn paste(state: &mut State, text: &str) -> Vec<Cmd> {
    if !state.layers.is_empty() && !layer::trust::ignores_keys(state) {
        layer::paste(state, text);
        return Vec::new();
    }
    if state.search.is_some() {
        search::paste(state, text);
        return Vec::new();
    }
    if let Some(dialog) = &mut state.requests.permission
        && let request::Stage::Reject(editor) = &mut dialog.stage
    {
        editor.insert(&crate::clean::clean_line(text));
        return Vec::new();
    }
    if let Some(question) = &mut state.requests.question
        && let Some(editor) = &mut question.custom
    {
        editor.insert(&crate::clean::clean_line(text));
        return Vec::new();
    }
    write::paste_text(state, text);
    complete::refresh(state)
}

fn press_key(state: &mut State, key: KeyEvent) -> Vec<Cmd> {
    state.pressed_at = state.now;
    if state.leader.take().is_some() {
        let bound: Vec<Action> = state.keys.actions(key, true).collect();
        return match bound.into_iter().find(|action| applies(state, *action)) {
            Some(action) => act(state, action),
            None => Vec::new(),
        };
    }
    if state.search.is_some() {
        return search::key(state, key);
    }
    if !state.layers.is_empty() {
        return layer::key(state, key);
    }
    let text = is_text(key);
    if state.requests.permission.is_some() {
        if let Some(cmds) = request::permission_key(state, key) {
            return cmds;
        }
    } else if state.requests.question.is_some() {
        if let Some(cmds) = request::question_key(state, key) {
            return cmds;
        }
    } else if let Some(cmds) = complete::key(state, key) {
        return cmds;
    }
    if state.keys.is_leader(key) {
        state.leader = Some(state.now + LEADER_MILLIS);
        return Vec::new();
    }
    let leaving = state.leaving.take();
    if let Some(action) = bound_action(state, key) {
        let ends_at_once = leaving.is_some() || !may_be_pressed_by_accident(key);
        return if action == Action::Exit && !ends_at_once { leave(state, key) } else { act(state, action) };
    }
    if state.requests.permission.is_some() || state.requests.question.is_some() || is_child(state) {
        return Vec::new();
    }
    match text {
        Some(c) => {
            write::type_char(state, c);
            complete::refresh(state)
        }
        None => Vec::new(),
    }
}

/// Returns the action of a key. While the prompt has text, a key that edits it does not scroll.
fn bound_action(state: &State, key: KeyEvent) -> Option<Action> {
    let bound: Vec<Action> = state.keys.actions(key, false).collect();
    let mut fitting = bound.into_iter().filter(|action| applies(state, *action));
    let first = fitting.next()?;
    let edits = |action: &Action| action.row().name.starts_with("input_");
    let is_writing = !state.prompt.is_empty() && first.scrolls();
    Some(fitting.find(|action| is_writing && edits(action)).unwrap_or(first))
}

/// Whether a key that ends the client also has other common uses, so that a second press is needed.
fn may_be_pressed_by_accident(key: KeyEvent) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL) && matches!(key.code, KeyCode::Char('c' | 'd'))
}

/// Handles the first press of a key that ends the client: interrupts the turn, if one runs.
fn leave(state: &mut State, key: KeyEvent) -> Vec<Cmd> {
    state.leaving = Some(state.now + LEAVE_MILLIS);
    let is_interrupt = key.code == KeyCode::Char('c') && state.is_busy();
    let id = state.session_id().cloned().filter(|_| is_interrupt);
    id.map(Cmd::Abort).into_iter().collect()
}

/// Handles a key that was meant for the prompt when a dialog appeared over it. It never sends the prompt.
pub(crate) fn type_ahead(state: &mut State, key: KeyEvent) -> Vec<Cmd> {
    if state.requests.permission.is_some() || state.requests.question.is_some() || is_child(state) {
        return Vec::new();
    }
    match (is_text(key), key.code) {
        (Some(c), _) => write::type_char(state, c),
        (None, KeyCode::Backspace) => state.prompt.editor.delete_before(),
        _ => return Vec::new(),
    }
    complete::refresh(state)
}

/// Returns the character that a key types.
pub(crate) fn is_text(key: KeyEvent) -> Option<char> {
    let held = key.modifiers - KeyModifiers::SHIFT;
    match key.code {
        // Some keyboards type ordinary characters with this combination.
        KeyCode::Char(c) if held.is_empty() || held == KeyModifiers::CONTROL | KeyModifiers::ALT => Some(c),
        _ => None,
    }
}

/// Whether the session on the screen was started by another session, so that it cannot be prompted.
pub(crate) fn is_child(state: &State) -> bool {
    state.session().is_some_and(|session| session.parent_id.is_some())
}

/// Opens a session.
pub(crate) fn open(state: &mut State, id: SessionId) -> Vec<Cmd> {
    state.mirror.open(&id);
    let mut cmds = Vec::new();
    match state.mirror.sessions.get(&id) {
        Some(session) => cmds.push(Cmd::Title(session.title.clone())),
        None => cmds.push(Cmd::LoadSession(id.clone())),
    }
    if let Some(transcript) = state.mirror.transcripts.get_mut(&id)
        && !transcript.loaded
        && !transcript.fetching
    {
        transcript.begin_fetch();
        cmds.extend([Cmd::LoadMessages(id.clone()), Cmd::LoadTodos(id.clone())]);
    }
    if state.session_id() != Some(&id) {
        (state.search, state.selection) = (None, None);
        // The first escape was meant for the turn of the other session.
        state.interrupt = None;
        // Another session has its own agent and model.
        state.choice.variant = None;
        if matches!(state.route, Route::Session(_)) {
            state.choice = crate::state::Choice::default();
        }
    }
    state.route = Route::Session(id);
    cmds
}

/// Scrolls to a message of the session on the screen.
pub(crate) fn scroll_to(state: &mut State, id: &MessageId) {
    with_transcript(state, |transcript, look, _| {
        if let Some(at) = transcript.find(id) {
            transcript.scroll_to(look, at);
        }
    });
}

/// Calls `work` with the transcript on the screen, the settings for drawing it, and its height.
fn with_transcript<T>(
    state: &mut State,
    work: impl FnOnce(&mut crate::transcript::Transcript, &crate::look::Look<'_>, usize) -> T,
) -> Option<T> {
    let id = state.session_id()?.clone();
    let mut transcript = state.mirror.transcripts.remove(&id)?;
    let area = state.screen.layout.transcript;
    let done = work(&mut transcript, &state.look(usize::from(area.width)), usize::from(area.height));
    state.mirror.transcripts.insert(id, transcript);
    Some(done)
}

/// Scrolls the transcript, and fetches older messages at its start.
fn scroll(state: &mut State, lines: isize) -> Vec<Cmd> {
    let at_start =
        with_transcript(state, |transcript, look, height| transcript.scroll_by(look, lines, height));
    if at_start == Some(true) && lines < 0 { older(state) } else { Vec::new() }
}

/// Fetches the messages before the first one, if there are any.
fn older(state: &mut State) -> Vec<Cmd> {
    let Some(id) = state.session_id().cloned() else { return Vec::new() };
    let Some(transcript) = state.mirror.transcripts.get_mut(&id) else { return Vec::new() };
    match transcript.older.clone() {
        Some(before) if !transcript.fetching => {
            transcript.fetching = true;
            vec![Cmd::LoadOlder { session: id, before }]
        }
        Some(_) | None => Vec::new(),
    }
}
