//! Finds, merges and checks configuration, and reads the environment variables.
//!
//! [`load`] reads OpenCode's configuration files and Codewright's own, merges them and checks every known key. Errors
//! name file, line and column. This crate writes no files, and no message or `Debug` text contains a secret.

#![warn(missing_docs)]

mod agent;
mod class;
mod code;
mod config;
mod confined;
mod control;
mod dirs;
mod document;
mod edit;
pub mod env;
mod error;
mod file;
mod linked;
mod load;
mod markdown;
mod merge;
mod nearest;
mod ordered;
mod origins;
mod permission;
mod plugin_host;
mod request;
mod sandbox;
mod secrets;
mod skills;
mod terminal;
mod worktree;
mod yaml;
mod zone;

pub use agent::{
    AcpProgram, AgentMode, AgentSpec, RuleLimits, agents, builtin_agents, default_agent, default_rules,
    limited_agents, reorder,
};
pub use class::{CLASSES, Class};
pub use code::{Code, CodeFile, CodeKind, CodeStamp};
pub(crate) use codewright_proto::Map;
pub use config::{
    AgentConfig, AgentProgram, CommandConfig, Config, Cost, InstructionRules, Limit, Modalities, ModelConfig,
    PromptConfig, ProviderConfig, ProviderOptions, Share, Timeout, parse_model,
};
pub use control::{ControlFiles, Trust, is_ambiguous_key, key_display, key_path, path_key};
pub use dirs::Dirs;
pub use edit::{edit_document, parse_document};
pub use env::Env;
pub use error::{Error, FileProblem, Position};
pub use load::{
    LoadInput, LoadedConfig, Overlay, Parts, Remote, Source, auth, check_change, global, global_with_secrets,
    load, load_over, node, open, secret_variables, store_address, user_files,
};
pub use markdown::{CommandFile, front_matter, repository_commands};
pub use nearest::nearest;
pub use ordered::Ordered;
pub use origins::Origins;
pub use permission::permission_rules;
pub use plugin_host::PluginHostConfig;
pub use request::{TrustRequest, WITH_NETWORK, needs_network};
pub use sandbox::{NetworkAccess, SandboxConfig, SandboxMode};
pub use secrets::{Audience, HIDDEN, Secrets};
pub use skills::{Skill, SkillInput, skills};
pub use terminal::{TerminalConfig, terminal_config};
pub use worktree::{Worktree, find_worktree};
pub use zone::zone_file;
