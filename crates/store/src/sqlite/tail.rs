//! Notices what other processes append to the same file, and that they want a session stopped.
//!
//! While somebody reads the feed or holds a session, one thread asks the file whether anything was
//! committed, which reads one counter in shared memory. It asks when the system says that the
//! write-ahead log was written to; where the system cannot say so, every few milliseconds, and less
//! often when nothing was for a while. With nobody to tell it sleeps; it never writes.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::watch::Watch;
use super::{lease, open, query};
use crate::error::Fault;
use crate::feed::Feed;
use crate::node::Node;

/// How long after another process's commit the feed hears of it, at most, while there is work here or elsewhere.
const POLL: Duration = Duration::from_millis(50);
/// The same where nothing has happened for [`CALM_AFTER`] and nobody says when something does.
const CALM_POLL: Duration = Duration::from_millis(250);
/// How long a file that is watched is not looked at, should the system say nothing.
const WATCHED_POLL: Duration = Duration::from_secs(10);
/// How long nothing is committed until it is looked less often.
const CALM_AFTER: Duration = Duration::from_secs(2);

/// How long the file is left alone after it could not be read.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Tail {
    path: PathBuf,
    feed: Arc<Feed>,
    node: Arc<Node>,
    file: Mutex<Option<Watched>>,
    is_started: AtomicBool,
    watch: OnceLock<Option<Watch>>,
}

struct Watched {
    connection: Connection,
    /// Differs from the file's when somebody has committed since.
    version: Option<i64>,
}

impl Tail {
    pub(super) fn new(path: PathBuf, feed: Arc<Feed>, node: Arc<Node>) -> Self {
        Self {
            path,
            feed,
            node,
            file: Mutex::default(),
            is_started: AtomicBool::new(false),
            watch: OnceLock::new(),
        }
    }

    /// Tells the feed how far the log goes, and whoever is to stop that they are; whether anything was committed.
    pub(super) fn look(&self) -> Result<bool, Fault> {
        // A failure below leaves nothing behind, so a poisoned place is an empty one.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut watched = match file.take() {
            Some(watched) => watched,
            None => Watched { connection: open::reader(&self.path)?, version: None },
        };
        let version =
            watched.connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        let is_new = watched.version != Some(version);
        if is_new {
            self.feed.reaches(query::last_position(&watched.connection)?);
            lease::tell_stopped(&watched.connection, &self.node)?;
            watched.version = Some(version);
        }
        *file = Some(watched);
        Ok(is_new)
    }

    /// Starts the thread, once; it ends with the feed.
    pub(super) fn start(self: &Arc<Self>) -> Option<JoinHandle<()>> {
        if self.is_started.swap(true, Ordering::Relaxed) {
            return None;
        }
        // Before the thread, so that whoever ends it finds it.
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

    /// Wakes the thread, once the feed has ended.
    pub(super) fn wake(&self) {
        if let Some(Some(watch)) = self.watch.get() {
            watch.stop();
        }
    }

    /// Looks until the feed ends.
    fn follow(&self) {
        let mut watch = self.watch.get().and_then(Option::as_ref);
        let (mut calm, mut was_told, mut silences) = (Duration::ZERO, true, 0);
        while self.feed.wait_until_needed() {
            let looked = self.look();
            if !was_told && matches!(looked, Ok(true)) {
                // It was written to and the system kept silent: some file systems do. Once it may have been a moment's
                // difference.
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
            // However often it is written to, it is not looked at more often.
            self.feed.wait_for_end(pause);
            calm = calm.saturating_add(pause);
            was_told = match watch {
                Some(watch) => watch.wait(WATCHED_POLL),
                None => true,
            };
        }
    }
}
