//! Writes events to the log and updates the projected rows.
//!
//! Only this module writes projections. An event contains the whole new value of one row, so every change is an upsert
//! or a deletion. An event that refers to something missing is an error for the whole append.

use codewright_proto::{
    Envelope, Event, EventId, MessageId, Part, PermissionId, PermissionRequest, Project, SessionId, Todo,
};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, ToSql, TransactionBehavior, params};
use serde_json::Value;

use super::scope::Scope;
use super::{draft, query, session_row};
use crate::Error;
use crate::error::Fault;
use crate::record::Record;

/// How many events a replay reads at a time. The size of a page is limited too.
const REPLAY_PAGE: usize = 256;

/// JSON bytes, bound as text.
pub(super) struct Json<'a>(pub(super) &'a [u8]);

impl ToSql for Json<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

/// The position and time of a stored event.
pub(super) struct EventHeader {
    pub(super) id: EventId,
    pub(super) position: u64,
    pub(super) seq: u64,
    pub(super) time: u64,
}

impl EventHeader {
    pub(super) fn with_event(self, event: Event) -> Envelope {
        let Self { id, position, seq, time } = self;
        Envelope { id, position, seq, time, event }
    }
}

/// Appends an event and updates the projected rows.
pub(super) fn store(
    scope: &mut Scope<'_>,
    id: EventId,
    time: u64,
    event: &Event,
    record: &Record,
) -> Result<EventHeader, Fault> {
    let seq = scope.next_seq(event.session_id())?;
    let connection = scope.connection;
    let position = connection
        .prepare_cached(
            "INSERT INTO event (id, aggregate_id, seq, type, data, time) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .insert(params![
            id.as_str(),
            event.session_id().as_str(),
            number(seq),
            format!("{}.{}", event.name(), event.version()),
            Json(record.properties()),
            number(time)
        ])?;
    project_event(connection, event, seq, time, record)?;
    draft::settle(scope, event)?;
    Ok(EventHeader { id, position: position.unsigned_abs(), seq, time })
}

/// Updates the projected rows for an event with a `seq` and a time.
pub(super) fn project_event(
    connection: &Connection,
    event: &Event,
    seq: u64,
    stored: u64,
    record: &Record,
) -> Result<(), Fault> {
    match event {
        Event::SessionCreated { info, .. } => session_row::upsert(connection, info, record),
        Event::SessionUpdated { session_id, info } => {
            require_session(connection, session_id)?;
            session_row::upsert(connection, info, record)
        }
        Event::SessionDeleted { session_id, .. } => {
            let gone = connection
                .prepare_cached("DELETE FROM session WHERE id = ?1")?
                .execute([session_id.as_str()])?;
            if gone == 0 { Err(unknown("session", session_id).into()) } else { Ok(()) }
        }
        Event::MessageUpdated { session_id, info } => {
            upsert_message(connection, session_id, info.id(), [info.created(), stored, seq], record)
        }
        Event::MessageRemoved { session_id, message_id } => {
            require_session(connection, session_id)?;
            connection
                .prepare_cached("DELETE FROM message WHERE id = ?1 AND session_id = ?2")?
                .execute([message_id.as_str(), session_id.as_str()])?;
            Ok(())
        }
        Event::PartUpdated { part, time, .. } => upsert_part(connection, part, [*time, stored], record),
        Event::PartRemoved { session_id, message_id, part_id } => {
            require_session(connection, session_id)?;
            connection
                .prepare_cached("DELETE FROM part WHERE id = ?1 AND message_id = ?2 AND session_id = ?3")?
                .execute([part_id.as_str(), message_id.as_str(), session_id.as_str()])?;
            Ok(())
        }
        Event::TodoUpdated { session_id, todos } => replace_todos(connection, session_id, todos, stored),
        Event::PermissionAsked(request) => insert_request(connection, request, stored, record),
        Event::PermissionReplied { session_id, request_id, .. } => {
            delete_request(connection, session_id, request_id)
        }
    }
}

fn upsert_message(
    connection: &Connection,
    session: &SessionId,
    id: &MessageId,
    [created, updated, seq]: [u64; 3],
    record: &Record,
) -> Result<(), Fault> {
    let row = record.row();
    // An id that another session uses matches no row, so nothing changes.
    let changed = connection
        .prepare_cached(
            "INSERT INTO message (id, session_id, time_created, time_updated, data, seq)
             SELECT ?1, id, ?3, ?4, ?5, ?6 FROM session WHERE id = ?2
             ON CONFLICT (id) DO UPDATE SET time_created = excluded.time_created,
                 time_updated = excluded.time_updated, data = excluded.data
             WHERE session_id = excluded.session_id",
        )?
        .execute(params![
            id.as_str(),
            session.as_str(),
            number(created),
            number(updated),
            Json(&row),
            number(seq)
        ])?;
    if changed > 0 {
        return Ok(());
    }
    require_session(connection, session)?;
    Err(Error::IdInUse { kind: "message", id: id.to_string() }.into())
}

fn upsert_part(
    connection: &Connection,
    part: &Part,
    [created, updated]: [u64; 2],
    record: &Record,
) -> Result<(), Fault> {
    let row = record.row();
    let changed = connection
        .prepare_cached(
            "INSERT INTO part (id, message_id, session_id, time_created, time_updated, data)
             SELECT ?1, id, session_id, ?4, ?5, ?6 FROM message WHERE id = ?2 AND session_id = ?3
             ON CONFLICT (id) DO UPDATE SET time_updated = excluded.time_updated, data = excluded.data
             WHERE message_id = excluded.message_id AND session_id = excluded.session_id",
        )?
        .execute(params![
            part.id.as_str(),
            part.message_id.as_str(),
            part.session_id.as_str(),
            number(created),
            number(updated),
            Json(&row)
        ])?;
    if changed > 0 {
        return Ok(());
    }
    require_session(connection, &part.session_id)?;
    let message = connection
        .prepare_cached("SELECT 1 FROM message WHERE id = ?1 AND session_id = ?2")?
        .exists([part.message_id.as_str(), part.session_id.as_str()])?;
    if !message {
        return Err(unknown("message", &part.message_id).into());
    }
    Err(Error::IdInUse { kind: "part", id: part.id.to_string() }.into())
}

fn replace_todos(
    connection: &Connection,
    session: &SessionId,
    todos: &[Todo],
    time: u64,
) -> Result<(), Fault> {
    require_session(connection, session)?;
    connection.prepare_cached("DELETE FROM todo WHERE session_id = ?1")?.execute([session.as_str()])?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO todo (session_id, position, content, status, priority, time_created, time_updated)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)",
    )?;
    for (position, todo) in (0_i64..).zip(todos) {
        insert.execute(params![
            session.as_str(),
            position,
            todo.content,
            todo.status,
            todo.priority,
            number(time)
        ])?;
    }
    Ok(())
}

fn insert_request(
    connection: &Connection,
    request: &PermissionRequest,
    time: u64,
    record: &Record,
) -> Result<(), Fault> {
    require_session(connection, &request.session_id)?;
    let row = record.row();
    let changed = connection
        .prepare_cached(
            "INSERT INTO permission_request (id, session_id, time_created, data) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (id) DO UPDATE SET data = excluded.data WHERE session_id = excluded.session_id",
        )?
        .execute(params![request.id.as_str(), request.session_id.as_str(), number(time), Json(&row)])?;
    if changed > 0 {
        return Ok(());
    }
    Err(Error::IdInUse { kind: "permission request", id: request.id.to_string() }.into())
}

/// Only the first reply is accepted. A second one finds no request.
fn delete_request(connection: &Connection, session: &SessionId, id: &PermissionId) -> Result<(), Fault> {
    let gone = connection
        .prepare_cached("DELETE FROM permission_request WHERE id = ?1 AND session_id = ?2")?
        .execute([id.as_str(), session.as_str()])?;
    if gone == 0 { Err(unknown("permission request", id).into()) } else { Ok(()) }
}

pub(super) fn require_session(connection: &Connection, id: &SessionId) -> Result<(), Fault> {
    let exists = connection.prepare_cached("SELECT 1 FROM session WHERE id = ?1")?.exists([id.as_str()])?;
    if exists { Ok(()) } else { Err(unknown("session", id).into()) }
}

/// Saves a project. Projects are found on disk, not created by events.
pub(super) fn project(connection: &Connection, project: &Project) -> Result<(), Fault> {
    let unreadable = |error| Error::unreadable(format!("project `{}`", project.id), error);
    let sandboxes = serde_json::to_vec(&project.sandboxes).map_err(unreadable)?;
    let commands = project.commands.as_ref().map(serde_json::to_string).transpose().map_err(unreadable)?;
    let icon = query::ICON
        .map(|(name, _)| project.icon.as_ref().and_then(|icon| icon.get(name)).and_then(Value::as_str));
    connection
        .prepare_cached(
            "INSERT INTO project (id, worktree, vcs, name, time_created, time_updated, time_initialized,
                 sandboxes, icon_url, icon_url_override, icon_color, commands)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
             ON CONFLICT (id) DO UPDATE SET worktree = excluded.worktree, vcs = excluded.vcs,
                 name = excluded.name, time_created = excluded.time_created,
                 time_updated = excluded.time_updated, time_initialized = excluded.time_initialized,
                 sandboxes = excluded.sandboxes, icon_url = excluded.icon_url,
                 icon_url_override = excluded.icon_url_override, icon_color = excluded.icon_color,
                 commands = excluded.commands",
        )?
        .execute(params![
            project.id.as_str(),
            project.worktree,
            project.vcs,
            project.name,
            number(project.time.created),
            number(project.time.updated),
            project.time.initialized.map(number),
            Json(&sandboxes),
            icon[0],
            icon[1],
            icon[2],
            commands
        ])?;
    Ok(())
}

/// Rebuilds all rows from the log. Returns the number of events.
pub(super) fn replay(connection: &mut Connection) -> Result<u64, Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Messages, parts and requests are deleted with their sessions.
    transaction.execute("DELETE FROM session", [])?;
    let (mut position, mut count) = (0, 0);
    loop {
        let page = query::events(&transaction, position, i64::MAX as u64, REPLAY_PAGE)?;
        let Some(last) = page.last() else { break };
        position = last.position;
        for envelope in &page {
            let record = Record::new(&envelope.event)?;
            project_event(&transaction, &envelope.event, envelope.seq, envelope.time, &record)?;
            count += 1;
        }
    }
    transaction.commit()?;
    Ok(count)
}

pub(super) fn unknown(kind: &'static str, id: &impl ToString) -> Error {
    Error::Unknown { kind, id: id.to_string() }
}

/// Whether a project exists.
pub(super) fn project_exists(connection: &Connection, id: &str) -> Result<bool, Fault> {
    let found = connection
        .prepare_cached("SELECT 1 FROM project WHERE id = ?1")?
        .query_row([id], |_| Ok(()))
        .optional()?;
    Ok(found.is_some())
}

/// A number for a column. Numbers of events were checked before; a clock or a limit beyond 63 bits becomes the maximum.
pub(super) fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
