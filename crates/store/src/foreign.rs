//! Reads the database of another program without changing it.
//!
//! SQLite leaves traces even if it only reads: shared memory next to the file, marks in it, and locks. So the files are
//! copied to a private directory first; the copy is repeated if they change meanwhile. Missing columns and tables count as
//! empty, and unknown ones are reported.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row, params};
use serde_json::{Map, Value};
use tempfile::TempDir;

use crate::Error;
use crate::error::Fault;
use crate::node::create_directory;

/// The prefix of the names of copies.
const PREFIX: &str = "import-";

/// Older copies are leftovers of killed processes.
const LEFTOVER_AGE: Duration = Duration::from_hours(24);

/// The maximum size of a database and its write-ahead log together.
const MAX_COPY_BYTES: u64 = 64 * 1024 * 1024 * 1024;

/// How long to retry until the owner does not write to the main file.
const COPY_TIMEOUT: Duration = Duration::from_secs(60);

/// The least age of the last change. The clock of a file system ticks a few times in this time, so a later change has
/// another timestamp.
const MIN_CHANGE_AGE: Duration = Duration::from_millis(50);

/// The maximum number of sessions.
const MAX_SESSIONS: u32 = 1_000_000;

/// The maximum number of other rows.
const MAX_ROWS: u32 = 10_000;

/// The maximum number of messages in a page.
const PAGE_ROWS: u32 = 256;

/// The size of a page of messages. A single message may be larger.
const PAGE_BYTES: usize = 8 * 1024 * 1024;

/// The size of the header of a write-ahead log, which identifies the log.
const LOG_HEADER_BYTES: usize = 32;

/// The tables that are read, with their known columns.
const TABLES: [(&str, &[&str]); 5] = [
    ("session", &SESSION),
    (
        "project",
        &[
            "id",
            "worktree",
            "vcs",
            "name",
            "icon_url",
            "icon_url_override",
            "icon_color",
            "time_created",
            "time_updated",
            "time_initialized",
            "sandboxes",
            "commands",
        ],
    ),
    ("message", &["id", "session_id", "time_created", "time_updated", "data"]),
    ("part", &["id", "message_id", "session_id", "time_created", "time_updated", "data"]),
    ("todo", &["session_id", "content", "status", "priority", "position", "time_created", "time_updated"]),
];

/// The columns of a session.
const SESSION: [&str; 29] = [
    "id",
    "project_id",
    "workspace_id",
    "parent_id",
    "slug",
    "directory",
    "path",
    "title",
    "version",
    "share_url",
    "summary_additions",
    "summary_deletions",
    "summary_files",
    "summary_diffs",
    "metadata",
    "cost",
    "tokens_input",
    "tokens_output",
    "tokens_reasoning",
    "tokens_cache_read",
    "tokens_cache_write",
    "revert",
    "permission",
    "agent",
    "model",
    "time_created",
    "time_updated",
    "time_compacting",
    "time_archived",
];

/// Tables without content of sessions: accounts, logs, caches and internal data.
const IGNORED_TABLES: [&str; 12] = [
    "workspace",
    "data_migration",
    "account_state",
    "account",
    "control_account",
    "credential",
    "event_sequence",
    "event",
    "project_directory",
    "session_share",
    "migration",
    "__drizzle_migrations",
];

/// A copy of another program's database. Deleted when dropped.
#[derive(Debug)]
pub struct Foreign {
    path: PathBuf,
    connection: Connection,
    columns: BTreeMap<String, Vec<String>>,
    _copy: TempDir,
}

/// A row of a message or part.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignRow {
    /// The row's id.
    pub id: String,
    /// The creation time in milliseconds since 1970.
    pub time_created: u64,
    /// Its JSON with the ids from the row's columns; a text if it is not JSON.
    pub value: Value,
    /// The size of the JSON in the row.
    pub bytes: usize,
}

impl Foreign {
    /// Copies a database into a new directory in `scratch` and opens the copy.
    pub fn open(database: &Path, scratch: &Path) -> Result<Self, Error> {
        // With a store in another place nothing else has created it.
        create_directory(scratch).map_err(|error| Error::unwritable(scratch, error))?;
        sweep(scratch);
        let copy = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(scratch)
            .map_err(|error| Error::unwritable(scratch, error))?;
        let path = copy_files(database, copy.path())?;
        let fault = |fault: Fault| fault.at(database);
        let connection = open_copy(&path).map_err(fault)?;
        let columns = columns(&connection).map_err(fault)?;
        if !columns.contains_key("session") || !columns.contains_key("message") {
            return Err(Error::Foreign { path: database.to_owned() });
        }
        Ok(Self { path: database.to_owned(), connection, columns, _copy: copy })
    }

    /// Texts about unknown and missing tables and columns, for the user.
    pub fn oddities(&self) -> Result<Vec<String>, Error> {
        let mut found = Vec::new();
        for (table, known) in TABLES {
            let Some(columns) = self.columns.get(table) else {
                found.push(format!("the table `{table}` is missing"));
                continue;
            };
            let unknown = columns.iter().filter(|column| !known.contains(&column.as_str()));
            found.extend(
                unknown.map(|column| format!("the column `{table}.{column}` is unknown and was ignored")),
            );
            let missing = known.iter().filter(|column| !columns.iter().any(|there| there == *column));
            found.extend(missing.map(|column| format!("the column `{table}.{column}` is missing")));
        }
        let read = |name: &str| TABLES.iter().any(|(table, _)| *table == name);
        let others =
            self.columns.keys().filter(|name| !read(name) && !IGNORED_TABLES.contains(&name.as_str()));
        for table in others {
            let sql = format!("SELECT count(*) FROM \"{}\"", table.replace('"', "\"\""));
            let rows: i64 = self.sql(self.connection.query_row(&sql, [], |row| row.get(0)))?;
            if rows > 0 {
                found.push(format!("the table `{table}` has {rows} rows that were ignored"));
            }
        }
        Ok(found)
    }

    /// The ids of all sessions, oldest first.
    pub fn sessions(&self) -> Result<Vec<String>, Error> {
        let sql = format!(
            "SELECT id FROM session ORDER BY {}, id LIMIT {MAX_SESSIONS}",
            self.column("session", "time_created")
        );
        self.rows(&sql, [], |row| row.get(0))
    }

    /// A text that changes whenever the session does.
    pub fn fingerprint(&self, session: &str) -> Result<String, Error> {
        let updated = self.column("session", "time_updated");
        let count = |table: &str| {
            let Some(columns) = self.columns.get(table) else { return "'0'".to_owned() };
            let changed =
                if columns.iter().any(|column| column == "time_updated") { "time_updated" } else { "0" };
            format!(
                "(SELECT count(*) || ':' || coalesce(max({changed}), 0) FROM {table} WHERE session_id = ?1)"
            )
        };
        let sql = format!(
            "SELECT {updated} || '/' || {} || '/' || {} || '/' || {} FROM session WHERE id = ?1",
            count("message"),
            count("part"),
            count("todo")
        );
        self.sql(self.connection.prepare_cached(&sql).and_then(|mut statement| {
            statement.query_row([session], |row| Ok(row.get::<_, Option<String>>(0)?.unwrap_or_default()))
        }))
    }

    /// A session in the format of an export; `None` if it does not exist.
    pub fn session(&self, id: &str) -> Result<Option<Value>, Error> {
        let sql = format!("SELECT {} FROM session WHERE id = ?1", self.present("session", &SESSION));
        Ok(self.rows(&sql, [id], |row| Ok(session_value(row)))?.pop())
    }

    /// All projects, in the format of API lists.
    pub fn projects(&self) -> Result<Vec<Value>, Error> {
        let Some((_, known)) = TABLES.iter().find(|(table, _)| *table == "project") else {
            return Ok(Vec::new());
        };
        if !self.columns.contains_key("project") {
            return Ok(Vec::new());
        }
        let sql = format!("SELECT {} FROM project LIMIT {MAX_ROWS}", self.present("project", known));
        self.rows(&sql, [], |row| Ok(project_value(row)))
    }

    /// The messages of a session after one of them, oldest first. Empty only at the end.
    pub fn messages(&self, session: &str, after: Option<(u64, &str)>) -> Result<Vec<ForeignRow>, Error> {
        let (time, id) = after.map_or((-1, ""), |(time, id)| (i64::try_from(time).unwrap_or(i64::MAX), id));
        let created = self.column("message", "time_created");
        let sql = format!(
            "SELECT id, {created} AS time_created, data FROM message
             WHERE session_id = ?1 AND ({created}, id) > (?2, ?3) ORDER BY {created}, id LIMIT {PAGE_ROWS}"
        );
        let mut found = Vec::new();
        let mut bytes = 0;
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params![session, time, id])?;
            while bytes < PAGE_BYTES
                && let Some(row) = rows.next()?
            {
                let row = item(row, &[("sessionID", session)])?;
                bytes += row.bytes;
                found.push(row);
            }
            Ok(())
        };
        let done = read();
        self.sql(done)?;
        Ok(found)
    }

    /// The parts of a message, oldest first.
    pub fn parts(&self, session: &str, message: &str) -> Result<Vec<ForeignRow>, Error> {
        if !self.columns.contains_key("part") {
            return Ok(Vec::new());
        }
        let created = self.column("part", "time_created");
        let sql =
            format!("SELECT id, {created} AS time_created, data FROM part WHERE message_id = ?1 ORDER BY id");
        let ids = [("sessionID", session), ("messageID", message)];
        self.rows(&sql, [message], |row| item(row, &ids))
    }

    /// A session's to-do list.
    pub fn todos(&self, session: &str) -> Result<Vec<Value>, Error> {
        if !self.columns.contains_key("todo") {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT content, status, priority FROM todo WHERE session_id = ?1 ORDER BY position LIMIT {MAX_ROWS}"
        );
        self.rows(&sql, [session], |row| {
            let mut todo = Map::new();
            for name in ["content", "status", "priority"] {
                todo.insert(name.to_owned(), plain(row.get_ref(name)?));
            }
            Ok(Value::Object(todo))
        })
    }

    /// The column, or `0` if this database lacks it.
    fn column(&self, table: &str, name: &'static str) -> &'static str {
        let has = self.columns.get(table).is_some_and(|columns| columns.iter().any(|column| column == name));
        if has { name } else { "0" }
    }

    /// The columns that this database has.
    fn present(&self, table: &str, known: &[&str]) -> String {
        let there = self.columns.get(table).map(Vec::as_slice).unwrap_or_default();
        let present = known.iter().filter(|column| there.iter().any(|name| name == *column));
        present.copied().collect::<Vec<_>>().join(", ")
    }

    fn rows<T>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Error> {
        let rows = || -> rusqlite::Result<Vec<T>> {
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.query_map(params, read)?.collect()
        };
        self.sql(rows())
    }

    fn sql<T>(&self, result: rusqlite::Result<T>) -> Result<T, Error> {
        result.map_err(|error| Fault::Sql(error).at(&self.path))
    }
}

/// Removes copies of killed processes. A failure only wastes space.
fn sweep(scratch: &Path) {
    for entry in fs::read_dir(scratch).into_iter().flatten().flatten() {
        let age = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .ok()
            .and_then(|date| date.elapsed().ok());
        let is_copy = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_copy && age.is_some_and(|age| age > LEFTOVER_AGE) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

/// Copies a consistent state of the database and its write-ahead log.
fn copy_files(database: &Path, into: &Path) -> Result<PathBuf, Error> {
    let copy = into.join("copy.db");
    let beside = |path: &Path, end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let (log, log_copy) = (beside(database, "-wal"), beside(&copy, "-wal"));
    let (journal, journal_copy) = (beside(database, "-journal"), beside(&copy, "-journal"));
    let unreadable = |error| Error::unreadable(format!("file `{}`", database.display()), error);
    let deadline = Instant::now() + COPY_TIMEOUT;
    loop {
        let before = state(database, &log).map_err(unreadable)?;
        let size = before.database.len() + fs::metadata(&log).map_or(0, |log| log.len());
        if size > MAX_COPY_BYTES {
            let error = io::Error::other(format!("it has {size} bytes, the limit is {MAX_COPY_BYTES}"));
            return Err(unreadable(error));
        }
        if settled(&before.database) {
            copy_one(database, &copy)?;
            copy_one(&log, &log_copy)?;
            copy_one(&journal, &journal_copy)?;
            // While its header is the same, the log only grows, and a truncated last record is invalid. So the copies
            // are consistent if the main file has not changed.
            if state(database, &log).map_err(unreadable)?.is(&before) {
                return Ok(copy);
            }
        }
        if Instant::now() > deadline {
            return Err(Error::Busy { path: database.to_owned() });
        }
        std::thread::sleep(MIN_CHANGE_AGE);
    }
}

/// The properties that must not change during a copy.
struct State {
    database: Metadata,
    log: Vec<u8>,
}

impl State {
    fn is(&self, other: &Self) -> bool {
        let date = |metadata: &Metadata| metadata.modified().ok();
        self.log == other.log
            && self.database.len() == other.database.len()
            && date(&self.database) == date(&other.database)
    }
}

fn state(database: &Path, log: &Path) -> io::Result<State> {
    let metadata = fs::metadata(database)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut header = Vec::new();
    match File::open(log) {
        Ok(file) => drop(file.take(LOG_HEADER_BYTES as u64).read_to_end(&mut header)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(State { database: metadata, log: header })
}

/// Whether the last change is old enough that the next has another timestamp.
fn settled(metadata: &Metadata) -> bool {
    // A missing timestamp or one in the future is not usable.
    metadata.modified().ok().and_then(|date| date.elapsed().ok()).is_none_or(|age| age > MIN_CHANGE_AGE)
}

/// Copies a file. If it is missing, the copy is removed.
fn copy_one(from: &Path, to: &Path) -> Result<(), Error> {
    let read = |error| Error::unreadable(format!("file `{}`", from.display()), error);
    match File::open(from) {
        Ok(mut source) => {
            let write = |error: io::Error| match error.kind() {
                io::ErrorKind::StorageFull => Error::Full { path: to.to_owned() },
                _ => Error::unwritable(to, error),
            };
            let mut options = fs::OpenOptions::new();
            options.write(true).create(true).truncate(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut target = options.open(to).map_err(write)?;
            io::copy(&mut source, &mut target).map_err(write)?;
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::remove_file(to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::unwritable(to, error)),
            _ => Ok(()),
        },
        Err(error) => Err(read(error)),
    }
}

fn open_copy(path: &Path) -> Result<Connection, Fault> {
    // Opened for writing, because the log is merged into the copy.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "query_only", true)?;
    // The schema of another program's database must not call functions.
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

fn columns(connection: &Connection) -> Result<BTreeMap<String, Vec<String>>, Fault> {
    let sql = "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c
        WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' LIMIT 10000";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        found.entry(row.get(0)?).or_default().push(row.get(1)?);
    }
    Ok(found)
}

/// A row with its JSON, completed by the ids.
fn item(row: &Row<'_>, ids: &[(&str, &str)]) -> rusqlite::Result<ForeignRow> {
    let id = match plain(row.get_ref("id")?) {
        Value::String(id) => id,
        other => other.to_string(),
    };
    let data = row.get_ref("data")?;
    let bytes = data.as_bytes_or_null().ok().flatten().unwrap_or_default();
    let value = match serde_json::from_slice(bytes) {
        Ok(Value::Object(mut fields)) => {
            fields.insert("id".to_owned(), id.clone().into());
            for (name, value) in ids {
                fields.insert((*name).to_owned(), (*value).into());
            }
            Value::Object(fields)
        }
        Ok(other) => other,
        Err(_) => String::from_utf8_lossy(bytes).into_owned().into(),
    };
    let time_created = row.get::<_, Option<i64>>("time_created").unwrap_or_default().unwrap_or_default();
    let time_created = u64::try_from(time_created).unwrap_or_default();
    Ok(ForeignRow { id, time_created, value, bytes: bytes.len() })
}

/// A column's value as JSON.
fn plain(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) | ValueRef::Blob(text) => String::from_utf8_lossy(text).into_owned().into(),
    }
}

/// A column with JSON. A text that is not JSON stays a text.
fn parsed(value: Value) -> Value {
    match value {
        Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        other => other,
    }
}

fn session_value(row: &Row<'_>) -> Value {
    let get = |column: &str| row.get_ref(column).map_or(Value::Null, plain);
    let mut session = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            session.insert(name.to_owned(), value);
        }
    };
    for (name, column) in [
        ("id", "id"),
        ("slug", "slug"),
        ("projectID", "project_id"),
        ("workspaceID", "workspace_id"),
        ("directory", "directory"),
        ("path", "path"),
        ("parentID", "parent_id"),
        ("title", "title"),
        ("agent", "agent"),
        ("version", "version"),
        ("cost", "cost"),
    ] {
        put(name, get(column));
    }
    for (name, column) in
        [("model", "model"), ("metadata", "metadata"), ("permission", "permission"), ("revert", "revert")]
    {
        put(name, parsed(get(column)));
    }
    let fields = |pairs: &[(&str, &str)]| {
        let there = pairs.iter().map(|(name, column)| ((*name).to_owned(), get(column)));
        there.filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>()
    };
    let mut summary = fields(&[
        ("additions", "summary_additions"),
        ("deletions", "summary_deletions"),
        ("files", "summary_files"),
    ]);
    let diffs = parsed(get("summary_diffs"));
    if !summary.is_empty() {
        if !diffs.is_null() {
            summary.insert("diffs".to_owned(), diffs);
        }
        put("summary", summary.into());
    }
    let mut tokens =
        fields(&[("input", "tokens_input"), ("output", "tokens_output"), ("reasoning", "tokens_reasoning")]);
    tokens.insert(
        "cache".to_owned(),
        fields(&[("read", "tokens_cache_read"), ("write", "tokens_cache_write")]).into(),
    );
    put("tokens", tokens.into());
    let share = get("share_url");
    if !share.is_null() {
        put("share", Map::from_iter([("url".to_owned(), share)]).into());
    }
    put(
        "time",
        fields(&[
            ("created", "time_created"),
            ("updated", "time_updated"),
            ("compacting", "time_compacting"),
            ("archived", "time_archived"),
        ])
        .into(),
    );
    session.into()
}

fn project_value(row: &Row<'_>) -> Value {
    let get = |column: &str| row.get_ref(column).map_or(Value::Null, plain);
    let fields = |pairs: &[(&str, &str)]| {
        let there = pairs.iter().map(|(name, column)| ((*name).to_owned(), get(column)));
        there.filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>()
    };
    let mut project = fields(&[("id", "id"), ("worktree", "worktree"), ("vcs", "vcs"), ("name", "name")]);
    let icon = fields(&[("url", "icon_url"), ("override", "icon_url_override"), ("color", "icon_color")]);
    if !icon.is_empty() {
        project.insert("icon".to_owned(), icon.into());
    }
    for (name, column) in [("commands", "commands"), ("sandboxes", "sandboxes")] {
        let value = parsed(get(column));
        if !value.is_null() {
            project.insert(name.to_owned(), value);
        }
    }
    let time = fields(&[
        ("created", "time_created"),
        ("updated", "time_updated"),
        ("initialized", "time_initialized"),
    ]);
    project.insert("time".to_owned(), time.into());
    project.into()
}
