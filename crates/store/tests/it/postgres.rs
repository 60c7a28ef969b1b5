//! What is special about a store in PostgreSQL: several processes, lost connections, schemas.

use std::time::Duration;

use codewright_proto::SessionId;
use codewright_store::{Claim, Condition, Error, Lease, Store};

use crate::database::{Database, open_url};
use crate::server::Postgres;
use crate::support::*;

/// A time limit for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

async fn acquire(store: &Store, id: &SessionId) -> Lease {
    match store.lease(id).await.expect("answered") {
        Claim::Held(lease) => lease,
        Claim::HeldBy(holder) => panic!("held by {holder:?}"),
    }
}

#[tokio::test]
async fn processes_that_share_a_database_see_each_others_events_in_order() {
    let Some(database) = Database::new().await else { return };
    let stores = [database.open().await, database.open().await, database.open().await];
    stores[0].append(vec![created("ses_1")]).await.expect("stored");
    let mut feeds: Vec<_> = stores.iter().map(|store| store.subscribe_after(0)).collect();
    let mut tasks = tokio::task::JoinSet::new();
    for (at, store) in stores.clone().into_iter().enumerate() {
        tasks.spawn(async move {
            for n in 0..50 {
                store.append(vec![message("ses_1", &format!("msg_{at}_{n}"), 5)]).await.expect("stored");
            }
        });
    }
    tasks.join_all().await;
    for feed in &mut feeds {
        for position in 1..=151 {
            assert_eq!(next(feed).await.position(), Some(position));
        }
    }
    let seqs = stores[1].events_of(&session_id("ses_1"), 0, 1000).await.expect("readable");
    assert!(seqs.iter().map(|event| event.seq).eq(0..151));
}

#[tokio::test]
async fn an_owner_is_fenced_and_told_after_another_process_has_its_session() {
    let Some(database) = Database::new().await else { return };
    let (one, other) = (database.open().await, database.open().await);
    one.append(vec![created("ses_1")]).await.expect("stored");
    let id = session_id("ses_1");
    let lease = acquire(&one, &id).await;
    assert!(matches!(other.lease(&id).await.expect("answered"), Claim::HeldBy(holder) if !holder.is_ours));
    // As if the process had been paused: its time is over by the database's clock.
    let late = "UPDATE store_node SET alive_until = clock_timestamp() - interval '1 second'";
    let taken = tokio::time::timeout(PATIENCE, async {
        loop {
            database.client.batch_execute(late).await.expect("changed");
            if let Claim::Held(lease) = other.lease(&id).await.expect("answered") {
                return lease;
            }
        }
    });
    let taken = taken.await.expect("it is free");
    assert!(taken.fence() > lease.fence());
    taken.append(vec![message("ses_1", "msg_1", 5)]).await.expect("stored");
    let fenced = lease.append(vec![message("ses_1", "msg_2", 5)]).await;
    assert!(matches!(fenced, Err(Error::Fenced { .. })), "{fenced:?}");
    tokio::time::timeout(PATIENCE, lease.stop_signal().wait()).await.expect("the run is stopped");
    let former = Condition::Leased { session: id.clone(), fence: lease.fence() };
    other.append_if(former, vec![message("ses_1", "msg_3", 5)]).await.expect_err("refused");
    assert_eq!(other.transcript(&id).await.expect("readable").len(), 1);
}

#[tokio::test]
async fn an_owner_receives_a_stop_request_of_another_process() {
    let Some(database) = Database::new().await else { return };
    let (one, other) = (database.open().await, database.open().await);
    one.append(vec![created("ses_1"), created("ses_2")]).await.expect("stored");
    let id = session_id("ses_1");
    assert!(!other.ask_to_stop(&id).await.expect("answered"), "it has no owner");
    let (mut lease, beside) = (acquire(&one, &id).await, acquire(&one, &session_id("ses_2")).await);
    assert!(!one.ask_to_stop(&id).await.expect("answered"), "it is its own");
    assert!(other.ask_to_stop(&id).await.expect("answered"));
    tokio::time::timeout(PATIENCE, lease.stop_signal().wait()).await.expect("received");
    assert!(lease.release(u64::MAX).await.expect("answered"));
    let later = acquire(&one, &id).await;
    for lease in [&later, &beside] {
        let received = tokio::time::timeout(Duration::from_millis(1500), lease.stop_signal().wait()).await;
        received.expect_err("no request");
    }
    assert_eq!(other.holders().await.expect("answered").len(), 2);
    drop((later, beside));
    tokio::time::timeout(PATIENCE, other.wait_until_free(&id)).await.expect("soon").expect("answered");
    one.close().await.expect("closed");
    assert_eq!(other.holders().await.expect("answered"), []);
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_while_the_server_restarts() {
    let started = tokio::task::spawn_blocking(|| Postgres::with("UTF8", "on")).await.expect("no panic");
    let Some(mut server) = started else { return };
    let url = server.url("postgres", "");
    let store = open_url(&url).await.expect("opens");
    store.append(vec![created("ses_1")]).await.expect("stored");
    let lease = acquire(&store, &session_id("ses_1")).await;
    let mut feed = store.subscribe();
    let (stop, mut stopped) = tokio::sync::oneshot::channel();
    let appending = tokio::runtime::Handle::current().spawn(async move {
        let mut stored = Vec::new();
        for at in 0.. {
            let id = format!("msg_{at:05}");
            let answer =
                lease.append(vec![message("ses_1", &id, 5)]).await.expect("stored after the restart");
            stored.push((answer[0].position, id));
            if stopped.try_recv().is_ok() {
                break;
            }
        }
        stored
    });
    let mut server = tokio::task::spawn_blocking(move || {
        for order in ["crash", "start", "stop", "start"] {
            std::thread::sleep(Duration::from_millis(300));
            server.order(order);
        }
        server
    })
    .await
    .expect("no panic");
    stop.send(()).expect("it still appends");
    let stored = appending.await.expect("no panic");
    let log = store.events_of(&session_id("ses_1"), 1, 100_000).await.expect("readable");
    let logged: Vec<_> = log.iter().map(|event| event.position).collect();
    assert_eq!(logged, stored.iter().map(|(position, _)| *position).collect::<Vec<_>>(), "each once");
    for (position, _) in &stored {
        assert_eq!(next(&mut feed).await.position(), Some(*position));
    }
    // Without a server, requests end with a clear error instead of waiting.
    let _server = tokio::task::spawn_blocking(move || {
        server.order("stop");
        server
    })
    .await
    .expect("no panic");
    let (read, written) =
        tokio::join!(store.sessions(Default::default()), store.append(vec![created("ses_2")]));
    let errors = [read.expect_err("no server"), written.expect_err("no server")];
    for error in errors {
        assert!(matches!(error, Error::Unreachable { .. }) && error.hint().is_some(), "{error:?}");
    }
}

#[tokio::test]
async fn a_database_that_cannot_be_used_is_explained() {
    let Some(database) = Database::new().await else { return };
    let check = async |url: String, expected: &str| {
        let error = open_url(&url).await.expect_err(expected);
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.hint().is_some(), "{error}");
        assert!(!format!("{error:?} {error}").contains("hush"), "{error:?}");
    };
    let role = "CREATE ROLE locked LOGIN PASSWORD 'right'; CREATE ROLE poor LOGIN";
    drop(database.client.batch_execute(role).await);
    let other =
        |user: &str, name: &str| database.url.replace("codewright@/postgres", &format!("{user}@/{name}"));
    check(other("codewright", "nowhere"), "does not exist").await;
    check(other("locked:hush", "postgres"), "refuses access").await;
    check(other("poor", "postgres"), "refuses access").await;
    check("postgres://me:hush@127.0.0.1:1/d".to_owned(), "cannot be reached").await;
    check("postgres:/me:hush@h/d".to_owned(), "is not valid").await;
    check(format!("{}&sslmode=sometimes", database.url), "`sslmode` must be").await;

    database.open().await.close().await.expect("closed");
    let change = |sql: &'static str| database.client.batch_execute(sql);
    change("UPDATE store_schema SET version = 99").await.expect("changed");
    check(database.url.clone(), "schema version 99; this program supports versions up to 1").await;
    change("UPDATE store_schema SET version = 1").await.expect("changed");
    let read_only = database.url.replace("options=", "options=-cdefault_transaction_read_only%3Don%20");
    check(read_only, "is read-only").await;
    change("DROP TABLE store_schema").await.expect("changed");
    check(database.url.clone(), "not one of this program").await;
}

#[tokio::test]
async fn processes_that_open_a_new_database_together_create_it_once() {
    let Some(database) = Database::new().await else { return };
    let mut opening = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let url = database.url.clone();
        opening.spawn(async move { open_url(&url).await.expect("opens") });
    }
    let stores = opening.join_all().await;
    stores[0].append(vec![created("ses_1")]).await.expect("stored");
    for store in &stores {
        assert!(store.session(&session_id("ses_1")).await.expect("readable").is_some());
    }
}

#[tokio::test]
async fn texts_with_nul_are_stored() {
    let Some(database) = Database::new().await else { return };
    let store = database.open().await;
    let mut info = session("ses_1");
    info.title = "a\0b".to_owned();
    let stored = codewright_proto::Event::SessionCreated { session_id: info.id.clone(), info: info.clone() };
    store
        .append(vec![stored, message("ses_1", "msg_1", 5), part("ses_1", "msg_1", "prt_1", "\0")])
        .await
        .expect("stored");
    assert_eq!(store.session(&info.id).await.expect("readable"), Some(info.clone()));
    assert_eq!(store.transcript(&info.id).await.expect("readable").len(), 1);
    let found =
        store.sessions(codewright_store::SessionFilter { search: Some("\0".into()), ..Default::default() });
    assert_eq!(found.await.expect("readable").len(), 1);
}
