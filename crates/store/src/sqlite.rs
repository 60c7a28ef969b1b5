//! The store on SQLite: one thread that writes, a few connections that read.
//!
//! Nothing above this file knows SQL. Several processes may use one file at the same time.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use codewright_proto::Envelope;
use rusqlite::Connection;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use crate::error::Fault;
use crate::feed::Feed;
use crate::node::Node;
use crate::spare::Spare;
use crate::{Condition, Error, Salvage, Stamps};
use open::Opened;
use read::Readers;
use tail::Tail;
use writer::{Append, Command, Work, Writer};

mod apply;
mod backend;
mod damage;
mod draft;
mod json;
mod lease;
mod open;
mod permission;
mod position;
mod query;
mod quick;
mod read;
mod salvage;
mod scope;
mod session_row;
mod sync;
mod tail;
mod watch;
mod writer;

/// How many events one append may have.
const MAX_APPEND_EVENTS: usize = 10_000;

/// How large the events of one append may be together, as JSON.
const MAX_APPEND_BYTES: usize = 64 * 1024 * 1024;

/// How large the appends that wait for the writer may be together, as JSON.
const MAX_QUEUED_KIB: usize = 128 * 1024;

/// How many requests wait for the writer.
const MAX_QUEUED: usize = 1024;

/// How long a request waits for its turn; once it is taken, the database's own timeout holds.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long closing waits for what was asked before it.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(30);

/// A store's file, opened. Clones share it; the last one closes it.
#[derive(Clone)]
pub(crate) struct Sqlite(Arc<Inner>);

struct Inner {
    path: PathBuf,
    commands: mpsc::Sender<Command>,
    /// One permit a KiB of waiting appends.
    room: Arc<Semaphore>,
    /// Absent in memory, where the writer's connection is the only one there can be.
    readers: Option<Readers>,
    spare: Arc<Spare>,
    node: Arc<Node>,
    feed: Arc<Feed>,
    /// Absent in memory, where nobody else can write.
    tail: Option<Arc<Tail>>,
    /// What was saved, if the file was damaged.
    salvage: Option<Salvage>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Ends the feed with the writer, however that ends.
struct CloseFeed(Arc<Feed>);

impl Drop for CloseFeed {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Sqlite {
    /// Opens or creates a file, on the thread that will write to it.
    pub(crate) async fn open(path: &Path, stamps: Stamps, feed: Arc<Feed>) -> Result<Self, Error> {
        let (at, path) = (path.to_owned(), path.to_owned());
        let now_ms = stamps.clock.now_ms();
        Self::start(path, Some(Readers::new()), stamps, feed, move || open::file(&at, now_ms)).await
    }

    /// An empty store that ends with the process.
    pub(crate) async fn in_memory(stamps: Stamps, feed: Arc<Feed>) -> Result<Self, Error> {
        Self::start(PathBuf::from(":memory:"), None, stamps, feed, open::memory).await
    }

    async fn start(
        path: PathBuf,
        readers: Option<Readers>,
        stamps: Stamps,
        feed: Arc<Feed>,
        open: impl FnOnce() -> Result<Opened, Fault> + Send + 'static,
    ) -> Result<Self, Error> {
        let (commands, received) = mpsc::channel(MAX_QUEUED);
        let (opened, answer) = oneshot::channel();
        let at = path.clone();
        let node = Arc::new(if readers.is_some() { Node::beside(&path) } else { Node::alone() });
        let tail = readers
            .is_some()
            .then(|| Arc::new(Tail::new(path.clone(), Arc::clone(&feed), Arc::clone(&node))));
        let (owner, of_store) = (Arc::clone(&node), Arc::clone(&feed));
        let run = move || {
            let _closing = CloseFeed(Arc::clone(&feed));
            match open() {
                Ok(Opened { connection, in_use, salvage, last_position }) => {
                    // The file is not replaced under a store that uses it.
                    let _in_use = in_use;
                    feed.begin_after(last_position);
                    // A caller that has gone away has dropped the sender too, and the writer ends.
                    drop(opened.send(Ok(salvage)));
                    Writer { path: at, connection, stamps, feed, node: owner, received }.run();
                }
                Err(fault) => {
                    // Nobody waits for the reason any more.
                    drop(opened.send(Err(fault.at(&at))));
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(run)
            .map_err(|error| Error::Failed { path: path.clone(), source: Arc::new(error) })?;
        let salvage = answer.await.map_err(|_| Error::Closed)??;
        let room = Arc::new(Semaphore::new(MAX_QUEUED_KIB));
        let threads = Mutex::new(vec![thread]);
        Ok(Self(Arc::new(Inner {
            path,
            commands,
            room,
            readers,
            spare: Arc::default(),
            node,
            feed: of_store,
            tail,
            salvage,
            threads,
        })))
    }

    async fn write(
        &self,
        condition: Condition,
        work: Work,
        bytes: usize,
    ) -> Result<Vec<Arc<Envelope>>, Error> {
        let room = self.reserve(bytes.div_ceil(1024)).await?;
        let (reply, answer) = oneshot::channel();
        self.send(Command::Append(Append { work, condition, bytes, reply, room })).await?;
        self.0.remember_damage(answer.await.map_err(|_| Error::Closed)?)
    }

    fn threads(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        // A list of threads is whole after any panic.
        self.0.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn reserve(&self, kib: usize) -> Result<tokio::sync::OwnedSemaphorePermit, Error> {
        let kib = kib as u32; // At most `MAX_APPEND_BYTES`.
        if let Ok(permit) = Arc::clone(&self.0.room).try_acquire_many_owned(kib) {
            return Ok(permit);
        }
        let waiting = Arc::clone(&self.0.room).acquire_many_owned(kib);
        timeout(QUEUE_TIMEOUT, waiting).await.map_err(|_| self.busy())?.map_err(|_| Error::Closed)
    }

    async fn send(&self, command: Command) -> Result<(), Error> {
        let permit = match self.0.commands.try_reserve() {
            Ok(permit) => permit,
            Err(mpsc::error::TrySendError::Closed(())) => return Err(Error::Closed),
            Err(mpsc::error::TrySendError::Full(())) => timeout(QUEUE_TIMEOUT, self.0.commands.reserve())
                .await
                .map_err(|_| self.busy())?
                .map_err(|_| Error::Closed)?,
        };
        permit.send(command);
        Ok(())
    }

    fn busy(&self) -> Error {
        Error::Busy { path: self.0.path.clone() }
    }

    /// Runs something on the writer's thread, between transactions.
    async fn on_writer<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let path = self.0.path.clone();
        let run = move |connection: &mut Connection| {
            // Whoever asked may have stopped waiting.
            drop(reply.send(run(connection).map_err(|fault| fault.at(&path))));
        };
        self.send(Command::Run(Box::new(run))).await?;
        self.0.remember_damage(answer.await.map_err(|_| Error::Closed)?)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.wake_tail();
    }
}

impl Inner {
    /// Lets the thread see that the feed has ended.
    fn wake_tail(&self) {
        if let Some(tail) = &self.tail {
            tail.wake();
        }
    }

    /// Remembers for the next start that the file is damaged.
    fn remember_damage<T>(&self, outcome: Result<T, Error>) -> Result<T, Error> {
        if self.readers.is_some() && outcome.as_ref().is_err_and(Error::is_damage) {
            damage::note(&self.path);
        }
        outcome
    }
}
