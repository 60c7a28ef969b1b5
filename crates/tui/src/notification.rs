//! Notifications while the terminal has no focus: the bell, a message of the desktop, and a mark in the title.

use codewright_proto::{Event, Fact, Message, MessageError, Notice, SessionId, SessionStatus, Signal};
use serde_json::Value;

use crate::clipboard::Multiplexer;
use crate::msg::Cmd;
use crate::state::State;
use crate::wrap;

/// The time without a key after which a terminal that does not report its focus counts as left, in milliseconds.
const AWAY_MILLIS: u64 = 30_000;
/// The maximum length of a message.
const MAX_CHARS: usize = 160;

/// The sequence that notifies the desktop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequence {
    /// OSC 9: iTerm2, `WezTerm`, Ghostty, Windows Terminal and others.
    Osc9,
    /// OSC 777: urxvt, foot and others.
    Osc777,
    /// OSC 99: kitty.
    Osc99,
}

/// A change of the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Focus {
    Gained,
    Lost,
}

/// A notification to write to the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notification {
    pub(crate) text: String,
    pub(crate) rings: bool,
    pub(crate) sequence: Option<Sequence>,
}

impl Notification {
    /// Returns the bytes for the terminal.
    pub(crate) fn bytes(&self, multiplexer: Option<Multiplexer>) -> String {
        let text = self.text.replace(';', ",");
        let sequence = match self.sequence {
            None => String::new(),
            Some(Sequence::Osc9) => format!("\u{1b}]9;{text}\u{7}"),
            Some(Sequence::Osc777) => format!("\u{1b}]777;notify;Codewright;{text}\u{7}"),
            Some(Sequence::Osc99) => format!("\u{1b}]99;;{text}\u{1b}\\"),
        };
        let sequence = match multiplexer {
            Some(Multiplexer::Tmux) if !sequence.is_empty() => {
                format!("\u{1b}Ptmux;{}\u{1b}\\", sequence.replace('\u{1b}', "\u{1b}\u{1b}"))
            }
            Some(Multiplexer::Screen) if !sequence.is_empty() => format!("\u{1b}P{sequence}\u{1b}\\"),
            Some(_) | None => sequence,
        };
        let bell = if self.rings { "\u{7}" } else { "" };
        format!("{sequence}{bell}")
    }
}

/// Returns the commands that notify the user about an event, which is not applied yet.
pub(crate) fn notify(state: &mut State, notice: &Notice) -> Vec<Cmd> {
    let Some((session, what)) = event(state, notice) else { return Vec::new() };
    let away = match state.has_focus {
        Some(has_focus) => !has_focus,
        None => state.now.saturating_sub(state.pressed_at) >= AWAY_MILLIS,
    };
    if !away {
        return Vec::new();
    }
    let title = state.mirror.sessions.get(&session).map(|session| session.title.clone()).unwrap_or_default();
    let title = crate::clean::clean_line(&title);
    let setting = &state.options.config["notifications"];
    let is_on = |key: &str| match setting {
        Value::Bool(all) => *all,
        other => other[key].as_bool().unwrap_or(true),
    };
    let sequence = state.options.notification.filter(|_| is_on("desktop"));
    let notification = Notification {
        text: wrap::cut(&format!("{what}: {title}"), MAX_CHARS),
        rings: is_on("bell"),
        sequence,
    };
    let marks = is_on("title");
    let mut cmds = Vec::new();
    if notification.rings || notification.sequence.is_some() {
        cmds.push(Cmd::Notify(notification));
    }
    if marks {
        state.is_marked = true;
        cmds.push(Cmd::Title(format!("{what} · {title}")));
    }
    cmds
}

/// Removes the mark of the title when the terminal has the focus again.
pub(crate) fn focus(state: &mut State, focus: Focus) -> Vec<Cmd> {
    state.has_focus = Some(focus == Focus::Gained);
    if focus == Focus::Gained && std::mem::take(&mut state.is_marked) {
        return vec![Cmd::Title(state.session().map(|session| session.title.clone()).unwrap_or_default())];
    }
    Vec::new()
}

/// Returns the session and the words for an event that the user waits for.
fn event(state: &State, notice: &Notice) -> Option<(SessionId, &'static str)> {
    let is_mine = |id: &SessionId| {
        state.is_prompted_here(id) || state.session_id().is_some_and(|root| state.mirror.is_below(id, root))
    };
    match &notice.fact {
        Fact::Event(Event::PermissionAsked(request)) => {
            let is_answered = !state.auto_approvals([request]).is_empty();
            (is_mine(&request.session_id) && !is_answered)
                .then(|| (request.session_id.clone(), "needs permission"))
        }
        Fact::Signal(Signal::QuestionAsked(request)) => {
            is_mine(&request.session_id).then(|| (request.session_id.clone(), "asks a question"))
        }
        Fact::Signal(
            Signal::SessionIdle { session_id }
            | Signal::SessionStatus { session_id, status: SessionStatus::Idle },
        ) => {
            let is_root =
                state.mirror.sessions.get(session_id).is_some_and(|session| session.parent_id.is_none());
            let ended = is_root && is_mine(session_id) && state.mirror.is_busy(session_id);
            ended.then(|| outcome(state, session_id)).flatten().map(|what| (session_id.clone(), what))
        }
        Fact::Event(_) | Fact::Signal(_) => None,
    }
}

/// Returns how the last turn of a session ended. `None` if the user has interrupted it.
fn outcome(state: &State, session: &SessionId) -> Option<&'static str> {
    let last = state.mirror.transcripts.get(session).and_then(|transcript| transcript.entries.last());
    match last.map(|entry| &entry.info) {
        Some(Message::Assistant(answer)) => match &answer.error {
            None => Some("done"),
            Some(MessageError::MessageAbortedError { .. }) => None,
            Some(_) => Some("failed"),
        },
        Some(Message::User(_)) | None => Some("done"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_terminal_gets_its_sequence() {
        let bytes = |sequence, multiplexer| {
            Notification { text: "done: a;b".to_owned(), rings: true, sequence }.bytes(multiplexer)
        };
        assert_eq!(bytes(None, None), "\u{7}");
        assert_eq!(bytes(Some(Sequence::Osc9), None), "\u{1b}]9;done: a,b\u{7}\u{7}");
        assert_eq!(bytes(Some(Sequence::Osc777), None), "\u{1b}]777;notify;Codewright;done: a,b\u{7}\u{7}");
        assert_eq!(bytes(Some(Sequence::Osc99), None), "\u{1b}]99;;done: a,b\u{1b}\\\u{7}");
        assert_eq!(
            bytes(Some(Sequence::Osc9), Some(Multiplexer::Tmux)),
            "\u{1b}Ptmux;\u{1b}\u{1b}]9;done: a,b\u{7}\u{1b}\\\u{7}"
        );
    }
}
