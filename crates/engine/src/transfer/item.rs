//! The reader for sessions, messages and parts that another program wrote.
//!
//! Known fields become our types; all others go into the [`Rest`]. An invalid item of an exported document
//! is an error. The rows of an installation are read leniently: missing fields of older versions get
//! defaults, and a row that cannot be read is kept unchanged, so that its session is not lost.

use std::collections::BTreeMap;

use codewright_proto::{
    Clock, Map, Message, MessageId, MessageWithParts, Part, PartId, Principal, Session, SessionId,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::provenance::Rest;

/// The part types that our types model.
const PARTS: [&str; 12] = [
    "text",
    "reasoning",
    "file",
    "tool",
    "step-start",
    "step-finish",
    "snapshot",
    "patch",
    "agent",
    "subtask",
    "retry",
    "compaction",
];
/// The most distinct notes that are kept.
const MAX_NOTES: usize = 100;
/// The longest name that a note quotes.
const MAX_NAME_CHARS: usize = 60;
/// How far ahead the time of a message can be. The machine that wrote it can have another clock.
const MAX_AHEAD_MS: u64 = 24 * 60 * 60 * 1000;

/// The treatment of invalid items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// They are errors.
    Exact,
    /// They are repaired or kept unchanged.
    Lenient,
}

/// An item that cannot be read.
#[derive(Debug)]
pub(crate) struct Wrong {
    /// The path in the document, such as `messages[3].parts[0]`.
    pub(crate) at: String,
    pub(crate) reason: String,
}

/// Reads the items of one session and collects the fields that are left over.
pub(crate) struct Reader {
    session: SessionId,
    strictness: Strictness,
    rest: Rest,
    notes: BTreeMap<String, usize>,
    last_user: Option<MessageId>,
    /// The latest time a message can have. Messages are ordered by time, so new ones get a time after it.
    latest_ms: u64,
    /// The time of the message before, or of the session.
    last_ms: u64,
}

impl Reader {
    pub(crate) fn new(session: SessionId, strictness: Strictness) -> Self {
        Self {
            session,
            strictness,
            rest: Rest::default(),
            notes: BTreeMap::new(),
            last_user: None,
            latest_ms: Clock::system().now_ms().saturating_add(MAX_AHEAD_MS),
            last_ms: 0,
        }
    }

    /// Returns everything that is left over, and notes about it.
    pub(crate) fn into_rest(self) -> (Rest, Vec<String>) {
        let notes = self.notes.into_iter().map(|(what, count)| match count {
            1 => what,
            count => format!("{what} ({count} times)"),
        });
        (self.rest, notes.collect())
    }

    pub(crate) fn rest_mut(&mut self) -> &mut Rest {
        &mut self.rest
    }

    fn note(&mut self, what: String) {
        if self.notes.len() < MAX_NOTES || self.notes.contains_key(&what) {
            *self.notes.entry(what).or_default() += 1;
        }
    }

    /// Reads the session's own fields; unknown fields are left over.
    pub(crate) fn session(&mut self, value: &Value) -> Result<Session, Wrong> {
        let mut session: Session = typed(value).map_err(|reason| Wrong { at: "info".to_owned(), reason })?;
        self.left_over(session.id.as_str().to_owned(), value, &session, "info")?;
        // A first message from the future gets the time of its session, which can be from the future too.
        self.last_ms = session.time.created.min(self.latest_ms.saturating_sub(MAX_AHEAD_MS));
        // Nobody here chose these rules, so they only restrict.
        session.permission.iter_mut().flatten().for_each(|rule| rule.by = Some(Principal::Document));
        // A document cannot say who owns a session.
        session.access = None;
        Ok(session)
    }

    /// Reads a message and its parts. Returns `None` if the message is kept unchanged.
    pub(crate) fn message(
        &mut self,
        mut info: Value,
        parts: Vec<Value>,
        at: &str,
    ) -> Result<Option<MessageWithParts>, Wrong> {
        let at_info = format!("{at}.info");
        let wrong = |reason: String| Wrong { at: at_info.clone(), reason };
        let exact = self.strictness == Strictness::Exact;
        let Some(fields) = info.as_object_mut() else {
            if exact {
                return Err(wrong("it is not an object".to_owned()));
            }
            return self.keep_message(info, parts, "a message that is not a JSON object", at);
        };
        fields.insert("sessionID".to_owned(), self.session.as_str().into());
        let role = fields.get("role").and_then(Value::as_str).map(short);
        let known = matches!(role.as_deref(), Some("user" | "assistant"));
        if !known {
            let Some(role) = role.filter(|_| has_id(&info)) else {
                if exact {
                    return Err(wrong("it has no `role` or no `id`".to_owned()));
                }
                return self.keep_message(info, parts, "a message without a role", at);
            };
            return self.keep_message(info, parts, &format!("a message of the unknown role `{role}`"), at);
        }
        let mut mended = info.clone();
        if !exact {
            repair_message(&mut mended, self.last_user.as_ref());
        }
        let mut message: Message = match typed(&mended).and_then(|message: Message| {
            MessageId::parse(message.id().as_str()).map(|_| message).map_err(|error| error.to_string())
        }) {
            Ok(message) => message,
            Err(reason) if exact => return Err(wrong(reason)),
            Err(reason) => return self.keep_message(info, parts, &format!("a message: {reason}"), at),
        };
        let created = message.created();
        if created > self.latest_ms {
            if exact {
                return Err(wrong(
                    "`time.created` is more than a day ahead of this machine's clock".to_owned(),
                ));
            }
            self.note("a message from the future: got a time right after the message before it".to_owned());
            set_created(&mut message, self.last_ms.saturating_add(1));
        }
        self.last_ms = message.created();
        if let Message::User(message) = &message {
            self.last_user = Some(message.id.clone());
        }
        self.left_over(message.id().to_string(), &info, &message, &at_info)?;
        let mut read = Vec::with_capacity(parts.len());
        for (n, part) in parts.into_iter().enumerate() {
            read.extend(self.part(message.id(), part, &format!("{at}.parts[{n}]"))?);
        }
        Ok(Some(MessageWithParts { info: message, parts: read }))
    }

    fn part(&mut self, message: &MessageId, mut value: Value, at: &str) -> Result<Option<Part>, Wrong> {
        let wrong = |reason: String| Wrong { at: at.to_owned(), reason };
        let exact = self.strictness == Strictness::Exact;
        let Some(fields) = value.as_object_mut() else {
            if exact {
                return Err(wrong("it is not an object".to_owned()));
            }
            return self.keep_part(message, value, "a part that is not a JSON object", at);
        };
        fields.insert("sessionID".to_owned(), self.session.as_str().into());
        fields.insert("messageID".to_owned(), message.as_str().into());
        let kind = fields.get("type").and_then(Value::as_str).map(short);
        let id = fields.get("id").and_then(Value::as_str).unwrap_or_default();
        if exact && kind.is_none() {
            return Err(wrong("it has no `type`".to_owned()));
        }
        if exact {
            PartId::parse(id).map_err(|error| wrong(error.to_string()))?;
        }
        let kind = kind.unwrap_or_default();
        if !PARTS.contains(&kind.as_str()) {
            return self.keep_part(message, value, &format!("a part of the unknown type `{kind}`"), at);
        }
        let part: Part = match typed(&value).and_then(|part: Part| {
            PartId::parse(part.id.as_str()).map(|_| part).map_err(|error| error.to_string())
        }) {
            Ok(part) => part,
            Err(reason) if exact => return Err(wrong(reason)),
            Err(reason) => return self.keep_part(message, value, &format!("a `{kind}` part: {reason}"), at),
        };
        self.left_over(part.id.to_string(), &value, &part, at)?;
        Ok(Some(part))
    }

    fn keep_message(
        &mut self,
        info: Value,
        parts: Vec<Value>,
        what: &str,
        at: &str,
    ) -> Result<Option<MessageWithParts>, Wrong> {
        self.note(format!("kept as it is: {what}"));
        self.rest
            .keep_message(json!({ "info": info, "parts": parts }))
            .map_err(|reason| Wrong { at: at.to_owned(), reason })?;
        Ok(None)
    }

    fn keep_part(
        &mut self,
        message: &MessageId,
        part: Value,
        what: &str,
        at: &str,
    ) -> Result<Option<Part>, Wrong> {
        self.note(format!("kept as it is: {what}"));
        self.rest.keep_part(message, part).map_err(|reason| Wrong { at: at.to_owned(), reason })?;
        Ok(None)
    }

    /// Keeps the fields of `original` that our value lacks.
    fn left_over(
        &mut self,
        id: String,
        original: &Value,
        ours: &impl Serialize,
        at: &str,
    ) -> Result<(), Wrong> {
        let wrong = |reason: String| Wrong { at: at.to_owned(), reason };
        let ours = serde_json::to_value(ours).map_err(|error| wrong(error.to_string()))?;
        let mut fields = Map::new();
        differences(original, &ours, &mut String::new(), &mut fields);
        if !fields.is_empty() {
            self.rest.keep_fields(id, fields).map_err(wrong)?;
        }
        Ok(())
    }
}

fn set_created(message: &mut Message, created: u64) {
    match message {
        Message::User(message) => message.time.created = created,
        Message::Assistant(message) => message.time.created = created,
    }
}

fn has_id(info: &Value) -> bool {
    info.get("id").and_then(Value::as_str).is_some_and(|id| MessageId::parse(id).is_ok())
}

fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_NAME_CHARS).collect()
}

fn typed<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        if path == "." { error.inner().to_string() } else { format!("`{path}`: {}", error.inner()) }
    })
}

/// Collects the fields of `original` that `ours` lacks, by JSON pointer.
fn differences(original: &Value, ours: &Value, pointer: &mut String, found: &mut Map) {
    let length = pointer.len();
    match (original, ours) {
        (Value::Object(original), Value::Object(ours)) => {
            for (key, value) in original {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                match ours.get(key) {
                    Some(ours) => differences(value, ours, pointer, found),
                    None => drop(found.insert(pointer.clone(), value.clone())),
                }
                pointer.truncate(length);
            }
        }
        (Value::Array(original), Value::Array(ours)) => {
            for (n, (value, ours)) in original.iter().zip(ours).enumerate() {
                pointer.push('/');
                pointer.push_str(&n.to_string());
                differences(value, ours, pointer, found);
                pointer.truncate(length);
            }
        }
        _ => {}
    }
}

/// Adds the fields that older versions did not write.
fn repair_message(info: &mut Value, last_user: Option<&MessageId>) {
    let Some(fields) = info.as_object_mut() else { return };
    let absent = |fields: &Map, key: &str| fields.get(key).is_none_or(Value::is_null);
    let text = |fields: &Map, key: &str, otherwise: &str| {
        fields.get(key).and_then(Value::as_str).unwrap_or(otherwise).to_owned()
    };
    let agent = {
        let mode = text(fields, "mode", "build");
        text(fields, "agent", &mode)
    };
    let model = (text(fields, "providerID", "unknown"), text(fields, "modelID", "unknown"));
    let mut fill = vec![("agent", json!(agent))];
    if fields.get("role").and_then(Value::as_str) == Some("user") {
        fill.push(("model", json!({ "providerID": model.0, "modelID": model.1 })));
    } else {
        let parent = last_user.map_or("msg_unknown", MessageId::as_str);
        fill.extend([
            ("parentID", json!(parent)),
            ("providerID", json!(model.0)),
            ("modelID", json!(model.1)),
            ("mode", json!(agent)),
            ("path", json!({ "cwd": "/", "root": "/" })),
            ("cost", json!(0)),
            ("tokens", no_tokens()),
        ]);
    }
    for (key, value) in fill {
        if absent(fields, key) {
            fields.insert(key.to_owned(), value);
        }
    }
    if let Some(tokens) = fields.get_mut("tokens") {
        fill_tokens(tokens);
    }
}

fn no_tokens() -> Value {
    json!({ "input": 0, "output": 0, "reasoning": 0, "cache": { "read": 0, "write": 0 } })
}

fn fill_tokens(tokens: &mut Value) {
    let (Some(tokens), Value::Object(none)) = (tokens.as_object_mut(), no_tokens()) else { return };
    for (key, value) in none {
        match (tokens.get_mut(&key), value) {
            (Some(Value::Object(there)), Value::Object(value)) => {
                for (key, value) in value {
                    there.entry(key).or_insert(value);
                }
            }
            (Some(there), value) if there.is_null() => *there = value,
            (Some(_), _) => {}
            (None, value) => drop(tokens.insert(key, value)),
        }
    }
}

/// Adds the session fields that older installations did not store.
pub(crate) fn repair_session(info: &mut Value) {
    let Some(fields) = info.as_object_mut() else { return };
    let created =
        fields.get("time").and_then(|time| time.get("created")).and_then(Value::as_u64).unwrap_or(0);
    let id = fields.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    for (key, value) in [
        ("slug", json!(id)),
        ("projectID", json!("global")),
        ("directory", json!("/")),
        ("title", json!("Untitled")),
        ("version", json!("unknown")),
        ("time", json!({})),
        ("tokens", no_tokens()),
    ] {
        fields.entry(key).or_insert(value);
    }
    if let Some(time) = fields.get_mut("time").and_then(Value::as_object_mut) {
        for key in ["created", "updated"] {
            time.entry(key).or_insert(created.into());
        }
    }
    if let Some(tokens) = fields.get_mut("tokens") {
        fill_tokens(tokens);
    }
    if let Some(Value::Object(summary)) = fields.get_mut("summary") {
        for key in ["additions", "deletions", "files"] {
            summary.entry(key).or_insert(json!(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(original: Value, ours: Value, expected: Value) {
        let mut found = Map::new();
        differences(&original, &ours, &mut String::new(), &mut found);
        assert_eq!(Value::Object(found), expected);
    }

    #[test]
    fn missing_fields_are_found_by_their_pointer() {
        check(json!({"a": 1}), json!({"a": 1.0}), json!({}));
        check(json!({"a": 1, "b": null}), json!({"a": 1}), json!({"/b": null}));
        check(
            json!({"d": [{"x": 1}, {"y/z~": {"k": 2}}]}),
            json!({"d": [{"x": 1}, {}]}),
            json!({"/d/1/y~1z~0": {"k": 2}}),
        );
    }

    fn reader(strictness: Strictness) -> Reader {
        Reader::new(SessionId::parse("ses_1").unwrap(), strictness)
    }

    fn user() -> Value {
        json!({"id": "msg_1", "role": "user", "time": {"created": 1}, "agent": "build",
            "model": {"providerID": "p", "modelID": "m"}, "mood": "sunny"})
    }

    /// A message from the user with another time.
    fn at(created: u64) -> Value {
        let mut user = user();
        user["time"]["created"] = created.into();
        user
    }

    #[test]
    fn a_message_of_an_installation_from_the_future_gets_the_time_of_its_neighbour() {
        let mut reader = reader(Strictness::Lenient);
        let tomorrow = Clock::system().now_ms() + MAX_AHEAD_MS / 2;
        for (read, stored) in [(5, 5), (253_402_300_799_000, 6), (u64::MAX >> 12, 7), (tomorrow, tomorrow)] {
            let message = reader.message(at(read), vec![], "").unwrap().unwrap();
            assert_eq!(message.info.created(), stored);
        }
        let info = json!({"id": "ses_1", "slug": "s", "projectID": "global", "directory": "/", "title": "t", "version": "1",
            "time": {"created": 90, "updated": 90}});
        reader.session(&info).unwrap();
        let message = reader.message(at(253_402_300_799_000), vec![], "").unwrap().unwrap();
        assert_eq!(message.info.created(), 91);
        let note = "a message from the future: got a time right after the message before it (3 times)";
        assert_eq!(reader.into_rest().1, [note]);
    }

    #[test]
    fn unknown_parts_and_fields_are_kept_and_named() {
        let mut reader = reader(Strictness::Exact);
        let parts = vec![
            json!({"id": "prt_1", "type": "text", "text": "hi", "tone": [1]}),
            json!({"id": "prt_2", "type": "hologram", "depth": 3}),
        ];
        let read = reader.message(user(), parts, "messages[0]").unwrap().unwrap();
        assert_eq!(read.parts.len(), 1);
        let (rest, notes) = reader.into_rest();
        let rest = serde_json::to_value(rest).unwrap();
        assert_eq!(rest["fields"], json!({"msg_1": {"/mood": "sunny"}, "prt_1": {"/tone": [1]}}));
        assert_eq!(rest["parts"]["msg_1"][0]["depth"], 3);
        assert_eq!(notes, ["kept as it is: a part of the unknown type `hologram`"]);
    }

    #[test]
    fn an_invalid_item_is_an_error_with_its_path() {
        for (info, parts, at, reason) in [
            (json!(3), vec![], "messages[7].info", "not an object"),
            (json!({"role": "user"}), vec![], "messages[7].info", "missing field"),
            (json!({"id": "msg_1"}), vec![], "messages[7].info", "no `role`"),
            (user(), vec![json!([])], "messages[7].parts[0]", "not an object"),
            (
                user(),
                vec![json!({"id": "prt_1", "type": "text"})],
                "messages[7].parts[0]",
                "missing field `text`",
            ),
            (
                user(),
                vec![json!({"id": "../x", "type": "text", "text": ""})],
                "messages[7].parts[0]",
                "valid id",
            ),
            (user(), vec![json!({"id": "x", "type": "new"})], "messages[7].parts[0]", "valid id"),
            (at(253_402_300_799_000), vec![], "messages[7].info", "a day ahead"),
        ] {
            let wrong = reader(Strictness::Exact).message(info, parts, "messages[7]").unwrap_err();
            assert_eq!(wrong.at, at);
            assert!(wrong.reason.contains(reason), "{}", wrong.reason);
        }
    }

    #[test]
    fn an_older_message_is_repaired_and_a_broken_one_kept() {
        let mut reader = reader(Strictness::Lenient);
        let old = json!({"id": "msg_2", "role": "assistant", "time": {"created": 1}, "providerID": "p",
            "modelID": "m", "tokens": {"input": 1, "output": 2, "reasoning": 0}});
        let read = reader.message(old, vec![json!("{broken")], "").unwrap().unwrap();
        let Message::Assistant(message) = read.info else { panic!("an assistant's") };
        assert_eq!(
            (message.agent.as_str(), message.mode.as_str(), message.tokens.input),
            ("build", "build", 1)
        );
        assert!(
            reader.message(json!({"id": "msg_3", "role": "user", "time": 7}), vec![], "").unwrap().is_none()
        );
        assert_eq!(reader.into_rest().1.len(), 2);
    }
}
