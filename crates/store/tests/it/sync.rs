//! The exchange of events between stores.

use std::collections::HashMap;

use codewright_store::{Error, Incoming, Store};
use serde_json::json;

use crate::support::*;

async fn empty() -> Store {
    let (ids, clock) = stamps();
    let store = Store::in_memory(ids, clock).await.expect("opens");
    store.save_project(project("p1")).await.expect("saved");
    store
}

/// A session with some events, and the events for another store.
async fn session_and_events() -> (Store, Vec<Incoming>) {
    let store = empty().await;
    let events = vec![
        created("ses_1"),
        message("ses_1", "msg_1", 5),
        part("ses_1", "msg_1", "prt_1", "one"),
        part("ses_1", "msg_1", "prt_1", "two"),
        message("ses_1", "msg_2", 6),
    ];
    store.append(events).await.expect("stored");
    let events = foreign(&store, HashMap::new()).await;
    (store, events)
}

async fn foreign(store: &Store, known: HashMap<String, u64>) -> Vec<Incoming> {
    let logged = store.history(known).await.expect("readable");
    let as_sent = |event: &codewright_store::Logged| {
        let json = json!({"id": event.id, "aggregateID": event.aggregate_id, "seq": event.seq,
            "type": event.kind, "data": event.data});
        serde_json::from_value(json).expect("an event")
    };
    logged.iter().map(as_sent).collect()
}

async fn state(store: &Store) -> String {
    let id = session_id("ses_1");
    let session = store.session(&id).await.expect("readable");
    let transcript = store.transcript(&id).await.expect("readable");
    format!("{session:?} {transcript:?}")
}

#[tokio::test]
async fn a_session_is_transferred_completely_and_only_once() {
    let (from, events) = session_and_events().await;
    let to = empty().await;
    let mut feed = to.subscribe();
    assert_eq!(to.replay_foreign(events.clone()).await.expect("taken").len(), 5);
    assert_eq!(state(&to).await, state(&from).await);
    assert_eq!(to.replay_foreign(events.clone()).await.expect("skipped").len(), 0);
    assert_eq!(to.last_position(), 5);
    for (position, event) in (1..).zip(&events) {
        let heard = next(&mut feed).await;
        assert_eq!(heard.position(), Some(position));
        assert_eq!(heard.notice().id.as_str(), event.id, "an event keeps its id");
    }
    // Starting in the middle of the known events works too.
    from.append(vec![message("ses_1", "msg_3", 7)]).await.expect("stored");
    let more = foreign(&from, HashMap::from([("ses_1".to_owned(), 2)])).await;
    assert_eq!(more.len(), 3);
    assert_eq!(to.replay_foreign(more).await.expect("taken").len(), 1);
    assert_eq!(state(&to).await, state(&from).await);
    to.replay().await.expect("replayed");
    assert_eq!(state(&to).await, state(&from).await);
}

#[tokio::test]
async fn gaps_wrong_order_and_inconsistent_events_change_nothing() {
    let (_, events) = session_and_events().await;
    let pick = |places: &[usize]| places.iter().map(|at| events[*at].clone()).collect::<Vec<_>>();
    let to = empty().await;
    for places in [&[1, 2][..], &[0, 2], &[0, 1, 3, 2], &[1, 0], &[0, 0]] {
        let error = to.replay_foreign(pick(places)).await.expect_err("refused");
        assert!(matches!(error, Error::Gap { .. }), "{places:?}: {error}");
    }
    let mut of_another = pick(&[0, 1]);
    of_another[1].aggregate_id = "ses_2".to_owned();
    let mut without_id = pick(&[0, 1]);
    without_id[1].id = "nothing".to_owned();
    let mut of_the_future = pick(&[0, 1]);
    of_the_future[1].kind = "message.updated.9".to_owned();
    let mut twice = pick(&[0, 1]);
    twice[1].id = twice[0].id.clone();
    for events in [of_another, without_id, of_the_future, twice] {
        to.replay_foreign(events).await.expect_err("refused");
    }
    assert_eq!(to.last_position(), 0);
    assert_eq!(to.sessions(Default::default()).await.expect("readable"), []);
    assert_eq!(to.replay_foreign(events).await.expect("taken").len(), 5);
}
