//! Notices without git that nothing has changed since the last snapshot.
//!
//! If two snapshots in a row find nothing to store, the third one may not need git: the files and directories were
//! [observed](Observed) before git confirmed that they are the last tree. While every observed path has the same
//! metadata, the tree is the same.
//!
//! What git finds by comparing content with patterns is not imitated. Directories that git ignores are not observed,
//! because git itself has named them. A change of any list of ignored files is a change. If anything is in doubt, git
//! runs: a path that changed a moment ago, an index with special entries, too many paths, or untracked files that are
//! not stored.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::id::{ObjectId, TreeId};
use crate::repository::{Repository, Shelf};
use crate::track::Snapshot;

/// The limit of observed paths. Git is faster in larger directories, because it compares files in parallel.
const MAX_PATHS: usize = 8000;
/// The limit for the size of an index.
const MAX_INDEX_BYTES: u64 = 4 * 1024 * 1024;
/// The size of an entry of an index without its name.
const ENTRY_BYTES: usize = 62;
/// The position of the object's id in an entry.
const ID: std::ops::Range<usize> = 40..60;
/// The flags of an entry that stands for something else than a file that git compares: assumed to be unchanged,
/// extended, or a side of a merge.
const SPECIAL_FLAGS: u16 = 0x8000 | 0x4000 | 0x3000;

/// The knowledge about the last snapshots of a process.
#[derive(Debug, Default)]
pub(crate) enum Knowledge {
    /// The last snapshot found changes, or there was none.
    #[default]
    Nothing,
    /// The last snapshot found nothing to store.
    Calm(TreeId),
    /// Before the last snapshot, which found nothing to store, these paths were observed.
    Observed(Box<Observed>),
}

/// The paths that decide about the tree, with their metadata.
#[derive(Debug)]
pub(crate) struct Observed {
    tree: TreeId,
    rules: ObjectId,
    paths: Vec<(PathBuf, Option<Stamp>)>,
}

/// The metadata of a path. It changes with every change of a file's content or a directory's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    place: (u64, u64),
    mode: u32,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The directories that may contain untracked files, found by walking.
#[derive(Debug)]
pub(crate) struct Survey {
    /// The time before the first path was observed.
    begun: SystemTime,
    paths: Vec<(PathBuf, Option<Stamp>)>,
    /// Directories without tracked files, which git may ignore. Relative to the worktree.
    pub(crate) doubtful: Vec<PathBuf>,
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let data = fs::symlink_metadata(path).ok()?;
        Some(Self {
            place: (data.dev(), data.ino()),
            mode: data.mode(),
            bytes: data.len(),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        })
    }

    /// Whether the last change is so long ago that the next one has another time.
    fn is_settled(&self, now: SystemTime, after: Duration) -> bool {
        let latest = self.modified.max(self.changed);
        let since = |(seconds, nanos): (i64, i64)| {
            let seconds = Duration::from_secs(u64::try_from(seconds).ok()?);
            SystemTime::UNIX_EPOCH.checked_add(seconds + Duration::from_nanos(u64::try_from(nanos).ok()?))
        };
        since(latest).and_then(|time| now.duration_since(time).ok()).is_some_and(|age| age >= after)
    }
}

impl Observed {
    /// Returns the snapshot if nothing has changed.
    pub(crate) fn snapshot(&self, repository: &Repository) -> Option<Snapshot> {
        let (taken, rules) = (repository.now().ok()?, repository.rules());
        let objects = repository.newest(Shelf::Tracked).ok()?;
        let is_same = rules == self.rules
            && !repository.is_due(&objects)
            && self.paths.iter().all(|(path, stamp)| Stamp::of(path) == *stamp)
            && head_tree(repository) == Some(self.tree);
        is_same.then(|| Snapshot { tree: self.tree, left_out: Default::default(), rules, taken })
    }
}

impl Survey {
    /// Observes the tracked files, their directories, and the lists of ignored files. Returns `None` if these cannot be
    /// observed. The caller holds the lock.
    pub(crate) fn begin(repository: &Repository) -> Option<Self> {
        // The index only names the tracked files. Git may write it again without a change.
        let index = repository.options.directory.join("index");
        let (worktree, scope) = (&repository.options.worktree, &repository.options.scope);
        let mut survey = Self { begun: repository.now().ok()?, paths: Vec::new(), doubtful: Vec::new() };
        let is_small = fs::metadata(&index).ok()?.len() <= MAX_INDEX_BYTES;
        let files = entries(&fs::read(&index).ok().filter(|_| is_small)?, MAX_PATHS)?;
        let files: Vec<PathBuf> = files.into_iter().map(|(path, _)| path).collect();
        for above in scope.ancestors().skip(1).take_while(|above| above.starts_with(worktree)) {
            survey.observe(above.join(".gitignore"))?;
        }
        let mut tracked: HashSet<&Path> = HashSet::from([Path::new("")]);
        for file in &files {
            survey.observe(worktree.join(file))?;
            tracked.extend(file.ancestors().skip(1));
        }
        let inner = scope.strip_prefix(worktree).unwrap_or(Path::new(""));
        for directory in tracked.iter().copied().filter(|directory| directory.starts_with(inner)) {
            for below in survey.enter(worktree, directory)? {
                if !tracked.contains(below.as_path()) {
                    survey.doubtful.push(below);
                }
            }
        }
        if !tracked.contains(inner) {
            survey.walk(worktree, inner.to_owned())?;
        }
        Some(survey)
    }

    /// Observes the doubtful directories that git does not ignore, and returns everything that was observed.
    pub(crate) fn finish(
        mut self,
        repository: &Repository,
        tree: TreeId,
        ignored: &HashSet<PathBuf>,
    ) -> Option<Observed> {
        let worktree = &repository.options.worktree;
        for directory in std::mem::take(&mut self.doubtful) {
            if !ignored.contains(&directory) {
                self.walk(worktree, directory)?;
            }
        }
        let (begun, after) = (self.begun, repository.options.settled_after);
        let is_settled = |stamp: &Option<Stamp>| stamp.is_none_or(|stamp| stamp.is_settled(begun, after));
        let is_settled = self.paths.iter().all(|(_, stamp)| is_settled(stamp));
        let rules = repository.rules();
        is_settled.then_some(Observed { tree, rules, paths: self.paths })
    }

    /// Observes a directory and everything below it.
    fn walk(&mut self, worktree: &Path, directory: PathBuf) -> Option<()> {
        let mut left = vec![directory];
        while let Some(directory) = left.pop() {
            left.extend(self.enter(worktree, &directory)?);
        }
        Some(())
    }

    /// Observes a directory and its list of ignored files. Returns the directories in it.
    fn enter(&mut self, worktree: &Path, directory: &Path) -> Option<Vec<PathBuf>> {
        let whole = worktree.join(directory);
        self.observe(whole.clone())?;
        self.observe(whole.join(".gitignore"))?;
        let mut below = Vec::new();
        for entry in fs::read_dir(&whole).ok()? {
            let entry = entry.ok()?;
            let is_git = entry.file_name().eq_ignore_ascii_case(".git");
            if entry.file_type().ok()?.is_dir() && !is_git {
                below.push(directory.join(entry.file_name()));
                // Entries are not observed yet, but a directory of too many is not worth reading.
                (below.len() <= MAX_PATHS).then_some(())?;
            }
        }
        Some(below)
    }

    fn observe(&mut self, path: PathBuf) -> Option<()> {
        let stamp = Stamp::of(&path);
        self.paths.push((path, stamp));
        (self.paths.len() <= MAX_PATHS).then_some(())
    }
}

/// The tree of the last snapshot, if it is stored.
fn head_tree(repository: &Repository) -> Option<TreeId> {
    let head = fs::read_to_string(repository.options.directory.join("HEAD")).ok()?;
    repository.tree_of(head.trim())
}

/// The files of an index and what it stores for them, or `None` if it has more than `limit`, or entries or a form that
/// need git.
pub(crate) fn entries(index: &[u8], limit: usize) -> Option<Vec<(PathBuf, ObjectId)>> {
    let number =
        |at: usize| index.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
    let is_version_4 = index.starts_with(b"DIRC") && number(4)? == 4;
    let count = usize::try_from(number(8)?).ok().filter(|count| is_version_4 && *count <= limit)?;
    let (mut entries, mut name, mut rest) = (Vec::new(), Vec::new(), index.get(12..)?);
    for _ in 0..count {
        let flags = rest.get(ENTRY_BYTES - 2..ENTRY_BYTES)?.try_into().ok().map(u16::from_be_bytes)?;
        if flags & SPECIAL_FLAGS != 0 {
            return None;
        }
        let id = ObjectId(rest.get(ID)?.try_into().ok()?);
        rest = &rest[ENTRY_BYTES..];
        // The number of bytes at the end of the previous name that are replaced, in 7 bits each.
        let mut cut = 0_usize;
        loop {
            let (byte, after) = rest.split_first()?;
            rest = after;
            cut = cut.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
            if byte & 0x80 == 0 {
                break;
            }
            cut = cut.checked_add(1)?;
        }
        name.truncate(name.len().checked_sub(cut)?);
        let end = rest.iter().position(|byte| *byte == 0)?;
        name.extend_from_slice(&rest[..end]);
        rest = &rest[end + 1..];
        entries.push((PathBuf::from(OsStr::from_bytes(&name)), id));
    }
    Some(entries)
}
