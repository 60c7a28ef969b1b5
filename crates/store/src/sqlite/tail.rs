//! Notices what other processes append to the same file, and that they want a session stopped.
//!
//! While somebody reads the feed or holds a session, one thread asks the file every few
//! milliseconds whether anything was committed, which reads one counter in shared memory.
//! With neither it sleeps; it never writes.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::{lease, open, query};
use crate::error::Fault;
use crate::feed::Feed;
use crate::node::Node;

/// How long after another process's commit the feed hears of it, at most.
const POLL: Duration = Duration::from_millis(50);

/// How long the file is left alone after it could not be read.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Tail {
    path: PathBuf,
    feed: Arc<Feed>,
    node: Arc<Node>,
    file: Mutex<Option<Watched>>,
    is_started: AtomicBool,
}

struct Watched {
    connection: Connection,
    /// Differs from the file's when somebody has committed since.
    version: Option<i64>,
}

impl Tail {
    pub(super) fn new(path: PathBuf, feed: Arc<Feed>, node: Arc<Node>) -> Self {
        Self { path, feed, node, file: Mutex::default(), is_started: AtomicBool::new(false) }
    }

    /// Tells the feed how far the log goes, and whoever is to stop that they are.
    pub(super) fn look(&self) -> Result<(), Fault> {
        // A failure below leaves nothing behind, so a poisoned place is an empty one.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut watched = match file.take() {
            Some(watched) => watched,
            None => Watched { connection: open::reader(&self.path)?, version: None },
        };
        let version =
            watched.connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if watched.version != Some(version) {
            self.feed.reaches(query::last_position(&watched.connection)?);
            lease::tell_stopped(&watched.connection, &self.node)?;
            watched.version = Some(version);
        }
        *file = Some(watched);
        Ok(())
    }

    /// Starts the thread, once; it ends with the feed.
    pub(super) fn start(self: &Arc<Self>) -> Option<JoinHandle<()>> {
        if self.is_started.swap(true, Ordering::Relaxed) {
            return None;
        }
        let tail = Arc::clone(self);
        let run = move || {
            while tail.feed.wait_until_needed() {
                let pause = if tail.look().is_ok() { POLL } else { PAUSE };
                tail.feed.wait_for_end(pause);
            }
        };
        let thread = std::thread::Builder::new().name("store-tail".to_owned()).spawn(run);
        if thread.is_err() {
            // The next reader tries again.
            self.is_started.store(false, Ordering::Relaxed);
        }
        thread.ok()
    }
}
