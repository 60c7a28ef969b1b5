//! Takes a snapshot of the scope: files that `git status` reports are added to the index, and the tree of the
//! index is the snapshot.
//!
//! If nothing has changed, this starts at most one process, which reads no file; otherwise three. Files that must not
//! be stored are removed before git sees them.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use nix::unistd::{AccessFlags, access};
use tokio_util::sync::CancellationToken;

use crate::git::{self, Call, Input};
use crate::id::ObjectId;
use crate::object;
use crate::quota;
use crate::repository::{Repository, Shelf};
use crate::unchanged::{Knowledge, Observed, Survey};
use crate::verify;
use crate::{Error, TreeId, blocking};

/// The limit for the size of a tracked file.
pub const MAX_TRACKED_BYTES: u64 = 2 * 1024 * 1024;
/// The limit of files. Larger directories are not tracked.
pub const MAX_TRACKED_FILES: usize = 200_000;
/// The time limit for finding changes.
const STATUS_DEADLINE: Duration = Duration::from_secs(60);
/// The time limit for storing them.
const ADD_DEADLINE: Duration = Duration::from_secs(300);
/// The number of times that names which git rejected are removed before the snapshot fails.
const REFUSALS: usize = 8;
/// The size of a portion as a part of the quota, if the files do not fit at once.
const BATCHES: u64 = 16;
/// The estimated size above which the used space is measured afterwards.
const MEASURED_BYTES: u64 = 64 * 1024 * 1024;
/// The size above which space that was reserved for the index is returned.
const SETTLED_BYTES: u64 = 1024 * 1024;
/// The limit of names of omitted files.
const MAX_NAMED: usize = 1000;
/// The limit for an entry in the index and the tree, besides its name.
const ENTRY_BYTES: u64 = 256;

/// The files of the scope at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The tree of the files.
    pub tree: TreeId,
    /// Files that are omitted because they are too large, the first thousand.
    pub left_out: BTreeMap<PathBuf, Version>,
    /// The rules for ignored files besides the lists in the tree.
    pub(crate) rules: ObjectId,
    /// The time at which it was started, by the clock of the file system.
    pub(crate) taken: SystemTime,
}

/// A version of a file that is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    bytes: u64,
    changed: (i64, i64),
}

/// The state of the worktree according to git.
#[derive(Debug, Default, PartialEq, Eq)]
struct Status {
    /// The commit that the index was last compared with.
    commit: Option<String>,
    /// Whether the index differs from that commit's tree.
    is_staged: bool,
    /// Files of the index that have changed or are gone.
    changed: Vec<PathBuf>,
    /// Files that are not in the index.
    fresh: Vec<PathBuf>,
}

/// The changes to the index.
#[derive(Debug, Default)]
struct Changes {
    add: Vec<Fresh>,
    drop: Vec<PathBuf>,
    left_out: BTreeMap<PathBuf, Version>,
}

/// A file to store.
#[derive(Debug)]
struct Fresh {
    path: PathBuf,
    bytes: u64,
}

/// Takes a snapshot. The caller holds the lock.
pub(crate) async fn track(
    repository: &Arc<Repository>,
    lock: &fs::File,
    knowledge: &mut Knowledge,
    cancel: &CancellationToken,
) -> Result<Snapshot, Error> {
    let known = match std::mem::take(knowledge) {
        Knowledge::Observed(observed) => {
            let own = Arc::clone(repository);
            let looked = blocking(move || Ok((observed.snapshot(&own), observed))).await?;
            if let (Some(snapshot), observed) = looked {
                *knowledge = Knowledge::Observed(observed);
                return Ok(snapshot);
            }
            None
        }
        Knowledge::Calm(tree) => Some(tree),
        Knowledge::Nothing => None,
    };
    let mut run = Run { repository, lock, cancel, objects: repository.newest(Shelf::Tracked)? };
    if repository.is_due(&run.objects) {
        run.begin()?;
    }
    // Before git compares the files, so that its answer is true for what was observed or a change is noticed later.
    let observed = match known {
        Some(tree) => run.observe(tree).await?,
        None => None,
    };
    let result = match run.once().await {
        // The index may be damaged, refer to missing objects, or leave no space.
        Err(Error::Git { .. } | Error::Quota { .. }) => {
            repository.recover()?;
            run.begin()?;
            run.once().await
        }
        result => result,
    };
    let result = result.map(|(snapshot, is_calm)| {
        *knowledge = match observed.filter(|_| is_calm && known == Some(snapshot.tree)) {
            Some(observed) => Knowledge::Observed(Box::new(observed)),
            None if is_calm => Knowledge::Calm(snapshot.tree),
            None => Knowledge::Nothing,
        };
        snapshot
    });
    let result = match result {
        Err(error @ Error::Quota { .. }) => Err(Error::Off { reason: error.to_string() }),
        result => result,
    };
    // This shows for free whether git is installed.
    if let Err(Error::Off { reason }) = &result
        && reason != git::MISSING
    {
        repository.give_up(reason)?;
    }
    result
}

struct Run<'a> {
    repository: &'a Arc<Repository>,
    lock: &'a fs::File,
    cancel: &'a CancellationToken,
    objects: PathBuf,
}

impl Run<'_> {
    /// Creates the index from scratch, with all its objects in a new generation.
    fn begin(&mut self) -> Result<(), Error> {
        self.repository.forget()?;
        self.objects = self.repository.next(Shelf::Tracked)?;
        Ok(())
    }

    /// Observes the paths that decide about the tree, or returns `None` if git must always look.
    async fn observe(&self, tree: TreeId) -> Result<Option<Observed>, Error> {
        let repository = Arc::clone(self.repository);
        let Some(survey) = blocking(move || Ok(Survey::begin(&repository))).await? else { return Ok(None) };
        let mut ignored = HashSet::new();
        if !survey.doubtful.is_empty() {
            // The command does not support literal patterns, and a colon would begin a pattern.
            if survey.doubtful.iter().any(|path| path.as_os_str().as_bytes().starts_with(b":")) {
                return Ok(None);
            }
            let input = Input::Bytes(list(&survey.doubtful), None);
            let args = ["--no-literal-pathspecs", "check-ignore", "-z", "--stdin"];
            match self.git(&args, input, STATUS_DEADLINE).await {
                Ok(printed) => {
                    let paths = printed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
                    ignored.extend(paths.map(|path| PathBuf::from(OsStr::from_bytes(path))));
                }
                // The exit code without a message means that nothing is ignored.
                Err(Error::Git { message, .. }) if message.is_empty() => {}
                Err(Error::Git { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let repository = Arc::clone(self.repository);
        blocking(move || Ok(survey.finish(&repository, tree, &ignored))).await
    }

    /// Takes a snapshot, and reports whether git found nothing at all that differs from the last one.
    async fn once(&self) -> Result<(Snapshot, bool), Error> {
        let (taken, rules) = (self.repository.now()?, self.repository.rules());
        let status = self.status().await?;
        let count = entries(&self.repository.options.directory.join("index")) + status.fresh.len();
        if count > MAX_TRACKED_FILES {
            let reason = format!("the directory has more than {MAX_TRACKED_FILES} files");
            return Err(Error::Off { reason });
        }
        let known = status.commit.as_deref().filter(|_| !status.is_staged);
        let known = known.and_then(|commit| self.repository.tree_of(commit));
        let is_calm = status.changed.is_empty() && status.fresh.is_empty();
        let (worktree, scope) =
            (self.repository.options.worktree.clone(), self.repository.options.scope.clone());
        let mut changes = blocking(move || Ok(sort(&worktree, &scope, status))).await?;
        let left_out = std::mem::take(&mut changes.left_out);
        if let (Some(tree), true, true) = (known, changes.add.is_empty(), changes.drop.is_empty()) {
            return Ok((Snapshot { tree, left_out, rules, taken }, is_calm));
        }
        self.repository.writes()?;
        let added: Vec<PathBuf> = changes.add.iter().map(|file| file.path.clone()).collect();
        self.store(changes).await?;
        self.verify(added).await?;
        let tree = self.git(&["write-tree"], Input::Lock(self.lock.try_clone().ok()), ADD_DEADLINE).await?;
        let tree = String::from_utf8_lossy(&tree);
        let tree = TreeId::parse(tree.trim()).ok_or_else(|| Error::Git {
            command: "write-tree".to_owned(),
            message: format!("`{}` is not a tree", tree.trim()),
        })?;
        self.repository.commit(&self.objects, tree)?;
        self.repository.is_written()?;
        Ok((Snapshot { tree, left_out, rules, taken }, false))
    }

    async fn status(&self) -> Result<Status, Error> {
        let args = [
            "status",
            "--porcelain=v2",
            "-z",
            "--branch",
            "--no-ahead-behind",
            "--untracked-files=all",
            "--ignored=no",
            "--ignore-submodules=all",
            "--no-renames",
        ];
        let printed = self.git(&args, Input::Lock(self.lock.try_clone().ok()), STATUS_DEADLINE).await?;
        Ok(parse(&printed))
    }

    /// Replaces what git stored for files if they contain something else.
    async fn verify(&self, files: Vec<PathBuf>) -> Result<(), Error> {
        if files.is_empty() {
            return Ok(());
        }
        let index = self.repository.options.directory.join("index");
        let read = blocking(move || verify::stored(&index).map_err(|source| Error::at(&index, source)));
        let stored = match read.await? {
            Some(stored) => stored,
            None => {
                let lock = Input::Lock(self.lock.try_clone().ok());
                verify::listed(&self.git(&["ls-files", "--stage", "-z"], lock, STATUS_DEADLINE).await?)
            }
        };
        let worktree = self.repository.options.worktree.clone();
        let strays = blocking(move || Ok(verify::strays(&worktree, &files, &stored))).await?;
        let sizes = strays.iter().filter_map(|(_, file)| file.as_ref()).map(|file| file.bytes.len() as u64);
        let cost_bytes: u64 = sizes.map(object::cost).sum();
        if strays.is_empty() {
            return Ok(());
        }
        self.reserve(cost_bytes + object::fan_out(strays.len() as u64)).await?;
        let objects = self.objects.clone();
        let (info, gone) = blocking(move || {
            let (mut info, mut gone) = (Vec::new(), Vec::new());
            for (path, file) in strays {
                let Some(file) = file else {
                    gone.push(path);
                    continue;
                };
                let id = object::write(&objects, "blob", &file.bytes);
                let id = id.map_err(|source| Error::at(&objects, source))?;
                info.extend_from_slice(format!("{} {id}\t", file.kind.mode()).as_bytes());
                info.extend_from_slice(path.as_os_str().as_bytes());
                info.push(0);
            }
            Ok((info, gone))
        })
        .await?;
        if !gone.is_empty() {
            self.update(&["update-index", "-z", "--force-remove", "--stdin"], &gone).await?;
        }
        if !info.is_empty() {
            let input = Input::Bytes(info, self.lock.try_clone().ok());
            self.git(&["update-index", "-z", "--index-info"], input, ADD_DEADLINE).await?;
        }
        Ok(())
    }

    /// Adds the changes to the index, and the files to the repository.
    async fn store(&self, changes: Changes) -> Result<(), Error> {
        if !changes.drop.is_empty() {
            self.reserve(self.index_bytes()).await?;
            self.update(&["update-index", "-z", "--force-remove", "--stdin"], &changes.drop).await?;
        }
        match self.add(&changes.add).await {
            // Most content may be in the user's repository and need no space, which is known afterwards.
            Err(Error::Quota { .. }) => {
                let quota = &self.repository.options.quota;
                let room_bytes = quota.total_bytes.min(quota.repository_bytes) / BATCHES;
                for batch in batches(&changes.add, room_bytes) {
                    self.add(batch).await?;
                }
                Ok(())
            }
            result => result,
        }
    }

    /// Stores files, and returns the space that they did not use.
    async fn add(&self, files: &[Fresh]) -> Result<(), Error> {
        let (index_bytes, cost_bytes) = (self.index_bytes(), cost(files));
        self.reserve(cost_bytes + index_bytes).await?;
        let is_measured =
            cost_bytes > MEASURED_BYTES.min(self.repository.options.quota.total_bytes / BATCHES / 2);
        let before = if is_measured { self.disk_use().await? } else { 0 };
        self.add_now(files.iter().map(|file| file.path.clone()).collect()).await?;
        let mut unused = if index_bytes > SETTLED_BYTES { index_bytes / 2 } else { 0 };
        if is_measured {
            let index = 2 * self.index_bytes();
            let taken = self.disk_use().await?.saturating_sub(before) + index;
            unused = (cost_bytes + index_bytes).saturating_sub(taken);
        }
        if unused == 0 {
            return Ok(());
        }
        let repository = Arc::clone(self.repository);
        blocking(move || repository.ledger.give_back(&repository.options, unused)).await
    }

    async fn add_now(&self, mut paths: Vec<PathBuf>) -> Result<(), Error> {
        let args = ["update-index", "-z", "--add", "--remove", "--replace", "--stdin"];
        for _ in 0..REFUSALS {
            if paths.is_empty() {
                return Ok(());
            }
            let Err(error) = self.update(&args, &paths).await else { return Ok(()) };
            let Some(refused) = rejected_path(&error) else { return Err(error) };
            let count = paths.len();
            paths.retain(|path| path.to_string_lossy() != refused);
            if paths.len() == count {
                return Err(error);
            }
        }
        self.update(&args, &paths).await
    }

    async fn reserve(&self, bytes: u64) -> Result<(), Error> {
        let repository = Arc::clone(self.repository);
        blocking(move || repository.ledger.reserve(&repository.options, bytes)).await
    }

    async fn disk_use(&self) -> Result<u64, Error> {
        let objects = self.objects.clone();
        blocking(move || Ok(quota::disk_use(&objects))).await
    }

    /// Git writes a second index, and its entries may also be in a new tree.
    fn index_bytes(&self) -> u64 {
        let index = fs::metadata(self.repository.options.directory.join("index"));
        object::cost(2 * index.map_or(0, |index| index.len()))
    }

    async fn update(&self, args: &[&str], paths: &[PathBuf]) -> Result<(), Error> {
        self.git(args, Input::Bytes(list(paths), self.lock.try_clone().ok()), ADD_DEADLINE).await.map(drop)
    }

    async fn git(&self, args: &[&str], input: Input, deadline: Duration) -> Result<Vec<u8>, Error> {
        let mut ignored = std::ffi::OsString::from("core.excludesFile=");
        ignored.push(self.repository.global_excludes().unwrap_or(Path::new("/dev/null")));
        let mut all: Vec<&OsStr> = vec![OsStr::new("-c"), &ignored];
        all.extend(args.iter().map(OsStr::new));
        let alternates = self.repository.borrowed();
        let call = Call { args: all, objects: &self.objects, alternates: &alternates, input, deadline };
        self.repository.git.run(call, self.cancel).await
    }
}

/// Paths as the input of git.
fn list(paths: &[PathBuf]) -> Vec<u8> {
    let mut list = Vec::new();
    for path in paths {
        list.extend_from_slice(path.as_os_str().as_bytes());
        list.push(0);
    }
    list
}

/// Parses the output of `status`.
fn parse(printed: &[u8]) -> Status {
    let mut status = Status::default();
    for record in printed.split(|byte| *byte == 0) {
        // The kind, two letters, and then this many fields precede the path.
        let path = |fields: usize| {
            let path = record.splitn(fields, |byte| *byte == b' ').nth(fields - 1)?;
            Some(PathBuf::from(OsStr::from_bytes(path)))
        };
        match record {
            [b'#', ..] => {
                let text = String::from_utf8_lossy(record);
                if let Some(commit) = text.strip_prefix("# branch.oid ") {
                    status.commit = Some(commit.to_owned());
                }
            }
            [b'?', b' ', ..] => status.fresh.extend(path(2)),
            [b'1', b' ', staged, changed, ..] => {
                status.is_staged |= *staged != b'.';
                if *changed != b'.' {
                    status.changed.extend(path(9));
                }
            }
            // Other kinds are never in our index. If there is one, the tree is created from scratch.
            [] => {}
            _ => status.is_staged = true,
        }
    }
    status
}

/// Decides which files are stored.
fn sort(worktree: &Path, scope: &Path, status: Status) -> Changes {
    let mut changes = Changes::default();
    let inner = scope.strip_prefix(worktree).unwrap_or(Path::new(""));
    for path in status.changed {
        match look(worktree, &path) {
            Look::Fits { bytes } => changes.add.push(Fresh { path, bytes }),
            Look::TooLarge(version) => {
                changes.left_out.insert(path.clone(), version);
                changes.drop.push(path);
            }
            Look::Unfit => changes.drop.push(path),
        }
    }
    for path in status.fresh {
        if !path.starts_with(inner) || !may_be_named(&path) {
            continue;
        }
        match look(worktree, &path) {
            Look::Fits { bytes } => changes.add.push(Fresh { path, bytes }),
            Look::TooLarge(version) if changes.left_out.len() < MAX_NAMED => {
                changes.left_out.insert(path, version);
            }
            Look::TooLarge(_) => {}
            Look::Unfit => {}
        }
    }
    changes
}

/// The limit for the space of files: their content and their entries in the index and in trees.
fn cost(files: &[Fresh]) -> u64 {
    let mut directories = HashSet::new();
    let mut bytes = 2 * object::cost(0);
    for file in files {
        directories.extend(file.path.ancestors().skip(1));
        bytes += object::cost(file.bytes) + 3 * (file.path.as_os_str().len() as u64 + ENTRY_BYTES);
    }
    let directories = directories.len() as u64;
    bytes + directories * object::cost(0) + object::fan_out(files.len() as u64 + directories)
}

/// Splits files into portions of about this size.
fn batches(files: &[Fresh], room_bytes: u64) -> Vec<&[Fresh]> {
    let mut batches = Vec::new();
    let (mut start, mut sum) = (0, 0);
    for (at, file) in files.iter().enumerate() {
        let bytes = cost(std::slice::from_ref(file));
        if sum + bytes > room_bytes && at > start {
            batches.push(&files[start..at]);
            (start, sum) = (at, 0);
        }
        sum += bytes;
    }
    batches.push(&files[start..]);
    batches
}

enum Look {
    Fits {
        bytes: u64,
    },
    TooLarge(Version),
    /// Not a file, or not readable. Git notices missing files itself.
    Unfit,
}

fn look(worktree: &Path, path: &Path) -> Look {
    let whole = worktree.join(path);
    let Ok(metadata) = fs::symlink_metadata(&whole) else {
        // Git rejects paths through a link.
        let is_behind = path.ancestors().skip(1).any(|above| worktree.join(above).is_symlink());
        return if is_behind { Look::Unfit } else { Look::Fits { bytes: 0 } };
    };
    if metadata.is_symlink() {
        return Look::Fits { bytes: metadata.len() };
    }
    if !metadata.is_file() {
        return Look::Unfit;
    }
    if metadata.len() > MAX_TRACKED_BYTES {
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        return Look::TooLarge(Version { bytes: metadata.len(), changed });
    }
    let is_open = metadata.permissions().mode() & 0o444 == 0o444;
    if is_open || access(&whole, AccessFlags::R_OK).is_ok() {
        Look::Fits { bytes: metadata.len() }
    } else {
        Look::Unfit
    }
}

/// Whether git accepts this path in an index.
fn may_be_named(path: &Path) -> bool {
    // A trailing slash marks another repository.
    !path.as_os_str().as_bytes().ends_with(b"/")
        && path.components().all(|name| !name.as_os_str().eq_ignore_ascii_case(".git"))
}

/// The path that git rejected.
fn rejected_path(error: &Error) -> Option<&str> {
    let Error::Git { message, .. } = error else { return None };
    message.lines().find_map(|line| line.strip_prefix("fatal: Unable to process path "))
}

/// The number of entries of an index file.
fn entries(index: &Path) -> usize {
    let read = |path: &Path| -> Option<usize> {
        let mut head = [0; 12];
        std::io::Read::read_exact(&mut fs::File::open(path).ok()?, &mut head).ok()?;
        let count = head.strip_prefix(b"DIRC")?.get(4..8)?.try_into().ok()?;
        usize::try_from(u32::from_be_bytes(count)).ok()
    };
    read(index).unwrap_or(0)
}
