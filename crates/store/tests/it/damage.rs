//! Damaged files: the readable content is saved, the damaged file is kept, and the next start is normal.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use codewright_store::{Error, Salvage, Store};

use crate::process::Actor;
use crate::support::*;

const SESSIONS: usize = 20;
const MESSAGES: usize = 20;

/// Creates and closes a store of some hundred pages. With `moved` the log is moved into the file.
async fn create_store(path: &Path, moved: bool) {
    let store = open(path).await;
    for at in 0..SESSIONS {
        let id = format!("ses_{at:02}");
        let mut events = vec![created(&id)];
        for message_at in 0..MESSAGES {
            let message_id = format!("msg_{at:02}_{message_at:02}");
            events.push(message(&id, &message_id, 5));
            let text = format!("{at} {message_at} ").repeat(150);
            events.push(part(&id, &message_id, &format!("prt_{at:02}_{message_at:02}"), text));
        }
        store.append(events).await.expect("stored");
    }
    store.close().await.expect("closed");
    if moved {
        let connection = rusqlite::Connection::open(path).expect("opens");
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("moved");
    }
}

async fn open_store(path: &Path) -> Store {
    let (ids, clock) = stamps();
    Store::open(path, ids, clock).await.expect("opens")
}

/// Reads everything. Returns the number of messages.
async fn read_all(store: &Store) -> Result<usize, Error> {
    let mut messages = 0;
    for session in store.sessions(Default::default()).await? {
        messages += store.transcript(&session.id).await?.len();
    }
    let mut position = 0;
    while let Some(last) = store.events(position, 1000).await?.last() {
        position = last.position;
    }
    Ok(messages)
}

/// Reads and writes. Returns the number of messages.
async fn work(store: &Store) -> Result<usize, Error> {
    let messages = read_all(store).await?;
    store.save_project(project("p1")).await?;
    store.append(vec![created("ses_new"), message("ses_new", "msg_new", 5)]).await?;
    store.append(vec![deleted("ses_new")]).await?;
    read_all(store).await?;
    Ok(messages)
}

/// Opens and reads the store until there are no errors, which takes two starts at most.
async fn repaired(path: &Path) -> (Option<Salvage>, usize) {
    let mut salvage = None;
    for _ in 0..2 {
        let store = open_store(path).await;
        salvage = salvage.or_else(|| store.salvage().cloned());
        let used = work(&store).await;
        // Moving the log into a damaged file can fail too.
        drop(store.close().await);
        match used {
            Ok(messages) => {
                let store = open_store(path).await;
                assert_eq!(store.salvage(), None, "a repaired store is a plain one");
                store.close().await.expect("closed");
                return (salvage, messages);
            }
            Err(error) => {
                let is_damage = matches!(error, Error::Corrupt { .. } | Error::Unreadable { .. });
                assert!(is_damage && salvage.is_none(), "{error}: {salvage:?}");
            }
        }
    }
    panic!("still damaged");
}

fn overwrite(path: &Path, at: usize, bytes: &[u8]) {
    let mut file = fs::OpenOptions::new().write(true).open(path).expect("opens");
    file.seek(SeekFrom::Start(at as u64)).expect("a place");
    file.write_all(bytes).expect("written");
}

/// Reproducible random bytes.
fn noise(mut seed: u64, length: usize) -> Vec<u8> {
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

#[tokio::test]
async fn noise_in_the_middle_loses_only_the_covered_rows() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    create_store(&path, true).await;
    let sound = fs::read(&path).expect("readable");
    for seed in 0..24_u64 {
        fs::write(&path, &sound).expect("written");
        for ending in ["-wal", "-shm"] {
            drop(fs::remove_file(beside(&path, ending)));
        }
        let pages = sound.len() / 4096;
        let page = 1 + (seed as usize * 7919) % (pages - 2);
        let length = [64, 4096, 3 * 4096][seed as usize % 3];
        overwrite(&path, page * 4096, &noise(seed, length.min(sound.len() - page * 4096)));
        let (salvage, messages) = repaired(&path).await;
        // Three pages contain at most some dozen rows.
        assert!(messages >= SESSIONS * MESSAGES / 2, "seed {seed}: {messages} left; {salvage:?}");
        if let Some(salvage) = salvage {
            assert!(salvage.kept_at.exists(), "{salvage}");
        }
    }
}

#[tokio::test]
async fn a_lost_header_loses_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    for length in [16, 100] {
        let path = directory.path().join(format!("store-{length}.db"));
        create_store(&path, true).await;
        overwrite(&path, 0, &noise(7, length));
        let store = open_store(&path).await;
        let salvage = store.salvage().cloned().expect("repaired");
        assert!(salvage.is_whole, "{salvage}");
        assert_eq!((salvage.sessions, salvage.messages), (SESSIONS as u64, (SESSIONS * MESSAGES) as u64));
        let said = salvage.to_string();
        assert!(said.contains("nothing is lost") && said.contains("store-"), "{said}");
        let kept = fs::read(&salvage.kept_at).expect("kept");
        assert_eq!(kept[..length], noise(7, length), "the damaged file is kept as it was");
        assert_eq!(read_all(&store).await.expect("readable"), SESSIONS * MESSAGES);
        store.replay().await.expect("the log is whole");
        store.close().await.expect("closed");
        repaired(&path).await;
    }
}

#[tokio::test]
async fn a_lost_first_page_loses_little() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    create_store(&path, true).await;
    overwrite(&path, 0, &noise(3, 4096));
    let (salvage, messages) = repaired(&path).await;
    assert!(salvage.is_some());
    assert_eq!(messages, SESSIONS * MESSAGES);
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let garbage = "this is not a database, despite its name\n".repeat(100);
    fs::write(&path, &garbage).expect("written");
    let store = open_store(&path).await;
    let salvage = store.salvage().cloned().expect("repaired");
    assert_eq!(salvage.sessions, 0);
    assert_eq!(fs::read_to_string(&salvage.kept_at).expect("kept"), garbage);
    store.close().await.expect("closed");
    assert_eq!(repaired(&path).await, (None, 0));
}

#[tokio::test]
async fn an_empty_file_becomes_a_new_store() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    fs::write(&path, "").expect("written");
    assert_eq!(repaired(&path).await, (None, 0));
}

#[tokio::test]
async fn a_log_without_its_database_is_not_deleted() {
    let directory = tempfile::tempdir().expect("a directory");
    for emptied in [true, false] {
        let path = directory.path().join(format!("store-{emptied}.db"));
        let store = open(&path).await;
        store.append(vec![created("ses_1"), message("ses_1", "msg_1", 5)]).await.expect("stored");
        store.close().await.expect("closed");
        assert!(beside(&path, "-wal").exists(), "a short log is left");
        if emptied {
            fs::write(&path, "").expect("emptied");
        } else {
            fs::remove_file(&path).expect("removed");
        }
        drop(fs::remove_file(beside(&path, "-shm")));
        let (salvage, messages) = repaired(&path).await;
        let salvage = salvage.expect("repaired");
        assert_eq!(messages, 1, "{salvage}");
        assert!(beside(&salvage.kept_at, "-wal").exists());
    }
}

#[tokio::test]
async fn a_truncated_log_loses_only_its_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path).await;
    for at in 0..5 {
        store.append(vec![created(&format!("ses_{at}"))]).await.expect("stored");
    }
    store.close().await.expect("closed");
    let log = beside(&path, "-wal");
    let length = fs::metadata(&log).expect("there").len();
    for cut in [length - 100, length / 2, 40, 10] {
        fs::OpenOptions::new().write(true).open(&log).expect("opens").set_len(cut).expect("cut");
        drop(fs::remove_file(beside(&path, "-shm")));
        let store = open_store(&path).await;
        let sessions = store.sessions(Default::default()).await.expect("readable").len();
        let events = store.events(0, 100).await.expect("readable").len();
        assert_eq!(sessions, events, "log and rows end together");
        store.close().await.expect("closed");
    }
}

#[tokio::test]
async fn a_database_without_its_log_is_as_old_as_its_last_checkpoint() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    create_store(&path, true).await;
    let store = open(&path).await;
    store.append(vec![created("ses_late")]).await.expect("stored");
    store.close().await.expect("closed");
    for ending in ["-wal", "-shm"] {
        fs::remove_file(beside(&path, ending)).expect("removed");
    }
    assert_eq!(repaired(&path).await, (None, SESSIONS * MESSAGES));
}

#[tokio::test]
async fn a_file_in_use_is_not_replaced() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    create_store(&path, true).await;
    let user = Actor::start(&path);
    fs::write(beside(&path, ".damaged"), "").expect("noted");
    let (ids, clock) = stamps();
    let error = Store::open(&path, ids, clock).await.expect_err("refused");
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("all running instances")));
    user.kill();
    let (salvage, messages) = repaired(&path).await;
    assert!(salvage.is_some_and(|salvage| salvage.is_whole));
    assert_eq!(messages, SESSIONS * MESSAGES);
}

#[test]
fn simultaneous_starts_repair_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(create_store(&path, true));
    overwrite(&path, 0, &noise(7, 100));
    let repaired = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        .build()
                        .expect("a runtime");
                    runtime.block_on(async {
                        let store = open_store(&path).await;
                        assert_eq!(read_all(&store).await.expect("readable"), SESSIONS * MESSAGES);
                        store.salvage().is_some()
                    })
                })
            })
            .collect();
        starts.into_iter().map(|start| start.join().expect("opened")).filter(|repaired| *repaired).count()
    });
    assert_eq!(repaired, 1);
}
