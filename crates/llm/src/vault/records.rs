//! A file of JSON entries that several processes change.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::file::{self, Lock, with_suffix};
use crate::Error;

/// The longest part of a name that becomes part of the name of a lock.
const LOCK_NAME_CHARS: usize = 100;

/// A file of entries, which only the user can read. A change waits for other processes and replaces the file atomically.
#[derive(Debug, Clone)]
pub struct Records(PathBuf);

impl Records {
    /// The entries in a file, which need not exist.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the entries. A missing file has none.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn read(&self) -> Result<Map<String, Value>, Error> {
        file::read(&self.0)
    }

    /// Changes the entries in their newest state. Blocks the thread while other processes write.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, locked or written. The file is then unchanged.
    pub fn change<T>(&self, change: impl FnOnce(&mut Map<String, Value>) -> T) -> Result<T, Error> {
        let _lock = Lock::acquire(&with_suffix(&self.0, ".lock"))?;
        let mut entries = file::read(&self.0)?;
        let result = change(&mut entries);
        file::write(&self.0, &entries)?;
        Ok(result)
    }

    /// Locks the renewal of an entry against other processes. Returns `None` if one of them holds the lock.
    ///
    /// # Errors
    ///
    /// Fails if the lock cannot be created.
    pub fn try_lock(&self, name: &str) -> Result<Option<Lock>, Error> {
        let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let safe: String = name.chars().map(safe).take(LOCK_NAME_CHARS).collect();
        Lock::try_acquire(&with_suffix(&self.0, &format!(".{safe}.lock")))
    }
}
