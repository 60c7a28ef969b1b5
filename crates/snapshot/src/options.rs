//! The settings of snapshots: directories and limits.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::object;

/// The default limit for everything in `snapshot/`.
const TOTAL_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// The default time after which unused data is dropped.
const KEEP: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The default time after which a changed file is settled: the coarsest file times have two seconds.
const SETTLED_AFTER: Duration = Duration::from_secs(2);
/// The number of digits that identify a scope in a directory's name.
const NAME_DIGITS: usize = 40;

/// The limits for disk space and age.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// The limit for all repositories together.
    pub total_bytes: u64,
    /// The limit for each repository.
    pub repository_bytes: u64,
    /// The time after which unused data is dropped.
    pub keep: Duration,
}

impl Default for Quota {
    fn default() -> Self {
        Self { total_bytes: TOTAL_BYTES, repository_bytes: TOTAL_BYTES, keep: KEEP }
    }
}

/// The settings of snapshots. Nothing is read or written before the first use.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory of all snapshot repositories, `<data>/snapshot`, to which the quota applies.
    pub store: PathBuf,
    /// The repository, inside `store`.
    pub directory: PathBuf,
    /// The root that paths are relative to.
    pub worktree: PathBuf,
    /// The directory whose files are tracked, within the worktree.
    pub scope: PathBuf,
    /// The user's home. It and its parents are never tracked.
    pub home: Option<PathBuf>,
    /// The directories that are searched for `git`, as a `PATH`.
    pub search: Option<OsString>,
    /// The user's global list of ignored files.
    pub excludes: Option<PathBuf>,
    /// The limits.
    pub quota: Quota,
    /// The time after which a change of a file has another time than the last one, on every file system.
    pub settled_after: Duration,
}

impl Options {
    /// The default paths: `<data>/snapshot/<project>/<hash of the scope>`.
    ///
    /// Both paths must have no symbolic links. A scope outside the worktree is its own worktree, and so is
    /// one in the worktree `/`.
    pub fn new(data: &Path, project: &str, worktree: &Path, scope: &Path) -> Self {
        let own = worktree == Path::new("/") || !scope.starts_with(worktree);
        let worktree = if own { scope } else { worktree };
        let store = data.join("snapshot");
        // The name of a project comes from a repository, so it is reduced to a plain name.
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
            settled_after: SETTLED_AFTER,
        }
    }
}
