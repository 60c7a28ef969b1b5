//! Full disks and jumping clocks: nothing acknowledged is lost, and the store works again without a restart when the
//! cause is removed.

use std::fs;
use std::path::Path;
use std::process::Command;

use codewright_proto::{Clock, Ids};
use codewright_store::{Error, Store};

use crate::support::*;

/// A file system of a size in KiB, unmounted on drop. `None` if mounting is not allowed.
struct Disk(tempfile::TempDir);

impl Disk {
    fn of_kib(kib: u32) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let size = format!("size={kib}k");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "none"]).arg(directory.path());
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then_some(Self(directory))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Files may still be open; a lazy unmount waits for them.
        drop(Command::new("umount").arg("-l").arg(self.0.path()).output());
    }
}

/// Appends until an error. Returns the number of acknowledged appends and the error.
async fn fill(store: &Store, from: usize) -> (usize, Error) {
    for at in from.. {
        let id = format!("prt_{at:06}");
        if let Err(error) = store.append(vec![part("ses_1", "msg_1", &id, "x".repeat(20_000))]).await {
            return (at, error);
        }
    }
    unreachable!("no disk is endless")
}

async fn parts(store: &Store) -> usize {
    store.transcript(&session_id("ses_1")).await.expect("readable").iter().map(|m| m.parts.len()).sum()
}

#[tokio::test]
async fn a_full_disk_loses_nothing_acknowledged_and_needs_no_restart() {
    let Some(disk) = Disk::of_kib(3000) else {
        // Only root can mount.
        return;
    };
    let ballast = disk.0.path().join("ballast");
    fs::write(&ballast, vec![0; 1_000_000]).expect("written");
    let path = disk.0.path().join("store.db");
    let store = open(&path).await;
    store.append(vec![created("ses_1"), message("ses_1", "msg_1", 5)]).await.expect("stored");
    let (stored, error) = fill(&store, 0).await;
    assert!(matches!(error, Error::Full { .. } | Error::Unwritable { .. }), "{error:?}");
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("disk")), "{error}");
    assert!(stored > 10, "{stored}");
    assert_eq!(parts(&store).await, stored, "what is there can be read");
    fs::remove_file(&ballast).expect("removed");
    let (later, _) = fill(&store, stored).await;
    assert!(later > stored, "it works again");
    assert_eq!(parts(&store).await, later);
    // The files of a killed process have the same content.
    assert_eq!(store.events(0, 10_000).await.expect("readable").len(), later + 2);
    drop(store);
}

#[tokio::test]
async fn jumping_clocks_affect_neither_order_nor_leases() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let mut last = 0;
    let mut ids = std::collections::BTreeSet::new();
    // Today, a day earlier, ten years later, and 1970.
    for now in [NOW_MS, NOW_MS - 86_400_000, NOW_MS + 315_360_000_000, 1] {
        let clock = Clock::stepping(now, 0);
        let store = Store::open(&path, Ids::new(clock.clone()), clock).await.expect("opens");
        store.save_project(project("p1")).await.expect("saved");
        if last == 0 {
            store.append(vec![created("ses_1")]).await.expect("stored");
        }
        let lease = match store.lease(&session_id("ses_1")).await.expect("answered") {
            codewright_store::Claim::Held(lease) => lease,
            codewright_store::Claim::HeldBy(holder) => panic!("{holder:?}"),
        };
        for at in 0..50 {
            let event = message("ses_1", &format!("msg_{now}_{at}"), at);
            let stored = lease.append(vec![event]).await.expect("stored");
            assert!(stored[0].position > last);
            last = stored[0].position;
            assert!(ids.insert(stored[0].id.clone()), "an id came twice");
        }
        store.close().await.expect("closed");
    }
    let store = open(&path).await;
    assert_eq!(store.transcript(&session_id("ses_1")).await.expect("readable").len(), 200);
}

/// Checkpoints bound the log while nothing is read.
#[tokio::test]
async fn the_write_ahead_log_is_bounded() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path).await;
    store.append(vec![created("ses_1"), message("ses_1", "msg_1", 5)]).await.expect("stored");
    let length = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    let mut most = 0;
    for at in 0..600 {
        store
            .append(vec![part("ses_1", "msg_1", &format!("prt_{at}"), "x".repeat(50_000))])
            .await
            .expect("stored");
        most = most.max(length(&path.with_file_name("store.db-wal")));
    }
    assert!(length(&path) + most > 30_000_000, "something was written");
    assert!(most < 16 * 1024 * 1024, "{most}");
}

/// A part that grows to 200 kB in 500 drafts adds only its first and last value to the log.
#[tokio::test]
async fn a_growing_part_does_not_make_the_log_quadratic() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store.db");
    let store = open(&path).await;
    let grown = |length: usize| part("ses_1", "msg_1", "prt_1", "x".repeat(length));
    store.append(vec![created("ses_1"), message("ses_1", "msg_1", 5), grown(0)]).await.expect("stored");
    for step in 1..=500 {
        let codewright_proto::Event::PartUpdated { part, .. } = grown(step * 400) else { return };
        store.draft(part).await.expect("kept");
    }
    store.append(vec![grown(200_000)]).await.expect("stored");
    assert_eq!(store.last_position(), 4);
    store.close().await.expect("closed");
    let length: u64 = ["", "-wal"]
        .iter()
        .map(|ending| fs::metadata(format!("{}{ending}", path.display())).map_or(0, |file| file.len()))
        .sum();
    // As events they would need fifty megabytes.
    assert!(length < 3_000_000, "{length}");
}
