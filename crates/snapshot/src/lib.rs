//! Snapshots of a directory's files, the agent's changes in each step, and exact undo.
//!
//! [`Snapshots`] belongs to one directory. Creating it is cheap and has no effect on the disk.
//!
//! # A step
//!
//! - At its start, in parallel to the request to the model: [`Snapshots::track`]. Its tree is the `snapshot`
//!   of the recorded `step-start`. Nothing has to wait for it, and it costs one process if nothing has
//!   changed. The step of a model that called no tool ends with the tree it started with.
//! - A tool that knows its writes reports them: [`Snapshots::look`] before and after, and
//!   [`Snapshots::report_looks`] adds the change to the [`Step`]. [`Snapshots::report`] accepts an [`Effect`]
//!   with known bytes.
//! - For an opaque tool, snapshots are taken before and after: [`Snapshots::report_difference`] adds their
//!   differences.
//! - Its last tree is [derived](Snapshots::derive) from the first one if the step only edited tracked files.
//! - At the end: [`Snapshots::close`] returns the [`StepChange`], whose two trees and files are recorded with
//!   the step. A step without changes returns `None` and costs nothing; one with changes starts no process.
//!
//! # Undo
//!
//! [`Snapshots::travel`] applies the recorded [`StepChange`]s of a session, in order, and moves the files
//! from one position to another. A position is a number of steps. The [`Outcome`] names every file and its
//! result. Files that the user changed are kept, unless the caller passes [`Respect::Nothing`].
//!
//! The record of a step does not depend on tracking: if snapshots are [off](Error::Off) or git is missing,
//! reported effects can still be undone.

mod derive;
mod disk;
mod error;
mod git;
mod id;
mod object;
mod objects;
mod options;
mod plan;
mod quota;
#[cfg(test)]
mod random;
mod repository;
mod restore;
mod step;
mod track;
mod unchanged;
mod verify;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codewright_proto::FileDiff;
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

pub use disk::MAX_FILE_BYTES;
pub use error::Error;
pub use id::{Content, File, Kind, ObjectId, TreeId};
pub use objects::FileChange;
pub use options::{Options, Quota};
pub use plan::{Change, Disk, Goal, Reason, Respect, Verdict, goals, judge};
pub use restore::Outcome;
pub use step::{Effect, Step, StepChange};
pub use track::{MAX_TRACKED_BYTES, MAX_TRACKED_FILES, Snapshot, Version};

use disk::Root;
use objects::Objects;
use repository::Repository;
use step::Sapling;
use unchanged::Knowledge;

/// The limit of files in one step whose contents are stored. Further ones are only named.
const MAX_STEP_FILES: usize = 10_000;

/// The time for which snapshots are off after git has failed twice.
const FAILED_FOR: Duration = Duration::from_secs(600);
/// The limit of patches. Further files are only named.
const MAX_PATCHES: usize = 5000;
/// The limit for the size of all patches. Further files are only named.
const MAX_PATCHES_BYTES: usize = 16 * 1024 * 1024;

/// The snapshots of one directory.
#[derive(Debug, Clone)]
pub struct Snapshots {
    repository: Arc<Repository>,
    state: Arc<State>,
}

/// The state that clones of [`Snapshots`] share.
#[derive(Debug)]
struct State {
    /// One snapshot at a time. The lock on the disk is for other processes.
    turn: tokio::sync::Mutex<Knowledge>,
    /// The reason why there are none, once it is known.
    off: Mutex<Option<Off>>,
}

/// The reason why there are no snapshots, and for how long.
#[derive(Debug, Clone)]
struct Off {
    reason: String,
    until: Option<Instant>,
}

/// The state of a path at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The file, if it exists.
    pub file: Option<File>,
    /// The number of missing parent directories, counted from the file.
    pub missing: usize,
    /// The reason why its content cannot be stored.
    pub refused: Option<Reason>,
}

impl Snapshots {
    /// Creates the snapshots for these options.
    pub fn new(options: Options) -> Self {
        let off = untrackable(&options).map(|reason| Off { reason, until: None });
        Self {
            repository: Arc::new(Repository::new(options)),
            state: Arc::new(State { turn: tokio::sync::Mutex::default(), off: Mutex::new(off) }),
        }
    }

    /// The root that paths are relative to.
    pub fn worktree(&self) -> &Path {
        self.root()
    }

    /// Takes a snapshot of the scope.
    ///
    /// This takes one process if nothing has changed since the last snapshot, and three otherwise. If nothing has
    /// changed for several snapshots of this process, it starts no process.
    pub async fn track(&self, cancel: &CancellationToken) -> Result<Snapshot, Error> {
        let turn = cancel.run_until_cancelled(self.state.turn.lock()).await;
        let mut turn = turn.ok_or(Error::Cancelled)?;
        if let Some(reason) = self.why_off() {
            return Err(Error::Off { reason });
        }
        let result = self.track_now(&mut turn, cancel).await;
        match &result {
            Err(Error::Off { reason }) => *self.off() = Some(Off { reason: reason.clone(), until: None }),
            // Each try starts a generation, so it must not be repeated all the time.
            Err(error @ Error::Git { .. }) => {
                let until = Some(Instant::now() + FAILED_FOR);
                *self.off() = Some(Off { reason: error.to_string(), until });
            }
            _ => {}
        }
        result
    }

    async fn track_now(
        &self,
        knowledge: &mut Knowledge,
        cancel: &CancellationToken,
    ) -> Result<Snapshot, Error> {
        self.repository.prepare()?;
        if let Some(reason) = self.repository.given_up() {
            return Err(Error::Off { reason });
        }
        let lock = self.repository.lock(cancel).await?;
        self.repository.recover()?;
        track::track(&self.repository, &lock, knowledge, cancel).await
    }

    /// The reason why there are no snapshots here, if it is known.
    pub fn why_off(&self) -> Option<String> {
        let mut off = self.off();
        if off.as_ref().and_then(|off| off.until).is_some_and(|until| until < Instant::now()) {
            *off = None;
        }
        off.as_ref().map(|off| off.reason.clone())
    }

    /// The differences of two trees, sorted by path.
    pub async fn diff(&self, from: TreeId, to: TreeId) -> Result<Vec<FileChange>, Error> {
        self.objects().differences(from, to).await
    }

    /// The differences of two trees as patches. For very many files only the names are returned.
    pub async fn diff_full(&self, from: TreeId, to: TreeId) -> Result<Vec<FileDiff>, Error> {
        let mut objects = self.objects();
        let (mut diffs, mut patches_bytes) = (Vec::new(), 0);
        for change in objects.differences(from, to).await? {
            if diffs.len() >= MAX_PATCHES || patches_bytes >= MAX_PATCHES_BYTES {
                diffs.push(named(&change));
                continue;
            }
            let before = match change.before {
                Some(content) => objects.file(content, from).await?.bytes,
                None => Vec::new(),
            };
            let after = match change.after {
                Some(content) => objects.file(content, to).await?.bytes,
                None => Vec::new(),
            };
            let diff = file_diff(&change, &before, &after);
            patches_bytes += diff.patch.as_ref().map_or(0, String::len);
            diffs.push(diff);
        }
        Ok(diffs)
    }

    /// The differences of two trees as `git diff` prints them.
    pub async fn diff_text(
        &self,
        from: TreeId,
        to: TreeId,
        cancel: &CancellationToken,
    ) -> Result<String, Error> {
        objects::diff_text(&self.repository, from, to, cancel).await
    }

    /// The file at a path of a tree, if there is one.
    pub async fn read(&self, tree: TreeId, path: &Path) -> Result<Option<File>, Error> {
        let mut objects = self.objects();
        match objects.node(tree, path).await? {
            Some(object::Node::Leaf(kind, id)) => objects.file(Content { kind, id }, tree).await.map(Some),
            Some(object::Node::Tree(_) | object::Node::Foreign(_)) | None => Ok(None),
        }
    }

    /// Returns the state of a path before or after a change.
    pub async fn look(&self, path: &Path) -> Result<Look, Error> {
        let root = self.root().to_owned();
        let path = self.relative(path).map(Path::to_owned).unwrap_or_default();
        blocking(move || {
            let refused = |reason| Look { file: None, missing: 0, refused: Some(reason) };
            if path.as_os_str().is_empty() {
                return Ok(refused(Reason::Outside));
            }
            let root = Root::open(&root);
            let missing = disk::missing_parents(&root, &path);
            let read = disk::read(&root, &path).map_err(|source| Error::at(&path, source))?;
            Ok(match read {
                disk::Read::File(file, _) => Look { file: Some(file), missing, refused: None },
                disk::Read::Missing => Look { file: None, missing, refused: None },
                disk::Read::Directory => refused(Reason::Directory),
                disk::Read::Special => refused(Reason::Special),
                disk::Read::Detached => refused(Reason::Detached),
                disk::Read::TooLarge => refused(Reason::TooLarge),
            })
        })
        .await
    }

    /// Adds the effect of a tool on one path.
    pub async fn report(&self, step: &mut Step, effect: Effect) -> Result<(), Error> {
        let Some(path) = self.relative(&effect.path).map(Path::to_owned) else {
            step.left_out.insert(effect.path, Reason::Outside);
            return Ok(());
        };
        if effect.before == effect.after {
            return Ok(());
        }
        let size = |file: &Option<File>| file.as_ref().map_or(0, |file| file.bytes.len() as u64);
        if size(&effect.before).max(size(&effect.after)) > MAX_FILE_BYTES {
            step.left_out.insert(path, Reason::TooLarge);
            return Ok(());
        }
        let repository = Arc::clone(&self.repository);
        let Effect { before, after, made, .. } = effect;
        let (before, after) = blocking(move || {
            let cost: u64 = [&before, &after]
                .into_iter()
                .flatten()
                .map(|file| object::cost(file.bytes.len() as u64))
                .sum();
            let _lock = repository.lock_effects()?;
            let shelf = repository.room_for_effects(cost + object::fan_out(2))?;
            let keep = |file: Option<File>| match file {
                Some(file) => store(&shelf, &file).map(Some),
                None => Ok(None),
            };
            Ok((keep(before)?, keep(after)?))
        })
        .await?;
        step.add(path, before, after, made);
        Ok(())
    }

    /// Adds the differences between the snapshots before and after an opaque tool.
    pub async fn report_difference(
        &self,
        step: &mut Step,
        before: &Snapshot,
        after: &Snapshot,
    ) -> Result<(), Error> {
        for path in before.left_out.keys().chain(after.left_out.keys()) {
            if before.left_out.get(path) != after.left_out.get(path) {
                step.left_out.insert(path.clone(), Reason::TooLarge);
            }
        }
        if before.tree == after.tree {
            return Ok(());
        }
        let mut objects = self.objects();
        let changes = objects.differences(before.tree, after.tree).await?;
        let lists = self.loosened(&mut objects, &changes, after.tree).await?;
        for change in changes {
            // A file that left the tree because it became too large was not removed.
            if step.left_out.contains_key(&change.path) {
                continue;
            }
            let was_seen = before.rules == after.rules
                && !lists.iter().any(|list| change.path.starts_with(list) && !is_list(&change.path));
            if !self.is_plain(&change, before, was_seen) {
                step.left_out.insert(change.path, Reason::Untracked);
                continue;
            }
            if step.changes.len() >= MAX_STEP_FILES {
                step.left_out.insert(change.path, Reason::TooMany);
                continue;
            }
            let mut file = async |content: Option<Content>, tree| match content {
                Some(content) => objects.file(content, tree).await.map(Some),
                None => Ok(None),
            };
            let (old, new) = (file(change.before, before.tree).await?, file(change.after, after.tree).await?);
            let made =
                if old.is_none() { objects.missing_parents(before.tree, &change.path).await? } else { 0 };
            self.report(step, Effect { path: change.path, before: old, after: new, made }).await?;
        }
        Ok(())
    }

    /// The directories in which more files may be tracked than before, because a list of ignored files has
    /// changed.
    async fn loosened(
        &self,
        objects: &mut Objects,
        changes: &[FileChange],
        after: TreeId,
    ) -> Result<Vec<PathBuf>, Error> {
        let mut loosened = Vec::new();
        for change in changes.iter().filter(|change| is_list(&change.path)) {
            // A new list only hides more files, unless it contains an exception.
            let is_strict = match (change.before, change.after) {
                (None, Some(content)) => {
                    let bytes = objects.file(content, after).await?.bytes;
                    !bytes.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"!"))
                }
                _ => false,
            };
            if !is_strict {
                loosened.push(change.path.parent().unwrap_or(Path::new("")).to_owned());
            }
        }
        Ok(loosened)
    }

    /// Whether a difference between two snapshots is a change of the file.
    ///
    /// A file is also added if it is no longer ignored or no longer in another repository. Removing it would
    /// lose it.
    fn is_plain(&self, change: &FileChange, before: &Snapshot, was_seen: bool) -> bool {
        let now = std::fs::symlink_metadata(self.root().join(&change.path)).ok();
        match (change.before, change.after) {
            (None, Some(_)) => {
                let changed = now.and_then(|now| {
                    let since =
                        Duration::new(now.ctime().try_into().ok()?, now.ctime_nsec().try_into().ok()?);
                    Some(std::time::SystemTime::UNIX_EPOCH + since)
                });
                was_seen && changed.is_none_or(|changed| changed >= before.taken)
            }
            (Some(_), None) => now.is_none_or(|now| now.is_dir()),
            _ => true,
        }
    }

    /// Adds the effect of a tool on one path, from the states before and after.
    pub async fn report_looks(
        &self,
        step: &mut Step,
        path: &Path,
        before: Look,
        after: Look,
    ) -> Result<(), Error> {
        if before == after {
            return Ok(());
        }
        if let Some(reason) = before.refused.or(after.refused) {
            step.left_out.insert(path.to_owned(), reason);
            return Ok(());
        }
        let path = path.to_owned();
        let effect = Effect { path, before: before.file, after: after.file, made: before.missing };
        self.report(step, effect).await
    }

    /// Ends a step. Returns its changes, or `None` without any.
    pub async fn close(&self, step: Step) -> Result<Option<StepChange>, Error> {
        let files = step.files();
        if files.is_empty() {
            return Ok(None);
        }
        let repository = Arc::clone(&self.repository);
        blocking(move || {
            let (mut before, mut after) = (Sapling::default(), Sapling::default());
            for path in &files {
                if let Some((old, new)) = step.changes.get(path) {
                    old.iter().for_each(|old| before.put(path, Some(*old)));
                    new.iter().for_each(|new| after.put(path, Some(*new)));
                }
            }
            for directory in step.old_directories(&files) {
                before.put(&directory, None);
            }
            let names: u64 = files.iter().map(|path| path.as_os_str().len() as u64 + 64).sum();
            let depth: u64 = files.iter().map(|path| path.components().count() as u64).sum();
            let _lock = repository.lock_effects()?;
            let trees = 2 * (depth + 1);
            let shelf =
                repository.room_for_effects(2 * names + trees * object::cost(0) + object::fan_out(trees))?;
            let mut write = |entries| {
                let bytes = object::tree(entries);
                object::write(&shelf, "tree", &bytes).map_err(|source| Error::at(&shelf, source))
            };
            let (before, after) = (TreeId(before.store(&mut write)?), TreeId(after.store(&mut write)?));
            Ok(Some(StepChange { before, after, files, left_out: step.left_out.into_iter().collect() }))
        })
        .await
    }

    /// Moves the files from one position in the history to another. A position is a number of steps.
    pub async fn travel(
        &self,
        steps: &[StepChange],
        from: usize,
        to: usize,
        respect: Respect,
    ) -> Result<Outcome, Error> {
        let goals = self.goals(steps, from, to).await?;
        let (root, inner) = (self.root().to_owned(), self.inner().to_owned());
        let repository = Arc::clone(&self.repository);
        blocking(move || {
            let root = Root::open(&root);
            let (mut orders, mut outcome) = restore::check(&root, &inner, goals, respect);
            orders.keep_only(|content| repository.has(content.id), &mut outcome);
            let mut contents = |goal: &Goal| {
                let content = goal.target?;
                let object = repository.object(content.id).ok()??;
                Some(File { kind: content.kind, bytes: object.bytes })
            };
            restore::carry_out(&root, orders, &mut contents, &mut outcome);
            Ok(outcome)
        })
        .await
    }

    /// Returns the outcome of [`Self::travel`] without changing files. Files to be changed are in `written`
    /// and `removed`.
    pub async fn preview(
        &self,
        steps: &[StepChange],
        from: usize,
        to: usize,
        respect: Respect,
    ) -> Result<Outcome, Error> {
        let goals = self.goals(steps, from, to).await?;
        let (root, inner) = (self.root().to_owned(), self.inner().to_owned());
        blocking(move || {
            let root = Root::open(&root);
            let (orders, mut outcome) = restore::check(&root, &inner, goals, respect);
            orders.predict(&mut outcome);
            Ok(outcome)
        })
        .await
    }

    /// The goals between two positions.
    async fn goals(&self, steps: &[StepChange], from: usize, to: usize) -> Result<Vec<Goal>, Error> {
        let (low, high) = (from.min(to).min(steps.len()), from.max(to).min(steps.len()));
        let mut changes = Vec::new();
        for step in &steps[low..high] {
            changes.push(self.changes(step).await?);
        }
        let (from, to) = (from.min(steps.len()) - low, to.min(steps.len()) - low);
        Ok(goals(&changes, from, to))
    }

    /// The changes of a recorded step.
    pub async fn changes(&self, step: &StepChange) -> Result<Vec<Change>, Error> {
        let mut objects = self.objects();
        let mut changes = Vec::new();
        for path in &step.files {
            let path = self.relative(path).unwrap_or(path);
            let mut content = async |tree| match objects.node(tree, path).await? {
                Some(object::Node::Leaf(kind, id)) => Ok(Some(Content { kind, id })),
                Some(object::Node::Tree(_) | object::Node::Foreign(_)) | None => Ok::<_, Error>(None),
            };
            let (before, after) = (content(step.before).await?, content(step.after).await?);
            let made = if before.is_none() { objects.missing_parents(step.before, path).await? } else { 0 };
            changes.push(Change { path: path.to_owned(), before, after, made });
        }
        Ok(changes)
    }

    fn objects(&self) -> Objects {
        Objects::new(Arc::clone(&self.repository))
    }

    fn root(&self) -> &Path {
        &self.repository.options.worktree
    }

    /// The scope, relative to the worktree.
    fn inner(&self) -> &Path {
        let Options { worktree, scope, .. } = &self.repository.options;
        scope.strip_prefix(worktree).unwrap_or(Path::new(""))
    }

    /// The path relative to the worktree, if it is in the scope.
    fn relative<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let Options { worktree, scope, .. } = &self.repository.options;
        let inner = if path.is_absolute() { path.strip_prefix(worktree).ok()? } else { path };
        // Files in a repository's directory belong to git.
        let is_plain = inner.components().all(|name| match name {
            Component::Normal(name) => !name.eq_ignore_ascii_case(".git"),
            _ => false,
        });
        let is_ours = is_plain && inner.starts_with(scope.strip_prefix(worktree).unwrap_or(Path::new("")));
        is_ours.then_some(inner).filter(|inner| !inner.as_os_str().is_empty())
    }

    fn off(&self) -> MutexGuard<'_, Option<Off>> {
        self.state.off.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reason why a scope is never tracked.
fn untrackable(options: &Options) -> Option<String> {
    let scope = &options.scope;
    if scope.parent().is_none() {
        return Some("the root of the file system is not tracked".to_owned());
    }
    let home = options.home.as_ref().filter(|home| home.starts_with(scope))?;
    Some(format!("`{}` is or holds the home directory `{}`", scope.display(), home.display()))
}

/// Whether a file is a list of ignored files.
fn is_list(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == ".gitignore")
}

fn store(shelf: &Path, file: &File) -> Result<Content, Error> {
    let id = object::write(shelf, "blob", &file.bytes).map_err(|source| Error::at(shelf, source))?;
    Ok(Content { kind: file.kind, id })
}

fn file_diff(change: &FileChange, before: &[u8], after: &[u8]) -> FileDiff {
    let mut diff = named(change);
    let texts = std::str::from_utf8(before).ok().zip(std::str::from_utf8(after).ok());
    let (Some((before, after)), Some(name)) = (texts, &diff.file) else { return diff };
    let unified = codewright_workspace::unified(name, before, after);
    // Clients recognize the names by the tab after them.
    let (plain, tabbed) = (format!("--- {name}\n+++ {name}\n"), format!("--- {name}\t\n+++ {name}\t\n"));
    diff.patch = Some(unified.patch.replacen(&plain, &tabbed, 1));
    diff.additions = unified.additions as u64;
    diff.deletions = unified.deletions as u64;
    diff
}

/// A file without its patch.
fn named(change: &FileChange) -> FileDiff {
    FileDiff {
        file: Some(change.path.to_string_lossy().into_owned()),
        patch: Some(String::new()),
        additions: 0,
        deletions: 0,
        status: Some(change.status().to_owned()),
    }
}

/// Runs blocking work outside the async threads.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    // This fails only when the runtime shuts down.
    tokio::task::spawn_blocking(work).await.map_err(|_| Error::Cancelled)?
}
