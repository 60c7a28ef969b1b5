//! The arguments of `providers`, `models` and `agent`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Common;

#[derive(Debug, Clone, Args)]
pub(crate) struct ProvidersArgs {
    #[command(subcommand)]
    pub(crate) command: ProvidersCommand,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ProvidersCommand {
    /// List stored credentials and key variables, without their values
    #[command(visible_alias = "ls")]
    List(Common),
    /// Sign in to a provider, or store an API key
    Login {
        /// The provider's id, or the address of an organisation
        #[arg(value_name = "URL|PROVIDER", conflicts_with = "provider")]
        url: Option<String>,
        /// The provider's id; a key is read from standard input if that is not a terminal
        #[arg(short, long, value_name = "NAME")]
        provider: Option<String>,
        /// The label of the sign-in method
        #[arg(short, long, value_name = "LABEL")]
        method: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Remove the credentials of a provider
    Logout {
        /// The provider's id
        provider: Option<String>,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ModelsArgs {
    /// List only the models of this provider
    pub(crate) provider: Option<String>,
    /// Print the limits, prices and variants of each model
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Also list models that cannot be agents, such as those for speech, pictures and embeddings
    #[arg(long)]
    pub(crate) all: bool,
    /// Fetch the current list from models.dev first
    #[arg(long)]
    pub(crate) refresh: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct AgentArgs {
    #[command(subcommand)]
    pub(crate) command: AgentCommand,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum AgentCommand {
    /// List the agents with their permission rules
    List(Common),
    /// Create an agent: a model writes it from a description
    Create(CreateAgentArgs),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct CreateAgentArgs {
    /// The configuration directory to write to [default: `.opencode` of this project]
    #[arg(long, value_name = "DIR")]
    pub(crate) path: Option<PathBuf>,
    /// The purpose of the agent; read from standard input if it is missing
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Whether the user selects the agent (primary), other agents call it (subagent), or both
    #[arg(long, value_parser = ["all", "primary", "subagent"], default_value = "all")]
    pub(crate) mode: String,
    /// The tools that the agent may use, separated by commas [default: all]
    #[arg(long, alias = "tools", value_name = "NAMES")]
    pub(crate) permissions: Option<String>,
    /// The model that writes the agent, as provider/model
    #[arg(short, long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}
