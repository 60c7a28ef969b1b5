//! The JSON lists that clients receive, from the rows of SQLite.

use std::sync::Arc;

use codewright_proto::{MessageId, SessionId};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Params, Rows, params};

use super::draft;
use super::query::text;
use crate::error::Fault;
use crate::list::{Data, Item, Piece};
use crate::spare::Spare;
use crate::sql::{self, to_column};
use crate::{Json, MessagesJson, Position, Rest};

/// The newest `limit` messages before another, with their parts, oldest first. `None` for an unknown session.
pub(super) fn messages(
    connection: &Connection,
    spare: &Arc<Spare>,
    session: &SessionId,
    limit: Option<usize>,
    before: Option<(u64, MessageId)>,
) -> Result<Option<MessagesJson>, Fault> {
    if !connection.prepare_cached(sql::SESSION_EXISTS)?.exists([session.as_str()])? {
        return Ok(None);
    }
    let bounds = Bounds::of(connection, session, limit, before)?;
    let mut piece = Piece::new(session, draft::rows(connection, session)?, spare);
    piece.begin();
    let mut statement = connection.prepare_cached(sql::MESSAGES_SQLITE)?;
    let has_more = write(&mut piece, statement.query(bounds.params(session))?)?;
    let next = match piece.first() {
        Some((time, id)) if bounds.has_older => Some((time, id?)),
        _ => None,
    };
    let (json, rest) = piece.end(has_more, bounds.before);
    Ok(Some(MessagesJson { json: Json::new(json, spare), next, rest }))
}

/// The next piece of a list.
pub(super) fn more_messages(
    connection: &Connection,
    spare: &Arc<Spare>,
    rest: &Rest,
) -> Result<(Json, Option<Rest>), Fault> {
    let mut piece = Piece::new(&rest.session, draft::rows(connection, &rest.session)?, spare);
    piece.continue_from(rest);
    let mut statement = connection.prepare_cached(sql::MORE_MESSAGES_SQLITE)?;
    let (session, from, before) = (rest.session.as_str(), &rest.message, &rest.before);
    let rows = statement.query(params![session, from.time, from.id, before.time, before.id, rest.part])?;
    let has_more = write(&mut piece, rows)?;
    let (json, rest) = piece.end(has_more, rest.before.clone());
    Ok((Json::new(json, spare), rest))
}

/// Writes rows until the piece is long enough. Returns whether there may be more.
fn write(piece: &mut Piece<'_>, mut rows: Rows<'_>) -> Result<bool, Fault> {
    while let Some(row) = rows.next()? {
        let part = match row.get_ref(3)?.as_str_or_null().map_err(rusqlite::Error::from)? {
            Some(part) => Some((part, data(row.get_ref(4)?)?)),
            None => None,
        };
        let item = Item { id: text(row, 0)?, data: data(row.get_ref(1)?)?, time: row.get(2)?, part };
        if piece.push(&item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The text of a column.
pub(super) fn data(value: ValueRef<'_>) -> Result<Data<'_>, Fault> {
    if let ValueRef::Text(bytes) = value
        && let Some(data) = Data::of_ascii(bytes)
    {
        return Ok(data);
    }
    Ok(Data::from(value.as_str().map_err(rusqlite::Error::from)?))
}

/// The messages before and after a page.
struct Bounds {
    after: Position,
    before: Position,
    has_older: bool,
}

impl Bounds {
    fn of(
        connection: &Connection,
        session: &SessionId,
        limit: Option<usize>,
        before: Option<(u64, MessageId)>,
    ) -> Result<Self, Fault> {
        let before = match before {
            Some((time, id)) => Position { time: to_column(time), id: id.to_string() },
            None => Position::last(),
        };
        let after = match limit {
            Some(limit) => connection
                .prepare_cached(sql::FIRST_OMITTED)?
                .query_row(
                    params![session.as_str(), before.time, before.id, to_column(limit as u64)],
                    |row| Ok(Position { time: row.get(0)?, id: row.get(1)? }),
                )
                .optional()?,
            None => None,
        };
        let has_older = after.is_some();
        Ok(Self { after: after.unwrap_or_else(Position::first), before, has_older })
    }

    fn params<'a>(&'a self, session: &'a SessionId) -> impl Params + 'a {
        (session.as_str(), self.after.time, &self.after.id, self.before.time, &self.before.id)
    }
}
