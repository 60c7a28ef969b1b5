//! The log of a session as newer events.
//!
//! An event of the log holds the whole new value of one row; a newer event tells what happened. So the
//! log is folded in order: what a row said before decides what its new value tells. Each event of the
//! log tells of one thing at most, and the newer event has its number, so whoever names the last number
//! that they know misses none and hears none twice.

use std::collections::{HashMap, HashSet, VecDeque};

use codewright_proto::{
    AssistantMessage, Envelope, Event, EventId, Message, MessageId, ModelRef, Part, PartBody, PartId, Revert,
    Session, StepFinish, TextPart, ToolPart, ToolState,
};
use serde_json::{Value, json};

use super::message::{self, Reason};
use super::{patch, prompt};

/// How many messages of a session are remembered; a part of one that is forgotten tells nothing.
const MAX_MESSAGES: usize = 4096;

/// What happened, as a newer client hears it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Told {
    /// The number of the event of the log that it comes from.
    pub(crate) seq: u64,
    /// The message that it tells of, if it tells of the admission of a prompt.
    pub(crate) admitted: Option<MessageId>,
    /// The event.
    pub(crate) value: Value,
}

/// What is known of one session's log up to a place.
#[derive(Default)]
pub(crate) struct Fold {
    /// Where the session has been taken back to.
    revert: Option<Revert>,
    /// Whether something was removed since the session's row was last stored.
    removed: bool,
    messages: HashMap<MessageId, Known>,
    /// The remembered messages, oldest first.
    order: VecDeque<MessageId>,
    /// A prompt whose parts are being read.
    prompt: Option<Prompt>,
    /// Why the next summary is made.
    reason: Option<Reason>,
}

/// What is remembered of a message.
enum Known {
    Prompt,
    Answer(Box<Answer>),
}

struct Answer {
    agent: String,
    model: ModelRef,
    /// Why it is a summary, if it is one.
    summary: Option<Reason>,
    is_begun: bool,
    is_over: bool,
    /// What a summary says.
    text: String,
    /// Calls that were told of, and those of them that run.
    calls: HashSet<PartId>,
    running: HashSet<PartId>,
}

/// A prompt and the places of its events.
struct Prompt {
    message: MessageId,
    id: EventId,
    seq: u64,
    created: u64,
    last: (EventId, u64),
    parts: Vec<Part>,
}

/// Where an event of the log stands.
struct At<'a> {
    id: &'a EventId,
    seq: u64,
    time: u64,
    session: &'a str,
}

impl At<'_> {
    fn tell(&self, kind: &str, version: u32, more: Value) -> Told {
        let mut data = json!({"timestamp": self.time, "sessionID": self.session});
        message::merge(&mut data, more);
        let value = json!({
            "id": self.id,
            "type": format!("session.next.{kind}"),
            "durable": {"aggregateID": self.session, "seq": self.seq, "version": version},
            "data": data,
        });
        Told { seq: self.seq, admitted: None, value }
    }
}

impl Fold {
    /// Reads the next event of the log; what it tells is put behind what was told.
    pub(crate) fn push(&mut self, envelope: &Envelope, told: &mut Vec<Told>) {
        let Envelope { id, seq, time, event, .. } = envelope;
        let at = At { id, seq: *seq, time: *time, session: event.session_id().as_str() };
        let is_of_prompt = |prompt: &Prompt| matches!(event, Event::PartUpdated { part, .. } if part.message_id == prompt.message);
        if !self.prompt.as_ref().is_some_and(is_of_prompt) {
            self.settle(at.session, told);
        }
        match event {
            Event::SessionCreated { info, .. } => self.revert.clone_from(&info.revert),
            Event::SessionUpdated { info, .. } => told.extend(self.session(&at, info)),
            Event::MessageUpdated { info: Message::User(info), .. } => {
                if !self.messages.contains_key(&info.id) {
                    self.remember(info.id.clone(), Known::Prompt);
                    self.prompt = Some(Prompt {
                        message: info.id.clone(),
                        id: id.clone(),
                        seq: *seq,
                        created: info.time.created,
                        last: (id.clone(), *seq),
                        parts: Vec::new(),
                    });
                }
            }
            Event::MessageUpdated { info: Message::Assistant(info), .. } => {
                told.extend(self.answer(&at, info));
            }
            Event::PartUpdated { part, .. } => told.extend(self.part(&at, part)),
            Event::MessageRemoved { .. } | Event::PartRemoved { .. } => self.removed = true,
            Event::SessionDeleted { .. }
            | Event::TodoUpdated { .. }
            | Event::PermissionAsked(_)
            | Event::PermissionReplied { .. } => {}
        }
    }

    /// Tells of a prompt whose parts have all been read: of those of one prompt the log holds all or none.
    pub(crate) fn settle(&mut self, session: &str, told: &mut Vec<Told>) {
        let Some(Prompt { message, id, seq, created, last, parts }) = self.prompt.take() else { return };
        self.reason = Reason::of(&parts).or(self.reason);
        // A message from before the place where reading began, which was only stored anew.
        if parts.is_empty() {
            return;
        }
        let admission = At { id: &id, seq, time: created, session };
        let Some(said) = prompt::said(&parts) else {
            let synthetic = json!({"messageID": message, "text": prompt::told(&parts)});
            told.push(admission.tell("synthetic", 1, synthetic));
            return;
        };
        let prompted = json!({"messageID": message, "prompt": said, "delivery": "steer"});
        let mut admitted = admission.tell("prompt.admitted", 1, prompted.clone());
        admitted.admitted = Some(message);
        told.push(admitted);
        let (id, seq) = last;
        told.push(At { id: &id, seq, time: created, session }.tell("prompted", 1, prompted));
    }

    fn remember(&mut self, id: MessageId, known: Known) {
        if self.order.len() >= MAX_MESSAGES
            && let Some(oldest) = self.order.pop_front()
        {
            self.messages.remove(&oldest);
        }
        self.order.push_back(id.clone());
        self.messages.insert(id, known);
    }

    fn session(&mut self, at: &At<'_>, info: &Session) -> Option<Told> {
        let before = std::mem::replace(&mut self.revert, info.revert.clone());
        let removed = std::mem::take(&mut self.removed);
        match (before, &info.revert) {
            (before, Some(now)) if before.as_ref() != Some(now) => {
                Some(at.tell("revert.staged", 1, json!({ "revert": revert(now) })))
            }
            (Some(before), None) if removed => {
                Some(at.tell("revert.committed", 1, json!({ "messageID": before.message_id })))
            }
            (Some(_), None) => Some(at.tell("revert.cleared", 1, json!({}))),
            (_, Some(_)) | (None, None) => None,
        }
    }

    fn answer(&mut self, at: &At<'_>, info: &AssistantMessage) -> Option<Told> {
        let Some(known) = self.messages.get_mut(&info.id) else {
            let summary = (info.summary == Some(true)).then(|| self.reason.take().unwrap_or(Reason::Manual));
            let answer = Answer {
                agent: info.agent.clone(),
                model: message::model(info),
                summary,
                is_begun: false,
                is_over: info.time.completed.is_some(),
                text: String::new(),
                calls: HashSet::new(),
                running: HashSet::new(),
            };
            self.remember(info.id.clone(), Known::Answer(Box::new(answer)));
            let begun = |reason: Reason| {
                at.tell("compaction.started", 1, json!({"messageID": info.id, "reason": reason.text()}))
            };
            return summary.map(begun);
        };
        let Known::Answer(answer) = known else { return None };
        if answer.is_over || info.time.completed.is_none() {
            return None;
        }
        answer.is_over = true;
        match (&info.error, answer.summary) {
            (Some(failed), _) => {
                let failed = json!({"assistantMessageID": info.id, "error": message::error(failed)});
                Some(at.tell("step.failed", 2, failed))
            }
            (None, Some(reason)) => {
                let text = std::mem::take(&mut answer.text);
                let ended =
                    json!({"messageID": info.id, "reason": reason.text(), "text": text, "recent": ""});
                Some(at.tell("compaction.ended", 1, ended))
            }
            (None, None) => None,
        }
    }

    fn part(&mut self, at: &At<'_>, part: &Part) -> Option<Told> {
        if let Some(prompt) = &mut self.prompt {
            // Others were settled before.
            prompt.last = (at.id.clone(), at.seq);
            prompt.parts.push(part.clone());
            return None;
        }
        match self.messages.get_mut(&part.message_id)? {
            Known::Prompt => None,
            Known::Answer(answer) => answer.part(at, part),
        }
    }
}

impl Answer {
    fn part(&mut self, at: &At<'_>, part: &Part) -> Option<Told> {
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
                Some(at.tell("text.started", 1, of(json!({ "textID": part.id }))))
            }
            PartBody::Text(text) => {
                Some(at.tell("text.ended", 1, of(json!({"textID": part.id, "text": text.text}))))
            }
            PartBody::Reasoning { text, metadata, time } => {
                let mut data = of(json!({ "reasoningID": part.id }));
                if let Some(metadata) = message::provider_metadata(metadata.as_ref()) {
                    data["providerMetadata"] = metadata.clone();
                }
                if time.end.is_none() {
                    return Some(at.tell("reasoning.started", 1, data));
                }
                data["text"] = json!(text);
                Some(at.tell("reasoning.ended", 1, data))
            }
            PartBody::Tool(call) if !self.is_begun && message::command(call).is_some() => {
                self.users_command(at, part, call)
            }
            PartBody::Tool(call) => self.call(&part.id, call).map(|(kind, data)| at.tell(kind, 1, of(data))),
            PartBody::StepStart { snapshot } => {
                if std::mem::replace(&mut self.is_begun, true) || self.summary.is_some() {
                    return None;
                }
                let mut data = of(json!({"agent": self.agent, "model": self.model}));
                if let Some(tree) = snapshot {
                    data["snapshot"] = json!(tree);
                }
                Some(at.tell("step.started", 1, data))
            }
            PartBody::StepFinish(finish) if self.summary.is_none() => {
                Some(at.tell("step.ended", 2, of(ended(finish))))
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

    /// A command of the user's, which is in no step.
    fn users_command(&mut self, at: &At<'_>, part: &Part, call: &ToolPart) -> Option<Told> {
        let command = message::command(call)?;
        if call.state.is_open() {
            let data = json!({"messageID": part.message_id, "callID": call.call_id, "command": command});
            return self.running.insert(part.id.clone()).then(|| at.tell("shell.started", 1, data));
        }
        let data = json!({"callID": call.call_id, "output": message::output(&call.state)});
        Some(at.tell("shell.ended", 1, data))
    }

    fn call(&mut self, id: &PartId, call: &ToolPart) -> Option<(&'static str, Value)> {
        let is_new = self.calls.insert(id.clone());
        let mut data = json!({ "callID": call.call_id });
        let kind = match &call.state {
            ToolState::Pending { .. } => {
                data["name"] = json!(call.tool);
                return is_new.then_some(("tool.input.started", data));
            }
            ToolState::Running { input, metadata, .. } => {
                if !self.running.insert(id.clone()) {
                    data["structured"] = message::structured(metadata.as_ref());
                    data["content"] = message::progress(&call.state);
                    return Some(("tool.progress", data));
                }
                data["tool"] = json!(call.tool);
                data["input"] = message::object(input);
                "tool.called"
            }
            // It was told long ago; only its output has been cleared from requests.
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

/// How far a session is taken back, and what that did to files.
pub(crate) fn revert(revert: &Revert) -> Value {
    let mut shown = json!({ "messageID": revert.message_id });
    let more = [
        ("partID", revert.part_id.as_ref().map(|part| json!(part))),
        ("snapshot", revert.snapshot.as_ref().map(|tree| json!(tree))),
        ("diff", revert.diff.as_ref().map(|diff| json!(diff))),
        ("files", revert.diff.as_deref().map(|diff| patch::files(diff).into())),
    ];
    for (key, value) in more {
        if let Some(value) = value {
            shown[key] = value;
        }
    }
    shown
}
