//! The conversion of a session's log into the events of the v2 API.
//!
//! An event of the log holds the complete new value of one row; a v2 event describes the change. So the
//! log is folded in order, and the difference to the previous value of a row decides about the v2 event.
//! Each event of the log becomes at most one v2 event, which has the same sequence number. So a client
//! that sends the last number it received gets every event exactly once.

use std::collections::{HashMap, HashSet, VecDeque};

use codewright_engine::patch;
use codewright_proto::{
    AssistantMessage, Envelope, Event, EventId, Message, MessageId, MessageWithParts, ModelRef, Part,
    PartBody, PartId, Revert, Session, StepFinish, TextPart, ToolPart, ToolState, VcsFile, json_bytes,
};
use serde_json::{Value, json};

use super::message::{self, Reason};
use super::prompt;

/// The maximum number of tracked messages of a session.
const MAX_MESSAGES: usize = 256;
/// The approximate size of a tracked call.
const CALL_BYTES: usize = 256;

/// A v2 event with the log event's sequence number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NumberedEvent {
    /// The sequence number of the log event.
    pub(crate) seq: u64,
    /// The message, if the event is the admission of a prompt.
    pub(crate) admitted: Option<MessageId>,
    /// The event.
    pub(crate) value: Value,
}

/// The state of a session at a log position.
#[derive(Default)]
pub(crate) struct Fold {
    /// The revert state of the session.
    revert: Option<Revert>,
    /// Whether a message or part was removed since the session was last updated.
    removed: bool,
    messages: HashMap<MessageId, MessageState>,
    /// The tracked messages, oldest first.
    order: VecDeque<MessageId>,
    /// The prompt whose parts are being read.
    prompt: Option<Prompt>,
    /// The reason of the next summary.
    reason: Option<Reason>,
    /// The time of the first event in the fold.
    since: Option<u64>,
}

/// The state of a message.
enum MessageState {
    Prompt,
    Answer(Box<Answer>),
}

struct Answer {
    agent: String,
    model: ModelRef,
    /// The reason of the compaction, if the message is a summary.
    summary: Option<Reason>,
    has_step: bool,
    is_over: bool,
    /// The text of a summary.
    text: String,
    /// The time from which events are new, if the message started before the fold. Earlier changes have been published.
    since: Option<u64>,
    /// The text or reasoning that is being written.
    open: Option<(PartId, TextKind)>,
    /// The calls that have been published, and those of them that are running.
    calls: HashSet<PartId>,
    running: HashSet<PartId>,
}

/// The kind of a text that a model writes.
#[derive(Debug, Clone, Copy)]
enum TextKind {
    Text,
    Reasoning,
}

/// A prompt with the events' positions.
struct Prompt {
    message: MessageId,
    id: EventId,
    seq: u64,
    created: u64,
    last: (EventId, u64),
    parts: Vec<Part>,
    /// The size of the parts as JSON.
    bytes: usize,
}

/// The id and position of a log event.
struct Origin<'a> {
    id: &'a EventId,
    seq: u64,
    time: u64,
    session: &'a str,
}

impl Origin<'_> {
    fn event(&self, kind: &str, version: u32, more: Value) -> NumberedEvent {
        let mut data = json!({"timestamp": self.time, "sessionID": self.session});
        message::merge(&mut data, more);
        let value = json!({
            "id": self.id,
            "type": format!("session.next.{kind}"),
            "durable": {"aggregateID": self.session, "seq": self.seq, "version": version},
            "data": data,
        });
        NumberedEvent { seq: self.seq, admitted: None, value }
    }
}

impl Fold {
    /// Sets the revert state at the position where reading the log starts.
    pub(crate) fn set_revert(&mut self, revert: Option<Revert>) {
        self.revert = revert;
    }

    /// Applies the next event of the log and appends the resulting v2 events to `events`.
    pub(crate) fn push(&mut self, envelope: &Envelope, events: &mut Vec<NumberedEvent>) {
        let Envelope { id, seq, time, event, .. } = envelope;
        self.since.get_or_insert(*time);
        let at = Origin { id, seq: *seq, time: *time, session: event.session_id().as_str() };
        let is_of_prompt = |prompt: &Prompt| matches!(event, Event::PartUpdated { part, .. } if part.message_id == prompt.message);
        if !self.prompt.as_ref().is_some_and(is_of_prompt) {
            self.finish_prompt(at.session, events);
        }
        match event {
            Event::SessionCreated { info, .. } => self.revert.clone_from(&info.revert),
            Event::SessionUpdated { info, .. } => events.extend(self.session(&at, info)),
            Event::MessageUpdated { info: Message::User(info), .. } => {
                if !self.messages.contains_key(&info.id) {
                    self.track(info.id.clone(), MessageState::Prompt);
                    self.prompt = Some(Prompt {
                        message: info.id.clone(),
                        id: id.clone(),
                        seq: *seq,
                        created: info.time.created,
                        last: (id.clone(), *seq),
                        parts: Vec::new(),
                        bytes: 0,
                    });
                }
            }
            Event::MessageUpdated { info: Message::Assistant(info), .. } => {
                events.extend(self.answer(&at, info));
            }
            Event::PartUpdated { part, .. } => events.extend(self.part(&at, part)),
            Event::MessageRemoved { message_id, .. } => {
                self.removed = true;
                // A client may use the same id for a new message.
                if self.messages.remove(message_id).is_some() {
                    self.order.retain(|id| id != message_id);
                }
            }
            Event::PartRemoved { .. } => self.removed = true,
            Event::SessionDeleted { .. }
            | Event::TodoUpdated { .. }
            | Event::PermissionAsked(_)
            | Event::PermissionReplied { .. } => {}
        }
    }

    /// Appends the events of the pending prompt. All its parts have been read, because the log contains the parts of a
    /// prompt either completely or not at all.
    pub(crate) fn finish_prompt(&mut self, session: &str, events: &mut Vec<NumberedEvent>) {
        let Some(Prompt { message, id, seq, created, last, parts, .. }) = self.prompt.take() else { return };
        self.reason = Reason::of(&parts).or(self.reason);
        // An update of a message that was admitted before reading started.
        if parts.is_empty() {
            return;
        }
        let admission = Origin { id: &id, seq, time: created, session };
        let Some(text) = prompt::user_prompt(&parts) else {
            let synthetic = json!({"messageID": message, "text": prompt::synthetic_text(&parts)});
            events.push(admission.event("synthetic", 1, synthetic));
            return;
        };
        let prompted = json!({"messageID": message, "prompt": text, "delivery": "steer"});
        let mut admitted = admission.event("prompt.admitted", 1, prompted.clone());
        admitted.admitted = Some(message);
        events.push(admitted);
        let (id, seq) = last;
        events.push(Origin { id: &id, seq, time: created, session }.event("prompted", 1, prompted));
    }

    /// Returns whether a message is tracked.
    pub(crate) fn contains(&self, message: &MessageId) -> bool {
        self.messages.contains_key(message)
    }

    /// Tracks a message that started before the fold; `time` is the time of the next event.
    pub(crate) fn insert(&mut self, stored: &MessageWithParts, reason: Option<Reason>, time: u64) {
        let info = match &stored.info {
            Message::User(info) => return self.track(info.id.clone(), MessageState::Prompt),
            Message::Assistant(info) => info,
        };
        let is_summary = info.summary == Some(true);
        let mut answer = Answer::new(info, is_summary.then(|| reason.unwrap_or(Reason::Manual)));
        // Changes after `time` must still be published.
        answer.is_over = info.time.completed.is_some_and(|completed| completed < time);
        answer.has_step = stored.parts.iter().any(|part| matches!(part.body, PartBody::StepStart { .. }));
        answer.since = Some(self.since.unwrap_or(time));
        for part in &stored.parts {
            if let (PartBody::Text(text), true) = (&part.body, is_summary) {
                answer.text = text.text.to_string();
            }
        }
        self.track(info.id.clone(), MessageState::Answer(Box::new(answer)));
    }

    /// Returns the prompt whose parts are being read, with the last event's sequence number.
    pub(crate) fn pending_prompt(&self) -> Option<(&MessageId, u64)> {
        self.prompt.as_ref().map(|prompt| (&prompt.message, prompt.last.1))
    }

    /// Returns the approximate size of the state that grows with the conversation.
    pub(crate) fn bytes(&self) -> usize {
        let prompt = self.prompt.as_ref().map_or(0, |prompt| prompt.bytes);
        let answers = self.messages.values().map(|message| match message {
            MessageState::Prompt => 0,
            MessageState::Answer(answer) => answer.text.len() + answer.calls.len() * CALL_BYTES,
        });
        prompt + answers.sum::<usize>()
    }

    /// Returns the type and data of the v2 event of a text delta.
    pub(crate) fn delta(
        &self,
        message: &MessageId,
        part: &PartId,
        text: &str,
    ) -> Option<(&'static str, Value)> {
        let MessageState::Answer(answer) = self.messages.get(message)? else { return None };
        if answer.summary.is_some() {
            return Some(("compaction.delta", json!({"messageID": message, "text": text})));
        }
        let (open, kind) = answer.open.as_ref().filter(|(open, _)| open == part)?;
        let (name, key) = match kind {
            TextKind::Text => ("text.delta", "textID"),
            TextKind::Reasoning => ("reasoning.delta", "reasoningID"),
        };
        Some((name, json!({"assistantMessageID": message, key: open, "delta": text})))
    }

    fn track(&mut self, id: MessageId, state: MessageState) {
        if self.order.len() >= MAX_MESSAGES
            && let Some(oldest) = self.order.pop_front()
        {
            self.messages.remove(&oldest);
        }
        self.order.push_back(id.clone());
        self.messages.insert(id, state);
    }

    fn session(&mut self, at: &Origin<'_>, info: &Session) -> Option<NumberedEvent> {
        let before = std::mem::replace(&mut self.revert, info.revert.clone());
        let removed = std::mem::take(&mut self.removed);
        match (before, &info.revert) {
            (before, Some(now)) if before.as_ref() != Some(now) => {
                Some(at.event("revert.staged", 1, json!({ "revert": revert(now) })))
            }
            (Some(before), None) if removed => {
                Some(at.event("revert.committed", 1, json!({ "messageID": before.message_id })))
            }
            (Some(_), None) => Some(at.event("revert.cleared", 1, json!({}))),
            (_, Some(_)) | (None, None) => None,
        }
    }

    fn answer(&mut self, at: &Origin<'_>, info: &AssistantMessage) -> Option<NumberedEvent> {
        let Some(state) = self.messages.get_mut(&info.id) else {
            let summary = (info.summary == Some(true)).then(|| self.reason.take().unwrap_or(Reason::Manual));
            self.track(info.id.clone(), MessageState::Answer(Box::new(Answer::new(info, summary))));
            let started = |reason: Reason| {
                at.event("compaction.started", 1, json!({"messageID": info.id, "reason": reason.text()}))
            };
            return summary.map(started);
        };
        let MessageState::Answer(answer) = state else { return None };
        if answer.is_over || info.time.completed.is_none() {
            return None;
        }
        answer.is_over = true;
        match (&info.error, answer.summary) {
            (Some(failed), _) => {
                let failed = json!({"assistantMessageID": info.id, "error": message::error(failed)});
                Some(at.event("step.failed", 2, failed))
            }
            (None, Some(reason)) => {
                let text = std::mem::take(&mut answer.text);
                let ended =
                    json!({"messageID": info.id, "reason": reason.text(), "text": text, "recent": ""});
                Some(at.event("compaction.ended", 1, ended))
            }
            (None, None) => None,
        }
    }

    fn part(&mut self, at: &Origin<'_>, part: &Part) -> Option<NumberedEvent> {
        if let Some(prompt) = &mut self.prompt {
            // Events that are not parts of the prompt have finished it before.
            prompt.last = (at.id.clone(), at.seq);
            prompt.bytes += json_bytes(part);
            prompt.parts.push(part.clone());
            return None;
        }
        match self.messages.get_mut(&part.message_id)? {
            MessageState::Prompt => None,
            MessageState::Answer(answer) => answer.part(at, part),
        }
    }
}

impl Answer {
    fn new(info: &AssistantMessage, summary: Option<Reason>) -> Self {
        Self {
            agent: info.agent.clone(),
            model: message::model(info),
            summary,
            has_step: false,
            is_over: info.time.completed.is_some(),
            text: String::new(),
            since: None,
            open: None,
            calls: HashSet::new(),
            running: HashSet::new(),
        }
    }

    /// Returns whether a change at `start` was published before the message was tracked.
    fn is_old(&self, start: u64) -> bool {
        self.since.is_some_and(|since| start < since)
    }

    /// Sets the text that is being written. Returns whether it is new.
    fn open(&mut self, part: &PartId, kind: TextKind) -> bool {
        let is_new = self.open.as_ref().is_none_or(|(open, _)| open != part);
        self.open = Some((part.clone(), kind));
        is_new
    }

    fn part(&mut self, at: &Origin<'_>, part: &Part) -> Option<NumberedEvent> {
        let of = |more: Value| {
            let mut data = json!({ "assistantMessageID": part.message_id });
            message::merge(&mut data, more);
            data
        };
        match &part.body {
            PartBody::Text(text) if self.summary.is_some() => {
                self.text = text.text.to_string();
                None
            }
            PartBody::Text(TextPart { time: Some(time), .. }) if time.end.is_none() => {
                // An unfinished text of a dead process is stored again before it ends.
                if !self.open(&part.id, TextKind::Text) || self.is_old(time.start) {
                    return None;
                }
                Some(at.event("text.started", 1, of(json!({ "textID": part.id }))))
            }
            PartBody::Text(text) => {
                Some(at.event("text.ended", 1, of(json!({"textID": part.id, "text": text.text}))))
            }
            PartBody::Reasoning { text, metadata, time } => {
                let mut data = of(json!({ "reasoningID": part.id }));
                if let Some(metadata) = message::provider_metadata(metadata.as_ref()) {
                    data["providerMetadata"] = metadata.clone();
                }
                if time.end.is_none() {
                    if !self.open(&part.id, TextKind::Reasoning) || self.is_old(time.start) {
                        return None;
                    }
                    return Some(at.event("reasoning.started", 1, data));
                }
                data["text"] = json!(text);
                Some(at.event("reasoning.ended", 1, data))
            }
            PartBody::Tool(call) if !self.has_step && message::command(call).is_some() => {
                self.user_command(at, part, call)
            }
            PartBody::Tool(call) => self.call(&part.id, call).map(|(kind, data)| at.event(kind, 1, of(data))),
            PartBody::StepStart { snapshot } => {
                if std::mem::replace(&mut self.has_step, true) || self.summary.is_some() {
                    return None;
                }
                let mut data = of(json!({"agent": self.agent, "model": self.model}));
                if let Some(tree) = snapshot {
                    data["snapshot"] = json!(tree);
                }
                Some(at.event("step.started", 1, data))
            }
            PartBody::StepFinish(finish) if self.summary.is_none() => {
                Some(at.event("step.ended", 2, of(ended(finish))))
            }
            PartBody::StepFinish(_)
            | PartBody::File { .. }
            | PartBody::Snapshot { .. }
            | PartBody::Patch { .. }
            | PartBody::Agent { .. }
            | PartBody::Subtask { .. }
            | PartBody::Retry { .. }
            | PartBody::Compaction { .. } => None,
        }
    }

    /// Handles a command that the user ran, which is not part of a step.
    fn user_command(&mut self, at: &Origin<'_>, part: &Part, call: &ToolPart) -> Option<NumberedEvent> {
        let command = message::command(call)?;
        if call.state.is_open() {
            if matches!(&call.state, ToolState::Running { time, .. } if self.is_old(time.start)) {
                return None;
            }
            let data = json!({"messageID": part.message_id, "callID": call.call_id, "command": command});
            return self.running.insert(part.id.clone()).then(|| at.event("shell.started", 1, data));
        }
        let data = json!({"callID": call.call_id, "output": message::output(&call.state)});
        Some(at.event("shell.ended", 1, data))
    }

    fn call(&mut self, id: &PartId, call: &ToolPart) -> Option<(&'static str, Value)> {
        let is_new = self.calls.insert(id.clone());
        let mut data = json!({ "callID": call.call_id });
        let kind = match &call.state {
            ToolState::Pending { .. } => {
                data["name"] = json!(call.tool);
                return is_new.then_some(("tool.input.started", data));
            }
            ToolState::Running { input, metadata, time, .. } => {
                if !self.running.insert(id.clone()) || self.is_old(time.start) {
                    data["structured"] = message::structured(metadata.as_ref());
                    data["content"] = message::progress(&call.state);
                    return Some(("tool.progress", data));
                }
                data["tool"] = json!(call.tool);
                data["input"] = message::object(input);
                "tool.called"
            }
            // The result was published earlier; now its output was removed from requests to the model.
            ToolState::Completed { time, .. } if time.compacted.is_some() => return None,
            ToolState::Completed { .. } => {
                message::merge(&mut data, message::result(&call.state));
                "tool.success"
            }
            ToolState::Error { error, .. } => {
                data["error"] = message::unknown(error);
                "tool.failed"
            }
        };
        data["provider"] = message::provider(call);
        Some((kind, data))
    }
}

fn ended(finish: &StepFinish) -> Value {
    let mut data = json!({
        "finish": finish.reason,
        "cost": finish.cost,
        "tokens": message::tokens(&finish.tokens),
    });
    if let Some(tree) = &finish.snapshot {
        data["snapshot"] = json!(tree);
    }
    data
}

fn files(diff: &str) -> Value {
    let files = patch::files(diff).into_iter().map(|changed| {
        let VcsFile { file, patch, additions, deletions, status } = changed;
        json!({"path": file, "status": status, "additions": additions, "deletions": deletions, "patch": patch})
    });
    files.collect()
}

/// Converts the revert state of a session.
pub(crate) fn revert(revert: &Revert) -> Value {
    let mut value = json!({ "messageID": revert.message_id });
    let more = [
        ("partID", revert.part_id.as_ref().map(|part| json!(part))),
        ("snapshot", revert.snapshot.as_ref().map(|tree| json!(tree))),
        ("diff", revert.diff.as_ref().map(|diff| json!(diff))),
        ("files", revert.diff.as_deref().map(files)),
    ];
    for (key, field) in more {
        if let Some(field) = field {
            value[key] = field;
        }
    }
    value
}

#[cfg(test)]
mod tests;
