//! Whatever is said and called, what is sent keeps the rules of the protocol.

use codewright_scripted::{Script, Turn};
use proptest::prelude::*;
use serde_json::json;

use crate::desk::Desk;

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
