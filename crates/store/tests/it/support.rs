//! Values for the tests.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use codewright_proto::{
    Clock, Event, Ids, Message, MessageId, MessageWithParts, Part, PartBody, PartId, Project, ProjectId,
    ProjectTime, Session, SessionId, TextPart,
};
use codewright_store::{Published, Store, Subscription};
use serde::Deserialize;
use serde_json::{Value, json};

/// A time in 2026, in milliseconds since 1970.
pub(crate) const NOW_MS: u64 = 1_795_293_409_117;

pub(crate) fn stamps() -> (Ids, Clock) {
    let clock = Clock::stepping(NOW_MS, 1);
    (Ids::new(clock.clone()), clock)
}

pub(crate) async fn open(path: &Path) -> Store {
    let (ids, clock) = stamps();
    let store = Store::open(path, ids, clock).await.expect("the store opens");
    store.save_project(project("p1")).await.expect("the project is saved");
    store
}

pub(crate) fn project(id: &str) -> Project {
    Project {
        id: ProjectId(id.into()),
        worktree: format!("/{id}"),
        vcs: Some("git".to_owned()),
        name: None,
        icon: None,
        commands: None,
        time: ProjectTime { created: 1, updated: 2, initialized: None },
        sandboxes: vec!["/elsewhere".to_owned()],
    }
}

pub(crate) fn session(id: &str) -> Session {
    serde_json::from_value(json!({
        "id": id, "slug": "shiny-wizard", "projectID": "p1", "directory": "/p1", "title": "A title",
        "version": "1.0.0", "time": {"created": 5, "updated": 5},
    }))
    .expect("a session")
}

pub(crate) fn session_id(id: &str) -> SessionId {
    SessionId::parse(id).expect("a session id")
}

pub(crate) fn message_id(id: &str) -> MessageId {
    MessageId::parse(id).expect("a message id")
}

pub(crate) fn created(id: &str) -> Event {
    Event::SessionCreated { session_id: session_id(id), info: session(id) }
}

pub(crate) fn updated(session: Session) -> Event {
    Event::SessionUpdated { session_id: session.id.clone(), info: session }
}

pub(crate) fn deleted(id: &str) -> Event {
    Event::SessionDeleted { session_id: session_id(id), info: session(id) }
}

pub(crate) fn message(session: &str, id: &str, created: u64) -> Event {
    let info: Message = serde_json::from_value(json!({
        "id": id, "sessionID": session, "role": "user", "time": {"created": created},
        "agent": "build", "model": {"providerID": "p", "modelID": "m"},
    }))
    .expect("a message");
    Event::MessageUpdated { session_id: session_id(session), info }
}

pub(crate) fn part(session: &str, message: &str, id: &str, text: impl Into<Arc<str>>) -> Event {
    let body = PartBody::Text(TextPart { text: text.into(), ..TextPart::default() });
    Event::PartUpdated {
        session_id: session_id(session),
        part: Part {
            id: PartId::parse(id).expect("a part id"),
            session_id: session_id(session),
            message_id: message_id(message),
            body,
        },
        time: 7,
    }
}

pub(crate) fn asked(session: &str, id: &str) -> Event {
    let request = json!({
        "id": id, "sessionID": session, "permission": "bash", "patterns": ["ls *"],
        "metadata": {"command": "ls"}, "always": ["ls *"],
    });
    Event::PermissionAsked(serde_json::from_value(request).expect("a request"))
}

pub(crate) fn replied(session: &str, id: &str) -> Event {
    let reply = json!({"type": "permission.replied",
        "properties": {"sessionID": session, "requestID": id, "reply": "once"}});
    serde_json::from_value(reply).expect("a reply")
}

/// A recorded session from API responses.
#[derive(Deserialize)]
pub(crate) struct Recorded {
    pub(crate) session: Session,
    pub(crate) messages: Vec<MessageWithParts>,
}

impl Recorded {
    /// The events that create it.
    pub(crate) fn events(self) -> Vec<Event> {
        let session_id = self.session.id.clone();
        let mut events = vec![Event::SessionCreated { session_id: session_id.clone(), info: self.session }];
        for MessageWithParts { info, parts } in self.messages {
            events.push(Event::MessageUpdated { session_id: session_id.clone(), info });
            for part in parts {
                events.push(Event::PartUpdated { session_id: session_id.clone(), part, time: NOW_MS });
            }
        }
        events
    }
}

/// All rows of all projections, without the log.
pub(crate) fn rows(path: &Path) -> Vec<String> {
    let connection = rusqlite::Connection::open(path).expect("the file opens");
    let mut found = Vec::new();
    for table in ["session", "message", "part", "permission_request", "todo"] {
        let mut statement =
            connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2, 3, 4")).expect("a table");
        let columns = statement.column_count();
        let mut rows = statement.query([]).expect("rows");
        while let Some(row) = rows.next().expect("a row") {
            let values: Vec<_> = (0..columns).map(|at| format!("{:?}", row.get_ref_unwrap(at))).collect();
            found.push(format!("{table}: {}", values.join(", ")));
        }
    }
    found
}

/// The next item of the feed, with a time limit.
pub(crate) async fn next(subscription: &mut Subscription) -> Published {
    let next = tokio::time::timeout(Duration::from_secs(30), subscription.next());
    next.await.expect("an item comes").expect("the feed is open")
}

/// Parses JSON into the form of [`to_value`].
pub(crate) fn parsed(json: &[u8]) -> Value {
    to_value(&serde_json::from_slice::<Value>(json).expect("JSON"))
}

pub(crate) fn to_value(value: &impl serde::Serialize) -> Value {
    plain(serde_json::to_value(value).expect("JSON"))
}

/// Converts `1.0` to `1`, because JSON does not distinguish them and `Value` does.
pub(crate) fn plain(mut value: Value) -> Value {
    match &mut value {
        Value::Number(number) => {
            if let Some(whole) = number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e15)
            {
                value = Value::from(whole as i64);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|item| *item = plain(item.take())),
        Value::Object(map) => map.values_mut().for_each(|item| *item = plain(item.take())),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
    value
}
