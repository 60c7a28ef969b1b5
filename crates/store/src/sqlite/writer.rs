//! The thread that writes.
//!
//! It takes whatever appends are waiting into one transaction, because the commit
//! is the expensive part. If one of them is refused, nothing of the group was stored,
//! and it is begun anew with each append as a savepoint of its own, so that a bad one
//! takes nobody with it. Only after the commit are events published and callers answered.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use codewright_proto::{Envelope, Event, Part};
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::apply::Place;
use super::scope::Scope;
use super::{apply, draft, lease, sync};
use crate::error::Fault;
use crate::feed::Feed;
use crate::node::Node;
use crate::record::Record;
use crate::sync::Incoming;
use crate::{Condition, Error, Stamps};

/// How many appends share a transaction.
const MAX_GROUP: usize = 128;

/// How large the appends that share a transaction may be together, as JSON; one alone may be larger.
const MAX_GROUP_BYTES: usize = 8 * 1024 * 1024;

/// How large the write-ahead log may be that is left for the next start.
const LEFT_LOG_BYTES: u64 = 1024 * 1024;

/// What the writer is asked to do.
pub(super) enum Command {
    Append(Append),
    Run(Box<dyn FnOnce(&mut Connection) + Send>),
    /// There are leases to let go, which happens before every command.
    LetGo,
    Close(oneshot::Sender<Result<(), Error>>),
}

/// What is stored at once, or not at all.
pub(super) struct Append {
    pub(super) work: Work,
    /// What has to hold in the moment it is stored.
    pub(super) condition: Condition,
    pub(super) bytes: usize,
    pub(super) reply: oneshot::Sender<Answer>,
    /// Its share of what may wait, given back when it is done.
    pub(super) room: OwnedSemaphorePermit,
}

/// What an append stores.
pub(super) enum Work {
    /// Events, in this order.
    Events(Vec<(Event, Record)>),
    /// The latest value of a part that is still growing.
    Draft(Box<(Part, Record)>),
    /// Events of another store, as far as they are new.
    Incoming(Vec<Incoming>),
}

type Answer = Result<Vec<Arc<Envelope>>, Error>;

/// Envelopes with the size of their JSON, as the feed takes them.
type Weighed = Vec<(Arc<Envelope>, usize)>;

pub(super) struct Writer {
    pub(super) path: PathBuf,
    pub(super) connection: Connection,
    pub(super) stamps: Stamps,
    pub(super) feed: Arc<Feed>,
    pub(super) node: Arc<Node>,
    pub(super) received: mpsc::Receiver<Command>,
}

impl Writer {
    /// Works until it is closed or nobody can ask any more.
    pub(super) fn run(mut self) {
        let mut held = None;
        let mut closing = None;
        while let Some(command) = held.take().or_else(|| self.received.blocking_recv()) {
            self.let_go();
            match command {
                Command::Append(append) => {
                    let mut group = vec![append];
                    held = self.gather(&mut group);
                    self.commit(group);
                }
                Command::Run(run) => run(&mut self.connection),
                Command::LetGo => {}
                Command::Close(reply) => {
                    // What was sent before is still received; then the channel ends.
                    self.received.close();
                    closing = Some(reply);
                }
            }
        }
        self.let_go();
        let (path, connection) = (self.path, self.connection);
        let closed = finish(connection, &path).map_err(|fault| fault.at(&path));
        if let Some(reply) = closing {
            // Whoever closed may have stopped waiting.
            drop(reply.send(closed));
        }
    }

    /// Lets go of the leases that were dropped.
    fn let_go(&mut self) {
        let abandoned = self.node.take_abandoned();
        if !abandoned.is_empty() && lease::release_abandoned(&mut self.connection, &abandoned).is_err() {
            self.node.put_back(abandoned);
        }
    }

    /// Takes the appends that are waiting; returns what came instead of the next one.
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

    /// Stores each append or says why not; fails as a whole if the transaction does.
    fn transact(&mut self, group: &[Append]) -> Result<Vec<Result<Stored, Error>>, Fault> {
        match self.together(group)? {
            Ok(stored) => Ok(stored.into_iter().map(Ok).collect()),
            Err(refusal) if group.len() == 1 => Ok(vec![Err(refusal.at(&self.path))]),
            // A bad one takes nobody with it.
            Err(_) => self.one_by_one(group),
        }
    }

    /// Stores all appends, or none if one of them is refused.
    fn together(&mut self, group: &[Append]) -> Result<Result<Vec<Stored>, Fault>, Fault> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut scope = Scope::new(&transaction);
        let mut stored = Vec::with_capacity(group.len());
        for append in group {
            match store(&mut scope, append, (&self.node, &self.stamps)) {
                Ok(outcome) => stored.push(outcome),
                // A full disk ends the whole transaction, and every append of it with it.
                Err(fault) if transaction.is_autocommit() => return Err(fault),
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        scope.finish()?;
        transaction.commit()?;
        Ok(Ok(stored))
    }

    /// Stores each append under a savepoint of its own, or says why not.
    fn one_by_one(&mut self, group: &[Append]) -> Result<Vec<Result<Stored, Error>>, Fault> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut outcomes = Vec::with_capacity(group.len());
        for append in group {
            execute(&transaction, "SAVEPOINT append")?;
            let mut scope = Scope::new(&transaction);
            let outcome = store(&mut scope, append, (&self.node, &self.stamps))
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

/// What an append has stored.
enum Stored {
    /// Where its own events stand.
    Places(Vec<Place>),
    /// Those of another store's events that were new.
    Envelopes(Vec<(Envelope, usize)>),
}

impl Stored {
    /// What is published, given what was asked for.
    fn of(self, work: Work) -> Weighed {
        match (self, work) {
            (Self::Places(places), Work::Events(records)) => places
                .into_iter()
                .zip(records)
                .map(|(place, (event, record))| (Arc::new(place.holds(event)), record.len_bytes()))
                .collect(),
            (Self::Envelopes(envelopes), _) => {
                envelopes.into_iter().map(|(envelope, bytes)| (Arc::new(envelope), bytes)).collect()
            }
            (Self::Places(_), Work::Draft(_) | Work::Incoming(_)) => Vec::new(),
        }
    }
}

fn store(scope: &mut Scope<'_>, append: &Append, (node, stamps): (&Node, &Stamps)) -> Result<Stored, Fault> {
    lease::demand(scope, node, &append.condition)?;
    let time = stamps.clock.now_ms();
    match &append.work {
        Work::Events(records) => {
            let store = |(event, record): &(Event, Record)| {
                apply::store(scope, (stamps.ids.event(), time), event, record)
            };
            Ok(Stored::Places(records.iter().map(store).collect::<Result<_, _>>()?))
        }
        Work::Incoming(events) => Ok(Stored::Envelopes(sync::replay(scope, events, time)?)),
        Work::Draft(draft) => {
            let (part, record) = draft.as_ref();
            draft::put(scope, part, time, record)?;
            Ok(Stored::Places(Vec::new()))
        }
    }
}

/// Moves a log that has grown into the file, so that the next start does not have to read it.
fn finish(connection: Connection, path: &Path) -> Result<(), Fault> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let log_bytes = std::fs::metadata(log).map_or(0, |log| log.len());
    if log_bytes > LEFT_LOG_BYTES {
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    }
    connection.close().map_err(|(_, error)| Fault::Sql(error))
}
