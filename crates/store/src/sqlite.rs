//! The SQLite backend: one writing thread and a few reading connections.
//!
//! SQL is only used below this module. Several processes can use one file at the same time.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use codewright_proto::Envelope;
use rusqlite::Connection;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use crate::error::Fault;
use crate::feed::{CloseFeed, Feed};
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
mod users;
mod watch;
mod writer;

/// The maximum size of the queued appends, as JSON.
const MAX_QUEUED_KIB: usize = 128 * 1024;

/// The maximum number of queued requests.
const MAX_QUEUED: usize = 1024;

/// How long a request waits in the queue. After that the database's own timeout applies.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long closing waits for the queued requests.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(30);

/// An open store file. Clones share it; the last one closes it.
#[derive(Clone)]
pub(crate) struct Sqlite(Arc<Inner>);

struct Inner {
    path: PathBuf,
    commands: mpsc::Sender<Command>,
    /// One permit per KiB of queued appends.
    room: Arc<Semaphore>,
    /// `None` in memory, where the writer's connection is the only one.
    readers: Option<Arc<Readers>>,
    spare: Arc<Spare>,
    node: Arc<Node>,
    feed: Arc<Feed>,
    /// `None` in memory, where no other process can write.
    tail: Option<Arc<Tail>>,
    /// The result of the repair, if the file was damaged.
    salvage: Option<Salvage>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Sqlite {
    /// Opens or creates a file, on the writing thread.
    pub(crate) async fn open(path: &Path, stamps: Stamps, feed: Arc<Feed>) -> Result<Self, Error> {
        let (at, path) = (path.to_owned(), path.to_owned());
        let now_ms = stamps.clock.now_ms();
        Self::start(path, Some(Arc::new(Readers::new())), stamps, feed, move || open::file(&at, now_ms)).await
    }

    /// An empty store in memory.
    pub(crate) async fn in_memory(stamps: Stamps, feed: Arc<Feed>) -> Result<Self, Error> {
        Self::start(PathBuf::from(":memory:"), None, stamps, feed, open::memory).await
    }

    async fn start(
        path: PathBuf,
        readers: Option<Arc<Readers>>,
        stamps: Stamps,
        feed: Arc<Feed>,
        open: impl FnOnce() -> Result<Opened, Fault> + Send + 'static,
    ) -> Result<Self, Error> {
        let (commands, received) = mpsc::channel(MAX_QUEUED);
        let (opened, answer) = oneshot::channel();
        let at = path.clone();
        let node = Arc::new(if readers.is_some() { Node::for_database(&path) } else { Node::in_memory() });
        let tail = readers.as_ref().map(|readers| {
            Arc::new(Tail::new(path.clone(), Arc::clone(&feed), Arc::clone(&node), Arc::clone(readers)))
        });
        let (owner, of_store) = (Arc::clone(&node), Arc::clone(&feed));
        let run = move || {
            let _closing = CloseFeed(Arc::clone(&feed));
            match open() {
                Ok(Opened { connection, in_use, salvage, last_position }) => {
                    // Prevents a repair from replacing the file while it is in use.
                    let _in_use = in_use;
                    feed.begin_after(last_position);
                    // If the caller has stopped waiting, the sender is dropped and the writer ends.
                    drop(opened.send(Ok(salvage)));
                    Writer { path: at, connection, stamps, feed, node: owner, received }.run();
                }
                Err(fault) => {
                    // The caller may have stopped waiting.
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
        // A list of threads is consistent after any panic.
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

    /// Runs a function on the writer's thread, between transactions.
    async fn on_writer<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let path = self.0.path.clone();
        let run = move |connection: &mut Connection| {
            // The caller may have stopped waiting.
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
    /// Wakes the tail thread after the feed has ended.
    fn wake_tail(&self) {
        if let Some(tail) = &self.tail {
            tail.wake();
        }
    }

    /// Marks the file for repair at the next start if an error shows damage.
    fn remember_damage<T>(&self, outcome: Result<T, Error>) -> Result<T, Error> {
        if self.readers.is_some() && outcome.as_ref().is_err_and(Error::is_damage) {
            damage::mark(&self.path);
        }
        outcome
    }
}
