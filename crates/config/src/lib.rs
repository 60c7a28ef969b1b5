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
mod edit;
pub mod env;
mod error;
mod file;
mod load;
mod markdown;
mod merge;
mod nearest;
mod ordered;
mod origins;
mod permission;
mod skills;
mod terminal;
mod worktree;
mod yaml;

pub use agent::{AgentMode, AgentSpec, agents, builtin_agents, default_agent, default_rules};
pub(crate) use codewright_proto::Map;
pub use config::{
    AgentConfig, CommandConfig, Config, Cost, InstructionRules, Limit, Modalities, ModelConfig, PromptConfig,
    ProviderConfig, ProviderOptions, Share, Timeout, parse_model,
};
pub use dirs::Dirs;
pub use edit::{edited, parsed};
pub use env::Env;
pub use error::{Error, FileProblem, Place};
pub use load::{LoadInput, Loaded, Remote, Source, checked, global, load, load_over};
pub use markdown::{FoundCommand, commands_below, front_matter};
pub use nearest::nearest;
pub use ordered::Ordered;
pub use origins::Origins;
pub use permission::permission_rules;
pub use skills::{Skill, SkillInput, skills};
pub use terminal::{TerminalConfig, terminal_config};
pub use worktree::{Worktree, find_worktree};
