//! The event log, its projections and the feed, on SQLite or PostgreSQL.
//!
//! Every change is an event in one log. [`Store::append`] is the only way to add events: in one transaction it assigns
//! their positions, writes them and updates the projected rows; then it publishes them to the feed. Sessions, messages,
//! parts and pending permission requests are projections, which [`Store::replay`] rebuilds from the log alone. Reads are
//! in [`Queries`].
//!
//! Acknowledged events survive a crash of the process. A power failure may lose the last moments, but leaves a
//! consistent database.
//!
//! An event contains the whole new value of one row. A part is stored only when its state changes (started, running,
//! ended), and the changes between are signals, which are never stored. So the size of the log is proportional to the
//! size of the transcript. The size of one append is limited.
//!
//! The feed publishes everything that is appended to the file, by this process or another. With a [`Lease`] one owner at
//! a time runs a session, across processes; the sessions of a crashed process become free. A [`Condition`] makes a
//! read-modify-write sequence atomic. A growing part is stored as a draft, outside the log.

#![warn(missing_docs)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use codewright_proto::{
    Clock, Envelope, Event, EventId, Ids, MessageId, Part, Project, ProjectId, SessionId, Signal,
};

mod backend;
mod changes;
mod copy;
mod error;
mod feed;
mod foreign;
pub mod inspect;
mod lease;
mod list;
mod member;
mod node;
mod permission;
#[cfg(feature = "postgres")]
mod postgres;
mod queries;
mod record;
mod rows;
mod spare;
mod sql;
mod sqlite;
mod sync;
mod upcast;
mod users;
pub mod view;

pub use copy::{Copied, copy};
pub use error::{Cause, Error};
pub use feed::{Published, Subscription};
pub use foreign::{Foreign, ForeignRow};
pub use lease::{Claim, Holder, Lease, OpenWork, StopSignal};
pub use member::{MAX_MEMBERS, MAX_OPEN_DIRECTORIES, Member, Members, Orphan, Ownership};
pub use permission::{Approvals, MAX_APPROVALS, SavedPermission};
#[cfg(feature = "postgres")]
pub use postgres::PostgresOptions;
pub use queries::{Answer, Queries};
pub use spare::Json;
pub use sync::{Incoming, Logged};
pub use users::{Account, Audited, Usage, day_of};

use backend::Backend;
use feed::Feed;
use sqlite::Sqlite;

/// The maximum number of sessions in one list.
pub const MAX_SESSIONS: usize = 10_000;

/// How often a waiting process checks whether a session is free.
const HOLDER_POLL: Duration = Duration::from_millis(50);

/// An open store. Clones share it. Needs a Tokio runtime with time enabled.
#[derive(Clone)]
pub struct Store {
    log: Arc<dyn Backend>,
    feed: Arc<Feed>,
    ids: Ids,
}

/// The result of repairing a damaged store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Salvage {
    /// The number of sessions after the repair.
    pub sessions: u64,
    /// The number of messages after the repair.
    pub messages: u64,
    /// The number of events that could be read.
    pub events: u64,
    /// The number of events that are known to be lost.
    pub events_lost: u64,
    /// Whether the complete log could be read, so that nothing is lost.
    pub is_whole: bool,
    /// The path of the damaged file.
    pub kept_at: PathBuf,
}

impl std::fmt::Display for Salvage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { sessions, messages, events, events_lost, is_whole, kept_at } = self;
        write!(
            f,
            "the store was damaged and has been repaired: {sessions} sessions with {messages} messages were kept, "
        )?;
        if *is_whole {
            f.write_str("nothing is lost")?;
        } else if *events_lost > 0 {
            write!(f, "{events_lost} of {} changes are lost", events + events_lost)?;
        } else {
            f.write_str("the unreadable parts are lost")?;
        }
        write!(f, "; the damaged file was kept as `{}`", kept_at.display())
    }
}

/// The generators of event ids and times.
#[derive(Clone)]
pub(crate) struct Stamps {
    pub(crate) ids: Ids,
    pub(crate) clock: Clock,
}

/// Messages with their parts as clients receive them.
#[derive(Debug)]
pub struct MessagesJson {
    /// A list of `MessageWithParts`, oldest first, or its first piece.
    pub json: Json,
    /// The creation time and id of the oldest message, if there are older ones.
    pub next: Option<(u64, MessageId)>,
    /// The start of the next piece, if the list is too long for one.
    pub rest: Option<Rest>,
}

/// The start of the next piece of a message list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rest {
    session: SessionId,
    /// The message in which the last piece ended.
    message: Position,
    /// The last included part, if the message has one.
    part: String,
    /// The message before which the list ends.
    before: Position,
}

/// The place of a message in the session's order: its time and its id.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Position {
    time: i64,
    id: String,
}

/// A filter of sessions. A missing field matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Sessions in this directory.
    pub directory: Option<String>,
    /// Sessions in this directory or below it. An absolute path without `/` at its end, except for `/` itself.
    pub below: Option<String>,
    /// Sessions of this project.
    pub project: Option<ProjectId>,
    /// Sessions of other projects than this one.
    pub outside: Option<ProjectId>,
    /// Sessions started by this session.
    pub parent: Option<SessionId>,
    /// Only sessions that were not started by another session.
    pub roots: bool,
    /// Sessions whose title contains this text, ignoring ASCII case.
    pub search: Option<String>,
    /// Sessions updated at this time or later, in milliseconds since 1970.
    pub start: Option<u64>,
    /// Sessions updated before this time, in milliseconds since 1970.
    pub before: Option<u64>,
    /// Only sessions that are not archived.
    pub unarchived: bool,
    /// The maximum number of sessions, at most [`MAX_SESSIONS`].
    pub limit: Option<usize>,
}

impl SessionFilter {
    /// The beginning of the paths below [`SessionFilter::below`], which ends with `/`.
    pub(crate) fn prefix(&self) -> Option<String> {
        self.below.as_ref().map(|below| format!("{}/", below.trim_end_matches('/')))
    }
}

/// The largest page of events that a query may return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit {
    /// The number of events.
    pub events: usize,
    /// The size of all events together, as JSON.
    pub bytes: u64,
}

/// A condition that is checked in the transaction of a write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Condition {
    /// No condition.
    #[default]
    Always,
    /// No event of the session was stored after `seq`; otherwise [`Error::Conflict`].
    Untouched {
        /// The session.
        session: SessionId,
        /// The `seq` that was read.
        seq: u64,
    },
    /// The session's own row was not changed after `seq`; otherwise [`Error::Conflict`].
    RowUntouched {
        /// The session.
        session: SessionId,
        /// The `seq` that was read.
        seq: u64,
    },
    /// This store leases the session with this fence; otherwise [`Error::Fenced`].
    Leased {
        /// The session.
        session: SessionId,
        /// The lease's fence.
        fence: u64,
    },
}

impl Store {
    /// Opens the store in a file. Creates the file and its directories if they are missing.
    ///
    /// New files and directories are private to the user. Any number of processes can open one file. A damaged file is
    /// replaced by its readable content and kept under a dated name, unless another process is using it; see
    /// [`Store::salvage`].
    pub async fn open(path: &Path, ids: Ids, clock: Clock) -> Result<Self, Error> {
        let feed = Arc::new(Feed::new());
        let stamps = Stamps { ids: ids.clone(), clock };
        let log = Arc::new(Sqlite::open(path, stamps, Arc::clone(&feed)).await?);
        Ok(Self { log, feed, ids })
    }

    /// Opens the store in a PostgreSQL database. Creates its tables if they are missing.
    ///
    /// Any number of processes on any machines can open one database.
    #[cfg(feature = "postgres")]
    pub async fn open_postgres(options: &PostgresOptions, ids: Ids, clock: Clock) -> Result<Self, Error> {
        let feed = Arc::new(Feed::new());
        let stamps = Stamps { ids: ids.clone(), clock };
        let log = Arc::new(postgres::Postgres::open(options, stamps, Arc::clone(&feed)).await?);
        Ok(Self { log, feed, ids })
    }

    /// The result of the repair, if the file was damaged when the store was opened.
    #[must_use]
    pub fn salvage(&self) -> Option<&Salvage> {
        self.log.salvage()
    }

    /// An empty store in memory, for tests.
    pub async fn in_memory(ids: Ids, clock: Clock) -> Result<Self, Error> {
        let feed = Arc::new(Feed::new());
        let stamps = Stamps { ids: ids.clone(), clock };
        let log = Arc::new(Sqlite::in_memory(stamps, Arc::clone(&feed)).await?);
        Ok(Self { log, feed, ids })
    }

    /// Stores events, all or none, and publishes them in this order.
    ///
    /// Returns after the commit and the publication. If the caller stops waiting, the events are stored anyway. Removing
    /// a message or part twice is not an error.
    ///
    /// # Errors
    ///
    /// Fails for an inconsistent event, an event about an unknown session, message or project, an id that is in use
    /// elsewhere, and a second reply to a permission request.
    pub async fn append(&self, events: Vec<Event>) -> Result<Vec<Arc<Envelope>>, Error> {
        self.log.append(Condition::Always, events).await
    }

    /// Like [`Store::append`], but fails if the condition does not hold in the transaction.
    pub async fn append_if(
        &self,
        condition: Condition,
        events: Vec<Event>,
    ) -> Result<Vec<Arc<Envelope>>, Error> {
        self.log.append(condition, events).await
    }

    /// Stores the latest value of a growing part, outside the log.
    ///
    /// The part must have been stored by an event. Queries return the draft instead of the stored part, in every process
    /// and after a crash; the feed does not publish drafts. A draft replaces the previous one and is removed by the part's
    /// next event, so a growing part does not grow the log. A caller must send the drafts of a part and its final event in
    /// sequence.
    pub async fn draft(&self, part: Part) -> Result<(), Error> {
        self.log.draft(Condition::Always, part).await
    }

    /// Leases a session if it is free. Does not wait.
    ///
    /// An owner whose process has ended does not count.
    pub async fn lease(&self, session: &SessionId) -> Result<Claim, Error> {
        self.log.lease(session).await
    }

    /// Leases the given sessions that have no living owner. In PostgreSQL this is one transaction.
    ///
    /// The result has no entries for deleted sessions.
    pub async fn lease_all(&self, sessions: Vec<SessionId>) -> Result<Vec<(SessionId, Claim)>, Error> {
        self.log.lease_all(sessions).await
    }

    /// Sends a stop request to the owner of a session in another process. Returns whether there is one.
    ///
    /// The owner is notified about 50 ms later, by [`Lease::stop_signal`]. Later owners are not.
    pub async fn ask_to_stop(&self, session: &SessionId) -> Result<bool, Error> {
        self.log.ask_to_stop(session).await
    }

    /// Waits until a session has no living owner. It may have a new one when this returns.
    ///
    /// Checks every 50 ms, without a time limit.
    pub async fn wait_until_free(&self, session: &SessionId) -> Result<(), Error> {
        while self.log.holder(session).await?.is_some() {
            tokio::time::sleep(HOLDER_POLL).await;
        }
        Ok(())
    }

    /// Publishes a signal, which is not stored.
    pub fn signal(&self, signal: Signal) {
        self.feed.signal(self.ids.event(), signal);
    }

    /// Publishes a signal of another process, with its id.
    pub fn signal_from_elsewhere(&self, id: EventId, signal: Signal) {
        self.feed.signal_from_elsewhere(id, signal);
    }

    /// Announces this process as a server to the others that use the database, again with every heartbeat.
    ///
    /// A store in a file has no other servers and ignores this.
    pub fn announce(&self, member: Member) {
        self.log.announce(member);
    }

    /// Gives up the leases without releasing them, so that other servers take the sessions over.
    ///
    /// Returns after the last write of this process to one of these sessions. Later writes fail with [`Error::Fenced`],
    /// and no session can be leased.
    pub async fn seal(&self) -> Result<(), Error> {
        self.log.seal().await
    }

    /// Declares this process dead to the others, which may take its sessions over. Call [`Store::seal`] before.
    pub async fn leave(&self) -> Result<(), Error> {
        self.log.leave().await
    }

    /// Subscribes to the feed, starting with the next item.
    ///
    /// Events of other processes that use the file are included about 50 ms later, in the order of the log. Their signals
    /// are not.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.log.watch();
        Subscription::new(Arc::clone(&self.feed), Arc::clone(&self.log))
    }

    /// Subscribes to the feed after an event. Later events are read from the log first.
    #[must_use]
    pub fn subscribe_after(&self, position: u64) -> Subscription {
        self.log.watch();
        Subscription::after(Arc::clone(&self.feed), Arc::clone(&self.log), position)
    }

    /// The position of the last event that this store knows of: its own events, events that existed when it was opened,
    /// and, while the feed is read, events of other processes.
    #[must_use]
    pub fn last_position(&self) -> u64 {
        self.feed.last_position()
    }

    /// Saves a project. Sessions can only be created in a saved project.
    pub async fn save_project(&self, project: Project) -> Result<(), Error> {
        self.log.save_project(project).await
    }

    /// Saves approvals, all or none, and skips those that are saved already. If a directory has more than
    /// [`MAX_APPROVALS`], its oldest are removed.
    pub async fn save_permissions(&self, saved: Vec<SavedPermission>) -> Result<(), Error> {
        self.log.save_permissions(saved).await
    }

    /// Removes a saved approval. Returns whether it existed.
    pub async fn remove_permission(&self, id: &str) -> Result<bool, Error> {
        self.log.remove_permission(id).await
    }

    /// Rebuilds all projections from the log, or changes nothing on failure. Returns the number of events in the log.
    pub async fn replay(&self) -> Result<u64, Error> {
        self.log.replay().await
    }

    /// Adds an entry to the audit log, and removes the oldest ones if there are too many. The store numbers it.
    pub async fn audit(&self, entry: Audited) -> Result<(), Error> {
        self.log.audit(entry).await
    }

    /// Commits a write that changes nothing, to find out whether the database can be reached and written.
    pub async fn probe(&self) -> Result<(), Error> {
        self.log.probe().await
    }

    /// Stores events of another store, all new ones or none, and returns the new ones.
    ///
    /// The events of a session must be in order and without gaps. They start with the first new one or earlier; known
    /// events are skipped.
    pub async fn replay_foreign(&self, events: Vec<Incoming>) -> Result<Vec<Arc<Envelope>>, Error> {
        self.log.replay_foreign(events).await
    }

    /// Finishes the queued requests, moves everything into the database file, and ends the feed.
    ///
    /// Clones return [`Error::Closed`] from then on. A store that is only dropped loses nothing that was acknowledged; its
    /// thread ends by itself.
    pub async fn close(self) -> Result<(), Error> {
        self.log.close().await
    }
}

/// The read queries.
impl std::ops::Deref for Store {
    type Target = dyn Queries;

    fn deref(&self) -> &Self::Target {
        &*self.log
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}
