//! Decides what undo and redo do to each file, as a pure function.
//!
//! A history is a list of steps. For each file that a step changed, it has the content before the first
//! change and after the last. A position in the history is a number of steps. Undo expects a file as the last
//! step left it and restores it as the first step found it; redo does the opposite. A file that the user
//! changed in between is kept and reported, unless the caller insists.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::Content;

/// The change of one file in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file, relative to the worktree.
    pub path: PathBuf,
    /// The content before the agent's first change.
    pub before: Option<Content>,
    /// The content after its last.
    pub after: Option<Content>,
    /// The number of parent directories that the change created, counted from the file.
    pub made: usize,
}

/// The expected and the intended content of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goal {
    /// The file, relative to the worktree.
    pub path: PathBuf,
    /// The content that the agent left.
    pub expect: Option<Content>,
    /// The intended content.
    pub target: Option<Content>,
    /// Whether others changed the file between two changes of the agent.
    pub is_broken: bool,
    /// The number of parent directories that the agent created, which are removed if empty.
    pub made: usize,
}

/// The entry at a path now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disk {
    /// No entry.
    Missing,
    /// A file or link.
    Holds(Content),
    /// A directory.
    Directory,
    /// An entry that the agent cannot have left.
    Other(Reason),
}

/// Whether changes of the user are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Respect {
    /// Files that others changed are kept.
    Edits,
    /// The target is written wherever possible.
    Nothing,
}

/// The action for a goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing to do.
    Reached,
    /// Write or remove the file.
    Write,
    /// Keep the file.
    Keep(Reason),
}

/// The reason why a file is kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// It differs from the content that the agent left.
    #[error("it was changed since")]
    ChangedSince,
    /// Others changed it between two changes of the agent.
    #[error("it was changed by someone else between the agent's changes")]
    ChangedBetween,
    /// A parent directory is a link or a file.
    #[error("a directory above it is a link or not a directory")]
    Detached,
    /// A directory has its path.
    #[error("a directory is in its place")]
    Directory,
    /// It is neither a file nor a link.
    #[error("it is not a regular file")]
    Special,
    /// The intended content was dropped.
    #[error("its earlier content is no longer kept")]
    Gone,
    /// It is outside the tracked directory.
    #[error("it lies outside of the session's directory")]
    Outside,
    /// It is too large to store.
    #[error("it is too large to be kept")]
    TooLarge,
    /// Too many files were changed at once.
    #[error("too many files were changed at once")]
    TooMany,
    /// Its earlier content is unknown, so removing it could lose data.
    #[error("it was not tracked before")]
    Untracked,
    /// It could not be read.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

/// The goals between two positions, sorted by path.
pub fn goals(steps: &[Vec<Change>], from: usize, to: usize) -> Vec<Goal> {
    let (low, high) = (from.min(to).min(steps.len()), from.max(to).min(steps.len()));
    let mut chains: BTreeMap<&Path, Goal> = BTreeMap::new();
    for change in steps[low..high].iter().flatten() {
        match chains.get_mut(change.path.as_path()) {
            // In chronological order, `expect` is the first content and `target` the last.
            Some(goal) => {
                goal.is_broken |= goal.target != change.before;
                goal.target = change.after;
                goal.made = goal.made.max(change.made);
            }
            None => {
                let goal = Goal {
                    path: change.path.clone(),
                    expect: change.before,
                    target: change.after,
                    is_broken: false,
                    made: change.made,
                };
                chains.insert(&change.path, goal);
            }
        }
    }
    let turned = |mut goal: Goal| {
        if to < from {
            std::mem::swap(&mut goal.expect, &mut goal.target);
        }
        goal
    };
    chains.into_values().map(turned).collect()
}

/// The action for a goal, given the entry on the disk.
pub fn judge(goal: &Goal, disk: &Disk, respect: Respect) -> Verdict {
    let held = match disk {
        Disk::Missing => None,
        Disk::Holds(content) => Some(*content),
        // An entry that is not a file was not left by the agent and must not be removed.
        Disk::Directory if goal.target.is_none() => return Verdict::Reached,
        Disk::Directory => return Verdict::Keep(Reason::Directory),
        Disk::Other(reason) => return Verdict::Keep(reason.clone()),
    };
    if held == goal.target {
        return Verdict::Reached;
    }
    match respect {
        Respect::Nothing => Verdict::Write,
        Respect::Edits if held != goal.expect => Verdict::Keep(Reason::ChangedSince),
        Respect::Edits if goal.is_broken => Verdict::Keep(Reason::ChangedBetween),
        Respect::Edits => Verdict::Write,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::File;

    fn content(text: &str) -> Option<Content> {
        (text != "-").then(|| File::plain(text).content())
    }

    /// Steps are written `path:before>after`, separated by spaces, one string for each step.
    fn steps(written: &[&str]) -> Vec<Vec<Change>> {
        let change = |text: &str| {
            let (path, change) = text.split_once(':').unwrap();
            let (before, after) = change.split_once('>').unwrap();
            Change { path: path.into(), before: content(before), after: content(after), made: 0 }
        };
        written.iter().map(|step| step.split_whitespace().map(change).collect()).collect()
    }

    #[track_caller]
    fn check(written: &[&str], (from, to): (usize, usize), disk: &str, expected: Verdict) {
        let goals = goals(&steps(written), from, to);
        let disk = content(disk).map_or(Disk::Missing, Disk::Holds);
        assert_eq!(judge(&goals[0], &disk, Respect::Edits), expected);
    }

    #[test]
    fn an_unchanged_file_is_undone_and_redone() {
        check(&["f:a>b"], (1, 0), "b", Verdict::Write);
        check(&["f:a>b"], (1, 0), "a", Verdict::Reached);
        check(&["f:a>b"], (0, 1), "a", Verdict::Write);
        check(&["f:->b", "g:->x", "f:b>-"], (3, 0), "-", Verdict::Reached);
        check(&["f:->b"], (1, 0), "b", Verdict::Write);
    }

    #[test]
    fn files_that_the_user_changed_are_kept() {
        check(&["f:a>b"], (1, 0), "u", Verdict::Keep(Reason::ChangedSince));
        check(&["f:a>b"], (1, 0), "-", Verdict::Keep(Reason::ChangedSince));
        check(&["f:a>b", "f:u>c"], (2, 0), "c", Verdict::Keep(Reason::ChangedBetween));
        check(&["f:a>b", "f:u>c"], (2, 1), "c", Verdict::Write);
    }

    #[test]
    fn insisting_writes_the_target_but_removes_no_directory() {
        let goals = goals(&steps(&["f:a>b", "f:u>c"]), 2, 0);
        let holds = Disk::Holds(content("z").unwrap());
        assert_eq!(judge(&goals[0], &holds, Respect::Nothing), Verdict::Write);
        assert_eq!(judge(&goals[0], &Disk::Directory, Respect::Nothing), Verdict::Keep(Reason::Directory));
    }

    #[test]
    fn only_files_that_the_steps_changed_are_goals() {
        assert_eq!(goals(&steps(&["f:a>b", "g:a>b"]), 2, 1).len(), 1);
        assert_eq!(goals(&steps(&["f:a>b", "g:a>b"]), 1, 1).len(), 0);
        assert_eq!(goals(&steps(&["f:a>b"]), 9, 0).len(), 1);
    }
}
