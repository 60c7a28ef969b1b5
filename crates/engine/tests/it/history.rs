//! Requests follow the protocol whatever the messages and calls of a session are.

use std::path::Path;

use codewright_proto::{Clock, Event, Fact, Ids, Notice, PromptInput, PromptModel, SessionId};
use codewright_scripted::{Script, Turn};
use codewright_store::Store;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::desk::{DEADLINE, Desk, prompt};

#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Reasoning,
    Call,
    BadCall,
    Nothing,
    Refused,
}

fn turn(kinds: &[Kind]) -> Turn {
    if kinds.iter().any(|kind| matches!(kind, Kind::Refused)) {
        return Turn::http_error(400).body(json!({ "error": { "message": "no" } })).into();
    }
    let mut steps = Turn::steps();
    for kind in kinds {
        steps = match kind {
            Kind::Text => steps.text("words "),
            Kind::Reasoning => steps.reasoning("hm"),
            Kind::Call => steps.tool("glob", json!({ "pattern": "*.none" })),
            Kind::BadCall => steps.tool("no_such_tool", "{broken"),
            Kind::Nothing | Kind::Refused => steps,
        };
    }
    steps.into()
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => Just(Kind::Text),
        2 => Just(Kind::Reasoning),
        3 => Just(Kind::Call),
        1 => Just(Kind::BadCall),
        1 => Just(Kind::Nothing),
        1 => Just(Kind::Refused),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_request_of_any_conversation_is_accepted(turns in prop::collection::vec(prop::collection::vec(kind(), 0..5), 1..6)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let script = turns.iter().fold(Script::new(), |script, kinds| script.turn(turn(kinds)));
            let desk = Desk::with(script.default_turn(Turn::text("enough")), json!({ "permission": { "doom_loop": "allow" } })).await;
            let session = desk.session().await;
            for prompt in ["one", "two", "three"] {
                desk.prompt(&session, prompt).await;
            }
            assert_eq!(desk.server.problems(), Vec::<String>::new());
        });
    }
}

/// One model for each wire protocol.
const MODELS: [(&str, &str); 4] = [
    ("mock", "plain-model"),
    ("mockanth", "claude-mock"),
    ("mockgoogle", "gemini-3-mock"),
    ("mockopenai", "gpt-5-mock"),
];
/// Later than all recordings, so that a new prompt comes last.
const LATER: u64 = 1_900_000_000_000;

/// Returns the log of sessions from recorded sessions and event streams.
fn recorded() -> Vec<(String, Vec<Value>)> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../proto/tests/it/recorded"));
    let mut files: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = files.into_iter().map(|file| {
        let text = std::fs::read_to_string(&file).unwrap();
        let events = if file.extension().is_some_and(|extension| extension == "jsonl") {
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
        } else {
            of_session(&serde_json::from_str(&text).unwrap())
        };
        (file.file_name().unwrap().to_string_lossy().into_owned(), events)
    });
    read.collect()
}

fn of_session(session: &Value) -> Vec<Value> {
    let mut events = Vec::new();
    let id = &session["session"]["id"];
    for message in session["messages"].as_array().into_iter().flatten() {
        let info = &message["info"];
        events.push(json!({ "type": "message.updated", "properties": { "sessionID": id, "info": info } }));
        for part in message["parts"].as_array().into_iter().flatten() {
            let properties = json!({ "sessionID": id, "part": part, "time": 1 });
            events.push(json!({ "type": "message.part.updated", "properties": properties }));
        }
    }
    events
}

/// Returns the same event in another session. Ids keep their order and are used nowhere else.
fn moved(event: &Value, session: &SessionId, case: usize) -> Option<Event> {
    fn walk(value: &mut Value, case: usize) {
        match value {
            Value::String(id) if (id.starts_with("msg_") || id.starts_with("prt_")) && id.len() == 30 => {
                id.truncate(25);
                id.push_str(&format!("{case:05}"));
            }
            Value::Array(list) => list.iter_mut().for_each(|value| walk(value, case)),
            Value::Object(map) => map.values_mut().for_each(|value| walk(value, case)),
            _ => {}
        }
    }
    let mut event = event.clone();
    walk(&mut event, case);
    event["id"] = "evt_000000000000aaaaaaaaaaaaaa".into();
    for at in ["/properties/sessionID", "/properties/info/sessionID", "/properties/part/sessionID"] {
        if let Some(id) = event.pointer_mut(at) {
            *id = json!(session);
        }
    }
    match Notice::parse(&event.to_string())?.fact {
        Fact::Event(event @ (Event::MessageUpdated { .. } | Event::PartUpdated { .. })) => Some(event),
        Fact::Event(_) | Fact::Signal(_) => None,
    }
}

/// Desks whose sessions are written from outside, in the state that a killed process leaves.
struct Ward {
    desk: Desk,
    store: Store,
    cases: usize,
}

impl Ward {
    async fn new() -> Self {
        let script = Script::new().default_turn(Turn::text("Well."));
        let desk = Desk::at(Clock::stepping(LATER, 1), script, json!({})).await;
        let file = desk.home.join(".local/share/codewright/codewright.db");
        let clock = Clock::system();
        let store = Store::open(&file, Ids::new(clock.clone()), clock).await.unwrap();
        Self { desk, store, cases: 0 }
    }

    /// Checks that for any log every protocol can send the next prompts.
    async fn check(&mut self, name: &str, events: &[Value]) {
        self.cases += 1;
        let session = self.desk.session().await;
        let events: Vec<_> =
            events.iter().filter_map(|event| moved(event, &session.id, self.cases)).collect();
        if !events.is_empty() {
            self.store.append(events).await.unwrap();
        }
        // After an answered prompt all logs continue alike; some are continued twice.
        for turn in 0..1 + usize::from(self.cases.is_multiple_of(8)) {
            let (provider_id, model_id) = MODELS[(self.cases + turn) % MODELS.len()];
            let model = PromptModel {
                provider_id: provider_id.to_owned(),
                model_id: model_id.to_owned(),
                variant: None,
            };
            let input = PromptInput { model: Some(model), ..prompt("go on") };
            let turn = self.desk.engine.sessions().prompt(&session.id, input);
            tokio::time::timeout(DEADLINE, turn).await.expect("the turn ends").unwrap();
            let problems = self.desk.server.problems();
            assert_eq!(problems, Vec::<String>::new(), "{name} with {provider_id}");
        }
    }
}

#[tokio::test]
async fn a_recorded_session_cut_anywhere_can_be_continued() {
    let mut ward = Ward::new().await;
    for (name, events) in recorded() {
        for cut in 0..=events.len() {
            ward.check(&format!("{name}, {cut} events"), &events[..cut]).await;
        }
    }
    assert!(ward.cases > 200, "{} cases", ward.cases);
}
