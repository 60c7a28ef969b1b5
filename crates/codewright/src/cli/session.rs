//! The arguments of `session`, `export`, `import`, `stats` and `db`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{Common, ListFormat};

#[derive(Debug, Clone, Args)]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    pub(crate) command: SessionCommand,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the sessions of this project, newest first
    List {
        /// List at most N sessions
        #[arg(short = 'n', long, value_name = "N")]
        max_count: Option<usize>,
        /// Print a table or JSON
        #[arg(long, value_enum, default_value_t = ListFormat::Table)]
        format: ListFormat,
        #[command(flatten)]
        common: Common,
    },
    /// Undo the last prompt and its changes to files
    Undo(UndoArgs),
    /// Redo the prompts that were undone, one at a time
    Redo(UndoArgs),
    /// Delete a session with all its messages
    Delete {
        /// The session
        #[arg(value_name = "SESSION")]
        session: String,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct UndoArgs {
    /// The session [default: the last session of this directory]
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Overwrite files even if they were changed in the meantime
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ExportArgs {
    /// The session; on a terminal you can choose one
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Replace texts, paths and results by placeholders, so that the export can be shared
    #[arg(long)]
    pub(crate) sanitize: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ImportArgs {
    /// The file of an exported session, `-` for standard input, or the address of a share
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    pub(crate) file: Option<String>,
    /// Import all sessions of another program on this machine
    #[arg(long, value_enum, value_name = "PROGRAM")]
    pub(crate) from: Option<Installation>,
    /// The other program's data directory or database
    #[arg(long, value_name = "DIR", requires = "from")]
    pub(crate) data: Option<PathBuf>,
    /// Only print what would be imported
    #[arg(long, requires = "from")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Installation {
    Opencode,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct StatsArgs {
    /// Only sessions that changed in the last N days; 0 for today
    #[arg(long, value_name = "N")]
    pub(crate) days: Option<u32>,
    /// Show at most N tools
    #[arg(long, value_name = "N")]
    pub(crate) tools: Option<usize>,
    /// Show the models: all, or the N most used
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "all")]
    pub(crate) models: Option<String>,
    /// Only sessions of this project; without a value the current one
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    pub(crate) project: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct DbArgs {
    #[command(subcommand)]
    pub(crate) command: Option<DbCommand>,
    /// The SQL; statements are read from standard input if it is missing
    pub(crate) query: Option<String>,
    /// The output format
    #[arg(long, value_enum, default_value_t = RowFormat::Tsv)]
    pub(crate) format: RowFormat,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum DbCommand {
    /// Print the path of the database
    Path(Common),
    /// Write the sessions to OpenCode's database, for programs that read usage from it
    View {
        /// The file, if OpenCode's place is not wanted
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
        /// Keep the file current until interrupted
        #[arg(long, conflicts_with = "remove")]
        watch: bool,
        /// Remove the file
        #[arg(long)]
        remove: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Copy all sessions between a file and a PostgreSQL database, and compare every row
    Copy {
        /// The source: the path of a file, or `postgres://…`
        from: String,
        /// The target: the path of a file, or `postgres://…`. It is empty, or has a part of the same copy
        to: String,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowFormat {
    Json,
    Tsv,
}
