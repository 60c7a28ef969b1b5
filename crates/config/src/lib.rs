//! Find, merge and check configuration; the one place that reads environment variables.
//!
//! [`load`] reads OpenCode's configuration files and our own twins of them, lays them over each
//! other and checks every key it knows; a wrong one is named with file, line and column. Nothing
//! here writes a file, and no message or `Debug` text holds a secret.

#![warn(missing_docs)]

mod agent;
mod beneath;
mod class;
mod config;
mod control;
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
mod request;
mod skills;
mod terminal;
mod worktree;
mod yaml;

pub use agent::{
    AgentMode, AgentSpec, RuleLimits, agents, builtin_agents, default_agent, default_rules, limited_agents,
};
pub use class::{CLASSES, Class};
pub(crate) use codewright_proto::Map;
pub use config::{
    AgentConfig, CommandConfig, Config, Cost, InstructionRules, Limit, Modalities, ModelConfig, PromptConfig,
    ProviderConfig, ProviderOptions, Share, Timeout, parse_model,
};
pub use control::{ControlFiles, Trust};
pub use dirs::Dirs;
pub use edit::{edited, parsed};
pub use env::Env;
pub use error::{Error, FileProblem, Place};
pub use load::{LoadInput, Loaded, Parts, Remote, Source, checked, global, load, load_over, open};
pub use markdown::{FoundCommand, front_matter, repository_commands};
pub use nearest::nearest;
pub use ordered::Ordered;
pub use origins::Origins;
pub use permission::permission_rules;
pub use request::TrustRequest;
pub use skills::{Skill, SkillInput, skills};
pub use terminal::{TerminalConfig, terminal_config};
pub use worktree::{Worktree, find_worktree};
