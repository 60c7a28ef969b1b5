//! A project: a repository, or `global` for all directories outside of repositories.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Map, ProjectId};

/// A repository, or `global` for directories outside of repositories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Project {
    /// The id of the project.
    pub id: ProjectId,
    /// The absolute path of the worktree. `/` outside of a repository.
    pub worktree: String,
    /// `git` in a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vcs: Option<String>,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// An icon: its URL and color.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon: Option<Map>,
    /// Commands of the project, such as the one that sets up a new worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Map>,
    /// When the project was opened.
    pub time: ProjectTime,
    /// Further worktrees.
    pub sandboxes: Vec<String>,
}

/// When a project was first and last opened, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectTime {
    /// When it was first opened.
    pub created: u64,
    /// When it was last opened.
    pub updated: u64,
    /// When its instructions were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialized: Option<u64>,
}

/// The directories in use: the reply of `GET /path`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathReply {
    /// The home directory of the user.
    pub home: String,
    /// The state directory of the program.
    pub state: String,
    /// The configuration directory of the program.
    pub config: String,
    /// The worktree.
    pub worktree: String,
    /// The directory of the instance.
    pub directory: String,
}
