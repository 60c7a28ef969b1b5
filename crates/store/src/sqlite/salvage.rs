//! Repairs a damaged database: copies its readable content into a new one.
//!
//! It works on a copy. If the complete log is readable, the rows are rebuilt from it. Otherwise the rows are copied, and if
//! rows are missing too, the readable part of the log is applied to them. The damaged files are kept under a dated name.
//! An interrupted repair is restarted or finished by the next start. The time is limited.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use codewright_proto::{EventId, MessageId, PartBody, SessionId};
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, params_from_iter};

use super::damage::beside;
use super::{apply, damage, open, query};
use crate::error::Fault;
use crate::record::Record;
use crate::{Error, Salvage, rows, upcast};

/// The time limit for reading a damaged file. Everything that is not read by then is lost.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The number of rows that one statement reads.
const PAGE: usize = 500;

/// The maximum number of unreadable places in a table. After that the rest is lost.
const MAX_HOLES: u32 = 10_000;

/// The size of the header of a SQLite file.
const HEADER_BYTES: usize = 100;

/// The page size of all databases of this program.
const PAGE_BYTES: u64 = 4096;

/// The greatest row id that is searched after an unreadable place.
const MAX_ROWID: i64 = 1 << 40;

/// The tables, in the order of their references.
const TABLES: [&str; 8] =
    ["project", "session", "message", "part", "permission_request", "todo", "event_sequence", "event"];

/// Replaces a damaged database by a repaired one. Needs exclusive use.
pub(super) fn run(path: &Path, now_ms: u64) -> Result<Salvage, Fault> {
    let broken = |error| Fault::Error(Error::unwritable(path, error));
    damage::mark(path);
    let finished = beside(path, ".salvaged");
    let work = beside(path, ".salvage");
    let mut salvage = if finished.exists() {
        // An earlier start has done all but the last steps.
        Salvage::default()
    } else {
        // Leftovers of an earlier attempt.
        drop(fs::remove_dir_all(&work));
        crate::node::create_directory(&work).map_err(broken)?;
        let salvage = fill(path, &work)?;
        fs::rename(work.join("new.db"), &finished).map_err(broken)?;
        salvage
    };
    salvage.kept_at = keep(path, now_ms).map_err(broken)?;
    for ending in ["-wal", "-shm"] {
        drop(fs::remove_file(beside(path, ending)));
    }
    fs::rename(&finished, path).map_err(broken)?;
    drop(fs::remove_dir_all(&work));
    damage::clear_mark(path).map_err(broken)?;
    Ok(salvage)
}

/// Keeps the damaged files under unused names.
fn keep(path: &Path, now_ms: u64) -> std::io::Result<PathBuf> {
    let date = date(now_ms / 1000);
    let mut kept = beside(path, &format!(".damaged-{date}"));
    let mut attempt = 1;
    while kept.exists() && attempt < 1000 {
        attempt += 1;
        kept = beside(path, &format!(".damaged-{date}-{attempt}"));
    }
    for ending in ["", "-wal"] {
        let from = beside(path, ending);
        if from.exists() && fs::hard_link(&from, beside(&kept, ending)).is_err() {
            fs::copy(&from, beside(&kept, ending))?;
        }
    }
    Ok(kept)
}

/// `20261122-031500`, in UTC.
fn date(seconds: u64) -> String {
    let (mut days, second) = (seconds / 86_400, seconds % 86_400);
    let mut year = 1970;
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while days >= 365 + u64::from(leap(year)) && year < 9999 {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{:02}-{hour:02}{minute:02}{second:02}", days + 1)
}

/// Creates `new.db` in the working directory.
fn fill(path: &Path, work: &Path) -> Result<Salvage, Fault> {
    let deadline = Instant::now() + TIMEOUT;
    let mut new = open::fresh(&work.join("new.db"))?;
    let mut salvage = Salvage::default();
    if let Some(old) = readable(path, work)? {
        let transaction = new.transaction()?;
        let mut tables = HashMap::new();
        for table in TABLES {
            tables.insert(table, copy(&old, &transaction, table, deadline)?);
        }
        let lost = |table| tables.get(table).is_none_or(|copied: &CopyResult| copied.holes > 0);
        let log_is_whole = !lost("event") && !lost("event_sequence") && is_dense(&transaction)?;
        let rows_are_whole = !["session", "message", "part", "todo"].into_iter().any(lost);
        insert_missing_parents(&transaction)?;
        if log_is_whole {
            transaction.execute("DELETE FROM session", [])?;
        }
        // The columns were checked, the JSON was not.
        transaction.execute("UPDATE session SET data = NULL WHERE data IS NOT NULL", [])?;
        if log_is_whole || !rows_are_whole {
            project(&transaction)?;
        }
        delete_orphans(&transaction)?;
        salvage = counts(&transaction)?;
        salvage.is_whole = log_is_whole;
        transaction.commit()?;
    }
    new.close().map_err(|(_, error)| Fault::Sql(error))?;
    Ok(salvage)
}

/// A connection to a copy of the database, with a repaired header if SQLite needs it.
fn readable(path: &Path, work: &Path) -> Result<Option<Connection>, Fault> {
    let broken = |error| Fault::Error(Error::unwritable(path, error));
    let fresh = fs::read(work.join("new.db")).map_err(broken)?;
    for repaired_bytes in [0, HEADER_BYTES, PAGE_BYTES as usize] {
        let copied = work.join(format!("old-{repaired_bytes}.db"));
        for ending in ["", "-wal"] {
            let from = beside(path, ending);
            if from.exists() {
                fs::copy(&from, beside(&copied, ending)).map_err(broken)?;
            }
        }
        if repaired_bytes > 0 {
            repair_header(&copied, &fresh[..repaired_bytes.min(fresh.len())]).map_err(broken)?;
        }
        if let Ok(old) = connect(&copied) {
            return Ok(Some(old));
        }
        drop(fs::remove_file(&copied));
    }
    Ok(None)
}

/// Overwrites the start of a damaged database with that of a new one.
fn repair_header(path: &Path, header: &[u8]) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    let length = file.metadata()?.len().max(PAGE_BYTES);
    file.set_len(length)?;
    let mut header = header.to_owned();
    // The use of a write-ahead log, and the number of pages.
    header[18..20].copy_from_slice(&[2, 2]);
    let pages = u32::try_from(length / PAGE_BYTES).unwrap_or(u32::MAX);
    header[28..32].copy_from_slice(&pages.to_be_bytes());
    file.write_all(&header)
}

fn connect(path: &Path) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // A database of this program has at least the log or the sessions.
    let sql = "SELECT count(*) FROM sqlite_schema WHERE name IN ('event', 'session')";
    let found: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    if found == 0 {
        return Err(rusqlite::Error::QueryReturnedNoRows.into());
    }
    Ok(connection)
}

/// The result of copying a table.
struct CopyResult {
    /// The number of unreadable places.
    holes: u32,
}

/// Copies the readable rows by row id, and skips unreadable places.
fn copy(old: &Connection, new: &Connection, table: &str, deadline: Instant) -> Result<CopyResult, Fault> {
    let mut copied = CopyResult { holes: 0 };
    let mut next = i64::MIN;
    loop {
        if Instant::now() > deadline || copied.holes > MAX_HOLES {
            copied.holes += 1;
            return Ok(copied);
        }
        let (rows, is_broken) = page(old, table, next);
        let is_end = rows.len() < PAGE;
        for row in rows {
            next = row.rowid.saturating_add(1);
            let Some(values) = row.values else {
                copied.holes += 1;
                continue;
            };
            if !is_sound(table, &values) || !insert(new, table, &values)? {
                copied.holes += 1;
            }
        }
        if is_broken {
            copied.holes += 1;
            match next_readable(old, table, next) {
                Some(rowid) => next = rowid,
                None => return Ok(copied),
            }
        } else if is_end {
            return Ok(copied);
        }
    }
}

struct OldRow {
    rowid: i64,
    /// `None` if a value is not valid text.
    values: Option<Vec<(String, Value)>>,
}

/// The rows from a row id on, and whether an unreadable place ended them.
fn page(old: &Connection, table: &str, from: i64) -> (Vec<OldRow>, bool) {
    let mut found = Vec::new();
    let sql = format!("SELECT rowid AS rowid_, * FROM {table} WHERE rowid >= ?1 ORDER BY rowid LIMIT {PAGE}");
    let Ok(mut statement) = old.prepare_cached(&sql) else { return (found, true) };
    let names: Vec<_> = statement.column_names().map(str::to_owned).collect();
    let Ok(mut rows) = statement.query([from]) else { return (found, true) };
    loop {
        match rows.next() {
            Ok(Some(row)) => {
                let Ok(rowid) = row.get::<_, i64>(0) else { return (found, true) };
                let value = |at: usize| Some((names[at].clone(), row.get::<_, Value>(at).ok()?));
                found.push(OldRow { rowid, values: (1..names.len()).map(value).collect() });
            }
            Ok(None) => return (found, false),
            Err(_) => return (found, true),
        }
    }
}

/// The next row id after an unreadable place, found by doubling and bisection.
fn next_readable(old: &Connection, table: &str, from: i64) -> Option<i64> {
    let sql = format!("SELECT rowid FROM {table} WHERE rowid >= ?1 ORDER BY rowid LIMIT 1");
    let probe = |at: i64| -> Option<Option<i64>> {
        let mut statement = old.prepare_cached(&sql).ok()?;
        let mut rows = statement.query([at]).ok()?;
        match rows.next() {
            Ok(Some(row)) => Some(row.get(0).ok()),
            Ok(None) => Some(None),
            Err(_) => None,
        }
    };
    let start = from.max(0);
    let (mut broken, mut step) = (start, 1);
    let mut sound = loop {
        let at = start.saturating_add(step);
        if at > MAX_ROWID {
            return None;
        }
        if probe(at).is_some() {
            break at;
        }
        (broken, step) = (at, step * 2);
    };
    while sound - broken > 1 {
        let middle = broken + (sound - broken) / 2;
        if probe(middle).is_some() {
            sound = middle;
        } else {
            broken = middle;
        }
    }
    probe(sound).flatten()
}

/// Whether the values of a row are valid.
fn is_sound(table: &str, values: &[(String, Value)]) -> bool {
    let text = |name: &str| {
        values.iter().find(|(of, _)| of == name).and_then(|(_, value)| match value {
            Value::Text(text) => Some(text.as_str()),
            Value::Null | Value::Integer(_) | Value::Real(_) | Value::Blob(_) => None,
        })
    };
    let has = |name| text(name).is_some();
    match table {
        "event" => {
            let event = text("type").zip(text("data")).map(|(kind, data)| upcast::decode(kind, data));
            let id = text("id").is_some_and(|id| EventId::parse(id).is_ok());
            let of = text("aggregate_id");
            id && matches!(event, Some(Ok(event)) if Some(event.session_id().as_str()) == of)
        }
        "message" => {
            let parsed = (|| {
                let id = MessageId::parse(text("id")?).ok()?;
                let session = SessionId::parse(text("session_id")?).ok()?;
                rows::parse_message(&id, &session, text("data")?).ok()
            })();
            parsed.is_some()
        }
        "part" => {
            has("id") && text("data").is_some_and(|data| serde_json::from_str::<PartBody>(data).is_ok())
        }
        "session" => has("project_id") && text("id").is_some_and(|id| SessionId::parse(id).is_ok()),
        "permission_request" => text("data")
            .is_some_and(|data| serde_json::from_str::<codewright_proto::PermissionRequest>(data).is_ok()),
        "event_sequence" => has("aggregate_id"),
        "project" => has("id") && has("worktree"),
        _ => has("session_id"),
    }
}

/// Inserts a row. Returns whether it was accepted.
fn insert(new: &Connection, table: &str, values: &[(String, Value)]) -> Result<bool, Fault> {
    let names: Vec<_> = values.iter().map(|(name, _)| name.as_str()).collect();
    let places = vec!["?"; values.len()].join(", ");
    let sql = format!("INSERT OR IGNORE INTO {table} ({}) VALUES ({places})", names.join(", "));
    // Unknown columns and violated constraints are results of damage.
    let Ok(mut statement) = new.prepare_cached(&sql) else { return Ok(false) };
    match statement.execute(params_from_iter(values.iter().map(|(_, value)| value))) {
        Ok(changed) => Ok(changed > 0),
        Err(error) => match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::ConstraintViolation | rusqlite::ErrorCode::TypeMismatch) => Ok(false),
            _ => Err(error.into()),
        },
    }
}

/// Whether the events of every session are complete.
fn is_dense(new: &Connection) -> Result<bool, Fault> {
    let sql = "SELECT (SELECT total(seq + 1) FROM event_sequence) = (SELECT count(*) FROM event)
        AND NOT EXISTS (SELECT 1 FROM event WHERE aggregate_id NOT IN (SELECT aggregate_id FROM event_sequence))";
    Ok(new.query_row(sql, [], |row| row.get(0))?)
}

/// Inserts lost rows that other rows refer to.
fn insert_missing_parents(new: &Connection) -> Result<(), Fault> {
    new.execute_batch(
        "INSERT OR IGNORE INTO project (id, worktree, time_created, time_updated, sandboxes)
             SELECT project_id, directory, time_created, time_updated, '[]' FROM session;
         INSERT OR IGNORE INTO project (id, worktree, time_created, time_updated, sandboxes)
             SELECT DISTINCT data ->> '$.info.projectID', data ->> '$.info.directory', time, time, '[]'
             FROM event WHERE type GLOB 'session.*' AND data ->> '$.info.projectID' IS NOT NULL;
         INSERT INTO event_sequence (aggregate_id, seq) SELECT aggregate_id, max(seq) FROM event
             WHERE true GROUP BY aggregate_id
             ON CONFLICT (aggregate_id) DO UPDATE SET seq = max(seq, excluded.seq);
         INSERT OR IGNORE INTO event_sequence (aggregate_id, seq) SELECT id, 0 FROM session;
         UPDATE event_sequence SET owner_id = NULL;",
    )?;
    Ok(())
}

/// Applies the log and skips events that fail.
fn project(new: &Connection) -> Result<(), Fault> {
    let mut position = 0;
    loop {
        let page = query::events(new, position, i64::MAX as u64, PAGE)?;
        let Some(last) = page.last() else { return Ok(()) };
        position = last.position;
        for envelope in &page {
            new.execute_batch("SAVEPOINT event")?;
            let applied = Record::new(&envelope.event).map_err(Fault::Error).and_then(|record| {
                apply::project_event(new, &envelope.event, envelope.seq, envelope.time, &record)
            });
            if applied.is_err() {
                new.execute_batch("ROLLBACK TO event")?;
            }
            new.execute_batch("RELEASE event")?;
        }
    }
}

/// Removes rows whose parents are missing.
fn delete_orphans(new: &Connection) -> Result<(), Fault> {
    new.execute_batch(
        "DELETE FROM message WHERE session_id NOT IN (SELECT id FROM session);
         DELETE FROM part WHERE message_id NOT IN (SELECT id FROM message);
         DELETE FROM permission_request WHERE session_id NOT IN (SELECT id FROM session);
         DELETE FROM todo WHERE session_id NOT IN (SELECT id FROM session);",
    )?;
    Ok(())
}

fn counts(new: &Connection) -> Result<Salvage, Fault> {
    let count = |sql: &str| -> Result<u64, Fault> {
        Ok(new.query_row(sql, [], |row| row.get::<_, i64>(0))?.unsigned_abs())
    };
    let events = count("SELECT count(*) FROM event")?;
    let expected = count("SELECT coalesce(sum(seq + 1), 0) FROM event_sequence")?;
    Ok(Salvage {
        sessions: count("SELECT count(*) FROM session")?,
        messages: count("SELECT count(*) FROM message")?,
        events,
        events_lost: expected.saturating_sub(events),
        is_whole: false,
        kept_at: PathBuf::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_computed_from_seconds() {
        for (seconds, expected) in [
            (0, "19700101-000000"),
            (951_782_399, "20000228-235959"),
            (951_782_400, "20000229-000000"),
            (1_795_293_409, "20261121-203649"),
            (4_107_542_400, "21000301-000000"),
        ] {
            assert_eq!(date(seconds), expected, "{seconds}");
        }
    }
}
