//! The event log, its projections and the feed, on SQLite.
//!
//! Everything that happened is an event in one log. [`Store::append`] is the only
//! way in: in one transaction it gives each event its place, writes it down and
//! changes the rows that follow from it; then the feed hears of it. Sessions,
//! messages, parts and pending permission requests are projections, which
//! [`Store::replay`] makes anew from the log alone.
//!
//! What is acknowledged survives the end of the process, however sudden. A power
//! failure may take the last moments with it, but leaves a whole database.
//!
//! An event holds the whole new value of one row, so a part that is written often
//! makes the log grow with the square of its length. It is not: a part is stored
//! when its state changes (begun, running, ended), what happens between is a
//! signal, and signals are never stored. So the log holds a small constant times
//! the size of the transcript, and one append has a size limit.
//!
//! The feed carries what is appended to the file, by this process or another.
//! A [`Lease`] lets one owner at a time run a session, across processes; the system
//! frees the sessions of a process that dies. A [`Condition`] makes reading, changing
//! and writing one step. A growing part is kept as a draft, outside the log.

#![warn(missing_docs)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use codewright_proto::{Clock, Envelope, Event, Ids, MessageId, Part, Project, ProjectId, SessionId, Signal};

mod backend;
mod error;
mod feed;
mod foreign;
pub mod inspect;
mod lease;
mod node;
mod permission;
mod queries;
mod record;
mod spare;
mod sqlite;
mod sync;
mod upcast;

pub use error::{Cause, Error};
pub use feed::{Published, Subscription};
pub use foreign::{Foreign, ForeignRow};
pub use lease::{Claim, Holder, Lease, StopSignal};
pub use permission::{Approvals, MAX_APPROVALS, SavedPermission};
pub use queries::{Answer, Queries};
pub use spare::Json;
pub use sync::{Incoming, Logged};

use backend::Backend;
use feed::Feed;
use sqlite::Sqlite;

/// The most sessions that one list has.
pub const MAX_SESSIONS: usize = 10_000;

/// How often a waiting process looks whether a session is free.
const HOLDER_POLL: Duration = Duration::from_millis(50);

/// An open store. Clones share it. A runtime with time is needed to wait for it.
#[derive(Clone)]
pub struct Store {
    log: Arc<dyn Backend>,
    feed: Arc<Feed>,
    ids: Ids,
}

/// What was saved of a damaged store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Salvage {
    /// How many sessions there are now.
    pub sessions: u64,
    /// How many messages there are now.
    pub messages: u64,
    /// How many events could be read.
    pub events: u64,
    /// How many events are known to be lost.
    pub events_lost: u64,
    /// Whether all of the log could be read, so that everything follows from it.
    pub is_whole: bool,
    /// Where the damaged file is kept.
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
            f.write_str("whatever could not be read is lost")?;
        }
        write!(f, "; the damaged file is kept as `{}`", kept_at.display())
    }
}

/// What ids and times of events are made with.
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
    /// The oldest of them, by time of creation and id, if there are older ones.
    pub next: Option<(u64, MessageId)>,
    /// Where the list goes on, if it is too long for one piece.
    pub rest: Option<Rest>,
}

/// Where a list of messages goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rest {
    session: SessionId,
    /// The message that the last piece ended in.
    message: (i64, String),
    /// The last part of it that was told of, if it had any.
    part: String,
    /// The message that the list ends before.
    before: (i64, String),
}

/// Which sessions are listed. An absent field lets everything through.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Those that work in this directory.
    pub directory: Option<String>,
    /// Those of this project.
    pub project: Option<ProjectId>,
    /// Those that this session started.
    pub parent: Option<SessionId>,
    /// Only those that no other session started.
    pub roots: bool,
    /// Those whose title contains this, whatever its case in ASCII.
    pub search: Option<String>,
    /// Those updated at this time or later, in milliseconds since 1970.
    pub start: Option<u64>,
    /// At most so many, and never more than [`MAX_SESSIONS`].
    pub limit: Option<usize>,
}

/// The largest page of events that a query may return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit {
    /// The number of events.
    pub events: usize,
    /// The size of all events together, as JSON.
    pub bytes: u64,
}

/// What has to hold in the moment something is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Condition {
    /// Nothing.
    #[default]
    Always,
    /// Nothing was stored of the session since `seq`; else [`Error::Moved`].
    Untouched {
        /// The session.
        session: SessionId,
        /// The `seq` that was read.
        seq: u64,
    },
    /// The session's own row was not changed since `seq`; else [`Error::Moved`].
    RowUntouched {
        /// The session.
        session: SessionId,
        /// The `seq` that was read.
        seq: u64,
    },
    /// This store has the session under this fence; else [`Error::Fenced`].
    Leased {
        /// The session.
        session: SessionId,
        /// The lease's fence.
        fence: u64,
    },
}

impl Store {
    /// Opens the store in a file, which is created with its directories if it is not there.
    ///
    /// What is created is for the user alone. Any number of processes may open one file.
    /// A damaged file is replaced by what can be read of it and kept under a dated name,
    /// unless another process is using it; see [`Store::salvage`].
    pub async fn open(path: &Path, ids: Ids, clock: Clock) -> Result<Self, Error> {
        let feed = Arc::new(Feed::new());
        let stamps = Stamps { ids: ids.clone(), clock };
        let log = Arc::new(Sqlite::open(path, stamps, Arc::clone(&feed)).await?);
        Ok(Self { log, feed, ids })
    }

    /// What was saved when this store was opened, if its file was damaged.
    #[must_use]
    pub fn salvage(&self) -> Option<&Salvage> {
        self.log.salvage()
    }

    /// An empty store that is gone with its last clone, for tests.
    pub async fn in_memory(ids: Ids, clock: Clock) -> Result<Self, Error> {
        let feed = Arc::new(Feed::new());
        let stamps = Stamps { ids: ids.clone(), clock };
        let log = Arc::new(Sqlite::in_memory(stamps, Arc::clone(&feed)).await?);
        Ok(Self { log, feed, ids })
    }

    /// Stores events, all or none, and publishes them in this order.
    ///
    /// The answer comes after the commit and after the feed has them. A caller that
    /// stops waiting does not undo what it asked for. Refused are an event that
    /// contradicts itself, one about a session, message or project that does not
    /// exist, an id that is used elsewhere, and a second reply to one permission
    /// request; removing a message or part twice is no error.
    pub async fn append(&self, events: Vec<Event>) -> Result<Vec<Arc<Envelope>>, Error> {
        self.log.append(Condition::Always, events).await
    }

    /// Like [`Store::append`], unless the condition does not hold in that moment.
    pub async fn append_if(
        &self,
        condition: Condition,
        events: Vec<Event>,
    ) -> Result<Vec<Arc<Envelope>>, Error> {
        self.log.append(condition, events).await
    }

    /// Keeps the latest value of a part that is still growing, outside the log.
    ///
    /// The part has been stored by an event before. Whoever reads messages sees the
    /// draft in place of the stored part, in every process and after a crash; the
    /// feed does not tell of it. It replaces the part's former draft and is gone with
    /// the part's next event, so a growing part costs the log nothing. A caller sends
    /// a part's drafts and its final event one after the other.
    pub async fn draft(&self, part: Part) -> Result<(), Error> {
        self.log.draft(Condition::Always, part).await
    }

    /// Asks for the right to run a session. Answers at once.
    ///
    /// An owner whose process has died, however suddenly, counts for nothing.
    pub async fn lease(&self, session: &SessionId) -> Result<Claim, Error> {
        self.log.lease(session).await
    }

    /// Asks whoever has a session in another process to stop; whether there is somebody.
    ///
    /// They hear of it about 50 ms later, by [`Lease::stop_signal`]. Later owners do not.
    pub async fn ask_to_stop(&self, session: &SessionId) -> Result<bool, Error> {
        self.log.ask_to_stop(session).await
    }

    /// Waits until nobody alive has a session; it may be taken again by the time this returns.
    ///
    /// Looks every 50 ms. Waits as long as it takes: the caller has the deadline.
    pub async fn wait_until_free(&self, session: &SessionId) -> Result<(), Error> {
        while self.log.holder(session).await?.is_some() {
            tokio::time::sleep(HOLDER_POLL).await;
        }
        Ok(())
    }

    /// Publishes something true only now.
    pub fn signal(&self, signal: Signal) {
        self.feed.signal(self.ids.event(), signal);
    }

    /// Begins to read the feed, with what comes next.
    ///
    /// It hears other processes that use the same file too, about 50 ms later, in the
    /// order of the log; their signals it does not hear.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.log.watch();
        Subscription::new(Arc::clone(&self.feed), Arc::clone(&self.log))
    }

    /// Begins to read the feed behind an event: what followed it comes from the log first.
    #[must_use]
    pub fn subscribe_after(&self, position: u64) -> Subscription {
        self.log.watch();
        Subscription::after(Arc::clone(&self.feed), Arc::clone(&self.log), position)
    }

    /// The position of the last event that this store knows of: its own, those that were
    /// there before, and while the feed is read those of other processes.
    #[must_use]
    pub fn last_position(&self) -> u64 {
        self.feed.last_position()
    }

    /// Saves a project. Sessions can only be made in a saved one.
    pub async fn save_project(&self, project: Project) -> Result<(), Error> {
        self.log.save_project(project).await
    }

    /// Saves approvals, all or none; those that are saved already are skipped. When a directory has more than
    /// [`MAX_APPROVALS`], its oldest are removed.
    pub async fn save_permissions(&self, saved: Vec<SavedPermission>) -> Result<(), Error> {
        self.log.save_permissions(saved).await
    }

    /// Removes a saved approval; returns whether there was one.
    pub async fn remove_permission(&self, id: &str) -> Result<bool, Error> {
        self.log.remove_permission(id).await
    }

    /// Makes all projections anew from the log, or changes nothing; returns how many events it has.
    pub async fn replay(&self) -> Result<u64, Error> {
        self.log.replay().await
    }

    /// Takes over events of another store, all that are new or none; returns those.
    ///
    /// The events of a session come in order and without gaps, from the first that is
    /// not known here or from any before it; those that are known are skipped.
    pub async fn replay_foreign(&self, events: Vec<Incoming>) -> Result<Vec<Arc<Envelope>>, Error> {
        self.log.replay_foreign(events).await
    }

    /// Finishes what was asked, moves everything into the one file, and ends the feed.
    ///
    /// Clones answer [`Error::Closed`] from then on. A store that is dropped instead
    /// loses nothing that was acknowledged; its thread ends by itself.
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
