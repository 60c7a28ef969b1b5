//! The approvals in the store: the permissions that a user granted with "always".
//!
//! They survive a restart, and every process that uses the store sees them at its next permission request. The crate
//! `permission` decides what an approval covers.

use std::path::{Path, PathBuf};

pub(crate) use codewright_permission::Approvals;
use codewright_permission::{AskingRules, MAX_PATTERN_BYTES, SavedApproval};
use codewright_proto::ProjectId;
use codewright_store::SavedPermission;

use crate::instance::Instance;

/// The number of patterns of one request that are saved.
const MAX_PATTERNS: usize = 200;

/// The scope of an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    /// The project.
    pub(crate) project: ProjectId,
    /// The root of the worktree; outside a repository, the directory.
    pub(crate) directory: PathBuf,
}

impl Scope {
    /// Returns the scope of an open directory.
    pub(crate) fn of(instance: &Instance) -> Self {
        let root = &instance.worktree.root;
        let directory = if root.parent().is_none() { &instance.directory } else { root };
        Self { project: instance.project.id.clone(), directory: directory.clone() }
    }

    /// Returns the directory in its stored form.
    pub(crate) fn directory(&self) -> String {
        text(&self.directory)
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Returns who gave an approval, for example `member ann`. `None` for approvals of earlier versions.
pub fn approval_giver(saved: &SavedPermission) -> Option<String> {
    AskingRules::giver_of_stored(&saved.rules)
}

/// Parses the approvals of the store.
pub(crate) fn approvals(saved: &[SavedPermission]) -> Approvals {
    Approvals::new(saved.iter().map(|one| SavedApproval {
        permission: &one.action,
        pattern: &one.resource,
        rules: &one.rules,
    }))
}

/// Returns the approvals to save for a reply of "always" that allows these patterns of a permission.
pub(crate) fn saved<'a>(
    patterns: impl Iterator<Item = &'a String>,
    permission: &str,
    scope: &Scope,
    asking: &AskingRules,
    stamp: impl Fn() -> (String, u64),
) -> Vec<SavedPermission> {
    patterns
        .filter(|pattern| pattern.len() <= MAX_PATTERN_BYTES)
        .take(MAX_PATTERNS)
        .map(|pattern| {
            let (id, created_ms) = stamp();
            SavedPermission {
                id,
                project_id: scope.project.clone(),
                directory: scope.directory(),
                action: permission.to_owned(),
                resource: pattern.clone(),
                rules: asking.to_json(),
                created_ms,
            }
        })
        .collect()
}
