//! Opens the store's file: creates it, configures the connection and migrates the schema.
//!
//! Any number of processes can open a new file at the same time. One creates the schema and the others wait.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::damage::{self, FileUse};
use super::{query, salvage};
use crate::error::Fault;
use crate::{Error, Salvage};

/// The schema, one file per version. Released files are never edited.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/0001_init.sql"),
    include_str!("../../migrations/0002_todo.sql"),
    include_str!("../../migrations/0003_lease_draft.sql"),
    include_str!("../../migrations/0004_stop.sql"),
    include_str!("../../migrations/0005_session_json.sql"),
    include_str!("../../migrations/0006_newer_events.sql"),
    include_str!("../../migrations/0007_permission.sql"),
    include_str!("../../migrations/0008_users.sql"),
];

/// How long a statement waits for another process.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long opening waits for other processes that are opening the file.
const OPEN_TIMEOUT: Duration = Duration::from_secs(20);

/// The pause before opening is retried.
const OPEN_PAUSE: Duration = Duration::from_millis(10);

/// The writer's page cache in KiB.
const WRITER_CACHE_KIB: i64 = 4096;

/// A reader's page cache in KiB.
const READER_CACHE_KIB: i64 = 2048;

/// The size of the write-ahead log in pages at which it is moved into the file: just under 8 MiB. Each checkpoint waits
/// for the disk twice, and a page that was written often is moved once.
const MAX_WAL_PAGES: i64 = 2000;

/// The size of the write-ahead log after a checkpoint.
const MAX_WAL_BYTES: i64 = 8 * 1024 * 1024;

/// The number of prepared statements that a connection caches.
const STATEMENTS: usize = 40;

/// A store's file, opened for writing.
pub(super) struct Opened {
    pub(super) connection: Connection,
    pub(super) in_use: Option<FileUse>,
    /// The result of the repair, if the file was damaged.
    pub(super) salvage: Option<Salvage>,
    /// The position of the last event.
    pub(super) last_position: u64,
}

/// Opens or creates a store's file for writing. A damaged one is repaired, once.
pub(super) fn file(path: &Path, now_ms: u64) -> Result<Opened, Fault> {
    let mut salvage = None;
    loop {
        let in_use = FileUse::shared(path)?;
        let marked = || {
            let source = Arc::new(io::Error::from(io::ErrorKind::InvalidData));
            Fault::Error(Error::Corrupt { path: path.to_owned(), source })
        };
        let opened = if damage::is_marked(path) { Err(marked()) } else { open_with_retries(path) };
        match opened {
            Ok((connection, last_position)) => {
                return Ok(Opened { connection, in_use: Some(in_use), salvage, last_position });
            }
            Err(fault) if fault.is_damage() && salvage.is_none() => {
                drop(in_use);
                let Some(alone) = FileUse::exclusive(path) else { return Err(fault) };
                // Another process may have repaired it while this one waited.
                if damage::is_marked(path) || open_with_retries(path).is_err_and(|fault| fault.is_damage()) {
                    salvage = Some(salvage::run(path, now_ms)?);
                }
                drop(alone);
            }
            Err(fault) => return Err(fault),
        }
    }
}

fn open_with_retries(path: &Path) -> Result<(Connection, u64), Fault> {
    create_private(path).map_err(|error| Error::unwritable(path, error))?;
    let deadline = Instant::now() + OPEN_TIMEOUT;
    // Switching to the write-ahead log and recovering after a killed process return "busy" without waiting, so the
    // retries are here.
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
    // SQLite silently opens a file read-only if it is not writable.
    if connection.is_readonly("main")? {
        return Err(Error::unwritable(path, io::ErrorKind::PermissionDenied.into()).into());
    }
    // Checked before any change, so that a file of another program is not modified.
    let version = schema_version(&connection, path)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "wal_autocheckpoint", MAX_WAL_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", MAX_WAL_BYTES)?;
    configure(&connection, WRITER_CACHE_KIB)?;
    if version < MIGRATIONS.len() {
        migrate(&mut connection, path)?;
    }
    Ok(connection)
}

/// An empty store in memory.
pub(super) fn memory() -> Result<Opened, Fault> {
    let mut connection = Connection::open_in_memory()?;
    configure(&connection, WRITER_CACHE_KIB)?;
    migrate(&mut connection, Path::new(":memory:"))?;
    Ok(Opened { connection, in_use: None, salvage: None, last_position: 0 })
}

/// An empty store in a new file, without a write-ahead log and foreign keys.
pub(super) fn fresh(path: &Path) -> Result<Connection, Fault> {
    create_private(path).map_err(|error| Error::unwritable(path, error))?;
    let mut connection = Connection::open(path)?;
    migrate(&mut connection, path)?;
    connection.pragma_update(None, "foreign_keys", false)?;
    Ok(connection)
}

/// Another connection to an open store, only for queries.
pub(super) fn reader(path: &Path) -> Result<Connection, Fault> {
    let connection = counter(path)?;
    configure(&connection, READER_CACHE_KIB)?;
    Ok(connection)
}

/// Another connection to an open store, only for counting commits. It reads no schema.
pub(super) fn counter(path: &Path) -> Result<Connection, Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn configure(connection: &Connection, cache_kib: i64) -> Result<(), Fault> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // The log stays next to the file, because recreating it makes every start wait for the disk twice.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Statements are planned once. SQLite would otherwise plan some of them again for each bound value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "cache_size", -cache_kib)?;
    Ok(())
}

/// The version of the file's schema: 0 for an empty file, otherwise a known version.
fn schema_version(connection: &Connection, path: &Path) -> Result<usize, Fault> {
    // One statement, because another process may migrate between two.
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
    // Another process may have migrated while this one waited for the lock.
    let version = schema_version(&transaction, path)?;
    for migration in &MIGRATIONS[version..] {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "user_version", MIGRATIONS.len() as i64)?;
    transaction.commit()?;
    Ok(())
}

/// Writes the version of the schema again, to find out whether the file can be written.
pub(super) fn rewrite_version(connection: &mut Connection) -> Result<(), Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.pragma_update(None, "user_version", MIGRATIONS.len() as i64)?;
    transaction.commit()?;
    Ok(())
}

/// Creates a file that only its owner can read, if it does not exist.
///
/// The file is created under another name and linked after it was closed. Closing a handle with the final name would
/// release the locks of another thread's SQLite, because such locks belong to the process, not to the handle.
fn create_private(path: &Path) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        crate::node::create_directory(directory)?;
    }
    let (unnamed, created) = create_beside(path)?;
    drop(created);
    let linked = fs::hard_link(&unnamed, path);
    fs::remove_file(&unnamed)?;
    match linked {
        Ok(()) => Ok(()),
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // A file system without links has no permissions either. SQLite creates the file.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(error),
    }
}

/// Creates an empty file with an unused name.
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

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;
    use crate::sql;

    #[test]
    fn a_statement_is_planned_once_for_all_bound_values() {
        let connection = memory().unwrap().connection;
        for message in ["msg_1", "msg_2", "msg_3"] {
            let mut statement = connection.prepare_cached(sql::PARTS_SQLITE).unwrap();
            assert!(statement.query([message]).unwrap().next().unwrap().is_none());
        }
        let statement = connection.prepare_cached(sql::PARTS_SQLITE).unwrap();
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
    }

    #[test]
    fn lists_are_read_without_sorting() {
        let connection = memory().unwrap().connection;
        let sessions =
            ["true", "project_id = 'p'", "project_id = 'p' AND directory = '/p'"].map(|condition| {
                format!("SELECT data FROM session WHERE {condition} ORDER BY time_updated DESC, id LIMIT 9")
            });
        let pages = [sql::MESSAGES_SQLITE, sql::MORE_MESSAGES_SQLITE, sql::FIRST_OMITTED, sql::PARTS_SQLITE]
            .map(str::to_owned);
        for sql in sessions.into_iter().chain(pages) {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let plan: Vec<String> =
                statement.raw_query().mapped(|row| row.get("detail")).collect::<Result<_, _>>().unwrap();
            assert!(!plan.is_empty() && plan.iter().all(|step| !step.contains("TEMP B-TREE")), "{plan:?}");
        }
    }
}
