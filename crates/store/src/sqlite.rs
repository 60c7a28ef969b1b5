//! The store on SQLite: one thread that writes, a few connections that read.
//!
//! Nothing above this file knows SQL. Several processes may use one file at the same time.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use codewright_proto::{
    Envelope, Event, Message, MessageId, MessageWithParts, Part, PermissionRequest, Project, Session,
    SessionId, Todo,
};
use rusqlite::Connection;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use crate::error::Fault;
use crate::feed::Feed;
use crate::lease::StopSignal;
use crate::node::Node;
use crate::record::Record;
use crate::spare::Spare;
use crate::sync::{Incoming, Logged};
use crate::{
    Approvals, Claim, Condition, Error, Holder, Json, Lease, MessagesJson, Rest, Salvage, SavedPermission,
    SessionFilter, Stamps,
};
use open::Opened;
use quick::Quick;
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
mod place;
mod query;
mod quick;
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

/// How many connections read at the same time.
const MAX_READERS: usize = 2;

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

struct Readers {
    idle: Mutex<Vec<Connection>>,
    quick: Quick,
    permits: Arc<Semaphore>,
}

impl Sqlite {
    /// Opens or creates a file, on the thread that will write to it.
    pub(crate) async fn open(path: &Path, stamps: Stamps, feed: Arc<Feed>) -> Result<Self, Error> {
        let (at, path) = (path.to_owned(), path.to_owned());
        let readers = Readers {
            idle: Mutex::default(),
            quick: Quick::default(),
            permits: Arc::new(Semaphore::new(MAX_READERS)),
        };
        let now_ms = stamps.clock.now_ms();
        Self::start(path, Some(readers), stamps, feed, move || open::file(&at, now_ms)).await
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

    /// Stores events in one transaction, all or none, and publishes them.
    pub(crate) async fn append(
        &self,
        condition: Condition,
        events: Vec<Event>,
    ) -> Result<Vec<Arc<Envelope>>, Error> {
        if events.is_empty() {
            return Ok(Vec::new());
        }
        limit("events", events.len(), MAX_APPEND_EVENTS)?;
        let mut bytes = 0;
        let mut records = Vec::with_capacity(events.len());
        for event in events {
            let record = Record::new(&event)?;
            bytes += record.len_bytes();
            limit("bytes", bytes, MAX_APPEND_BYTES)?;
            records.push((event, record));
        }
        self.write(condition, Work::Events(records), bytes).await
    }

    /// Keeps the latest value of a part that is still growing.
    pub(crate) async fn draft(&self, condition: Condition, part: Part) -> Result<(), Error> {
        // The very bytes that an event would bring to the part's row.
        let session_id = part.session_id.clone();
        let event = Event::PartUpdated { session_id, part, time: 0 };
        let record = Record::new(&event)?;
        let bytes = record.len_bytes();
        limit("bytes", bytes, MAX_APPEND_BYTES)?;
        let Event::PartUpdated { part, .. } = event else { return Ok(()) };
        self.write(condition, Work::Draft(Box::new((part, record))), bytes).await?;
        Ok(())
    }

    /// Takes over events of another store, all that are new or none.
    pub(crate) async fn replay_foreign(&self, events: Vec<Incoming>) -> Result<Vec<Arc<Envelope>>, Error> {
        limit("events", events.len(), MAX_APPEND_EVENTS)?;
        let bytes = events.iter().map(|event| event.data.get().len()).sum();
        limit("bytes", bytes, MAX_APPEND_BYTES)?;
        self.write(Condition::Always, Work::Incoming(events), bytes).await
    }

    pub(crate) async fn history(&self, known: HashMap<String, u64>) -> Result<Vec<Logged>, Error> {
        self.read(move |connection| sync::history(connection, &known)).await
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
        self.0.noted(answer.await.map_err(|_| Error::Closed)?)
    }

    /// Takes a session, unless somebody alive has it.
    pub(crate) async fn lease(&self, session: &SessionId) -> Result<Claim, Error> {
        let (node, of, log) = (Arc::clone(&self.0.node), session.clone(), self.clone());
        // The lease is made on the writer's thread: whoever stops waiting drops it there.
        let claim = self
            .on_writer(move |connection| {
                Ok(match lease::take(connection, &node, &of)? {
                    lease::Taken::Ours(fence, stop) => {
                        let holding = log.0.feed.hold();
                        Claim::Held(Lease::new(Arc::new(log), (of, fence), StopSignal::new(stop), holding))
                    }
                    lease::Taken::Held(holder) => Claim::HeldBy(holder),
                })
            })
            .await?;
        if matches!(claim, Claim::Held(_)) {
            self.watch();
        }
        Ok(claim)
    }

    /// Asks the owner in another process to stop what it does; whether there is one.
    pub(crate) async fn ask_to_stop(&self, session: &SessionId) -> Result<bool, Error> {
        // Looked at first, so that nothing is written where nobody is asked.
        if self.holder(session).await?.is_none_or(|holder| holder.is_ours) {
            return Ok(false);
        }
        let (node, session) = (Arc::clone(&self.0.node), session.clone());
        self.on_writer(move |connection| lease::ask_to_stop(connection, &node, &session)).await
    }

    pub(crate) async fn release(&self, session: &SessionId, fence: u64, seen: u64) -> Result<bool, Error> {
        let (node, session) = (Arc::clone(&self.0.node), session.clone());
        self.on_writer(move |connection| lease::release(connection, &node, &session, fence, seen)).await
    }

    /// Lets a session go soon, without waiting.
    pub(crate) fn abandon(&self, session: &SessionId, fence: u64) {
        self.0.node.abandon(session, fence);
        // With a full queue the writer comes by anyway; when it has ended, so has the ownership.
        drop(self.0.commands.try_send(Command::LetGo));
    }

    pub(crate) async fn holder(&self, session: &SessionId) -> Result<Option<Holder>, Error> {
        let (node, session) = (Arc::clone(&self.0.node), session.clone());
        self.read(move |connection| lease::holder(connection, &node, &session)).await
    }

    pub(crate) async fn holders(&self) -> Result<Vec<(SessionId, Holder)>, Error> {
        let node = Arc::clone(&self.0.node);
        self.read(move |connection| lease::holders(connection, &node)).await
    }

    pub(crate) async fn drafts(&self, session: &SessionId) -> Result<Vec<(Part, u64)>, Error> {
        let session = session.clone();
        self.read(move |connection| draft::of(connection, &session)).await
    }

    /// What was saved when the file was opened, if it was damaged.
    pub(crate) fn salvage(&self) -> Option<&Salvage> {
        self.0.salvage.as_ref()
    }

    /// Brings the feed up to the end of the log, and keeps it there while it is read.
    pub(crate) fn watch(&self) {
        let Some(tail) = &self.0.tail else { return };
        // A file that cannot be read now is looked at again by the thread.
        drop(tail.look());
        if let Some(thread) = tail.start() {
            self.threads().push(thread);
        }
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
        self.0.noted(answer.await.map_err(|_| Error::Closed)?)
    }

    /// Runs queries in one read transaction.
    async fn read<T: Send + 'static>(
        &self,
        run: impl Fn(&Connection) -> Result<T, Fault> + Send + Sync + 'static,
    ) -> Result<T, Error> {
        let Some(readers) = &self.0.readers else {
            return self.on_writer(move |connection| run(connection)).await;
        };
        if self.0.commands.is_closed() {
            return Err(Error::Closed);
        }
        let permits = Arc::clone(&readers.permits);
        let permit = match Arc::clone(&permits).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => timeout(QUEUE_TIMEOUT, permits.acquire_owned())
                .await
                .map_err(|_| self.busy())?
                .map_err(|_| Error::Closed)?,
        };
        if let Some(answer) = readers.at_once(&run) {
            return self.0.noted(answer.map_err(|fault| fault.at(&self.0.path)));
        }
        let inner = Arc::clone(&self.0);
        let reading = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            inner.noted(inner.read(run).map_err(|fault| fault.at(&inner.path)))
        });
        match reading.await {
            Ok(answer) => answer,
            Err(error) if error.is_panic() => {
                Err(Error::Failed { path: self.0.path.clone(), source: Arc::new(error) })
            }
            // The runtime ends.
            Err(_) => Err(Error::Closed),
        }
    }

    pub(crate) async fn events_between(
        &self,
        after: u64,
        until: u64,
        limit: usize,
    ) -> Result<Vec<Envelope>, Error> {
        self.read(move |connection| query::events(connection, after, until, limit)).await
    }

    pub(crate) async fn events_of(
        &self,
        session: &SessionId,
        from_seq: u64,
        limit: usize,
    ) -> Result<Vec<Envelope>, Error> {
        let session = session.clone();
        self.read(move |connection| query::events_of(connection, &session, from_seq, limit)).await
    }

    pub(crate) async fn seq_before(
        &self,
        session: &SessionId,
        until_seq: u64,
        most: (usize, u64),
    ) -> Result<u64, Error> {
        let session = session.clone();
        self.read(move |connection| query::seq_before(connection, &session, until_seq, most)).await
    }

    pub(crate) async fn session_before(
        &self,
        session: &SessionId,
        until_seq: u64,
    ) -> Result<Option<Session>, Error> {
        let session = session.clone();
        self.read(move |connection| place::session_before(connection, &session, until_seq)).await
    }

    pub(crate) async fn first_seq(
        &self,
        session: &SessionId,
        message: &MessageId,
    ) -> Result<Option<u64>, Error> {
        let (session, message) = (session.clone(), message.clone());
        self.read(move |connection| place::first_seq(connection, &session, &message)).await
    }

    pub(crate) async fn session(&self, id: &SessionId) -> Result<Option<(u64, Session)>, Error> {
        let id = id.clone();
        self.read(move |connection| {
            let Some(session) = session_row::session(connection, &id)? else { return Ok(None) };
            Ok(Some((lease::seq(connection, &id)?.unwrap_or(0), session)))
        })
        .await
    }

    pub(crate) async fn transcript(
        &self,
        session: &SessionId,
    ) -> Result<(u64, Vec<MessageWithParts>), Error> {
        let session = session.clone();
        self.read(move |connection| {
            let seq = lease::seq(connection, &session)?.unwrap_or(0);
            Ok((seq, query::messages(connection, &session, None, None)?))
        })
        .await
    }

    pub(crate) async fn sessions(&self, filter: SessionFilter) -> Result<Vec<Session>, Error> {
        self.read(move |connection| session_row::sessions(connection, &filter)).await
    }

    pub(crate) async fn sessions_json(&self, filter: SessionFilter) -> Result<Json, Error> {
        let spare = Arc::clone(&self.0.spare);
        self.read(move |connection| session_row::sessions_json(connection, &spare, &filter)).await
    }

    pub(crate) async fn messages(
        &self,
        session: &SessionId,
        limit: Option<usize>,
    ) -> Result<Vec<MessageWithParts>, Error> {
        let session = session.clone();
        self.read(move |connection| query::messages(connection, &session, limit, None)).await
    }

    /// One message more than `limit`, if there is one.
    pub(crate) async fn messages_before(
        &self,
        session: &SessionId,
        limit: usize,
        before: Option<(u64, MessageId)>,
    ) -> Result<(Vec<MessageWithParts>, bool), Error> {
        let session = session.clone();
        self.read(move |connection| query::messages_before(connection, &session, limit, before.clone())).await
    }

    pub(crate) async fn messages_json(
        &self,
        session: &SessionId,
        limit: Option<usize>,
        before: Option<(u64, MessageId)>,
    ) -> Result<Option<MessagesJson>, Error> {
        let (session, spare) = (session.clone(), Arc::clone(&self.0.spare));
        self.read(move |connection| json::messages(connection, &spare, &session, limit, before.clone())).await
    }

    pub(crate) async fn more_messages_json(&self, rest: Rest) -> Result<(Json, Option<Rest>), Error> {
        let spare = Arc::clone(&self.0.spare);
        self.read(move |connection| json::more_messages(connection, &spare, &rest)).await
    }

    pub(crate) async fn message(
        &self,
        session: &SessionId,
        id: &MessageId,
    ) -> Result<Option<MessageWithParts>, Error> {
        let (session, id) = (session.clone(), id.clone());
        self.read(move |connection| query::message(connection, &session, &id)).await
    }

    pub(crate) async fn infos(&self, session: &SessionId) -> Result<Vec<Message>, Error> {
        let session = session.clone();
        self.read(move |connection| query::infos(connection, &session, None, None)).await
    }

    pub(crate) async fn todos(&self, session: &SessionId) -> Result<Vec<Todo>, Error> {
        let session = session.clone();
        self.read(move |connection| query::todos(connection, &session)).await
    }

    pub(crate) async fn pending_permissions(&self) -> Result<Vec<PermissionRequest>, Error> {
        self.read(query::pending_permissions).await
    }

    pub(crate) async fn projects(&self) -> Result<Vec<Project>, Error> {
        self.read(query::projects).await
    }

    pub(crate) async fn project_of(&self, worktree: &str) -> Result<Option<Project>, Error> {
        let worktree = worktree.to_owned();
        self.read(move |connection| query::project_of(connection, &worktree)).await
    }

    pub(crate) async fn save_project(&self, project: Project) -> Result<(), Error> {
        self.on_writer(move |connection| apply::project(connection, &project)).await
    }

    pub(crate) async fn save_permissions(&self, saved: Vec<SavedPermission>) -> Result<(), Error> {
        self.on_writer(move |connection| permission::save(connection, &saved)).await
    }

    pub(crate) async fn saved_permissions(&self, filter: Approvals) -> Result<Vec<SavedPermission>, Error> {
        self.read(move |connection| permission::list(connection, &filter)).await
    }

    pub(crate) async fn remove_permission(&self, id: &str) -> Result<bool, Error> {
        let id = id.to_owned();
        self.on_writer(move |connection| permission::remove(connection, &id)).await
    }

    pub(crate) async fn replay(&self) -> Result<u64, Error> {
        self.on_writer(apply::replay).await
    }

    /// Finishes what was asked, moves it all into the file and ends the thread.
    pub(crate) async fn close(&self) -> Result<(), Error> {
        if let Some(readers) = &self.0.readers {
            readers.permits.close();
            readers.idle().clear();
        }
        let (reply, answer) = oneshot::channel();
        self.send(Command::Close(reply)).await?;
        timeout(CLOSE_TIMEOUT, answer).await.map_err(|_| self.busy())?.map_err(|_| Error::Closed)??;
        self.0.node.end();
        self.0.wake_tail();
        let threads = std::mem::take(&mut *self.threads());
        for thread in threads {
            // The answer above is the last thing the writer does, and the other ends with
            // the feed, so this does not block.
            thread.join().map_err(|_| Error::Closed)?;
        }
        Ok(())
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
    fn noted<T>(&self, outcome: Result<T, Error>) -> Result<T, Error> {
        if self.readers.is_some() && outcome.as_ref().is_err_and(Error::is_damage) {
            damage::note(&self.path);
        }
        outcome
    }

    fn read<T>(&self, run: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Fault> {
        let readers = self.readers.as_ref().ok_or(Error::Closed)?;
        let idle = readers.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => open::reader(&self.path)?,
        };
        let value = in_transaction(&connection, run);
        readers.take_back(connection);
        value
    }
}

/// Reads one state of the file.
fn in_transaction<T>(
    connection: &Connection,
    run: impl FnOnce(&Connection) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let transaction = connection.unchecked_transaction()?;
    // Nothing was written: letting go cannot lose anything.
    run(&transaction)
}

impl Readers {
    /// The answer of a connection that is open, if it came before it was worth another thread.
    fn at_once<T>(&self, run: impl FnOnce(&Connection) -> Result<T, Fault>) -> Option<Result<T, Fault>> {
        let mut connection = self.idle().pop()?;
        let answer = self.quick.read(&mut connection, |connection| in_transaction(connection, run));
        self.take_back(connection);
        answer
    }

    fn take_back(&self, connection: Connection) {
        if !self.permits.is_closed() {
            self.idle().push(connection);
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        // A list of connections is whole after any panic.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn limit(unit: &'static str, size: usize, limit: usize) -> Result<(), Error> {
    if size <= limit { Ok(()) } else { Err(Error::TooLarge { unit, size, limit }) }
}
