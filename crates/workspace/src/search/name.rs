//! Finds files whose path matches a glob.

use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::FileType;
use tokio_util::sync::CancellationToken;

use super::{Judge, Stop, Withheld, blocking, filter, walk};
use crate::held::Beneath;
use crate::{Error, Held};

/// A search by name.
#[derive(Debug, Clone)]
pub struct Glob {
    /// The directory.
    pub root: Held,
    /// The globs, relative to the root. One without a slash matches at any depth, and one that begins with
    /// `!` excludes its matches.
    pub patterns: Vec<String>,
    /// The limit of files.
    pub limit: usize,
    /// The time limit.
    pub within: Duration,
    /// Decides which files are listed.
    pub judge: Judge,
}

/// The result of a search by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// Absolute paths, in the order of a sorted walk.
    pub paths: Vec<PathBuf>,
    /// Whether there are more than the limit.
    pub more: bool,
    /// Whether the search exceeded its time limit.
    pub late: bool,
    /// The files that were omitted.
    pub withheld: Withheld,
}

/// Walks the root in sorted order and stops at the limit.
pub async fn glob(query: Glob, cancel: &CancellationToken) -> Result<Files, Error> {
    blocking(cancel, move |cancel| find(&query, cancel)).await
}

fn find(query: &Glob, cancel: CancellationToken) -> Result<Files, Error> {
    let root = query.root.place.real.as_path();
    let mut beneath = Beneath::new(&query.root);
    let stop = Stop::new(cancel, query.within);
    let mut files = Files::default();
    let mut builder = walk(root, Some(filter(root, query.patterns.iter().map(String::as_str))?));
    // An unreadable directory is skipped, as in the output of `ls`.
    for entry in builder.sort_by_file_name(Ord::cmp).build().flatten() {
        if stop.now() {
            files.late = stop.late();
            break;
        }
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let below = entry.path().strip_prefix(root);
        if below.ok().and_then(|below| beneath.kind(below)) != Some(FileType::RegularFile) {
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
