//! What version control says of a directory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The branches, as `GET /vcs` tells them; both are absent outside a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VcsReply {
    /// The branch that is checked out.
    pub branch: Option<String>,
    /// The branch that others come from.
    pub default_branch: Option<String>,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VcsStatus {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// It changed.
    Modified,
}

/// A file that differs, as `GET /vcs/status` and `GET /vcs/diff` list it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VcsFile {
    /// The file, from the root of the repository.
    pub file: String,
    /// The difference, in the form of `git diff`; a status has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// Lines that came.
    pub additions: u64,
    /// Lines that went.
    pub deletions: u64,
    /// What happened to it.
    pub status: VcsStatus,
}
