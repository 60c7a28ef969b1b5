//! Drafts: the latest values of growing parts. They override the parts' rows.

use std::collections::HashMap;

use codewright_proto::{Event, MessageId, Part, PartBody, PartId, SessionId};
use rusqlite::{Connection, params};

use super::apply::{Json, number, require_session, unknown};
use super::query::fetch;
use super::scope::Scope;
use crate::Error;
use crate::error::Fault;
use crate::record::Record;

/// Stores a part's draft until its next event. The part must exist.
pub(super) fn put(scope: &mut Scope<'_>, part: &Part, time: u64, record: &Record) -> Result<(), Fault> {
    scope.has_drafts = Some(true);
    let connection = scope.connection;
    let row = record.row();
    let changed = connection
        .prepare_cached(
            "INSERT INTO draft (part_id, message_id, session_id, time_updated, data)
             SELECT id, message_id, session_id, ?4, ?5 FROM part
             WHERE id = ?1 AND message_id = ?2 AND session_id = ?3
             ON CONFLICT (part_id) DO UPDATE SET time_updated = excluded.time_updated, data = excluded.data",
        )?
        .execute(params![
            part.id.as_str(),
            part.message_id.as_str(),
            part.session_id.as_str(),
            number(time),
            Json(&row)
        ])?;
    if changed > 0 {
        return Ok(());
    }
    require_session(connection, &part.session_id)?;
    Err(unknown("part", &part.id).into())
}

/// Removes the drafts that an event makes obsolete. Not part of the projection, because a replay keeps drafts.
pub(super) fn settle(scope: &mut Scope<'_>, event: &Event) -> Result<(), Fault> {
    let (sql, id) = match event {
        Event::PartUpdated { part, .. } => ("DELETE FROM draft WHERE part_id = ?1", part.id.as_str()),
        Event::PartRemoved { part_id, .. } => ("DELETE FROM draft WHERE part_id = ?1", part_id.as_str()),
        Event::MessageRemoved { message_id, .. } => {
            ("DELETE FROM draft WHERE message_id = ?1", message_id.as_str())
        }
        Event::SessionDeleted { session_id, .. } => {
            ("DELETE FROM draft WHERE session_id = ?1", session_id.as_str())
        }
        Event::SessionCreated { .. }
        | Event::SessionUpdated { .. }
        | Event::MessageUpdated { .. }
        | Event::TodoUpdated { .. }
        | Event::PermissionAsked(_)
        | Event::PermissionReplied { .. } => return Ok(()),
    };
    if scope.has_drafts()? {
        scope.connection.prepare_cached(sql)?.execute([id])?;
    }
    Ok(())
}

/// Whether any part has a draft.
pub(super) fn any(connection: &Connection) -> Result<bool, Fault> {
    Ok(connection.prepare_cached("SELECT 1 FROM draft LIMIT 1")?.exists([])?)
}

/// A session's drafts, each with the time it was written, in the order of their parts.
pub(super) fn of(connection: &Connection, session: &SessionId) -> Result<Vec<(Part, u64)>, Fault> {
    let sql = "SELECT part_id, message_id, time_updated, data FROM draft WHERE session_id = ?1
        ORDER BY part_id";
    fetch(connection, sql, [session.as_str()], |row| {
        let (id, message): (String, String) = (row.get(0)?, row.get(1)?);
        let body: PartBody = serde_json::from_str(row.get_ref(3)?.as_str().map_err(rusqlite::Error::from)?)
            .map_err(|error| Error::unreadable(format!("draft of part `{id}`"), error))?;
        let part = Part {
            id: PartId::parse(&id).map_err(|error| Error::unreadable("draft", error))?,
            session_id: session.clone(),
            message_id: MessageId::parse(&message).map_err(|error| Error::unreadable("draft", error))?,
            body,
        };
        Ok((part, row.get::<_, i64>(2)?.unsigned_abs()))
    })
}

/// The bodies of a session's drafts by part.
pub(super) fn overlay(
    connection: &Connection,
    session: &SessionId,
) -> Result<HashMap<PartId, PartBody>, Fault> {
    Ok(of(connection, session)?.into_iter().map(|(part, _)| (part.id, part.body)).collect())
}

/// The JSON of a session's drafts by part.
pub(super) fn rows(connection: &Connection, session: &SessionId) -> Result<HashMap<String, String>, Fault> {
    let sql = "SELECT part_id, data FROM draft WHERE session_id = ?1";
    Ok(fetch(connection, sql, [session.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?
        .into_iter()
        .collect())
}
