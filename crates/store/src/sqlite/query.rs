//! The read queries of the SQLite backend.

use std::collections::HashMap;
use std::sync::Arc;

use codewright_proto::{
    Envelope, EventId, Map, Message, MessageId, MessageWithParts, Part, PartBody, PartId, PermissionRequest,
    Project, ProjectId, ProjectTime, Session, SessionId, Todo,
};
use rusqlite::{Connection, Params, Row, RowIndex, params};

use super::apply::number;
use super::{Sqlite, draft, json, lease, permission, position, session_row, sync};
use crate::error::Fault;
use crate::queries::{Answer, Queries};
use crate::{
    Approvals, Error, Holder, Json, Logged, MessagesJson, PageLimit, Rest, SavedPermission, SessionFilter,
    upcast,
};

/// The size of a page of events, as JSON. A single event may be larger.
const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;

/// The maximum number of pending permission requests in a list.
const MAX_REQUESTS: u64 = 10_000;

/// The maximum number of to-dos in a list.
const MAX_TODOS: u64 = 10_000;

/// The maximum number of projects in a list.
const MAX_PROJECTS: u64 = 10_000;

/// The rows of a message's parts.
pub(super) const PARTS: &str = "SELECT id, data FROM part WHERE message_id = ?1 ORDER BY id";

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
    let sql = "SELECT position, id, seq, type, data, time FROM event
        WHERE position > ?1 AND position <= ?2 ORDER BY position LIMIT ?3";
    page(connection, sql, params![number(after), number(until), number(limit as u64)])
}

/// The events of one session from `from_seq` on, like [`events`].
fn events_of(
    connection: &Connection,
    session: &SessionId,
    from_seq: u64,
    limit: usize,
) -> Result<Vec<Envelope>, Fault> {
    let sql = "SELECT position, id, seq, type, data, time FROM event
        WHERE aggregate_id = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3";
    page(connection, sql, params![session.as_str(), number(from_seq), number(limit as u64)])
}

/// The `seq` of the first of the last events before `until_seq` that fit into `limit`. Reads the sizes of the
/// events, not the events.
fn seq_before(
    connection: &Connection,
    session: &SessionId,
    until_seq: u64,
    limit: PageLimit,
) -> Result<u64, Fault> {
    let sql = "SELECT seq, octet_length(data) FROM event
        WHERE aggregate_id = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
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
    let id = text(row, "id")?;
    let envelope = Envelope {
        id: EventId::parse(id).map_err(|error| Error::unreadable(format!("event `{id}`"), error))?,
        position: unsigned(row, "position")?,
        seq: unsigned(row, "seq")?,
        time: unsigned(row, "time")?,
        event: upcast::decode(text(row, "type")?, data)?,
    };
    Ok((envelope, data.len()))
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
    let sql = "SELECT id, data FROM message WHERE session_id = ?1
        AND (time_created, id) < (?3, ?4) ORDER BY time_created DESC, id DESC LIMIT ?2";
    let (time, id) = match &before {
        Some((time, id)) => (number(*time), id.as_str()),
        // After every message.
        None => (i64::MAX, "\u{10ffff}"),
    };
    // SQLite ignores a negative limit.
    let limit = limit.map_or(-1, |limit| number(limit as u64));
    let mut infos =
        fetch(connection, sql, params![session.as_str(), limit, time, id], |row| read_message(row, session))?;
    infos.reverse();
    Ok(infos)
}

/// One message with its parts.
fn message(
    connection: &Connection,
    session: &SessionId,
    id: &MessageId,
) -> Result<Option<MessageWithParts>, Fault> {
    let sql = "SELECT id, data FROM message WHERE id = ?1 AND session_id = ?2";
    let mut infos =
        fetch(connection, sql, [id.as_str(), session.as_str()], |row| read_message(row, session))?;
    let mut drafts = draft::overlay(connection, session)?;
    infos.pop().map(|info| with_parts(connection, session, info, &mut drafts)).transpose()
}

fn with_parts(
    connection: &Connection,
    session: &SessionId,
    info: Message,
    drafts: &mut HashMap<PartId, PartBody>,
) -> Result<MessageWithParts, Fault> {
    let mut parts = fetch(connection, PARTS, [info.id().as_str()], |row| read_part(row, session, info.id()))?;
    for part in &mut parts {
        if let Some(body) = drafts.remove(&part.id) {
            part.body = body;
        }
    }
    Ok(MessageWithParts { info, parts })
}

/// Reads a message and adds the ids, which the row has in separate columns.
fn read_message(row: &Row<'_>, session: &SessionId) -> Result<Message, Fault> {
    let (id, data) = (text(row, 0)?, text(row, 1)?);
    let unreadable = |error| Error::unreadable(format!("message `{id}`"), error);
    let id_checked = MessageId::parse(id).map_err(|error| Error::unreadable("message", error))?;
    Ok(parse_message(&id_checked, session, data).map_err(unreadable)?)
}

/// Parses a message from its row's JSON and ids.
pub(super) fn parse_message(
    id: &MessageId,
    session: &SessionId,
    data: &str,
) -> Result<Message, serde_json::Error> {
    let fields = data.strip_prefix('{').unwrap_or(data);
    let json = format!(r#"{{"id":"{id}","sessionID":"{session}",{fields}"#);
    serde_json::from_str(&json)
}

fn read_part(row: &Row<'_>, session: &SessionId, message: &MessageId) -> Result<Part, Fault> {
    let (id, data) = (text(row, 0)?, text(row, 1)?);
    let body: PartBody =
        serde_json::from_str(data).map_err(|error| Error::unreadable(format!("part `{id}`"), error))?;
    Ok(Part {
        id: PartId::parse(id).map_err(|error| Error::unreadable("part", error))?,
        session_id: session.clone(),
        message_id: message.clone(),
        body,
    })
}

/// The permission requests without a reply, oldest first.
fn pending_permissions(connection: &Connection) -> Result<Vec<PermissionRequest>, Fault> {
    let sql = "SELECT id, data FROM permission_request ORDER BY time_created, id LIMIT ?1";
    fetch(connection, sql, [number(MAX_REQUESTS)], |row| {
        let (id, data) = (text(row, 0)?, text(row, 1)?);
        let unreadable = |error| Error::unreadable(format!("permission request `{id}`"), error);
        Ok(serde_json::from_str(data).map_err(unreadable)?)
    })
}

/// A session's to-do list; at most [`MAX_TODOS`].
fn todos(connection: &Connection, session: &SessionId) -> Result<Vec<Todo>, Fault> {
    let sql = "SELECT content, status, priority FROM todo WHERE session_id = ?1 ORDER BY position LIMIT ?2";
    fetch(connection, sql, params![session.as_str(), number(MAX_TODOS)], |row| {
        Ok(Todo { content: row.get(0)?, status: row.get(1)?, priority: row.get(2)? })
    })
}

const PROJECT: &str = "SELECT id, worktree, vcs, name, time_created, time_updated, time_initialized, \
    sandboxes, icon_url, icon_url_override, icon_color, commands FROM project";

/// All projects, most recently opened first.
fn projects(connection: &Connection) -> Result<Vec<Project>, Fault> {
    let sql = format!("{PROJECT} ORDER BY time_updated DESC, id LIMIT ?1");
    fetch(connection, &sql, [number(MAX_PROJECTS)], read_project)
}

/// The project with this worktree; the last opened one if there are several.
fn project_of(connection: &Connection, worktree: &str) -> Result<Option<Project>, Fault> {
    let sql = format!("{PROJECT} WHERE worktree = ?1 ORDER BY time_updated DESC, id LIMIT 1");
    Ok(fetch(connection, &sql, [worktree], read_project)?.pop())
}

/// The fields of a project's icon and their columns.
pub(super) const ICON: [(&str, &str); 3] =
    [("url", "icon_url"), ("override", "icon_url_override"), ("color", "icon_color")];

fn read_project(row: &Row<'_>) -> Result<Project, Fault> {
    let id = text(row, "id")?;
    let unreadable = |error| Error::unreadable(format!("project `{id}`"), error);
    let sandboxes = serde_json::from_str(text(row, "sandboxes")?).map_err(unreadable)?;
    let commands = row.get_ref("commands")?.as_str_or_null().map_err(rusqlite::Error::from)?;
    let mut icon = Map::new();
    for (name, column) in ICON {
        if let Some(value) = row.get::<_, Option<String>>(column)? {
            icon.insert(name.to_owned(), value.into());
        }
    }
    Ok(Project {
        id: ProjectId(id.into()),
        worktree: row.get("worktree")?,
        vcs: row.get("vcs")?,
        name: row.get("name")?,
        icon: (!icon.is_empty()).then_some(icon),
        commands: commands.map(serde_json::from_str).transpose().map_err(unreadable)?,
        time: ProjectTime {
            created: unsigned(row, "time_created")?,
            updated: unsigned(row, "time_updated")?,
            initialized: row.get::<_, Option<i64>>("time_initialized")?.map(i64::unsigned_abs),
        },
        sandboxes,
    })
}

/// A column's text, borrowed from the row.
pub(super) fn text<'a>(row: &'a Row<'_>, column: impl RowIndex) -> Result<&'a str, Fault> {
    Ok(row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?)
}
