//! Finds files whose path matches a glob.

use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::FileType;
use tokio_util::sync::CancellationToken;

use super::{Globs, Judge, Selected, Stop, Withheld, blocking, walk};
use crate::held::Beneath;
use crate::{Error, Held};

/// A search by name.
#[derive(Debug, Clone)]
pub struct Glob {
    /// The directory.
    pub root: Held,
    /// The globs.
    pub patterns: Globs,
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
    let selected = Selected::by(&query.patterns, root)?;
    let mut builder = walk(root, selected.exact.clone());
    // An unreadable directory is skipped, as in the output of `ls`.
    for entry in builder.sort_by_file_name(Ord::cmp).build().flatten() {
        if stop.now() {
            files.late = stop.late();
            break;
        }
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let Ok(below) = entry.path().strip_prefix(root) else { continue };
        if !selected.admits(root, below) || beneath.kind(below) != Some(FileType::RegularFile) {
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
