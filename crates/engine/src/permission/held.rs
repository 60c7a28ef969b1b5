//! The part of a call's effects that the kernel prevents, so that built-in rules need not ask about it.
//!
//! A command in the sandbox can read almost everything and write only the worktree and its private directory.
//! Directories outside that it only reads are therefore no reason for a question. Writes that the command states
//! are: the user decides about them, and the reply widens the sandbox.

use std::path::{Path, PathBuf};

use codewright_tools::{Ask, Certainty, UNKNOWN};
use codewright_workspace::{Mechanism, TEMPORARY, normalize};

/// The permission key of writes.
const EDIT: &str = "edit";

/// What the kernel holds of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    /// The files and directories that the call states to write.
    writes: Vec<PathBuf>,
    /// Whether the command sees a private directory instead of [`TEMPORARY`].
    has_private_temporary: bool,
}

impl Held {
    /// Returns what the kernel holds of a call with these permission requests. Relative patterns start at `worktree`.
    pub(crate) fn of(asks: &[Ask], worktree: &Path, mechanism: &Mechanism) -> Self {
        let stated = asks.iter().filter(|ask| ask.permission == EDIT);
        let stated = stated.flat_map(|ask| ask.patterns.iter().map(String::as_str));
        let implied = asks.iter().flat_map(|ask| &ask.implied);
        let implied = implied.filter(|one| one.permission == EDIT && one.certainty == Certainty::Stated);
        let patterns = stated.chain(implied.map(|one| one.pattern.as_str()));
        Self {
            writes: patterns.filter_map(|pattern| written(worktree, pattern)).collect(),
            has_private_temporary: matches!(mechanism, Mechanism::Bubblewrap(_)),
        }
    }

    /// Whether the kernel holds what the call does in a directory outside.
    pub(crate) fn covers(&self, directory: &Path) -> bool {
        if self.has_private_temporary && directory.starts_with(TEMPORARY) {
            return is_private(directory);
        }
        !self.writes.iter().any(|path| path.starts_with(directory) || directory.starts_with(path))
    }
}

/// The path that a pattern names, up to its first unknown component.
fn written(worktree: &Path, pattern: &str) -> Option<PathBuf> {
    let known = match pattern.split_once(UNKNOWN) {
        None => pattern,
        Some((known, _)) => &known[..known.rfind('/')?],
    };
    Some(normalize(&worktree.join(known)))
}

/// Whether a command sees only its private directory there. Directories that exist outside can be shown to it.
fn is_private(path: &Path) -> bool {
    let Ok(below) = path.strip_prefix(TEMPORARY) else { return false };
    let first = below.components().next();
    first.is_none_or(|first| !Path::new(TEMPORARY).join(first).is_dir())
}

#[cfg(test)]
mod tests {
    use codewright_tools::Implied;

    use super::*;

    #[test]
    fn directories_that_are_only_read_are_held() {
        let mut ask = Ask::new("bash", vec!["cp".to_owned()]);
        ask.implied.push(Implied::new("edit", "../out/file"));
        ask.implied.push(Implied::new("edit", "../fill/\0"));
        ask.implied.push(Implied::new("edit", "\0"));
        ask.implied.push(Implied { certainty: Certainty::Possible, ..Implied::new("edit", "../maybe/x") });
        ask.implied.push(Implied::new("read", "../read/x"));
        let held = Held::of(&[ask], Path::new("/srv/work"), &Mechanism::Bubblewrap("/usr/bin/bwrap".into()));
        for (directory, expected) in [
            ("/srv/out", false),
            ("/srv", false),
            ("/srv/out/file/below", false),
            ("/srv/fill", false),
            ("/srv/maybe", true),
            ("/srv/read", true),
            ("/etc", true),
            ("/tmp", true),
            ("/tmp/codewright-missing/x", true),
        ] {
            assert_eq!(held.covers(Path::new(directory)), expected, "{directory}");
        }
    }

    #[test]
    fn a_directory_of_the_machine_in_the_temporary_one_is_not_held() {
        let folder = tempfile::Builder::new().tempdir_in(TEMPORARY).unwrap();
        let held = |mechanism| Held::of(&[], Path::new("/srv/work"), &mechanism);
        assert!(!held(Mechanism::Bubblewrap("/usr/bin/bwrap".into())).covers(folder.path()));
        assert!(held(Mechanism::Seatbelt).covers(folder.path()));
    }
}
