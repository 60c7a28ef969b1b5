//! The JSON lists that clients receive, built from rows without parsing them.
//!
//! A row contains the value's JSON, so it can be copied. For a long transcript this costs a fraction of parsing and
//! serializing it.

use std::collections::HashMap;
use std::sync::Arc;

use codewright_proto::{MessageId, SessionId};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Params, Rows, params};

use super::apply::number;
use super::draft;
use super::query::text;
use crate::error::Fault;
use crate::spare::Spare;
use crate::{Error, Json, MessagesJson, Position, Rest};

/// The initial capacity, enough for most lists.
pub(super) const USUAL_BYTES: usize = 64 * 1024;

/// The size at which a piece of a list ends after the current part.
const PIECE_BYTES: usize = 512 * 1024;

/// The newest `limit` messages before another, with their parts, oldest first. `None` for an unknown session.
pub(super) fn messages(
    connection: &Connection,
    spare: &Arc<Spare>,
    session: &SessionId,
    limit: Option<usize>,
    before: Option<(u64, MessageId)>,
) -> Result<Option<MessagesJson>, Fault> {
    if !connection.prepare_cached("SELECT 1 FROM session WHERE id = ?1")?.exists([session.as_str()])? {
        return Ok(None);
    }
    let bounds = Bounds::of(connection, session, limit, before)?;
    let mut piece = Piece::new(connection, session, spare)?;
    piece.json.push(b'[');
    let mut statement = connection.prepare_cached(MESSAGES)?;
    let has_more = piece.write(statement.query(bounds.params(session))?)?;
    let next = match piece.first.take() {
        Some(Position { time, id }) if bounds.has_older => {
            Some((time.unsigned_abs(), MessageId::parse(&id).map_err(unreadable("message", &id))?))
        }
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
    let mut piece = Piece::new(connection, &rest.session, spare)?;
    piece.continue_from(rest);
    let mut statement = connection.prepare_cached(MORE_MESSAGES)?;
    let (session, from, before) = (rest.session.as_str(), &rest.message, &rest.before);
    let rows = statement.query(params![session, from.time, from.id, before.time, before.id, rest.part])?;
    let has_more = piece.write(rows)?;
    let (json, rest) = piece.end(has_more, rest.before.clone());
    Ok((Json::new(json, spare), rest))
}

/// A piece of a list that is being written.
struct Piece<'a> {
    session: &'a SessionId,
    drafts: HashMap<String, String>,
    json: Vec<u8>,
    /// The first message that starts in this piece.
    first: Option<Position>,
    /// The message whose parts are being written, and the ids that each part has.
    message: Position,
    of_message: String,
    /// The last part that was written.
    part: String,
}

impl<'a> Piece<'a> {
    fn new(connection: &Connection, session: &'a SessionId, spare: &Arc<Spare>) -> Result<Self, Fault> {
        Ok(Self {
            session,
            drafts: draft::rows(connection, session)?,
            json: spare.take(USUAL_BYTES),
            first: None,
            message: Position { time: 0, id: String::new() },
            of_message: String::new(),
            part: String::new(),
        })
    }

    /// Continues in the message in which the previous piece ended.
    fn continue_from(&mut self, rest: &Rest) {
        self.message.clone_from(&rest.message);
        self.part.clone_from(&rest.part);
        self.of_message = of_message(self.session, &rest.message.id);
    }

    /// Writes rows until the piece is long enough. Returns whether there may be more.
    fn write(&mut self, mut rows: Rows<'_>) -> Result<bool, Fault> {
        let of_session = format!(r#""sessionID":"{}","#, self.session);
        while let Some(row) = rows.next()? {
            let id = text(row, 0)?;
            if id != self.message.id {
                self.json.extend_from_slice(if self.message.id.is_empty() {
                    br#"{"info":"#
                } else {
                    br#"]},{"info":"#
                });
                object(&mut self.json, Some(id), &of_session, &Data::of(row.get_ref(1)?)?)
                    .map_err(unreadable("message", id))?;
                self.json.extend_from_slice(br#","parts":["#);
                self.message = Position { time: row.get(2)?, id: id.to_owned() };
                self.of_message = of_message(self.session, id);
                self.part.clear();
                if self.first.is_none() {
                    self.first = Some(self.message.clone());
                }
            }
            // A message may have no parts.
            if let Some(part) = row.get_ref(3)?.as_str_or_null().map_err(rusqlite::Error::from)? {
                let draft = if self.drafts.is_empty() { None } else { self.drafts.get(part) };
                let data = match draft {
                    Some(draft) => Data::from(draft.as_str()),
                    None => Data::of(row.get_ref(4)?)?,
                };
                if !self.part.is_empty() {
                    self.json.push(b',');
                }
                object(&mut self.json, Some(part), &self.of_message, &data)
                    .map_err(unreadable("part", part))?;
                part.clone_into(&mut self.part);
            }
            if self.json.len() >= PIECE_BYTES {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn end(mut self, has_more: bool, before: Position) -> (Vec<u8>, Option<Rest>) {
        if has_more {
            let session = self.session.clone();
            return (self.json, Some(Rest { session, message: self.message, part: self.part, before }));
        }
        self.json.extend_from_slice(if self.message.id.is_empty() { b"]" } else { b"]}]" });
        (self.json, None)
    }
}

fn of_message(session: &SessionId, id: &str) -> String {
    format!(r#""sessionID":"{session}","messageID":"{id}","#)
}

/// A session's messages between two others, with their parts, oldest first. The order includes the row id, because SQLite
/// does not know that ids are unique and would sort.
pub(super) const MESSAGES: &str = "SELECT message.id, message.data, message.time_created, part.id, part.data
    FROM message LEFT JOIN part ON part.message_id = message.id WHERE message.session_id = ?1
    AND (message.time_created, message.id) > (?2, ?3) AND (message.time_created, message.id) < (?4, ?5)
    ORDER BY message.time_created, message.id, message.rowid, part.id";

/// The parts after another part of a message, and the messages after that message.
pub(super) const MORE_MESSAGES: &str =
    "SELECT message.id, message.data, message.time_created, part.id, part.data
    FROM message LEFT JOIN part ON part.message_id = message.id WHERE message.session_id = ?1
    AND (message.time_created, message.id) >= (?2, ?3) AND (message.time_created, message.id) < (?4, ?5)
    AND (message.id <> ?3 OR part.id > ?6)
    ORDER BY message.time_created, message.id, message.rowid, part.id";

/// The newest message that does not fit into a page.
pub(super) const FIRST_OMITTED: &str = "SELECT time_created, id FROM message WHERE session_id = ?1
    AND (time_created, id) < (?2, ?3) ORDER BY time_created DESC, id DESC LIMIT 1 OFFSET ?4";

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
            Some((time, id)) => Position { time: number(time), id: id.to_string() },
            // After every message.
            None => Position { time: i64::MAX, id: "\u{10ffff}".to_owned() },
        };
        let after = match limit {
            Some(limit) => connection
                .prepare_cached(FIRST_OMITTED)?
                .query_row(params![session.as_str(), before.time, before.id, number(limit as u64)], |row| {
                    Ok(Position { time: row.get(0)?, id: row.get(1)? })
                })
                .optional()?,
            None => None,
        };
        let has_older = after.is_some();
        Ok(Self { after: after.unwrap_or(Position { time: i64::MIN, id: String::new() }), before, has_older })
    }

    fn params<'a>(&'a self, session: &'a SessionId) -> impl Params + 'a {
        (session.as_str(), self.after.time, &self.after.id, self.before.time, &self.before.id)
    }
}

fn unreadable<E: std::error::Error + Send + Sync + 'static>(kind: &str, id: &str) -> impl FnOnce(E) -> Error {
    move |error| Error::unreadable(format!("{kind} `{id}`"), error)
}

/// A row was not written by this program.
#[derive(Debug, thiserror::Error)]
#[error("it is not a JSON object in this program's format")]
pub(super) struct NotOurs;

/// The content of a row, checked once.
pub(super) struct Data<'a> {
    bytes: &'a [u8],
    /// Whether it is text without control characters.
    is_text: bool,
}

impl<'a> Data<'a> {
    /// The text of a column.
    pub(super) fn of(value: ValueRef<'a>) -> Result<Self, Fault> {
        let ValueRef::Text(bytes) = value else {
            return Ok(Self::from(value.as_str().map_err(rusqlite::Error::from)?));
        };
        // Most rows are ASCII. The whole row is checked without an early exit, which is vectorized.
        if bytes.iter().fold(true, |so_far, byte| so_far & matches!(byte, b' '..=b'~')) {
            return Ok(Self { bytes, is_text: true });
        }
        Ok(Self::from(value.as_str().map_err(rusqlite::Error::from)?))
    }
}

impl<'a> From<&'a str> for Data<'a> {
    fn from(text: &'a str) -> Self {
        let is_text = text.bytes().all(|byte| byte >= b' ' || matches!(byte, b'\n' | b'\r' | b'\t'));
        Self { bytes: text.as_bytes(), is_text }
    }
}

/// Writes an object with an id, other serialized fields, and the fields of a row.
///
/// Only checks that the row is in braces and has no control characters, and that the id is plain. This detects damaged
/// pages and costs almost nothing compared to parsing.
pub(super) fn object(
    json: &mut Vec<u8>,
    id: Option<&str>,
    others: &str,
    data: &Data<'_>,
) -> Result<(), NotOurs> {
    let is_ours = data.is_text && matches!(data.bytes, [b'{', b'"', .., b'}']);
    let is_plain = |id: &str| !id.bytes().any(|byte| matches!(byte, b'"' | b'\\' | ..b' '));
    if !is_ours || !id.is_none_or(is_plain) {
        return Err(NotOurs);
    }
    json.push(b'{');
    if let Some(id) = id {
        for piece in [r#""id":""#, id, r#"","#, others] {
            json.extend_from_slice(piece.as_bytes());
        }
    }
    json.extend_from_slice(&data.bytes[1..]);
    Ok(())
}
