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
//! The feed carries what this store appends. Another process that uses the same
//! file has a feed of its own; what it appends is found in the log.

#![warn(missing_docs)]

use std::path::Path;
use std::sync::Arc;

use codewright_proto::{
    Clock, Envelope, Event, Ids, Message, MessageId, MessageWithParts, PermissionRequest, Project, ProjectId,
    Session, SessionId, Signal, Todo,
};

mod error;
mod feed;
mod foreign;
pub mod inspect;
mod record;
mod sqlite;
mod upcast;

pub use error::{Cause, Error};
pub use feed::{Published, Subscription};
pub use foreign::{Foreign, ForeignRow};

use feed::Feed;
use sqlite::Sqlite;

/// The most sessions that one list has.
pub const MAX_SESSIONS: usize = 10_000;

/// An open store. Clones share it. A runtime with time is needed to wait for it.
#[derive(Clone)]
pub struct Store {
    log: Sqlite,
    feed: Arc<Feed>,
    ids: Ids,
}

/// What ids and times of events are made with.
#[derive(Clone)]
pub(crate) struct Stamps {
    pub(crate) ids: Ids,
    pub(crate) clock: Clock,
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

impl Store {
    /// Opens the store in a file, which is created with its directories if it is not there.
    ///
    /// What is created is for the user alone. Any number of processes may open one file.
    pub async fn open(path: &Path, ids: Ids, clock: Clock) -> Result<Self, Error> {
        let feed = Arc::new(Feed::new());
        let stamps = Stamps { ids: ids.clone(), clock };
        Ok(Self { log: Sqlite::open(path, stamps, Arc::clone(&feed)).await?, feed, ids })
    }

    /// An empty store that is gone with its last clone, for tests.
    pub async fn in_memory(ids: Ids, clock: Clock) -> Result<Self, Error> {
        let feed = Arc::new(Feed::new());
        let stamps = Stamps { ids: ids.clone(), clock };
        Ok(Self { log: Sqlite::in_memory(stamps, Arc::clone(&feed)).await?, feed, ids })
    }

    /// Stores events, all or none, and publishes them in this order.
    ///
    /// The answer comes after the commit and after the feed has them. A caller that
    /// stops waiting does not undo what it asked for. Refused are an event that
    /// contradicts itself, one about a session, message or project that does not
    /// exist, an id that is used elsewhere, and a second reply to one permission
    /// request; removing a message or part twice is no error.
    pub async fn append(&self, events: Vec<Event>) -> Result<Vec<Arc<Envelope>>, Error> {
        self.log.append(events).await
    }

    /// Publishes something true only now.
    pub fn signal(&self, signal: Signal) {
        self.feed.signal(self.ids.event(), signal);
    }

    /// Begins to read the feed, with what comes next.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        Subscription::new(Arc::clone(&self.feed), self.log.clone())
    }

    /// Begins to read the feed behind an event: what followed it comes from the log first.
    #[must_use]
    pub fn subscribe_after(&self, position: u64) -> Subscription {
        Subscription::after(Arc::clone(&self.feed), self.log.clone(), position)
    }

    /// The position of the last event that was stored through this store, or was there before.
    #[must_use]
    pub fn last_position(&self) -> u64 {
        self.feed.last_position()
    }

    /// Events of the whole log behind a position: at most `limit`, fewer where they
    /// are large, none only at the end.
    pub async fn events(&self, after_position: u64, limit: usize) -> Result<Vec<Envelope>, Error> {
        self.log.events(after_position, limit).await
    }

    /// Events of one session, deleted or not, from a `seq` on; pages like [`Store::events`].
    pub async fn events_of(
        &self,
        session: &SessionId,
        from_seq: u64,
        limit: usize,
    ) -> Result<Vec<Envelope>, Error> {
        self.log.events_of(session, from_seq, limit).await
    }

    /// One session, if it exists.
    pub async fn session(&self, id: &SessionId) -> Result<Option<Session>, Error> {
        self.log.session(id).await
    }

    /// The sessions that a filter lets through, most recently updated first.
    pub async fn sessions(&self, filter: SessionFilter) -> Result<Vec<Session>, Error> {
        self.log.sessions(filter).await
    }

    /// All messages of a session with their parts, oldest first; none for an unknown session.
    pub async fn transcript(&self, session: &SessionId) -> Result<Vec<MessageWithParts>, Error> {
        self.log.messages(session, None).await
    }

    /// All messages of a session without their parts, oldest first.
    pub async fn infos(&self, session: &SessionId) -> Result<Vec<Message>, Error> {
        self.log.infos(session).await
    }

    /// The newest `limit` messages of a session with their parts, oldest first.
    pub async fn messages(
        &self,
        session: &SessionId,
        limit: Option<usize>,
    ) -> Result<Vec<MessageWithParts>, Error> {
        self.log.messages(session, limit).await
    }

    /// One message of a session with its parts, if it exists.
    pub async fn message(
        &self,
        session: &SessionId,
        id: &MessageId,
    ) -> Result<Option<MessageWithParts>, Error> {
        self.log.message(session, id).await
    }

    /// A session's list of things to do; empty for an unknown session.
    pub async fn todos(&self, session: &SessionId) -> Result<Vec<Todo>, Error> {
        self.log.todos(session).await
    }

    /// The permission requests that nobody has replied to, oldest first.
    pub async fn pending_permissions(&self) -> Result<Vec<PermissionRequest>, Error> {
        self.log.pending_permissions().await
    }

    /// The project whose worktree this is, if it is known.
    pub async fn project_of(&self, worktree: &str) -> Result<Option<Project>, Error> {
        self.log.project_of(worktree).await
    }

    /// All known projects, most recently updated first.
    pub async fn projects(&self) -> Result<Vec<Project>, Error> {
        self.log.projects().await
    }

    /// Saves a project. Sessions can only be made in a saved one.
    pub async fn save_project(&self, project: Project) -> Result<(), Error> {
        self.log.save_project(project).await
    }

    /// Makes all projections anew from the log, or changes nothing; returns how many events it has.
    pub async fn replay(&self) -> Result<u64, Error> {
        self.log.replay().await
    }

    /// Finishes what was asked, moves everything into the one file, and ends the feed.
    ///
    /// Clones answer [`Error::Closed`] from then on. A store that is dropped instead
    /// loses nothing that was acknowledged; its thread ends by itself.
    pub async fn close(self) -> Result<(), Error> {
        self.log.close().await
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}
