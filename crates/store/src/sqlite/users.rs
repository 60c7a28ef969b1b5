//! Usage and the audit log in SQLite.

use codewright_proto::SessionId;
use rusqlite::{Connection, Row, TransactionBehavior, params, params_from_iter};

use crate::error::Fault;
use crate::sql::{self, to_column as number};
use crate::users::{MAX_AUDIT_PAGE, MAX_RUNNING};
use crate::{Account, Audited, Error, Usage};

/// Adds an entry and removes the oldest ones above the limit.
pub(super) fn audit(connection: &mut Connection, entry: &Audited) -> Result<(), Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.prepare_cached(sql::INSERT_AUDIT)?.execute(params_from_iter(entry.values()))?;
    transaction.prepare_cached(sql::TRIM_AUDIT)?.execute(params_from_iter(entry.trim_values()))?;
    transaction.commit()?;
    Ok(())
}

pub(super) fn usage(connection: &Connection, of: &Account, day: u64) -> Result<Usage, Fault> {
    let read = |row: &Row<'_>| Ok(Usage { tokens: row.get::<_, i64>(0)?.unsigned_abs(), cost: row.get(1)? });
    Ok(connection.prepare_cached(of.usage())?.query_row(params![of.name(), number(day)], read)?)
}

/// The sessions of an account that have an owner, dead or alive.
pub(super) fn owned(connection: &Connection, of: &Account) -> Result<Vec<SessionId>, Fault> {
    let mut statement = connection.prepare_cached(of.running())?;
    let rows =
        statement.query_map(params![of.name(), number(MAX_RUNNING as u64)], |row| row.get::<_, String>(0))?;
    let parse = |id: rusqlite::Result<String>| {
        SessionId::parse(&id?).map_err(|error| Fault::Error(Error::unreadable("session", error)))
    };
    rows.map(parse).collect()
}

pub(super) fn audited(
    connection: &Connection,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<Audited>, Fault> {
    let mut statement = connection.prepare_cached(sql::AUDIT)?;
    let limit = limit.min(MAX_AUDIT_PAGE) as u64;
    let read = |row: &Row<'_>| {
        Ok(Audited {
            id: row.get::<_, i64>(0)?.unsigned_abs(),
            time: row.get::<_, i64>(1)?.unsigned_abs(),
            account: row.get(2)?,
            action: row.get(3)?,
            target: row.get(4)?,
            detail: row.get(5)?,
            request: row.get(6)?,
            is_refusal: row.get::<_, i64>(7)? != 0,
        })
    };
    let rows = statement.query_map(params![number(before.unwrap_or(u64::MAX)), number(limit)], read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}
