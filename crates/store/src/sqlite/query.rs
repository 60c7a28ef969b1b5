//! Reads the log and the rows.

use std::collections::HashMap;

use codewright_proto::{
    Envelope, EventId, Map, Message, MessageId, MessageWithParts, Part, PartBody, PartId, PermissionRequest,
    Project, ProjectId, ProjectTime, SessionId, Todo,
};
use rusqlite::{Connection, Params, Row, RowIndex, params};

use super::apply::number;
use super::draft;
use crate::error::Fault;
use crate::{Error, upcast};

/// How large the events of one page are together, as JSON; one alone may be larger.
const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;

/// How many pending permission requests are listed, oldest first.
const MAX_REQUESTS: u64 = 10_000;

/// How many things to do are listed.
const MAX_TODOS: u64 = 10_000;

/// How many projects are listed.
const MAX_PROJECTS: u64 = 10_000;

/// The rows of a message's parts.
pub(super) const PARTS: &str = "SELECT id, data FROM part WHERE message_id = ?1 ORDER BY id";

/// All rows that a statement gives.
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

/// A number that was stored from an unsigned one.
pub(super) fn unsigned(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.unsigned_abs())
}

/// The position of the last event, 0 before the first.
pub(super) fn last_position(connection: &Connection) -> Result<u64, Fault> {
    let last: Option<i64> = connection.query_row("SELECT max(position) FROM event", [], |row| row.get(0))?;
    Ok(last.map_or(0, i64::unsigned_abs))
}

/// The events behind `after` up to `until`: at most `limit`, fewer if they are large,
/// none only at the end.
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
pub(super) fn events_of(
    connection: &Connection,
    session: &SessionId,
    from_seq: u64,
    limit: usize,
) -> Result<Vec<Envelope>, Fault> {
    let sql = "SELECT position, id, seq, type, data, time FROM event
        WHERE aggregate_id = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3";
    page(connection, sql, params![session.as_str(), number(from_seq), number(limit as u64)])
}

/// Where the last events of a session before a `seq` begin: at most `limit` of them, together no larger
/// than `bytes` as JSON. None of them is read for that.
pub(super) fn seq_before(
    connection: &Connection,
    session: &SessionId,
    until_seq: u64,
    (limit, bytes): (usize, u64),
) -> Result<u64, Fault> {
    let sql = "SELECT seq, octet_length(data) FROM event
        WHERE aggregate_id = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![session.as_str(), number(until_seq), number(limit as u64)])?;
    let (mut start, mut left) = (until_seq, bytes);
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

/// The newest `limit` messages before one, and whether there are older ones.
pub(super) fn messages_before(
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
        // Behind every message.
        None => (i64::MAX, "\u{10ffff}"),
    };
    // SQLite reads a negative limit as none.
    let limit = limit.map_or(-1, |limit| number(limit as u64));
    let mut infos =
        fetch(connection, sql, params![session.as_str(), limit, time, id], |row| read_message(row, session))?;
    infos.reverse();
    Ok(infos)
}

/// One message with its parts.
pub(super) fn message(
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

/// Puts the ids back that the row keeps in columns of their own.
fn read_message(row: &Row<'_>, session: &SessionId) -> Result<Message, Fault> {
    let (id, data) = (text(row, 0)?, text(row, 1)?);
    let unreadable = |error| Error::unreadable(format!("message `{id}`"), error);
    let id_checked = MessageId::parse(id).map_err(|error| Error::unreadable("message", error))?;
    Ok(parse_message(&id_checked, session, data).map_err(unreadable)?)
}

/// A message from its row's JSON and the ids beside it.
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

/// The permission requests that wait for a reply, oldest first.
pub(super) fn pending_permissions(connection: &Connection) -> Result<Vec<PermissionRequest>, Fault> {
    let sql = "SELECT id, data FROM permission_request ORDER BY time_created, id LIMIT ?1";
    fetch(connection, sql, [number(MAX_REQUESTS)], |row| {
        let (id, data) = (text(row, 0)?, text(row, 1)?);
        let unreadable = |error| Error::unreadable(format!("permission request `{id}`"), error);
        Ok(serde_json::from_str(data).map_err(unreadable)?)
    })
}

/// A session's list of things to do, in its order; at most [`MAX_TODOS`].
pub(super) fn todos(connection: &Connection, session: &SessionId) -> Result<Vec<Todo>, Fault> {
    let sql = "SELECT content, status, priority FROM todo WHERE session_id = ?1 ORDER BY position LIMIT ?2";
    fetch(connection, sql, params![session.as_str(), number(MAX_TODOS)], |row| {
        Ok(Todo { content: row.get(0)?, status: row.get(1)?, priority: row.get(2)? })
    })
}

const PROJECT: &str = "SELECT id, worktree, vcs, name, time_created, time_updated, time_initialized, \
    sandboxes, icon_url, icon_url_override, icon_color, commands FROM project";

/// All projects, most recently opened first.
pub(super) fn projects(connection: &Connection) -> Result<Vec<Project>, Fault> {
    let sql = format!("{PROJECT} ORDER BY time_updated DESC, id LIMIT ?1");
    fetch(connection, &sql, [number(MAX_PROJECTS)], read_project)
}

/// The project whose worktree this is; the one last opened, should there be several.
pub(super) fn project_of(connection: &Connection, worktree: &str) -> Result<Option<Project>, Fault> {
    let sql = format!("{PROJECT} WHERE worktree = ?1 ORDER BY time_updated DESC, id LIMIT 1");
    Ok(fetch(connection, &sql, [worktree], read_project)?.pop())
}

/// The fields of a project's picture, and the columns that hold them.
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

/// A column's text where it lies, not a copy.
pub(super) fn text<'a>(row: &'a Row<'_>, column: impl RowIndex) -> Result<&'a str, Fault> {
    Ok(row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?)
}
