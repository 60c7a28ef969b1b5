//! Patches: the changes of each file, and their lines.

use std::hash::{DefaultHasher, Hash, Hasher};

use codewright_proto::{FileDiff, VcsFile, VcsStatus};

use crate::diff::{self, Side};

/// The changes of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) file: String,
    pub(crate) patch: String,
    pub(crate) additions: u64,
    pub(crate) deletions: u64,
    /// `A`, `D` or `M`.
    pub(crate) status: char,
}

impl From<VcsFile> for Change {
    fn from(file: VcsFile) -> Self {
        let status = match file.status {
            VcsStatus::Added => 'A',
            VcsStatus::Deleted => 'D',
            VcsStatus::Modified => 'M',
        };
        let patch = file.patch.unwrap_or_default();
        Self { file: file.file, patch, additions: file.additions, deletions: file.deletions, status }
    }
}

impl From<&FileDiff> for Change {
    fn from(diff: &FileDiff) -> Self {
        let status = match diff.status.as_deref() {
            Some("added") => 'A',
            Some("deleted") => 'D',
            Some(_) | None => 'M',
        };
        Self {
            file: diff.file.clone().unwrap_or_default(),
            patch: diff.patch.clone().unwrap_or_default(),
            additions: diff.additions,
            deletions: diff.deletions,
            status,
        }
    }
}

impl Change {
    /// Returns a hash of the change, so that another change of the file has another mark.
    pub(super) fn mark(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.file, &self.patch).hash(&mut hasher);
        hasher.finish()
    }
}

/// Merges successive changes of the same file into one.
pub(crate) fn merge_files(changes: impl IntoIterator<Item = Change>) -> Vec<Change> {
    let mut files: Vec<Change> = Vec::new();
    for change in changes {
        match files.iter_mut().find(|known| known.file == change.file) {
            Some(known) => {
                known.additions += change.additions;
                known.deletions += change.deletions;
                if !known.patch.ends_with('\n') {
                    known.patch.push('\n');
                }
                known.patch.push_str(&change.patch);
                known.status = if known.status == change.status { known.status } else { 'M' };
            }
            None => files.push(change),
        }
    }
    files
}

/// Splits a patch into the file changes. `default_name` is the file of hunks without a file name.
pub(crate) fn split_files(patch: &str, default_name: &str) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    let mut in_hunk = false;
    let mut before = "";
    for line in patch.split_inclusive('\n') {
        let text = line.trim_end_matches(['\n', '\r']);
        let begins = !in_hunk || !text.starts_with(['+', '-', ' ', '\\', '@']);
        in_hunk = diff::hunk(text).is_some() || (in_hunk && !begins);
        let name = |text: &str| {
            let name = text.split('\t').next().unwrap_or(text).trim();
            name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(name).to_owned()
        };
        if !in_hunk && let Some(old) = text.strip_prefix("--- ") {
            before = old;
        } else if !in_hunk && let Some(new) = text.strip_prefix("+++ ") {
            let status = match (before, new.trim()) {
                ("/dev/null", _) => 'A',
                (_, "/dev/null") => 'D',
                _ => 'M',
            };
            let file = if status == 'D' { name(before) } else { name(new) };
            changes.push(Change { file, status, ..Change::default() });
        } else if in_hunk {
            if changes.is_empty() {
                changes.push(Change { file: default_name.to_owned(), status: 'M', ..Change::default() });
            }
            if let Some(last) = changes.last_mut() {
                last.additions += u64::from(text.starts_with('+'));
                last.deletions += u64::from(text.starts_with('-'));
                last.patch.push_str(line);
            }
        }
    }
    changes
}

/// A line of a patch: its line numbers and the byte range of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) side: Side,
    pub(super) old: u32,
    pub(super) new: u32,
    pub(super) start: u32,
    pub(super) end: u32,
}

/// Parses the lines of a patch. `None` marks the start of a hunk.
pub(super) fn lines(patch: &str) -> Vec<Option<Code>> {
    let mut lines = Vec::new();
    let (mut old, mut new) = (0_u32, 0_u32);
    let mut in_hunk = false;
    let mut start = 0;
    let short = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    for line in patch.split_inclusive('\n') {
        let begin = start;
        start += line.len();
        let text = line.strip_suffix('\n').unwrap_or(line);
        if let Some((before, after)) = diff::hunk(text) {
            lines.push(None);
            (old, new, in_hunk) = (short(before), short(after), true);
            continue;
        }
        let side = match text.chars().next() {
            _ if !in_hunk => continue,
            Some('+') => Side::Added,
            Some('-') => Side::Removed,
            Some(' ') | None => Side::Both,
            // `\ No newline at end of file`, or the head of the next file.
            Some(_) => {
                in_hunk = text.starts_with('\\');
                continue;
            }
        };
        let from = begin + usize::from(!text.is_empty());
        lines.push(Some(Code { side, old, new, start: short(from), end: short(begin + text.len()) }));
        old = old.saturating_add(u32::from(side != Side::Added));
        new = new.saturating_add(u32::from(side != Side::Removed));
    }
    lines
}
