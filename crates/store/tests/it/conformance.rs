//! The conformance tests that every backend must pass.
//!
//! A backend adds a line at the end, with a function that opens an empty store.

use std::collections::HashMap;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use codewright_proto::{Event, Part, PartId, SessionId, Todo};
use codewright_store::{Account, Audited, Claim, Condition, Error, Incoming, Store, Usage, inspect};
use serde_json::json;

use crate::support::*;

/// Everything that a client can read from a store.
async fn visible_state(store: &Store) -> String {
    let mut seen = String::new();
    let listed = store.sessions_json(Default::default()).await.expect("readable");
    assert_eq!(parsed(&listed), to_value(&store.sessions(Default::default()).await.expect("readable")));
    for session in store.sessions(Default::default()).await.expect("readable") {
        let transcript = store.transcript(&session.id).await.expect("readable");
        let todos = store.todos(&session.id).await.expect("readable");
        let page = store.messages_json(&session.id, None, None).await.expect("readable").expect("there");
        assert_eq!(parsed(&page.json), to_value(&transcript), "both queries return the same");
        seen.push_str(&format!("{session:?}\n{transcript:?}\n{todos:?}\n"));
    }
    seen.push_str(&format!("{:?}", store.pending_permissions().await.expect("readable")));
    seen
}

/// A session with a message, a part, a to-do list and a permission request.
fn some_events(id: &str) -> Vec<Event> {
    let todo = Todo { content: "x".into(), status: "pending".into(), priority: "low".into() };
    vec![
        created(id),
        message(id, &format!("msg_{id}"), 5),
        part(id, &format!("msg_{id}"), &format!("prt_{id}"), "one"),
        Event::TodoUpdated { session_id: session_id(id), todos: vec![todo] },
        asked(id, &format!("per_{id}")),
    ]
}

fn grown(text: &str) -> Part {
    match part("ses_1", "msg_ses_1", "prt_ses_1", text) {
        Event::PartUpdated { part, .. } => part,
        other => panic!("{other:?}"),
    }
}

async fn positions_and_seqs_have_no_gaps(store: Store) {
    let mut tasks = tokio::task::JoinSet::new();
    for at in 0..8 {
        let store = store.clone();
        tasks.spawn(async move {
            let id = format!("ses_{at}");
            for event in some_events(&id) {
                store.append(vec![event]).await.expect("stored");
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("no panic");
    }
    let events = store.events(0, 1000).await.expect("readable");
    assert_eq!(events.len(), 40);
    assert!(events.windows(2).all(|pair| pair[0].position < pair[1].position));
    for at in 0..8 {
        let of = store.events_of(&session_id(&format!("ses_{at}")), 0, 1000).await.expect("readable");
        let seqs: Vec<_> = of.iter().map(|envelope| envelope.seq).collect();
        assert_eq!(seqs, [0, 1, 2, 3, 4]);
    }
}

async fn an_append_is_all_or_nothing(store: Store) {
    store.append(some_events("ses_1")).await.expect("stored");
    let before = visible_state(&store).await;
    let bad: [Vec<Event>; 5] = [
        vec![message("ses_1", "msg_new", 5), message("ses_9", "msg_new", 5)],
        vec![message("ses_1", "msg_new", 5), part("ses_1", "msg_absent", "prt_new", "x")],
        vec![created("ses_2"), message("ses_2", "msg_ses_1", 5)],
        vec![replied("ses_1", "per_ses_1"), replied("ses_1", "per_ses_1")],
        vec![deleted("ses_1"), updated(session("ses_1"))],
    ];
    for events in bad {
        store.append(events.clone()).await.expect_err("refused");
        assert_eq!(visible_state(&store).await, before, "{events:?}");
    }
    assert_eq!(store.last_position(), 5);
}

async fn a_replay_changes_nothing(store: Store) {
    for id in ["ses_1", "ses_2", "ses_3"] {
        store.append(some_events(id)).await.expect("stored");
    }
    store.append(vec![deleted("ses_2"), replied("ses_3", "per_ses_3")]).await.expect("stored");
    store.draft(grown("one and more")).await.expect("kept");
    let before = visible_state(&store).await;
    assert_eq!(store.replay().await.expect("replayed"), 17);
    assert_eq!(visible_state(&store).await, before);
}

async fn the_feed_is_in_the_order_of_the_log(store: Store) {
    let mut live = store.subscribe();
    store.append(some_events("ses_1")).await.expect("stored");
    let mut late = store.subscribe_after(2);
    store.append(some_events("ses_2")).await.expect("stored");
    for position in 1..=10 {
        assert_eq!(next(&mut live).await.position(), Some(position));
    }
    for position in 3..=10 {
        assert_eq!(next(&mut late).await.position(), Some(position));
    }
}

async fn a_condition_is_checked_in_the_transaction(store: Store) {
    store.append(some_events("ses_1")).await.expect("stored");
    let (seq, info) = store.session_at(&session_id("ses_1")).await.expect("readable").expect("there");
    assert_eq!(seq, 4);
    let row = || Condition::RowUntouched { session: session_id("ses_1"), seq };
    let all = || Condition::Untouched { session: session_id("ses_1"), seq };
    store.append_if(all(), vec![message("ses_1", "msg_2", 6)]).await.expect("stored");
    let moved = store.append_if(all(), vec![message("ses_1", "msg_3", 6)]).await;
    assert!(matches!(moved, Err(Error::Conflict { .. })), "{moved:?}");
    store.append_if(row(), vec![updated(info.clone())]).await.expect("a message is not the row");
    let moved = store.append_if(row(), vec![updated(info)]).await;
    assert!(matches!(moved, Err(Error::Conflict { .. })), "{moved:?}");
}

async fn a_lease_has_one_owner_and_a_fence(store: Store) {
    store.append(some_events("ses_1")).await.expect("stored");
    let id = session_id("ses_1");
    let Claim::Held(mut lease) = store.lease(&id).await.expect("answered") else { panic!("held") };
    assert!(matches!(store.lease(&id).await.expect("answered"), Claim::HeldBy(_)));
    lease.append(vec![message("ses_1", "msg_2", 6)]).await.expect("stored");
    assert!(!lease.release(4).await.expect("answered"), "something is new");
    assert!(lease.release(5).await.expect("answered"));
    let fenced = lease.append(vec![message("ses_1", "msg_3", 6)]).await;
    assert!(matches!(fenced, Err(Error::Fenced { .. })), "{fenced:?}");
    let fenced = lease.draft(grown("late")).await;
    assert!(matches!(fenced, Err(Error::Fenced { .. })), "{fenced:?}");
    let Claim::Held(next) = store.lease(&id).await.expect("answered") else { panic!("held") };
    assert!(next.fence() > lease.fence());
}

/// A lease that nothing drops would keep its session for ever.
async fn a_caller_that_stops_waiting_keeps_no_lease(store: Store) {
    store.append(some_events("ses_1")).await.expect("stored");
    let id = session_id("ses_1");
    let mut asking = Box::pin(store.lease(&id));
    // The first poll sends the request. If the thread of the store was fast, the lease is dropped here.
    let _: Poll<()> = poll_fn(|context| Poll::Ready(asking.as_mut().poll(context).map(drop))).await;
    // The thread of the store answers, and this one does nothing.
    std::thread::sleep(Duration::from_millis(200));
    drop(asking);
    let freed = tokio::time::timeout(Duration::from_secs(20), async {
        while !matches!(store.lease(&id).await.expect("answered"), Claim::Held(_)) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    freed.await.expect("the session has no owner");
}

async fn sessions_are_leased_together(store: Store) {
    store
        .append([some_events("ses_1"), some_events("ses_2"), some_events("ses_3")].concat())
        .await
        .expect("stored");
    let Claim::Held(one) = store.lease(&session_id("ses_1")).await.expect("answered") else { panic!("held") };
    let wanted = || ["ses_1", "ses_2", "ses_4", "ses_3"].map(session_id).to_vec();
    let claims = store.lease_all(wanted()).await.expect("answered");
    let found = claims.iter().map(|(id, claim)| (id.as_str(), matches!(claim, Claim::Held(_))));
    let found: Vec<_> = found.collect();
    assert_eq!(
        found,
        [("ses_1", false), ("ses_2", true), ("ses_3", true)],
        "one has an owner, one does not exist"
    );
    let mut leases = claims.into_iter().filter_map(|(_, claim)| match claim {
        Claim::Held(lease) => Some(lease),
        Claim::HeldBy(_) => None,
    });
    let (mut two, three) = (leases.next().expect("leased"), leases.next().expect("leased"));
    two.append(vec![message("ses_2", "msg_3", 6)]).await.expect("the owner writes");
    assert!(two.release(u64::MAX).await.expect("answered"));
    drop(one);
    let claims = store.lease_all(wanted()).await.expect("answered");
    let held: Vec<_> = claims.iter().map(|(_, claim)| matches!(claim, Claim::Held(_))).collect();
    assert_eq!(held, [true, true, false]);
    let Claim::Held(next) = &claims[1].1 else { panic!("held") };
    assert!(next.fence() > two.fence());
    three.append(vec![message("ses_3", "msg_4", 6)]).await.expect("it is still the owner");
    assert!(store.lease_all(Vec::new()).await.expect("answered").is_empty());
}

async fn a_draft_is_visible_and_not_logged(store: Store) {
    store.append(some_events("ses_1")).await.expect("stored");
    store.draft(grown("one two")).await.expect("kept");
    let read = visible_state(&store).await;
    assert!(read.contains("one two"), "{read}");
    assert_eq!(store.events(0, 100).await.expect("readable").len(), 5);
    store.append(vec![part("ses_1", "msg_ses_1", "prt_ses_1", "final")]).await.expect("stored");
    let read = visible_state(&store).await;
    assert!(read.contains("final") && !read.contains("one two"), "{read}");
}

/// The pieces of a message list.
async fn pieces(store: &Store, id: &SessionId, limit: Option<usize>) -> Vec<Vec<u8>> {
    let page = store.messages_json(id, limit, None).await.expect("readable").expect("there");
    let (mut pieces, mut rest) = (vec![page.json.to_vec()], page.rest);
    while let Some(from) = rest {
        let (piece, more) = store.more_messages_json(from).await.expect("readable");
        pieces.push(piece.to_vec());
        rest = more;
    }
    pieces
}

async fn a_long_list_has_pieces_of_bounded_size(store: Store) {
    const PART: usize = 100 * 1024;
    let text = "x".repeat(PART);
    let mut events = vec![created("ses_1")];
    for at in 0..8 {
        events.push(message("ses_1", &format!("msg_{at}"), at / 3));
        // The third message has no parts, the fifth more than fit into a piece.
        let parts = [2, 1, 0, 3, 14, 1, 5, 0][at as usize];
        let part_of = |n| part("ses_1", &format!("msg_{at}"), &format!("prt_{at}_{n:02}"), &*text);
        events.extend((0..parts).map(part_of));
    }
    store.append(events).await.expect("stored");
    let id = session_id("ses_1");
    let all = store.transcript(&id).await.expect("readable");
    for limit in [None, Some(1), Some(4), Some(5), Some(8)] {
        let pieces = pieces(&store, &id, limit).await;
        let most = pieces.iter().map(Vec::len).max().expect("one at least");
        assert!(most < 512 * 1024 + PART + 4096, "{limit:?}: {most}");
        let from = all.len() - limit.unwrap_or(all.len());
        assert_eq!(parsed(&pieces.concat()), to_value(&all[from..].to_vec()), "{limit:?}");
    }
    assert!(pieces(&store, &id, None).await.len() > 4);
}

async fn a_change_between_two_pieces_keeps_the_list_valid(store: Store) {
    let text = "x".repeat(300 * 1024);
    let mut events = vec![created("ses_1")];
    for at in 0..3 {
        events.push(message("ses_1", &format!("msg_{at}"), at));
        events.extend((0..2).map(|n| part("ses_1", &format!("msg_{at}"), &format!("prt_{at}_{n}"), &*text)));
    }
    store.append(events).await.expect("stored");
    let id = session_id("ses_1");
    let first = store.messages_json(&id, None, None).await.expect("readable").expect("there");
    let removed = Event::MessageRemoved { session_id: id.clone(), message_id: message_id("msg_0") };
    let later = [message("ses_1", "msg_3", 3), part("ses_1", "msg_1", "prt_1_2", "new"), removed];
    store.append(later.to_vec()).await.expect("stored");
    let (mut json, mut rest) = (first.json.to_vec(), first.rest);
    assert!(rest.is_some());
    while let Some(from) = rest {
        let (piece, more) = store.more_messages_json(from).await.expect("readable");
        json.extend_from_slice(&piece);
        rest = more;
    }
    let now = to_value(&store.transcript(&id).await.expect("readable"));
    let (list, now) = (parsed(&json), now.as_array().expect("a list").clone());
    assert_eq!(
        list.as_array().expect("a list")[1..],
        now[..],
        "after the first piece, the list has the current values"
    );

    let first = store.messages_json(&id, None, None).await.expect("readable").expect("there");
    store
        .append(vec![Event::SessionDeleted { session_id: id.clone(), info: session("ses_1") }])
        .await
        .expect("stored");
    let (last, rest) = store.more_messages_json(first.rest.expect("more")).await.expect("readable");
    assert_eq!(rest, None);
    let list = parsed(&[&first.json[..], &last].concat());
    assert_eq!(list.as_array().map(Vec::len), Some(1), "the list is valid");
}

async fn pages_join_to_the_whole_list(store: Store) {
    let mut events = vec![created("ses_1")];
    events.extend((0..10).map(|at| message("ses_1", &format!("msg_{at}"), at / 3)));
    store.append(events).await.expect("stored");
    let id = session_id("ses_1");
    let all = store.transcript(&id).await.expect("readable");
    let (last, more) = store.messages_before(&id, 4, None).await.expect("readable");
    assert!(more && last[..] == all[6..]);
    let before = (last[0].info.created(), last[0].info.id().clone());
    let page = store.messages_json(&id, Some(4), None).await.expect("readable").expect("there");
    assert_eq!((parsed(&page.json), page.next), (to_value(&last), Some(before.clone())));
    let page =
        store.messages_json(&id, Some(6), Some(before.clone())).await.expect("readable").expect("there");
    assert_eq!((parsed(&page.json), page.next), (to_value(&all[..6].to_vec()), None));
    let (first, more) = store.messages_before(&id, 6, Some(before)).await.expect("readable");
    assert!(!more && first[..] == all[..6]);
    let mut position = 0;
    let mut count = 0;
    while let Some(last) = store.events(position, 3).await.expect("readable").last() {
        (position, count) = (last.position, count + 1);
    }
    assert_eq!(count, 4);
}

async fn a_position_in_the_log_is_found(store: Store) {
    let id = message_id("msg_own");
    let mut taken_back = session("ses_1");
    taken_back.revert = Some(serde_json::from_value(json!({"messageID": "msg_own"})).expect("a revert"));
    let given_up = updated(session("ses_1"));
    let session = session_id("ses_1");
    let removed = Event::MessageRemoved { session_id: session.clone(), message_id: id.clone() };
    let again = message("ses_1", "msg_own", 9);
    store
        .append(vec![created("ses_1"), message("ses_1", "msg_own", 5), updated(taken_back)])
        .await
        .expect("stored");
    store.append(vec![again.clone()]).await.expect("stored");
    assert_eq!(store.first_seq(&session, &id).await.expect("read"), Some(1), "it was only changed since");
    store.append(vec![removed, given_up]).await.expect("stored");
    assert_eq!(store.first_seq(&session, &id).await.expect("read"), None);
    store.append(vec![again]).await.expect("stored");
    assert_eq!(store.first_seq(&session, &id).await.expect("read"), Some(6));
    assert_eq!(store.first_seq(&session_id("ses_2"), &id).await.expect("read"), None);
    let mut reverts = Vec::new();
    for until in 0..7 {
        let before = store.session_before(&session, until).await.expect("read");
        reverts.push(before.map(|session| session.revert.is_some()));
    }
    let expected = [None, Some(false), Some(false), Some(true), Some(true), Some(true), Some(false)];
    assert_eq!(reverts, expected);
    store.replay().await.expect("replayed");
    assert_eq!(store.first_seq(&session, &id).await.expect("read"), Some(6));
}

async fn foreign_events_are_stored_once_and_in_order(store: Store) {
    store.append(some_events("ses_1")).await.expect("stored");
    let event = |seq: u64| -> Incoming {
        let (kind, data) = match seq {
            0 => ("session.created.1", json!({"sessionID": "ses_x", "info": session("ses_x")})),
            _ => ("message.removed.1", json!({"sessionID": "ses_x", "messageID": "msg_x"})),
        };
        let event = json!({"id": format!("evt_x{seq}"), "aggregateID": "ses_x", "seq": seq, "type": kind, "data": data});
        serde_json::from_value(event).expect("an event")
    };
    let gap = store.replay_foreign(vec![event(0), event(2)]).await;
    assert!(matches!(gap, Err(Error::Gap { expected: 1, found: 2, .. })), "{gap:?}");
    assert_eq!(store.last_position(), 5, "nothing of it");
    assert_eq!(store.replay_foreign(vec![event(0), event(1)]).await.expect("taken").len(), 2);
    assert_eq!(store.replay_foreign(vec![event(0), event(1), event(2)]).await.expect("taken").len(), 1);
    let known = HashMap::from([("ses_1".to_owned(), 4), ("ses_x".to_owned(), 1)]);
    let list = store.history(known).await.expect("readable");
    assert_eq!(list.iter().map(|event| event.seq).collect::<Vec<_>>(), [2]);
}

/// A session of a user.
fn owned(id: &str, created_ms: u64) -> codewright_proto::Session {
    let mut session = session(id);
    session.time.created = created_ms;
    session.access = serde_json::from_value(json!({"owner": "a", "team": "t"})).expect("access");
    session
}

/// An answer that used tokens.
fn answer(session: &str, id: &str, (created_ms, tokens): (u64, u64)) -> Event {
    let info = serde_json::from_value(json!({
        "id": id, "sessionID": session, "role": "assistant", "time": {"created": created_ms}, "parentID": "msg_p",
        "modelID": "m", "providerID": "p", "mode": "build", "agent": "build", "path": {"cwd": "/", "root": "/"},
        "cost": 0.5, "tokens": {"input": tokens, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
    }));
    Event::MessageUpdated { session_id: session_id(session), info: info.expect("an answer") }
}

async fn usage_counts_once_and_outlives_its_session(store: Store) {
    const DAY_MS: u64 = 86_400_000;
    let user = || Account::User("a".to_owned());
    let used = async |of: Account, day| {
        let Usage { tokens, cost } = store.usage(of, day).await.expect("readable");
        (tokens, cost)
    };
    let session = owned("ses_1", DAY_MS);
    let created = Event::SessionCreated { session_id: session.id.clone(), info: session.clone() };
    store.append(vec![created, answer("ses_1", "msg_1", (DAY_MS + 1, 10))]).await.expect("stored");
    // The answer is stored again when it ends, with all that it used.
    store.append(vec![answer("ses_1", "msg_1", (DAY_MS + 1, 30))]).await.expect("stored");
    store.append(vec![answer("ses_1", "msg_2", (2 * DAY_MS, 7))]).await.expect("stored");
    // A copy that is older than its session was counted before.
    store.append(vec![answer("ses_1", "msg_0", (DAY_MS - 1, 1000))]).await.expect("stored");
    // Sessions without an owner count for nobody.
    store
        .append(vec![self::created("ses_2"), answer("ses_2", "msg_9", (DAY_MS + 1, 5))])
        .await
        .expect("stored");
    assert_eq!(used(user(), 1).await, (30, 0.5));
    assert_eq!(used(Account::Team("t".to_owned()), 1).await, (30, 0.5));
    assert_eq!(used(user(), 2).await, (7, 0.5));
    assert_eq!(used(user(), 0).await, (0, 0.0));
    assert_eq!(store.session(&session.id).await.expect("readable").expect("there").access, session.access);
    assert_eq!(store.running(user()).await.expect("readable"), []);
    let Claim::Held(mut lease) = store.lease(&session.id).await.expect("answered") else { panic!("free") };
    assert_eq!(store.running(user()).await.expect("readable"), std::slice::from_ref(&session.id));
    lease.release(u64::MAX).await.expect("released");
    store
        .append(vec![Event::SessionDeleted { session_id: session.id.clone(), info: session }])
        .await
        .expect("stored");
    assert_eq!(used(user(), 1).await, (30, 0.5));
    store.replay().await.expect("replayed");
    assert_eq!(used(user(), 1).await, (30, 0.5));
}

/// A call whose id and output are as hostile as they can be.
fn call(message: &str, id: &str, tool: &str) -> Event {
    let id = PartId::parse(id).expect("an id");
    let body = serde_json::from_value(json!({
        "type": "tool", "callID": "c\",\"tool\":\"forged", "tool": tool, "state": {
            "status": "completed", "input": {}, "output": "\0 \\u0000 \u{1b}", "title": "", "metadata": {},
            "time": {"start": 1, "end": 2},
        },
    }));
    let (session_id, message_id) = (session_id("ses_1"), message_id(message));
    let part = Part { id, session_id: session_id.clone(), message_id, body: body.expect("a call") };
    Event::PartUpdated { session_id, part, time: 7 }
}

async fn statistics_sum_up_sessions_models_and_tools(store: Store) {
    let all = |found: inspect::Usage| {
        let models =
            found.models.iter().map(|one| (one.model.clone(), one.messages, one.tokens.input, one.cost));
        (found.sessions, found.messages, found.each, models.collect::<Vec<_>>(), found.tools)
    };
    store.append(some_events("ses_1")).await.expect("stored");
    store
        .append(vec![answer("ses_1", "msg_a", (5, 30)), answer("ses_1", "msg_b", (6, 10))])
        .await
        .expect("stored");
    let tools = ["odd \"name\\ é", "bash", "bash"];
    let calls = tools.iter().enumerate().map(|(at, tool)| call("msg_a", &format!("prt_{at}"), tool));
    store.append(calls.collect()).await.expect("stored");
    store.append(vec![created("ses_2")]).await.expect("stored");
    let found = store.statistics(0, None).await.expect("readable");
    let model = ("p/m".to_owned(), 2, 40, 1.0);
    let tools = vec![("bash".to_owned(), 2), (tools[0].to_owned(), 1)];
    assert_eq!(all(found), (2, 3, vec![0, 0], vec![model], tools));
    let nothing = || (0, 0, vec![], vec![], vec![]);
    assert_eq!(all(store.statistics(u64::MAX, None).await.expect("readable")), nothing());
    assert_eq!(all(store.statistics(0, Some("other".to_owned())).await.expect("readable")), nothing());
}

async fn the_audit_log_keeps_the_order_and_its_limit(store: Store) {
    for at in 0..5_u64 {
        let is_refusal = at == 2;
        let entry = Audited { account: format!("u{at}"), time: at, is_refusal, ..Audited::default() };
        store.audit(entry).await.expect("stored");
    }
    let all = store.audited(None, 1000).await.expect("readable");
    assert_eq!(
        all.iter().map(|entry| entry.account.as_str()).collect::<Vec<_>>(),
        ["u4", "u3", "u2", "u1", "u0"]
    );
    assert!(all[2].is_refusal && all.windows(2).all(|pair| pair[0].id > pair[1].id));
    let page = store.audited(Some(all[1].id), 2).await.expect("readable");
    assert_eq!(page, all[2..4]);
}

async fn a_store_that_can_be_written_passes_a_probe(store: Store) {
    store.probe().await.expect("writable");
    assert_eq!(store.last_position(), 0);
    store.append(some_events("ses_1")).await.expect("stored");
    store.probe().await.expect("writable");
}

macro_rules! conformance {
    ($backend:ident, $open:path, $($promise:ident)*) => {
        mod $backend {
            $(
                #[tokio::test]
                async fn $promise() {
                    // A backend that is not installed is skipped.
                    let Some((_kept, store)) = $open().await else { return };
                    super::$promise(store.clone()).await;
                    // The store can still be closed.
                    store.close().await.expect("closed");
                }
            )*
        }
    };
}

macro_rules! backends {
    ($($backend:ident = $open:path;)*) => {
        $(conformance! { $backend, $open,
            positions_and_seqs_have_no_gaps
            an_append_is_all_or_nothing
            a_replay_changes_nothing
            the_feed_is_in_the_order_of_the_log
            a_condition_is_checked_in_the_transaction
            a_lease_has_one_owner_and_a_fence
            sessions_are_leased_together
            a_caller_that_stops_waiting_keeps_no_lease
            a_draft_is_visible_and_not_logged
            pages_join_to_the_whole_list
            a_long_list_has_pieces_of_bounded_size
            a_change_between_two_pieces_keeps_the_list_valid
            foreign_events_are_stored_once_and_in_order
            a_position_in_the_log_is_found
            usage_counts_once_and_outlives_its_session
            statistics_sum_up_sessions_models_and_tools
            the_audit_log_keeps_the_order_and_its_limit
            a_store_that_can_be_written_passes_a_probe
        })*
    };
}

async fn in_a_file() -> Option<(Option<tempfile::TempDir>, Store)> {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory.path().join("store.db")).await;
    Some((Some(directory), store))
}

async fn in_memory() -> Option<(Option<tempfile::TempDir>, Store)> {
    let (ids, clock) = stamps();
    let store = Store::in_memory(ids, clock).await.expect("opens");
    store.save_project(project("p1")).await.expect("saved");
    Some((None, store))
}

#[cfg(feature = "postgres")]
async fn in_postgres() -> Option<(Option<tempfile::TempDir>, Store)> {
    let database = crate::database::Database::new().await?;
    Some((None, database.open().await))
}

backends! {
    sqlite_in_a_file = super::in_a_file;
    sqlite_in_memory = super::in_memory;
}

#[cfg(feature = "postgres")]
backends! {
    postgres = super::in_postgres;
}
