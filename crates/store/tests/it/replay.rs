//! The projections can always be rebuilt from the log.

use std::collections::BTreeMap;

use codewright_proto::{Event, PartId, Todo};
use proptest::prelude::*;

use crate::support::*;

/// A change of the store, often an invalid one.
#[derive(Debug, Clone)]
enum Step {
    Create(u8),
    Change(u8, String, f64),
    Delete(u8),
    Message(u8, u8, u64),
    RemoveMessage(u8, u8),
    Part(u8, u8, u8, String),
    RemovePart(u8, u8, u8),
    Ask(u8, u8),
    Reply(u8, u8),
    Todo(u8, Vec<String>),
    Revert(u8, u8),
}

fn step() -> impl Strategy<Value = Step> {
    let (session, message, part) = (0..3_u8, 0..4_u8, 0..4_u8);
    prop_oneof![
        2 => session.clone().prop_map(Step::Create),
        3 => (session.clone(), ".{0,8}", 0.0..9.0).prop_map(|(s, title, cost)| Step::Change(s, title, cost)),
        1 => session.clone().prop_map(Step::Delete),
        6 => (session.clone(), message.clone(), 0..9_u64).prop_map(|(s, m, time)| Step::Message(s, m, time)),
        1 => (session.clone(), message.clone()).prop_map(|(s, m)| Step::RemoveMessage(s, m)),
        8 => (session.clone(), message.clone(), part.clone(), ".{0,20}")
            .prop_map(|(s, m, p, text)| Step::Part(s, m, p, text)),
        1 => (session.clone(), message, part.clone()).prop_map(|(s, m, p)| Step::RemovePart(s, m, p)),
        1 => (session.clone(), part.clone()).prop_map(|(s, r)| Step::Ask(s, r)),
        1 => (session.clone(), part).prop_map(|(s, r)| Step::Reply(s, r)),
        2 => (session.clone(), proptest::collection::vec(".{0,6}", 0..4)).prop_map(|(s, todos)| Step::Todo(s, todos)),
        1 => (session, 0..4_u8).prop_map(|(s, m)| Step::Revert(s, m)),
    ]
}

/// Ids repeat across sessions, so that there are some conflicts.
fn event(step: &Step) -> Event {
    let id = |session: u8| format!("ses_{session}");
    let msg = |session: u8, message: u8| format!("msg_{}_{message}", session / 2);
    let prt = |session: u8, part: u8| format!("prt_{}_{part}", session / 2);
    match step {
        Step::Create(s) => created(&id(*s)),
        Step::Change(s, title, cost) => {
            let mut info = session(&id(*s));
            info.cost = *cost;
            info.title.clone_from(title);
            updated(info)
        }
        Step::Delete(s) => deleted(&id(*s)),
        Step::Message(s, m, time) => message(&id(*s), &msg(*s, *m), *time),
        Step::RemoveMessage(s, m) => {
            Event::MessageRemoved { session_id: session_id(&id(*s)), message_id: message_id(&msg(*s, *m)) }
        }
        Step::Part(s, m, p, text) => part(&id(*s), &msg(*s, *m), &prt(*s, *p), text.as_str()),
        Step::RemovePart(s, m, p) => Event::PartRemoved {
            session_id: session_id(&id(*s)),
            message_id: message_id(&msg(*s, *m)),
            part_id: PartId::parse(&prt(*s, *p)).expect("an id"),
        },
        Step::Ask(s, r) => asked(&id(*s), &format!("per_{r}")),
        Step::Todo(s, todos) => {
            let todo = |content: &String| Todo {
                content: content.clone(),
                status: "pending".to_owned(),
                priority: "high".to_owned(),
            };
            Event::TodoUpdated { session_id: session_id(&id(*s)), todos: todos.iter().map(todo).collect() }
        }
        Step::Revert(s, m) => {
            let mut info = to_value(&session(&id(*s)));
            info["revert"] = serde_json::json!({"messageID": msg(*s, *m)});
            updated(serde_json::from_value(info).expect("a session"))
        }
        Step::Reply(s, r) => replied(&id(*s), &format!("per_{r}")),
    }
}

/// The expected state after the accepted events: each part's text by message and session.
#[derive(Default)]
struct Model {
    sessions: BTreeMap<String, String>,
    messages: BTreeMap<String, String>,
    parts: BTreeMap<String, (String, String)>,
}

impl Model {
    fn apply(&mut self, event: &Event) {
        match event {
            Event::SessionCreated { session_id, info } | Event::SessionUpdated { session_id, info } => {
                self.sessions.insert(session_id.to_string(), info.title.clone());
            }
            Event::SessionDeleted { session_id, .. } => {
                self.sessions.remove(session_id.as_str());
                self.messages.retain(|_, of| of != session_id.as_str());
            }
            Event::MessageUpdated { session_id, info } => {
                self.messages.insert(info.id().to_string(), session_id.to_string());
            }
            Event::MessageRemoved { session_id, message_id } => {
                self.messages.retain(|id, of| !(id == message_id.as_str() && of == session_id.as_str()));
            }
            Event::PartUpdated { part, .. } => {
                let text = to_value(&part.body)["text"].to_string();
                self.parts.insert(part.id.to_string(), (part.message_id.to_string(), text));
            }
            Event::PartRemoved { session_id, message_id, part_id } => {
                let held = self.messages.get(message_id.as_str()).is_some_and(|of| of == session_id.as_str());
                self.parts
                    .retain(|id, (of, _)| !(held && id == part_id.as_str() && of == message_id.as_str()));
            }
            Event::TodoUpdated { .. } | Event::PermissionAsked(_) | Event::PermissionReplied { .. } => {}
        }
        self.parts.retain(|_, (of, _)| self.messages.contains_key(of));
    }
}

async fn live_and_replayed(steps: &[Vec<Step>]) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path).await;
    let mut model = Model::default();
    let mut accepted = 0;
    for append in steps {
        let events: Vec<_> = append.iter().map(event).collect();
        // A failed append changes nothing, which the comparisons below check.
        if store.append(events.clone()).await.is_ok() {
            accepted += events.len() as u64;
            events.iter().for_each(|event| model.apply(event));
        }
    }
    let live = rows(&path);
    let mut parts = BTreeMap::new();
    let mut sessions = BTreeMap::new();
    for session in store.sessions(Default::default()).await.expect("readable") {
        for message in store.transcript(&session.id).await.expect("readable") {
            assert_eq!(
                model.messages.get(message.info.id().as_str()).map(String::as_str),
                Some(session.id.as_str())
            );
            for part in message.parts {
                let text = to_value(&part.body)["text"].to_string();
                parts.insert(part.id.to_string(), (part.message_id.to_string(), text));
            }
        }
        sessions.insert(session.id.to_string(), session.title);
    }
    assert_eq!(sessions, model.sessions);
    assert_eq!(parts, model.parts);

    assert_eq!(store.replay().await.expect("replayed"), accepted);
    assert_eq!(rows(&path), live);
    store.close().await.expect("closed");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_replayed_log_gives_the_live_rows(
        steps in proptest::collection::vec(proptest::collection::vec(step(), 1..4), 1..60)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        // Most steps need sessions, so two exist from the start.
        let steps: Vec<_> = [vec![Step::Create(0), Step::Create(1)]].into_iter().chain(steps).collect();
        runtime.block_on(live_and_replayed(&steps));
    }
}

#[tokio::test]
async fn a_failed_replay_changes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path).await;
    store.append(vec![created("ses_1"), message("ses_1", "msg_1", 5)]).await.expect("stored");
    let live = rows(&path);
    let connection = rusqlite::Connection::open(&path).expect("opens");
    connection.execute("UPDATE event SET type = 'message.updated.9' WHERE seq = 1", []).expect("changed");
    let error = store.replay().await.expect_err("an event of the future");
    assert!(error.to_string().contains("message.updated.9"), "{error}");
    assert_eq!(rows(&path), live);
}
