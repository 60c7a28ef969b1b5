//! The writing thread.
//!
//! It stores all queued appends in one transaction, because the commit is the expensive part. If one of them fails, the
//! transaction is rolled back and repeated with a savepoint for each append, so that the others succeed. Events are
//! published and callers answered after the commit.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use codewright_proto::{Envelope, Event, Part};
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::apply::EventHeader;
use super::scope::Scope;
use super::{apply, draft, lease, sync};
use crate::error::Fault;
use crate::feed::Feed;
use crate::node::Node;
use crate::record::Record;
use crate::sync::Incoming;
use crate::{Condition, Error, Stamps};

/// The maximum number of appends in a transaction.
const MAX_GROUP: usize = 128;

/// The maximum size of the appends in a transaction, as JSON. A single append may be larger.
const MAX_GROUP_BYTES: usize = 8 * 1024 * 1024;

/// The largest write-ahead log that is left for the next start.
const LEFT_LOG_BYTES: u64 = 1024 * 1024;

/// A request to the writer.
pub(super) enum Command {
    Append(Append),
    Run(Box<dyn FnOnce(&mut Connection) + Send>),
    /// Wakes the writer, which releases abandoned leases before every command.
    ReleaseAbandoned,
    Close(oneshot::Sender<Result<(), Error>>),
}

/// A write that succeeds or fails as a whole.
pub(super) struct Append {
    pub(super) work: Work,
    /// The condition, checked in the transaction.
    pub(super) condition: Condition,
    pub(super) bytes: usize,
    pub(super) reply: oneshot::Sender<Answer>,
    /// Its share of the queue's size limit.
    pub(super) room: OwnedSemaphorePermit,
}

/// The content of an append.
pub(super) enum Work {
    /// Events, in this order.
    Events(Vec<(Event, Record)>),
    /// The draft of a growing part.
    Draft(Box<(Part, Record)>),
    /// Events of another store; known ones are skipped.
    Incoming(Vec<Incoming>),
}

type Answer = Result<Vec<Arc<Envelope>>, Error>;

/// Envelopes with the size of their JSON, for the feed.
type SizedEnvelopes = Vec<(Arc<Envelope>, usize)>;

pub(super) struct Writer {
    pub(super) path: PathBuf,
    pub(super) connection: Connection,
    pub(super) stamps: Stamps,
    pub(super) feed: Arc<Feed>,
    pub(super) node: Arc<Node>,
    pub(super) received: mpsc::Receiver<Command>,
}

impl Writer {
    /// Runs until it is closed or all senders are dropped.
    pub(super) fn run(mut self) {
        let mut held = None;
        let mut closing = None;
        while let Some(command) = held.take().or_else(|| self.received.blocking_recv()) {
            self.release_abandoned();
            match command {
                Command::Append(append) => {
                    let mut group = vec![append];
                    held = self.gather(&mut group);
                    self.commit(group);
                }
                Command::Run(run) => run(&mut self.connection),
                Command::ReleaseAbandoned => {}
                Command::Close(reply) => {
                    // Queued commands are still received, then the channel ends.
                    self.received.close();
                    closing = Some(reply);
                }
            }
        }
        self.release_abandoned();
        let (path, connection) = (self.path, self.connection);
        let closed = finish(connection, &path).map_err(|fault| fault.at(&path));
        if let Some(reply) = closing {
            // The caller may have stopped waiting.
            drop(reply.send(closed));
        }
    }

    /// Releases the leases that were dropped.
    fn release_abandoned(&mut self) {
        let abandoned = self.node.take_abandoned();
        if !abandoned.is_empty() && lease::release_abandoned(&mut self.connection, &abandoned).is_err() {
            self.node.put_back(abandoned);
        }
    }

    /// Adds the queued appends to a group. Returns the first other command.
    fn gather(&mut self, group: &mut Vec<Append>) -> Option<Command> {
        let mut bytes = group.iter().map(|append| append.bytes).sum::<usize>();
        while group.len() < MAX_GROUP && bytes < MAX_GROUP_BYTES {
            match self.received.try_recv().ok()? {
                Command::Append(append) => {
                    bytes += append.bytes;
                    group.push(append);
                }
                other => return Some(other),
            }
        }
        None
    }

    fn commit(&mut self, group: Vec<Append>) {
        let outcomes = match self.transact(&group) {
            Ok(outcomes) => outcomes,
            Err(fault) => {
                let error = fault.at(&self.path);
                group.iter().map(|_| Err(error.clone())).collect()
            }
        };
        for (Append { work, reply, room, .. }, outcome) in group.into_iter().zip(outcomes) {
            let stored = outcome.map(|stored| {
                let envelopes = stored.of(work);
                self.feed.publish(&envelopes);
                envelopes.into_iter().map(|(envelope, _)| envelope).collect()
            });
            drop(room);
            // The events are stored whether or not the caller still waits.
            drop(reply.send(stored));
        }
    }

    /// Stores each append or returns its error. Fails if the transaction fails.
    fn transact(&mut self, group: &[Append]) -> Result<Vec<Result<Stored, Error>>, Fault> {
        match self.together(group)? {
            Ok(stored) => Ok(stored.into_iter().map(Ok).collect()),
            Err(fault) if group.len() == 1 => Ok(vec![Err(fault.at(&self.path))]),
            // The others must not fail with it.
            Err(_) => self.one_by_one(group),
        }
    }

    /// Stores all appends, or none if one of them fails.
    fn together(&mut self, group: &[Append]) -> Result<Result<Vec<Stored>, Fault>, Fault> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut scope = Scope::new(&transaction);
        let mut stored = Vec::with_capacity(group.len());
        for append in group {
            match store(&mut scope, append, &self.node, &self.stamps) {
                Ok(outcome) => stored.push(outcome),
                // A full disk ends the whole transaction with every append.
                Err(fault) if transaction.is_autocommit() => return Err(fault),
                Err(fault) => return Ok(Err(fault)),
            }
        }
        scope.finish()?;
        transaction.commit()?;
        Ok(Ok(stored))
    }

    /// Stores each append in its own savepoint, or returns its error.
    fn one_by_one(&mut self, group: &[Append]) -> Result<Vec<Result<Stored, Error>>, Fault> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut outcomes = Vec::with_capacity(group.len());
        for append in group {
            execute(&transaction, "SAVEPOINT append")?;
            let mut scope = Scope::new(&transaction);
            let outcome = store(&mut scope, append, &self.node, &self.stamps)
                .and_then(|stored| scope.finish().map(|()| stored));
            if transaction.is_autocommit() {
                return Err(outcome.err().unwrap_or(Fault::Error(Error::Closed)));
            }
            if outcome.is_err() {
                execute(&transaction, "ROLLBACK TO append")?;
            }
            execute(&transaction, "RELEASE append")?;
            outcomes.push(outcome.map_err(|fault| fault.at(&self.path)));
        }
        transaction.commit()?;
        Ok(outcomes)
    }
}

fn execute(connection: &Connection, sql: &str) -> Result<(), Fault> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}

/// The result of an append.
enum Stored {
    /// The event headers.
    Headers(Vec<EventHeader>),
    /// The new events of another store.
    Envelopes(Vec<(Envelope, usize)>),
}

impl Stored {
    /// The envelopes to publish.
    fn of(self, work: Work) -> SizedEnvelopes {
        match (self, work) {
            (Self::Headers(headers), Work::Events(records)) => headers
                .into_iter()
                .zip(records)
                .map(|(header, (event, record))| (Arc::new(header.with_event(event)), record.len_bytes()))
                .collect(),
            (Self::Envelopes(envelopes), _) => {
                envelopes.into_iter().map(|(envelope, bytes)| (Arc::new(envelope), bytes)).collect()
            }
            (Self::Headers(_), Work::Draft(_) | Work::Incoming(_)) => Vec::new(),
        }
    }
}

fn store(scope: &mut Scope<'_>, append: &Append, node: &Node, stamps: &Stamps) -> Result<Stored, Fault> {
    lease::check_condition(scope, node, &append.condition)?;
    let time = stamps.clock.now_ms();
    match &append.work {
        Work::Events(records) => {
            let store = |(event, record): &(Event, Record)| {
                apply::store(scope, stamps.ids.event(), time, event, record)
            };
            Ok(Stored::Headers(records.iter().map(store).collect::<Result<_, _>>()?))
        }
        Work::Incoming(events) => Ok(Stored::Envelopes(sync::replay(scope, events, time)?)),
        Work::Draft(draft) => {
            let (part, record) = draft.as_ref();
            draft::put(scope, part, time, record)?;
            Ok(Stored::Headers(Vec::new()))
        }
    }
}

/// Moves a large log into the file, so that the next start does not have to read it.
fn finish(connection: Connection, path: &Path) -> Result<(), Fault> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let log_bytes = std::fs::metadata(log).map_or(0, |log| log.len());
    if log_bytes > LEFT_LOG_BYTES {
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    }
    connection.close().map_err(|(_, error)| Fault::Sql(error))
}
