//! The thread that writes.
//!
//! It takes whatever appends are waiting into one transaction, because the commit
//! is the expensive part. Each append is a savepoint of its own, so a bad one takes
//! nobody with it. Only after the commit are events published and callers answered.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use codewright_proto::{Envelope, Event, Part};
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

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
    pub(super) reply: oneshot::Sender<Stored>,
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

type Stored = Result<Vec<Arc<Envelope>>, Error>;

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
        let mut replies = Vec::with_capacity(group.len());
        let mut rooms = Vec::with_capacity(group.len());
        let mut appends = Vec::with_capacity(group.len());
        for append in group {
            replies.push(append.reply);
            rooms.push(append.room);
            appends.push((append.condition, append.work));
        }
        let outcomes = match self.transact(appends) {
            Ok(outcomes) => outcomes,
            Err(fault) => {
                let error = fault.at(&self.path);
                replies.iter().map(|_| Err(error.clone())).collect()
            }
        };
        drop(rooms);
        for (reply, outcome) in replies.into_iter().zip(outcomes) {
            let stored = outcome.map(|envelopes| {
                self.feed.publish(&envelopes);
                envelopes.into_iter().map(|(envelope, _)| envelope).collect()
            });
            // The events are stored whether or not the caller still waits.
            drop(reply.send(stored));
        }
    }

    /// Stores each append or says why not; fails as a whole if the transaction does.
    fn transact(&mut self, appends: Vec<(Condition, Work)>) -> Result<Vec<Result<Weighed, Error>>, Fault> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut outcomes = Vec::with_capacity(appends.len());
        for (condition, work) in appends {
            execute(&transaction, "SAVEPOINT append")?;
            let outcome = lease::demand(&transaction, &self.node, &condition)
                .and_then(|()| store(&transaction, work, &self.stamps));
            // A full disk ends the whole transaction, and every append of it with it.
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

fn store(connection: &Connection, work: Work, stamps: &Stamps) -> Result<Weighed, Fault> {
    let time = stamps.clock.now_ms();
    let records = match work {
        Work::Events(records) => records,
        Work::Incoming(events) => {
            let stored = sync::replay(connection, events, time)?;
            return Ok(stored.into_iter().map(|(envelope, bytes)| (Arc::new(envelope), bytes)).collect());
        }
        Work::Draft(draft) => {
            let (part, record) = *draft;
            draft::put(connection, &part, time, record)?;
            return Ok(Vec::new());
        }
    };
    let mut envelopes = Vec::with_capacity(records.len());
    for (event, record) in records {
        let bytes = record.len_bytes();
        let id = stamps.ids.event();
        let mut envelope = Envelope { id, position: 0, seq: 0, time, event };
        apply::log(connection, &mut envelope, &record)?;
        apply::project_event(connection, &envelope, record)?;
        draft::settle(connection, &envelope.event)?;
        envelopes.push((Arc::new(envelope), bytes));
    }
    Ok(envelopes)
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
