//! A session has one owner at a time, even if its process is killed.

use std::time::Duration;

use codewright_proto::{MessageWithParts, PartBody};
use codewright_store::{Claim, Condition, Error, Lease, Store};

use crate::process::{Actor, count_up};
use crate::support::*;

/// A time limit for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

async fn acquire(store: &Store, id: &str) -> Lease {
    match store.lease(&session_id(id)).await.expect("answered") {
        Claim::Held(lease) => lease,
        Claim::HeldBy(holder) => panic!("held by {holder:?}"),
    }
}

async fn holder_pid(store: &Store, id: &str) -> u32 {
    match store.lease(&session_id(id)).await.expect("answered") {
        Claim::Held(_) => panic!("it was free"),
        Claim::HeldBy(holder) => holder.pid,
    }
}

fn text(messages: &[MessageWithParts]) -> String {
    let parts = messages.iter().flat_map(|message| &message.parts);
    parts
        .map(|part| match &part.body {
            PartBody::Text(text) => text.text.to_string(),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[tokio::test]
async fn a_session_has_one_owner_at_a_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let (one, other) = (open(&path).await, open(&path).await);
    one.append(vec![created("ses_1"), created("ses_2")]).await.expect("stored");
    let mut lease = acquire(&one, "ses_1").await;
    for store in [&one, &other] {
        assert_eq!(holder_pid(store, "ses_1").await, std::process::id());
        let holder = store.holder(&session_id("ses_1")).await.expect("answered").expect("held");
        assert_eq!(holder.pid, std::process::id());
        assert_eq!(store.holders().await.expect("answered"), [(session_id("ses_1"), holder)]);
        assert_eq!(store.holder(&session_id("ses_2")).await.expect("answered"), None);
    }
    assert!(lease.release(0).await.expect("answered"));
    let later = acquire(&other, "ses_1").await;
    assert!(later.fence() > lease.fence());
    assert!(one.holder(&session_id("ses_1")).await.expect("answered").is_some_and(|holder| !holder.is_ours));
    drop(later);
    tokio::time::timeout(PATIENCE, one.wait_until_free(&session_id("ses_1")))
        .await
        .expect("soon")
        .expect("answered");
    acquire(&one, "ses_1").await;
    let error = one.lease(&session_id("ses_9")).await.expect_err("unknown");
    assert!(matches!(error, Error::Unknown { kind: "session", .. }), "{error}");
}

#[tokio::test]
async fn a_store_in_memory_supports_leases() {
    let (ids, clock) = stamps();
    let store = Store::in_memory(ids, clock).await.expect("opens");
    store.save_project(project("p1")).await.expect("saved");
    store.append(vec![created("ses_1")]).await.expect("stored");
    let lease = acquire(&store, "ses_1").await;
    assert_eq!(holder_pid(&store, "ses_1").await, std::process::id());
    drop(lease);
    acquire(&store, "ses_1").await;
}

#[tokio::test]
async fn a_prompt_before_the_release_is_not_missed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let (one, other) = (open(&path).await, open(&path).await);
    one.append(vec![created("ses_1")]).await.expect("stored");
    let mut lease = acquire(&one, "ses_1").await;
    let (seq, transcript) = one.transcript_at(&session_id("ses_1")).await.expect("readable");
    assert!(transcript.is_empty());
    other.append(vec![message("ses_1", "msg_1", 5)]).await.expect("stored");
    assert!(!lease.release(seq).await.expect("answered"));
    holder_pid(&other, "ses_1").await;
    let (seq, transcript) = one.transcript_at(&session_id("ses_1")).await.expect("readable");
    assert_eq!(transcript.len(), 1);
    assert!(lease.release(seq).await.expect("answered"));
    assert!(lease.release(seq).await.expect("once is enough"));
}

/// One process releases while another admits a prompt. In any order, one of them sees the prompt.
#[tokio::test]
async fn no_race_misses_a_prompt() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let (one, other) = (open(&path).await, open(&path).await);
    one.append(vec![created("ses_1")]).await.expect("stored");
    for round in 0..100 {
        let id = format!("msg_{round:03}");
        let run = async {
            let mut lease = acquire(&one, "ses_1").await;
            let mut seen = 0;
            for _ in 0..10 {
                let (seq, transcript) = one.transcript_at(&session_id("ses_1")).await.expect("readable");
                seen = transcript.len();
                if lease.release(seq).await.expect("answered") {
                    break;
                }
            }
            seen
        };
        let admit = async {
            other.append(vec![message("ses_1", &id, 5)]).await.expect("stored");
            other.holder(&session_id("ses_1")).await.expect("answered").is_some()
        };
        let (seen, was_held) = tokio::join!(run, admit);
        // If the session is free, the admitting process runs it.
        assert!(seen == round + 1 || !was_held, "round {round}: {seen} seen");
    }
}

#[tokio::test]
async fn a_killed_owner_is_detected_immediately_and_fenced() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path).await;
    store.append(vec![created("ses_1"), message("ses_1", "msg_1", 5)]).await.expect("stored");
    let mut actor = Actor::start(&path);
    assert_eq!(actor.ask("lease ses_1"), "held");
    assert_ne!(holder_pid(&store, "ses_1").await, std::process::id());
    actor.kill();
    // No waiting is needed, because the lock was released with the process.
    let lease = acquire(&store, "ses_1").await;
    assert_eq!(lease.fence(), 2);
    lease.append(vec![message("ses_1", "msg_2", 6)]).await.expect("stored");
    let former = Condition::Leased { session: session_id("ses_1"), fence: 1 };
    let error = store.append_if(former, vec![message("ses_1", "msg_3", 7)]).await.expect_err("refused");
    assert!(matches!(error, Error::Fenced { .. }), "{error}");
    let mut actor = Actor::start(&path);
    assert_eq!(actor.ask("lease ses_1"), format!("held by {}", std::process::id()));
    drop(lease);
    let locks = directory.path().join("locks");
    assert!(std::fs::read_dir(&locks).expect("a directory").count() <= 3, "the dead leave no litter");
}

#[tokio::test]
async fn a_lease_is_fenced_after_its_store_is_closed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let (one, other) = (open(&path).await, open(&path).await);
    one.append(vec![created("ses_1")]).await.expect("stored");
    let lease = acquire(&one, "ses_1").await;
    one.close().await.expect("closed");
    acquire(&other, "ses_1").await;
    assert!(matches!(lease.append(vec![message("ses_1", "msg_1", 5)]).await, Err(Error::Closed)));
}

#[tokio::test]
async fn events_of_another_process_are_in_the_feed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path).await;
    store.append(vec![created("ses_1")]).await.expect("stored");
    let mut actor = Actor::start(&path);
    assert_eq!(actor.ask("message ses_1 msg_before"), "stored");
    let mut feed = store.subscribe();
    assert_eq!(actor.ask("message ses_1 msg_1"), "stored");
    assert_eq!(next(&mut feed).await.position(), Some(3), "earlier events are not repeated");
    // The events of both processes, in the order of the log.
    for at in 0..20 {
        actor.order(&format!("message ses_1 msg_theirs_{at}"));
        store.append(vec![message("ses_1", &format!("msg_ours_{at}"), 5)]).await.expect("stored");
        assert_eq!(actor.answer(), "stored");
    }
    for position in 4..44 {
        assert_eq!(next(&mut feed).await.position(), Some(position));
    }
}

#[tokio::test]
async fn two_processes_that_change_a_session_lose_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path).await;
    store.append(vec![created("ses_1")]).await.expect("stored");
    let mut actors: Vec<_> = (0..3).map(|_| Actor::start(&path)).collect();
    for actor in &mut actors {
        actor.order("count ses_1 50");
    }
    for _ in 0..50 {
        count_up(&store, "ses_1").await;
    }
    for actor in &mut actors {
        assert_eq!(actor.answer(), "counted");
    }
    let session = store.session(&session_id("ses_1")).await.expect("readable").expect("there");
    assert!((session.cost - 200.0).abs() < 0.5, "{}", session.cost);
}

#[tokio::test]
async fn a_condition_that_does_not_hold_stores_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory.path().join("store.db")).await;
    store.append(vec![created("ses_1"), message("ses_1", "msg_1", 5)]).await.expect("stored");
    let session = session_id("ses_1");
    let untouched = |seq| Condition::Untouched { session: session.clone(), seq };
    let row_untouched = |seq| Condition::RowUntouched { session: session.clone(), seq };
    let leased = Condition::Leased { session: session.clone(), fence: 0 };
    for condition in [untouched(0), untouched(2), leased] {
        store.append_if(condition, vec![message("ses_1", "msg_2", 6)]).await.expect_err("refused");
    }
    assert_eq!(store.last_position(), 2);
    store.append_if(row_untouched(0), vec![updated(self::session("ses_1"))]).await.expect("stored");
    let error = store.append_if(row_untouched(1), vec![updated(self::session("ses_1"))]).await;
    assert!(matches!(error, Err(Error::Conflict { .. })), "{error:?}");
    store.append_if(untouched(2), vec![message("ses_1", "msg_2", 6)]).await.expect("stored");
}

#[tokio::test]
async fn a_draft_overrides_its_part_until_the_part_is_stored() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path).await;
    let events = vec![created("ses_1"), message("ses_1", "msg_1", 5), part("ses_1", "msg_1", "prt_1", "a")];
    store.append(events).await.expect("stored");
    let id = session_id("ses_1");
    let draft = |text: &str| match part("ses_1", "msg_1", "prt_1", text) {
        codewright_proto::Event::PartUpdated { part, .. } => part,
        other => panic!("{other:?}"),
    };
    for grown in ["ab", "abc"] {
        store.draft(draft(grown)).await.expect("kept");
    }
    let message_of = async |store: &Store| store.message(&id, &message_id("msg_1")).await.expect("readable");
    assert_eq!(text(&store.transcript(&id).await.expect("readable")), "abc");
    assert_eq!(text(&store.messages(&id, Some(1)).await.expect("readable")), "abc");
    assert_eq!(text(&message_of(&store).await.into_iter().collect::<Vec<_>>()), "abc");
    assert_eq!(store.last_position(), 3, "the log has not grown");
    store.replay().await.expect("replayed");
    assert_eq!(text(&store.transcript(&id).await.expect("readable")), "abc", "a replay keeps drafts");
    store.append(vec![part("ses_1", "msg_1", "prt_1", "abcd")]).await.expect("stored");
    assert_eq!(text(&store.transcript(&id).await.expect("readable")), "abcd");
    assert_eq!(store.drafts(&id).await.expect("readable"), []);

    store.draft(draft("late")).await.expect("kept");
    store.append(vec![deleted("ses_1"), created("ses_1")]).await.expect("stored");
    assert_eq!(store.drafts(&id).await.expect("readable"), []);
    let error = store.draft(draft("nowhere")).await.expect_err("its part is gone");
    assert!(matches!(error, Error::Unknown { kind: "part", .. }), "{error}");
}

#[tokio::test]
async fn after_a_kill_the_text_up_to_the_last_draft_is_stored() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path).await;
    let events = vec![created("ses_1"), message("ses_1", "msg_1", 5), part("ses_1", "msg_1", "prt_1", "a")];
    store.append(events).await.expect("stored");
    let mut actor = Actor::start(&path);
    assert_eq!(actor.ask("lease ses_1"), "held");
    for length in 1..20 {
        assert_eq!(actor.ask(&format!("draft ses_1 msg_1 prt_1 {}", "a".repeat(length))), "kept");
    }
    actor.kill();
    let id = session_id("ses_1");
    assert_eq!(text(&store.transcript(&id).await.expect("readable")), "a".repeat(19));
    let lease = acquire(&store, "ses_1").await;
    let drafts = store.open_work(lease.session()).await.expect("readable").drafts;
    assert_eq!(drafts.len(), 1);
    lease.settle(drafts).await.expect("stored");
    assert!(store.open_work(lease.session()).await.expect("readable").drafts.is_empty());
    assert_eq!(store.drafts(&id).await.expect("readable"), []);
    assert_eq!(text(&store.transcript(&id).await.expect("readable")), "a".repeat(19));
    let error = store
        .append_if(Condition::Leased { session: id.clone(), fence: 1 }, vec![message("ses_1", "msg_2", 6)]);
    assert!(matches!(error.await, Err(Error::Fenced { .. })));
}

#[tokio::test]
async fn an_owner_receives_a_stop_request_of_another_process() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let (one, other) = (open(&path).await, open(&path).await);
    one.append(vec![created("ses_1"), created("ses_2")]).await.expect("stored");
    let id = session_id("ses_1");
    assert!(!other.ask_to_stop(&id).await.expect("answered"), "it has no owner");
    let (mut lease, beside) = (acquire(&one, "ses_1").await, acquire(&one, "ses_2").await);
    assert!(!one.ask_to_stop(&id).await.expect("answered"), "it is its own");
    assert!(other.ask_to_stop(&id).await.expect("answered"));
    // The feed has no reader.
    tokio::time::timeout(PATIENCE, lease.stop_signal().wait()).await.expect("received");
    assert!(lease.release(u64::MAX).await.expect("answered"));

    // Neither another session nor a later owner is affected.
    let later = acquire(&one, "ses_1").await;
    one.append(vec![message("ses_1", "msg_1", 5)]).await.expect("stored");
    for lease in [&later, &beside] {
        let received = tokio::time::timeout(Duration::from_millis(300), lease.stop_signal().wait()).await;
        received.expect_err("no request");
    }
}
