//! An approval that a user gave with "always".

use codewright_proto::ProjectId;

/// Approvals of one directory; the oldest go first.
pub const MAX_APPROVALS: u64 = 1000;
/// Approvals that one list has.
pub(crate) const MAX_LISTED: u64 = 100_000;

/// An approval and what it is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedPermission {
    /// Its id. Other programs may have given it any text.
    pub id: String,
    /// The project in which it holds.
    pub project_id: ProjectId,
    /// The root of the worktree in which it holds; outside a repository, the directory.
    pub directory: String,
    /// The permission key.
    pub action: String,
    /// The wildcard over what a call touches.
    pub resource: String,
    /// The rules that asked, as a JSON list. An approval without them answers no question.
    pub rules: String,
    /// When it was given, in milliseconds since 1970.
    pub created_ms: u64,
}

/// Which approvals are listed. An absent field lets everything through.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Approvals {
    /// Those of this project.
    pub project: Option<ProjectId>,
    /// Those of this directory.
    pub directory: Option<String>,
}
