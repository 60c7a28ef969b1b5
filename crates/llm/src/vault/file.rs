//! A file that is replaced whole, and locks that end with the process that holds them.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::{beside, failed, parse};
use crate::Error;

/// The most bytes a file of credentials may have.
const FILE_LIMIT_BYTES: u64 = 1024 * 1024;
/// How long a write waits for the writes of other processes, which take milliseconds.
const WRITE_WAIT: Duration = Duration::from_secs(10);
/// How often a lock is tried.
const TRY_EVERY: Duration = Duration::from_millis(10);
/// Only the user may read credentials.
const MODE: u32 = 0o600;
/// Only the user may look into their directory.
const DIRECTORY_MODE: u32 = 0o700;

/// A lock between processes and threads; the system frees it when its holder ends, however that happens.
#[derive(Debug)]
pub(crate) struct Lock {
    /// Closing the file frees the lock. It is never removed: who waits for it has it open.
    _file: File,
}

impl Lock {
    /// Takes the lock, waiting at most 10 s for whoever holds it. Blocks its thread.
    pub(super) fn take(path: &Path) -> Result<Self, Error> {
        let until = Instant::now() + WRITE_WAIT;
        loop {
            if let Some(lock) = Self::attempt(path)? {
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

    /// Takes the lock unless somebody holds it.
    pub(super) fn attempt(path: &Path) -> Result<Option<Self>, Error> {
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

/// The entries of a file; one that is missing or empty has none.
pub(super) fn read(path: &Path) -> Result<Map<String, Value>, Error> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(why) => return Err(failed(path, "read", &why)),
    };
    let mut bytes = Vec::new();
    file.take(FILE_LIMIT_BYTES + 1).read_to_end(&mut bytes).map_err(|why| failed(path, "read", &why))?;
    if bytes.len() as u64 > FILE_LIMIT_BYTES {
        return Err(Error::rejected(format!("`{}` has more than 1 MiB", path.display())));
    }
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| Error::rejected(format!("`{}` is not UTF-8 text", path.display())))?;
    parse(&text, &path.display().to_string())
}

/// Replaces the file; whoever reads it meanwhile sees the old or the new one, whole. Only under its lock.
pub(super) fn write(path: &Path, entries: &Map<String, Value>) -> Result<(), Error> {
    make_directory(path)?;
    // People keep such files elsewhere and link to them; the link stays.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let next = beside(path, ".next");
    // What a process left that ended while it wrote; nobody else writes under the lock.
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
    // The name has to outlast a power cut as well; where a directory cannot be synced, it mostly will.
    drop(path.parent().map(|directory| File::open(directory).and_then(|file| file.sync_all())));
    Ok(())
}

fn make_directory(path: &Path) -> Result<(), Error> {
    let Some(directory) = path.parent() else { return Ok(()) };
    let made = DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory);
    made.map_err(|why| failed(directory, "make the directory", &why))
}
