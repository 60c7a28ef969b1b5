//! What a session knows of files: which it saw, and as what.
//!
//! Whoever replaces a file whole must not wipe out what somebody else wrote meanwhile, and
//! whoever changes a piece of one should hear of it. A file that the session never saw is
//! nobody's business.

use std::collections::{HashMap, VecDeque};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Files of which it is known what they were; the one seen longest ago is forgotten first.
const MAX_FILES: usize = 4096;

/// The files a session saw. Clones share everything.
#[derive(Debug, Clone, Default)]
pub struct KnownFiles(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    stamps: HashMap<PathBuf, Stamp>,
    order: VecDeque<PathBuf>,
}

/// By what a change of a file shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    seconds: i64,
    nanoseconds: i64,
    bytes: u64,
}

impl Stamp {
    /// What a file is now; `None` if it is no file.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        Some(Self { seconds: metadata.mtime(), nanoseconds: metadata.mtime_nsec(), bytes: metadata.len() })
    }
}

impl KnownFiles {
    /// Notes what a file was when it was seen; its path has its links followed.
    pub(crate) fn saw(&self, path: &Path, stamp: Option<Stamp>) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(stamp) = stamp else {
            table.stamps.remove(path);
            return;
        };
        if table.stamps.insert(path.to_owned(), stamp).is_none() {
            table.order.push_back(path.to_owned());
        }
        while table.order.len() > MAX_FILES {
            if let Some(oldest) = table.order.pop_front() {
                table.stamps.remove(&oldest);
            }
        }
    }

    /// Notes what a file is after the session itself changed it.
    pub(crate) fn made(&self, path: &Path) {
        self.saw(path, Stamp::of(path));
    }

    /// Whether a file that the session saw is another now. One that is gone is not: it holds nothing to lose.
    pub(crate) fn is_stale(&self, path: &Path) -> bool {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = table.stamps.get(path);
        known.is_some_and(|known| Stamp::of(path).is_some_and(|now| now != *known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_by_somebody_else_shows_and_the_table_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "one").unwrap();
        let known = KnownFiles::default();
        assert!(!known.is_stale(&path), "never seen");
        known.made(&path);
        assert!(!known.is_stale(&path));
        std::fs::write(&path, "longer").unwrap();
        assert!(known.is_stale(&path));
        std::fs::remove_file(&path).unwrap();
        assert!(!known.is_stale(&path), "gone");
        let stamp = Some(Stamp { seconds: 0, nanoseconds: 0, bytes: 0 });
        for n in 0..MAX_FILES + 10 {
            known.saw(&folder.path().join(n.to_string()), stamp);
        }
        assert_eq!(known.0.lock().unwrap().stamps.len(), MAX_FILES);
    }
}
