//! A copy of the sessions in the form of OpenCode's database, for programs that read usage from that file.
//!
//! The copy is a complete file of its own: readers see it whole or not at all, and nothing that they do changes the store.
//! It is read-only, and a database that another program created is never replaced.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, params};

use crate::Error;
use crate::error::Fault;

/// Marks a file as a view, in the header of the database.
const APPLICATION_ID: i32 = 0x4357_5657;
/// How long the copy waits for writers of the store.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The tables of the view with the columns that OpenCode's have.
const TABLES: [(&str, &str); 5] = [
    (
        "project",
        "id text PRIMARY KEY, worktree text NOT NULL, vcs text, name text, icon_url text, icon_url_override text, \
         icon_color text, time_created integer NOT NULL, time_updated integer NOT NULL, time_initialized integer, \
         sandboxes text NOT NULL, commands text",
    ),
    (
        "session",
        "id text PRIMARY KEY, project_id text NOT NULL, workspace_id text, parent_id text, slug text NOT NULL, \
         directory text NOT NULL, path text, title text NOT NULL, version text NOT NULL, share_url text, \
         summary_additions integer, summary_deletions integer, summary_files integer, summary_diffs text, metadata text, \
         cost real DEFAULT 0 NOT NULL, tokens_input integer DEFAULT 0 NOT NULL, \
         tokens_output integer DEFAULT 0 NOT NULL, tokens_reasoning integer DEFAULT 0 NOT NULL, \
         tokens_cache_read integer DEFAULT 0 NOT NULL, tokens_cache_write integer DEFAULT 0 NOT NULL, revert text, \
         permission text, agent text, model text, time_created integer NOT NULL, time_updated integer NOT NULL, \
         time_compacting integer, time_archived integer",
    ),
    (
        "message",
        "id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, \
         data text NOT NULL",
    ),
    (
        "part",
        "id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL, \
         time_updated integer NOT NULL, data text NOT NULL",
    ),
    (
        "todo",
        "session_id text NOT NULL, content text NOT NULL, status text NOT NULL, priority text NOT NULL, \
         position integer NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL, \
         PRIMARY KEY (session_id, position)",
    ),
];
/// The indexes that readers of OpenCode's database rely on.
const INDEXES: &str =
    "CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
CREATE INDEX part_session_idx ON part (session_id);
CREATE INDEX session_project_idx ON session (project_id);
CREATE INDEX session_parent_idx ON session (parent_id);";

/// Writes the view of a store's file to `target`. Returns the number of sessions in it.
///
/// # Errors
///
/// Fails with [`Error::Foreign`] if another program created `target`; the file is unchanged then.
pub fn write(database: &Path, target: &Path) -> Result<u64, Error> {
    check_owner(target)?;
    let new = NewFile::create(target)?;
    let count = fill(&new.0, database).map_err(|fault| fault.at(&new.0))?;
    let unwritable = |source: std::io::Error| unwritable(target, source);
    fs::set_permissions(&new.0, Permissions::from_mode(0o400)).map_err(unwritable)?;
    File::open(&new.0).and_then(|file| file.sync_all()).map_err(unwritable)?;
    fs::rename(&new.0, target).map_err(unwritable)?;
    Ok(count)
}

/// Removes the view. Returns whether there was one.
///
/// # Errors
///
/// Fails with [`Error::Foreign`] if another program created `target`.
pub fn remove(target: &Path) -> Result<bool, Error> {
    check_owner(target)?;
    match fs::remove_file(target) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(unwritable(target, error)),
    }
}

/// A number that changes whenever a store's file is changed by another connection.
pub struct Changes(Connection, PathBuf);

impl Changes {
    /// Starts to observe a store's file.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be opened.
    pub fn of(database: &Path) -> Result<Self, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(database, flags);
        let connection = opened.map_err(|error| Fault::Sql(error).at(database))?;
        Ok(Self(connection, database.to_owned()))
    }

    /// Returns the number.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn version(&self) -> Result<i64, Error> {
        let version = self.0.pragma_query_value(None, "data_version", |row| row.get(0));
        version.map_err(|error| Fault::Sql(error).at(&self.1))
    }
}

/// A file that becomes the view, and is removed if it does not.
struct NewFile(PathBuf);

impl NewFile {
    fn create(target: &Path) -> Result<Self, Error> {
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".new-{}", std::process::id()));
        let path = target.with_file_name(name);
        let unwritable = |source: std::io::Error| unwritable(target, source);
        if let Some(directory) = target.parent() {
            fs::create_dir_all(directory).map_err(unwritable)?;
        }
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(unwritable(error)),
            _ => {}
        }
        OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path).map_err(unwritable)?;
        Ok(Self(path))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After success it has another name.
        drop(fs::remove_file(&self.0));
    }
}

fn unwritable(path: &Path, source: std::io::Error) -> Error {
    Error::Unwritable { path: path.to_owned(), source: std::sync::Arc::new(source) }
}

/// Fails unless a file is missing or a view.
fn check_owner(target: &Path) -> Result<(), Error> {
    let foreign = || Error::Foreign { path: target.to_owned() };
    let Ok(metadata) = target.symlink_metadata() else { return Ok(()) };
    if !metadata.is_file() {
        return Err(foreign());
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let id = Connection::open_with_flags(target, flags)
        .and_then(|connection| connection.pragma_query_value(None, "application_id", |row| row.get(0)));
    match id {
        Ok(APPLICATION_ID) => Ok(()),
        Ok(_) | Err(_) => Err(foreign()),
    }
}

fn fill(path: &Path, database: &Path) -> Result<u64, Fault> {
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    // The file is thrown away if the copy fails, so it needs no journal.
    connection.pragma_update(None, "synchronous", "OFF")?;
    let text = database.to_str().ok_or_else(|| Error::Foreign { path: database.to_owned() })?;
    connection.execute("ATTACH DATABASE ?1 AS store", params![text])?;
    let transaction = connection.transaction()?;
    for (table, columns) in TABLES {
        transaction.execute_batch(&format!("CREATE TABLE main.{table} ({columns});"))?;
        let names = column_names(columns);
        transaction.execute_batch(&format!(
            "INSERT INTO main.{table} ({names}) SELECT {names} FROM store.{table};"
        ))?;
    }
    transaction.execute_batch(INDEXES)?;
    let count: i64 = transaction.query_row("SELECT count(*) FROM main.session", [], |row| row.get(0))?;
    transaction.commit()?;
    connection.close().map_err(|(_, error)| error)?;
    Ok(count.unsigned_abs())
}

/// The names in the definition of a table.
fn column_names(definition: &str) -> String {
    let columns = definition
        .split(", ")
        .filter(|column| column.contains(" text") || column.contains(" integer") || column.contains(" real"));
    columns.filter_map(|column| column.split_whitespace().next()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_of_another_program_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (store, target) = (folder.path().join("store.db"), folder.path().join("opencode.db"));
        let source = Connection::open(&store).unwrap();
        for (table, columns) in TABLES {
            source.execute_batch(&format!("CREATE TABLE {table} ({columns});")).unwrap();
        }
        let foreign = Connection::open(&target).unwrap();
        foreign.execute_batch("CREATE TABLE session (id text);").unwrap();
        drop(foreign);
        let before = fs::read(&target).unwrap();
        assert!(matches!(write(&store, &target), Err(Error::Foreign { .. })));
        assert!(matches!(remove(&target), Err(Error::Foreign { .. })));
        assert_eq!(fs::read(&target).unwrap(), before);
        fs::remove_file(&target).unwrap();
        fs::write(&target, "no database").unwrap();
        assert!(matches!(write(&store, &target), Err(Error::Foreign { .. })));
        fs::remove_file(&target).unwrap();

        for expected in 0..3_u64 {
            assert_eq!(write(&store, &target).unwrap(), expected, "a view is replaced");
            assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o400);
            source
                .execute_batch(&format!(
                    "INSERT INTO session (id, project_id, slug, directory, title, version, time_created, time_updated) \
                     VALUES ('ses_{expected}', 'p', 's', '/', 't', 'v', 1, 2);"
                ))
                .unwrap();
        }
        assert!(remove(&target).unwrap() && !remove(&target).unwrap());
        let left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["store.db"]);
    }
}
