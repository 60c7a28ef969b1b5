//! Files whose path matches a glob.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Judge, Stop, Withheld, blocking, filter, walk};
use crate::Error;

/// A search by name.
#[derive(Debug, Clone)]
pub struct Glob {
    /// The directory that is searched, links followed.
    pub root: PathBuf,
    /// The globs, relative to the root; one without a slash matches at any depth, and one that
    /// begins with `!` leaves out what it matches.
    pub patterns: Vec<String>,
    /// How many files are wanted.
    pub limit: usize,
    /// The search ends after this time.
    pub within: Duration,
    /// Decides which files are named.
    pub judge: Judge,
}

/// What a search by name found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// Absolute paths, in the order of a sorted walk.
    pub paths: Vec<PathBuf>,
    /// Whether there are more than the limit.
    pub more: bool,
    /// Whether time ran out before the walk ended.
    pub late: bool,
    /// The files that were left out on the way.
    pub withheld: Withheld,
}

/// Walks the root in sorted order and stops at the limit.
pub async fn glob(query: Glob, cancel: &CancellationToken) -> Result<Files, Error> {
    blocking(query.root.clone(), cancel, move |root, cancel| find(&root, &query, cancel)).await
}

fn find(root: &Path, query: &Glob, cancel: CancellationToken) -> Result<Files, Error> {
    let stop = Stop::new(cancel, query.within);
    let mut files = Files::default();
    let mut builder = walk(root, Some(filter(root, query.patterns.iter().map(String::as_str))?));
    // What cannot be read is not listed, as `ls` would show it to nobody either.
    for entry in builder.sort_by_file_name(Ord::cmp).build().flatten() {
        if stop.now() {
            files.late = stop.late();
            break;
        }
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        if !files.withheld.admits(query.judge.access(entry.path())) {
            continue;
        }
        if files.paths.len() >= query.limit {
            files.more = true;
            break;
        }
        files.paths.push(entry.into_path());
    }
    Ok(files)
}
