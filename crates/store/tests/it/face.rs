//! Stored values are returned unchanged and in order.

use codewright_proto::{Event, PartId, ProjectId, Session};
use codewright_store::{Error, SessionFilter, Store};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::*;

async fn check_recorded(json: &str) {
    let expected: Value = serde_json::from_str(json).expect("JSON");
    let recorded: Recorded = serde_json::from_str(json).expect("a recorded session");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path).await;
    store.save_project(project(recorded.session.project_id.as_str())).await.expect("saved");

    let id = recorded.session.id.clone();
    let events = recorded.events();
    let count = events.len();
    store.append(events).await.expect("stored");
    // Opened again, so that nothing is read from memory.
    store.close().await.expect("closed");
    let store = open(&path).await;

    let session = store.session(&id).await.expect("readable").expect("there");
    assert_eq!(to_value(&session), expected["session"]);
    assert_eq!(to_value(&store.transcript(&id).await.expect("readable")), expected["messages"]);
    let infos = store.infos(&id).await.expect("readable");
    assert_eq!(
        infos.iter().map(to_value).collect::<Vec<_>>(),
        expected["messages"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|m| m["info"].clone())
            .collect::<Vec<_>>()
    );
    let page = store.messages_json(&id, None, None).await.expect("readable").expect("there");
    assert_eq!(parsed(&page.json), expected["messages"]);
    let listed = store.sessions_json(SessionFilter::default()).await.expect("readable");
    assert_eq!(parsed(&listed), json!([expected["session"]]));
    for message in expected["messages"].as_array().expect("a list") {
        let one = message_id(message["info"]["id"].as_str().expect("an id"));
        assert_eq!(to_value(&store.message(&id, &one).await.expect("readable")), *message);
    }
    assert_eq!(store.replay().await.expect("replayed"), count as u64);
    assert_eq!(to_value(&store.transcript(&id).await.expect("readable")), expected["messages"]);
}

#[tokio::test]
async fn a_session_that_was_changed_by_hand_is_listed_with_its_changes() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path).await;
    store.append(vec![created("ses_1"), created("ses_2")]).await.expect("stored");
    let connection = rusqlite::Connection::open(&path).expect("the file opens");
    connection.execute("UPDATE session SET title = 'mine' WHERE id = 'ses_1'", []).expect("changed");
    let listed = parsed(&store.sessions_json(SessionFilter::default()).await.expect("readable"));
    let typed = to_value(&store.sessions(SessionFilter::default()).await.expect("readable"));
    assert_eq!(listed, typed);
    let titled = listed.as_array().expect("a list").iter().filter(|session| session["title"] == "mine");
    assert_eq!(titled.count(), 1);
    // Its next event restores the JSON column.
    store
        .append(vec![updated(Session { title: "theirs".to_owned(), ..session("ses_1") })])
        .await
        .expect("stored");
    let sql = "SELECT data ->> '$.title' FROM session ORDER BY id";
    let mut statement = connection.prepare(sql).expect("a statement");
    let titles: Vec<Option<String>> =
        statement.query_map([], |row| row.get(0)).expect("rows").collect::<Result<_, _>>().expect("text");
    assert_eq!(titles[0].as_deref(), Some("theirs"));
    assert!(titles[1].is_some());
}

#[tokio::test]
async fn a_row_that_is_not_json_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path).await;
    let id = session_id("ses_1");
    store
        .append(vec![created("ses_1"), message("ses_1", "msg_1", 5), part("ses_1", "msg_1", "prt_1", "text")])
        .await
        .expect("stored");
    let connection = rusqlite::Connection::open(&path).expect("the file opens");
    for (table, broken) in [("part", "{\"type\":\"te"), ("message", "[1]"), ("session", "{")] {
        connection.execute(&format!("UPDATE {table} SET data = ?1"), [broken]).expect("changed");
        let error = match table {
            "session" => store.sessions_json(SessionFilter::default()).await.map(drop),
            _ => store.messages_json(&id, None, None).await.map(drop),
        };
        let error = error.expect_err("it cannot be read").to_string();
        assert!(error.contains(&format!("{table} `")), "{error}");
    }
}

#[tokio::test]
async fn a_recorded_session_is_returned_unchanged() {
    check_recorded(include_str!("../fixtures/simple-text.json")).await;
    check_recorded(include_str!("../fixtures/read-edit.json")).await;
}

#[tokio::test]
async fn every_kind_of_stored_event_stays_readable() {
    let rows: Vec<Value> = serde_json::from_str(include_str!("../fixtures/events-v1.json")).expect("JSON");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    open(&path).await.close().await.expect("closed");
    let connection = rusqlite::Connection::open(&path).expect("the file opens");
    for (at, row) in (0_i64..).zip(&rows) {
        let session = row["data"]["sessionID"].as_str().expect("an id");
        let sql = "INSERT INTO event_sequence (aggregate_id, seq) VALUES (?1, ?2)
            ON CONFLICT DO UPDATE SET seq = excluded.seq";
        connection.execute(sql, rusqlite::params![session, at]).expect("a row");
        let sql =
            "INSERT INTO event (id, aggregate_id, seq, type, data, time) VALUES (?1, ?2, ?3, ?4, ?5, 1)";
        let (id, kind) = (format!("evt_{at}"), row["type"].as_str());
        connection
            .execute(sql, rusqlite::params![id, session, at, kind, row["data"].to_string()])
            .expect("a row");
    }
    drop(connection);

    let store = open(&path).await;
    let events = store.events(0, 1000).await.expect("readable");
    assert_eq!(events.len(), rows.len());
    let mut names = std::collections::BTreeSet::new();
    for (envelope, row) in events.iter().zip(&rows) {
        assert_eq!(row["type"], format!("{}.1", envelope.event.name()));
        assert_eq!(to_value(&envelope.event)["properties"], row["data"]);
        names.insert(envelope.event.name());
    }
    assert_eq!(names.len(), 9, "a kind of event has no fixture: {names:?}");
}

#[tokio::test]
async fn an_append_is_all_or_nothing_and_does_not_affect_others() {
    let (ids, clock) = stamps();
    let store = Store::in_memory(ids, clock).await.expect("opens");
    store.save_project(project("p1")).await.expect("saved");
    store.append(vec![created("ses_1"), message("ses_1", "msg_1", 5)]).await.expect("stored");

    // All are queued together, so that valid and invalid ones share transactions.
    let mut tasks = JoinSet::new();
    for at in 0..40 {
        let store = store.clone();
        tasks.spawn(async move {
            let id = format!("prt_{at:02}");
            let second = if at % 2 == 0 { "msg_1" } else { "msg_unknown" };
            let events = vec![part("ses_1", "msg_1", &id, "a"), part("ses_1", second, &id, "b")];
            (at, store.append(events).await)
        });
    }
    for (at, outcome) in tasks.join_all().await {
        match outcome {
            Ok(envelopes) => assert!(at % 2 == 0 && envelopes.len() == 2),
            Err(error) => {
                assert_eq!((at % 2, error.to_string()), (1, "there is no message `msg_unknown`".to_owned()));
            }
        }
    }
    let transcript = store.transcript(&session_id("ses_1")).await.expect("readable");
    assert_eq!(transcript[0].parts.len(), 20);
    let seqs: Vec<u64> = store
        .events_of(&session_id("ses_1"), 0, 1000)
        .await
        .expect("readable")
        .iter()
        .map(|e| e.seq)
        .collect();
    assert_eq!(seqs, (0..42).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_event_about_a_missing_or_foreign_object_is_rejected() {
    let (ids, clock) = stamps();
    let store = Store::in_memory(ids, clock).await.expect("opens");
    let refused = async |events, expected: &str| {
        let error = store.append(events).await.expect_err(expected);
        assert_eq!(error.to_string(), expected);
    };
    refused(vec![created("ses_1")], "there is no project `p1`").await;
    store.save_project(project("p1")).await.expect("saved");
    store.append(vec![created("ses_1"), created("ses_2")]).await.expect("stored");
    store.append(vec![message("ses_1", "msg_1", 5), message("ses_1", "msg_2", 6)]).await.expect("stored");
    store.append(vec![part("ses_1", "msg_1", "prt_1", "a"), asked("ses_1", "per_1")]).await.expect("stored");
    let before = store.events(0, 1000).await.expect("readable").len();

    refused(vec![updated(session("ses_9"))], "there is no session `ses_9`").await;
    refused(vec![deleted("ses_9")], "there is no session `ses_9`").await;
    refused(vec![message("ses_9", "msg_9", 5)], "there is no session `ses_9`").await;
    refused(vec![message("ses_2", "msg_1", 5)], "the id `msg_1` is used by another message").await;
    refused(vec![part("ses_9", "msg_1", "prt_9", "a")], "there is no session `ses_9`").await;
    refused(vec![part("ses_2", "msg_1", "prt_9", "a")], "there is no message `msg_1`").await;
    refused(vec![part("ses_1", "msg_2", "prt_1", "a")], "the id `prt_1` is used by another part").await;
    refused(vec![asked("ses_9", "per_9")], "there is no session `ses_9`").await;
    refused(vec![asked("ses_2", "per_1")], "the id `per_1` is used by another permission request").await;
    refused(vec![replied("ses_2", "per_1")], "there is no permission request `per_1`").await;
    let many = (0..10_001).map(|_| deleted("ses_1")).collect();
    refused(many, "the request has 10001 events, the limit is 10000").await;
    let text = "x".repeat(33 * 1024 * 1024);
    let large = vec![part("ses_1", "msg_1", "prt_1", text.clone()), part("ses_1", "msg_1", "prt_1", text)];
    let error = store.append(large).await.expect_err("too large");
    assert!(matches!(error, Error::TooLarge { unit: "bytes", .. }), "{error}");

    assert_eq!(store.events(0, 1000).await.expect("readable").len(), before);
    store.append(vec![replied("ses_1", "per_1")]).await.expect("the first reply");
    refused(vec![replied("ses_1", "per_1")], "there is no permission request `per_1`").await;
}

#[tokio::test]
async fn removing_deletes_children_and_keeps_the_log() {
    let (ids, clock) = stamps();
    let store = Store::in_memory(ids, clock).await.expect("opens");
    store.save_project(project("p1")).await.expect("saved");
    let id = session_id("ses_1");
    store.append(vec![created("ses_1")]).await.expect("stored");
    for message_id in ["msg_1", "msg_2", "msg_3"] {
        let part = |at| part("ses_1", message_id, &format!("prt_{message_id}_{at}"), "a");
        store.append(vec![message("ses_1", message_id, 5), part(1), part(2)]).await.expect("stored");
    }
    store.append(vec![asked("ses_1", "per_1"), asked("ses_1", "per_2")]).await.expect("stored");

    let removed = Event::MessageRemoved { session_id: id.clone(), message_id: message_id("msg_2") };
    let part_id = PartId::parse("prt_msg_1_2").expect("an id");
    let part_removed =
        Event::PartRemoved { session_id: id.clone(), message_id: message_id("msg_1"), part_id };
    store
        .append(vec![removed.clone(), removed, part_removed, replied("ses_1", "per_1")])
        .await
        .expect("stored");
    let shape = async || -> Vec<(String, usize)> {
        let transcript = store.transcript(&id).await.expect("readable");
        transcript.iter().map(|m| (m.info.id().to_string(), m.parts.len())).collect()
    };
    assert_eq!(shape().await, [("msg_1".to_owned(), 1), ("msg_3".to_owned(), 2)]);
    let newest = store.messages(&id, Some(1)).await.expect("readable");
    assert_eq!(newest.iter().map(|m| m.info.id().as_str()).collect::<Vec<_>>(), ["msg_3"]);
    let pending = store.pending_permissions().await.expect("readable");
    assert_eq!(pending.iter().map(|request| request.id.as_str()).collect::<Vec<_>>(), ["per_2"]);

    store.append(vec![deleted("ses_1")]).await.expect("stored");
    assert_eq!(shape().await, []);
    assert_eq!(store.session(&id).await.expect("readable"), None);
    assert_eq!(store.pending_permissions().await.expect("readable"), []);
    let log = store.events_of(&id, 0, 1000).await.expect("readable");
    assert_eq!(log.len(), 17);
    assert_eq!(log.last().expect("an event").event.name(), "session.deleted");
    let error = store.append(vec![message("ses_1", "msg_4", 9)]).await.expect_err("a late run");
    assert!(matches!(error, Error::Unknown { kind: "session", .. }), "{error}");
}

#[tokio::test]
async fn messages_are_in_the_order_of_creation() {
    let (ids, clock) = stamps();
    let store = Store::in_memory(ids, clock).await.expect("opens");
    store.save_project(project("p1")).await.expect("saved");
    store.append(vec![created("ses_1")]).await.expect("stored");
    for (id, created) in [("msg_b", 7), ("msg_z", 5), ("msg_a", 7), ("msg_c", 6)] {
        let parts = ["prt_2", "prt_1"].map(|part_id| part("ses_1", id, &format!("{part_id}{id}"), "a"));
        store.append(vec![message("ses_1", id, created)]).await.expect("stored");
        store.append(parts.into()).await.expect("stored");
    }
    let all = store.transcript(&session_id("ses_1")).await.expect("readable");
    let order: Vec<_> = all.iter().map(|m| m.info.id().as_str()).collect();
    assert_eq!(order, ["msg_z", "msg_c", "msg_a", "msg_b"]);
    assert!(all.iter().all(|message| message.parts.is_sorted_by_key(|part| part.id.clone())));
    for limit in [0, 1, 3, 9] {
        let newest = store.messages(&session_id("ses_1"), Some(limit)).await.expect("readable");
        assert_eq!(newest, all[all.len().saturating_sub(limit)..]);
    }
}

#[tokio::test]
async fn sessions_are_filtered_and_the_latest_is_first() {
    let (ids, clock) = stamps();
    let store = Store::in_memory(ids, clock).await.expect("opens");
    store.save_project(project("p1")).await.expect("saved");
    store.save_project(project("p2")).await.expect("saved");
    for (id, project, directory, parent, title, updated) in [
        ("ses_1", "p1", "/p1", None, "Fix 100% of it", 10),
        ("ses_2", "p1", "/p1/sub", None, "Fix 1000 of it", 30),
        ("ses_3", "p1", "/p1", Some("ses_1"), "explore", 20),
        ("ses_4", "p2", "/p2", None, "other", 30),
    ] {
        let mut info = session(id);
        info.project_id = ProjectId(project.into());
        info.directory = directory.to_owned();
        info.parent_id = parent.map(session_id);
        info.title = title.to_owned();
        info.time.updated = updated;
        let event = Event::SessionCreated { session_id: info.id.clone(), info };
        store.append(vec![event]).await.expect("stored");
    }
    let check = async |filter, expected: &[&str]| {
        let found = store.sessions(filter).await.expect("readable");
        assert_eq!(found.iter().map(|session| session.id.as_str()).collect::<Vec<_>>(), expected);
    };
    let all = SessionFilter::default;
    check(all(), &["ses_2", "ses_4", "ses_3", "ses_1"]).await;
    check(SessionFilter { directory: Some("/p1".into()), ..all() }, &["ses_3", "ses_1"]).await;
    check(SessionFilter { project: Some(ProjectId("p2".into())), ..all() }, &["ses_4"]).await;
    check(SessionFilter { parent: Some(session_id("ses_1")), ..all() }, &["ses_3"]).await;
    check(SessionFilter { roots: true, ..all() }, &["ses_2", "ses_4", "ses_1"]).await;
    check(SessionFilter { search: Some("100%".into()), ..all() }, &["ses_1"]).await;
    check(SessionFilter { search: Some("FIX".into()), ..all() }, &["ses_2", "ses_1"]).await;
    check(SessionFilter { search: Some("' OR 1=1".into()), ..all() }, &[]).await;
    check(SessionFilter { search: Some("x".repeat(100_000)), ..all() }, &[]).await;
    check(SessionFilter { start: Some(20), ..all() }, &["ses_2", "ses_4", "ses_3"]).await;
    check(SessionFilter { roots: true, start: Some(11), limit: Some(1), ..all() }, &["ses_2"]).await;
    check(SessionFilter { limit: Some(0), ..all() }, &[]).await;
    check(SessionFilter { below: Some("/p1".into()), ..all() }, &["ses_2", "ses_3", "ses_1"]).await;
    check(SessionFilter { below: Some("/p".into()), ..all() }, &[]).await;
    check(SessionFilter { below: Some("/p1/sub".into()), ..all() }, &["ses_2"]).await;
    check(SessionFilter { below: Some("/".into()), ..all() }, &["ses_2", "ses_4", "ses_3", "ses_1"]).await;
    let outside = || Some(ProjectId("p1".into()));
    check(SessionFilter { outside: outside(), ..all() }, &["ses_4"]).await;
    check(SessionFilter { outside: outside(), below: Some("/p1".into()), ..all() }, &[]).await;
    check(SessionFilter { before: Some(30), ..all() }, &["ses_3", "ses_1"]).await;
}

#[tokio::test]
async fn every_field_of_a_session_is_returned() {
    let (ids, clock) = stamps();
    let store = Store::in_memory(ids, clock).await.expect("opens");
    store.save_project(project("p1")).await.expect("saved");
    store.append(vec![created("ses_1")]).await.expect("stored");
    let full = json!({
        "id": "ses_1", "slug": "s", "projectID": "p1", "directory": "/d", "path": "sub", "parentID": "ses_0",
        "summary": {"additions": 1, "deletions": 2, "files": 3,
            "diffs": [{"file": "f", "patch": "p", "additions": 1, "deletions": 2, "status": "added"}]},
        "cost": 31.245270191439438, "tokens": {"total": 9, "input": 1, "output": 2, "reasoning": 3,
            "cache": {"read": 4, "write": 5}},
        "share": {"url": "https://example.test/s"}, "title": "t \u{1F600} '\"", "agent": "build",
        "model": {"id": "m", "providerID": "p", "variant": "v"}, "version": "1",
        "metadata": {"z": 1, "a": [null, {"k": 1.5}]},
        "permission": [{"permission": "bash", "pattern": "*", "action": "ask"}],
        "time": {"created": 1, "updated": 2, "compacting": 3, "archived": 4},
    });
    store
        .append(vec![updated(serde_json::from_value(full.clone()).expect("a session"))])
        .await
        .expect("stored");
    let found = store.session(&session_id("ses_1")).await.expect("readable").expect("there");
    assert_eq!(to_value(&found), full);
    // The log has decimals, which must give the same number.
    store.replay().await.expect("replayed");
    assert_eq!(store.session(&session_id("ses_1")).await.expect("readable"), Some(found));
    // A removed field is removed from the row too.
    store.append(vec![updated(session("ses_1"))]).await.expect("stored");
    assert_eq!(store.session(&session_id("ses_1")).await.expect("readable"), Some(session("ses_1")));
}

#[tokio::test]
async fn projects_are_found_by_their_worktree() {
    let (ids, clock) = stamps();
    let store = Store::in_memory(ids, clock).await.expect("opens");
    assert_eq!(store.project_of("/p1").await.expect("readable"), None);
    store.save_project(project("p1")).await.expect("saved");
    let mut second = project("p2");
    second.time.updated = 9;
    second.time.initialized = Some(3);
    store.save_project(second.clone()).await.expect("saved");
    second.name = Some("renamed".to_owned());
    store.save_project(second.clone()).await.expect("saved again");
    assert_eq!(store.project_of("/p2").await.expect("readable"), Some(second.clone()));
    assert_eq!(store.projects().await.expect("readable"), [second, project("p1")]);
}

#[tokio::test]
async fn a_text_of_two_megabytes_is_returned() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory.path().join("store.db")).await;
    let text = "a \"quoted\" line \u{1F600}\n".repeat(2 * 1024 * 1024 / 24);
    let mut subscription = store.subscribe();
    let large = part("ses_1", "msg_1", "prt_1", text);
    store.append(vec![created("ses_1"), message("ses_1", "msg_1", 5), large.clone()]).await.expect("stored");
    let transcript = store.transcript(&session_id("ses_1")).await.expect("readable");
    let Event::PartUpdated { part, .. } = &large else { unreachable!("made above") };
    assert!(transcript[0].parts == [part.clone()], "the text has changed");
    let log = store.events(2, 10).await.expect("readable");
    assert!(log[0].event == large, "the text has changed in the log");
    for _ in 0..2 {
        next(&mut subscription).await;
    }
    assert_eq!(next(&mut subscription).await.position(), Some(3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_appends_leave_no_gaps() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory.path().join("store.db")).await;
    store.append(vec![created("ses_a"), created("ses_b")]).await.expect("stored");
    let mut tasks = JoinSet::new();
    for task in 0..8 {
        let store = store.clone();
        tasks.spawn(async move {
            let session = if task % 2 == 0 { "ses_a" } else { "ses_b" };
            let mut last = 0;
            for at in 0..200 {
                let event = message(session, &format!("msg_{task}_{at}"), 5);
                let stored = store.append(vec![event]).await.expect("stored");
                assert!(stored[0].position > last, "a later append has a later place");
                last = stored[0].position;
            }
        });
    }
    tasks.join_all().await;
    for session in ["ses_a", "ses_b"] {
        let log = store.events_of(&session_id(session), 0, 10_000).await.expect("readable");
        assert!(log.iter().map(|envelope| envelope.seq).eq(0..801), "{session} has gaps");
    }
    let mut after = 0;
    let mut positions = Vec::new();
    loop {
        let page = store.events(after, 300).await.expect("readable");
        let Some(last) = page.last() else { break };
        after = last.position;
        positions.extend(page.iter().map(|envelope| envelope.position));
    }
    assert!(positions.into_iter().eq(1..=1602), "the log has gaps");
}

#[tokio::test]
async fn pages_of_messages_join_to_the_transcript() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory.path().join("store.db")).await;
    let mut events = vec![created("ses_1"), created("ses_2"), message("ses_2", "msg_other", 5)];
    // Several have the same time, so that the id determines the order.
    events.extend((0..25).map(|at| message("ses_1", &format!("msg_{at:02}"), at / 4)));
    store.append(events).await.expect("stored");
    let id = session_id("ses_1");
    let all = store.transcript(&id).await.expect("readable");
    for limit in [1, 4, 7, 25, 100] {
        let (mut joined, mut before, mut more) = (Vec::new(), None, true);
        while more {
            let page = store.messages_before(&id, limit, before).await.expect("readable");
            assert!(page.0.len() <= limit && !page.0.is_empty());
            before = page.0.first().map(|first| (first.info.created(), first.info.id().clone()));
            more = page.1;
            joined.splice(0..0, page.0);
            // Later messages do not shift earlier pages.
            store.append(vec![message("ses_2", "msg_other", 6)]).await.expect("stored");
        }
        assert_eq!(joined, all, "{limit}");
    }
}
