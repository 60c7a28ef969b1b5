//! Usage statistics, and free SQL on the store's file from outside the store.
//!
//! [`query`] opens its own connection and waits at most [`BUSY_TIMEOUT`] for other processes. Rows are projections
//! of the event log, so a replay of the log undoes what a query changes; the caller is notified if a statement writes.

use std::path::Path;
use std::time::Duration;

use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, OpenFlags, params};

use crate::error::Fault;
use crate::{Error, sql};

/// How long a statement waits for another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How many models or tools are counter separately.
pub(crate) const MAX_KINDS: u32 = 10_000;

/// One value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// `NULL`.
    Null,
    /// A whole number.
    Integer(i64),
    /// A floating-point number.
    Real(f64),
    /// A text. Invalid UTF-8 is replaced.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// A step of a query, in this order for each statement.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryEvent {
    /// A statement that changes the database will run.
    Writes,
    /// The columns of a statement that returns rows.
    Columns(Vec<String>),
    /// One row.
    Row(Vec<Cell>),
    /// The statement has no more rows.
    End,
}

/// The caller wants no more rows.
#[derive(Debug)]
pub struct Stop;

/// Runs SQL on the store's file, statement by statement, and passes each row to `emit` as it is read.
///
/// Returns early, without an error, if `emit` returns [`Stop`].
pub fn query(
    path: &Path,
    sql: &str,
    mut emit: impl FnMut(QueryEvent) -> Result<(), Stop>,
) -> Result<(), Error> {
    let connection = open(path).map_err(|fault| fault.at(path))?;
    let mut batch = Batch::new(&connection, sql);
    while let Some(mut statement) = batch.next().map_err(|error| statement_error(error, path))? {
        let outcome = (|| -> rusqlite::Result<Result<(), Stop>> {
            if !statement.readonly() {
                connection.pragma_update(None, "query_only", false)?;
                if emit(QueryEvent::Writes).is_err() {
                    return Ok(Err(Stop));
                }
            }
            let columns: Vec<_> = statement.column_names().map(str::to_owned).collect();
            let count = columns.len();
            if count > 0 && emit(QueryEvent::Columns(columns)).is_err() {
                return Ok(Err(Stop));
            }
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let cells =
                    (0..count).map(|at| row.get_ref(at).map(cell)).collect::<rusqlite::Result<_>>()?;
                if emit(QueryEvent::Row(cells)).is_err() {
                    return Ok(Err(Stop));
                }
            }
            if count > 0 && emit(QueryEvent::End).is_err() {
                return Ok(Err(Stop));
            }
            Ok(Ok(()))
        })();
        if outcome.map_err(|error| statement_error(error, path))?.is_err() {
            return Ok(());
        }
        connection.pragma_update(None, "query_only", true).map_err(|error| Fault::Sql(error).at(path))?;
    }
    Ok(())
}

/// Distinguishes errors of the statement from errors of the file.
fn statement_error(error: rusqlite::Error, path: &Path) -> Error {
    match &error {
        rusqlite::Error::SqlInputError { .. } => Error::Refused { reason: error.to_string() },
        rusqlite::Error::SqliteFailure(failure, _)
            if matches!(
                failure.code,
                rusqlite::ErrorCode::Unknown
                    | rusqlite::ErrorCode::ConstraintViolation
                    | rusqlite::ErrorCode::TypeMismatch
                    | rusqlite::ErrorCode::TooBig
            ) =>
        {
            Error::Refused { reason: error.to_string() }
        }
        rusqlite::Error::InvalidParameterCount(..) => Error::Refused { reason: error.to_string() },
        _ => Fault::Sql(error).at(path),
    }
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(number) => Cell::Real(number),
        ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Cell::Blob(bytes.to_vec()),
    }
}

/// The usage of sessions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Usage {
    /// The number of sessions.
    pub sessions: u64,
    /// The number of their messages.
    pub messages: u64,
    /// When the first session was created, in milliseconds since 1970.
    pub first: u64,
    /// When the last session was changed, in milliseconds since 1970.
    pub last: u64,
    /// The cost in US dollars.
    pub cost: f64,
    /// Tokens of all sessions.
    pub tokens: Tokens,
    /// The tokens of each session, in ascending order.
    pub each: Vec<u64>,
    /// Usage by model, most used first.
    pub models: Vec<ModelUsage>,
    /// The number of calls of each tool, most used first.
    pub tools: Vec<(String, u64)>,
}

/// Sums of tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Input tokens that were not cached.
    pub input: u64,
    /// Output tokens without reasoning.
    pub output: u64,
    /// Reasoning tokens.
    pub reasoning: u64,
    /// Input tokens read from the provider's cache.
    pub cache_read: u64,
    /// Input tokens written to the provider's cache.
    pub cache_write: u64,
}

/// The usage of one model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelUsage {
    /// The model as `provider/model`.
    pub model: String,
    /// The number of answers.
    pub messages: u64,
    /// Their tokens.
    pub tokens: Tokens,
    /// Their cost in US dollars.
    pub cost: f64,
}

/// Sums up the usage of the sessions that changed since a time, of one project or all. In a read transaction.
pub(crate) fn sum_up(connection: &Connection, since: u64, project: Option<&str>) -> Result<Usage, Fault> {
    let since = sql::to_column(since);
    let mut usage = Usage { first: u64::MAX, ..Usage::default() };
    let mut statement = connection.prepare(sql::STATISTICS_SESSIONS)?;
    let mut rows = statement.query(params![since, project, "", i64::MAX])?;
    while let Some(row) = rows.next()? {
        let number = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
        let tokens = tokens([number(0)?, number(1)?, number(2)?, number(3)?, number(4)?]);
        usage.add_session(tokens, row.get(5)?, [number(6)?, number(7)?]);
    }
    usage.each.sort_unstable();
    let count = connection
        .query_row(sql::STATISTICS_MESSAGES, params![since, project], |row| row.get::<_, i64>(0))?;
    usage.messages = count.unsigned_abs();
    let kinds = params![since, project, MAX_KINDS];
    usage.models = connection
        .prepare(sql::STATISTICS_MODELS_SQLITE)?
        .query_map(kinds, |row| {
            let number = |at: usize| row.get::<_, f64>(at).map(|number| number as u64);
            Ok(ModelUsage {
                model: row.get(0)?,
                messages: row.get::<_, i64>(1)?.unsigned_abs(),
                tokens: tokens([number(2)?, number(3)?, number(4)?, number(5)?, number(6)?]),
                cost: row.get(7)?,
            })
        })?
        .collect::<rusqlite::Result<_>>()?;
    usage.tools = connection
        .prepare(sql::STATISTICS_TOOLS_SQLITE)?
        .query_map(kinds, |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(usage)
}

impl Usage {
    /// Adds a session that was created at the first of two times and changed at the last.
    pub(crate) fn add_session(&mut self, tokens: Tokens, cost: f64, [first, last]: [u64; 2]) {
        self.sessions += 1;
        self.tokens = self.tokens.and(tokens);
        self.each.push(tokens.sum());
        self.cost += cost;
        self.first = self.first.min(first);
        self.last = self.last.max(last);
    }
}

pub(crate) fn tokens([input, output, reasoning, cache_read, cache_write]: [u64; 5]) -> Tokens {
    Tokens { input, output, reasoning, cache_read, cache_write }
}

impl Tokens {
    /// The sum of all kinds.
    #[must_use]
    pub fn sum(self) -> u64 {
        [self.input, self.output, self.reasoning, self.cache_read, self.cache_write]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
        }
    }
}

/// A time in the user's time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Local {
    /// The year.
    pub year: u32,
    /// The month, from 1.
    pub month: u32,
    /// The day, from 1.
    pub day: u32,
    /// The hour, from 0.
    pub hour: u32,
    /// The minute.
    pub minute: u32,
}

/// Converts times, in milliseconds since 1970, to the user's time zone.
///
/// Uses SQLite, because nothing else in the program knows time zones.
pub fn local_times(moments: &[u64]) -> Result<Vec<Local>, Error> {
    let read = || -> rusqlite::Result<Vec<Local>> {
        let connection = Connection::open_in_memory()?;
        let mut statement = connection.prepare(
            "SELECT strftime('%Y', t), strftime('%m', t), strftime('%d', t), strftime('%H', t), strftime('%M', t)
             FROM (SELECT datetime(?1, 'unixepoch', 'localtime') AS t)",
        )?;
        let one = |moment: &u64| {
            let seconds = i64::try_from(moment / 1000).unwrap_or(0);
            statement.query_row([seconds], |row| {
                let number = |at: usize| {
                    row.get::<_, Option<String>>(at)
                        .map(|text| text.and_then(|text| text.parse().ok()).unwrap_or(0))
                };
                Ok(Local {
                    year: number(0)?,
                    month: number(1)?,
                    day: number(2)?,
                    hour: number(3)?,
                    minute: number(4)?,
                })
            })
        };
        moments.iter().map(one).collect()
    };
    read().map_err(|error| Fault::Sql(error).at(Path::new(":memory:")))
}

/// The start of a time's day in the user's time zone. Both are milliseconds since 1970.
pub fn day_start(moment: u64) -> Result<u64, Error> {
    let read = || -> rusqlite::Result<i64> {
        let sql =
            "SELECT CAST(strftime('%s', ?1, 'unixepoch', 'localtime', 'start of day', 'utc') AS integer)";
        let seconds = i64::try_from(moment / 1000).unwrap_or(0);
        Ok(Connection::open_in_memory()?
            .query_row(sql, [seconds], |row| row.get::<_, Option<i64>>(0))?
            .unwrap_or(0))
    };
    let seconds = read().map_err(|error| Fault::Sql(error).at(Path::new(":memory:")))?;
    Ok(u64::try_from(seconds).unwrap_or(0) * 1000)
}

fn open(path: &Path) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}
