//! A project: a repository, or the rest of the disk.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Map, ProjectId};

/// A repository, or `global` for directories outside any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Project {
    /// The project.
    pub id: ProjectId,
    /// The root of the worktree, absolute; `/` outside a repository.
    pub worktree: String,
    /// `git`, in a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vcs: Option<String>,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A picture for people: its address and colour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icon: Option<Map>,
    /// Commands of the project, such as the one that sets up a new worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Map>,
    /// When.
    pub time: ProjectTime,
    /// Further worktrees.
    pub sandboxes: Vec<String>,
}

/// When a project was first and last opened, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectTime {
    /// First.
    pub created: u64,
    /// Last.
    pub updated: u64,
    /// Its instructions were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialized: Option<u64>,
}

/// Where things are: the answer to `GET /path`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathReply {
    /// The user's home.
    pub home: String,
    /// Our state directory.
    pub state: String,
    /// Our configuration directory.
    pub config: String,
    /// The worktree.
    pub worktree: String,
    /// The directory of this instance.
    pub directory: String,
}
