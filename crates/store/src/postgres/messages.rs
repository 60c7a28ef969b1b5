//! Reads transcripts: as values, and as the JSON that clients receive.

use std::collections::HashMap;
use std::sync::Arc;

use codewright_proto::{Message, MessageId, MessageWithParts, Part, PartBody, PartId, SessionId};
use tokio_postgres::Row;

use super::fault::Fault;
use super::lease;
use super::link::Link;
use super::query::unsigned;
use crate::list::{Data, Item, LAST_ID, Piece};
use crate::spare::Spare;
use crate::sql::{self, to_column};
use crate::{Error, Json, MessagesJson, Position, Rest, rows};

/// How many messages' parts are read at a time.
const PARTS_OF: usize = 64;

/// How many rows of a list are read at a time. A row may have megabytes.
const LIST_ROWS: i64 = 32;

/// The transcript with its last `seq`.
pub(super) async fn transcript_at(
    link: &mut Link,
    session: &SessionId,
) -> Result<(u64, Vec<MessageWithParts>), Fault> {
    let seq = lease::seq(link, session).await?.unwrap_or(0);
    Ok((seq, messages(link, session, None, None).await?))
}

/// The newest `limit` messages without their parts, oldest first.
pub(super) async fn infos(
    link: &mut Link,
    session: &SessionId,
    limit: Option<usize>,
    before: Option<&(u64, MessageId)>,
) -> Result<Vec<Message>, Fault> {
    let (time, id) = match before {
        Some((time, id)) => (to_column(*time), id.as_str()),
        None => (i64::MAX, LAST_ID),
    };
    let limit = limit.map_or(i64::MAX, |limit| to_column(limit as u64));
    let found = link.rows(sql::INFOS, &[&session.as_str(), &time, &id, &limit]).await?;
    let message = |row: &Row| rows::message(row.get(0), session, row.get(1));
    Ok(found.iter().rev().map(message).collect::<Result<_, _>>()?)
}

/// The newest `limit` messages with their parts, oldest first.
pub(super) async fn messages(
    link: &mut Link,
    session: &SessionId,
    limit: Option<usize>,
    before: Option<&(u64, MessageId)>,
) -> Result<Vec<MessageWithParts>, Fault> {
    let infos = infos(link, session, limit, before).await?;
    with_parts(link, session, infos).await
}

/// The newest `limit` messages before another, and whether there are older ones.
pub(super) async fn messages_before(
    link: &mut Link,
    session: &SessionId,
    limit: usize,
    before: Option<&(u64, MessageId)>,
) -> Result<(Vec<MessageWithParts>, bool), Fault> {
    let mut infos = infos(link, session, Some(limit.saturating_add(1)), before).await?;
    let has_more = infos.len() > limit;
    if has_more {
        infos.remove(0);
    }
    Ok((with_parts(link, session, infos).await?, has_more))
}

/// One message with its parts.
pub(super) async fn message(
    link: &mut Link,
    session: &SessionId,
    id: &MessageId,
) -> Result<Option<MessageWithParts>, Fault> {
    let Some(row) = link.row(sql::MESSAGE, &[&id.as_str(), &session.as_str()]).await? else {
        return Ok(None);
    };
    let info = rows::message(row.get(0), session, row.get(1))?;
    Ok(with_parts(link, session, vec![info]).await?.pop())
}

async fn with_parts(
    link: &mut Link,
    session: &SessionId,
    infos: Vec<Message>,
) -> Result<Vec<MessageWithParts>, Fault> {
    let drafts = drafts(link, session).await?.into_iter().map(|(part, _)| (part.id, part.body));
    let mut drafts: HashMap<PartId, PartBody> = drafts.collect();
    let mut found: Vec<_> =
        infos.into_iter().map(|info| MessageWithParts { info, parts: Vec::new() }).collect();
    for chunk in found.chunks_mut(PARTS_OF) {
        let ids: Vec<&str> = chunk.iter().map(|message| message.info.id().as_str()).collect();
        let parts = link.rows(sql::PARTS_POSTGRES, &[&ids]).await?;
        let mut of: HashMap<&str, Vec<&Row>> = HashMap::new();
        for row in &parts {
            of.entry(row.get(2)).or_default().push(row);
        }
        for message in chunk {
            for row in of.remove(message.info.id().as_str()).unwrap_or_default() {
                let mut part = rows::part(row.get(0), session, message.info.id(), row.get(1))?;
                if let Some(body) = drafts.remove(&part.id) {
                    part.body = body;
                }
                message.parts.push(part);
            }
        }
    }
    Ok(found)
}

/// A session's drafts, each with the time it was written, in the order of their parts.
pub(super) async fn drafts(link: &mut Link, session: &SessionId) -> Result<Vec<(Part, u64)>, Fault> {
    let found = link.rows(sql::DRAFTS, &[&session.as_str()]).await?;
    let draft = |row: &Row| {
        let part = rows::draft(row.get(0), session, row.get(1), row.get(3))?;
        Ok::<_, Error>((part, unsigned(row, 2)))
    };
    Ok(found.iter().map(draft).collect::<Result<_, _>>()?)
}

/// The newest `limit` messages before another, as JSON. `None` for an unknown session.
pub(super) async fn list(
    link: &mut Link,
    spare: &Arc<Spare>,
    session: &SessionId,
    limit: Option<usize>,
    before: Option<&(u64, MessageId)>,
) -> Result<Option<MessagesJson>, Fault> {
    if link.row(sql::SESSION_EXISTS, &[&session.as_str()]).await?.is_none() {
        return Ok(None);
    }
    let before = match before {
        Some((time, id)) => Position { time: to_column(*time), id: id.to_string() },
        None => Position::last(),
    };
    let omitted = match limit {
        Some(limit) => {
            let skipped = to_column(limit as u64);
            link.row(sql::FIRST_OMITTED, &[&session.as_str(), &before.time, &before.id, &skipped]).await?
        }
        None => None,
    };
    let has_older = omitted.is_some();
    let after = omitted.map(|row| Position { time: row.get(0), id: row.get(1) });
    let mut piece = Piece::new(session, draft_data(link, session).await?, spare);
    piece.begin();
    // Greater than every part of the message after which the page starts.
    let start = Start { message: after.unwrap_or_else(Position::first), part: LAST_ID.to_owned() };
    let has_more = write(link, &mut piece, start, &before).await?;
    let next = match piece.first() {
        Some((time, id)) if has_older => Some((time, id?)),
        _ => None,
    };
    let (json, rest) = piece.end(has_more, before);
    Ok(Some(MessagesJson { json: Json::new(json, spare), next, rest }))
}

/// The next piece of a list.
pub(super) async fn more(
    link: &mut Link,
    spare: &Arc<Spare>,
    rest: &Rest,
) -> Result<(Json, Option<Rest>), Fault> {
    let mut piece = Piece::new(&rest.session, draft_data(link, &rest.session).await?, spare);
    piece.continue_from(rest);
    let start = Start { message: rest.message.clone(), part: rest.part.clone() };
    let has_more = write(link, &mut piece, start, &rest.before).await?;
    let (json, rest) = piece.end(has_more, rest.before.clone());
    Ok((Json::new(json, spare), rest))
}

/// The message and the part after which rows are read.
struct Start {
    message: Position,
    part: String,
}

/// Writes rows until the piece is long enough. Returns whether there may be more.
async fn write(
    link: &mut Link,
    piece: &mut Piece<'_>,
    mut start: Start,
    before: &Position,
) -> Result<bool, Fault> {
    let session = piece.session().as_str().to_owned();
    loop {
        let found = link
            .rows(
                sql::MESSAGES_POSTGRES,
                &[
                    &session,
                    &start.message.time,
                    &start.message.id,
                    &before.time,
                    &before.id,
                    &start.part,
                    &LIST_ROWS,
                ],
            )
            .await?;
        for row in &found {
            let (part, data) = (row.get::<_, Option<&str>>(3), row.get::<_, Option<&str>>(4));
            let item = Item {
                id: row.get(0),
                data: Data::from(row.get::<_, &str>(1)),
                time: row.get(2),
                part: part.zip(data.map(Data::from)),
            };
            if piece.push(&item)? {
                return Ok(true);
            }
        }
        if (found.len() as i64) < LIST_ROWS {
            return Ok(false);
        }
        let (message, part) = piece.place();
        start = Start { message: message.clone(), part: part.to_owned() };
    }
}

/// The JSON of a session's drafts by part.
async fn draft_data(link: &mut Link, session: &SessionId) -> Result<HashMap<String, String>, Fault> {
    let found = link.rows(sql::DRAFT_DATA, &[&session.as_str()]).await?;
    Ok(found.into_iter().map(|row| (row.get(0), row.get(1))).collect())
}
