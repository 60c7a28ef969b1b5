//! The filter for files that searches find.

use std::path::{Path, PathBuf};

use codewright_permission::{Approvals, FileRules};
use codewright_tools::{Namesake, ReadRules};
use codewright_workspace::{Access, normalize};

use super::rules::PermissionRules;

/// Returns the rules of a session about reading, together with its user's approvals. `hides` says what the sandbox hides.
pub(crate) fn read_rules(
    rules: &PermissionRules,
    approvals: Approvals,
    worktree: PathBuf,
    hides: impl Fn(&Path) -> bool + Send + Sync + 'static,
) -> ReadRules {
    let rules = FileRules::new(rules.clone(), approvals);
    ReadRules::new(move |path, namesake| {
        let access = match namesake {
            Namesake::None => rules.access(path),
            Namesake::Exists => rules.access_as_spelled(path),
        };
        let is_hidden = || hides(&normalize(&worktree.join(path)));
        if access == Access::Open && is_hidden() { Access::Asks } else { access }
    })
}

/// Whether a file is kept.
type IsKept = dyn Fn(&Path) -> bool + Send + Sync;

/// The files of a directory that a user of the server may not see, although he may read the directory.
pub struct KeptFiles(Option<Box<IsKept>>);

impl KeptFiles {
    /// For the owner of the machine, who sees everything.
    #[must_use]
    pub fn none() -> Self {
        Self(None)
    }

    pub(crate) fn of(is_kept: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(is_kept)))
    }

    /// Returns whether a file is kept. The path must have no link in it.
    #[must_use]
    pub fn has(&self, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|is_kept| is_kept(path))
    }
}
