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

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use codewright_proto::{
    Clock, Envelope, Event, Ids, Message, MessageId, MessageWithParts, Part, PermissionRequest, Project,
    ProjectId, Session, SessionId, Signal, Todo,
};

mod backend;
mod error;
mod feed;
mod foreign;
pub mod inspect;
mod lease;
mod node;
mod permission;
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

    /// A session's drafts in the order of their parts, each with the time it was written.
    pub async fn drafts(&self, session: &SessionId) -> Result<Vec<(Part, u64)>, Error> {
        self.log.drafts(session).await
    }

    /// Asks for the right to run a session. Answers at once.
    ///
    /// An owner whose process has died, however suddenly, counts for nothing.
    pub async fn lease(&self, session: &SessionId) -> Result<Claim, Error> {
        self.log.lease(session).await
    }

    /// Who has a session, if anybody alive has.
    pub async fn holder(&self, session: &SessionId) -> Result<Option<Holder>, Error> {
        self.log.holder(session).await
    }

    /// Asks whoever has a session in another process to stop; whether there is somebody.
    ///
    /// They hear of it about 50 ms later, by [`Lease::stop_signal`]. Later owners do not.
    pub async fn ask_to_stop(&self, session: &SessionId) -> Result<bool, Error> {
        self.log.ask_to_stop(session).await
    }

    /// The sessions that somebody alive has.
    pub async fn holders(&self) -> Result<Vec<(SessionId, Holder)>, Error> {
        self.log.holders().await
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

    /// Events of the whole log behind a position: at most `limit`, fewer where they
    /// are large, none only at the end.
    pub async fn events(&self, after_position: u64, limit: usize) -> Result<Vec<Envelope>, Error> {
        self.log.events_between(after_position, u64::MAX, limit).await
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

    /// Where the last events of a session before a `seq` begin: at most `limit` of them, together no larger
    /// than `bytes` as JSON. `until_seq` if there are none.
    pub async fn seq_before(
        &self,
        session: &SessionId,
        until_seq: u64,
        (limit, bytes): (usize, u64),
    ) -> Result<u64, Error> {
        self.log.seq_before(session, until_seq, (limit, bytes)).await
    }

    /// A session as it was before the event with a `seq` of its log; none before it was made.
    pub async fn session_before(&self, id: &SessionId, until_seq: u64) -> Result<Option<Session>, Error> {
        self.log.session_before(id, until_seq).await
    }

    /// The `seq` of the event by which a message came to be; none if it does not exist. One that was removed
    /// and stored once more came to be then.
    pub async fn first_seq(&self, session: &SessionId, message: &MessageId) -> Result<Option<u64>, Error> {
        self.log.first_seq(session, message).await
    }

    /// One session, if it exists.
    pub async fn session(&self, id: &SessionId) -> Result<Option<Session>, Error> {
        Ok(self.log.session(id).await?.map(|(_, session)| session))
    }

    /// One session with the last `seq` of its log, for a [`Condition`].
    pub async fn session_at(&self, id: &SessionId) -> Result<Option<(u64, Session)>, Error> {
        self.log.session(id).await
    }

    /// The sessions that a filter lets through, most recently updated first.
    pub async fn sessions(&self, filter: SessionFilter) -> Result<Vec<Session>, Error> {
        self.log.sessions(filter).await
    }

    /// [`Store::sessions`] as the JSON that clients receive.
    pub async fn sessions_json(&self, filter: SessionFilter) -> Result<Json, Error> {
        self.log.sessions_json(filter).await
    }

    /// All messages of a session with their parts, oldest first; none for an unknown session.
    pub async fn transcript(&self, session: &SessionId) -> Result<Vec<MessageWithParts>, Error> {
        self.log.messages(session, None).await
    }

    /// The transcript with the last `seq` of its log, for a [`Condition`] or [`Lease::release`].
    pub async fn transcript_at(&self, session: &SessionId) -> Result<(u64, Vec<MessageWithParts>), Error> {
        self.log.transcript(session).await
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

    /// The newest `limit` messages before one, oldest first, and whether there are older ones.
    ///
    /// `before` is a message's time of creation and id; without it the page ends with
    /// the newest. What was stored since does not shift the pages before it.
    pub async fn messages_before(
        &self,
        session: &SessionId,
        limit: usize,
        before: Option<(u64, MessageId)>,
    ) -> Result<(Vec<MessageWithParts>, bool), Error> {
        self.log.messages_before(session, limit, before).await
    }

    /// [`Store::messages_before`], or all messages, as the JSON that clients receive: nothing is read but where the
    /// fields of a row begin, so it costs little more than the reading of the file. A list of more than half a MiB comes in
    /// pieces, each at most one part longer than that. None for an unknown session.
    pub async fn messages_json(
        &self,
        session: &SessionId,
        limit: Option<usize>,
        before: Option<(u64, MessageId)>,
    ) -> Result<Option<MessagesJson>, Error> {
        self.log.messages_json(session, limit, before).await
    }

    /// The piece that follows, and where the list goes on behind it: whoever appends the pieces to the first one has the whole.
    /// What was stored between two pieces is told of in the later one.
    pub async fn more_messages_json(&self, rest: Rest) -> Result<(Json, Option<Rest>), Error> {
        self.log.more_messages_json(rest).await
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

    /// Saves approvals, all or none; those that are saved already are skipped. When a directory has more than
    /// [`MAX_APPROVALS`], its oldest are removed.
    pub async fn save_permissions(&self, saved: Vec<SavedPermission>) -> Result<(), Error> {
        self.log.save_permissions(saved).await
    }

    /// The saved approvals, oldest first, as they are in the file now.
    pub async fn saved_permissions(&self, filter: Approvals) -> Result<Vec<SavedPermission>, Error> {
        self.log.saved_permissions(filter).await
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

    /// The events behind those that are known, given as the last `seq` of each session,
    /// in the order of the log. A long history comes in pieces: ask again with what came.
    pub async fn history(&self, known: HashMap<String, u64>) -> Result<Vec<Logged>, Error> {
        self.log.history(known).await
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
