//! Carries out the decisions of the planner.
//!
//! Every file is checked before the first one is written. Files are removed before the directories that
//! become empty, and those before files that are written in their place. A goal that is already reached is
//! skipped, so an interrupted undo is completed by repeating it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::disk::{self, Found, Root, Stamp};
use crate::id::{Content, File};
use crate::plan::{Disk, Goal, Reason, Respect, Verdict, judge};

/// The result for each file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Files that were written.
    pub written: Vec<PathBuf>,
    /// Files that were removed.
    pub removed: Vec<PathBuf>,
    /// Files that already had their target.
    pub reached: Vec<PathBuf>,
    /// Files that were kept, with the reasons.
    pub kept: Vec<(PathBuf, Reason)>,
    /// Files that could not be written or removed, with the errors.
    pub failed: Vec<(PathBuf, String)>,
}

impl Outcome {
    /// Whether every file has its target.
    pub fn is_complete(&self) -> bool {
        self.kept.is_empty() && self.failed.is_empty()
    }
}

/// A goal to write, with the version that is replaced.
struct Order {
    goal: Goal,
    seen: Option<Stamp>,
}

/// The planned changes.
#[derive(Default)]
pub(crate) struct Orders {
    writes: Vec<Order>,
    /// Directories that the agent created, which are removed if empty.
    directories: BTreeSet<PathBuf>,
}

impl Orders {
    /// Drops the goals whose content is gone.
    pub(crate) fn keep_only(&mut self, is_kept: impl Fn(Content) -> bool, outcome: &mut Outcome) {
        let (kept, gone) = std::mem::take(&mut self.writes)
            .into_iter()
            .partition(|order| order.goal.target.is_none_or(&is_kept));
        self.writes = kept;
        let gone: Vec<Order> = gone;
        outcome.kept.extend(gone.into_iter().map(|order| (order.goal.path, Reason::Gone)));
    }

    /// Adds the files to the outcome as if the plan had been carried out.
    pub(crate) fn predict(self, outcome: &mut Outcome) {
        for order in self.writes {
            let list = if order.goal.target.is_none() { &mut outcome.removed } else { &mut outcome.written };
            list.push(order.goal.path);
        }
    }
}

/// Checks every file in a directory of the worktree. Returns the planned changes and the results that are already certain.
pub(crate) fn check(root: &Root, inner: &Path, goals: Vec<Goal>, respect: Respect) -> (Orders, Outcome) {
    let mut outcome = Outcome::default();
    let (mut orders, mut directories): (Vec<Order>, _) = (Vec::new(), BTreeSet::new());
    for goal in goals {
        if !goal.path.starts_with(inner) {
            outcome.kept.push((goal.path, Reason::Outside));
            continue;
        }
        let found = settled(disk::look(root, &goal.path), &goal, &orders);
        let verdict = judge(&goal, &found.disk, respect);
        if goal.target.is_none() && !matches!(verdict, Verdict::Keep(_)) {
            let made = goal.path.ancestors().skip(1).take(goal.made);
            directories.extend(made.filter(|path| path.starts_with(inner)).map(Path::to_owned));
        }
        match verdict {
            Verdict::Reached => outcome.reached.push(goal.path),
            Verdict::Keep(reason) => outcome.kept.push((goal.path, reason)),
            Verdict::Write => orders.push(Order { goal, seen: found.stamp }),
        }
    }
    (Orders { writes: orders, directories }, outcome)
}

/// The state of a path after the files in its way are removed.
///
/// A file is checked before those inside its path, so a file in the way has been checked. A directory in the
/// way is only removed if it is empty, which shows when it is tried.
fn settled(found: Found, goal: &Goal, orders: &[Order]) -> Found {
    let is_leaving =
        |path: &Path| orders.iter().any(|order| order.goal.path == path && order.goal.target.is_none());
    let is_free = match &found.disk {
        Disk::Other(Reason::Detached) => goal.path.ancestors().skip(1).any(is_leaving),
        Disk::Directory => goal.expect.is_none() && goal.target.is_some(),
        Disk::Missing | Disk::Holds(_) | Disk::Other(_) => false,
    };
    if is_free { Found { disk: Disk::Missing, stamp: None } } else { found }
}

/// Carries out the plan. `contents` has the contents of the goals.
pub(crate) fn carry_out(
    root: &Root,
    orders: Orders,
    contents: &mut dyn FnMut(&Goal) -> Option<File>,
    outcome: &mut Outcome,
) {
    let (leaving, coming): (Vec<_>, Vec<_>) =
        orders.writes.into_iter().partition(|order| order.goal.target.is_none());
    for order in leaving {
        let path = order.goal.path;
        match disk::remove(root, &path, order.seen) {
            Ok(()) => outcome.removed.push(path),
            Err(error) => outcome.failed.push((path, error.to_string())),
        }
    }
    // An interrupted write may have left a temporary file.
    let touched = outcome.reached.iter().chain(coming.iter().map(|order| &order.goal.path));
    let directories: BTreeSet<_> = touched.filter_map(|path| path.parent()).collect();
    directories.into_iter().for_each(|directory| disk::sweep(root, directory));
    // The innermost directories are last in the order of paths. One that is not empty is still used.
    for directory in orders.directories.iter().rev().filter(|directory| !directory.as_os_str().is_empty()) {
        disk::remove_empty(root, directory);
    }
    for order in coming {
        let Some(file) = contents(&order.goal) else {
            outcome.kept.push((order.goal.path, Reason::Gone));
            continue;
        };
        match disk::write(root, &order.goal.path, &file, order.seen) {
            Ok(()) => outcome.written.push(order.goal.path),
            Err(error) => outcome.failed.push((order.goal.path, error.to_string())),
        }
    }
}
