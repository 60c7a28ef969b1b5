//! Finds changes by reading directories again, for systems without reports.
//!
//! The time between two scans grows with their cost, so that a large tree does not keep a processor busy.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::Change;

/// Maximum entries of all directories.
const MAX_ENTRIES: usize = 200_000;
/// Maximum changes that wait for the caller.
const MAX_PENDING: usize = 4096;
/// A scan takes at most one part of this many of the time.
const SHARE: u32 = 20;
/// The pause while another call scans.
const BUSY: Duration = Duration::from_millis(50);

/// A change: the directory, the name of the entry, and whether it is a directory.
pub(super) type Found = (u64, OsString, Change, bool);

/// Directories that are read regularly.
#[derive(Clone)]
pub(super) struct Poll(Arc<Mutex<State>>);

struct State {
    interval: Duration,
    due: Instant,
    is_scanning: bool,
    /// The directories by number.
    folders: BTreeMap<u64, Folder>,
    numbers: HashMap<PathBuf, u64>,
    next: u64,
    /// The entries of all directories.
    entries: usize,
    /// `None` if there were too many.
    pending: Option<Vec<Found>>,
}

struct Folder {
    path: PathBuf,
    entries: Entries,
}

type Entries = HashMap<OsString, Stamp>;

/// What changes when an entry is written or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: (i64, i64),
    bytes: u64,
    inode: u64,
    is_directory: bool,
}

impl Poll {
    /// Starts without directories. `interval` is the shortest time between two scans.
    pub(super) fn new(interval: Duration) -> Self {
        Self(Arc::new(Mutex::new(State {
            interval,
            due: Instant::now() + interval,
            is_scanning: false,
            folders: BTreeMap::new(),
            numbers: HashMap::new(),
            next: 0,
            entries: 0,
            pending: Some(Vec::new()),
        })))
    }

    /// Reads a directory from now on. Returns `None` if it cannot be read or if there are too many entries.
    pub(super) fn add(&self, path: &Path) -> Option<u64> {
        if let Some(number) = self.lock().numbers.get(path) {
            return Some(*number);
        }
        let entries = read(path)?;
        let mut state = self.lock();
        if state.entries + entries.len() > MAX_ENTRIES {
            return None;
        }
        state.next += 1;
        let number = state.next;
        state.entries += entries.len();
        state.numbers.insert(path.to_owned(), number);
        state.folders.insert(number, Folder { path: path.to_owned(), entries });
        Some(number)
    }

    /// Stops reading a directory.
    pub(super) fn remove(&self, number: u64) {
        self.lock().remove(number);
    }

    /// Waits for changes. Returns `None` if some were lost.
    pub(super) async fn next(&self) -> Option<Vec<Found>> {
        loop {
            let due = {
                let mut state = self.lock();
                let Some(pending) = &mut state.pending else {
                    state.pending = Some(Vec::new());
                    return None;
                };
                if !pending.is_empty() {
                    return Some(std::mem::take(pending));
                }
                state.due
            };
            sleep_until(due).await;
            // A call that was dropped may have left a scan, whose result is kept.
            if std::mem::replace(&mut self.lock().is_scanning, true) {
                sleep(BUSY).await;
                continue;
            }
            let poll = self.clone();
            // After a scan that failed the next one starts from the same state.
            drop(tokio::task::spawn_blocking(move || poll.scan()).await);
        }
    }

    fn scan(&self) {
        let begun = Instant::now();
        let folders: Vec<(u64, PathBuf)> =
            self.lock().folders.iter().map(|(number, folder)| (*number, folder.path.clone())).collect();
        for (number, path) in folders {
            let now = read(&path);
            self.lock().compare(number, now);
        }
        let mut state = self.lock();
        state.is_scanning = false;
        state.due = Instant::now() + state.interval.max(begun.elapsed() * SHARE);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // After a panic in the middle of a comparison, a change may be missing.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Notes the changes of a directory. `None` means that it is gone.
    fn compare(&mut self, number: u64, now: Option<Entries>) {
        let Some(folder) = self.folders.get_mut(&number) else { return };
        let is_gone = now.is_none();
        let now = now.unwrap_or_default();
        let before = std::mem::replace(&mut folder.entries, now.clone());
        self.entries = self.entries.saturating_sub(before.len()) + now.len();
        if is_gone {
            self.remove(number);
        }
        for (name, stamp) in changes(&before, &now) {
            let (change, is_directory) = stamp;
            match &mut self.pending {
                Some(pending) if pending.len() < MAX_PENDING => {
                    pending.push((number, name, change, is_directory));
                }
                _ => self.pending = None,
            }
        }
    }

    fn remove(&mut self, number: u64) {
        if let Some(folder) = self.folders.remove(&number) {
            self.entries = self.entries.saturating_sub(folder.entries.len());
            self.numbers.remove(&folder.path);
        }
    }
}

/// Returns the changes between two readings of a directory, by name.
fn changes(before: &Entries, now: &Entries) -> Vec<(OsString, (Change, bool))> {
    let mut changes = Vec::new();
    for (name, old) in before {
        match now.get(name) {
            None => changes.push((name.clone(), (Change::Gone, old.is_directory))),
            Some(new)
                if new.is_directory != old.is_directory || (new.is_directory && new.inode != old.inode) =>
            {
                changes.push((name.clone(), (Change::Gone, old.is_directory)));
                changes.push((name.clone(), (Change::Placed, new.is_directory)));
            }
            // The time of a directory changes with its entries, which are reported themselves.
            Some(new) if !new.is_directory && new != old => {
                changes.push((name.clone(), (Change::Written, false)));
            }
            Some(_) => {}
        }
    }
    let added = now.iter().filter(|(name, _)| !before.contains_key(*name));
    changes.extend(added.map(|(name, stamp)| (name.clone(), (Change::Made, stamp.is_directory))));
    changes.sort_by(|a, b| a.0.cmp(&b.0));
    changes
}

/// Reads the entries of a directory that is not a link.
fn read(path: &Path) -> Option<Entries> {
    if !path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return None;
    }
    let entries = std::fs::read_dir(path).ok()?.take(MAX_ENTRIES).flatten();
    let stamps = entries.filter_map(|entry| {
        // An entry that vanished meanwhile is gone.
        let found = entry.path().symlink_metadata().ok()?;
        let modified = (found.mtime(), found.mtime_nsec());
        let stamp = Stamp { modified, bytes: found.len(), inode: found.ino(), is_directory: found.is_dir() };
        Some((entry.file_name(), stamp))
    });
    Some(stamps.collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns the next changes as texts.
    async fn next(poll: &Poll) -> Vec<String> {
        let found =
            tokio::time::timeout(Duration::from_secs(20), poll.next()).await.expect("a change is found");
        let found = found.expect("no change is lost");
        found.iter().map(|(_, name, change, _)| format!("{change:?} {}", name.display())).collect()
    }

    #[tokio::test]
    async fn changes_are_found_by_reading_again() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("old"), "1").unwrap();
        let poll = Poll::new(Duration::from_millis(10));
        let number = poll.add(folder.path()).unwrap();
        assert_eq!(poll.add(folder.path()), Some(number));
        assert_eq!(poll.add(&at("missing")), None);
        fs::write(at("old"), "22").unwrap();
        assert_eq!(next(&poll).await, ["Written old"]);
        fs::create_dir(at("new")).unwrap();
        assert_eq!(next(&poll).await, ["Made new"]);
        // The entries of a directory do not change it.
        fs::write(at("new/inside"), "").unwrap();
        fs::remove_file(at("old")).unwrap();
        assert_eq!(next(&poll).await, ["Gone old"]);
        // A call that is dropped during a scan loses nothing.
        fs::write(at("last"), "").unwrap();
        poll.scan();
        assert_eq!(next(&poll).await, ["Made last"]);
        poll.remove(number);
        fs::write(at("later"), "").unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(100), poll.next()).await.is_err());
    }

    #[test]
    fn too_many_changes_are_reported_as_lost() {
        let poll = Poll::new(Duration::from_secs(1));
        let folder = tempfile::tempdir().unwrap();
        let number = poll.add(folder.path()).unwrap();
        let stamp = Stamp { modified: (0, 0), bytes: 0, inode: 1, is_directory: false };
        let many = (0..=MAX_PENDING).map(|n| (OsString::from(n.to_string()), stamp)).collect();
        poll.lock().compare(number, Some(many));
        assert!(poll.lock().pending.is_none());
    }
}
