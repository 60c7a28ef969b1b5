//! Lists as clients receive them, put together from rows without reading what they hold.
//!
//! A row is the JSON of the value it was written from, so nothing is lost by passing it on, and
//! a long transcript costs a fraction of what taking it apart and writing it anew would.

use codewright_proto::{MessageId, SessionId};
use rusqlite::Connection;

use super::query::text;
use super::{draft, query};
use crate::error::Fault;
use crate::{Error, MessagesJson};

/// Room for the JSON of most lists.
const USUAL_BYTES: usize = 64 * 1024;

/// The newest `limit` messages before one with their parts, oldest first; none for an unknown session.
pub(super) fn messages(
    connection: &Connection,
    session: &SessionId,
    limit: Option<usize>,
    before: Option<(u64, MessageId)>,
) -> Result<Option<MessagesJson>, Fault> {
    if !connection.prepare_cached("SELECT 1 FROM session WHERE id = ?1")?.exists([session.as_str()])? {
        return Ok(None);
    }
    let one_more = limit.map(|limit| limit.saturating_add(1));
    let mut rows = query::message_rows(connection, session, one_more, before, |row| {
        Ok((text(row, 0)?.to_owned(), text(row, 1)?.to_owned(), query::unsigned(row, "time_created")?))
    })?;
    let has_more = limit.is_some_and(|limit| rows.len() > limit);
    if has_more {
        rows.remove(0);
    }
    let drafts = draft::rows(connection, session)?;
    let mut parts = connection.prepare_cached(query::PARTS)?;
    let mut json = Vec::with_capacity(USUAL_BYTES);
    json.push(b'[');
    for (id, data, _) in &rows {
        json.extend_from_slice(if json.len() > 1 { br#",{"info":"# } else { br#"{"info":"# });
        object(&mut json, &[("id", id), ("sessionID", session.as_str())], data)
            .map_err(unreadable("message", id))?;
        json.extend_from_slice(br#","parts":["#);
        let mut found = parts.query([id])?;
        let mut is_first = true;
        while let Some(row) = found.next()? {
            let (part, data) = (text(row, 0)?, text(row, 1)?);
            let data = if drafts.is_empty() { data } else { drafts.get(part).map_or(data, String::as_str) };
            if !std::mem::take(&mut is_first) {
                json.push(b',');
            }
            let ids = [("id", part), ("sessionID", session.as_str()), ("messageID", id)];
            object(&mut json, &ids, data).map_err(unreadable("part", part))?;
        }
        json.extend_from_slice(b"]}");
    }
    json.push(b']');
    let next = match rows.first().filter(|_| has_more) {
        Some((id, _, time)) => Some((*time, MessageId::parse(id).map_err(unreadable("message", id))?)),
        None => None,
    };
    Ok(Some(MessagesJson { json, next }))
}

fn unreadable<E: std::error::Error + Send + Sync + 'static>(kind: &str, id: &str) -> impl FnOnce(E) -> Error {
    move |error| Error::unreadable(format!("{kind} `{id}`"), error)
}

/// Why a row is not passed on.
#[derive(Debug, thiserror::Error)]
#[error("it is not the JSON of an object as this program writes it")]
pub(super) struct NotOurs;

/// An object of these ids and the fields of a row.
///
/// What this program writes stands between braces, without control characters, and ids are plain. That much is
/// asked of a row: it tells what a damaged page holds from text, and unlike reading every value it costs next to nothing.
pub(super) fn object(json: &mut Vec<u8>, ids: &[(&str, &str)], data: &str) -> Result<(), NotOurs> {
    let bytes = data.as_bytes();
    let is_text = |byte: &u8| *byte >= b' ' || matches!(byte, b'\n' | b'\r' | b'\t');
    // All of it is looked at, as that goes many bytes at a time.
    let are_text = bytes.iter().fold(true, |so_far, byte| so_far & is_text(byte));
    let is_ours = are_text && matches!(bytes, [b'{', b'"', .., b'}']);
    if !is_ours {
        return Err(NotOurs);
    }
    json.push(b'{');
    for (name, id) in ids {
        if id.bytes().any(|byte| matches!(byte, b'"' | b'\\' | ..b' ')) {
            return Err(NotOurs);
        }
        for piece in ["\"", name, "\":\"", id, "\","] {
            json.extend_from_slice(piece.as_bytes());
        }
    }
    json.extend_from_slice(&bytes[1..]);
    Ok(())
}
