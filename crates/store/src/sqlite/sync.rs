//! Stores events of another store, and lists this store's events for another one.

use std::collections::HashMap;

use codewright_proto::{Envelope, EventId};
use rusqlite::{Connection, params};
use serde_json::value::RawValue;

use super::apply::{self, number};
use super::query;
use super::scope::Scope;
use crate::error::Fault;
use crate::record::Record;
use crate::sync::{Incoming, Logged};
use crate::{Error, upcast};

/// The maximum number of events in one response.
const MAX_EVENTS: usize = 50_000;

/// The size of the events in one response. A single event may be larger.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Stores new events. Known events are skipped; a gap is an error.
pub(super) fn replay(
    scope: &mut Scope<'_>,
    events: &[Incoming],
    time: u64,
) -> Result<Vec<(Envelope, usize)>, Fault> {
    let mut stored = Vec::new();
    let mut before: Option<(String, u64)> = None;
    for foreign in events {
        let event = upcast::decode(&foreign.kind, foreign.data.get())?;
        let session = event.session_id().clone();
        let invalid = |reason: String| Error::Invalid { event: event.name(), reason };
        if session.as_str() != foreign.aggregate_id {
            return Err(
                invalid(format!("it belongs to `{session}`, not to `{}`", foreign.aggregate_id)).into()
            );
        }
        let id = EventId::parse(&foreign.id).map_err(|error| invalid(error.to_string()))?;
        // The order is checked for known events too.
        if let Some((of, seq)) = &before
            && *of == foreign.aggregate_id
            && foreign.seq != seq + 1
        {
            return Err(gap(foreign, seq + 1).into());
        }
        before = Some((foreign.aggregate_id.clone(), foreign.seq));
        let next = scope.sequence(&session)?.map_or(0, |sequence| sequence.seq + 1);
        if foreign.seq < next {
            continue;
        }
        if foreign.seq > next {
            return Err(gap(foreign, next).into());
        }
        let is_used =
            scope.connection.prepare_cached("SELECT 1 FROM event WHERE id = ?1")?.exists([id.as_str()])?;
        if is_used {
            return Err(Error::IdInUse { kind: "event", id: id.to_string() }.into());
        }
        let record = Record::new(&event)?;
        let bytes = record.len_bytes();
        let header = apply::store(scope, id, time, &event, &record)?;
        stored.push((header.with_event(event), bytes));
    }
    Ok(stored)
}

fn gap(foreign: &Incoming, expected: u64) -> Error {
    Error::Gap { id: foreign.aggregate_id.clone(), expected, found: foreign.seq }
}

/// The events after those that the other store has, in the order of the log.
pub(super) fn history(connection: &Connection, known: &HashMap<String, u64>) -> Result<Vec<Logged>, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT id, aggregate_id, seq, type, data FROM event WHERE position > ?1 ORDER BY position",
    )?;
    let mut rows = statement.query(params![number(0)])?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    while found.len() < MAX_EVENTS && bytes < MAX_BYTES {
        let Some(row) = rows.next()? else { break };
        let (session, seq) = (query::text(row, "aggregate_id")?, query::unsigned(row, "seq")?);
        if known.get(session).is_some_and(|known| seq <= *known) {
            continue;
        }
        let kind = query::text(row, "type")?;
        let data = query::text(row, "data")?;
        // Other stores get the current schema.
        let event = upcast::decode(kind, data)?;
        let record = Record::new(&event)?;
        let json = String::from_utf8_lossy(record.properties()).into_owned();
        let unreadable = |error| Error::unreadable("event", error);
        bytes += json.len();
        found.push(Logged {
            id: query::text(row, "id")?.to_owned(),
            aggregate_id: session.to_owned(),
            seq,
            kind: format!("{}.{}", event.name(), event.version()),
            data: RawValue::from_string(json).map_err(unreadable)?,
        });
    }
    Ok(found)
}
