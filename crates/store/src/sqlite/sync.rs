//! Stores events of another store, and lists this store's events for another one.

use std::collections::HashMap;

use codewright_proto::Envelope;
use rusqlite::{Connection, params};

use super::apply;
use super::query;
use super::scope::Scope;
use crate::error::Fault;
use crate::record::Record;
use crate::rows::{HistoryRow, MAX_HISTORY_BYTES, MAX_HISTORY_EVENTS};
use crate::sql::{self, to_column as number};
use crate::sync::{Incoming, Logged};
use crate::{Error, upcast};

/// Stores new events. Known events are skipped; a gap is an error.
pub(super) fn replay(
    scope: &mut Scope<'_>,
    events: &[Incoming],
    time: u64,
) -> Result<Vec<(Envelope, usize)>, Fault> {
    let mut stored = Vec::new();
    let mut before: Option<(&str, u64)> = None;
    for foreign in events {
        let event = upcast::decode(&foreign.kind, foreign.data.get())?;
        let session = event.session_id().clone();
        let id = foreign.checked(&event, before)?;
        before = Some((&foreign.aggregate_id, foreign.seq));
        let next = scope.sequence(&session)?.map_or(0, |sequence| sequence.seq + 1);
        if foreign.seq < next {
            continue;
        }
        if foreign.seq > next {
            return Err(foreign.gap(next).into());
        }
        let is_used = scope.connection.prepare_cached(sql::EVENT_EXISTS)?.exists([id.as_str()])?;
        if is_used {
            return Err(Error::IdInUse { kind: "event", id: id.to_string() }.into());
        }
        let record = Record::new(&event)?;
        let bytes = record.len_bytes();
        let header = apply::store(scope, id, foreign.time.unwrap_or(time), &event, &record)?;
        stored.push((header.with_event(event), bytes));
    }
    Ok(stored)
}

/// The events after those that the other store has, in the order of the log.
pub(super) fn history(connection: &Connection, known: &HashMap<String, u64>) -> Result<Vec<Logged>, Fault> {
    let mut statement = connection.prepare_cached(sql::HISTORY_SQLITE)?;
    let mut rows = statement.query(params![number(0)])?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    while found.len() < MAX_HISTORY_EVENTS && bytes < MAX_HISTORY_BYTES {
        let Some(row) = rows.next()? else { break };
        let (session, seq) = (query::text(row, "aggregate_id")?, query::unsigned(row, "seq")?);
        if known.get(session).is_some_and(|known| seq <= *known) {
            continue;
        }
        let row = HistoryRow {
            id: query::text(row, "id")?,
            session,
            seq,
            kind: query::text(row, "type")?,
            data: query::text(row, "data")?,
        };
        let logged = row.logged()?;
        bytes += logged.data.get().len();
        found.push(logged);
    }
    Ok(found)
}
