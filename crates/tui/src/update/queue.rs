//! Prompts that wait until the model reads them.

use codewright_proto::{Message, MessageId, SessionId};

use crate::mirror::Mirror;
use crate::msg::Cmd;
use crate::prompt::Draft;
use crate::state::State;
use crate::transcript::Transcript;

/// Whether a prompt waits, because the model is answering an earlier one.
pub(crate) fn is_waiting(mirror: &Mirror, transcript: &Transcript, at: usize) -> bool {
    let Some(Message::User(prompt)) = transcript.entries.get(at).map(|entry| &entry.info) else {
        return false;
    };
    if !mirror.is_busy(&prompt.session_id) {
        return false;
    }
    let before = transcript.entries[..at].iter().rev().map(|entry| &entry.info);
    let answer = before.into_iter().find_map(|info| match info {
        Message::Assistant(answer) => Some(answer),
        Message::User(_) => None,
    });
    let is_last = !transcript.entries[at..].iter().any(|entry| matches!(entry.info, Message::Assistant(_)));
    // After an answer with tool calls the same turn continues.
    is_last
        && answer.is_some_and(|answer| {
            let is_open = answer.time.completed.is_none() || answer.finish.as_deref() == Some("tool-calls");
            is_open && answer.error.is_none()
        })
}

/// Returns the last prompt that waits in the session on the screen.
pub(crate) fn last(state: &State) -> Option<(SessionId, MessageId)> {
    let id = state.session_id()?;
    let transcript = state.mirror.transcripts.get(id)?;
    let at = transcript.end.checked_sub(1)?;
    is_waiting(&state.mirror, transcript, at).then(|| (id.clone(), transcript.entries[at].info.id().clone()))
}

/// Removes the last prompt that waits, and puts it into the prompt to edit it.
pub(super) fn take_back(state: &mut State) -> Vec<Cmd> {
    let Some((session, message)) = last(state) else { return Vec::new() };
    if !state.prompt.is_empty() {
        state.warn("send or clear the text of the prompt first");
        return Vec::new();
    }
    let transcript = state.mirror.transcripts.get(&session);
    let entry = transcript.and_then(|transcript| Some(&transcript.entries[transcript.find(&message)?]));
    let text = entry.map(crate::transcript::Entry::prompt_text).unwrap_or_default();
    // The history has the attachments too.
    let known = state.prompt.history.iter().rev().find(|draft| draft.whole_text().trim() == text.trim());
    let draft = known.cloned().unwrap_or_else(|| Draft::from(text.as_str()));
    vec![Cmd::TakeBack { session, message, draft }]
}

/// Puts a prompt that was taken back into the prompt, or into the history if the user has typed meanwhile.
pub(super) fn restore(state: &mut State, draft: Draft) {
    if state.prompt.is_empty() {
        state.prompt.restore(draft);
        return;
    }
    state.prompt.remember(draft);
    state.warn("the prompt was taken back; it is the last one of the history");
}
