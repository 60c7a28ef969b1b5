//! The arguments of `debug`.

use clap::{Args, Subcommand};

use super::Common;

#[derive(Debug, Clone, Args)]
pub(crate) struct DebugArgs {
    #[command(subcommand)]
    pub(crate) command: DebugCommand,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum DebugCommand {
    /// Print the directories the program uses
    Paths(Common),
    /// Print the effective configuration of this directory, without secrets
    Config {
        /// Print every value with the file that sets it
        #[arg(long)]
        origins: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Print the available skills with their texts
    Skill(Common),
    /// Print the effective definition of an agent
    Agent {
        /// The agent
        name: String,
        /// Not supported by this version: fails with the reason
        #[arg(long, value_name = "NAME")]
        tool: Option<String>,
        /// Not supported by this version, like --tool
        #[arg(long, value_name = "JSON", requires = "tool")]
        params: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Print the parts of the system prompt with their sizes and sources
    Prompt {
        /// The agent
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        /// The model, as provider/model
        #[arg(short, long, value_name = "PROVIDER/MODEL")]
        model: Option<String>,
        /// Print JSON, including the texts
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
    /// List, read and find files as the API does
    #[command(subcommand)]
    File(FileCommand),
    /// Search files as the tools do
    #[command(subcommand)]
    Rg(RgCommand),
    /// Take and compare snapshots of this directory
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
    /// Query the language servers of a file
    #[command(subcommand)]
    Lsp(LspCommand),
    /// Print where model providers and their keys were searched for
    Providers(Common),
    /// Print all known projects as JSON
    Scrap(Common),
    /// Print the connected providers and the default models as JSON
    V2(Common),
    /// Print version, system, terminal and plugins
    Info(Common),
    /// Open this directory and print the time since the start, in milliseconds
    Startup(Common),
    /// Open this directory and wait for a signal
    Wait(Common),
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum FileCommand {
    /// Print a file as JSON, with its content in base64
    Read {
        /// The file
        path: String,
        #[command(flatten)]
        common: Common,
    },
    /// Print the entries of a directory as JSON
    List {
        /// The directory
        path: String,
        #[command(flatten)]
        common: Common,
    },
    /// Print the files and directories whose paths contain the letters of a query
    Search {
        /// The query
        query: String,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum RgCommand {
    /// Print the files that are not ignored
    Files {
        /// Only files whose paths contain these letters
        #[arg(long, value_name = "TEXT")]
        query: Option<String>,
        /// Only files that match a glob
        #[arg(long, value_name = "GLOB")]
        glob: Option<String>,
        /// The maximum number of files
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
        #[command(flatten)]
        common: Common,
    },
    /// Print the lines that match a regular expression as JSON
    Search {
        /// The regular expression
        pattern: String,
        /// Only files that match a glob; can be repeated
        #[arg(long, value_name = "GLOB")]
        glob: Vec<String>,
        /// The maximum number of lines
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum SnapshotCommand {
    /// Take a snapshot and print its id
    Track(Common),
    /// Print the files that differ from a snapshot as JSON
    Patch {
        /// The id of the snapshot
        hash: String,
        #[command(flatten)]
        common: Common,
    },
    /// Print the difference to a snapshot
    Diff {
        /// The id of the snapshot
        hash: String,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum LspCommand {
    /// Start the servers of a file and print its diagnostics as JSON
    Diagnostics {
        /// The file
        file: String,
        #[command(flatten)]
        common: Common,
    },
    /// Print the symbols of running servers as JSON
    Symbols {
        /// The query
        query: String,
        #[command(flatten)]
        common: Common,
    },
    /// Start the servers of a file and print its symbols as JSON
    DocumentSymbols {
        /// The address of the document
        uri: String,
        #[command(flatten)]
        common: Common,
    },
}
