//! What is special about a store in PostgreSQL: several processes, lost connections, schemas.

use std::time::Duration;

use codewright_proto::SessionId;
use codewright_store::{Claim, Condition, Error, Lease, Member, Store};

use crate::database::{Database, open_url, with_server};
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
async fn an_owner_is_fenced_and_stopped_after_another_process_has_its_session() {
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
async fn a_server_that_leaves_keeps_its_sessions_for_others() {
    let Some(database) = Database::new().await else { return };
    let (one, other) = (database.open().await, database.open().await);
    one.append(vec![created("ses_1"), created("ses_2")]).await.expect("stored");
    let id = session_id("ses_1");
    let member = Member { name: "one".to_owned(), limit: 7, ..Member::default() };
    one.announce(member.clone());
    let (lease, mut done) = (acquire(&one, &id).await, acquire(&one, &session_id("ses_2")).await);
    let known = tokio::time::timeout(PATIENCE, async {
        loop {
            let members = other.members().await.expect("readable");
            if let [known] = members.all.as_slice() {
                return known.clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let known = known.await.expect("announced");
    assert_eq!(Member { id: String::new(), ..known.clone() }, member);
    let ownership = other.ownership(&id).await.expect("readable");
    assert_eq!((ownership.owner, ownership.last.as_deref()), (Some(known.id), Some("one")));
    assert!(done.release(u64::MAX).await.expect("answered"));

    one.seal().await.expect("sealed");
    let fenced = lease.append(vec![message("ses_1", "msg_1", 5)]).await;
    assert!(matches!(fenced, Err(Error::Fenced { .. })), "{fenced:?}");
    drop(lease);
    one.leave().await.expect("left");
    let orphans = other.orphans(10).await.expect("readable");
    assert_eq!(orphans.iter().map(|orphan| &orphan.session).collect::<Vec<_>>(), [&id]);
    assert!(other.members().await.expect("readable").all.is_empty());
    let taken = acquire(&other, &id).await;
    taken.append(vec![message("ses_1", "msg_1", 5)]).await.expect("stored");
    assert!(other.orphans(10).await.expect("readable").is_empty());
    one.close().await.expect("closed");
    assert_eq!(other.ownership(&session_id("ses_2")).await.expect("readable").owner, None);
}

/// On a slow disk the row of a new owner becomes visible long after its process knows of the lease.
#[tokio::test]
async fn a_lease_that_is_not_visible_yet_is_not_stopped() {
    let Some(database) = Database::new().await else { return };
    let store = database.open().await;
    store.append(vec![created("ses_1")]).await.expect("stored");
    let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN PERFORM pg_sleep(2.5); RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON event_sequence DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION slow()";
    database.client.batch_execute(slow).await.expect("a slow commit");
    let lease = acquire(&store, &session_id("ses_1")).await;
    let stopped = tokio::time::timeout(Duration::from_millis(200), lease.stop_signal().wait()).await;
    assert!(stopped.is_err(), "the owner was told to stop");
    lease.append(vec![message("ses_1", "msg_1", 5)]).await.expect("it is the owner");
}

/// Otherwise a server with many clients would not notice that another one has died.
#[tokio::test]
async fn urgent_queries_do_not_wait_for_those_of_clients() {
    let Some(database) = Database::new().await else { return };
    let store = database.open().await;
    store.append(vec![created("ses_1")]).await.expect("stored");
    database.client.batch_execute("BEGIN; LOCK TABLE message").await.expect("locked");
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let store = store.clone();
        clients.spawn(async move { store.messages(&session_id("ses_1"), None).await });
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let looks = async {
        store.members().await.expect("readable");
        store.orphans(10).await.expect("readable");
    };
    tokio::time::timeout(Duration::from_secs(10), looks).await.expect("no client is waited for");
    assert!(clients.try_join_next().is_none(), "the clients still wait");
    database.client.batch_execute("ROLLBACK").await.expect("unlocked");
    for answer in clients.join_all().await {
        answer.expect("readable");
    }
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
    check(database.url.clone(), "schema version 99; this program supports versions up to 3").await;
    change("UPDATE store_schema SET version = 2").await.expect("changed");
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

#[tokio::test]
async fn the_certificate_of_the_server_is_checked_as_the_address_demands() {
    let Some(database) = Database::new().await else { return };
    let found = with_server(|server| {
        let hosts = ["localhost", "127.0.0.1"].map(|host| server.tcp_url(host, ""));
        server.authorities().map(|files| (files, hosts))
    });
    let Some(Some(([own, other], [named, numbered]))) = found else {
        let reason = b"skipped: `openssl` is not installed\n";
        drop(std::io::Write::write_all(&mut std::io::stderr(), reason));
        return;
    };
    let schema = database.url.rsplit("%3D").next().expect("a schema");
    let own = own.to_str().expect("a plain path");
    let other = other.to_str().expect("a plain path");
    for (host, mode, root, is_good) in [
        (&named, "verify-full", own, true),
        (&named, "verify-full", other, false),
        (&numbered, "verify-full", own, false),
        (&numbered, "verify-ca", own, true),
        (&numbered, "verify-ca", other, false),
        (&numbered, "require", own, true),
        (&numbered, "require", other, false),
        (&numbered, "require", "", true),
        (&numbered, "prefer", other, true),
        (&named, "require", "system", false),
    ] {
        let url = format!("{host}?sslmode={mode}&sslrootcert={root}&options=-csearch_path%3D{schema}");
        let opened = open_url(&url).await;
        assert_eq!(opened.is_ok(), is_good, "{mode} {root}: {:?}", opened.err());
        if let Err(error) = opened {
            let is_explained = matches!(error, Error::Denied { .. } | Error::Address { .. });
            assert!(is_explained && error.hint().is_some(), "{mode} {root}: {error:?}");
        }
    }
    let url = format!("{numbered}?sslmode=require&options=-csearch_path%3D{schema}");
    let store = open_url(&url).await.expect("opens");
    let encrypted = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE client_addr IS NOT NULL";
    let row = database.client.query_one(encrypted, &[]).await.expect("readable");
    assert!(row.get::<_, bool>(0));
    store.close().await.expect("closed");
}

#[tokio::test]
async fn a_certificate_is_the_users_password() {
    let Some(database) = Database::new().await else { return };
    let found = with_server(|server| Some((server.certified()?, server.tcp_url("localhost", ""))));
    let Some(Some(([certificate, shared], url))) = found else { return };
    let create = "DO $$ BEGIN CREATE ROLE certified LOGIN SUPERUSER;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$";
    database.client.batch_execute(create).await.expect("a role");
    let folder = tempfile::tempdir().expect("a directory");
    let key = folder.path().join("own.key");
    std::fs::copy(&shared, &key).expect("copied");
    let schema = database.url.rsplit("%3D").next().expect("a schema");
    let url = url.replace("codewright@", "certified@");
    let with = |key: &std::path::Path| {
        format!(
            "{url}?sslmode=require&options=-csearch_path%3D{schema}&sslcert={}&sslkey={}",
            certificate.display(),
            key.display()
        )
    };
    let error = open_url(&with(&key)).await.err().map(|error| format!("{error:?}")).unwrap_or_default();
    assert!(error.contains("other users can read the private key"), "{error}");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&key, private).expect("changed");
    open_url(&with(&key)).await.expect("opens").close().await.expect("closed");
    let without = format!("{url}?sslmode=require&options=-csearch_path%3D{schema}");
    assert!(open_url(&without).await.is_err(), "no certificate was needed");
}

#[tokio::test]
async fn a_store_is_copied_both_ways_and_an_interrupted_copy_is_continued() {
    let (Some(database), Some(damaged)) = (Database::new().await, Database::new().await) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let file = open(&directory.path().join("store.db")).await;
    for recorded in [include_str!("../fixtures/simple-text.json"), include_str!("../fixtures/read-edit.json")]
    {
        let recorded: Recorded = serde_json::from_str(recorded).expect("a recorded session");
        file.save_project(project(recorded.session.project_id.as_str())).await.expect("saved");
        file.append(recorded.events()).await.expect("stored");
    }
    file.append(vec![created("ses_1"), message("ses_1", "msg_1", 5), asked("ses_1", "per_1")])
        .await
        .expect("stored");
    file.append(vec![part("ses_1", "msg_1", "prt_1", "one"), created("ses_2")]).await.expect("stored");
    let codewright_proto::Event::PartUpdated { part: grown, .. } = part("ses_1", "msg_1", "prt_1", "one two")
    else {
        panic!("a part");
    };
    file.draft(grown).await.expect("kept");
    file.append(vec![deleted("ses_2")]).await.expect("stored");
    for (time, is_refusal) in [(1, false), (2, true), (3, false)] {
        let (account, action) = ("alice".to_owned(), format!("action-{time}"));
        let entry = codewright_store::Audited { time, account, action, is_refusal, ..Default::default() };
        file.audit(entry).await.expect("stored");
    }
    let count = file.last_position();

    let store = database.open().await;
    let copied = codewright_store::copy(&file, &store).await.expect("copied");
    assert_eq!((copied.events, copied.found, copied.sessions, copied.audited), (count, 0, 4, 3));
    let audited = store.audited(None, 10).await.expect("readable");
    assert_eq!(audited.iter().map(|entry| entry.time).collect::<Vec<_>>(), [3, 2, 1], "newest first");
    let (theirs, ours) = (store.events(0, 1000).await, file.events(0, 1000).await);
    assert_eq!(theirs.expect("readable"), ours.expect("readable"), "with times and positions");
    // Again: everything is there. After more events: only those are copied.
    file.append(vec![message("ses_1", "msg_2", 6)]).await.expect("stored");
    let again = codewright_store::copy(&file, &store).await.expect("copied");
    assert_eq!((again.events, again.found), (count + 1, count));
    let back = open(&directory.path().join("back/store.db")).await;
    let copied = codewright_store::copy(&store, &back).await.expect("copied");
    assert_eq!(copied.messages, again.messages);
    assert!(rows(&directory.path().join("store.db")) == rows(&directory.path().join("back/store.db")));

    // Another target, a row that was changed by hand, and a session that is run.
    let other = damaged.open().await;
    other.append(vec![created("ses_9")]).await.expect("stored");
    let refused = codewright_store::copy(&file, &other).await.expect_err("refused");
    assert!(refused.to_string().contains("copy into an empty store"), "{refused}");
    let change = "UPDATE part SET data = '{\"type\":\"text\",\"text\":\"other\"}'; DELETE FROM draft";
    database.client.batch_execute(change).await.expect("changed");
    let refused = codewright_store::copy(&store, &back).await.expect_err("refused");
    assert!(refused.to_string().contains("differs from the original"), "{refused}");
    let _lease = acquire(&file, &session_id("ses_1")).await;
    let refused = codewright_store::copy(&file, &store).await.expect_err("refused");
    assert!(refused.to_string().contains("runs the session `ses_1` of the source"), "{refused}");
}

/// Prints how many events per second 32 sessions append, and the times of an append.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement: run it with --release and --nocapture"]
async fn the_rate_of_appends() {
    const SESSIONS: usize = 32;
    const APPENDS: usize = 400;
    let started = tokio::task::spawn_blocking(|| Postgres::with("UTF8", "on")).await.expect("no panic");
    let Some(server) = started else { return };
    let store = open_url(&server.url("postgres", "")).await.expect("opens");
    let mut tasks = tokio::task::JoinSet::new();
    for at in 0..SESSIONS {
        let id = format!("ses_{at}");
        store.append(vec![created(&id), message(&id, &format!("msg_{at}"), 5)]).await.expect("stored");
    }
    let begun = std::time::Instant::now();
    for at in 0..SESSIONS {
        let store = store.clone();
        tasks.spawn(async move {
            let (session, message) = (format!("ses_{at}"), format!("msg_{at}"));
            let mut times = Vec::new();
            for n in 0..APPENDS {
                // As in a step: a part begins and another ends.
                let text = "x".repeat(300);
                let events = [0, 1].map(|part_of| {
                    part(&session, &message, &format!("prt_{at}_{n}_{part_of}"), text.as_str())
                });
                let sent = std::time::Instant::now();
                store.append(events.into()).await.expect("stored");
                times.push(sent.elapsed());
            }
            times
        });
    }
    let mut times: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    let seconds = begun.elapsed().as_secs_f64();
    times.sort_unstable();
    let events = SESSIONS * APPENDS * 2;
    let (half, most) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    let line = format!("{:.0} events/s, an append p50 {half:?}, p99 {most:?}\n", events as f64 / seconds);
    std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes()).expect("printed");
}
