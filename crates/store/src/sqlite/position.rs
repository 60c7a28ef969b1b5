//! Finds positions in a session's log without reading the events in between.

use codewright_proto::{MessageId, Session, SessionId};
use rusqlite::{Connection, OptionalExtension, params};

use super::query::{text, unsigned};
use crate::error::Fault;
use crate::rows;
use crate::sql::{self, to_column as number};

/// The session as it was before a position in its log; `None` before its creation.
pub(super) fn session_before(
    connection: &Connection,
    session: &SessionId,
    until_seq: u64,
) -> Result<Option<Session>, Fault> {
    let mut statement = connection.prepare_cached(sql::SESSION_BEFORE_SQLITE)?;
    let mut found = statement.query(params![session.as_str(), number(until_seq)])?;
    let Some(row) = found.next()? else { return Ok(None) };
    Ok(rows::session_of(text(row, "type")?, text(row, "data")?)?)
}

/// The `seq` of the event that created a message; `None` for an unknown one.
pub(super) fn first_seq(
    connection: &Connection,
    session: &SessionId,
    message: &MessageId,
) -> Result<Option<u64>, Fault> {
    let stored: Option<Option<i64>> = connection
        .prepare_cached(sql::FIRST_SEQ)?
        .query_row([message.as_str(), session.as_str()], |row| row.get(0))
        .optional()?;
    match stored {
        None => Ok(None),
        Some(Some(seq)) => Ok(Some(seq.unsigned_abs())),
        Some(None) => search_log(connection, session, message),
    }
}

/// [`first_seq`] for a message from before the position was stored in its row. Scans the session's events.
fn search_log(
    connection: &Connection,
    session: &SessionId,
    message: &MessageId,
) -> Result<Option<u64>, Fault> {
    let sql = "SELECT min(seq) AS seq FROM event
        WHERE aggregate_id = ?1 AND type >= 'message.updated.' AND type < 'message.updated/'
        AND json_extract(data, '$.info.id') = ?2
        AND seq > (SELECT coalesce(max(seq), -1) FROM event
            WHERE aggregate_id = ?1 AND type >= 'message.removed.' AND type < 'message.removed/'
            AND json_extract(data, '$.messageID') = ?2)
        HAVING min(seq) IS NOT NULL";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([session.as_str(), message.as_str()])?;
    Ok(rows.next()?.map(|row| unsigned(row, "seq")).transpose()?)
}
