//! The read queries of a store.
//!
//! [`Store`](crate::Store) dereferences to [`Queries`], and each backend implements it. A new query is
//! declared here and implemented in the backend (`sqlite/query.rs`). `tests/it/conformance.rs` holds every
//! backend to what is documented here.
//!
//! A query sees one consistent state of the file, including what other processes have committed.

use std::collections::HashMap;
use std::pin::Pin;

use codewright_proto::{
    Envelope, Message, MessageId, MessageWithParts, Part, PermissionRequest, Project, Session, SessionId,
    Todo,
};

use crate::{
    Account, Approvals, Audited, Error, Holder, Json, Logged, Members, MessagesJson, OpenWork, Orphan,
    Ownership, PageLimit, Rest, SavedPermission, SessionFilter, Usage, inspect,
};

/// The future of a store's result. Boxed, so that the traits are object-safe.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Reads the event log and its projections.
pub trait Queries: Send + Sync {
    /// Events of the whole log after one position, up to and including another: at most `limit`, fewer if they
    /// are large. Empty only at the end.
    fn events_between(&self, after: u64, until: u64, limit: usize) -> Answer<'_, Vec<Envelope>>;

    /// Events of the whole log after a position; pages like [`Queries::events_between`].
    fn events(&self, after_position: u64, limit: usize) -> Answer<'_, Vec<Envelope>> {
        self.events_between(after_position, u64::MAX, limit)
    }

    /// Events of one session, deleted or not, from a `seq` on; pages like [`Queries::events_between`].
    fn events_of<'a>(
        &'a self,
        session: &'a SessionId,
        from_seq: u64,
        limit: usize,
    ) -> Answer<'a, Vec<Envelope>>;

    /// The `seq` of the first of the last events of a session before `until_seq` that fit into `limit`.
    /// Returns `until_seq` if there are none.
    fn seq_before<'a>(&'a self, session: &'a SessionId, until_seq: u64, limit: PageLimit) -> Answer<'a, u64>;

    /// The events after those that another store has, given as the last `seq` of each session, in the order of
    /// the log. A long history is returned in pages: call again with the added events included in `known`.
    fn history(&self, known: HashMap<String, u64>) -> Answer<'_, Vec<Logged>>;

    /// One session, if it exists.
    fn session<'a>(&'a self, id: &'a SessionId) -> Answer<'a, Option<Session>> {
        let found = self.session_at(id);
        Box::pin(async move { Ok(found.await?.map(|(_, session)| session)) })
    }

    /// One session with its last `seq`, for a [`Condition`](crate::Condition).
    fn session_at<'a>(&'a self, id: &'a SessionId) -> Answer<'a, Option<(u64, Session)>>;

    /// A session as it was before the event with a `seq` in the log; `None` if it did not exist then.
    fn session_before<'a>(&'a self, id: &'a SessionId, until_seq: u64) -> Answer<'a, Option<Session>>;

    /// The sessions that match a filter, most recently updated first.
    fn sessions(&self, filter: SessionFilter) -> Answer<'_, Vec<Session>>;

    /// [`Queries::sessions`] as the JSON that clients receive.
    fn sessions_json(&self, filter: SessionFilter) -> Answer<'_, Json>;

    /// All messages of a session with their parts, oldest first; empty for an unknown session.
    fn transcript<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Vec<MessageWithParts>> {
        self.messages(session, None)
    }

    /// The transcript with its last `seq`, for a [`Condition`](crate::Condition) or
    /// [`Lease::release`](crate::Lease::release).
    fn transcript_at<'a>(&'a self, session: &'a SessionId) -> Answer<'a, (u64, Vec<MessageWithParts>)>;

    /// The transcript, the drafts and the permission requests of a session, for its new owner.
    fn open_work<'a>(&'a self, session: &'a SessionId) -> Answer<'a, OpenWork> {
        Box::pin(async move {
            let drafts = self.drafts(session).await?;
            let (seq, transcript) = self.transcript_at(session).await?;
            let mut requests = self.pending_permissions().await?;
            requests.retain(|request| request.session_id == *session);
            Ok(OpenWork { seq, transcript, drafts, requests })
        })
    }

    /// All messages of a session without their parts, oldest first.
    fn infos<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Vec<Message>>;

    /// The newest `limit` messages of a session with their parts, oldest first.
    fn messages<'a>(
        &'a self,
        session: &'a SessionId,
        limit: Option<usize>,
    ) -> Answer<'a, Vec<MessageWithParts>>;

    /// The newest `limit` messages before another message, oldest first, and whether there are older ones.
    ///
    /// `before` is the other message's creation time and id; without it the page ends with the newest message.
    /// Messages that are stored later do not shift the pages before them.
    fn messages_before<'a>(
        &'a self,
        session: &'a SessionId,
        limit: usize,
        before: Option<(u64, MessageId)>,
    ) -> Answer<'a, (Vec<MessageWithParts>, bool)>;

    /// [`Queries::messages_before`], or all messages, as the JSON that clients receive. `None` for an unknown
    /// session.
    ///
    /// The rows are copied, not parsed, so this costs little more than reading the file. A list of more than
    /// half a MiB is returned in pieces, each at most one part longer than that.
    fn messages_json<'a>(
        &'a self,
        session: &'a SessionId,
        limit: Option<usize>,
        before: Option<(u64, MessageId)>,
    ) -> Answer<'a, Option<MessagesJson>>;

    /// The next piece of such a list, and the start of the piece after it. The concatenated pieces are the list.
    /// A change that is stored between two pieces is visible in the later one.
    fn more_messages_json(&self, rest: Rest) -> Answer<'_, (Json, Option<Rest>)>;

    /// One message of a session with its parts, if it exists.
    fn message<'a>(
        &'a self,
        session: &'a SessionId,
        id: &'a MessageId,
    ) -> Answer<'a, Option<MessageWithParts>>;

    /// The `seq` of the event that created a message; `None` if the message does not exist. For a message that
    /// was removed and stored again this is the second creation.
    fn first_seq<'a>(&'a self, session: &'a SessionId, message: &'a MessageId) -> Answer<'a, Option<u64>>;

    /// A session's drafts in the order of their parts, each with the time it was written.
    fn drafts<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Vec<(Part, u64)>>;

    /// A session's to-do list; empty for an unknown session.
    fn todos<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Vec<Todo>>;

    /// The permission requests without a reply, oldest first.
    fn pending_permissions(&self) -> Answer<'_, Vec<PermissionRequest>>;

    /// The saved approvals that match a filter, oldest first.
    fn saved_permissions(&self, filter: Approvals) -> Answer<'_, Vec<SavedPermission>>;

    /// The usage of an account on a day (see [`day_of`](crate::day_of)).
    fn usage(&self, of: Account, day: u64) -> Answer<'_, Usage>;

    /// Sums up the usage of the sessions that changed since a time, in milliseconds since 1970, of one project or all.
    fn statistics(&self, since: u64, project: Option<String>) -> Answer<'_, inspect::Usage>;

    /// The sessions of an account that a living process works on, without those of subagents.
    fn running(&self, of: Account) -> Answer<'_, Vec<SessionId>>;

    /// The newest entries of the audit log before one, newest first.
    fn audited(&self, before: Option<u64>, limit: usize) -> Answer<'_, Vec<Audited>>;

    /// All known projects, most recently updated first.
    fn projects(&self) -> Answer<'_, Vec<Project>>;

    /// The project with this worktree, if it is known.
    fn project_of<'a>(&'a self, worktree: &'a str) -> Answer<'a, Option<Project>>;

    /// The living owner of a session, if there is one.
    fn holder<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Option<Holder>>;

    /// The sessions that have a living owner.
    fn holders(&self) -> Answer<'_, Vec<(SessionId, Holder)>>;

    /// The living servers that share the store. A file has none.
    fn members(&self) -> Answer<'_, Members> {
        Box::pin(async { Ok(Members::default()) })
    }

    /// The server that a session belongs to.
    fn ownership<'a>(&'a self, _session: &'a SessionId) -> Answer<'a, Ownership> {
        Box::pin(async { Ok(Ownership::default()) })
    }

    /// Sessions that ended or dead servers owned, at most `limit`. A file has none.
    fn orphans(&self, _limit: usize) -> Answer<'_, Vec<Orphan>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}
