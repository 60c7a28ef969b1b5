//! Approvals that a user gave with "always".

use codewright_proto::ProjectId;

/// The maximum number of approvals of one directory. The oldest are removed first.
pub const MAX_APPROVALS: u64 = 1000;
/// The maximum number of approvals in one list.
pub(crate) const MAX_LISTED: u64 = 100_000;

/// An approval and its scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedPermission {
    /// The id. Other programs may use any text.
    pub id: String,
    /// The project in which it applies.
    pub project_id: ProjectId,
    /// The root of the worktree in which it applies; outside a repository the directory.
    pub directory: String,
    /// The permission.
    pub action: String,
    /// The pattern of the resources that it covers.
    pub resource: String,
    /// The rules that required permission, as a JSON list. An approval without them has no effect.
    pub rules: String,
    /// The time of the approval in milliseconds since 1970.
    pub created_ms: u64,
}

/// A filter of approvals. A missing field matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Approvals {
    /// Approvals of this project.
    pub project: Option<ProjectId>,
    /// Approvals of this directory.
    pub directory: Option<String>,
}
