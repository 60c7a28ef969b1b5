//! A snapshot repository on the disk.
//!
//! It is an ordinary git directory whose objects are in numbered generations, so that old ones are dropped as
//! a whole and nothing is repacked:
//!
//! ```text
//! HEAD config info/ refs/ index   as in git; HEAD is a commit of the index's tree
//! objects/                        empty except for the list of generations, for manual use
//! tracked/0001 …                  objects of whole snapshots
//! effects/0001 …                  objects of the agent's changes, never borrowed
//! writing                         exists while git writes objects
//! off                             the reason why snapshots were given up here, for a day
//! total grants/                   the limit of the used space, see the quota
//! lock effects.lock               held by the process that tracks, and by each git it started
//! ```
//!
//! A git that outlives us still holds the lock. So a process that gets the lock knows that a lock file of the
//! index or a temporary object belongs to no living process.

use std::collections::HashSet;
use std::fs::{self, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use codewright_workspace::git::{git_dirs, read_small};
use codewright_workspace::make_private_directory;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::git::Git;
use crate::id::ObjectId;
use crate::object::{self, Object};
use crate::options::Options;
use crate::quota::{Ledger, touch, used};
use crate::{Error, TreeId};

/// The time limit for getting the lock.
const LOCK_WAIT: Duration = Duration::from_secs(20);
/// The interval between two tries.
const LOCK_RETRY: Duration = Duration::from_millis(10);
/// The time after which an unfinished small file is abandoned.
const FINISHED_AFTER: Duration = Duration::from_secs(60);
/// The time after which snapshots that were given up are tried again.
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// The time after which new effects use a new generation.
const EFFECTS_SHELF: Duration = Duration::from_secs(24 * 60 * 60);
/// The limit for reading a list of ignored files.
const MAX_EXCLUDE_BYTES: u64 = 64 * 1024;
/// The limit for the file that names the path of a repository.
const MAX_POINTER_BYTES: u64 = 4096;
/// A `HEAD` before the first snapshot, or after the index was discarded.
const UNBORN: &str = "ref: refs/heads/none\n";

/// The configuration for snapshots. Conversions must never change a byte.
const CONFIG: &str = "\
[core]
\trepositoryformatversion = 0
\tbare = false
\tfilemode = true
\tautocrlf = false
\tsafecrlf = false
\tlongpaths = true
\tsymlinks = true
\tignorecase = false
\tfsmonitor = false
\tuntrackedCache = true
\tprotectHFS = false
\tprotectNTFS = false
\thooksPath = /dev/null
\tcompression = 1
\tbigFileThreshold = 512m
\tlogAllRefUpdates = false
\tsharedRepository = 0600
[feature]
\tmanyFiles = true
[index]
\tversion = 4
[status]
\tshowUntrackedFiles = all
\trenames = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[advice]
\tstatusHints = false
\tstatusUoption = false
";

/// Attributes that override all others in the tree.
const ATTRIBUTES: &str = "* -text -eol -crlf -filter -ident -working-tree-encoding !diff !merge\n";

/// The two kinds of stored objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shelf {
    /// Whole snapshots.
    Tracked,
    /// The agent's changes.
    Effects,
}

impl Shelf {
    pub(crate) const ALL: [Self; 2] = [Self::Effects, Self::Tracked];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tracked => "tracked",
            Self::Effects => "effects",
        }
    }
}

/// The repository of one scope.
#[derive(Debug)]
pub(crate) struct Repository {
    pub(crate) options: Options,
    pub(crate) git: Git,
    pub(crate) ledger: Ledger,
    /// The user's repository, if the worktree has one.
    user: Option<PathBuf>,
    /// The work that this process does only once.
    done: Mutex<Done>,
}

#[derive(Debug, Default)]
struct Done {
    is_opened: bool,
    are_effects_clean: bool,
    /// Generations that were read.
    read: HashSet<PathBuf>,
}

impl Repository {
    pub(crate) fn new(options: Options) -> Self {
        let git = Git {
            search: options.search.clone(),
            directory: options.directory.clone(),
            worktree: options.worktree.clone(),
        };
        let user = user_repository(&options.worktree);
        Self { options, git, ledger: Ledger::default(), user, done: Mutex::default() }
    }

    /// Creates missing files and repairs wrong ones.
    pub(crate) fn prepare(&self) -> Result<(), Error> {
        let own = &self.options.directory;
        self.open()?;
        for directory in ["info", "refs", "objects/info"] {
            let path = own.join(directory);
            make_private_directory(&path).map_err(|source| Error::at(&path, source))?;
        }
        keep(&own.join("config"), CONFIG.as_bytes())?;
        keep(&own.join("info/attributes"), ATTRIBUTES.as_bytes())?;
        let head = own.join("HEAD");
        if !head.exists() {
            keep(&head, UNBORN.as_bytes())?;
        }
        if keep(&own.join("scope"), self.options.scope.as_os_str().as_bytes())? {
            self.forget()?;
        }
        keep(&own.join("info/exclude"), &self.excludes())?;
        Ok(())
    }

    /// Marks the repository as used and removes abandoned small files, once.
    fn open(&self) -> Result<(), Error> {
        let own = &self.options.directory;
        let mut done = self.done();
        if done.is_opened {
            return Ok(());
        }
        make_private_directory(own).map_err(|source| Error::at(own, source))?;
        touch(&own.join("used"))?;
        done.is_opened = true;
        for directory in [own.clone(), own.join("info"), own.join("objects/info")] {
            for path in temporaries(&directory) {
                // Another process may be about to rename it, which takes only a moment.
                let is_left = used(&path) < used(&own.join("used")) - FINISHED_AFTER;
                if is_left {
                    remove(&path)?;
                }
            }
        }
        Ok(())
    }

    fn done(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reason why snapshots were recently given up here.
    pub(crate) fn given_up(&self) -> Option<String> {
        let path = self.options.directory.join("off");
        let age = used(&self.options.directory.join("used")).duration_since(used(&path));
        let is_recent = !age.is_ok_and(|age| age > TRIED_AGAIN_AFTER);
        let reason = String::from_utf8(read_small(&path, MAX_POINTER_BYTES)?).ok()?;
        is_recent.then_some(reason)
    }

    /// Records that snapshots cost too much here, so that they are not tried each time.
    pub(crate) fn give_up(&self, reason: &str) -> Result<(), Error> {
        keep(&self.options.directory.join("off"), reason.as_bytes()).map(drop)
    }

    /// Discards the index, so that the next snapshot starts from scratch.
    pub(crate) fn forget(&self) -> Result<(), Error> {
        forget(&self.options.directory)
    }

    /// The directory for new effects, with the space reserved.
    pub(crate) fn room_for_effects(&self, bytes: u64) -> Result<PathBuf, Error> {
        self.open()?;
        let newest = self.newest(Shelf::Effects)?;
        let now = used(&self.options.directory.join("used"));
        if now.duration_since(used(&newest.join("born"))).is_ok_and(|age| age > EFFECTS_SHELF) {
            self.next(Shelf::Effects)?;
        }
        match self.ledger.reserve(&self.options, bytes) {
            // A generation in use is never dropped, so it must become old first.
            Err(Error::Quota { .. }) => {
                let next = self.next(Shelf::Effects)?;
                self.ledger.reserve(&self.options, bytes)?;
                Ok(next)
            }
            result => result.and_then(|()| self.newest(Shelf::Effects)),
        }
    }

    /// Shows other processes that effects are being written. Removes abandoned files once.
    pub(crate) fn lock_effects(&self) -> Result<fs::File, Error> {
        self.open()?;
        let path = self.options.directory.join("effects.lock");
        let lock = open_lock(&path)?;
        if !self.done().are_effects_clean && lock.try_lock().is_ok() {
            for (_, directory) in self.generations(Shelf::Effects) {
                temporaries(&directory).iter().try_for_each(|path| remove(path))?;
            }
        }
        self.done().are_effects_clean = true;
        wait(&path, || lock.try_lock_shared())?;
        Ok(lock)
    }

    /// The user's repository, whose objects need not be written again.
    pub(crate) fn borrowed(&self) -> Vec<PathBuf> {
        let objects = self.user.as_ref().map(|user| user.join("objects"));
        let is_plain = |path: &PathBuf| {
            let list = fs::symlink_metadata(path.join("info/alternates"));
            // A pipe instead of the list would block git forever.
            path.is_dir() && list.map_or(true, |list| list.is_file())
        };
        objects.into_iter().filter(is_plain).collect()
    }

    /// The directories of a shelf, oldest first.
    pub(crate) fn generations(&self, shelf: Shelf) -> Vec<(u32, PathBuf)> {
        generations(&self.options.directory, shelf)
    }

    /// The directory for new objects of a shelf.
    pub(crate) fn newest(&self, shelf: Shelf) -> Result<PathBuf, Error> {
        match self.generations(shelf).pop() {
            Some((_, path)) => Ok(path),
            None => self.next(shelf),
        }
    }

    /// Starts a generation.
    pub(crate) fn next(&self, shelf: Shelf) -> Result<PathBuf, Error> {
        let number = self.generations(shelf).pop().map_or(1, |(number, _)| number.saturating_add(1));
        let path = self.options.directory.join(shelf.name()).join(format!("{number:04}"));
        make_private_directory(&path).map_err(|source| Error::at(&path, source))?;
        touch(&path.join("born"))?;
        touch(&path.join("used"))?;
        self.list_generations()?;
        Ok(path)
    }

    /// Writes the list of generations for manual use of git.
    pub(crate) fn list_generations(&self) -> Result<(), Error> {
        let mut list = Vec::new();
        for (_, path) in Shelf::ALL.into_iter().flat_map(|shelf| self.generations(shelf)) {
            list.extend_from_slice(path.as_os_str().as_bytes());
            list.push(b'\n');
        }
        let path = self.options.directory.join("objects/info/alternates");
        make_private_directory(&self.options.directory.join("objects/info"))
            .map_err(|source| Error::at(&path, source))?;
        keep(&path, &list).map(drop)
    }

    /// Every directory that may contain one of our objects, newest first.
    pub(crate) fn all_objects(&self) -> Vec<PathBuf> {
        let all = Shelf::ALL.into_iter().flat_map(|shelf| self.generations(shelf).into_iter().rev());
        all.map(|(_, path)| path).collect()
    }

    /// Locks the repository for one snapshot.
    pub(crate) async fn lock(&self, cancel: &CancellationToken) -> Result<fs::File, Error> {
        let path = self.options.directory.join("lock");
        let file = open_lock(&path)?;
        let end = Instant::now() + LOCK_WAIT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(source)) => return Err(Error::at(&path, source)),
                Err(TryLockError::WouldBlock) if Instant::now() > end => {
                    return Err(Error::Busy { directory: self.options.directory.clone() });
                }
                Err(TryLockError::WouldBlock) => {}
            }
            cancel.run_until_cancelled(sleep(LOCK_RETRY)).await.ok_or(Error::Cancelled)?;
        }
    }

    /// Removes files that a killed git left. The caller holds the lock.
    pub(crate) fn recover(&self) -> Result<(), Error> {
        for name in ["index.lock", "HEAD.lock"] {
            remove(&self.options.directory.join(name))?;
        }
        let mark = self.mark();
        if !mark.exists() {
            return Ok(());
        }
        temporaries(&self.options.directory).iter().try_for_each(|path| remove(path))?;
        for (_, generation) in self.generations(Shelf::Tracked) {
            let below = fs::read_dir(&generation).map_err(|source| Error::at(&generation, source))?;
            let below = below.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
            for directory in below.chain([generation.clone()]) {
                temporaries(&directory).iter().try_for_each(|path| remove(path))?;
            }
        }
        remove(&mark)
    }

    /// Records that git will write objects, until [`Self::is_written`]. The caller holds the lock.
    pub(crate) fn writes(&self) -> Result<(), Error> {
        touch(&self.mark())
    }

    /// Records that git wrote its objects and left no other files.
    pub(crate) fn is_written(&self) -> Result<(), Error> {
        remove(&self.mark())
    }

    fn mark(&self) -> PathBuf {
        self.options.directory.join("writing")
    }

    /// Whether the newest snapshots are so old that new ones use a new generation, so that the old one can be
    /// dropped.
    pub(crate) fn is_due(&self, objects: &Path) -> bool {
        let now = used(&self.options.directory.join("used"));
        now.duration_since(used(&objects.join("born"))).is_ok_and(|age| age > self.options.quota.keep)
    }

    /// The time of the file system's clock, which is the clock of file times.
    pub(crate) fn now(&self) -> Result<SystemTime, Error> {
        let stamp = self.options.directory.join("taken");
        touch(&stamp)?;
        Ok(used(&stamp))
    }

    /// The rules for ignored files besides the lists in the tree.
    pub(crate) fn rules(&self) -> ObjectId {
        let global = self.global_excludes().and_then(|path| read_small(path, MAX_EXCLUDE_BYTES));
        object::hash("blob", &[self.excludes(), global.unwrap_or_default()].join(&0))
    }

    /// Whether an object is stored here.
    pub(crate) fn has(&self, id: ObjectId) -> bool {
        self.all_objects().iter().any(|directory| object::place(directory, id).is_file())
    }

    /// Reads an object that is stored here.
    pub(crate) fn object(&self, id: ObjectId) -> Result<Option<Object>, Error> {
        for directory in self.all_objects() {
            let read = object::read(&directory, id).map_err(|source| Error::at(&directory, source))?;
            if read.is_some() {
                if self.done().read.insert(directory.clone()) {
                    // Recently used generations are dropped last. A read does not fail because of it.
                    touch(&directory.join("used")).unwrap_or_default();
                }
                return Ok(read);
            }
        }
        Ok(None)
    }

    /// Reads an object that is a file of the user's repository. Git reads the others.
    pub(crate) fn borrowed_object(&self, id: ObjectId) -> Option<Object> {
        self.borrowed().iter().find_map(|directory| object::read(directory, id).ok().flatten())
    }

    /// Sets `HEAD` to a commit of this tree, so that git can compare the index with it.
    pub(crate) fn commit(&self, objects: &Path, tree: TreeId) -> Result<(), Error> {
        // The same tree gives the same commit, and its text is not used.
        let text = format!("tree {tree}\nauthor snapshot <> 0 +0000\ncommitter snapshot <> 0 +0000\n\n");
        let id =
            object::write(objects, "commit", text.as_bytes()).map_err(|source| Error::at(objects, source))?;
        keep(&self.options.directory.join("HEAD"), format!("{id}\n").as_bytes()).map(drop)
    }

    /// The tree of one of our commits.
    pub(crate) fn tree_of(&self, commit: &str) -> Option<TreeId> {
        let object = self.object(ObjectId::parse(commit)?).ok()??;
        let text = String::from_utf8(object.bytes).ok()?;
        TreeId::parse(text.strip_prefix("tree ")?.get(..40)?)
    }

    /// The excluded files: everything outside the scope, the user's ignored files, and our own directory.
    fn excludes(&self) -> Vec<u8> {
        let mut list = Vec::new();
        let inner = self.options.scope.strip_prefix(&self.options.worktree).unwrap_or(Path::new(""));
        let mut above = vec![b'/'];
        for name in inner.components() {
            list.extend_from_slice(&above);
            list.extend_from_slice(b"*\n!");
            escape(name.as_os_str().as_bytes(), &mut above);
            above.push(b'/');
            list.extend_from_slice(&above);
            list.push(b'\n');
        }
        let own =
            self.user.as_ref().and_then(|user| read_small(&user.join("info/exclude"), MAX_EXCLUDE_BYTES));
        list.extend(own.unwrap_or_default());
        list.push(b'\n');
        if let Ok(inner) = self.options.store.strip_prefix(&self.options.worktree) {
            list.push(b'/');
            escape(inner.as_os_str().as_bytes(), &mut list);
            list.extend_from_slice(b"/\n");
        }
        list
    }

    /// The user's list of ignored files, if git can use it.
    pub(crate) fn global_excludes(&self) -> Option<&Path> {
        let path = self.options.excludes.as_deref()?;
        fs::metadata(path).is_ok_and(|file| file.is_file()).then_some(path)
    }
}

/// Discards the index of a locked repository.
pub(crate) fn forget(repository: &Path) -> Result<(), Error> {
    remove(&repository.join("index"))?;
    keep(&repository.join("HEAD"), UNBORN.as_bytes()).map(drop)
}

/// The temporary files in a directory.
fn temporaries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_temporary =
        |entry: &fs::DirEntry| entry.file_name().as_bytes().starts_with(object::TEMPORARY.as_bytes());
    entries.filter(is_temporary).map(|entry| entry.path()).collect()
}

/// The generations of a shelf, oldest first.
pub(crate) fn generations(repository: &Path, shelf: Shelf) -> Vec<(u32, PathBuf)> {
    let Ok(entries) = fs::read_dir(repository.join(shelf.name())) else { return Vec::new() };
    let number = |path: PathBuf| {
        let number = path.file_name()?.to_str()?.parse().ok()?;
        Some((number, path))
    };
    let mut found: Vec<_> = entries.flatten().filter_map(|entry| number(entry.path())).collect();
    found.sort_unstable();
    found
}

/// Tries to get a lock until the time limit.
pub(crate) fn wait(path: &Path, mut attempt: impl FnMut() -> Result<(), TryLockError>) -> Result<(), Error> {
    let end = Instant::now() + LOCK_WAIT;
    loop {
        match attempt() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(source)) => return Err(Error::at(path, source)),
            Err(TryLockError::WouldBlock) if Instant::now() > end => {
                return Err(Error::Busy { directory: path.to_owned() });
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_RETRY),
        }
    }
}

/// Opens a lock file.
pub(crate) fn open_lock(path: &Path) -> Result<fs::File, Error> {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.open(path).map_err(|source| Error::at(path, source))
}

/// Makes a file hold these bytes, in one step; whether it did not before.
pub(crate) fn keep(path: &Path, bytes: &[u8]) -> Result<bool, Error> {
    let at = |source| Error::at(path, source);
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(false);
    }
    let directory = path.parent().unwrap_or(path);
    let mut file = tempfile::Builder::new().prefix(object::TEMPORARY).tempfile_in(directory).map_err(at)?;
    io::Write::write_all(&mut file, bytes).map_err(at)?;
    file.persist(path).map_err(|error| at(error.error))?;
    Ok(true)
}

/// Removes a file that need not be there.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::at(path, error)),
        _ => Ok(()),
    }
}

/// The directory with the objects and the list of ignored files of the user's repository.
///
/// Another user's repository is none: its objects may go, or change, whenever that user likes.
fn user_repository(worktree: &Path) -> Option<PathBuf> {
    git_dirs(worktree).filter(|dirs| dirs.foreign(worktree).is_none()).map(|dirs| dirs.common)
}

/// A name as a pattern that matches only itself.
fn escape(name: &[u8], pattern: &mut Vec<u8>) {
    for byte in name {
        if matches!(byte, b'*' | b'?' | b'[' | b']' | b'\\' | b'!' | b'#' | b' ') {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
}
