//! The lock and the marker file next to a database that is in use or damaged.
//!
//! Every open store holds a shared lock on `locks/use`. A repair needs an exclusive lock, so that no process writes to a
//! file that is being replaced. Damage that is found while the store is in use is only marked, by an empty file, and the
//! next start repairs it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::Error;

/// How long a repair waits for exclusive use of the file.
const ALONE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a start waits for a repair by another process.
const SHARE_TIMEOUT: Duration = Duration::from_secs(120);

/// The pause before a lock is tried again.
const PAUSE: Duration = Duration::from_millis(20);

/// The size of the header of a write-ahead log. A log of this size is empty.
const WAL_HEADER_BYTES: u64 = 32;

/// Marks a database as in use while it exists. `None` if file locks are not supported.
pub(super) struct FileUse(#[expect(dead_code, reason = "held, not read")] Option<File>);

impl FileUse {
    /// Marks the file as in use. Waits for a repair.
    pub(super) fn shared(database: &Path) -> Result<Self, Error> {
        let Some(file) = lock_file(database) else { return Ok(Self(None)) };
        let locked = within(SHARE_TIMEOUT, || file.try_lock_shared());
        match locked {
            Some(true) => Ok(Self(Some(file))),
            Some(false) => Err(Error::Busy { path: database.to_owned() }),
            None => Ok(Self(None)),
        }
    }

    /// Exclusive use of the file. `None` if other processes keep using it.
    pub(super) fn exclusive(database: &Path) -> Option<Self> {
        let Some(file) = lock_file(database) else { return Some(Self(None)) };
        match within(ALONE_TIMEOUT, || file.try_lock()) {
            Some(true) => Some(Self(Some(file))),
            Some(false) => None,
            None => Some(Self(None)),
        }
    }
}

/// Whether the lock was acquired in time; `None` if locks are not supported.
fn within(timeout: Duration, lock: impl Fn() -> Result<(), TryLockError>) -> Option<bool> {
    let deadline = Instant::now() + timeout;
    loop {
        match lock() {
            Ok(()) => return Some(true),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => return Some(false),
            Err(TryLockError::Error(_)) => return None,
        }
    }
}

fn lock_file(database: &Path) -> Option<File> {
    let path = database.with_file_name("locks").join("use");
    let mut options = fs::OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(&path) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            crate::node::create_directory(path.parent()?).ok()?;
            options.open(&path).ok()
        }
        Err(_) => None,
    }
}

/// The path of a file next to the database: its name with a suffix.
pub(super) fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Marks the database for repair.
pub(super) fn mark(database: &Path) {
    // Without the mark, the damage will be found again later.
    drop(File::create(beside(database, ".damaged")));
}

/// Removes the mark.
pub(super) fn clear_mark(database: &Path) -> io::Result<()> {
    match fs::remove_file(beside(database, ".damaged")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Whether the database is marked as damaged, or is empty with a non-empty log.
///
/// SQLite would delete a log without a database, with its content.
pub(super) fn is_marked(database: &Path) -> bool {
    if fs::exists(beside(database, ".damaged")).unwrap_or(false) {
        return true;
    }
    let length = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    length(database) == 0 && length(&beside(database, "-wal")) > WAL_HEADER_BYTES
}
