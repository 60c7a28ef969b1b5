//! Opening a store's file: its place, its settings, its schema.
//!
//! Any number of processes may open a new file at once; one of them creates the
//! schema and the others wait for it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::damage::{self, Use};
use super::{query, salvage};
use crate::error::Fault;
use crate::{Error, Salvage};

/// The schema, one file a version. A released file is never edited.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/0001_init.sql"),
    include_str!("../../migrations/0002_todo.sql"),
    include_str!("../../migrations/0003_lease_draft.sql"),
    include_str!("../../migrations/0004_stop.sql"),
    include_str!("../../migrations/0005_session_json.sql"),
    include_str!("../../migrations/0006_newer_events.sql"),
    include_str!("../../migrations/0007_permission.sql"),
];

/// How long a statement waits for another process.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long opening waits for others that are opening.
const OPEN_TIMEOUT: Duration = Duration::from_secs(20);

/// How long opening waits before it looks again.
const OPEN_PAUSE: Duration = Duration::from_millis(10);

/// How much memory the writer's pages take, in KiB.
const WRITER_CACHE_KIB: i64 = 4096;

/// How much memory the pages of one reader take, in KiB.
const READER_CACHE_KIB: i64 = 2048;

/// How many pages the write-ahead log has before they are moved into the file: just under 8 MiB. Each
/// time costs two waits for the disk, and a page that was written often is moved once.
const MAX_WAL_PAGES: i64 = 2000;

/// How large the write-ahead log stays after that.
const MAX_WAL_BYTES: i64 = 8 * 1024 * 1024;

/// How many prepared statements a connection keeps.
const STATEMENTS: usize = 40;

/// A store's file, opened for writing.
pub(super) struct Opened {
    pub(super) connection: Connection,
    pub(super) in_use: Option<Use>,
    /// What was saved, if the file was damaged.
    pub(super) salvage: Option<Salvage>,
    /// The position of its last event.
    pub(super) last_position: u64,
}

/// Opens or creates a store's file for writing. A damaged one is repaired, once.
pub(super) fn file(path: &Path, now_ms: u64) -> Result<Opened, Fault> {
    let mut salvage = None;
    loop {
        let in_use = Use::shared(path)?;
        let noted = || {
            let source = Arc::new(io::Error::from(io::ErrorKind::InvalidData));
            Fault::Error(Error::Corrupt { path: path.to_owned(), source })
        };
        let opened = if damage::is_noted(path) { Err(noted()) } else { patiently(path) };
        match opened {
            Ok((connection, last_position)) => {
                return Ok(Opened { connection, in_use: Some(in_use), salvage, last_position });
            }
            Err(fault) if fault.is_damage() && salvage.is_none() => {
                drop(in_use);
                let Some(alone) = Use::alone(path) else { return Err(fault) };
                // Another process may have repaired it while this one waited.
                if damage::is_noted(path) || patiently(path).is_err_and(|fault| fault.is_damage()) {
                    salvage = Some(salvage::run(path, now_ms)?);
                }
                drop(alone);
            }
            Err(fault) => return Err(fault),
        }
    }
}

fn patiently(path: &Path) -> Result<(Connection, u64), Fault> {
    create_private(path).map_err(|error| Error::unwritable(path, error))?;
    let deadline = Instant::now() + OPEN_TIMEOUT;
    // Switching to the write-ahead log and cleaning up after a killed process answer
    // "busy" without waiting, so the waiting is done here.
    loop {
        match try_file(path) {
            Err(fault) if fault.is_busy() && Instant::now() < deadline => std::thread::sleep(OPEN_PAUSE),
            Err(fault) => return Err(fault),
            Ok(connection) => {
                let last_position = query::last_position(&connection)?;
                return Ok((connection, last_position));
            }
        }
    }
}

fn try_file(path: &Path) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // SQLite silently opens what it may not write for reading.
    if connection.is_readonly("main")? {
        return Err(Error::unwritable(path, io::ErrorKind::PermissionDenied.into()).into());
    }
    // Looked at before anything is changed: a file of another program stays as it is.
    schema_version(&connection, path)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "wal_autocheckpoint", MAX_WAL_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", MAX_WAL_BYTES)?;
    settle(&connection, WRITER_CACHE_KIB)?;
    migrate(&mut connection, path)?;
    Ok(connection)
}

/// An empty store in memory.
pub(super) fn memory() -> Result<Opened, Fault> {
    let mut connection = Connection::open_in_memory()?;
    settle(&connection, WRITER_CACHE_KIB)?;
    migrate(&mut connection, Path::new(":memory:"))?;
    Ok(Opened { connection, in_use: None, salvage: None, last_position: 0 })
}

/// An empty store in a new file, whole without a write-ahead log and without foreign keys.
pub(super) fn fresh(path: &Path) -> Result<Connection, Fault> {
    create_private(path).map_err(|error| Error::unwritable(path, error))?;
    let mut connection = Connection::open(path)?;
    migrate(&mut connection, path)?;
    connection.pragma_update(None, "foreign_keys", false)?;
    Ok(connection)
}

/// Another connection to an open store, for queries alone.
pub(super) fn reader(path: &Path) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    settle(&connection, READER_CACHE_KIB)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn settle(connection: &Connection, cache_kib: i64) -> Result<(), Fault> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // The log is left beside the file: making it anew costs every start two waits for the disk.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // A statement is planned once. SQLite would plan some of them anew for every value that is bound.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    Ok(())
}

/// The version of the file's schema: 0 for an empty file, else one that we know.
fn schema_version(connection: &Connection, path: &Path) -> Result<usize, Fault> {
    // One statement sees one state: another process may migrate between two.
    let (found, is_empty): (i64, bool) = connection.query_row(
        "SELECT (SELECT user_version FROM pragma_user_version), (SELECT count(*) = 0 FROM sqlite_schema)",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let known = MIGRATIONS.len() as i64;
    if found > known {
        return Err(Error::Newer { path: path.to_owned(), found, known }.into());
    }
    let ours = match usize::try_from(found) {
        Ok(0) => is_empty,
        Ok(_) => true,
        Err(_) => false,
    };
    if !ours {
        return Err(Error::Foreign { path: path.to_owned() }.into());
    }
    Ok(found as usize)
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), Fault> {
    if schema_version(connection, path)? == MIGRATIONS.len() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it while this one waited for the lock.
    let version = schema_version(&transaction, path)?;
    for migration in &MIGRATIONS[version..] {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "user_version", MIGRATIONS.len() as i64)?;
    transaction.commit()?;
    Ok(())
}

/// Makes sure that a file exists which only its owner can read.
///
/// The file gets its name when it is finished and closed. Were it opened here under
/// its final name, closing it would drop the locks that another thread's SQLite
/// holds on it by then: such locks belong to the process, not to the handle.
fn create_private(path: &Path) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        create_directories(directory)?;
    }
    let (unnamed, created) = create_beside(path)?;
    drop(created);
    let linked = fs::hard_link(&unnamed, path);
    fs::remove_file(&unnamed)?;
    match linked {
        Ok(()) => Ok(()),
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // A file system without links has no permissions either; SQLite creates the file.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(error),
    }
}

/// Creates an empty file whose name nobody else uses.
fn create_beside(path: &Path) -> io::Result<(PathBuf, fs::File)> {
    const ATTEMPTS: u32 = 1000;
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut attempt = 0;
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".new-{}-{attempt}", std::process::id()));
        match options.open(&name) {
            Ok(file) => return Ok((name.into(), file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}

pub(super) fn create_directories(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;
    use crate::sqlite::json;

    #[test]
    fn a_statement_is_planned_once_whatever_is_bound() {
        let connection = memory().unwrap().connection;
        for message in ["msg_1", "msg_2", "msg_3"] {
            let mut statement = connection.prepare_cached(query::PARTS).unwrap();
            assert!(statement.query([message]).unwrap().next().unwrap().is_none());
        }
        let statement = connection.prepare_cached(query::PARTS).unwrap();
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
    }

    #[test]
    fn lists_are_read_without_sorting() {
        let connection = memory().unwrap().connection;
        let sessions =
            ["true", "project_id = 'p'", "project_id = 'p' AND directory = '/p'"].map(|condition| {
                format!("SELECT data FROM session WHERE {condition} ORDER BY time_updated DESC, id LIMIT 9")
            });
        let pages = [json::MESSAGES, json::MORE_MESSAGES, json::LEFT_OUT, query::PARTS].map(str::to_owned);
        for sql in sessions.into_iter().chain(pages) {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let plan: Vec<String> =
                statement.raw_query().mapped(|row| row.get("detail")).collect::<Result<_, _>>().unwrap();
            assert!(!plan.is_empty() && plan.iter().all(|step| !step.contains("TEMP B-TREE")), "{plan:?}");
        }
    }
}
