//! Writes events to the log and updates the projected rows.
//!
//! Only this module writes projections. An event contains the whole new value of one row, so every change is an upsert
//! or a deletion. An event that refers to something missing is an error for the whole append.

use codewright_proto::{Envelope, Event, EventId, Project, SessionId};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, TransactionBehavior, params, params_from_iter};

use super::scope::Scope;
use super::{draft, query};
use crate::changes::{self, Exists, Step, Unchanged, unknown};
use crate::error::Fault;
use crate::record::Record;
use crate::sql::{self, Value, to_column as number};

/// How many events a replay reads at a time. The size of a page is limited too.
const REPLAY_PAGE: usize = 256;

/// JSON bytes, bound as text.
struct Json<'a>(&'a [u8]);

impl ToSql for Json<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Json(json) => ValueRef::Text(json),
        }))
    }
}

/// The position and time of a stored event.
pub(super) struct EventHeader {
    pub(super) id: EventId,
    pub(super) position: u64,
    pub(super) seq: u64,
    pub(super) time: u64,
}

impl EventHeader {
    pub(super) fn with_event(self, event: Event) -> Envelope {
        let Self { id, position, seq, time } = self;
        Envelope { id, position, seq, time, event }
    }
}

/// Appends an event and updates the projected rows.
pub(super) fn store(
    scope: &mut Scope<'_>,
    id: EventId,
    time: u64,
    event: &Event,
    record: &Record,
) -> Result<EventHeader, Fault> {
    let seq = scope.next_seq(event.session_id())?;
    let connection = scope.connection;
    let position = connection
        .prepare_cached(
            "INSERT INTO event (id, aggregate_id, seq, type, data, time) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .insert(params![
            id.as_str(),
            event.session_id().as_str(),
            number(seq),
            format!("{}.{}", event.name(), event.version()),
            Json(record.properties()),
            number(time)
        ])?;
    project_event(connection, event, seq, time, record)?;
    draft::settle(scope, event)?;
    Ok(EventHeader { id, position: position.unsigned_abs(), seq, time })
}

/// Updates the projected rows for an event with a `seq` and a time.
pub(super) fn project_event(
    connection: &Connection,
    event: &Event,
    seq: u64,
    stored: u64,
    record: &Record,
) -> Result<(), Fault> {
    for step in changes::project(event, seq, stored, record)? {
        run(connection, &step)?;
    }
    Ok(())
}

/// Runs a step of a change.
pub(super) fn run(connection: &Connection, step: &Step<'_>) -> Result<(), Fault> {
    match step {
        Step::RequireSession(id) => require_session(connection, id),
        Step::Run { sql, values, unchanged } => {
            let changed = connection.prepare_cached(sql)?.execute(params_from_iter(values))?;
            if changed == 0 { explain(connection, *unchanged) } else { Ok(()) }
        }
    }
}

/// The error of a statement that changed no row, unless nothing had to change.
fn explain(connection: &Connection, unchanged: Unchanged<'_>) -> Result<(), Fault> {
    for (question, error) in unchanged.questions() {
        let exists = match question {
            Exists::Session(id) => connection.prepare_cached(sql::SESSION_EXISTS)?.exists([id])?,
            Exists::Message { session, id } => {
                connection.prepare_cached(sql::MESSAGE_EXISTS)?.exists([id, session])?
            }
        };
        if !exists {
            return Err(error.into());
        }
    }
    unchanged.error().map_or(Ok(()), |error| Err(error.into()))
}

fn require_session(connection: &Connection, id: &SessionId) -> Result<(), Fault> {
    let exists = connection.prepare_cached(sql::SESSION_EXISTS)?.exists([id.as_str()])?;
    if exists { Ok(()) } else { Err(unknown("session", id).into()) }
}

/// Saves a project.
pub(super) fn project(connection: &Connection, project: &Project) -> Result<(), Fault> {
    let values = changes::project_values(project)?;
    connection.prepare_cached(sql::PUT_PROJECT)?.execute(params_from_iter(values))?;
    Ok(())
}

/// Rebuilds all rows from the log. Returns the number of events.
pub(super) fn replay(connection: &mut Connection) -> Result<u64, Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Messages, parts and requests are deleted with their sessions.
    transaction.execute(sql::DELETE_SESSIONS, [])?;
    let (mut position, mut count) = (0, 0);
    loop {
        let page = query::events(&transaction, position, i64::MAX as u64, REPLAY_PAGE)?;
        let Some(last) = page.last() else { break };
        position = last.position;
        for envelope in &page {
            let record = Record::new(&envelope.event)?;
            project_event(&transaction, &envelope.event, envelope.seq, envelope.time, &record)?;
            count += 1;
        }
    }
    transaction.commit()?;
    Ok(count)
}
