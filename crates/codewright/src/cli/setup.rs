//! The arguments of `mcp`, `permissions`, `plugin`, `sandbox`, `trust` and `users`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Common, ListFormat};

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) command: McpCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Add a server to your configuration
    Add(McpAddArgs),
    /// List the servers with their status
    #[command(visible_alias = "ls")]
    List(Common),
    /// Sign in to a remote server
    #[command(args_conflicts_with_subcommands = true)]
    Auth(McpAuthArgs),
    /// Remove the sign-in to a server
    Logout {
        /// The name of the server
        name: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Show what is known about the connection and the sign-in to a server
    Debug {
        /// The name of the server
        name: String,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Args)]
pub(crate) struct McpAddArgs {
    /// The name of the server
    pub(crate) name: Option<String>,
    /// The address of a remote server
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// A variable for a local server; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) env: Vec<String>,
    /// A header for a remote server; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) header: Vec<String>,
    /// Write the configuration of the project in this directory
    #[arg(long)]
    pub(crate) project: bool,
    /// The program of a local server and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct McpAuthArgs {
    #[command(subcommand)]
    pub(crate) command: Option<McpAuthCommand>,
    /// The name of the server
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpAuthCommand {
    /// List the servers that can have a sign-in
    #[command(visible_alias = "ls")]
    List(Common),
}

#[derive(Debug, Args)]
pub(crate) struct PluginArgs {
    #[command(subcommand)]
    pub(crate) command: Option<PluginCommand>,
    /// A package or a path to add to the project's configuration, as `plugin add --project` does
    #[arg(value_name = "MODULE")]
    pub(crate) module: Option<String>,
    /// Write your configuration instead of the project's
    #[arg(short, long)]
    pub(crate) global: bool,
    /// Replace another version of the package; this is always done
    #[arg(short, long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// List the configured plugins with their versions
    #[command(visible_alias = "ls")]
    List {
        /// Print a table or JSON
        #[arg(long, value_enum, default_value_t = ListFormat::Table)]
        format: ListFormat,
        #[command(flatten)]
        common: Common,
    },
    /// Install a plugin and add it to your configuration
    Add {
        /// A package with an optional version, range or tag (`name@1.2`), or a path
        #[arg(value_name = "NAME")]
        spec: String,
        /// Write the configuration of the project in this directory
        #[arg(long)]
        project: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Remove a plugin from `codewright.json`
    #[command(visible_alias = "rm")]
    Remove {
        /// The name of the package, or the path
        name: String,
        #[command(flatten)]
        common: Common,
    },
    /// Look up packages again and install new versions
    Update {
        /// The name of a package; without it all
        name: Option<String>,
        #[command(flatten)]
        common: Common,
    },
}

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

#[derive(Debug, Clone, Args)]
pub(crate) struct UsersArgs {
    #[command(subcommand)]
    pub(crate) command: UsersCommand,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum UsersCommand {
    /// Print a new random token and the hash of it for `auth.users` of the configuration; nothing is stored
    Token {
        #[command(flatten)]
        common: Common,
    },
    /// Print the newest entries of the audit log, oldest first
    Audit {
        /// The number of entries, at most 1000
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: usize,
        /// Only entries before this one
        #[arg(long, value_name = "ID")]
        before: Option<u64>,
        /// Print lines or JSON
        #[arg(long, value_enum, default_value_t = ListFormat::Table)]
        format: ListFormat,
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
