//! The messages of a request as an extension returns them.
//!
//! Extensions add messages and parts with only the keys that they need, for example `{"type": "text", "text": "…"}`
//! without any id. What is missing is filled in. A message or part that still has no meaning is left out alone; the rest
//! of the result is used.

use codewright_proto::{Message, MessageId, MessageWithParts, Part, PartBody, PartId};
use serde::{Deserialize as _, Serialize};
use serde_json::{Map, Value, json};

/// Reads the messages that an extension returned for those in `before`. Also returns a sentence about ignored ones.
pub(super) fn read(
    before: &[MessageWithParts],
    changed: &[Value],
) -> (Vec<MessageWithParts>, Option<String>) {
    let mut reader = Reader::new(before);
    let read: Vec<_> = changed.iter().filter_map(|message| reader.message(message)).collect();
    let Some(first) = reader.ignored.first() else { return (read, None) };
    let about = match reader.ignored.len() {
        1 => "a message or part that it returned is ignored".to_owned(),
        count => format!("{count} messages and parts that it returned are ignored"),
    };
    let report = Some(format!("{about}: {first}"));
    // A result without any usable message is a mistake of the extension, not the wish to send nothing.
    if read.is_empty() { (before.to_vec(), report) } else { (read, report) }
}

struct Reader<'a> {
    before: &'a [MessageWithParts],
    /// Increases with each added id.
    added: usize,
    /// Why messages and parts were ignored.
    ignored: Vec<String>,
}

impl<'a> Reader<'a> {
    fn new(before: &'a [MessageWithParts]) -> Self {
        Self { before, added: 0, ignored: Vec::new() }
    }

    fn message(&mut self, message: &Value) -> Option<MessageWithParts> {
        if let Ok(whole) = MessageWithParts::deserialize(message) {
            return Some(whole);
        }
        let info = self.info(&message["info"])?;
        let parts = message["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
        let parts = parts.iter().filter_map(|part| self.part(&info, part)).collect();
        Some(MessageWithParts { info, parts })
    }

    fn info(&mut self, info: &Value) -> Option<Message> {
        let defaults = match info["role"].as_str() {
            Some("user") => self.prompt(),
            Some("assistant") => self.answer(),
            _ => {
                self.ignored.push("a message needs `info` with the role `user` or `assistant`".to_owned());
                return None;
            }
        };
        let id = self.id(MessageId::PREFIX);
        let mut whole = json!({ "id": id });
        fill(&mut whole, &defaults);
        overlay(&mut whole, info);
        if info["id"].as_str().is_none_or(|id| MessageId::parse(id).is_err()) {
            whole["id"] = id.into();
        }
        self.keep(Message::deserialize(&whole))
    }

    fn part(&mut self, of: &Message, part: &Value) -> Option<Part> {
        if let Ok(whole) = Part::deserialize(part) {
            return Some(whole);
        }
        let mut body = part.clone();
        match body["type"].as_str() {
            Some("tool") => {
                fill(&mut body, &json!({ "callID": self.id("call"), "state": {} }));
                let defaults = json!({ "title": "", "input": {}, "metadata": {}, "time": no_time() });
                fill(&mut body["state"], &defaults);
                fill(&mut body["state"]["time"], &no_time());
            }
            Some("reasoning") => fill(&mut body, &json!({ "time": no_time() })),
            _ => {}
        }
        let body = self.keep(PartBody::deserialize(&body))?;
        let given = part["id"].as_str().and_then(|id| PartId::parse(id).ok());
        let id = given.or_else(|| PartId::parse(&self.id(PartId::PREFIX)).ok())?;
        Some(Part { id, session_id: of.session_id().clone(), message_id: of.id().clone(), body })
    }

    /// The keys of a new prompt: those of the last one that describe who answers it.
    fn prompt(&self) -> Value {
        let mut last = self.last(|message| matches!(message, Message::User(_)));
        if let Some(last) = last.as_object_mut() {
            last.retain(|key, _| ["sessionID", "time", "agent", "model"].contains(&key.as_str()));
        }
        last
    }

    /// The keys of a new answer, which is complete.
    fn answer(&self) -> Value {
        let prompt = self.prompt();
        let model = &prompt["model"];
        let mut answer = json!({
            "sessionID": prompt["sessionID"],
            "time": { "created": prompt["time"]["created"], "completed": prompt["time"]["created"] },
            "modelID": model["modelID"],
            "providerID": model["providerID"],
            "mode": prompt["agent"],
            "agent": prompt["agent"],
            "path": { "cwd": "", "root": "" },
            "cost": 0,
            "tokens": { "input": 0, "output": 0, "reasoning": 0, "cache": { "read": 0, "write": 0 } },
            "finish": "stop",
        });
        let parent = self.last(|message| matches!(message, Message::User(_)));
        fill(&mut answer, &json!({ "parentID": parent["id"] }));
        answer
    }

    fn last(&self, is_wanted: impl Fn(&Message) -> bool) -> Value {
        let found = self.before.iter().rev().find(|message| is_wanted(&message.info));
        found.map(|message| to_json(&message.info)).unwrap_or_default()
    }

    fn id(&mut self, prefix: &str) -> String {
        self.added += 1;
        format!("{prefix}_added{}", self.added)
    }

    fn keep<T>(&mut self, read: Result<T, serde_json::Error>) -> Option<T> {
        read.map_err(|error| self.ignored.push(error.to_string())).ok()
    }
}

/// Returns the JSON of plain data.
pub(super) fn to_json(value: &impl Serialize) -> Value {
    // Plain data always has a JSON form.
    serde_json::to_value(value).unwrap_or_default()
}

/// The time of a part that names none.
fn no_time() -> Value {
    json!({ "start": 0, "end": 0 })
}

/// Adds the keys that an object lacks. A value of another type becomes an object.
fn fill(object: &mut Value, defaults: &Value) {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    for (key, value) in defaults.as_object().into_iter().flatten() {
        if object[key].is_null() {
            object[key] = value.clone();
        }
    }
}

/// Replaces the keys of an object by those that are not null.
fn overlay(object: &mut Value, over: &Value) {
    for (key, value) in over.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        object[key] = value.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn before() -> Vec<MessageWithParts> {
        let messages = json!([{
            "info": {
                "id": "msg_1", "sessionID": "ses_1", "role": "user", "time": {"created": 5}, "agent": "build",
                "model": {"providerID": "p", "modelID": "m"}, "system": "only of this prompt",
            },
            "parts": [{"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1", "type": "text", "text": "a"}],
        }]);
        serde_json::from_value(messages).unwrap()
    }

    /// Roles and texts after a change, and whether something was ignored.
    #[track_caller]
    fn check(change: impl Fn(&mut Vec<Value>), expected: Value, is_reported: bool) {
        let before = before();
        let mut changed: Vec<Value> = before.iter().map(to_json).collect();
        change(&mut changed);
        let (read, ignored) = read(&before, &changed);
        let text = |part: &Part| match &part.body {
            PartBody::Text(text) => json!(text.text),
            PartBody::Tool(_) => to_json(&part.body)["state"]["output"].clone(),
            other => to_json(other)["type"].clone(),
        };
        let role = |message: &MessageWithParts| to_json(&message.info)["role"].clone();
        let shown: Vec<_> = read
            .iter()
            .map(|message| json!([role(message), message.parts.iter().map(text).collect::<Vec<_>>()]))
            .collect();
        assert_eq!(json!(shown), expected, "{ignored:?}");
        assert_eq!(ignored.is_some(), is_reported, "{ignored:?}");
        assert!(
            read.iter().flat_map(|message| &message.parts).all(|part| part.session_id.as_str() == "ses_1")
        );
    }

    #[test]
    fn missing_keys_are_filled_in() {
        let parts = |messages: &mut Vec<Value>, part: Value| {
            messages[0]["parts"].as_array_mut().unwrap().push(part);
        };
        check(|_| (), json!([["user", ["a"]]]), false);
        let noid = |all: &mut Vec<Value>| parts(all, json!({"type": "text", "text": "b"}));
        check(noid, json!([["user", ["a", "b"]]]), false);
        let strange = |all: &mut Vec<Value>| parts(all, json!({"id": 5, "type": "text", "text": "b"}));
        check(strange, json!([["user", ["a", "b"]]]), false);
        let file = |all: &mut Vec<Value>| {
            parts(all, json!({"type": "file", "mime": "image/png", "url": "data:image/png;base64,AA=="}));
        };
        check(file, json!([["user", ["a", "file"]]]), false);
        let tool = |all: &mut Vec<Value>| {
            parts(all, json!({"type": "tool", "tool": "x", "state": {"status": "completed", "output": "o"}}));
        };
        check(tool, json!([["user", ["a", "o"]]]), false);
        let message = |role: &'static str| {
            move |all: &mut Vec<Value>| {
                all.push(json!({"info": {"role": role}, "parts": [{"type": "text", "text": "b"}]}));
            }
        };
        check(message("user"), json!([["user", ["a"]], ["user", ["b"]]]), false);
        check(message("assistant"), json!([["user", ["a"]], ["assistant", ["b"]]]), false);
        let first = |all: &mut Vec<Value>| {
            all.insert(
                0,
                json!({"info": {"id": "x", "role": "user"}, "parts": [{"type": "text", "text": "b"}]}),
            );
        };
        check(first, json!([["user", ["b"]], ["user", ["a"]]]), false);
    }

    #[test]
    fn what_has_no_meaning_is_ignored_alone() {
        for part in
            [json!(null), json!("text"), json!({"type": "nonsense"}), json!({"type": "text", "text": 5})]
        {
            let add = |all: &mut Vec<Value>| all[0]["parts"].as_array_mut().unwrap().push(part.clone());
            check(add, json!([["user", ["a"]]]), true);
        }
        for message in
            [json!(null), json!({"role": "user", "content": "x"}), json!({"info": {"role": "system"}})]
        {
            check(|all| all.push(message.clone()), json!([["user", ["a"]]]), true);
            check(|all| *all = vec![message.clone()], json!([["user", ["a"]]]), true);
        }
        check(|all| all.clear(), json!([]), false);
    }
}
