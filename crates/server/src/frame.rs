//! The frames of event streams: `data:` and, if the client can resume, `id:`.
//!
//! A notice is serialized once and shared by all streams. They all send the newest few notices, so
//! a small cache of their JSON is enough.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bytes::{BufMut, Bytes, BytesMut};
use codewright_engine::Published;
use codewright_proto::{Envelope, Event, EventId, Fact, Ids, Notice, Replier, Signal};
use serde_json::{Value, json};

use crate::directories::Home;

/// The maximum number of cached payloads.
const MAX_PAYLOADS: usize = 64;
/// The maximum length of a cached payload. A longer one is serialized for each stream.
const MAX_PAYLOAD_BYTES: usize = 64 * 1024;

/// The JSON before the content of a notice.
const PROPERTIES: &[u8] = b"\"properties\":";

/// A cache of the newest notices as JSON.
#[derive(Default)]
pub(crate) struct Payloads(Mutex<VecDeque<(EventId, Bytes)>>);

impl Payloads {
    /// Returns the JSON of a notice.
    pub(crate) fn of(&self, published: &Published) -> Bytes {
        let id = match published {
            Published::Event(envelope) => &envelope.id,
            Published::Signal { id, .. } => id,
        };
        // Each change of the queue is a single call, so a poisoned queue is still consistent.
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, payload)) = cached.iter().rev().find(|(cached, _)| cached == id) {
            return payload.clone();
        }
        // Serialized inside the lock, so that the other streams find it instead of serializing it again.
        let payload = Bytes::from(serialize(published));
        if payload.len() <= MAX_PAYLOAD_BYTES {
            if cached.len() >= MAX_PAYLOADS {
                cached.pop_front();
            }
            cached.push_back((id.clone(), payload.clone()));
        }
        payload
    }
}

/// Serializes a notice for clients.
fn serialize(published: &Published) -> Vec<u8> {
    const IS_JSON: &str = "all notices can be serialized";
    let Published::Event(envelope) = published else { return serde_json::to_vec(published).expect(IS_JSON) };
    match &envelope.event {
        // The message of a rejection is meant for the model only, not for other clients. The server that waits uses the
        // wider patterns.
        Event::PermissionReplied { session_id, request_id, reply, by, .. } => {
            let (session_id, request_id) = (session_id.clone(), request_id.clone());
            let by = by.clone().filter(Replier::is_shown);
            let (reply, message, wider) = (*reply, None, Vec::new());
            let event = Event::PermissionReplied { session_id, request_id, reply, message, wider, by };
            let id = envelope.id.clone();
            serde_json::to_vec(&Notice { id, fact: Fact::Event(event) }).expect(IS_JSON)
        }
        _ => serde_json::to_vec(published).expect(IS_JSON),
    }
}

/// Returns a frame of `GET /event`.
pub(crate) fn local(payload: &[u8], position: Option<u64>) -> Bytes {
    let mut frame = BytesMut::with_capacity(payload.len() + 40);
    if let Some(position) = position {
        frame.extend_from_slice(format!("id: {position}\n").as_bytes());
    }
    frame.put_slice(b"data: ");
    frame.put_slice(payload);
    frame.put_slice(b"\n\n");
    frame.freeze()
}

/// Returns a frame of `GET /global/event`.
pub(crate) fn global(payload: &[u8], home: Option<&Home>) -> Bytes {
    let mut frame = BytesMut::with_capacity(payload.len() + 200);
    frame.put_slice(b"data: {");
    if let Some(home) = home {
        let location =
            format!("\"directory\":{},\"project\":{},", json!(home.directory), json!(home.project));
        frame.put_slice(location.as_bytes());
    }
    frame.put_slice(b"\"payload\":");
    frame.put_slice(payload);
    frame.put_slice(b"}\n\n");
    frame.freeze()
}

/// Returns a frame of `GET /global/event` for a directory without a project.
pub(crate) fn at(payload: &[u8], directory: &str) -> Bytes {
    let mut frame = BytesMut::with_capacity(payload.len() + 200);
    frame.put_slice(format!("data: {{\"directory\":{},\"payload\":", json!(directory)).as_bytes());
    frame.put_slice(payload);
    frame.put_slice(b"}\n\n");
    frame.freeze()
}

/// Returns the `sync` frame of a stored event for clients that copy sessions, if they need the event.
pub(crate) fn sync_event(payload: &[u8], envelope: &Envelope, home: Option<&Home>) -> Option<Bytes> {
    if !is_copied(&envelope.event) {
        return None;
    }
    let at = properties(payload)?;
    let data = &payload[at + PROPERTIES.len()..payload.len().saturating_sub(1)];
    let Envelope { id, seq, event, .. } = envelope;
    let head = format!(
        "{{\"type\":\"sync\",\"syncEvent\":{{\"id\":{},\"type\":\"{}.{}\",\"seq\":{seq},\"aggregateID\":{},\"data\":",
        json!(id),
        event.name(),
        event.version(),
        json!(event.session_id()),
    );
    let tail = format!("}},\"id\":{}}}", json!(id));
    Some(global(&[head.as_bytes(), data, tail.as_bytes()].concat(), home))
}

/// Returns the position of the content of a notice.
fn properties(payload: &[u8]) -> Option<usize> {
    // Ids and names cannot contain the key, so its first occurrence is the right one.
    payload.windows(PROPERTIES.len()).position(|at| at == PROPERTIES)
}

/// Returns the JSON of a notice with its former name, if it has one.
pub(crate) fn with_legacy_name(payload: &[u8]) -> Option<Bytes> {
    const NAMES: [&[u8]; 2] = [b"\"type\":\"message.part.updated\"", b"\"type\":\"message.part.delta\""];
    const PREFIX: &[u8] = b"\"type\":\"";
    const DROPPED: &[u8] = b"message.";
    let head = &payload[..properties(payload)?];
    let at = NAMES.iter().find_map(|name| head.windows(name.len()).position(|part| part == *name))?;
    let at = at + PREFIX.len();
    Some([&payload[..at], &payload[at + DROPPED.len()..]].concat().into())
}

/// Returns a frame of `GET /api/event`.
pub(crate) fn v2(payload: &[u8], published: &Published, directory: Option<&str>) -> Bytes {
    let mut fields = String::new();
    if let Published::Event(envelope) = published {
        let Envelope { seq, event, .. } = &**envelope;
        let (id, version) = (json!(event.session_id()), event.version());
        fields
            .push_str(&format!("\"durable\":{{\"aggregateID\":{id},\"seq\":{seq},\"version\":{version}}},"));
    }
    if let Some(directory) = directory {
        fields.push_str(&format!("\"location\":{{\"directory\":{}}},", json!(directory)));
    }
    with_data(payload, &fields)
}

/// Returns the frame of a v2 event of a session in a directory.
pub(crate) fn v2_event(mut event: Value, directory: Option<&str>) -> Bytes {
    if let Some(directory) = directory {
        event["location"] = json!({ "directory": directory });
    }
    Bytes::from(format!("data: {event}\n\n"))
}

/// Returns the frame of a notice whose content has the key `data`, with additional fields before it.
pub(crate) fn with_data(payload: &[u8], fields: &str) -> Bytes {
    let mut frame = BytesMut::with_capacity(payload.len() + fields.len() + 16);
    frame.put_slice(b"data: ");
    match properties(payload) {
        Some(at) => {
            frame.put_slice(&payload[..at]);
            frame.put_slice(fields.as_bytes());
            frame.put_slice(b"\"data\":");
            frame.put_slice(&payload[at + PROPERTIES.len()..]);
        }
        None => frame.put_slice(payload),
    }
    frame.put_slice(b"\n\n");
    frame.freeze()
}

/// Returns whether clients that copy sessions need the event.
fn is_copied(event: &Event) -> bool {
    match event {
        Event::SessionCreated { .. }
        | Event::SessionUpdated { .. }
        | Event::SessionDeleted { .. }
        | Event::MessageUpdated { .. }
        | Event::MessageRemoved { .. }
        | Event::PartUpdated { .. }
        | Event::PartRemoved { .. } => true,
        Event::TodoUpdated { .. } | Event::PermissionAsked(_) | Event::PermissionReplied { .. } => false,
    }
}

/// Returns the JSON of a signal of the server itself.
pub(crate) fn own(ids: &Ids, signal: Signal) -> Vec<u8> {
    let notice = Notice { id: ids.event(), fact: Fact::Signal(signal) };
    serde_json::to_vec(&notice).expect("all notices can be serialized")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use codewright_proto::{Clock, ProjectId};

    use super::*;

    #[test]
    fn frames_have_the_recorded_format() {
        let home = Home { directory: "/a \"b\"".to_owned(), project: ProjectId::global() };
        assert_eq!(local(b"{}", None), "data: {}\n\n");
        assert_eq!(local(b"{}", Some(7)), "id: 7\ndata: {}\n\n");
        assert_eq!(global(b"{}", None), "data: {\"payload\":{}}\n\n");
        assert_eq!(
            global(b"{}", Some(&home)),
            "data: {\"directory\":\"/a \\\"b\\\"\",\"project\":\"global\",\"payload\":{}}\n\n"
        );
    }

    #[test]
    fn only_part_events_have_a_former_name() {
        let renamed = |payload: &str| with_legacy_name(payload.as_bytes());
        let payload = r#"{"id":"evt_1","type":"message.part.delta","properties":{"delta":"x"}}"#;
        assert_eq!(renamed(payload).unwrap(), payload.replace("message.part", "part"));
        let payload = r#"{"id":"evt_1","type":"message.part.updated","properties":{}}"#;
        assert_eq!(renamed(payload).unwrap(), payload.replace("message.part", "part"));
        for payload in [
            r#"{"id":"evt_1","type":"message.part.removed","properties":{}}"#,
            r#"{"id":"evt_1","type":"message.updated","properties":{"type":"message.part.updated"}}"#,
        ] {
            assert_eq!(renamed(payload), None, "{payload}");
        }
    }

    #[test]
    fn a_notice_is_serialized_once_and_few_are_cached() {
        let ids = Ids::seeded(Clock::stepping(1, 1), 1);
        let payloads = Payloads::default();
        let edited = |file: &str| Published::Signal {
            id: ids.event(),
            signal: Arc::new(Signal::FileEdited { directory: String::new(), file: file.to_owned() }),
            is_from_elsewhere: false,
        };
        let first = edited("/a");
        let payload = payloads.of(&first);
        assert_eq!(payloads.of(&first).as_ptr(), payload.as_ptr());
        assert!(payload.ends_with(br#""type":"file.edited","properties":{"file":"/a"}}"#), "{payload:?}");
        for _ in 0..2 * MAX_PAYLOADS {
            payloads.of(&edited("/b"));
        }
        assert_ne!(payloads.of(&first).as_ptr(), payload.as_ptr());
        assert!(payloads.0.lock().unwrap().len() <= MAX_PAYLOADS);
        let long = edited(&"x".repeat(MAX_PAYLOAD_BYTES));
        assert_ne!(payloads.of(&long).as_ptr(), payloads.of(&long).as_ptr());
    }
}
