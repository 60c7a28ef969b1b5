//! The writing task.
//!
//! It has one connection and stores all queued appends in one transaction, because the commit is the expensive part. If
//! one of them fails, each is repeated in a transaction of its own. While the database cannot be reached, a request is
//! repeated on new connections until its deadline. Before a repetition, a commit of unknown outcome is looked up in the
//! log, so nothing is stored twice.

use std::sync::Arc;
use std::time::{Duration, Instant};

use codewright_proto::{Envelope, Event, EventId, Part, Project, SessionId};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::timeout;

use super::address::Address;
use super::append::{self, Context, Pace, Prepared, SizedEnvelopes};
use super::fault::Fault;
use super::link::Link;
use super::{Postgres, job, lease, schema};
use crate::feed::Feed;
use crate::lease::LeaseResult;
use crate::node::Node;
use crate::record::Record;
use crate::sync::Incoming;
use crate::{Audited, Claim, Condition, Error, SavedPermission, Stamps};

/// The maximum number of appends in a transaction.
const MAX_GROUP: usize = 128;

/// The maximum size of the appends in a transaction, as JSON. A single append may be larger.
const MAX_GROUP_BYTES: usize = 8 * 1024 * 1024;

/// How long a request is repeated while the database cannot be reached.
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);

/// The limit of one attempt, in which the server's own limits apply first.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(60);

/// The limit of rebuilding all rows.
const REPLAY_TIMEOUT: Duration = Duration::from_secs(3600);

/// The pause before a request is repeated.
const PAUSE: Duration = Duration::from_millis(200);

/// Sessions with the results of leasing them.
pub(super) type Claims = Vec<(SessionId, Result<Claim, Error>)>;

/// A request to the writer.
pub(super) enum Command {
    Append(Append),
    Job(Job, oneshot::Sender<Result<Done, Error>>),
    /// Leases sessions for a store.
    Lease {
        sessions: Vec<SessionId>,
        store: Postgres,
        reply: oneshot::Sender<Result<Claims, Error>>,
    },
    /// Wakes the writer, which releases abandoned leases before every command.
    ReleaseAbandoned,
    Close(oneshot::Sender<()>),
}

/// A write that succeeds or fails as a whole.
pub(super) struct Append {
    pub(super) work: Work,
    /// The condition, checked in the transaction.
    pub(super) condition: Condition,
    pub(super) bytes: usize,
    pub(super) reply: oneshot::Sender<Result<Vec<Arc<Envelope>>, Error>>,
    /// Its share of the queue's size limit.
    pub(super) _room: OwnedSemaphorePermit,
}

/// The content of an append.
pub(super) enum Work {
    /// Events with their ids, in this order.
    Events(Vec<(EventId, Event, Arc<Record>)>),
    /// The draft of a growing part.
    Draft(Box<(Part, Record)>),
    /// Events of another store; known ones are skipped.
    Incoming(Vec<Incoming>),
}

/// A write besides appends, in a transaction of its own.
pub(super) enum Job {
    Lease(Vec<SessionId>),
    Release { session: SessionId, fence: u64, seen: u64 },
    AskToStop(SessionId),
    SaveProject(Box<Project>),
    SavePermissions(Vec<SavedPermission>),
    RemovePermission(String),
    Audit(Box<Audited>),
    Probe,
    Replay,
    ReleaseAll(Vec<(SessionId, u64)>),
    Leave,
}

/// The result of a job.
pub(super) enum Done {
    /// The results of leasing each of the sessions.
    Leases(Vec<Result<LeaseResult, Error>>),
    Flag(bool),
    Count(u64),
    Nothing,
}

/// The owner of the writing connection.
pub(super) struct Writer {
    pub(super) address: Address,
    pub(super) link: Option<Link>,
    pub(super) stamps: Stamps,
    pub(super) feed: Arc<Feed>,
    pub(super) node: Arc<Node>,
    pub(super) received: mpsc::Receiver<Command>,
}

impl Writer {
    /// Runs until it is closed or all senders are dropped.
    pub(super) async fn run(mut self) {
        let mut held = None;
        let mut closing = None;
        loop {
            let command = match held.take() {
                Some(command) => command,
                None => match self.received.recv().await {
                    Some(command) => command,
                    None => break,
                },
            };
            self.release_abandoned().await;
            match command {
                Command::Append(append) => {
                    let mut group = vec![append];
                    held = self.gather(&mut group);
                    self.commit(group).await;
                }
                Command::Job(job, reply) => {
                    let outcome = self.persist(&job).await.map_err(|fault| fault.at(&self.address.label));
                    self.after(&job, &outcome);
                    // The change is stored whether or not the caller still waits.
                    drop(reply.send(outcome));
                }
                Command::Lease { sessions, store, reply } => {
                    // The leases are made here, so a caller that stops waiting drops them.
                    let claims = self.lease(sessions, &store).await;
                    drop(reply.send(claims.map_err(|fault| fault.at(&self.address.label))));
                }
                Command::ReleaseAbandoned => {}
                Command::Close(reply) => {
                    // Queued commands are still received, then the channel ends.
                    self.received.close();
                    closing = Some(reply);
                }
            }
        }
        self.release_abandoned().await;
        // Without this the row ends by itself, a little later.
        if let Some(link) = &mut self.link
            && !self.node.is_sealed()
        {
            drop(timeout(PAUSE * 5, lease::remove_node(link, &self.node)).await);
        }
        if let Some(reply) = closing {
            // The caller may have stopped waiting.
            let _: Result<(), ()> = reply.send(());
        }
    }

    async fn lease(&mut self, sessions: Vec<SessionId>, store: &Postgres) -> Result<Claims, Fault> {
        let _requested = self.node.request(&sessions);
        let job = Job::Lease(sessions);
        let done = self.persist(&job).await?;
        let (Job::Lease(sessions), Done::Leases(results)) = (job, done) else { return Err(Fault::Unchanged) };
        let claim = |(session, result): (SessionId, Result<LeaseResult, Error>)| {
            let claim = result.map(|result| store.claim(session.clone(), result));
            (session, claim)
        };
        Ok(sessions.into_iter().zip(results).map(claim).collect())
    }

    /// Releases the leases that were dropped.
    async fn release_abandoned(&mut self) {
        let abandoned = self.node.take_abandoned();
        // Sessions that are handed over keep their owner, which shows others that they have work.
        if abandoned.is_empty() || self.node.is_sealed() {
            return;
        }
        let job = Job::ReleaseAll(abandoned);
        let outcome = self.persist(&job).await;
        if let (Job::ReleaseAll(abandoned), Err(_)) = (job, outcome) {
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

    async fn commit(&mut self, group: Vec<Append>) {
        match self.store(&group, Pace::Together).await {
            Ok(answers) => self.answer(group, answers),
            // The others must not fail with the one that does.
            Err(fault) if !fault.is_passing() => {
                for append in group {
                    let one = std::slice::from_ref(&append);
                    let answers = self.store(one, Pace::StepByStep).await;
                    let answers = answers.unwrap_or_else(|fault| vec![Err(fault.at(&self.address.label))]);
                    self.answer(vec![append], answers);
                }
            }
            Err(fault) => {
                let error = fault.at(&self.address.label);
                let answers = group.iter().map(|_| Err(error.clone())).collect();
                self.answer(group, answers);
            }
        }
    }

    /// Publishes the events and answers the callers, in the order of the appends.
    fn answer(&self, group: Vec<Append>, answers: Vec<Result<SizedEnvelopes, Error>>) {
        for (append, answer) in group.into_iter().zip(answers) {
            let stored = answer.map(|envelopes| {
                self.feed.publish(&envelopes);
                envelopes.into_iter().map(|(envelope, _)| envelope).collect()
            });
            // The events are stored whether or not the caller still waits.
            drop(append.reply.send(stored));
        }
    }

    /// Stores a group, with repetitions while the database cannot be reached.
    async fn store(
        &mut self,
        group: &[Append],
        pace: Pace,
    ) -> Result<Vec<Result<SizedEnvelopes, Error>>, Fault> {
        let deadline = Instant::now() + WRITE_TIMEOUT;
        let mut unknown = None;
        loop {
            let attempt = timeout(ATTEMPT_TIMEOUT, self.try_store(group, pace, &mut unknown)).await;
            match attempt.unwrap_or(Err(Fault::Silent)) {
                Ok(prepared) => return Ok(prepared.answers()),
                Err(fault) => self.recover(fault, deadline).await?,
            }
        }
    }

    /// One attempt. `unknown` is a group whose commit was sent and not answered.
    async fn try_store(
        &mut self,
        group: &[Append],
        pace: Pace,
        unknown: &mut Option<Prepared>,
    ) -> Result<Prepared, Fault> {
        let (node, stamps) = (Arc::clone(&self.node), self.stamps.clone());
        let link = self.link().await?;
        let begun = append::begin_group(link, group).await?;
        // The lock shows that the other transaction has ended, in one way or the other.
        if let Some((id, position)) = unknown.as_ref().and_then(Prepared::mark) {
            let found = append::position_of(link, &id).await?;
            if found == Some(position)
                && let Some(stored) = unknown.take()
            {
                link.batch("COMMIT").await?;
                return Ok(stored);
            }
        }
        *unknown = None;
        let head = begun.head;
        let prepared =
            append::apply(link, group, begun, &Context { node: &node, stamps: &stamps, pace }).await?;
        let prepared = unknown.insert(prepared);
        link.batch("COMMIT").await?;
        debug_assert!(prepared.mark().is_none_or(|(_, position)| position > head));
        unknown.take().ok_or(Fault::Unchanged)
    }

    /// Runs a job, with repetitions while the database cannot be reached.
    async fn persist(&mut self, job: &Job) -> Result<Done, Fault> {
        let deadline = Instant::now() + WRITE_TIMEOUT;
        let limit = if matches!(job, Job::Replay) { REPLAY_TIMEOUT } else { ATTEMPT_TIMEOUT };
        loop {
            let attempt = timeout(limit, self.try_persist(job)).await;
            match attempt.unwrap_or(Err(Fault::Silent)) {
                Ok(done) => return Ok(done),
                // A lease of a failed attempt counts for nothing. If it was committed, the next one replaces it.
                Err(fault) => self.recover(fault, deadline).await?,
            }
        }
    }

    async fn try_persist(&mut self, job: &Job) -> Result<Done, Fault> {
        let node = Arc::clone(&self.node);
        job::run(self.link().await?, &node, job).await
    }

    /// Forgets leases that were released.
    fn after(&self, job: &Job, outcome: &Result<Done, Error>) {
        if let (Job::Release { session, fence, .. }, Ok(Done::Flag(true))) = (job, outcome) {
            self.node.forget(session, *fence);
        }
    }

    /// Ends a failed transaction. Returns the fault if it is final, otherwise after a pause.
    async fn recover(&mut self, fault: Fault, deadline: Instant) -> Result<(), Fault> {
        if !fault.is_passing() {
            let ended = match &self.link {
                Some(link) => timeout(ATTEMPT_TIMEOUT, link.batch("ROLLBACK")).await,
                None => Ok(Ok(())),
            };
            if !matches!(ended, Ok(Ok(()))) {
                self.link = None;
            }
            return Err(fault);
        }
        self.link = None;
        if Instant::now() >= deadline {
            return Err(fault);
        }
        tokio::time::sleep(PAUSE).await;
        Ok(())
    }

    /// The connection, a new one if the last one is lost.
    async fn link(&mut self) -> Result<&mut Link, Fault> {
        if self.link.as_ref().is_some_and(Link::is_lost) {
            self.link = None;
        }
        match &mut self.link {
            Some(link) => Ok(link),
            empty => {
                let mut link = Link::open(&self.address, &Handle::current(), None).await?;
                schema::check(&mut link, &self.address.label).await?;
                Ok(empty.insert(link))
            }
        }
    }
}
