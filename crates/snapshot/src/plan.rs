//! What undo and redo do to each file, decided from values alone.
//!
//! A history is the list of steps, each with what the agent did to single
//! files: what was there before its first change and after its last. A position
//! in it is a number of steps. Going back, a file is expected to be what the
//! last step left and becomes what the first found; going forth, the other way
//! round. What the user changed in between is not the agent's to take back: such
//! a file is kept and named, unless the caller insists.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::Content;

/// What a step did to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file, relative to the worktree.
    pub path: PathBuf,
    /// What was there before the agent's first change.
    pub before: Option<Content>,
    /// What was there after its last.
    pub after: Option<Content>,
    /// How many of the directories above the file the change made, counted from the file.
    pub made: usize,
}

/// What one file is expected to be, and what it is to become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goal {
    /// The file, relative to the worktree.
    pub path: PathBuf,
    /// What the agent left there.
    pub expect: Option<Content>,
    /// What is to be there.
    pub target: Option<Content>,
    /// Whether someone else changed the file between two of the agent's changes.
    pub is_broken: bool,
    /// Directories above the file that the agent made, and that go when they are empty.
    pub made: usize,
}

/// What is at a path now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disk {
    /// Nothing.
    Missing,
    /// A file or link.
    Holds(Content),
    /// A directory.
    Directory,
    /// Something that cannot be what the agent left.
    Other(Reason),
}

/// Whether what the user did is respected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Respect {
    /// A file that someone else changed is kept.
    Edits,
    /// The target is reached wherever it can be.
    Nothing,
}

/// What is done about a goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is reached already.
    Reached,
    /// The file is written or removed.
    Write,
    /// The file is left as it is.
    Keep(Reason),
}

/// Why a file is left as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// It is not what the agent left.
    #[error("it was changed since")]
    ChangedSince,
    /// It was changed by someone else between two changes of the agent.
    #[error("it was changed by someone else between the agent's changes")]
    ChangedBetween,
    /// A directory above it is a link or a file.
    #[error("a directory above it is a link or not a directory")]
    Detached,
    /// There is a directory in its place.
    #[error("a directory is in its place")]
    Directory,
    /// It is neither a file nor a link.
    #[error("it is not a regular file")]
    Special,
    /// What is to be there was dropped.
    #[error("its earlier content is no longer kept")]
    Gone,
    /// It lies outside of the tracked directory.
    #[error("it lies outside of the session's directory")]
    Outside,
    /// It is too large to be kept.
    #[error("it is too large to be kept")]
    TooLarge,
    /// More files were changed at once than are kept.
    #[error("too many files were changed at once")]
    TooMany,
    /// Nobody knows what it was before, so that taking it away could lose it.
    #[error("it was not tracked before")]
    Untracked,
    /// It could not be read.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

/// The goals on the way from one position to another, ordered by path.
pub fn goals(steps: &[Vec<Change>], from: usize, to: usize) -> Vec<Goal> {
    let (low, high) = (from.min(to).min(steps.len()), from.max(to).min(steps.len()));
    let mut chains: BTreeMap<&Path, Goal> = BTreeMap::new();
    for change in steps[low..high].iter().flatten() {
        match chains.get_mut(change.path.as_path()) {
            // In the order of time, `expect` is the first content and `target` the last.
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

/// What is done about a goal when this is on the disk.
pub fn judge(goal: &Goal, disk: &Disk, respect: Respect) -> Verdict {
    let held = match disk {
        Disk::Missing => None,
        Disk::Holds(content) => Some(*content),
        // What is not a file was not left by the agent, and is not ours to remove.
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

    /// Steps are written `path:before>after`, separated by spaces, a step a string.
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
    fn an_untouched_file_goes_back_and_forth() {
        check(&["f:a>b"], (1, 0), "b", Verdict::Write);
        check(&["f:a>b"], (1, 0), "a", Verdict::Reached);
        check(&["f:a>b"], (0, 1), "a", Verdict::Write);
        check(&["f:->b", "g:->x", "f:b>-"], (3, 0), "-", Verdict::Reached);
        check(&["f:->b"], (1, 0), "b", Verdict::Write);
    }

    #[test]
    fn what_the_user_changed_is_kept() {
        check(&["f:a>b"], (1, 0), "u", Verdict::Keep(Reason::ChangedSince));
        check(&["f:a>b"], (1, 0), "-", Verdict::Keep(Reason::ChangedSince));
        check(&["f:a>b", "f:u>c"], (2, 0), "c", Verdict::Keep(Reason::ChangedBetween));
        check(&["f:a>b", "f:u>c"], (2, 1), "c", Verdict::Write);
    }

    #[test]
    fn insisting_reaches_the_target_but_removes_no_directory() {
        let goals = goals(&steps(&["f:a>b", "f:u>c"]), 2, 0);
        let holds = Disk::Holds(content("z").unwrap());
        assert_eq!(judge(&goals[0], &holds, Respect::Nothing), Verdict::Write);
        assert_eq!(judge(&goals[0], &Disk::Directory, Respect::Nothing), Verdict::Keep(Reason::Directory));
    }

    #[test]
    fn only_what_the_steps_changed_is_a_goal() {
        assert_eq!(goals(&steps(&["f:a>b", "g:a>b"]), 2, 1).len(), 1);
        assert_eq!(goals(&steps(&["f:a>b", "g:a>b"]), 1, 1).len(), 0);
        assert_eq!(goals(&steps(&["f:a>b"]), 9, 0).len(), 1);
    }
}
