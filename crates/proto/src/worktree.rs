//! Worktrees of a project, and moving sessions between them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SessionId;

/// A worktree of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Worktree {
    /// The name of the worktree.
    pub name: String,
    /// Its branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Its absolute path.
    pub directory: String,
}

/// The body of `POST /experimental/worktree`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeCreateInput {
    /// A name; without one, two random words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A command that runs after the project's start command.
    #[serde(default, rename = "startCommand", skip_serializing_if = "Option::is_none")]
    pub start_command: Option<String>,
}

/// The directory of an existing worktree: the body of `DELETE /experimental/worktree` and
/// `POST /experimental/worktree/reset`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorktreeDirectory {
    /// The absolute path of the worktree.
    pub directory: String,
}

/// The body of `POST /experimental/control-plane/move-session`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MoveSessionInput {
    /// The session.
    #[serde(rename = "sessionID")]
    pub session_id: SessionId,
    /// The new directory.
    pub destination: WorktreeDirectory,
    /// Whether to move the uncommitted changes of the files too.
    #[serde(default, rename = "moveChanges", skip_serializing_if = "Option::is_none")]
    pub move_changes: Option<bool>,
}

/// A directory, as events name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LocationRef {
    /// The absolute path.
    pub directory: String,
}
