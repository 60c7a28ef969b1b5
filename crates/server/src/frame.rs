//! What a stream sends: frames of `data:` and, where a reader can resume, `id:`.
//!
//! A notice becomes JSON once, however many streams send it: they all send the
//! same few newest ones, so those are remembered.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bytes::{BufMut, Bytes, BytesMut};
use codewright_engine::Published;
use codewright_proto::{Envelope, Event, EventId, Fact, Ids, Notice, Signal};
use serde_json::{Value, json};

use crate::directories::Home;

/// How many payloads are remembered.
const MAX_PAYLOADS: usize = 64;
/// A longer payload is written anew for every stream.
const MAX_PAYLOAD_BYTES: usize = 64 * 1024;

/// What comes before the content of a notice.
const PROPERTIES: &[u8] = b"\"properties\":";

/// The newest notices as JSON.
#[derive(Default)]
pub(crate) struct Payloads(Mutex<VecDeque<(EventId, Bytes)>>);

impl Payloads {
    /// The JSON of a notice.
    pub(crate) fn of(&self, published: &Published) -> Bytes {
        let id = match published {
            Published::Event(envelope) => &envelope.id,
            Published::Signal { id, .. } => id,
        };
        // Every change of the queue is one call, so a poisoned queue is whole.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, payload)) = known.iter().rev().find(|(known, _)| known == id) {
            return payload.clone();
        }
        // Written inside the lock, so that the other streams find it instead of writing it too.
        let payload = Bytes::from(written(published));
        if payload.len() <= MAX_PAYLOAD_BYTES {
            if known.len() >= MAX_PAYLOADS {
                known.pop_front();
            }
            known.push_back((id.clone(), payload.clone()));
        }
        payload
    }
}

/// The JSON of a notice as clients are told it.
fn written(published: &Published) -> Vec<u8> {
    const IS_JSON: &str = "the vocabulary is JSON";
    let Published::Event(envelope) = published else { return serde_json::to_vec(published).expect(IS_JSON) };
    match &envelope.event {
        // What the model is told with a refusal is between the user who wrote it and the model.
        Event::PermissionReplied { session_id, request_id, reply, message: Some(_) } => {
            let (session_id, request_id) = (session_id.clone(), request_id.clone());
            let event = Event::PermissionReplied { session_id, request_id, reply: *reply, message: None };
            let id = envelope.id.clone();
            serde_json::to_vec(&Notice { id, fact: Fact::Event(event) }).expect(IS_JSON)
        }
        _ => serde_json::to_vec(published).expect(IS_JSON),
    }
}

/// A frame of `GET /event`.
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

/// A frame of `GET /global/event`.
pub(crate) fn global(payload: &[u8], home: Option<&Home>) -> Bytes {
    let mut frame = BytesMut::with_capacity(payload.len() + 200);
    frame.put_slice(b"data: {");
    if let Some(home) = home {
        let place = format!("\"directory\":{},\"project\":{},", json!(home.directory), json!(home.project));
        frame.put_slice(place.as_bytes());
    }
    frame.put_slice(b"\"payload\":");
    frame.put_slice(payload);
    frame.put_slice(b"}\n\n");
    frame.freeze()
}

/// A frame of `GET /global/event` about a directory.
pub(crate) fn at(payload: &[u8], directory: &str) -> Bytes {
    let mut frame = BytesMut::with_capacity(payload.len() + 200);
    frame.put_slice(format!("data: {{\"directory\":{},\"payload\":", json!(directory)).as_bytes());
    frame.put_slice(payload);
    frame.put_slice(b"}\n\n");
    frame.freeze()
}

/// A stored event on `GET /global/event`: as it is, and as whoever copies sessions takes it.
pub(crate) fn twice(payload: &[u8], envelope: &Envelope, home: Option<&Home>) -> Bytes {
    let plain = global(payload, home);
    // Neither an id nor a name holds the key, so its first place is the right one.
    let found = payload.windows(PROPERTIES.len()).position(|at| at == PROPERTIES);
    let (Some(at), true) = (found, is_copied(&envelope.event)) else { return plain };
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
    let twin = [head.as_bytes(), data, tail.as_bytes()].concat();
    let mut both = BytesMut::from(&plain[..]);
    both.extend_from_slice(&global(&twin, home));
    both.freeze()
}

/// A frame of `GET /api/event`.
pub(crate) fn v2(payload: &[u8], published: &Published, directory: Option<&str>) -> Bytes {
    let mut more = String::new();
    if let Published::Event(envelope) = published {
        let Envelope { seq, event, .. } = &**envelope;
        let (id, version) = (json!(event.session_id()), event.version());
        more.push_str(&format!("\"durable\":{{\"aggregateID\":{id},\"seq\":{seq},\"version\":{version}}},"));
    }
    if let Some(directory) = directory {
        more.push_str(&format!("\"location\":{{\"directory\":{}}},", json!(directory)));
    }
    renamed(payload, &more)
}

/// A newer event about a session in a directory.
pub(crate) fn told(mut event: Value, directory: Option<&str>) -> Bytes {
    if let Some(directory) = directory {
        event["location"] = json!({ "directory": directory });
    }
    Bytes::from(format!("data: {event}\n\n"))
}

/// A notice whose content is called `data`, with more before that.
pub(crate) fn renamed(payload: &[u8], more: &str) -> Bytes {
    let mut frame = BytesMut::with_capacity(payload.len() + more.len() + 16);
    frame.put_slice(b"data: ");
    // Neither an id nor a name holds the key, so its first place is the right one.
    match payload.windows(PROPERTIES.len()).position(|at| at == PROPERTIES) {
        Some(at) => {
            frame.put_slice(&payload[..at]);
            frame.put_slice(more.as_bytes());
            frame.put_slice(b"\"data\":");
            frame.put_slice(&payload[at + PROPERTIES.len()..]);
        }
        None => frame.put_slice(payload),
    }
    frame.put_slice(b"\n\n");
    frame.freeze()
}

/// Whether an event is part of what makes up a session elsewhere.
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

/// What the server itself says on a stream.
pub(crate) fn own(ids: &Ids, signal: Signal) -> Vec<u8> {
    let notice = Notice { id: ids.event(), fact: Fact::Signal(signal) };
    serde_json::to_vec(&notice).expect("the vocabulary is JSON")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use codewright_proto::{Clock, ProjectId};

    use super::*;

    #[test]
    fn frames_have_the_recorded_form() {
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
    fn a_notice_is_written_once_and_few_are_remembered() {
        let ids = Ids::seeded(Clock::stepping(1, 1), 1);
        let payloads = Payloads::default();
        let edited = |file: &str| Published::Signal {
            id: ids.event(),
            signal: Arc::new(Signal::FileEdited { directory: String::new(), file: file.to_owned() }),
        };
        let first = edited("/a");
        let written = payloads.of(&first);
        assert_eq!(payloads.of(&first).as_ptr(), written.as_ptr());
        assert!(written.ends_with(br#""type":"file.edited","properties":{"file":"/a"}}"#), "{written:?}");
        for _ in 0..2 * MAX_PAYLOADS {
            payloads.of(&edited("/b"));
        }
        assert_ne!(payloads.of(&first).as_ptr(), written.as_ptr());
        assert!(payloads.0.lock().unwrap().len() <= MAX_PAYLOADS);
        let long = edited(&"x".repeat(MAX_PAYLOAD_BYTES));
        assert_ne!(payloads.of(&long).as_ptr(), payloads.of(&long).as_ptr());
    }
}
