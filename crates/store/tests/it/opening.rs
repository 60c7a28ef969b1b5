//! Opening files in various states.

use std::fs;
use std::path::Path;

use codewright_proto::Event;
use codewright_store::{Error, Store};

use crate::support::*;

async fn open_error(path: &Path) -> Error {
    let (ids, clock) = stamps();
    Store::open(path, ids, clock).await.expect_err("the store does not open")
}

#[test]
fn many_can_open_a_new_file_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("new/deep/store.db");
    std::thread::scope(|scope| {
        for at in 0..16 {
            let path = &path;
            scope.spawn(move || {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
                runtime.block_on(async {
                    let store = open(path).await;
                    let id = format!("ses_{at:02}");
                    store
                        .append(vec![created(&id), message(&id, &format!("msg_{at}"), 5)])
                        .await
                        .expect("stored");
                    // Some are closed and some dropped, while others are still opening.
                    if at % 2 == 0 {
                        store.close().await.expect("closed");
                    }
                });
            });
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store = open(&path).await;
        assert_eq!(store.sessions(Default::default()).await.expect("readable").len(), 16);
        assert_eq!(store.events(0, 100).await.expect("readable").len(), 32);
        assert_eq!(store.last_position(), 32);
    });
    let left: Vec<_> = fs::read_dir(path.parent().expect("a parent")).expect("a directory").collect();
    assert!(left.len() <= 4, "opening leaves nothing but `locks` beside the database: {left:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn created_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("new/store.db");
    let store = open(&path).await;
    store.append(vec![created("ses_1")]).await.expect("stored");
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(path.parent().expect("a parent")), 0o700);
    for name in ["store.db", "store.db-wal", "store.db-shm"] {
        assert_eq!(mode(&path.with_file_name(name)), 0o600, "{name}");
    }
    store.close().await.expect("closed");
}

#[tokio::test]
async fn the_log_after_closing_is_short() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let log = || fs::metadata(path.with_file_name("store.db-wal")).map_or(0, |log| log.len());
    let store = open(&path).await;
    store.append(vec![created("ses_1"), message("ses_1", "msg_1", 5)]).await.expect("stored");
    for at in 0..20 {
        store
            .append(vec![part("ses_1", "msg_1", &format!("prt_{at}"), "x".repeat(100_000))])
            .await
            .expect("stored");
    }
    assert!(log() > 1024 * 1024, "{}", log());
    store.close().await.expect("closed");
    assert!(log() <= 1024 * 1024, "{}", log());
}

#[tokio::test]
async fn acknowledged_events_survive_a_drop() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    for round in 0..5_u64 {
        let store = open(&path).await;
        assert_eq!(store.last_position(), round * 10);
        for at in 0..10 {
            store.append(vec![created(&format!("ses_{round}_{at}"))]).await.expect("stored");
        }
        drop(store);
        let store = open(&path).await;
        assert_eq!(store.events(0, 1000).await.expect("readable").len() as u64, (round + 1) * 10);
    }
}

#[tokio::test]
async fn acknowledged_events_are_in_the_files_immediately() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path).await;
    for at in 0..50 {
        store.append(vec![created(&format!("ses_{at}"))]).await.expect("stored");
    }
    // The files of a killed process.
    let copy = directory.path().join("copy.db");
    fs::copy(&path, &copy).expect("copied");
    fs::copy(path.with_file_name("store.db-wal"), copy.with_file_name("copy.db-wal")).expect("copied");
    let copied = open(&copy).await;
    assert_eq!(copied.last_position(), 50);
    assert_eq!(copied.sessions(Default::default()).await.expect("readable").len(), 50);
}

#[tokio::test]
async fn a_closed_store_returns_closed() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(&directory.path().join("store.db")).await;
    let other = store.clone();
    let mut subscription = store.subscribe();
    store.append(vec![created("ses_1")]).await.expect("stored");
    store.close().await.expect("closed");
    assert!(matches!(other.append(vec![created("ses_2")]).await, Err(Error::Closed)));
    assert!(matches!(other.session(&session_id("ses_1")).await, Err(Error::Closed)));
    assert_eq!(next(&mut subscription).await.position(), Some(1));
    assert!(matches!(subscription.next().await, Err(Error::Closed)));
    assert!(matches!(other.close().await, Err(Error::Closed)));
}

#[tokio::test]
async fn a_newer_schema_is_rejected_with_both_versions() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    open(&path).await.close().await.expect("closed");
    rusqlite::Connection::open(&path).expect("opens").pragma_update(None, "user_version", 70).expect("set");
    let error = open_error(&path).await;
    assert!(matches!(error, Error::Newer { found: 70, known: 8, .. }), "{error}");
    assert_eq!(
        error.to_string(),
        format!(
            "the store `{}` has schema version 70; this program supports versions up to 8",
            path.display()
        )
    );
}

#[tokio::test]
async fn the_position_of_an_old_message_is_found_in_the_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path).await;
    let (session, own) = (session_id("ses_1"), message_id("msg_own"));
    let removed = Event::MessageRemoved { session_id: session.clone(), message_id: own.clone() };
    let sent = || message("ses_1", "msg_own", 5);
    store.append(vec![created("ses_1"), sent(), removed, sent(), sent()]).await.expect("stored");
    store.close().await.expect("closed");
    rusqlite::Connection::open(&path)
        .expect("opens")
        .execute("UPDATE message SET seq = NULL", [])
        .expect("set");
    let store = open(&path).await;
    assert_eq!(store.first_seq(&session, &own).await.expect("read"), Some(3));
}

#[tokio::test]
async fn a_database_of_another_program_is_rejected() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let connection = rusqlite::Connection::open(&path).expect("opens");
    connection.execute_batch("CREATE TABLE session (id text)").expect("a table");
    drop(connection);
    let before = fs::read(&path).expect("readable");
    let error = open_error(&path).await;
    assert!(matches!(error, Error::Foreign { .. }), "{error}");
    assert_eq!(fs::read(&path).expect("readable"), before);
}

#[tokio::test]
async fn an_unwritable_path_is_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("file");
    fs::write(&file, "").expect("written");
    // Below a file, in place of a directory, and where not even root can create files.
    let mut places = vec![file.join("store.db"), directory.path().to_owned()];
    if cfg!(target_os = "linux") {
        places.push("/proc/self/store.db".into());
    }
    for path in places {
        let error = open_error(&path).await;
        assert!(matches!(error, Error::Unwritable { .. }), "{error}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}

/// Root can write anywhere; the test above has a path for root.
#[cfg(unix)]
#[tokio::test]
async fn a_read_only_directory_or_file_is_reported() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a directory");
    let closed = directory.path().join("closed");
    let existing = directory.path().join("existing.db");
    open(&existing).await.close().await.expect("closed");
    fs::create_dir(&closed).expect("created");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).expect("set");
    fs::set_permissions(&existing, fs::Permissions::from_mode(0o400)).expect("set");
    let is_root = fs::write(closed.join("probe"), "").is_ok();
    let (ids, clock) = stamps();
    for path in [closed.join("store.db"), existing] {
        let outcome = Store::open(&path, ids.clone(), clock.clone()).await;
        match outcome {
            Ok(_) => assert!(is_root, "{} was opened", path.display()),
            Err(error) => {
                assert!(matches!(error, Error::Unwritable { .. }), "{error}");
                assert!(error.to_string().contains(&path.display().to_string()), "{error}");
            }
        }
    }
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).expect("set");
}
