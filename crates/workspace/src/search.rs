//! Finds files by name and by content.
//!
//! Searches run in this process, with the crates of ripgrep. Hidden files are searched, `.git` is not, and
//! ignore files are respected unless a glob names an ignored file. Every search ends: at its limit, at its
//! time limit, or when it is cancelled.
//!
//! The walk names directories by their paths. What it finds counts only if it is beneath the held root without a link
//! above it, and files are opened there.

mod content;
mod name;
mod tree;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ignore::WalkBuilder;
use ignore::overrides::{Override, OverrideBuilder};
use tokio_util::sync::CancellationToken;

pub use content::{Grep, Line, Matches, grep, spans};
pub use name::{Files, Glob, glob};
pub use tree::{Entry, closest, entries, names};

use crate::{Error, plain};

/// Globs that select files, relative to the root. One without a slash matches at any depth, and one that begins with `!`
/// excludes its matches. Without globs every file is selected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Globs {
    patterns: Vec<String>,
    names: Names,
}

/// The form of file names that globs are compared with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Names {
    #[default]
    Exact,
    Plain,
}

impl Globs {
    /// Globs that are compared with the plain form ([`plain`]) of names that have another one. They find no ignored files.
    #[must_use]
    pub fn of_plain_names(patterns: impl IntoIterator<Item = String>) -> Self {
        let patterns = patterns.into_iter().map(|pattern| plain(&pattern).into_owned()).collect();
        Self { patterns, names: Names::Plain }
    }
}

impl From<Vec<String>> for Globs {
    fn from(patterns: Vec<String>) -> Self {
        Self { patterns, names: Names::Exact }
    }
}

/// The time after which a search returns its results so far.
pub const MAX_SEARCH: Duration = Duration::from_secs(30);

/// Whether a search may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It may.
    Open,
    /// It needs the user's permission.
    Asks,
    /// It must not.
    Denied,
}

/// Decides about each file before a search opens or lists it.
#[derive(Clone)]
pub struct Judge(Arc<dyn Fn(&Path) -> Access + Send + Sync>);

impl Judge {
    /// Calls `decide` for each file, from several threads.
    pub fn new(decide: impl Fn(&Path) -> Access + Send + Sync + 'static) -> Self {
        Self(Arc::new(decide))
    }

    /// Allows every file.
    #[must_use]
    pub fn none() -> Self {
        Self::new(|_| Access::Open)
    }

    fn access(&self, path: &Path) -> Access {
        (self.0)(path)
    }
}

impl std::fmt::Debug for Judge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Judge")
    }
}

/// The number of files that a search omitted. It does not depend on their content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Withheld {
    /// Files that need permission.
    pub asks: usize,
    /// Files that a rule denies.
    pub denied: usize,
}

impl Withheld {
    /// Counts a file. Returns whether it may be read.
    pub fn admits(&mut self, access: Access) -> bool {
        match access {
            Access::Open => return true,
            Access::Asks => self.asks += 1,
            Access::Denied => self.denied += 1,
        }
        false
    }
}

/// The conditions that stop a running search.
#[derive(Clone)]
struct Stop {
    cancel: CancellationToken,
    deadline: Instant,
}

impl Stop {
    fn new(cancel: CancellationToken, within: Duration) -> Self {
        Self { cancel, deadline: Instant::now() + within }
    }

    fn now(&self) -> bool {
        self.cancel.is_cancelled() || self.late()
    }

    fn late(&self) -> bool {
        Instant::now() > self.deadline
    }
}

fn walk(root: &Path, filter: Option<Override>) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    builder.hidden(false).follow_links(false).filter_entry(|entry| {
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        entry.file_name() != ".git" && !(is_directory && has_special_rules(entry.path()))
    });
    // The walk reads the ignore files of the root and its parents itself.
    if root.ancestors().any(has_special_rules) {
        builder.ignore(false).git_ignore(false).git_exclude(false).parents(false);
    }
    if let Some(filter) = filter {
        builder.overrides(filter);
    }
    builder
}

/// Whether a pipe or a device has the path of an ignore file. Reading it could block forever.
fn has_special_rules(directory: &Path) -> bool {
    const RULES: [&str; 3] = [".gitignore", ".ignore", ".git/info/exclude"];
    let is_special = |path: PathBuf| path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir());
    RULES.iter().any(|name| is_special(directory.join(name)))
}

/// The files that globs select.
struct Selected {
    /// Applied by the walk, so that it can name ignored files.
    exact: Option<Override>,
    /// Applied to each file that the walk finds.
    plain: Option<Override>,
}

impl Selected {
    fn by(globs: &Globs, root: &Path) -> Result<Self, Error> {
        if globs.patterns.is_empty() {
            return Ok(Self { exact: None, plain: None });
        }
        let wrong = |error: ignore::Error| Error::Pattern { message: error.to_string() };
        let mut builder = OverrideBuilder::new(root);
        for pattern in &globs.patterns {
            let pattern = local(root, pattern);
            // An ignore file has comments, a glob does not.
            let escape = if pattern.starts_with('#') { "\\" } else { "" };
            builder.add(&format!("{escape}{pattern}")).map_err(wrong)?;
        }
        let found = Some(builder.build().map_err(wrong)?);
        Ok(match globs.names {
            Names::Exact => Self { exact: found, plain: None },
            Names::Plain => Self { exact: None, plain: found },
        })
    }

    /// Reports whether a file that the walk has found is selected.
    fn admits(&self, root: &Path, below: &Path) -> bool {
        let Some(globs) = &self.plain else { return true };
        // The exact globs have found the names that are plain.
        let name = below.to_str().filter(|name| !name.is_ascii()).map(plain);
        name.is_some_and(|name| !globs.matched(root.join(name.as_ref()), false).is_ignore())
    }
}

/// A pattern relative to the root, without `./`.
fn local<'a>(root: &Path, pattern: &'a str) -> &'a str {
    let pattern = root
        .to_str()
        .and_then(|root| pattern.strip_prefix(root))
        .and_then(|rest| rest.strip_prefix('/'))
        .unwrap_or(pattern);
    pattern.strip_prefix("./").unwrap_or(pattern)
}

/// Runs a search on the blocking pool. Dropping the future stops it.
async fn blocking<T: Send + 'static>(
    cancel: &CancellationToken,
    search: impl FnOnce(CancellationToken) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let child = cancel.child_token();
    let _stop = child.clone().drop_guard();
    let found = tokio::task::spawn_blocking(move || search(child)).await;
    if cancel.is_cancelled() {
        return Err(Error::Cancelled);
    }
    // The pool drops a task only when the runtime ends.
    found.unwrap_or(Err(Error::Cancelled))
}
