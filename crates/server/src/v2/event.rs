//! The log of a session as newer events.
//!
//! An event of the log holds the whole new value of one row; a newer event tells what happened. So the
//! log is folded in order: what a row said before decides what its new value tells. Each event of the
//! log tells of one thing at most, and the newer event has its number, so whoever names the last number
//! that they know misses none and hears none twice.

use std::collections::{HashMap, HashSet, VecDeque};

use codewright_engine::patch;
use codewright_proto::{
    AssistantMessage, Envelope, Event, EventId, Message, MessageId, MessageWithParts, ModelRef, Part,
    PartBody, PartId, Revert, Session, StepFinish, TextPart, ToolPart, ToolState, VcsFile, json_bytes,
};
use serde_json::{Value, json};

use super::message::{self, Reason};
use super::prompt;

/// How many messages of a session are remembered.
const MAX_MESSAGES: usize = 256;
/// About how much room a remembered call takes.
const CALL_BYTES: usize = 256;

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
    /// The time of the first event that was read.
    since: Option<u64>,
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
    /// When it was first heard of, if it began earlier. What it did before then has been told.
    since: Option<u64>,
    /// The text that grows.
    open: Option<(PartId, Open)>,
    /// Calls that were told of, and those of them that run.
    calls: HashSet<PartId>,
    running: HashSet<PartId>,
}

/// What grows while a model speaks.
#[derive(Debug, Clone, Copy)]
enum Open {
    Text,
    Reasoning,
}

/// A prompt and the places of its events.
struct Prompt {
    message: MessageId,
    id: EventId,
    seq: u64,
    created: u64,
    last: (EventId, u64),
    parts: Vec<Part>,
    /// How large the parts are, as JSON.
    bytes: usize,
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
    /// Begins behind the beginning of a log, at a place up to which the session had been taken back so far.
    pub(crate) fn begin(&mut self, revert: Option<Revert>) {
        self.revert = revert;
    }

    /// Reads the next event of the log; what it tells is put behind what was told.
    pub(crate) fn push(&mut self, envelope: &Envelope, told: &mut Vec<Told>) {
        let Envelope { id, seq, time, event, .. } = envelope;
        self.since.get_or_insert(*time);
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
                        bytes: 0,
                    });
                }
            }
            Event::MessageUpdated { info: Message::Assistant(info), .. } => {
                told.extend(self.answer(&at, info));
            }
            Event::PartUpdated { part, .. } => told.extend(self.part(&at, part)),
            Event::MessageRemoved { message_id, .. } => {
                self.removed = true;
                // A client may choose its id once more.
                if self.messages.remove(message_id).is_some() {
                    self.order.retain(|known| known != message_id);
                }
            }
            Event::PartRemoved { .. } => self.removed = true,
            Event::SessionDeleted { .. }
            | Event::TodoUpdated { .. }
            | Event::PermissionAsked(_)
            | Event::PermissionReplied { .. } => {}
        }
    }

    /// Tells of a prompt whose parts have all been read: of those of one prompt the log holds all or none.
    pub(crate) fn settle(&mut self, session: &str, told: &mut Vec<Told>) {
        let Some(Prompt { message, id, seq, created, last, parts, .. }) = self.prompt.take() else { return };
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

    /// Whether a message is remembered.
    pub(crate) fn knows(&self, message: &MessageId) -> bool {
        self.messages.contains_key(message)
    }

    /// Remembers a message that began before what was read, of which an event of a time speaks next.
    pub(crate) fn resume(&mut self, stored: &MessageWithParts, reason: Option<Reason>, time: u64) {
        let info = match &stored.info {
            Message::User(info) => return self.remember(info.id.clone(), Known::Prompt),
            Message::Assistant(info) => info,
        };
        let is_summary = info.summary == Some(true);
        let mut answer = Answer::new(info, is_summary.then(|| reason.unwrap_or(Reason::Manual)));
        // What the message became later must still be told.
        answer.is_over = info.time.completed.is_some_and(|completed| completed < time);
        answer.is_begun = stored.parts.iter().any(|part| matches!(part.body, PartBody::StepStart { .. }));
        answer.since = Some(self.since.unwrap_or(time));
        for part in &stored.parts {
            if let (PartBody::Text(text), true) = (&part.body, is_summary) {
                answer.text = text.text.to_string();
            }
        }
        self.remember(info.id.clone(), Known::Answer(Box::new(answer)));
    }

    /// The prompt whose parts are being read, and the last of its events.
    pub(crate) fn unsettled(&self) -> Option<(&MessageId, u64)> {
        self.prompt.as_ref().map(|prompt| (&prompt.message, prompt.last.1))
    }

    /// About how many bytes are remembered: what grows with what is said.
    pub(crate) fn bytes(&self) -> usize {
        let prompt = self.prompt.as_ref().map_or(0, |prompt| prompt.bytes);
        let answers = self.messages.values().map(|known| match known {
            Known::Prompt => 0,
            Known::Answer(answer) => answer.text.len() + answer.calls.len() * CALL_BYTES,
        });
        prompt + answers.sum::<usize>()
    }

    /// What a piece of text that has just come tells: its kind and its content.
    pub(crate) fn delta(
        &self,
        message: &MessageId,
        part: &PartId,
        text: &str,
    ) -> Option<(&'static str, Value)> {
        let Known::Answer(answer) = self.messages.get(message)? else { return None };
        if answer.summary.is_some() {
            return Some(("compaction.delta", json!({"messageID": message, "text": text})));
        }
        let (open, kind) = answer.open.as_ref().filter(|(open, _)| open == part)?;
        let (name, key) = match kind {
            Open::Text => ("text.delta", "textID"),
            Open::Reasoning => ("reasoning.delta", "reasoningID"),
        };
        Some((name, json!({"assistantMessageID": message, key: open, "delta": text})))
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
            self.remember(info.id.clone(), Known::Answer(Box::new(Answer::new(info, summary))));
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
            prompt.bytes += json_bytes(part);
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
    fn new(info: &AssistantMessage, summary: Option<Reason>) -> Self {
        Self {
            agent: info.agent.clone(),
            model: message::model(info),
            summary,
            is_begun: false,
            is_over: info.time.completed.is_some(),
            text: String::new(),
            since: None,
            open: None,
            calls: HashSet::new(),
            running: HashSet::new(),
        }
    }

    /// Whether something that began at a time was told of before this message was heard of.
    fn is_old(&self, start: u64) -> bool {
        self.since.is_some_and(|since| start < since)
    }

    /// Notes which text grows; whether it has just begun.
    fn opens(&mut self, part: &PartId, kind: Open) -> bool {
        let is_new = self.open.as_ref().is_none_or(|(known, _)| known != part);
        self.open = Some((part.clone(), kind));
        is_new
    }

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
                // A text that a process left behind is stored once more before it ends.
                if !self.opens(&part.id, Open::Text) || self.is_old(time.start) {
                    return None;
                }
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
                    if !self.opens(&part.id, Open::Reasoning) || self.is_old(time.start) {
                        return None;
                    }
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
            if matches!(&call.state, ToolState::Running { time, .. } if self.is_old(time.start)) {
                return None;
            }
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

fn files(diff: &str) -> Value {
    let shown = patch::files(diff).into_iter().map(|changed| {
        let VcsFile { file, patch, additions, deletions, status } = changed;
        json!({"path": file, "status": status, "additions": additions, "deletions": deletions, "patch": patch})
    });
    shown.collect()
}

/// How far a session is taken back, and what that did to files.
pub(crate) fn revert(revert: &Revert) -> Value {
    let mut shown = json!({ "messageID": revert.message_id });
    let more = [
        ("partID", revert.part_id.as_ref().map(|part| json!(part))),
        ("snapshot", revert.snapshot.as_ref().map(|tree| json!(tree))),
        ("diff", revert.diff.as_ref().map(|diff| json!(diff))),
        ("files", revert.diff.as_deref().map(files)),
    ];
    for (key, value) in more {
        if let Some(value) = value {
            shown[key] = value;
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events in short: a row of the log and its number, in the vocabulary's own form.
    fn log(rows: &[Value]) -> Vec<Envelope> {
        let row = |(seq, row): (usize, &Value)| Envelope {
            id: EventId::parse(&format!("evt_{seq}")).unwrap(),
            position: seq as u64,
            seq: seq as u64,
            time: 1000 + seq as u64,
            event: serde_json::from_value(row.clone()).unwrap(),
        };
        rows.iter().enumerate().map(row).collect()
    }

    fn fold(rows: &[Value]) -> Vec<Told> {
        let (mut fold, mut told) = (Fold::default(), Vec::new());
        for envelope in &log(rows) {
            fold.push(envelope, &mut told);
        }
        fold.settle("ses_1", &mut told);
        told
    }

    #[track_caller]
    fn check(rows: &[Value], expected: &[(u64, &str)]) {
        let told = fold(rows);
        let kind = |told: &Told| told.value["type"].as_str().unwrap().replace("session.next.", "");
        let told: Vec<_> = told.iter().map(|told| (told.seq, kind(told))).collect();
        let expected: Vec<_> = expected.iter().map(|(seq, kind)| (*seq, (*kind).to_owned())).collect();
        assert_eq!(told, expected);
    }

    fn user(id: &str) -> Value {
        let model = json!({"providerID": "p", "modelID": "m"});
        let info = json!({
            "role": "user", "id": id, "sessionID": "ses_1", "time": {"created": 5}, "agent": "build", "model": model,
        });
        json!({"type": "message.updated", "properties": {"sessionID": "ses_1", "info": info}})
    }

    fn answer(id: &str, more: Value) -> Value {
        let mut info = json!({
            "role": "assistant", "id": id, "sessionID": "ses_1", "time": {"created": 6}, "parentID": "msg_1",
            "modelID": "m", "providerID": "p", "mode": "build", "agent": "build",
            "path": {"cwd": "/", "root": "/"}, "cost": 0.0,
            "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
        });
        message::merge(&mut info, more);
        json!({"type": "message.updated", "properties": {"sessionID": "ses_1", "info": info}})
    }

    fn part(message: &str, id: &str, more: Value) -> Value {
        let mut part = json!({"id": id, "sessionID": "ses_1", "messageID": message});
        message::merge(&mut part, more);
        json!({"type": "message.part.updated", "properties": {"sessionID": "ses_1", "part": part, "time": 7}})
    }

    fn text(message: &str, text: &str) -> Value {
        part(message, "prt_t", json!({"type": "text", "text": text}))
    }

    fn call(state: Value) -> Value {
        part("msg_2", "prt_c", json!({"type": "tool", "callID": "c", "tool": "read", "state": state}))
    }

    fn session(revert: Value) -> Value {
        let info = json!({
            "id": "ses_1", "slug": "s", "projectID": "global", "directory": "/", "title": "t", "version": "1",
            "time": {"created": 1, "updated": 1}, "revert": revert,
        });
        json!({"type": "session.updated", "properties": {"sessionID": "ses_1", "info": info}})
    }

    fn gone(message: &str) -> Value {
        json!({"type": "message.removed", "properties": {"sessionID": "ses_1", "messageID": message}})
    }

    #[test]
    fn a_prompt_is_told_once_with_all_its_parts() {
        let file = json!({"type": "file", "mime": "text/plain", "url": "file:///a"});
        let rows = [user("msg_1"), text("msg_1", "hi"), part("msg_1", "prt_f", file), user("msg_1")];
        check(&rows, &[(0, "prompt.admitted"), (2, "prompted")]);
        let told = fold(&rows);
        let prompt = json!({"text": "hi", "files": [{"uri": "file:///a", "mime": "text/plain"}]});
        assert_eq!((&told[0].value["data"]["prompt"], &told[1].value["data"]["prompt"]), (&prompt, &prompt));
        assert_eq!(told[0].admitted.as_ref().map(MessageId::as_str), Some("msg_1"));
        let again = [user("msg_1"), text("msg_1", "hi"), gone("msg_1"), user("msg_1"), text("msg_1", "hi")];
        let twice = [(0, "prompt.admitted"), (1, "prompted"), (3, "prompt.admitted"), (4, "prompted")];
        check(&again, &twice);
        let by_program = json!({"type": "text", "text": "go on", "synthetic": true});
        check(&[user("msg_1"), part("msg_1", "prt_t", by_program)], &[(0, "synthetic")]);
        // Stored anew, from before the place where reading began.
        check(&[user("msg_1"), answer("msg_2", json!({}))], &[]);
    }

    #[test]
    fn an_answer_is_told_step_by_step() {
        let input = json!({"filePath": "a"});
        let span = json!({"start": 1, "end": 2});
        let done = json!({
            "status": "completed", "input": input, "output": "o", "title": "t", "metadata": {}, "time": span,
        });
        let mut pruned = done.clone();
        pruned["time"]["compacted"] = json!(9);
        let rows = [
            answer("msg_2", json!({})),
            part("msg_2", "prt_s", json!({"type": "step-start"})),
            part("msg_2", "prt_s", json!({"type": "step-start", "snapshot": "tree"})),
            part("msg_2", "prt_r", json!({"type": "reasoning", "text": "", "time": {"start": 1}})),
            part("msg_2", "prt_r", json!({"type": "reasoning", "text": "hm", "time": span})),
            part("msg_2", "prt_t", json!({"type": "text", "text": "", "time": {"start": 1}})),
            part("msg_2", "prt_t", json!({"type": "text", "text": "hi", "time": span})),
            part("msg_2", "prt_u", json!({"type": "text", "text": "", "time": {"start": 1}})),
            part("msg_2", "prt_u", json!({"type": "text", "text": "left", "time": {"start": 1}})),
            call(json!({"status": "pending", "input": {}, "raw": ""})),
            call(json!({"status": "running", "input": input, "time": {"start": 1}})),
            call(
                json!({"status": "running", "input": input, "metadata": {"output": "x"}, "time": {"start": 1}}),
            ),
            call(done),
            answer("msg_2", json!({"finish": "tool-calls"})),
            answer("msg_2", json!({"finish": "tool-calls", "time": {"created": 6, "completed": 8}})),
            call(pruned),
        ];
        let expected = [
            (1, "step.started"),
            (3, "reasoning.started"),
            (4, "reasoning.ended"),
            (5, "text.started"),
            (6, "text.ended"),
            (7, "text.started"),
            (9, "tool.input.started"),
            (10, "tool.called"),
            (11, "tool.progress"),
            (12, "tool.success"),
        ];
        check(&rows, &expected);
        let told = fold(&rows);
        assert_eq!(
            told[8].value["data"],
            json!({
                "timestamp": 1011, "sessionID": "ses_1", "assistantMessageID": "msg_2", "callID": "c",
                "structured": {"output": "x"}, "content": [{"type": "text", "text": "x"}],
            })
        );
        // From the middle on: what belongs to a message that is not known tells nothing.
        check(&rows[3..], &[]);
    }

    #[test]
    fn an_answer_that_began_before_the_place_is_told_on() {
        let info = answer("msg_2", json!({}))["properties"]["info"].clone();
        let begun = part("msg_2", "prt_s", json!({"type": "step-start"}))["properties"]["part"].clone();
        let stored = serde_json::from_value(json!({"info": info, "parts": [begun]})).unwrap();
        let state = |start: u64| json!({"status": "running", "input": {}, "time": {"start": start}});
        let done = json!({
            "status": "completed", "input": {}, "output": "o", "title": "t", "metadata": {},
            "time": {"start": 1, "end": 2},
        });
        let rows = [
            call(state(1)),
            call(state(1)),
            call(done),
            part("msg_2", "prt_t", json!({"type": "text", "text": "a", "time": {"start": 1}})),
            part("msg_2", "prt_t", json!({"type": "text", "text": "ab", "time": {"start": 1, "end": 2}})),
            part("msg_2", "prt_u", json!({"type": "text", "text": "", "time": {"start": 1009}})),
            answer(
                "msg_2",
                json!({"time": {"created": 6, "completed": 1010}, "error": {
                "name": "MessageAbortedError", "data": {"message": "Aborted"}}}),
            ),
        ];
        let (mut fold, mut told) = (Fold::default(), Vec::new());
        for envelope in &log(&rows) {
            if let Event::PartUpdated { part, .. } = &envelope.event
                && !fold.knows(&part.message_id)
            {
                fold.resume(&stored, None, envelope.time);
            }
            fold.push(envelope, &mut told);
        }
        let told: Vec<_> = told.iter().map(|told| (told.seq, told.value["type"].as_str().unwrap())).collect();
        let expected = [
            (0, "session.next.tool.progress"),
            (1, "session.next.tool.progress"),
            (2, "session.next.tool.success"),
            (4, "session.next.text.ended"),
            (5, "session.next.text.started"),
            (6, "session.next.step.failed"),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn an_answer_fails_once_and_a_summary_ends_once() {
        let failed = json!({
            "error": {"name": "MessageAbortedError", "data": {"message": "Aborted"}},
            "time": {"created": 6, "completed": 8},
        });
        let rows = [answer("msg_2", json!({})), answer("msg_2", failed.clone()), answer("msg_2", failed)];
        check(&rows, &[(1, "step.failed")]);
        let ended = json!({"summary": true, "finish": "stop", "time": {"created": 6, "completed": 8}});
        let rows = [
            user("msg_1"),
            part("msg_1", "prt_q", json!({"type": "compaction", "auto": true})),
            answer("msg_2", json!({"summary": true})),
            part("msg_2", "prt_s", json!({"type": "step-start"})),
            part("msg_2", "prt_t", json!({"type": "text", "text": "all", "time": {"start": 1, "end": 2}})),
            answer("msg_2", ended.clone()),
            answer("msg_2", ended),
        ];
        check(&rows, &[(0, "synthetic"), (2, "compaction.started"), (5, "compaction.ended")]);
        let told = fold(&rows);
        assert_eq!(
            (&told[2].value["data"]["reason"], &told[2].value["data"]["text"]),
            (&json!("auto"), &json!("all"))
        );
    }

    #[test]
    fn taking_back_is_staged_and_cleared_or_committed() {
        let back = |to: &str| session(json!({"messageID": to, "diff": "d"}));
        check(&[back("msg_1"), session(Value::Null)], &[(0, "revert.staged"), (1, "revert.cleared")]);
        // A session that is named meanwhile is staged no second time.
        check(&[back("msg_1"), back("msg_1"), back("msg_0")], &[(0, "revert.staged"), (2, "revert.staged")]);
        let rows = [back("msg_1"), gone("msg_1"), gone("msg_2"), session(Value::Null)];
        check(&rows, &[(0, "revert.staged"), (3, "revert.committed")]);
        check(&[gone("msg_1"), session(Value::Null), session(Value::Null)], &[]);
    }

    #[test]
    fn a_text_that_grows_is_told_by_its_kind() {
        let (mut fold, mut told) = (Fold::default(), Vec::new());
        let rows = [
            answer("msg_2", json!({})),
            part("msg_2", "prt_s", json!({"type": "step-start"})),
            part("msg_2", "prt_r", json!({"type": "reasoning", "text": "", "time": {"start": 1}})),
        ];
        for envelope in &log(&rows) {
            fold.push(envelope, &mut told);
        }
        let (message, part) = (MessageId::parse("msg_2").unwrap(), PartId::parse("prt_r").unwrap());
        let expected = json!({"assistantMessageID": "msg_2", "reasoningID": "prt_r", "delta": "h"});
        assert_eq!(fold.delta(&message, &part, "h"), Some(("reasoning.delta", expected)));
        assert_eq!(fold.delta(&message, &PartId::parse("prt_x").unwrap(), "h"), None);
        assert_eq!(fold.delta(&MessageId::parse("msg_9").unwrap(), &part, "h"), None);
    }
}
