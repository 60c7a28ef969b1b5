//! The read queries of the SQLite backend.

use std::collections::HashMap;
use std::sync::Arc;

use codewright_proto::{
    Envelope, Message, MessageId, MessageWithParts, Part, PartBody, PartId, PermissionRequest, Project,
    Session, SessionId, Todo,
};
use rusqlite::{Connection, Params, Row, RowIndex, params};

use super::{Sqlite, draft, json, lease, permission, position, session_row, sync, users};
use crate::error::Fault;
use crate::list::LAST_ID;
use crate::queries::{Answer, Queries};
use crate::rows::{self, EventRow, ICON, MAX_PAGE_BYTES, MAX_PROJECTS, MAX_REQUESTS, MAX_TODOS, ProjectRow};
use crate::sql::{self, to_column as number};
use crate::users::living;
use crate::{
    Account, Approvals, Audited, Holder, Json, Logged, MessagesJson, PageLimit, Rest, SavedPermission,
    SessionFilter, Usage, inspect,
};

impl Queries for Sqlite {
    fn events_between(&self, after: u64, until: u64, limit: usize) -> Answer<'_, Vec<Envelope>> {
        Box::pin(self.read(move |connection| events(connection, after, until, limit)))
    }

    fn events_of<'a>(
        &'a self,
        session: &'a SessionId,
        from_seq: u64,
        limit: usize,
    ) -> Answer<'a, Vec<Envelope>> {
        let session = session.clone();
        Box::pin(self.read(move |connection| events_of(connection, &session, from_seq, limit)))
    }

    fn seq_before<'a>(&'a self, session: &'a SessionId, until_seq: u64, limit: PageLimit) -> Answer<'a, u64> {
        let session = session.clone();
        Box::pin(self.read(move |connection| seq_before(connection, &session, until_seq, limit)))
    }

    fn history(&self, known: HashMap<String, u64>) -> Answer<'_, Vec<Logged>> {
        Box::pin(self.read(move |connection| sync::history(connection, &known)))
    }

    fn session_at<'a>(&'a self, id: &'a SessionId) -> Answer<'a, Option<(u64, Session)>> {
        let id = id.clone();
        Box::pin(self.read(move |connection| {
            let Some(session) = session_row::session(connection, &id)? else { return Ok(None) };
            Ok(Some((lease::seq(connection, &id)?.unwrap_or(0), session)))
        }))
    }

    fn session_before<'a>(&'a self, id: &'a SessionId, until_seq: u64) -> Answer<'a, Option<Session>> {
        let id = id.clone();
        Box::pin(self.read(move |connection| position::session_before(connection, &id, until_seq)))
    }

    fn sessions(&self, filter: SessionFilter) -> Answer<'_, Vec<Session>> {
        Box::pin(self.read(move |connection| session_row::sessions(connection, &filter)))
    }

    fn sessions_json(&self, filter: SessionFilter) -> Answer<'_, Json> {
        let spare = Arc::clone(&self.0.spare);
        Box::pin(self.read(move |connection| session_row::sessions_json(connection, &spare, &filter)))
    }

    fn transcript_at<'a>(&'a self, session: &'a SessionId) -> Answer<'a, (u64, Vec<MessageWithParts>)> {
        let session = session.clone();
        Box::pin(self.read(move |connection| {
            let seq = lease::seq(connection, &session)?.unwrap_or(0);
            Ok((seq, messages(connection, &session, None, None)?))
        }))
    }

    fn infos<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Vec<Message>> {
        let session = session.clone();
        Box::pin(self.read(move |connection| infos(connection, &session, None, None)))
    }

    fn messages<'a>(
        &'a self,
        session: &'a SessionId,
        limit: Option<usize>,
    ) -> Answer<'a, Vec<MessageWithParts>> {
        let session = session.clone();
        Box::pin(self.read(move |connection| messages(connection, &session, limit, None)))
    }

    fn messages_before<'a>(
        &'a self,
        session: &'a SessionId,
        limit: usize,
        before: Option<(u64, MessageId)>,
    ) -> Answer<'a, (Vec<MessageWithParts>, bool)> {
        let session = session.clone();
        Box::pin(self.read(move |connection| messages_before(connection, &session, limit, before.clone())))
    }

    fn messages_json<'a>(
        &'a self,
        session: &'a SessionId,
        limit: Option<usize>,
        before: Option<(u64, MessageId)>,
    ) -> Answer<'a, Option<MessagesJson>> {
        let (session, spare) = (session.clone(), Arc::clone(&self.0.spare));
        Box::pin(
            self.read(move |connection| json::messages(connection, &spare, &session, limit, before.clone())),
        )
    }

    fn more_messages_json(&self, rest: Rest) -> Answer<'_, (Json, Option<Rest>)> {
        let spare = Arc::clone(&self.0.spare);
        Box::pin(self.read(move |connection| json::more_messages(connection, &spare, &rest)))
    }

    fn message<'a>(
        &'a self,
        session: &'a SessionId,
        id: &'a MessageId,
    ) -> Answer<'a, Option<MessageWithParts>> {
        let (session, id) = (session.clone(), id.clone());
        Box::pin(self.read(move |connection| message(connection, &session, &id)))
    }

    fn first_seq<'a>(&'a self, session: &'a SessionId, message: &'a MessageId) -> Answer<'a, Option<u64>> {
        let (session, message) = (session.clone(), message.clone());
        Box::pin(self.read(move |connection| position::first_seq(connection, &session, &message)))
    }

    fn drafts<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Vec<(Part, u64)>> {
        let session = session.clone();
        Box::pin(self.read(move |connection| draft::of(connection, &session)))
    }

    fn todos<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Vec<Todo>> {
        let session = session.clone();
        Box::pin(self.read(move |connection| todos(connection, &session)))
    }

    fn pending_permissions(&self) -> Answer<'_, Vec<PermissionRequest>> {
        Box::pin(self.read(pending_permissions))
    }

    fn saved_permissions(&self, filter: Approvals) -> Answer<'_, Vec<SavedPermission>> {
        Box::pin(self.read(move |connection| permission::list(connection, &filter)))
    }

    fn statistics(&self, since: u64, project: Option<String>) -> Answer<'_, inspect::Usage> {
        Box::pin(self.read(move |connection| inspect::sum_up(connection, since, project.as_deref())))
    }

    fn usage(&self, of: Account, day: u64) -> Answer<'_, Usage> {
        Box::pin(self.read(move |connection| users::usage(connection, &of, day)))
    }

    fn running(&self, of: Account) -> Answer<'_, Vec<SessionId>> {
        Box::pin(async move {
            let owned = self.read(move |connection| users::owned(connection, &of)).await?;
            living(self, owned).await
        })
    }

    fn audited(&self, before: Option<u64>, limit: usize) -> Answer<'_, Vec<Audited>> {
        Box::pin(self.read(move |connection| users::audited(connection, before, limit)))
    }

    fn projects(&self) -> Answer<'_, Vec<Project>> {
        Box::pin(self.read(projects))
    }

    fn project_of<'a>(&'a self, worktree: &'a str) -> Answer<'a, Option<Project>> {
        let worktree = worktree.to_owned();
        Box::pin(self.read(move |connection| project_of(connection, &worktree)))
    }

    fn holder<'a>(&'a self, session: &'a SessionId) -> Answer<'a, Option<Holder>> {
        let (node, session) = (Arc::clone(&self.0.node), session.clone());
        Box::pin(self.read(move |connection| lease::holder(connection, &node, &session)))
    }

    fn holders(&self) -> Answer<'_, Vec<(SessionId, Holder)>> {
        let node = Arc::clone(&self.0.node);
        Box::pin(self.read(move |connection| lease::holders(connection, &node)))
    }
}

/// Returns all rows of a statement.
pub(super) fn fetch<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// Reads a column with an unsigned number.
pub(super) fn unsigned(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.unsigned_abs())
}

/// The position of the last event; 0 if there is none.
pub(super) fn last_position(connection: &Connection) -> Result<u64, Fault> {
    let last: Option<i64> = connection.query_row("SELECT max(position) FROM event", [], |row| row.get(0))?;
    Ok(last.map_or(0, i64::unsigned_abs))
}

/// The events after `after` up to `until`: at most `limit`, fewer if they are large. Empty only at the end.
pub(super) fn events(
    connection: &Connection,
    after: u64,
    until: u64,
    limit: usize,
) -> Result<Vec<Envelope>, Fault> {
    page(connection, sql::EVENTS_SQLITE, params![number(after), number(until), number(limit as u64)])
}

/// The events of one session from `from_seq` on, like [`events`].
fn events_of(
    connection: &Connection,
    session: &SessionId,
    from_seq: u64,
    limit: usize,
) -> Result<Vec<Envelope>, Fault> {
    page(connection, sql::EVENTS_OF_SQLITE, params![session.as_str(), number(from_seq), number(limit as u64)])
}

/// The `seq` of the first of the last events before `until_seq` that fit into `limit`. Reads the sizes of the
/// events, not the events.
fn seq_before(
    connection: &Connection,
    session: &SessionId,
    until_seq: u64,
    limit: PageLimit,
) -> Result<u64, Fault> {
    let mut statement = connection.prepare_cached(sql::SIZES)?;
    let mut rows =
        statement.query(params![session.as_str(), number(until_seq), number(limit.events as u64)])?;
    let (mut start, mut left) = (until_seq, limit.bytes);
    while let Some(row) = rows.next()? {
        let size = row.get::<_, i64>(1)?.unsigned_abs();
        let Some(rest) = left.checked_sub(size) else { break };
        (start, left) = (unsigned(row, "seq")?, rest);
    }
    Ok(start)
}

fn page(connection: &Connection, sql: &str, params: impl Params) -> Result<Vec<Envelope>, Fault> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    while bytes < MAX_PAGE_BYTES {
        let Some(row) = rows.next()? else { break };
        let (envelope, size) = envelope(row)?;
        bytes += size;
        found.push(envelope);
    }
    Ok(found)
}

fn envelope(row: &Row<'_>) -> Result<(Envelope, usize), Fault> {
    let data = text(row, "data")?;
    let envelope = EventRow {
        position: unsigned(row, "position")?,
        id: text(row, "id")?,
        seq: unsigned(row, "seq")?,
        kind: text(row, "type")?,
        data,
        time: unsigned(row, "time")?,
    };
    Ok((envelope.envelope()?, data.len()))
}

/// The newest `limit` messages with their parts, oldest first.
pub(super) fn messages(
    connection: &Connection,
    session: &SessionId,
    limit: Option<usize>,
    before: Option<(u64, MessageId)>,
) -> Result<Vec<MessageWithParts>, Fault> {
    let infos = infos(connection, session, limit, before)?;
    let mut drafts = draft::overlay(connection, session)?;
    infos.into_iter().map(|info| with_parts(connection, session, info, &mut drafts)).collect()
}

/// The newest `limit` messages before another, and whether there are older ones.
fn messages_before(
    connection: &Connection,
    session: &SessionId,
    limit: usize,
    before: Option<(u64, MessageId)>,
) -> Result<(Vec<MessageWithParts>, bool), Fault> {
    let mut infos = infos(connection, session, Some(limit.saturating_add(1)), before)?;
    let has_more = infos.len() > limit;
    if has_more {
        infos.remove(0);
    }
    let mut drafts = draft::overlay(connection, session)?;
    let messages = infos.into_iter().map(|info| with_parts(connection, session, info, &mut drafts));
    Ok((messages.collect::<Result<_, _>>()?, has_more))
}

/// The newest `limit` messages without their parts, oldest first.
pub(super) fn infos(
    connection: &Connection,
    session: &SessionId,
    limit: Option<usize>,
    before: Option<(u64, MessageId)>,
) -> Result<Vec<Message>, Fault> {
    let (time, id) = match &before {
        Some((time, id)) => (number(*time), id.as_str()),
        None => (i64::MAX, LAST_ID),
    };
    let limit = limit.map_or(i64::MAX, |limit| number(limit as u64));
    let mut infos = fetch(connection, sql::INFOS, params![session.as_str(), time, id, limit], |row| {
        Ok(rows::message(text(row, 0)?, session, text(row, 1)?)?)
    })?;
    infos.reverse();
    Ok(infos)
}

/// One message with its parts.
fn message(
    connection: &Connection,
    session: &SessionId,
    id: &MessageId,
) -> Result<Option<MessageWithParts>, Fault> {
    let mut infos = fetch(connection, sql::MESSAGE, [id.as_str(), session.as_str()], |row| {
        Ok(rows::message(text(row, 0)?, session, text(row, 1)?)?)
    })?;
    let mut drafts = draft::overlay(connection, session)?;
    infos.pop().map(|info| with_parts(connection, session, info, &mut drafts)).transpose()
}

fn with_parts(
    connection: &Connection,
    session: &SessionId,
    info: Message,
    drafts: &mut HashMap<PartId, PartBody>,
) -> Result<MessageWithParts, Fault> {
    let mut parts = fetch(connection, sql::PARTS_SQLITE, [info.id().as_str()], |row| {
        Ok(rows::part(text(row, 0)?, session, info.id(), text(row, 1)?)?)
    })?;
    for part in &mut parts {
        if let Some(body) = drafts.remove(&part.id) {
            part.body = body;
        }
    }
    Ok(MessageWithParts { info, parts })
}

/// The permission requests without a reply, oldest first.
fn pending_permissions(connection: &Connection) -> Result<Vec<PermissionRequest>, Fault> {
    fetch(connection, sql::REQUESTS, [number(MAX_REQUESTS)], |row| {
        Ok(rows::request(text(row, 0)?, text(row, 1)?)?)
    })
}

/// A session's to-do list; at most [`MAX_TODOS`].
fn todos(connection: &Connection, session: &SessionId) -> Result<Vec<Todo>, Fault> {
    fetch(connection, sql::TODOS, params![session.as_str(), number(MAX_TODOS)], |row| {
        Ok(Todo { content: row.get(0)?, status: row.get(1)?, priority: row.get(2)? })
    })
}

/// All projects, most recently opened first.
fn projects(connection: &Connection) -> Result<Vec<Project>, Fault> {
    fetch(connection, sql::PROJECTS, [number(MAX_PROJECTS)], read_project)
}

/// The project with this worktree; the last opened one if there are several.
fn project_of(connection: &Connection, worktree: &str) -> Result<Option<Project>, Fault> {
    Ok(fetch(connection, sql::PROJECT_OF, [worktree], read_project)?.pop())
}

fn read_project(row: &Row<'_>) -> Result<Project, Fault> {
    let [url, shown, color] = ICON.map(|(_, column)| row.get(column));
    let found = ProjectRow {
        id: row.get("id")?,
        worktree: row.get("worktree")?,
        vcs: row.get("vcs")?,
        name: row.get("name")?,
        icon: [url?, shown?, color?],
        commands: row.get("commands")?,
        sandboxes: row.get("sandboxes")?,
        created: unsigned(row, "time_created")?,
        updated: unsigned(row, "time_updated")?,
        initialized: row.get::<_, Option<i64>>("time_initialized")?.map(i64::unsigned_abs),
    };
    Ok(found.project()?)
}

/// A column's text, borrowed from the row.
pub(super) fn text<'a>(row: &'a Row<'_>, column: impl RowIndex) -> Result<&'a str, Fault> {
    Ok(row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?)
}
