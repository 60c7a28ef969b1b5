//! The versions of files that a session has seen.
//!
//! A tool uses them to notice changes by others: it must not overwrite a whole file that has changed, and it
//! warns the model after an edit of one. Files that the session has not seen are not checked.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use codewright_workspace::{Held, Node};

/// The limit of remembered files. The one seen first is forgotten first.
const MAX_FILES: usize = 4096;

/// The files that a session has seen. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct KnownFiles(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    stamps: HashMap<PathBuf, Stamp>,
    order: VecDeque<PathBuf>,
}

/// The facts that show whether a file has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    seconds: i64,
    nanoseconds: i64,
    bytes: u64,
}

impl Stamp {
    /// The current stamp of a file, or `None` if it is not a regular file.
    pub(crate) fn of(held: &Held) -> Option<Self> {
        let status = held.status().ok()?.filter(|status| status.node == Node::File)?;
        let (seconds, nanoseconds) = status.modified;
        Some(Self { seconds, nanoseconds, bytes: status.bytes })
    }
}

impl KnownFiles {
    /// Records the version of a file that was read. `path` must have its links followed.
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

    /// Records the version of a file that the session itself wrote.
    pub fn made(&self, held: &Held) {
        self.saw(&held.place.real, Stamp::of(held));
    }

    /// Whether a file that the session has seen is different now. A removed file is not, because nothing can
    /// be overwritten.
    pub(crate) fn is_stale(&self, held: &Held) -> bool {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = table.stamps.get(&held.place.real);
        known.is_some_and(|known| Stamp::of(held).is_some_and(|now| now != *known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_by_others_are_noticed_and_the_table_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "one").unwrap();
        let held = codewright_workspace::hold(&path).unwrap();
        let known = KnownFiles::default();
        assert!(!known.is_stale(&held), "never seen");
        known.made(&held);
        assert!(!known.is_stale(&held));
        std::fs::write(&path, "longer").unwrap();
        assert!(known.is_stale(&held));
        std::fs::remove_file(&path).unwrap();
        assert!(!known.is_stale(&held), "gone");
        let stamp = Some(Stamp { seconds: 0, nanoseconds: 0, bytes: 0 });
        for n in 0..MAX_FILES + 10 {
            known.saw(&folder.path().join(n.to_string()), stamp);
        }
        assert_eq!(known.0.lock().unwrap().stamps.len(), MAX_FILES);
    }
}
