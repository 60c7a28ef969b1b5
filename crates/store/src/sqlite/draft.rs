//! Drafts: the latest values of growing parts. They override the parts' rows.

use std::collections::HashMap;

use codewright_proto::{Event, Part, PartBody, PartId, SessionId};
use rusqlite::Connection;

use super::apply;
use super::query::fetch;
use super::scope::Scope;
use crate::error::Fault;
use crate::record::Record;
use crate::{changes, rows, sql};

/// Stores a part's draft until its next event. The part must exist.
pub(super) fn put(scope: &mut Scope<'_>, part: &Part, time: u64, record: &Record) -> Result<(), Fault> {
    scope.has_drafts = Some(true);
    apply::run(scope.connection, &changes::put_draft(part, time, record))
}

/// Removes the drafts that an event makes obsolete.
pub(super) fn settle(scope: &mut Scope<'_>, event: &Event) -> Result<(), Fault> {
    let Some(step) = changes::settle(event) else { return Ok(()) };
    if scope.has_drafts()? { apply::run(scope.connection, &step) } else { Ok(()) }
}

/// Whether any part has a draft.
pub(super) fn any(connection: &Connection) -> Result<bool, Fault> {
    Ok(connection.prepare_cached(sql::ANY_DRAFT)?.exists([])?)
}

/// A session's drafts, each with the time it was written, in the order of their parts.
pub(super) fn of(connection: &Connection, session: &SessionId) -> Result<Vec<(Part, u64)>, Fault> {
    fetch(connection, sql::DRAFTS, [session.as_str()], |row| {
        let (id, message): (String, String) = (row.get(0)?, row.get(1)?);
        let data = row.get_ref(3)?.as_str().map_err(rusqlite::Error::from)?;
        let part = rows::draft(&id, session, &message, data)?;
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
    Ok(fetch(connection, sql::DRAFT_DATA, [session.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?
        .into_iter()
        .collect())
}
