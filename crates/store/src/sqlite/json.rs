//! Lists as clients receive them, put together from rows without reading what they hold.
//!
//! A row is the JSON of the value it was written from, so nothing is lost by passing it on, and
//! a long transcript costs a fraction of what taking it apart and writing it anew would.

use std::collections::HashMap;

use codewright_proto::{MessageId, PartId, SessionId};
use rusqlite::Connection;
use serde::de::Error as _;
use serde_json::value::RawValue;

use super::query::text;
use super::{draft, query};
use crate::error::Fault;
use crate::{Error, MessagesJson};

/// The newest `limit` messages before one with their parts, oldest first.
pub(super) fn messages(
    connection: &Connection,
    session: &SessionId,
    limit: Option<usize>,
    before: Option<(u64, MessageId)>,
) -> Result<MessagesJson, Fault> {
    let one_more = limit.map(|limit| limit.saturating_add(1));
    let mut rows = query::message_rows(connection, session, one_more, before, |row| {
        Ok((text(row, 0)?.to_owned(), text(row, 1)?.to_owned(), query::unsigned(row, "time_created")?))
    })?;
    let has_more = limit.is_some_and(|limit| rows.len() > limit);
    if has_more {
        rows.remove(0);
    }
    let mut parts = Parts { session, drafts: draft::rows(connection, session)? };
    let mut json = vec![b'['];
    let mut next = None;
    for (id, data, time) in &rows {
        let id = MessageId::parse(id).map_err(|error| Error::unreadable("message", error))?;
        json.extend_from_slice(if json.len() > 1 { br#",{"info":"# } else { br#"{"info":"# });
        object(&mut json, &[("id", id.as_str()), ("sessionID", session.as_str())], data)
            .map_err(|error| Error::unreadable(format!("message `{id}`"), error))?;
        json.extend_from_slice(br#","parts":["#);
        parts.write(connection, &mut json, &id)?;
        json.extend_from_slice(b"]}");
        if has_more && next.is_none() {
            next = Some((*time, id));
        }
    }
    json.push(b']');
    Ok(MessagesJson { json, next })
}

/// What the parts of a session's messages have in common.
struct Parts<'a> {
    session: &'a SessionId,
    /// What lies over the rows of parts that grow.
    drafts: HashMap<String, String>,
}

impl Parts<'_> {
    fn write(
        &mut self,
        connection: &Connection,
        json: &mut Vec<u8>,
        message: &MessageId,
    ) -> Result<(), Fault> {
        let mut statement = connection.prepare_cached(query::PARTS)?;
        let mut rows = statement.query([message.as_str()])?;
        let mut is_first = true;
        while let Some(row) = rows.next()? {
            let (id, data) = (text(row, 0)?, text(row, 1)?);
            PartId::parse(id).map_err(|error| Error::unreadable("part", error))?;
            if !std::mem::take(&mut is_first) {
                json.push(b',');
            }
            let ids = [("id", id), ("sessionID", self.session.as_str()), ("messageID", message.as_str())];
            object(json, &ids, self.drafts.get(id).map_or(data, String::as_str))
                .map_err(|error| Error::unreadable(format!("part `{id}`"), error))?;
        }
        Ok(())
    }
}

/// An object of these ids, which are plain, and the fields of a row.
pub(super) fn object(json: &mut Vec<u8>, ids: &[(&str, &str)], data: &str) -> Result<(), serde_json::Error> {
    let data: &RawValue = serde_json::from_str(data)?;
    let Some(fields) = data.get().strip_prefix('{') else {
        return Err(serde_json::Error::custom("it is no object"));
    };
    json.push(b'{');
    for (name, id) in ids {
        for piece in ["\"", name, "\":\"", id, "\","] {
            json.extend_from_slice(piece.as_bytes());
        }
    }
    if fields.starts_with('}') {
        json.pop();
    }
    json.extend_from_slice(fields.as_bytes());
    Ok(())
}
