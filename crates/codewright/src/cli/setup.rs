//! The arguments of `permissions`, `sandbox` and `trust`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Common, ListFormat};

#[derive(Debug, Clone, Args)]
pub(crate) struct PermissionsArgs {
    #[command(subcommand)]
    pub(crate) command: PermissionsCommand,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum PermissionsCommand {
    /// List the saved permissions of this project, oldest first
    List {
        /// List the saved permissions of all projects
        #[arg(long)]
        all: bool,
        /// Print a table or JSON
        #[arg(long, value_enum, default_value_t = ListFormat::Table)]
        format: ListFormat,
        #[command(flatten)]
        common: Common,
    },
    /// Revoke a saved permission; running servers request it again for the next call
    #[command(group = clap::ArgGroup::new("which").required(true))]
    Revoke {
        /// The id, from `permissions list`
        #[arg(value_name = "ID", group = "which")]
        id: Option<String>,
        /// Revoke all saved permissions of this project
        #[arg(long, group = "which")]
        all: bool,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SandboxArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Option<SandboxCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Run a command as the model's commands run, and print its output
    Run {
        /// The program and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    #[command(subcommand)]
    pub(crate) command: TrustCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// List the trust decisions
    List(TrustListArgs),
    /// Show which actions a directory's configuration requests
    Show(TrustDirectoryArgs),
    /// Trust a directory until one of its control files changes
    Add(TrustDirectoryArgs),
    /// Remove the decision about a directory
    Remove(TrustDirectoryArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TrustListArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TrustDirectoryArgs {
    /// The directory; the current one by default
    pub(crate) directory: Option<PathBuf>,
}
