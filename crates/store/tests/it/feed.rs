//! The items that readers of the feed receive.

use std::sync::Arc;

use codewright_proto::{Notice, Signal, Toast};
use codewright_store::{Published, Store};

use crate::support::*;

async fn in_memory() -> Store {
    let (ids, clock) = stamps();
    let store = Store::in_memory(ids, clock).await.expect("opens");
    store.save_project(project("p1")).await.expect("saved");
    store
}

fn idle(session: &str) -> Signal {
    Signal::SessionIdle { session_id: session_id(session) }
}

#[tokio::test]
async fn events_and_signals_are_in_order() {
    let store = in_memory().await;
    let mut early = store.subscribe();
    let stored = store.append(vec![created("ses_1")]).await.expect("stored");
    store.signal(idle("ses_1"));
    let mut late = store.subscribe();
    store.append(vec![message("ses_1", "msg_1", 5)]).await.expect("stored");

    let first = next(&mut early).await;
    assert_eq!(first, Published::Event(Arc::clone(&stored[0])));
    let second = next(&mut early).await;
    assert_eq!(second.position(), None);
    assert_eq!(next(&mut early).await.position(), Some(2));
    assert_eq!(next(&mut late).await.position(), Some(2));

    for published in [first, second] {
        let notice = published.notice();
        let json = serde_json::to_string(&published).expect("JSON");
        assert_eq!(json, serde_json::to_string(&notice).expect("JSON"));
        assert_eq!(Notice::parse(&json), Some(notice));
    }
}

#[tokio::test]
async fn a_waiting_reader_is_woken_and_can_be_cancelled() {
    let store = in_memory().await;
    let mut subscription = store.subscribe();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        // Cancels again and again; no item may be lost.
        let mut positions = Vec::new();
        while positions.len() < 200 {
            let pause = std::time::Duration::from_micros(200);
            if let Ok(item) = tokio::time::timeout(pause, subscription.next()).await {
                positions.push(item.expect("open").position().expect("an event"));
            }
        }
        positions
    });
    for at in 0..200 {
        store.append(vec![created(&format!("ses_{at}"))]).await.expect("stored");
    }
    let positions = tokio::time::timeout(std::time::Duration::from_secs(30), tasks.join_next()).await;
    assert!(positions.expect("in time").expect("a task").expect("no panic").into_iter().eq(1..=200));
}

#[tokio::test]
async fn a_failed_append_is_not_published() {
    let store = in_memory().await;
    let mut subscription = store.subscribe();
    store.append(vec![created("ses_1"), message("ses_2", "msg_1", 5)]).await.expect_err("refused");
    store.append(vec![created("ses_3")]).await.expect("stored");
    let Published::Event(envelope) = next(&mut subscription).await else { panic!("an event") };
    assert_eq!(envelope.event.session_id(), &session_id("ses_3"));
}

#[tokio::test]
async fn a_lagging_reader_gets_every_event_once_and_in_order() {
    let store = in_memory().await;
    let mut slow = store.subscribe();
    let mut fast = store.subscribe();
    store.append(vec![created("ses_1")]).await.expect("stored");
    assert_eq!(next(&mut slow).await.position(), Some(1));
    let mut expected = 2;
    for batch in 0..12 {
        let events = (0..500).map(|at| message("ses_1", &format!("msg_{batch}_{at}"), 5)).collect();
        store.append(events).await.expect("stored");
        store.signal(idle("ses_1"));
        // Reads now and then, so that it falls behind even while it catches up.
        if batch % 5 == 4 {
            for _ in 0..100 {
                if let Some(position) = next(&mut slow).await.position() {
                    assert_eq!(position, expected);
                    expected += 1;
                }
            }
        }
    }
    store.signal(idle("ses_1"));
    while expected <= 6001 {
        if let Some(position) = next(&mut slow).await.position() {
            assert_eq!(position, expected);
            expected += 1;
        }
    }
    let mut last = 0;
    while last < 6001 {
        if let Some(position) = next(&mut fast).await.position() {
            assert_eq!(position, last + 1);
            last = position;
        }
    }
    // After it has caught up, it receives signals again.
    while let Ok(item) = tokio::time::timeout(std::time::Duration::from_millis(10), slow.next()).await {
        assert_eq!(item.expect("open").position(), None);
    }
    store.signal(idle("ses_2"));
    assert_eq!(next(&mut slow).await.notice().session_id(), Some(&session_id("ses_2")));
}

#[tokio::test]
async fn large_events_are_not_kept_in_memory() {
    let store = in_memory().await;
    let mut slow = store.subscribe();
    store.append(vec![created("ses_1"), message("ses_1", "msg_1", 5)]).await.expect("stored");
    let text: Arc<str> = "x".repeat(1024 * 1024).into();
    let mut first = None;
    for at in 0..40 {
        let event = part("ses_1", "msg_1", &format!("prt_{at}"), Arc::clone(&text));
        let stored = store.append(vec![event]).await.expect("stored");
        first.get_or_insert_with(|| Arc::downgrade(&stored[0]));
    }
    assert!(first.expect("stored").upgrade().is_none(), "the oldest of 40 MB is not held for a slow reader");
    for position in 1..=42 {
        assert_eq!(next(&mut slow).await.position(), Some(position));
    }
}

#[tokio::test]
async fn large_signals_are_not_kept_in_memory() {
    let store = in_memory().await;
    let mut subscription = store.subscribe();
    let shown = |title: String| Signal::TuiToastShow {
        directory: "/p".to_owned(),
        toast: Toast { title: Some(title), message: "m".to_owned(), ..Toast::default() },
    };
    for _ in 0..20 {
        store.signal(shown("x".repeat(1024 * 1024)));
    }
    store.signal(shown("the last".to_owned()));
    store.append(vec![created("ses_1")]).await.expect("stored");
    // The ring exceeded its limit, so only the log's events are received.
    assert_eq!(next(&mut subscription).await.position(), Some(1));
}

#[tokio::test]
async fn a_reader_resumes_after_a_position() {
    let store = in_memory().await;
    for at in 0..300 {
        store.append(vec![created(&format!("ses_{at}"))]).await.expect("stored");
    }
    let mut subscription = store.subscribe_after(40);
    store.append(vec![created("ses_new")]).await.expect("stored");
    for position in 41..=301 {
        assert_eq!(next(&mut subscription).await.position(), Some(position));
    }
    let mut ahead = store.subscribe_after(u64::MAX);
    store.append(vec![created("ses_newer")]).await.expect("stored");
    assert_eq!(next(&mut ahead).await.position(), Some(302));
}

#[tokio::test]
async fn readers_can_subscribe_and_unsubscribe() {
    let store = in_memory().await;
    let mut stays = store.subscribe();
    let mut goes = Some(store.subscribe());
    for at in 0..100_u64 {
        store.append(vec![created(&format!("ses_{at}"))]).await.expect("stored");
        if at == 30 {
            next(goes.as_mut().expect("still there")).await;
        }
        if at == 60 {
            goes = None;
        }
        if at % 3 == 0 {
            drop(store.subscribe());
        }
        if at % 2 == 1 {
            assert_eq!(next(&mut stays).await.position(), Some(at.div_ceil(2)));
        }
    }
    for position in 51..=100 {
        assert_eq!(next(&mut stays).await.position(), Some(position));
    }
}
