//! Ends the open messages and calls of a dead process, so that the transcript is complete again.
//!
//! The owner of a session calls this once before any other work: everything that is open then belongs to a dead owner.
//! Nothing is run again. The result of a call states whether it did not start, changes nothing, or may have had an
//! effect. The copy of an open message is ended in the same way.

use std::collections::HashSet;

use codewright_proto::{
    AssistantMessage, Event, Map, Message, MessageError, MessageWithParts, Part, PartBody, PermissionRequest,
    SessionId, Span, TextPart, ToolPart, ToolSpan, ToolState,
};
use codewright_store::{Claim, Lease, OpenWork};
use serde_json::Value;

use super::recorder::{INTERRUPTED, UNCERTAIN};
use crate::Error;
use crate::inner::Inner;
use crate::permission::gate::withdrawal;
use crate::toolbox::changes_nothing;

/// The call did not start, or it changes nothing, so it can be repeated.
const NOT_STARTED: &str = "not_started";

const NEVER_RAN: &str = "The program ended before this call started: it did not run.";
const HARMLESS: &str =
    "The program ended while this call was running. It changes nothing, so it is safe to repeat.";
const NOBODY_KNOWS: &str = "The program ended while this call was running, and it is uncertain if it took effect: \
                            check before you repeat it.";

const ITS_WORK_IS_KEPT: &str = "The program ended while the subagent worked. Its work so far is kept: call task with \
                                the task_id";

const COPIED: &str = "The session was copied while this call was running, so its result is missing here: check its \
                      effect before you repeat it.";

/// The reason why something open has ended.
#[derive(Clone, Copy)]
enum Ending<'a> {
    /// The process died. These calls were waiting for permission.
    Died { waiting: &'a HashSet<&'a str>, aftermath: Aftermath },
    /// The message is a copy.
    Copied,
}

/// The state of a turn after recovery, if its process died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aftermath {
    /// The turn ends like an aborted one.
    Ends,
    /// The caller continues the turn. The next request to the model contains the state of each call.
    GoesOn,
}

/// Ends everything that is open. Returns the transcript and its last `seq`.
pub(crate) async fn recover(
    inner: &Inner,
    lease: &Lease,
    aftermath: Aftermath,
) -> Result<(u64, Vec<MessageWithParts>), Error> {
    match end_all(inner, lease, aftermath).await? {
        Some(unchanged) => Ok(unchanged),
        None => Ok(inner.store.transcript_at(lease.session()).await?),
    }
}

/// Ends everything that is open. Returns the transcript and its last `seq` if nothing was.
pub(crate) async fn end_all(
    inner: &Inner,
    lease: &Lease,
    aftermath: Aftermath,
) -> Result<Option<(u64, Vec<MessageWithParts>)>, Error> {
    let id = lease.session();
    let OpenWork { seq, transcript, drafts, requests: asked } = inner.store.open_work(id).await?;
    // The owner before may have had a clock that was ahead. What follows must still come after its messages.
    inner.continue_after(transcript.last());
    let events = endings(id, &transcript, &asked, aftermath, inner.clock.now_ms());
    if events.is_empty() && drafts.is_empty() {
        return Ok(Some((seq, transcript)));
    }
    lease.settle(drafts).await?;
    lease.append(events).await?;
    for child in handed(&transcript) {
        // The owner of that session repairs it.
        if let Claim::Held(mut lease) = inner.store.lease(&child).await? {
            Box::pin(end_all(inner, &lease, Aftermath::Ends)).await?;
            lease.release(u64::MAX).await?;
        }
    }
    Ok(None)
}

/// Returns the sessions of subagents that worked for open calls.
fn handed(transcript: &[MessageWithParts]) -> Vec<SessionId> {
    let open = transcript.iter().flat_map(|message| &message.parts).filter_map(|part| match &part.body {
        PartBody::Tool(ToolPart { tool, state: ToolState::Running { metadata, .. }, .. })
            if tool == "task" =>
        {
            metadata.as_ref()
        }
        _ => None,
    });
    open.filter_map(subagent).collect()
}

/// Returns the session that works for a call, if the call has recorded it.
fn subagent(metadata: &Map) -> Option<SessionId> {
    SessionId::parse(metadata.get("sessionId")?.as_str()?).ok()
}

/// Reports whether a message is in progress, or was when its process died.
pub(crate) fn is_open(message: &MessageWithParts) -> bool {
    matches!(&message.info, Message::Assistant(info) if info.time.completed.is_none())
}

/// Returns the events that end everything that is open.
fn endings(
    id: &SessionId,
    transcript: &[MessageWithParts],
    asked: &[PermissionRequest],
    aftermath: Aftermath,
    now: u64,
) -> Vec<Event> {
    // The process that made the requests is gone, so they are withdrawn.
    let withdrawn = asked.iter().map(|request| withdrawal(id.clone(), request.id.clone()));
    let mut events: Vec<_> = withdrawn.collect();
    let waiting: HashSet<_> =
        asked.iter().filter_map(|request| request.tool.as_ref().map(|tool| tool.call_id.as_str())).collect();
    for message in transcript {
        if let Message::Assistant(info) = &message.info
            && info.time.completed.is_none()
        {
            let ending = Ending::Died { waiting: &waiting, aftermath };
            let has_calls = message.parts.iter().any(|part| matches!(part.body, PartBody::Tool(_)));
            for part in &message.parts {
                // The answer is requested again as a whole, so its beginning must not be shown twice.
                if aftermath == Aftermath::GoesOn && !has_calls && is_content(&part.body) {
                    events.push(Event::PartRemoved {
                        session_id: id.clone(),
                        message_id: part.message_id.clone(),
                        part_id: part.id.clone(),
                    });
                    continue;
                }
                if let Some(body) = end_part(&part.body, ending, now) {
                    let part = Part { body, ..part.clone() };
                    events.push(Event::PartUpdated { session_id: id.clone(), part, time: now });
                }
            }
            let info = Message::Assistant(end_answer(info.clone(), ending, now));
            events.push(Event::MessageUpdated { session_id: id.clone(), info });
        }
    }
    events
}

/// Ends a copied message if it is open. The answer that it is a copy of goes on.
pub(crate) fn end_copy(message: &mut MessageWithParts, now: u64) {
    let Message::Assistant(info) = &mut message.info else { return };
    if info.time.completed.is_some() {
        return;
    }
    *info = end_answer(info.clone(), Ending::Copied, now);
    for part in &mut message.parts {
        if let Some(body) = end_part(&part.body, Ending::Copied, now) {
            part.body = body;
        }
    }
}

/// Reports whether a part is text of the model.
fn is_content(body: &PartBody) -> bool {
    matches!(body, PartBody::Text(_) | PartBody::Reasoning { .. })
}

fn end_answer(mut info: AssistantMessage, ending: Ending<'_>, now: u64) -> AssistantMessage {
    info.time.completed = Some(now);
    if matches!(ending, Ending::Died { aftermath: Aftermath::GoesOn, .. }) {
        return info;
    }
    info.error.get_or_insert_with(|| MessageError::MessageAbortedError {
        message: match ending {
            Ending::Died { .. } => "The process ended before the answer was complete".to_owned(),
            Ending::Copied => "The session was copied before the answer was complete".to_owned(),
        },
    });
    info
}

/// Returns a part with an end, if it is open.
fn end_part(body: &PartBody, ending: Ending<'_>, now: u64) -> Option<PartBody> {
    match body {
        PartBody::Text(text) => {
            ended(text.time, now).map(|time| PartBody::Text(TextPart { time: Some(time), ..text.clone() }))
        }
        PartBody::Reasoning { text, metadata, time } => ended(Some(*time), now)
            .map(|time| PartBody::Reasoning { text: text.clone(), metadata: metadata.clone(), time }),
        PartBody::Tool(call) => end_call(call, ending, now).map(PartBody::Tool),
        PartBody::File { .. }
        | PartBody::StepStart { .. }
        | PartBody::StepFinish(_)
        | PartBody::Snapshot { .. }
        | PartBody::Patch { .. }
        | PartBody::Agent { .. }
        | PartBody::Subtask { .. }
        | PartBody::Retry { .. }
        | PartBody::Compaction { .. } => None,
    }
}

fn ended(time: Option<Span>, now: u64) -> Option<Span> {
    time.filter(|time| time.end.is_none()).map(|time| Span { end: Some(now), ..time })
}

fn end_call(call: &ToolPart, ending: Ending<'_>, now: u64) -> Option<ToolPart> {
    let (input, start, shown) = match &call.state {
        ToolState::Pending { .. } => (Value::Object(Map::new()), now, None),
        ToolState::Running { input, time, metadata, .. } => (input.clone(), time.start, metadata.clone()),
        ToolState::Completed { .. } | ToolState::Error { .. } => return None,
    };
    let is_running = matches!(call.state, ToolState::Running { .. });
    let (word, error) = match ending {
        Ending::Copied => (UNCERTAIN, COPIED),
        Ending::Died { waiting, .. } if !is_running || waiting.contains(call.call_id.as_str()) => {
            (NOT_STARTED, NEVER_RAN)
        }
        Ending::Died { .. } if changes_nothing(&call.tool) => (NOT_STARTED, HARMLESS),
        Ending::Died { .. } => (UNCERTAIN, NOBODY_KNOWS),
    };
    let mut metadata = shown.unwrap_or_default();
    // The subagent of a copied call works for the original.
    let resumable = matches!(ending, Ending::Died { .. }) && call.tool == "task" && word == UNCERTAIN;
    let resumable = subagent(&metadata).filter(|_| resumable);
    let error =
        resumable.map_or_else(|| error.to_owned(), |id| format!("{ITS_WORK_IS_KEPT} `{id}` to continue."));
    metadata.insert(INTERRUPTED.to_owned(), word.into());
    let time = ToolSpan { start, end: now, compacted: None };
    let state = ToolState::Error { input, error, metadata: Some(metadata), time };
    Some(ToolPart { state, ..call.clone() })
}
