//! The version control state of a directory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The reply of `GET /vcs`: the branches. Both are absent outside of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VcsReply {
    /// The current branch.
    pub branch: Option<String>,
    /// The default branch of the repository.
    pub default_branch: Option<String>,
}

/// The state of a changed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VcsStatus {
    /// The file is new.
    Added,
    /// The file was deleted.
    Deleted,
    /// The file was modified.
    Modified,
}

/// A changed file, as `GET /vcs/status` and `GET /vcs/diff` list it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VcsFile {
    /// The path of the file, relative to the root of the repository.
    pub file: String,
    /// The diff in the format of `git diff`. Absent in a status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// Added lines.
    pub additions: u64,
    /// Removed lines.
    pub deletions: u64,
    /// The state of the file.
    pub status: VcsStatus,
}
