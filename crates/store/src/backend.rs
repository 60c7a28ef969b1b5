//! The interface of a database backend: [`Queries`] and the writes below.
//!
//! [`Store`](crate::Store) uses it without knowing which backend it has. Each method promises what the method of
//! the same name in `Store` promises; `tests/it/conformance.rs` holds every backend to that. A backend publishes
//! to the feed it was opened with: its own events after their commit, those of other processes in the order of
//! the log.

use std::sync::Arc;

use codewright_proto::{Envelope, Event, Part, Project, SessionId};

use crate::queries::{Answer, Queries};
use crate::{Audited, Claim, Condition, Error, Incoming, Member, Salvage, SavedPermission};

/// The maximum number of events in one append.
pub(crate) const MAX_APPEND_EVENTS: usize = 10_000;

/// The maximum size of the events in one append, as JSON.
pub(crate) const MAX_APPEND_BYTES: usize = 64 * 1024 * 1024;

/// The maximum number of sessions that are leased at once.
#[cfg(feature = "postgres")]
pub(crate) const MAX_LEASES: usize = 256;

/// Fails if a size is above its limit.
pub(crate) fn limit(unit: &'static str, size: usize, limit: usize) -> Result<(), Error> {
    if size <= limit { Ok(()) } else { Err(Error::TooLarge { unit, size, limit }) }
}

/// An open log with its projections.
pub(crate) trait Backend: Queries {
    /// Stores events in one transaction, all or none, if the condition holds; then publishes them.
    fn append(&self, condition: Condition, events: Vec<Event>) -> Answer<'_, Vec<Arc<Envelope>>>;

    /// Stores the latest value of a growing part outside the log, if the condition holds.
    fn draft(&self, condition: Condition, part: Part) -> Answer<'_, ()>;

    /// Leases a session unless it has a living owner.
    fn lease<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Claim>;

    /// Leases the given sessions that have no living owner. The result has no entries for deleted sessions.
    fn lease_all(&self, sessions: Vec<SessionId>) -> Answer<'_, Vec<(SessionId, Claim)>>;

    /// Releases a session if nothing was stored of it after `seen`. Returns whether the lease is over.
    fn release<'a>(&'a self, session: &'a SessionId, fence: u64, seen: u64) -> Answer<'a, bool>;

    /// Sends a stop request to the owner in another process. Returns whether there is one.
    fn ask_to_stop<'a>(&'a self, session: &'a SessionId) -> Answer<'a, bool>;

    /// Stores events of another store, all new ones or none.
    fn replay_foreign(&self, events: Vec<Incoming>) -> Answer<'_, Vec<Arc<Envelope>>>;

    /// Saves a project.
    fn save_project(&self, project: Project) -> Answer<'_, ()>;

    /// Saves approvals that are not saved yet.
    fn save_permissions(&self, saved: Vec<SavedPermission>) -> Answer<'_, ()>;

    /// Removes a saved approval. Returns whether it existed.
    fn remove_permission<'a>(&'a self, id: &'a str) -> Answer<'a, bool>;

    /// Rebuilds all projections from the log. Returns the number of events in it.
    fn replay(&self) -> Answer<'_, u64>;

    /// Adds an entry to the audit log.
    fn audit(&self, entry: Audited) -> Answer<'_, ()>;

    /// Commits a write that changes nothing.
    fn probe(&self) -> Answer<'_, ()>;

    /// Finishes the queued requests and ends the feed.
    fn close(&self) -> Answer<'_, ()>;

    /// Releases a session soon, without waiting.
    fn abandon(&self, session: &SessionId, fence: u64);

    /// Brings the feed up to the end of the log, and keeps it there while the feed is read or a session leased.
    fn watch(&self);

    /// Announces this process to the other servers. A file has none.
    fn announce(&self, _member: Member) {}

    /// Ends the writes to leased sessions without releasing them.
    fn seal(&self) -> Answer<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Declares this process dead to the others.
    fn leave(&self) -> Answer<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// What was salvaged when the file was opened, if it was damaged.
    fn salvage(&self) -> Option<&Salvage>;
}
