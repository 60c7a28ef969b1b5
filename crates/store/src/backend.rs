//! What a backend offers, so that [`Store`](crate::Store) need not know which one it has.
//!
//! What each promises is what the store's face promises; `tests/it/conformance.rs`
//! holds every backend to it. A backend publishes to the feed it was opened with:
//! its own events after their commit, those of others in the order of the log.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use codewright_proto::{
    Envelope, Event, Message, MessageId, MessageWithParts, Part, PermissionRequest, Project, Session,
    SessionId, Todo,
};

use crate::{
    Approvals, Claim, Condition, Error, Holder, Incoming, Json, Logged, MessagesJson, Rest, Salvage,
    SavedPermission, SessionFilter,
};

/// An answer that is waited for.
pub(crate) type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// An open log with its projections.
pub(crate) trait Backend: Send + Sync {
    /// Stores events in one transaction, all or none, if the condition holds; then publishes them.
    fn append(&self, condition: Condition, events: Vec<Event>) -> Answer<'_, Vec<Arc<Envelope>>>;

    /// Keeps the latest value of a part that is still growing, outside the log.
    fn draft(&self, condition: Condition, part: Part) -> Answer<'_, ()>;

    /// A session's drafts in the order of their parts, each with the time it was written.
    fn drafts<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Vec<(Part, u64)>>;

    /// Takes a session, unless somebody alive has it.
    fn lease<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Claim>;

    /// Lets a session go if nothing was stored of it behind `seen`; whether it is ours no longer.
    fn release<'a>(&'a self, session: &'a SessionId, fence: u64, seen: u64) -> Answer<'a, bool>;

    /// Who has a session, if anybody alive has.
    fn holder<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Option<Holder>>;

    /// Asks the owner in another process to stop what it does in a session; whether there is one.
    fn ask_to_stop<'a>(&'a self, session: &'a SessionId) -> Answer<'a, bool>;

    /// The sessions that somebody alive has.
    fn holders(&self) -> Answer<'_, Vec<(SessionId, Holder)>>;

    /// Takes over events of another store, all that are new or none.
    fn replay_foreign(&self, events: Vec<Incoming>) -> Answer<'_, Vec<Arc<Envelope>>>;

    /// The events behind those that are known, in the order of the log.
    fn history(&self, known: HashMap<String, u64>) -> Answer<'_, Vec<Logged>>;

    /// Events of the whole log behind one position, up to another.
    fn events_between(&self, after: u64, until: u64, limit: usize) -> Answer<'_, Vec<Envelope>>;

    /// Events of one session from a `seq` on.
    fn events_of<'a>(
        &'a self,
        session: &'a SessionId,
        from_seq: u64,
        limit: usize,
    ) -> Answer<'a, Vec<Envelope>>;

    /// Where the last events of a session before a `seq` begin: at most so many, of so many bytes.
    fn seq_before<'a>(
        &'a self,
        session: &'a SessionId,
        until_seq: u64,
        most: (usize, u64),
    ) -> Answer<'a, u64>;

    /// A session as it was before a place of its log.
    fn session_before<'a>(&'a self, session: &'a SessionId, until_seq: u64) -> Answer<'a, Option<Session>>;

    /// Where in its session's log a message was stored first, since it is there.
    fn first_seq<'a>(&'a self, session: &'a SessionId, message: &'a MessageId) -> Answer<'a, Option<u64>>;

    /// One session with the last `seq` of its log.
    fn session<'a>(&'a self, id: &'a SessionId) -> Answer<'a, Option<(u64, Session)>>;

    /// The sessions that a filter lets through, most recently updated first.
    fn sessions(&self, filter: SessionFilter) -> Answer<'_, Vec<Session>>;

    /// The same as clients receive it.
    fn sessions_json(&self, filter: SessionFilter) -> Answer<'_, Json>;

    /// All messages of a session with the last `seq` of its log.
    fn transcript<'a>(&'a self, session: &'a SessionId) -> Answer<'a, (u64, Vec<MessageWithParts>)>;

    /// The newest messages of a session, oldest first.
    fn messages<'a>(
        &'a self,
        session: &'a SessionId,
        limit: Option<usize>,
    ) -> Answer<'a, Vec<MessageWithParts>>;

    /// The newest messages before one, and whether there are older ones.
    fn messages_before<'a>(
        &'a self,
        session: &'a SessionId,
        limit: usize,
        before: Option<(u64, MessageId)>,
    ) -> Answer<'a, (Vec<MessageWithParts>, bool)>;

    /// The same as clients receive it; none for an unknown session.
    fn messages_json<'a>(
        &'a self,
        session: &'a SessionId,
        limit: Option<usize>,
        before: Option<(u64, MessageId)>,
    ) -> Answer<'a, Option<MessagesJson>>;

    /// What follows a piece of them, and what follows that.
    fn more_messages_json(&self, rest: Rest) -> Answer<'_, (Json, Option<Rest>)>;

    /// One message with its parts.
    fn message<'a>(
        &'a self,
        session: &'a SessionId,
        id: &'a MessageId,
    ) -> Answer<'a, Option<MessageWithParts>>;

    /// All messages without their parts.
    fn infos<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Vec<Message>>;

    /// A session's list of things to do.
    fn todos<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Vec<Todo>>;

    /// The permission requests that nobody has replied to.
    fn pending_permissions(&self) -> Answer<'_, Vec<PermissionRequest>>;

    /// All known projects.
    fn projects(&self) -> Answer<'_, Vec<Project>>;

    /// The project whose worktree this is.
    fn project_of<'a>(&'a self, worktree: &'a str) -> Answer<'a, Option<Project>>;

    /// Saves a project.
    fn save_project(&self, project: Project) -> Answer<'_, ()>;

    /// Saves approvals that are not saved yet.
    fn save_permissions(&self, saved: Vec<SavedPermission>) -> Answer<'_, ()>;

    /// The saved approvals that a filter lets through, oldest first.
    fn saved_permissions(&self, filter: Approvals) -> Answer<'_, Vec<SavedPermission>>;

    /// Removes a saved approval; whether there was one.
    fn remove_permission<'a>(&'a self, id: &'a str) -> Answer<'a, bool>;

    /// Makes all projections anew from the log; returns how many events it has.
    fn replay(&self) -> Answer<'_, u64>;

    /// Finishes what was asked and ends the feed.
    fn close(&self) -> Answer<'_, ()>;

    /// Lets a session go soon, without waiting.
    fn abandon(&self, session: &SessionId, fence: u64);

    /// Brings the feed up to the end of the log, and keeps it there while it is read or a session held.
    fn watch(&self);

    /// What was saved when it was opened, if it was damaged.
    fn salvage(&self) -> Option<&Salvage>;
}
