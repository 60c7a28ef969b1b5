//! Atomic replacement of a file, and file locks that end with their process.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::Error;

/// Limit of a file of credentials.
const FILE_LIMIT_BYTES: u64 = 1024 * 1024;
/// How long a write waits for other processes, whose writes take milliseconds.
const WRITE_WAIT: Duration = Duration::from_secs(10);
/// The interval between attempts to get a lock.
const TRY_EVERY: Duration = Duration::from_millis(10);
/// Only the user may read credentials.
const MODE: u32 = 0o600;
/// Only the user may list the directory.
const DIRECTORY_MODE: u32 = 0o700;

/// A lock between processes and threads. The operating system releases it when its process ends.
#[derive(Debug)]
pub struct Lock {
    /// Closing the file releases the lock. The file is never removed, because waiting processes
    /// have it open.
    _file: File,
}

impl Lock {
    /// Acquires the lock. Blocks the thread for at most 10 s.
    pub(super) fn acquire(path: &Path) -> Result<Self, Error> {
        let until = Instant::now() + WRITE_WAIT;
        loop {
            if let Some(lock) = Self::try_acquire(path)? {
                return Ok(lock);
            }
            if Instant::now() >= until {
                let seconds = WRITE_WAIT.as_secs();
                return Err(Error::busy(format!(
                    "another process has held `{}` for {seconds} s",
                    path.display()
                )));
            }
            sleep(TRY_EVERY);
        }
    }

    /// Acquires the lock if it is free.
    pub(super) fn try_acquire(path: &Path) -> Result<Option<Self>, Error> {
        make_directory(path)?;
        let file = OpenOptions::new().create(true).append(true).mode(MODE).open(path);
        let file = file.map_err(|why| failed(path, "open the lock", &why))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(why)) => Err(failed(path, "lock", &why)),
        }
    }
}

/// Returns the entries of a file. A missing or empty file has none.
pub(super) fn read(path: &Path) -> Result<Map<String, Value>, Error> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(why) => return Err(failed(path, "read", &why)),
    };
    let mut bytes = Vec::new();
    file.take(FILE_LIMIT_BYTES + 1).read_to_end(&mut bytes).map_err(|why| failed(path, "read", &why))?;
    if bytes.len() as u64 > FILE_LIMIT_BYTES {
        return Err(Error::rejected(format!("`{}` is larger than 1 MiB", path.display())));
    }
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| Error::rejected(format!("`{}` is not UTF-8 text", path.display())))?;
    parse(&text, &path.display().to_string())
}

/// Replaces the file atomically. The caller must hold the lock.
pub(super) fn write(path: &Path, entries: &Map<String, Value>) -> Result<(), Error> {
    make_directory(path)?;
    // Users keep such files elsewhere and link to them. Keep the link.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let next = with_suffix(path, ".next");
    // A process may have died while writing. The lock keeps other writers away.
    match fs::remove_file(&next) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(failed(&next, "remove", &why)),
        Ok(()) | Err(_) => {}
    }
    let text = serde_json::to_vec_pretty(entries).map_err(|why| failed(path, "write", &why.into()))?;
    let written =
        OpenOptions::new().create_new(true).write(true).mode(MODE).open(&next).and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()
        });
    let renamed = written.and_then(|()| fs::rename(&next, path));
    renamed.map_err(|why| failed(path, "write", &why))?;
    // Make the rename survive a power failure. Best effort: some directories cannot be synced.
    drop(path.parent().map(|directory| File::open(directory).and_then(|file| file.sync_all())));
    Ok(())
}

fn make_directory(path: &Path) -> Result<(), Error> {
    let Some(directory) = path.parent() else { return Ok(()) };
    let made = DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory);
    made.map_err(|why| failed(directory, "make the directory", &why))
}

pub(super) fn with_suffix(path: &Path, end: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(end);
    path.with_file_name(name)
}

/// Parses a file of credentials. Errors contain only the position, because the text is secret.
pub(super) fn parse(text: &str, label: &str) -> Result<Map<String, Value>, Error> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(entries)) => Ok(entries),
        Ok(_) => Err(Error::rejected(format!("`{label}` must contain a JSON object"))),
        Err(why) => Err(Error::rejected(format!(
            "`{label}` line {}, column {}: this is not JSON; fix or remove the file",
            why.line(),
            why.column()
        ))),
    }
}

fn failed(path: &Path, what: &str, why: &io::Error) -> Error {
    Error::rejected(format!("cannot {what} `{}`: {why}", path.display()))
}
