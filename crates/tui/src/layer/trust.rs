//! The dialog in which the user decides whether a repository is trusted.
//!
//! "Not now" is selected at first and "Trust this repository" is two keys away, so no single key trusts. Keys
//! that were meant for the prompt when the dialog appeared still go there.

use codewright_proto::{ToastVariant, TrustChoice, TrustDismissal, TrustInput, TrustReply, TrustStatus};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::Layer;
use crate::msg::Cmd;
use crate::state::State;
use crate::trust;

/// How long the dialog ignores keys after it appeared, and after each ignored key, in milliseconds.
const GUARD_MILLIS: u64 = 300;
/// Lines that a page scrolls by.
const PAGE: usize = 10;

/// A button of the dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Button {
    /// Decides nothing.
    Later,
    /// Decides nothing because nothing is open.
    Close,
    Restrict,
    Trust,
}

impl Button {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Later => "Not now",
            Self::Close => "Close",
            Self::Restrict => "Do not trust it",
            Self::Trust => "Trust this repository",
        }
    }
}

/// The dialog about one directory.
#[derive(Debug)]
pub(crate) struct Dialog {
    /// The directory, as in requests to the server.
    pub(crate) directory: String,
    pub(crate) reply: TrustReply,
    /// The selected button.
    pub(crate) selected: usize,
    pub(crate) scroll: usize,
    /// Why the last decision was not stored.
    pub(crate) notice: Option<String>,
    /// Whether a decision is being sent.
    pub(crate) is_sending: bool,
    /// Keys until this time may be meant for the prompt.
    guard_until: u64,
}

impl Dialog {
    fn new(directory: String, reply: TrustReply) -> Self {
        Self { directory, reply, selected: 0, scroll: 0, notice: None, is_sending: false, guard_until: 0 }
    }

    fn guard_keys(&mut self, now: u64) {
        self.guard_until = now + GUARD_MILLIS;
    }

    fn ignores_keys(&self, now: u64) -> bool {
        // If the clock was set back, the dialog must still accept keys.
        (1..=GUARD_MILLIS).contains(&self.guard_until.saturating_sub(now))
    }

    /// The buttons, the harmless one first.
    pub(crate) fn buttons(&self) -> &'static [Button] {
        match (self.reply.status, &self.reply.limit) {
            (TrustStatus::Unneeded, _) => &[Button::Close],
            (TrustStatus::Undecided, None) => &[Button::Later, Button::Restrict, Button::Trust],
            (TrustStatus::Restricted, None) => &[Button::Close, Button::Trust],
            (TrustStatus::Trusted, None) => &[Button::Close, Button::Restrict],
            (_, Some(_)) => &[Button::Later, Button::Restrict],
        }
    }
}

/// The open dialog about a directory.
pub(crate) fn find<'a>(state: &'a State, directory: &str) -> Option<&'a Dialog> {
    state.layers.iter().find_map(|layer| match layer {
        Layer::Trust(dialog) if dialog.directory == directory => Some(dialog.as_ref()),
        _ => None,
    })
}

fn find_mut<'a>(state: &'a mut State, directory: &str) -> Option<&'a mut Dialog> {
    state.layers.iter_mut().find_map(|layer| match layer {
        Layer::Trust(dialog) if dialog.directory == directory => Some(dialog.as_mut()),
        _ => None,
    })
}

/// Opens the dialog automatically. The user may be typing.
pub(crate) fn open(state: &mut State, directory: String, reply: TrustReply) {
    let mut dialog = Dialog::new(directory, reply);
    dialog.guard_keys(state.now);
    state.leader = None;
    state.layers.push(Layer::Trust(Box::new(dialog)));
}

/// Opens the dialog for the user.
pub(crate) fn call(state: &mut State, directory: String, reply: TrustReply) {
    close(state, &directory);
    state.layers.push(Layer::Trust(Box::new(Dialog::new(directory, reply))));
}

/// Closes the dialog.
pub(crate) fn close(state: &mut State, directory: &str) {
    state.layers.retain(|layer| !trust::is_dialog(layer, directory));
}

/// Displays a newer answer of the server.
pub(crate) fn update(state: &mut State, directory: &str, reply: TrustReply) {
    let now = state.now;
    let Some(dialog) = find_mut(state, directory) else { return };
    if dialog.is_sending || dialog.reply == reply {
        return;
    }
    let was_open = dialog.reply.status == TrustStatus::Undecided;
    if was_open && reply.status != TrustStatus::Undecided && reply.limit.is_none() {
        // Another client has decided.
        close(state, directory);
        return;
    }
    dialog.guard_keys(now);
    (dialog.selected, dialog.scroll) = (0, 0);
    dialog.reply = reply;
}

/// Applies the answer to a decision. An error comes with the current trust of the directory.
pub(crate) fn apply_decision(
    state: &mut State,
    directory: &str,
    decision: TrustChoice,
    answer: Result<TrustReply, (String, Option<TrustReply>)>,
) {
    state.trust.send(directory, false);
    let now = state.now;
    if let Some(dialog) = find_mut(state, directory) {
        dialog.is_sending = false;
        dialog.guard_keys(now);
    }
    match answer {
        Ok(reply) => {
            close(state, directory);
            let (text, variant) = outcome(decision, reply.status);
            trust::remove_questions(state, directory);
            trust::store_reply(state, directory, Some(reply));
            state.notify(text, variant);
        }
        Err((problem, present)) => {
            if let Some(reply) = present {
                trust::store_reply(state, directory, Some(reply));
            }
            match find_mut(state, directory) {
                Some(dialog) => {
                    (dialog.selected, dialog.scroll) = (0, 0);
                    dialog.notice = Some(problem);
                }
                None => state.fail(format!("the trust decision is not stored: {problem}")),
            }
        }
    }
}

/// Applies the answer to "Not now". A server that did not record it repeats its question.
pub(crate) fn apply_dismissal(state: &mut State, directory: &str, is_noted: bool) {
    state.trust.send(directory, false);
    if is_noted {
        trust::remove_questions(state, directory);
    }
}

fn outcome(decision: TrustChoice, status: TrustStatus) -> (&'static str, ToastVariant) {
    let overruled = "the decision is stored, but CODEWRIGHT_TRUST decides for this server";
    match (decision, status) {
        (TrustChoice::Trust, TrustStatus::Trusted | TrustStatus::Unneeded) => {
            ("the repository is trusted until one of its control files changes", ToastVariant::Success)
        }
        (TrustChoice::Restrict, TrustStatus::Restricted | TrustStatus::Unneeded) => {
            ("the repository is not trusted", ToastVariant::Success)
        }
        (TrustChoice::Trust, TrustStatus::Undecided | TrustStatus::Restricted)
        | (TrustChoice::Restrict, TrustStatus::Undecided | TrustStatus::Trusted) => {
            (overruled, ToastVariant::Warning)
        }
    }
}

/// Handles a key in the dialog.
pub(super) fn key(state: &mut State, key: KeyEvent) -> Vec<Cmd> {
    let now = state.now;
    let last_line = crate::view::trust::last_scroll(state);
    let Some(Layer::Trust(dialog)) = state.layers.last_mut() else { return Vec::new() };
    if dialog.ignores_keys(now) {
        // Escape shows that the user has seen the dialog. All other keys may be meant for the prompt.
        if key.code != KeyCode::Esc {
            dialog.guard_keys(now);
        }
        return crate::update::type_ahead(state, key);
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let last = dialog.buttons().len().saturating_sub(1);
    match key.code {
        KeyCode::Esc => return dismiss(state),
        KeyCode::Char('c') if control => return dismiss(state),
        KeyCode::Enter => return press(state),
        // Backwards it stops at the first button: one key must not lead to the last one.
        KeyCode::Left | KeyCode::BackTab => dialog.selected = dialog.selected.saturating_sub(1),
        KeyCode::Right => dialog.selected = (dialog.selected + 1).min(last),
        KeyCode::Tab => dialog.selected = if dialog.selected >= last { 0 } else { dialog.selected + 1 },
        KeyCode::Up | KeyCode::Char('k') => dialog.scroll = dialog.scroll.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => dialog.scroll = (dialog.scroll + 1).min(last_line),
        KeyCode::PageUp => dialog.scroll = dialog.scroll.saturating_sub(PAGE),
        KeyCode::PageDown => dialog.scroll = (dialog.scroll + PAGE).min(last_line),
        KeyCode::Home => dialog.scroll = 0,
        KeyCode::End => dialog.scroll = last_line,
        _ => {}
    }
    Vec::new()
}

/// Whether pasted text was meant for the prompt.
pub(crate) fn ignores_keys(state: &State) -> bool {
    matches!(state.layers.last(), Some(Layer::Trust(dialog)) if dialog.ignores_keys(state.now))
}

/// Presses the selected button.
fn press(state: &mut State) -> Vec<Cmd> {
    let Some(Layer::Trust(dialog)) = state.layers.last_mut() else { return Vec::new() };
    if dialog.is_sending {
        return Vec::new();
    }
    let decision = match dialog.buttons().get(dialog.selected) {
        Some(Button::Trust) => TrustChoice::Trust,
        Some(Button::Restrict) => TrustChoice::Restrict,
        Some(Button::Later | Button::Close) | None => return dismiss(state),
    };
    (dialog.is_sending, dialog.notice) = (true, None);
    let (directory, fingerprint) = (dialog.directory.clone(), dialog.reply.fingerprint.clone());
    state.trust.send(&directory, true);
    vec![Cmd::DecideTrust { directory, input: TrustInput { decision, fingerprint } }]
}

/// Closes the dialog. An open decision is postponed.
fn dismiss(state: &mut State) -> Vec<Cmd> {
    let Some(Layer::Trust(dialog)) = state.layers.pop() else { return Vec::new() };
    if dialog.reply.status != TrustStatus::Undecided || dialog.is_sending {
        return Vec::new();
    }
    state.trust.postpone(&dialog.reply);
    state.trust.send(&dialog.directory, true);
    let dismissal = TrustDismissal { fingerprint: dialog.reply.fingerprint.clone() };
    vec![Cmd::DismissTrust { directory: dialog.directory, dismissal }]
}
