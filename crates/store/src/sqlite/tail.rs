//! Detects events and stop requests of other processes.
//!
//! While the feed has a reader or a session is leased, one thread checks the file for commits, which reads one counter in
//! shared memory. It checks when the system reports a write to the write-ahead log. If the system cannot report that, it
//! checks every few milliseconds, and less often when nothing happens. Without readers and leases it sleeps. It never
//! writes.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::read::Readers;
use super::watch::Watch;
use super::{lease, open, query};
use crate::error::Fault;
use crate::feed::Feed;
use crate::node::Node;

/// The interval of checks during activity, and the longest delay of another process's events.
const POLL: Duration = Duration::from_millis(50);
/// The interval without activity for [`CALM_AFTER`], if the system does not report writes.
const CALM_POLL: Duration = Duration::from_millis(250);
/// The interval of checks if the system reports writes but stays silent.
const WATCHED_POLL: Duration = Duration::from_secs(10);
/// The time without commits after which checks are less frequent.
const CALM_AFTER: Duration = Duration::from_secs(2);

/// The pause after a failed read.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Tail {
    path: PathBuf,
    feed: Arc<Feed>,
    node: Arc<Node>,
    readers: Arc<Readers>,
    file: Mutex<Option<Watched>>,
    is_started: AtomicBool,
    watch: OnceLock<Option<Watch>>,
}

struct Watched {
    /// Counts commits. Without other queries it needs no schema, which costs more than everything else here.
    connection: Connection,
    /// Differs from the file's version if another process has committed since.
    version: Option<i64>,
}

impl Tail {
    pub(super) fn new(path: PathBuf, feed: Arc<Feed>, node: Arc<Node>, readers: Arc<Readers>) -> Self {
        Self {
            path,
            feed,
            node,
            readers,
            file: Mutex::default(),
            is_started: AtomicBool::new(false),
            watch: OnceLock::new(),
        }
    }

    /// Announces new events to the feed and delivers stop requests. Returns whether anything was committed.
    pub(super) fn look(&self) -> Result<bool, Fault> {
        // A failure below leaves `None`, so a poisoned value is consistent.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut watched = match file.take() {
            Some(watched) => watched,
            None => Watched { connection: open::counter(&self.path)?, version: None },
        };
        let version =
            watched.connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        let is_new = watched.version != Some(version);
        if is_new {
            // After the version was read: a later commit changes it again.
            let read = |connection: &Connection| {
                lease::deliver_stop_requests(connection, &self.node)?;
                query::last_position(connection)
            };
            let position = match self.readers.read_if_idle(read) {
                Some(position) => position,
                None => read(&watched.connection),
            };
            self.feed.advance_to(position?);
            watched.version = Some(version);
        }
        *file = Some(watched);
        Ok(is_new)
    }

    /// Starts the thread once. It ends with the feed.
    pub(super) fn start(self: &Arc<Self>) -> Option<JoinHandle<()>> {
        if self.is_started.swap(true, Ordering::Relaxed) {
            return None;
        }
        // Before the thread starts, so that `wake` finds it.
        self.watch.get_or_init(|| Watch::of(&self.path));
        let tail = Arc::clone(self);
        let run = move || tail.follow();
        let thread = std::thread::Builder::new().name("store-tail".to_owned()).spawn(run);
        if thread.is_err() {
            // The next reader tries again.
            self.is_started.store(false, Ordering::Relaxed);
        }
        thread.ok()
    }

    /// Wakes the thread after the feed has ended.
    pub(super) fn wake(&self) {
        if let Some(Some(watch)) = self.watch.get() {
            watch.stop();
        }
    }

    /// Checks until the feed ends.
    fn follow(&self) {
        let mut watch = self.watch.get().and_then(Option::as_ref);
        let (mut calm, mut was_reported, mut silences) = (Duration::ZERO, true, 0);
        while self.feed.wait_until_needed() {
            let looked = self.look();
            if !was_reported && matches!(looked, Ok(true)) {
                // A write was not reported, which happens on some file systems. A single miss may be a race.
                silences += 1;
                if silences > 1 {
                    watch = None;
                }
            }
            let pause = match (&looked, &watch) {
                (Err(_), _) => PAUSE,
                (Ok(_), Some(_)) => POLL,
                (Ok(is_new), None) if *is_new || self.node.holds_any() => {
                    calm = Duration::ZERO;
                    POLL
                }
                (Ok(_), None) if calm < CALM_AFTER => POLL,
                (Ok(_), None) => CALM_POLL,
            };
            // Limits the frequency of checks during many writes.
            self.feed.wait_for_end(pause);
            calm = calm.saturating_add(pause);
            was_reported = match watch {
                Some(watch) => watch.wait(WATCHED_POLL),
                None => true,
            };
        }
    }
}
