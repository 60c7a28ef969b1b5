//! What stands beside a database that is used or damaged.
//!
//! Every open store holds a shared lock on `locks/use`; whoever repairs the file
//! holds it alone, so that nobody goes on writing into a file that is being
//! replaced. A damage that is found while the store is in use cannot be repaired
//! then: it is noted in an empty file, and the next start repairs.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::Error;

/// How long a repair waits until nobody uses the file.
const ALONE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a start waits for another process's repair.
const SHARE_TIMEOUT: Duration = Duration::from_secs(120);

/// How long before a lock is tried again.
const PAUSE: Duration = Duration::from_millis(20);

/// The header of a write-ahead log; a log that is no longer has nothing in it.
const WAL_HEADER_BYTES: u64 = 32;

/// Shows that a database is used, for as long as it lives. Empty where there are no file locks.
pub(super) struct Use(#[expect(dead_code, reason = "held, not read")] Option<File>);

impl Use {
    /// Joins those who use the file; waits for a repair.
    pub(super) fn shared(database: &Path) -> Result<Self, Error> {
        let Some(file) = lock_file(database) else { return Ok(Self(None)) };
        let locked = within(SHARE_TIMEOUT, || file.try_lock_shared());
        match locked {
            Some(true) => Ok(Self(Some(file))),
            Some(false) => Err(Error::Busy { path: database.to_owned() }),
            None => Ok(Self(None)),
        }
    }

    /// Uses the file alone; none if others keep using it.
    pub(super) fn alone(database: &Path) -> Option<Self> {
        let Some(file) = lock_file(database) else { return Some(Self(None)) };
        match within(ALONE_TIMEOUT, || file.try_lock()) {
            Some(true) => Some(Self(Some(file))),
            Some(false) => None,
            None => Some(Self(None)),
        }
    }
}

/// Whether the lock was had in time; none if there are no locks here.
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
            super::open::create_directories(path.parent()?).ok()?;
            options.open(&path).ok()
        }
        Err(_) => None,
    }
}

/// A file beside the database, named after it.
pub(super) fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Notes that the database has to be repaired.
pub(super) fn note(database: &Path) {
    // Without the note the damage is found again where it was found now.
    drop(File::create(beside(database, ".damaged")));
}

/// Takes the note away.
pub(super) fn forget(database: &Path) -> io::Result<()> {
    match fs::remove_file(beside(database, ".damaged")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Whether the database is known to be damaged, as far as names and sizes tell.
///
/// A log without a database would be thrown away by SQLite, with all that is in it.
pub(super) fn is_noted(database: &Path) -> bool {
    if fs::exists(beside(database, ".damaged")).unwrap_or(false) {
        return true;
    }
    let length = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    length(database) == 0 && length(&beside(database, "-wal")) > WAL_HEADER_BYTES
}
