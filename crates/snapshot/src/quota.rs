//! The limit for disk space, which holds even if a process is killed.
//!
//! Space is granted before it is used. The store and each repository have a stored total that is never less
//! than the used space: it grows with every grant before the grant is used, and shrinks only when the used
//! space is counted. So a killed process leaves the totals too high, never too low. A process requests more
//! than it needs and then writes for a while without requests. The rest of the grant is in a file that it
//! keeps locked, so that a count by another process includes it.
//!
//! If a total would exceed its quota, the used space is counted. If that does not help, generations are
//! dropped in the order of their value: whole snapshots before the effects of steps, old ones before new
//! ones.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use codewright_workspace::{make_private_directory, private_file};

use crate::Error;
use crate::options::{Options, Quota};
use crate::repository::{self, Shelf, generations, open_lock, wait};

/// The smallest grant, unless the quota is small.
const GRANT_BYTES: u64 = 4 * 1024 * 1024;
/// The largest grant as a part of the smaller quota, unless more is needed at once.
const GRANT_PART: u64 = 64;
/// The part of the quota that is free after generations were dropped.
const FREE_PART: u64 = 5;
/// The interval at which old data is dropped.
const SWEEP_EVERY: Duration = Duration::from_secs(24 * 60 * 60);
/// The number of processes that may hold a grant in one repository.
const SLOTS: usize = 64;
/// The space for the small files of a repository and a new generation.
const SMALL_FILES_BYTES: u64 = 128 * 1024;
/// The least disk space of a file or directory.
const BLOCK_BYTES: u64 = 4096;
/// The number of digits of a total, so that it is overwritten in place.
const TOTAL_DIGITS: usize = 20;
/// The prefix of directories that are being deleted.
const TRASH: &str = "trash-";

/// The rest of this process's grant in one repository.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The locked file of our grant.
    slot: Option<fs::File>,
    left_bytes: u64,
}

impl Ledger {
    /// Reserves space before writing.
    pub(crate) fn reserve(&self, options: &Options, bytes: u64) -> Result<(), Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.left_bytes < bytes {
            let quota = smaller(&options.quota);
            let ask_bytes = bytes.max(GRANT_BYTES.min(quota / GRANT_PART));
            Store::open(options)?.grant(&mut state, ask_bytes, bytes)?;
        }
        state.left_bytes -= bytes;
        Ok(())
    }

    /// Returns reserved space that was not used.
    pub(crate) fn give_back(&self, options: &Options, bytes: u64) -> Result<(), Error> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let store = Store::open(options)?;
        state.note(state.left_bytes)?;
        for total in [store.own_total(), store.total()] {
            let count = read_total(&total).unwrap_or(u64::MAX);
            write_total(&total, count.saturating_sub(bytes))?;
        }
        Ok(())
    }
}

impl State {
    /// Stores the rest of the grant.
    fn note(&self, bytes: u64) -> Result<(), Error> {
        let Some(slot) = &self.slot else { return Ok(()) };
        write_digits(slot, bytes).map_err(|source| Error::at(Path::new("grants"), source))
    }

    fn take_slot(&mut self, repository: &Path) -> Result<(), Error> {
        if self.slot.is_some() {
            return Ok(());
        }
        let directory = repository.join("grants");
        make_private_directory(&directory).map_err(|source| Error::at(&directory, source))?;
        for number in 0..SLOTS {
            let file = open_lock(&directory.join(number.to_string()))?;
            if file.try_lock().is_ok() {
                self.slot = Some(file);
                return Ok(());
            }
        }
        Err(Error::Busy { directory: repository.to_owned() })
    }
}

fn smaller(quota: &Quota) -> u64 {
    quota.total_bytes.min(quota.repository_bytes)
}

/// The locked directory of all repositories.
struct Store<'a> {
    options: &'a Options,
    _lock: fs::File,
    now: SystemTime,
}

/// A generation that can be dropped.
struct Candidate {
    /// A lower rank is dropped first.
    rank: u8,
    used: SystemTime,
    repository: PathBuf,
    path: PathBuf,
    /// Whether an index refers to it.
    is_indexed: bool,
}

impl<'a> Store<'a> {
    fn open(options: &'a Options) -> Result<Self, Error> {
        make_private_directory(&options.directory).map_err(|source| Error::at(&options.directory, source))?;
        let path = options.store.join("lock");
        let lock = open_lock(&path)?;
        wait(&path, || lock.try_lock())?;
        // The time of a new file compares with those of other files, whatever clock the file system has.
        touch(&path)?;
        let now = used(&path);
        Ok(Self { options, _lock: lock, now })
    }

    fn grant(&self, state: &mut State, ask_bytes: u64, need_bytes: u64) -> Result<(), Error> {
        state.take_slot(&self.options.directory)?;
        state.note(state.left_bytes)?;
        self.admit()?;
        let swept = self.options.store.join("swept");
        let is_due = self.now.duration_since(used(&swept)).is_ok_and(|age| age > SWEEP_EVERY);
        if is_due || !self.has_room(ask_bytes) {
            self.count()?;
            self.drop_old()?;
            touch(&swept)?;
        }
        let mut ask_bytes = ask_bytes;
        if !self.has_room(ask_bytes) {
            self.make_room(ask_bytes)?;
        }
        if !self.has_room(ask_bytes) {
            ask_bytes = need_bytes;
        }
        if !self.has_room(ask_bytes) {
            let quota_bytes = smaller(&self.options.quota);
            return Err(Error::Quota { needed_bytes: need_bytes, quota_bytes });
        }
        // The totals are raised before the grant: a process killed in between leaves them too high.
        for total in [self.total(), self.own_total()] {
            let count = read_total(&total).unwrap_or(u64::MAX);
            write_total(&total, count.saturating_add(ask_bytes))?;
        }
        state.note(state.left_bytes + ask_bytes)?;
        state.left_bytes += ask_bytes;
        Ok(())
    }

    /// Counts a new repository, so that the others need not be counted.
    fn admit(&self) -> Result<(), Error> {
        let own = self.own_total();
        if own.exists() {
            return Ok(());
        }
        let Some(all) = read_total(&self.total()) else { return Ok(()) };
        let count = self.of(&self.options.directory);
        write_total(&self.total(), all.saturating_add(count))?;
        write_total(&own, count)
    }

    /// The used space of a repository plus its grants.
    fn of(&self, repository: &Path) -> u64 {
        disk_use(repository).saturating_add(granted(repository)).saturating_add(SMALL_FILES_BYTES)
    }

    fn total(&self) -> PathBuf {
        self.options.store.join("total")
    }

    fn own_total(&self) -> PathBuf {
        self.options.directory.join("total")
    }

    fn has_room(&self, bytes: u64) -> bool {
        let fits = |total: &Path, quota: u64| {
            // If a total is missing or damaged, the space has to be counted.
            read_total(total).is_some_and(|count| count.saturating_add(bytes) <= quota)
        };
        fits(&self.total(), self.options.quota.total_bytes)
            && fits(&self.own_total(), self.options.quota.repository_bytes)
    }

    /// Counts the used space and the grants of other processes.
    fn count(&self) -> Result<(), Error> {
        self.empty_trash();
        let mut all = disk_use_beside(&self.options.store);
        for repository in repositories(&self.options.store) {
            let count = self.of(&repository);
            write_total(&repository.join("total"), count)?;
            all = all.saturating_add(count);
        }
        write_total(&self.total(), all)
    }

    /// Drops data that was not used for too long.
    fn drop_old(&self) -> Result<(), Error> {
        let is_old =
            |used: SystemTime| self.now.duration_since(used).is_ok_and(|age| age > self.options.quota.keep);
        let mut dropped = false;
        for candidate in self.candidates() {
            let repository_used = used(&candidate.repository.join("used"));
            let age = if candidate.is_indexed { repository_used } else { candidate.used };
            if is_old(age) {
                dropped |= self.discard(&candidate)?;
            }
        }
        for repository in repositories(&self.options.store) {
            let is_empty = Shelf::ALL.into_iter().all(|shelf| generations(&repository, shelf).is_empty());
            if is_empty && repository != self.options.directory && is_old(used(&repository.join("used"))) {
                self.delete(&repository)?;
            }
        }
        if dropped { self.count() } else { Ok(()) }
    }

    /// Drops generations until the bytes fit with some to spare, or none is left.
    fn make_room(&self, bytes: u64) -> Result<(), Error> {
        let quota = &self.options.quota;
        for candidate in self.candidates() {
            let own = candidate.repository == self.options.directory;
            let spare = |quota: u64| bytes.max(bytes.saturating_add(quota / FREE_PART).min(quota));
            let fits = |total: &Path, quota: u64| {
                read_total(total).is_some_and(|count| count.saturating_add(spare(quota)) <= quota)
            };
            let store_fits = fits(&self.total(), quota.total_bytes);
            if store_fits && fits(&self.own_total(), quota.repository_bytes) {
                return Ok(());
            }
            // Dropping generations of other repositories does not help a full one.
            let bytes = disk_use(&candidate.path);
            if (own || !store_fits) && self.discard(&candidate)? {
                for total in [self.total(), candidate.repository.join("total")] {
                    let count = read_total(&total).unwrap_or(u64::MAX);
                    write_total(&total, count.saturating_sub(bytes))?;
                }
            }
        }
        Ok(())
    }

    /// Everything that can be dropped, in order.
    fn candidates(&self) -> Vec<Candidate> {
        let mut all = Vec::new();
        for repository in repositories(&self.options.store) {
            let own = repository == self.options.directory;
            for shelf in Shelf::ALL {
                let mut of_shelf = generations(&repository, shelf);
                let newest = of_shelf.pop().map(|(_, path)| path);
                let tracked = shelf == Shelf::Tracked;
                let old = of_shelf.into_iter().map(|(_, path)| (path, if tracked { 0 } else { 2 }, false));
                // Our newest generations are in use.
                let newest = newest.filter(|_| !own).map(|path| (path, if tracked { 1 } else { 3 }, tracked));
                all.extend(old.chain(newest).map(|(path, rank, is_indexed)| Candidate {
                    rank,
                    used: used(&path.join("used")),
                    repository: repository.clone(),
                    path,
                    is_indexed,
                }));
            }
        }
        all.sort_by_key(|candidate| (candidate.rank, candidate.used));
        all
    }

    /// Drops a generation, unless it is in use. Returns whether it was dropped.
    fn discard(&self, candidate: &Candidate) -> Result<bool, Error> {
        if !candidate.is_indexed {
            return self.delete(&candidate.path).map(|()| true);
        }
        let lock = open_lock(&candidate.repository.join("lock"))?;
        if lock.try_lock().is_err() {
            return Ok(false);
        }
        repository::forget(&candidate.repository)?;
        self.delete(&candidate.path).map(|()| true)
    }

    /// Renames a directory atomically, then deletes it.
    fn delete(&self, path: &Path) -> Result<(), Error> {
        for number in 0_u32.. {
            let trash = self.options.store.join(format!("{TRASH}{number}"));
            if trash.exists() {
                continue;
            }
            fs::rename(path, &trash).map_err(|source| Error::at(path, source))?;
            break;
        }
        self.empty_trash();
        Ok(())
    }

    fn empty_trash(&self) {
        let entries = fs::read_dir(&self.options.store).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(TRASH)) {
            // A directory that cannot be deleted is counted, and tried again the next time.
            fs::remove_dir_all(entry.path()).unwrap_or_default();
        }
    }
}

/// Every repository of a store.
fn repositories(store: &Path) -> Vec<PathBuf> {
    let below = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let is_ours = |path: &PathBuf| {
            path.is_dir() && !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(TRASH))
        };
        entries.map(|entry| entry.path()).filter(is_ours).collect::<Vec<_>>()
    };
    below(store).iter().flat_map(|project| below(project)).collect()
}

/// The grants of living processes in a repository. Grants of dead ones are removed.
fn granted(repository: &Path) -> u64 {
    let mut sum = 0_u64;
    for entry in fs::read_dir(repository.join("grants")).into_iter().flatten().flatten() {
        let Ok(file) = open_lock(&entry.path()) else { continue };
        match file.try_lock() {
            // Our own grant is locked by another file of this process, so it counts as well.
            Err(_) => sum = sum.saturating_add(read_total(&entry.path()).unwrap_or(0)),
            Ok(()) => write_digits(&file, 0).unwrap_or_default(),
        }
    }
    sum
}

/// The disk space of a directory and its content.
pub(crate) fn disk_use(path: &Path) -> u64 {
    let mut sum = 0;
    let mut left = vec![path.to_owned()];
    while let Some(path) = left.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        sum += size(&metadata);
        if metadata.is_dir() {
            left.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
    sum
}

/// The disk space of files in a store outside its repositories.
fn disk_use_beside(store: &Path) -> u64 {
    let entries = fs::read_dir(store).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| {
        let is_trash = entry.file_name().to_string_lossy().starts_with(TRASH);
        if is_trash { disk_use(&entry.path()) } else { entry.metadata().map_or(0, |data| size(&data)) }
    });
    sizes.fold(BLOCK_BYTES, u64::saturating_add)
}

fn size(metadata: &fs::Metadata) -> u64 {
    // Some file systems count blocks late, and the length of a directory means nothing.
    let length = if metadata.is_file() { metadata.len() } else { BLOCK_BYTES };
    length.next_multiple_of(BLOCK_BYTES).max(metadata.blocks() * 512)
}

/// The time of a stamp, or long ago if it is missing.
pub(crate) fn used(stamp: &Path) -> SystemTime {
    fs::metadata(stamp).and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Sets the time of a stamp to now.
pub(crate) fn touch(stamp: &Path) -> Result<(), Error> {
    let file = private_file().create(true).truncate(true).write(true).open(stamp);
    let written = file.and_then(|mut file| io::Write::write_all(&mut file, b"\n"));
    written.map_err(|source| Error::at(stamp, source))
}

fn read_total(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn write_total(path: &Path, bytes: u64) -> Result<(), Error> {
    let file = open_lock(path)?;
    write_digits(&file, bytes).map_err(|source| Error::at(path, source))
}

fn write_digits(file: &fs::File, bytes: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, format!("{bytes:0TOTAL_DIGITS$}").as_bytes(), 0)
}
