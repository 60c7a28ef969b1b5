//! The agent's changes in one step.
//!
//! Each tool call reports its effects. A file that was changed twice keeps the content before the first
//! change and after the last. If others changed it in between, only the change after that belongs to the
//! agent. The two trees of a step contain only these files. The tree before also contains the existing parent
//! directories as empty trees, so that undo knows which directories the agent created.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::id::{Content, File, ObjectId, TreeId};
use crate::object::{Entry, Node};
use crate::plan::Reason;

/// The effect of a tool on one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The path, absolute or relative to the worktree.
    pub path: PathBuf,
    /// The exact content before.
    pub before: Option<File>,
    /// The exact content after.
    pub after: Option<File>,
    /// The number of parent directories that the tool created, counted from the file.
    pub made: usize,
}

/// The effects of a running step.
#[derive(Debug, Default)]
pub struct Step {
    pub(crate) changes: BTreeMap<PathBuf, (Option<Content>, Option<Content>)>,
    pub(crate) made: BTreeSet<PathBuf>,
    pub(crate) left_out: BTreeMap<PathBuf, Reason>,
}

/// The changes of a step. The first three fields are recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepChange {
    /// The changed files before the step.
    pub before: TreeId,
    /// The changed files after the step.
    pub after: TreeId,
    /// The changed files, relative to the worktree.
    pub files: Vec<PathBuf>,
    /// Changed files whose contents are not stored, and the reasons.
    pub left_out: Vec<(PathBuf, Reason)>,
}

impl Step {
    /// Whether nothing was reported.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.left_out.is_empty()
    }

    /// Adds a change of a file.
    pub(crate) fn add(
        &mut self,
        path: PathBuf,
        before: Option<Content>,
        after: Option<Content>,
        made: usize,
    ) {
        // Writing the existing content does not show who wrote it.
        if before == after {
            return;
        }
        self.made.extend(path.ancestors().skip(1).take(made).map(Path::to_owned));
        match self.changes.get_mut(&path) {
            Some(change) => {
                if change.1 != before {
                    change.0 = before;
                }
                change.1 = after;
            }
            None => {
                self.changes.insert(path, (before, after));
            }
        }
    }

    /// The files that differ after the step.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let changed = self.changes.iter().filter(|(_, (before, after))| before != after);
        changed.map(|(path, _)| path.clone()).collect()
    }

    /// The existing parent directories of new files.
    pub(crate) fn old_directories(&self, files: &[PathBuf]) -> BTreeSet<PathBuf> {
        let fresh =
            files.iter().filter(|path| self.changes.get(*path).is_some_and(|change| change.0.is_none()));
        let above = fresh.flat_map(|path| path.ancestors().skip(1));
        let old = above.filter(|path| !path.as_os_str().is_empty() && !self.made.contains(*path));
        old.map(Path::to_owned).collect()
    }
}

/// A tree under construction.
#[derive(Debug, Default)]
pub(crate) struct Sapling {
    files: BTreeMap<Vec<u8>, Content>,
    trees: BTreeMap<Vec<u8>, Self>,
}

impl Sapling {
    /// Adds a file, or a directory if there is no content.
    pub(crate) fn put(&mut self, path: &Path, content: Option<Content>) {
        let mut names: Vec<_> = path.components().map(|name| name.as_os_str().as_bytes().to_vec()).collect();
        let last = content.and_then(|content| Some((names.pop()?, content)));
        let mut at = self;
        for name in names {
            at = at.trees.entry(name).or_default();
        }
        if let Some((name, content)) = last {
            at.files.insert(name, content);
        }
    }

    /// Stores the trees, the innermost first.
    pub(crate) fn store<E>(
        self,
        write: &mut impl FnMut(Vec<Entry>) -> Result<ObjectId, E>,
    ) -> Result<ObjectId, E> {
        let mut entries = Vec::new();
        for (name, tree) in self.trees {
            entries.push(Entry { name, node: Node::Tree(tree.store(write)?) });
        }
        let leaf = |(name, content): (_, Content)| Entry { name, node: Node::Leaf(content.kind, content.id) };
        entries.extend(self.files.into_iter().map(leaf));
        write(entries)
    }
}
