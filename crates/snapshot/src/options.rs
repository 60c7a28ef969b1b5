//! Where snapshots are kept, of what, and how much of the disk they may take.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::object;

/// Everything below `snapshot/` may take this much unless said otherwise.
const TOTAL_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// What has not been used for so long is dropped unless said otherwise.
const KEEP: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Digits of a directory's name that tell one scope from another.
const NAME_DIGITS: usize = 40;

/// How much of the disk snapshots may take, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// All repositories together.
    pub total_bytes: u64,
    /// Each repository.
    pub repository_bytes: u64,
    /// What was not used for longer is dropped.
    pub keep: Duration,
}

impl Default for Quota {
    fn default() -> Self {
        Self { total_bytes: TOTAL_BYTES, repository_bytes: TOTAL_BYTES, keep: KEEP }
    }
}

/// What snapshots are made of and where they go; nothing is touched before the first use.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory of all snapshot repositories, `<data>/snapshot`; the quota is for it.
    pub store: PathBuf,
    /// This one's repository, below `store`.
    pub directory: PathBuf,
    /// The root that paths are relative to.
    pub worktree: PathBuf,
    /// The directory whose files are tracked, within the worktree.
    pub scope: PathBuf,
    /// The user's home; it and what is above it is never tracked.
    pub home: Option<PathBuf>,
    /// Where `git` is looked for, a `PATH`.
    pub search: Option<OsString>,
    /// The user's own list of what git ignores everywhere.
    pub excludes: Option<PathBuf>,
    /// Bounds.
    pub quota: Quota,
}

impl Options {
    /// The usual places: `<data>/snapshot/<project>/<hash of the scope>`.
    ///
    /// Both paths are expected without symbolic links. A scope outside of the worktree is its own
    /// worktree, and so is one below a worktree of `/`.
    pub fn new(data: &Path, project: &str, worktree: &Path, scope: &Path) -> Self {
        let own = worktree == Path::new("/") || !scope.starts_with(worktree);
        let worktree = if own { scope } else { worktree };
        let store = data.join("snapshot");
        // A project's name comes from a repository; it is one plain name here.
        let project: String =
            project.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
        let mut name = object::hash("blob", scope.as_os_str().as_bytes()).to_string();
        name.truncate(NAME_DIGITS);
        Self {
            directory: store.join(project).join(name),
            store,
            worktree: worktree.to_owned(),
            scope: scope.to_owned(),
            home: None,
            search: None,
            excludes: None,
            quota: Quota::default(),
        }
    }
}
