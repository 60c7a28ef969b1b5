//! The JSON of an event, serialized once for the log and the projected row.
//!
//! A session's row contains the whole value. A message's or part's row contains the value without its ids. The ids are
//! adjacent at a known offset, so the row is cut out of the JSON, and a text of two megabytes is not serialized twice.

use std::borrow::Cow;
use std::io;
use std::ops::Range;

use codewright_proto::{
    Event, Message, MessageId, ParseIdError, Part, PartBody, PartId, PermissionId, Session, SessionId,
};
use serde::Serialize;
use serde_json::ser::Formatter;

use crate::Error;

/// The maximum nesting depth. Parsers fail at 128 levels, and clients receive values with a few more levels than the
/// log.
const MAX_DEPTH: usize = 100;

/// The largest number in a row, because a column holds 63 bits.
const MAX_NUMBER: u64 = i64::MAX as u64;

/// The initial capacity, enough for most events.
const USUAL_BYTES: usize = 1024;

/// The JSON of a valid event.
#[derive(Debug)]
pub(crate) struct Record {
    json: Vec<u8>,
    properties: Range<usize>,
    row: Row,
}

/// The range of the projected row in the event's JSON.
#[derive(Debug)]
enum Row {
    /// The event has no JSON row, or its row is the properties.
    Properties,
    /// The bytes in `value`, without the `cut` bytes after the first `head` bytes.
    Value { value: Range<usize>, head: usize, cut: usize },
}

impl Record {
    /// Checks and serializes an event.
    pub(crate) fn new(event: &Event) -> Result<Self, Error> {
        check(event).map_err(|reason| Error::Invalid { event: event.name(), reason })?;
        let json = shallow_json(event)
            .map_err(|error| Error::Invalid { event: event.name(), reason: error.to_string() })?;
        let before = format!(r#"{{"type":"{}","properties":"#, event.name()).len();
        let properties = before..json.len() - "}".len();
        let row = match event {
            Event::MessageUpdated { session_id, info } => message_row(&json, session_id, info),
            Event::PartUpdated { session_id, part, time } => part_row(&json, session_id, part, *time),
            Event::SessionCreated { session_id, .. } | Event::SessionUpdated { session_id, .. } => {
                session_row(&json, event.name(), session_id)
            }
            Event::SessionDeleted { .. }
            | Event::MessageRemoved { .. }
            | Event::PartRemoved { .. }
            | Event::TodoUpdated { .. }
            | Event::PermissionAsked(_)
            | Event::PermissionReplied { .. } => Row::Properties,
        };
        Ok(Self { json, properties, row })
    }

    /// The JSON for the log and for the `properties` that clients receive.
    pub(crate) fn properties(&self) -> &[u8] {
        &self.json[self.properties.clone()]
    }

    /// The size of the JSON.
    pub(crate) fn len_bytes(&self) -> usize {
        self.json.len()
    }

    /// The JSON of the projected row.
    pub(crate) fn row(&self) -> Cow<'_, [u8]> {
        match &self.row {
            Row::Properties => Cow::Borrowed(self.properties()),
            Row::Value { value, head, cut } => {
                let (head, rest) = self.json[value.clone()].split_at(*head);
                Cow::Owned([head, &rest[*cut..]].concat())
            }
        }
    }
}

fn session_row(json: &[u8], name: &str, session_id: &SessionId) -> Row {
    let before = format!(r#"{{"type":"{name}","properties":{{"sessionID":"{session_id}","info":"#);
    value(json, [&before, "{", ""], "}}")
}

fn message_row(json: &[u8], session_id: &SessionId, info: &Message) -> Row {
    let before = format!(r#"{{"type":"message.updated","properties":{{"sessionID":"{session_id}","info":"#);
    let head = match info {
        Message::User(_) => r#"{"role":"user""#,
        Message::Assistant(_) => r#"{"role":"assistant""#,
    };
    let cut = format!(r#","id":"{}","sessionID":"{}""#, info.id(), info.session_id());
    value(json, [&before, head, &cut], "}}")
}

fn part_row(json: &[u8], session_id: &SessionId, part: &Part, time: u64) -> Row {
    let before =
        format!(r#"{{"type":"message.part.updated","properties":{{"sessionID":"{session_id}","part":"#);
    let cut =
        format!(r#""id":"{}","sessionID":"{}","messageID":"{}","#, part.id, part.session_id, part.message_id);
    value(json, [&before, "{", &cut], &format!(r#","time":{time}}}}}"#))
}

fn value(json: &[u8], [before, head, cut]: [&str; 3], after: &str) -> Row {
    let middle = &json[before.len()..json.len() - after.len()];
    assert!(
        json.starts_with(before.as_bytes())
            && json.ends_with(after.as_bytes())
            && middle.starts_with(head.as_bytes())
            && middle[head.len()..].starts_with(cut.as_bytes()),
        "the ids are plain and at the start of the JSON of messages and parts"
    );
    Row::Value { value: before.len()..json.len() - after.len(), head: head.len(), cut: cut.len() }
}

/// Checks whether an event can be stored.
///
/// Ids inside other JSON were not checked before, and a number that is not finite would be stored as an unreadable
/// `null`.
fn check(event: &Event) -> Result<(), String> {
    session_id(event.session_id())?;
    match event {
        Event::SessionCreated { session_id, info }
        | Event::SessionUpdated { session_id, info }
        | Event::SessionDeleted { session_id, info } => {
            same("session", session_id.as_str(), info.id.as_str())?;
            check_session(info)
        }
        Event::MessageUpdated { session_id, info } => {
            same("session", session_id.as_str(), info.session_id().as_str())?;
            message_id(info.id())?;
            check_number("time.created", info.created())?;
            match info {
                Message::User(_) => Ok(()),
                Message::Assistant(message) => check_finite("cost", message.cost),
            }
        }
        Event::MessageRemoved { message_id: id, .. } => message_id(id),
        Event::PartUpdated { session_id, part, time } => {
            same("session", session_id.as_str(), part.session_id.as_str())?;
            check_number("time", *time)?;
            check_part(part)
        }
        Event::PartRemoved { message_id: message, part_id: part, .. } => {
            message_id(message)?;
            part_id(part)
        }
        Event::TodoUpdated { .. } => Ok(()),
        Event::PermissionAsked(request) => permission_id(&request.id),
        Event::PermissionReplied { request_id, .. } => permission_id(request_id),
    }
}

fn check_session(info: &Session) -> Result<(), String> {
    if let Some(parent) = &info.parent_id {
        session_id(parent)?;
    }
    if let Some(revert) = &info.revert {
        message_id(&revert.message_id)?;
        revert.part_id.as_ref().map_or(Ok(()), part_id)?;
    }
    check_finite("cost", info.cost)?;
    let summary = info.summary.as_ref();
    for (name, number) in [
        ("time.created", Some(info.time.created)),
        ("time.updated", Some(info.time.updated)),
        ("time.compacting", info.time.compacting),
        ("time.archived", info.time.archived),
        ("tokens.total", info.tokens.total),
        ("tokens.input", Some(info.tokens.input)),
        ("tokens.output", Some(info.tokens.output)),
        ("tokens.reasoning", Some(info.tokens.reasoning)),
        ("tokens.cache.read", Some(info.tokens.cache.read)),
        ("tokens.cache.write", Some(info.tokens.cache.write)),
        ("summary.additions", summary.map(|summary| summary.additions)),
        ("summary.deletions", summary.map(|summary| summary.deletions)),
        ("summary.files", summary.map(|summary| summary.files)),
    ] {
        check_number(name, number.unwrap_or(0))?;
    }
    Ok(())
}

fn check_part(part: &Part) -> Result<(), String> {
    part_id(&part.id)?;
    message_id(&part.message_id)?;
    match &part.body {
        PartBody::StepFinish(finish) => check_finite("cost", finish.cost),
        PartBody::Text(_)
        | PartBody::Reasoning { .. }
        | PartBody::File { .. }
        | PartBody::Tool(_)
        | PartBody::StepStart { .. }
        | PartBody::Snapshot { .. }
        | PartBody::Patch { .. }
        | PartBody::Agent { .. }
        | PartBody::Subtask { .. }
        | PartBody::Retry { .. }
        | PartBody::Compaction { .. } => Ok(()),
    }
}

fn session_id(id: &SessionId) -> Result<(), String> {
    plain(SessionId::parse(id.as_str()))
}

fn message_id(id: &MessageId) -> Result<(), String> {
    plain(MessageId::parse(id.as_str()))
}

fn part_id(id: &PartId) -> Result<(), String> {
    plain(PartId::parse(id.as_str()))
}

fn permission_id(id: &PermissionId) -> Result<(), String> {
    plain(PermissionId::parse(id.as_str()))
}

fn plain<T>(parsed: Result<T, ParseIdError>) -> Result<(), String> {
    parsed.map(drop).map_err(|error| error.to_string())
}

fn same(kind: &str, event: &str, value: &str) -> Result<(), String> {
    if event == value {
        return Ok(());
    }
    Err(format!("it is for {kind} `{event}`, but its value is for {kind} `{value}`"))
}

fn check_finite(name: &str, number: f64) -> Result<(), String> {
    if number.is_finite() { Ok(()) } else { Err(format!("`{name}` is {number}")) }
}

fn check_number(name: &str, number: u64) -> Result<(), String> {
    if number <= MAX_NUMBER { Ok(()) } else { Err(format!("`{name}` is {number}, more than {MAX_NUMBER}")) }
}

/// Compact JSON, or an error if it is nested too deeply to be parsed.
fn shallow_json(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut json = Vec::with_capacity(USUAL_BYTES);
    let mut serializer = serde_json::Serializer::with_formatter(&mut json, Shallow { depth: 0 });
    value.serialize(&mut serializer)?;
    Ok(json)
}

struct Shallow {
    depth: usize,
}

impl Shallow {
    fn enter(&mut self) -> io::Result<()> {
        self.depth += 1;
        if self.depth <= MAX_DEPTH {
            return Ok(());
        }
        Err(io::Error::other(format!("it is nested more than {MAX_DEPTH} levels deep")))
    }
}

impl Formatter for Shallow {
    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        writer.write_all(b"[")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        writer.write_all(b"]")
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        writer.write_all(b"}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check_row(event: Value, expected_row: &Value) {
        let event: Event = serde_json::from_value(event).expect("an event");
        let record = Record::new(&event).expect("valid");
        let properties: Value = serde_json::from_slice(record.properties()).expect("JSON");
        assert_eq!(properties, serde_json::to_value(&event).expect("JSON")["properties"]);
        let row: Value = serde_json::from_slice(&record.row()).expect("JSON");
        assert_eq!(&row, expected_row);
    }

    #[test]
    fn the_json_of_a_row_is_the_value_without_its_ids() {
        check_row(
            json!({"type": "message.updated", "properties": {"sessionID": "ses_1", "info": {
                "id": "msg_1", "sessionID": "ses_1", "role": "user", "time": {"created": 5},
                "agent": "a\"}}", "model": {"providerID": "p", "modelID": "m"}}}}),
            &json!({"role": "user", "time": {"created": 5},
                "agent": "a\"}}", "model": {"providerID": "p", "modelID": "m"}}),
        );
        check_row(
            json!({"type": "message.updated", "properties": {"sessionID": "ses_1", "info": {
                "id": "msg_2", "sessionID": "ses_1", "role": "assistant", "time": {"created": 5},
                "parentID": "msg_1", "modelID": "m", "providerID": "p", "mode": "b", "agent": "b",
                "path": {"cwd": "/", "root": "/"}, "cost": 0.5,
                "tokens": {"input": 1, "output": 2, "reasoning": 3, "cache": {"read": 4, "write": 5}}}}}),
            &json!({"role": "assistant", "time": {"created": 5},
                "parentID": "msg_1", "modelID": "m", "providerID": "p", "mode": "b", "agent": "b",
                "path": {"cwd": "/", "root": "/"}, "cost": 0.5,
                "tokens": {"input": 1, "output": 2, "reasoning": 3, "cache": {"read": 4, "write": 5}}}),
        );
        for body in [
            json!({"type": "text", "text": "a\",\"time\":7}} \u{1F600}\n"}),
            json!({"type": "step-start"}),
            json!({"type": "patch", "hash": "h", "files": ["f"]}),
        ] {
            let mut part = json!({"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1"});
            let fields = body.as_object().expect("an object").clone();
            part.as_object_mut().expect("an object").extend(fields);
            check_row(
                json!({"type": "message.part.updated",
                    "properties": {"sessionID": "ses_1", "part": part, "time": 7}}),
                &body,
            );
        }
    }

    #[track_caller]
    fn check_invalid(event: Value, expected_reason: &str) {
        let event: Event = serde_json::from_value(event).expect("an event");
        let error = Record::new(&event).expect_err("not valid").to_string();
        assert!(error.contains(event.name()) && error.contains(expected_reason), "{error}");
    }

    #[test]
    fn an_event_that_could_not_be_read_back_is_rejected() {
        let part = |id: &str, session: &str, metadata: Value| {
            json!({"type": "message.part.updated", "properties": {"sessionID": "ses_1", "time": 7, "part": {
                "id": id, "sessionID": session, "messageID": "msg_1",
                "type": "text", "text": "t", "metadata": metadata}}})
        };
        check_invalid(part("prt_\"", "ses_1", Value::Null), "`prt_\"` is not a valid id");
        check_invalid(part("msg_1", "ses_1", Value::Null), "must start with `prt_`");
        check_invalid(
            part("prt_1", "ses_2", Value::Null),
            "for session `ses_1`, but its value is for session `ses_2`",
        );
        let deep = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        check_invalid(part("prt_1", "ses_1", deep(98)), "nested more than 100 levels");
        let fits: Event = serde_json::from_value(part("prt_1", "ses_1", deep(97))).expect("an event");
        Record::new(&fits).expect("as deep as allowed");

        let mut finish = part("prt_1", "ses_1", Value::Null);
        finish["properties"]["part"] = json!({"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1",
            "type": "step-finish", "reason": "stop", "cost": 0,
            "tokens": {"input": 1, "output": 2, "reasoning": 3, "cache": {"read": 4, "write": 5}}});
        let mut event: Event = serde_json::from_value(finish).expect("an event");
        let Event::PartUpdated { part, .. } = &mut event else { panic!("a part") };
        let PartBody::StepFinish(finish) = &mut part.body else { panic!("a finish") };
        finish.cost = f64::NAN;
        assert!(Record::new(&event).expect_err("not valid").to_string().contains("`cost` is NaN"));
    }
}
