//! Find, merge and check configuration; the one place that reads environment variables.
//!
//! [`load`] reads OpenCode's configuration files and our own twins of them, lays them over each
//! other and checks every key it knows; a wrong one is named with file, line and column. Nothing
//! here writes a file, and no message or `Debug` text holds a secret.

#![warn(missing_docs)]

mod agent;
mod config;
mod dirs;
mod document;
pub mod env;
mod error;
mod file;
mod load;
mod merge;
mod nearest;
mod ordered;
mod permission;
mod worktree;

pub use agent::{AgentMode, AgentSpec, agents, builtin_agents, default_agent, default_rules};
pub(crate) use codewright_proto::Map;
pub use config::{
    AgentConfig, Config, Cost, Limit, Modalities, ModelConfig, ProviderConfig, ProviderOptions, Share,
    Timeout, parse_model,
};
pub use dirs::Dirs;
pub use env::Env;
pub use error::{Error, FileProblem, Place};
pub use load::{LoadInput, Loaded, Remote, Source, load, load_over};
pub use nearest::nearest;
pub use ordered::Ordered;
pub use permission::permission_rules;
pub use worktree::{Worktree, find_worktree};
