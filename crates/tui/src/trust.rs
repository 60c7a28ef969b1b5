//! Workspace trust: the trust of each directory, and when to show the dialog.
//!
//! The dialog (`layer/trust.rs`) is shown for the directory on the screen while the user has not decided. It
//! waits until no other layer is open. A server that has no workspace trust is never queried twice and
//! never shows a dialog or an error.

use std::collections::{BTreeMap, HashSet};

use codewright_proto::{QuestionRequest, TrustReply, TrustStatus};

use crate::layer::{self, Layer};
use crate::msg::Cmd;
use crate::state::State;

/// The maximum number of directories whose trust is remembered.
const MAX_DIRECTORIES: usize = 64;
/// The maximum number of remembered "Not now" choices.
const MAX_POSTPONED: usize = 256;
/// The header of the question that servers send to clients without a dialog.
const HEADER: &str = "Trust";

/// The trust of the directories that were on the screen.
#[derive(Debug, Default)]
pub(crate) struct Trusts {
    directories: BTreeMap<String, DirectoryTrust>,
    /// Roots and fingerprints for which the user chose "Not now".
    postponed: HashSet<(String, String)>,
}

/// The trust of one directory.
#[derive(Debug, Default)]
struct DirectoryTrust {
    /// The server's answer; `None` until it comes, and if the server has no workspace trust.
    reply: Option<TrustReply>,
    /// The answer is outdated, or was never requested.
    is_stale: bool,
    is_fetching: bool,
    /// Whether a decision or a dismissal is being sent.
    is_sending: bool,
    /// Whether the dialog must be opened when no other layer is open.
    is_wanted: bool,
    /// The user opened the dialog before the answer was here.
    is_called: bool,
}

impl Trusts {
    /// Marks every answer as outdated.
    pub(crate) fn expire(&mut self) {
        for known in self.directories.values_mut() {
            known.is_stale = true;
        }
    }

    /// Marks the answer about one directory as outdated.
    fn expire_one(&mut self, directory: &str) {
        if let Some(known) = self.directories.get_mut(directory) {
            known.is_stale = true;
        }
    }

    /// The server's answer about a directory.
    pub(crate) fn reply(&self, directory: &str) -> Option<&TrustReply> {
        self.directories.get(directory)?.reply.as_ref()
    }

    /// Records that a decision or a dismissal is being sent, or was answered.
    pub(crate) fn send(&mut self, directory: &str, is_sending: bool) {
        if let Some(known) = self.directories.get_mut(directory) {
            known.is_sending = is_sending;
        }
    }

    /// Remembers that the user chose "Not now".
    pub(crate) fn postpone(&mut self, reply: &TrustReply) {
        if self.postponed.len() >= MAX_POSTPONED {
            self.postponed.clear();
        }
        self.postponed.insert((reply.root.clone(), reply.fingerprint.clone()));
    }

    fn is_postponed(&self, reply: &TrustReply) -> bool {
        self.postponed.contains(&(reply.root.clone(), reply.fingerprint.clone()))
    }

    /// The record of a directory; makes room for it.
    fn entry(&mut self, directory: &str) -> &mut DirectoryTrust {
        if self.directories.len() >= MAX_DIRECTORIES && !self.directories.contains_key(directory) {
            self.directories.retain(|_, known| known.is_fetching || known.is_sending);
        }
        self.directories
            .entry(directory.to_owned())
            .or_insert_with(|| DirectoryTrust { is_stale: true, ..DirectoryTrust::default() })
    }
}

/// The directory on the screen: that of the session, or the client's own.
pub(crate) fn directory(state: &State) -> &str {
    state.session().map_or(&state.mirror.directory, |session| &session.directory)
}

/// Whether a part of the configuration of the directory on the screen waits for trust.
pub(crate) fn is_untrusted(state: &State) -> bool {
    let reply = state.trust.reply(directory(state));
    reply.is_some_and(|reply| matches!(reply.status, TrustStatus::Undecided | TrustStatus::Restricted))
}

/// Requests outdated trust and opens the dialog if it is due. Runs after every message.
pub(crate) fn refresh(state: &mut State) -> Vec<Cmd> {
    if !state.was_connected {
        return Vec::new();
    }
    let directory = directory(state).to_owned();
    let has_question = has_question(state, &directory);
    let is_visible = layer::trust::find(state, &directory).is_some();
    let known = state.trust.entry(&directory);
    let mut cmds = Vec::new();
    if known.is_stale && !known.is_fetching && !known.is_sending {
        (known.is_stale, known.is_fetching) = (false, true);
        cmds.push(Cmd::LoadTrust(directory.clone()));
    }
    let is_settled = !known.is_fetching && !known.is_sending && !is_visible;
    let is_undecided = known.reply.as_ref().is_some_and(|reply| reply.status == TrustStatus::Undecided);
    // The server sends its question although the user chose "Not now": another client or another process wants to know.
    known.is_wanted |= has_question && is_settled && is_undecided;
    if known.is_wanted && state.layers.is_empty() {
        known.is_wanted = false;
        if let Some(reply) = known.reply.clone() {
            layer::trust::open(state, directory, reply);
        }
    }
    cmds
}

/// Stores the server's answer about a directory, or `None` if the request failed.
pub(crate) fn store_reply(state: &mut State, directory: &str, reply: Option<TrustReply>) {
    let has_question = has_question(state, directory);
    let is_postponed = reply.as_ref().is_some_and(|reply| state.trust.is_postponed(reply));
    let is_visible = layer::trust::find(state, directory).is_some();
    let known = state.trust.entry(directory);
    known.is_fetching = false;
    // A failed request does not change the known trust.
    known.reply = reply.clone().or(known.reply.take());
    let is_called = std::mem::take(&mut known.is_called);
    let is_undecided = reply.as_ref().is_some_and(|reply| reply.status == TrustStatus::Undecided);
    known.is_wanted = is_undecided && !known.is_sending && !is_visible && (has_question || !is_postponed);
    match reply {
        Some(reply) if is_visible => layer::trust::update(state, directory, reply),
        Some(reply) if is_called => {
            known.is_wanted = false;
            layer::trust::call(state, directory.to_owned(), reply);
        }
        None if is_called || is_visible => {
            layer::trust::close(state, directory);
            state.warn("this server has no workspace trust");
        }
        Some(_) | None => {}
    }
}

/// Opens the dialog for the user.
pub(crate) fn call(state: &mut State) -> Vec<Cmd> {
    let directory = directory(state).to_owned();
    let known = state.trust.entry(&directory);
    known.is_stale = true;
    match known.reply.clone() {
        Some(reply) => layer::trust::call(state, directory, reply),
        None => known.is_called = true,
    }
    Vec::new()
}

/// Records the server's question about a directory, which may have changed since the last answer.
pub(crate) fn note_question(state: &mut State, request: &QuestionRequest) {
    if is_about_trust(request) {
        let directory = directory_of(state, request).to_owned();
        state.trust.expire_one(&directory);
    }
}

/// Whether the dialog is displayed instead of a question.
pub(crate) fn replaces(state: &State, request: &QuestionRequest) -> bool {
    if !is_about_trust(request) {
        return false;
    }
    let directory = directory_of(state, request);
    let known = state.trust.directories.get(directory);
    let is_due = known.is_some_and(|known| known.is_fetching || known.is_sending || known.is_wanted);
    is_due || layer::trust::find(state, directory).is_some()
}

/// Removes the questions about a directory. The server withdraws them after the user's answer.
pub(crate) fn remove_questions(state: &mut State, directory: &str) {
    let mut questions = std::mem::take(&mut state.mirror.questions);
    questions.retain(|request| !(is_about_trust(request) && directory_of(state, request) == directory));
    state.mirror.questions = questions;
}

fn is_about_trust(request: &QuestionRequest) -> bool {
    request.tool.is_none() && request.questions.first().is_some_and(|question| question.header == HEADER)
}

fn has_question(state: &State, directory: &str) -> bool {
    let mut questions = state.mirror.questions.iter();
    questions.any(|request| is_about_trust(request) && directory_of(state, request) == directory)
}

fn directory_of<'a>(state: &'a State, request: &QuestionRequest) -> &'a str {
    let session = state.mirror.sessions.get(&request.session_id);
    session.map_or(&state.mirror.directory, |session| &session.directory)
}

/// Whether a layer is the dialog of a directory.
pub(crate) fn is_dialog(layer: &Layer, directory: &str) -> bool {
    matches!(layer, Layer::Trust(dialog) if dialog.directory == directory)
}
