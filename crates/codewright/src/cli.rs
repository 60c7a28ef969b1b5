//! The flags of every command.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// An AI coding agent for your terminal.
#[derive(Debug, Parser)]
#[command(name = "codewright", disable_version_flag = true)]
pub(crate) struct Cli {
    /// Print the version number
    #[arg(short, long, global = true)]
    pub(crate) version: bool,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) tui: TuiArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Open the terminal client on a running server
    Attach(AttachArgs),
    /// Work on a prompt and print the answer
    Run(RunArgs),
    /// Start a server that clients attach to
    Serve(ServeArgs),
    /// Start a server and open its page in the browser
    Web(WebArgs),
    /// See, add and remove sign-ins to model providers
    #[command(visible_alias = "auth")]
    Providers(ProvidersArgs),
    /// List the models that can be used
    Models(ModelsArgs),
    /// Write a session as JSON
    Export(ExportArgs),
    /// Bring in a session from a file, a share or another installation
    Import(ImportArgs),
    /// List and delete sessions, take what they did back and forth
    Session(SessionArgs),
    /// List and revoke the permissions that were given with "always"
    Permissions(PermissionsArgs),
    /// Sum up tokens, costs, models and tools
    Stats(StatsArgs),
    /// Query the database
    #[command(args_conflicts_with_subcommands = true)]
    Db(DbArgs),
    /// List the agents, make a new one
    Agent(AgentArgs),
    /// Show and change which directories are trusted
    Trust(TrustArgs),
    /// See how the program is set up
    Debug(DebugArgs),
    /// See the agent fix a bug, without a key and without a network
    Demo(DemoArgs),
}

/// Flags that existing scripts pass to every command.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Common {
    /// Print logs to standard error
    #[arg(long)]
    pub(crate) print_logs: bool,
    /// How much is logged
    #[arg(long, value_name = "LEVEL", ignore_case = true, value_parser = ["DEBUG", "INFO", "WARN", "ERROR"])]
    pub(crate) log_level: Option<String>,
    /// Run without external plugins
    #[arg(long)]
    pub(crate) pure: bool,
}

/// Which session the terminal client opens.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OpenArgs {
    /// Continue the last session of this directory
    #[arg(short, long = "continue")]
    pub(crate) continue_last: bool,
    /// Continue a session
    #[arg(short, long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Fork the session before continuing it
    #[arg(long)]
    pub(crate) fork: bool,
    /// Draw a few lines at the bottom only; what is said stays in the terminal's scrollback
    #[arg(long)]
    pub(crate) mini: bool,
    /// With --mini: do not print the messages of the session that is opened
    #[arg(long)]
    pub(crate) no_replay: bool,
    /// With --mini: print no more than so many of them
    #[arg(long, value_name = "N")]
    pub(crate) replay_limit: Option<u64>,
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TuiArgs {
    /// The directory to work in; without a command the terminal client is opened there
    pub(crate) project: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) open: OpenArgs,
    /// The model, as provider/model
    #[arg(short, long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// What stands in the prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,
    /// The agent
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Allow every call that would ask for permission; denials still hold
    #[arg(long)]
    pub(crate) auto: bool,
    /// Accepted for compatibility: the client needs no port (`serve` opens one)
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Accepted for compatibility, as `--port`
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) hostname: Option<String>,
    /// Accepted for compatibility, as `--port`
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) cors: Vec<String>,
    /// Accepted for compatibility, as `--port`
    #[arg(long)]
    pub(crate) mdns: bool,
    /// Accepted for compatibility, as `--port`
    #[arg(long, value_name = "DOMAIN")]
    pub(crate) mdns_domain: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct AttachArgs {
    /// The server, such as http://localhost:4096
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// The directory to work in, on the server's machine
    #[arg(long, value_name = "PATH")]
    pub(crate) dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) open: OpenArgs,
    /// The server's password (else OPENCODE_SERVER_PASSWORD)
    #[arg(short, long, value_name = "PASSWORD")]
    pub(crate) password: Option<String>,
    /// The server's user name (else OPENCODE_SERVER_USERNAME or `opencode`)
    #[arg(short, long, value_name = "NAME")]
    pub(crate) username: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunArgs {
    /// The prompt; piped standard input is added to it
    pub(crate) message: Vec<String>,
    /// Run a command of the configuration, with the message as its arguments
    #[arg(long, value_name = "NAME")]
    pub(crate) command: Option<String>,
    /// Continue the last session of this directory
    #[arg(short, long = "continue")]
    pub(crate) continue_last: bool,
    /// Continue a session
    #[arg(short, long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Fork the session before continuing it
    #[arg(long)]
    pub(crate) fork: bool,
    /// Share the session
    #[arg(long)]
    pub(crate) share: bool,
    /// The model, as provider/model
    #[arg(short, long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// The agent
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Text for people, or one JSON object a line
    #[arg(long, value_enum, default_value_t = Format::Default)]
    pub(crate) format: Format,
    /// Attach a file or directory; may be given more than once
    #[arg(short, long, value_name = "PATH")]
    pub(crate) file: Vec<PathBuf>,
    /// A title for the session; the prompt's beginning if no value is given
    #[arg(long, value_name = "TITLE", num_args = 0..=1, default_missing_value = "")]
    pub(crate) title: Option<String>,
    /// Attach to a running server, such as http://localhost:4096
    #[arg(long, value_name = "URL")]
    pub(crate) attach: Option<String>,
    /// The server's password (else OPENCODE_SERVER_PASSWORD)
    #[arg(short, long, value_name = "PASSWORD")]
    pub(crate) password: Option<String>,
    /// The server's user name (else OPENCODE_SERVER_USERNAME or `opencode`)
    #[arg(short, long, value_name = "NAME")]
    pub(crate) username: Option<String>,
    /// The directory to work in; on the server's machine when attaching
    #[arg(long, value_name = "PATH")]
    pub(crate) dir: Option<PathBuf>,
    /// Accepted for compatibility: `run` needs no port
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// A named set of the model's options
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,
    /// Show the model's reasoning
    #[arg(long)]
    pub(crate) thinking: bool,
    /// Not in this version
    #[arg(short, long)]
    pub(crate) interactive: bool,
    /// Allow every call that would ask for permission; denials still hold
    #[arg(long)]
    pub(crate) auto: bool,
    /// Trust the directory for this run: its configuration takes effect
    #[arg(long)]
    pub(crate) trust: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    #[command(subcommand)]
    pub(crate) command: TrustCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// List the decisions
    List(TrustListArgs),
    /// Show what a directory's configuration asks for
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

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Default,
    Json,
}

/// Where a server listens, and who may use it.
#[derive(Debug, Clone, Args)]
pub(crate) struct ListenArgs {
    /// The port; without one, or as 0, that of the global configuration, else 4096 if it is free, else any
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// The address to listen on (127.0.0.1 if nothing else is configured); beyond this machine a password is needed
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) hostname: Option<String>,
    /// An origin of web pages that may use the server; may be given more than once
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) cors: Vec<String>,
    /// Announce the server to the local network, and listen on all addresses if none is named
    #[arg(long)]
    pub(crate) mdns: bool,
    /// The name that it is announced under (opencode.local if nothing else is configured)
    #[arg(long, value_name = "DOMAIN")]
    pub(crate) mdns_domain: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    /// Listen on a socket file that you alone may use, instead of an address
    #[arg(long, value_name = "PATH", conflicts_with_all = ["port", "hostname", "mdns"])]
    pub(crate) socket: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct WebArgs {
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ProvidersArgs {
    #[command(subcommand)]
    pub(crate) command: ProvidersCommand,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum ProvidersCommand {
    /// List what is stored and what the environment gives, without the secrets
    #[command(visible_alias = "ls")]
    List(Common),
    /// Sign in to a provider, or store a key for it
    Login {
        /// The provider's name
        #[arg(value_name = "URL|PROVIDER", conflicts_with = "provider")]
        url: Option<String>,
        /// The provider's name; a key is read from standard input unless that is a terminal
        #[arg(short, long, value_name = "NAME")]
        provider: Option<String>,
        /// The way to sign in, by its label
        #[arg(short, long, value_name = "LABEL")]
        method: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Forget the credentials of a provider
    Logout {
        /// The provider's name
        provider: Option<String>,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ModelsArgs {
    /// Only those of this provider
    pub(crate) provider: Option<String>,
    /// Add what is known of each: limits, prices, variants
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Fetch the newest list from models.dev first
    #[arg(long)]
    pub(crate) refresh: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct DemoArgs {
    /// Keep the project that the demo works on, and say where it is
    #[arg(long)]
    pub(crate) keep: bool,
    /// Text for people, or one JSON object a line
    #[arg(long, value_enum, default_value_t = Format::Default)]
    pub(crate) format: Format,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ExportArgs {
    /// The session; without one it is asked for on a terminal
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Take out texts, paths and results: what remains can be shown to others
    #[arg(long)]
    pub(crate) sanitize: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ImportArgs {
    /// An exported session, `-` for standard input, or the address of a share
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    pub(crate) file: Option<String>,
    /// Take over all sessions of another installation on this machine
    #[arg(long, value_enum, value_name = "PROGRAM")]
    pub(crate) from: Option<Installation>,
    /// The installation's data directory, or its database
    #[arg(long, value_name = "DIR", requires = "from")]
    pub(crate) data: Option<PathBuf>,
    /// Say what would be taken over and change nothing
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
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    pub(crate) command: SessionCommand,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the sessions of this project, the newest first
    List {
        /// At most so many
        #[arg(short = 'n', long, value_name = "N")]
        max_count: Option<usize>,
        /// A table for people, or JSON
        #[arg(long, value_enum, default_value_t = ListFormat::Table)]
        format: ListFormat,
        #[command(flatten)]
        common: Common,
    },
    /// Take the last prompt back, with what the agent did to files for it
    Undo(UndoArgs),
    /// Take forth again what was taken back, a prompt at a time
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
    /// The session; without one the last of this directory
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Change files even if they were changed since
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    Table,
    Json,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct PermissionsArgs {
    #[command(subcommand)]
    pub(crate) command: PermissionsCommand,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum PermissionsCommand {
    /// List the saved permissions of this project, the oldest first
    List {
        /// List those of all projects
        #[arg(long)]
        all: bool,
        /// A table for people, or JSON
        #[arg(long, value_enum, default_value_t = ListFormat::Table)]
        format: ListFormat,
        #[command(flatten)]
        common: Common,
    },
    /// Revoke a saved permission; running servers ask again at the next call
    #[command(group = clap::ArgGroup::new("which").required(true))]
    Revoke {
        /// The id that `list` shows
        #[arg(value_name = "ID", group = "which")]
        id: Option<String>,
        /// Revoke all of this project
        #[arg(long, group = "which")]
        all: bool,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct StatsArgs {
    /// Only sessions changed in the last days; 0 is today
    #[arg(long, value_name = "N")]
    pub(crate) days: Option<u32>,
    /// How many tools are shown
    #[arg(long, value_name = "N")]
    pub(crate) tools: Option<usize>,
    /// Show the models, all or the most used
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "all")]
    pub(crate) models: Option<String>,
    /// Only this project; this directory's if no value is given
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    pub(crate) project: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct DbArgs {
    #[command(subcommand)]
    pub(crate) command: Option<DbCommand>,
    /// The SQL; without it statements are read from standard input
    pub(crate) query: Option<String>,
    /// How rows are written
    #[arg(long, value_enum, default_value_t = RowFormat::Tsv)]
    pub(crate) format: RowFormat,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum DbCommand {
    /// Say where the database is
    Path(Common),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowFormat {
    Json,
    Tsv,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct DebugArgs {
    #[command(subcommand)]
    pub(crate) command: DebugCommand,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum DebugCommand {
    /// Say where the program keeps what
    Paths(Common),
    /// Print the configuration that holds here, without secrets
    Config {
        /// Print every value with the file that it came from instead
        #[arg(long)]
        origins: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Print the skills that are found here, with their texts
    Skill(Common),
    /// Print one agent as it is used here
    Agent {
        /// The agent
        name: String,
        #[command(flatten)]
        common: Common,
    },
    /// Show what a conversation here begins with: each piece, how long it is and where it came from
    Prompt {
        /// The agent
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        /// The model, as provider/model
        #[arg(short, long, value_name = "PROVIDER/MODEL")]
        model: Option<String>,
        /// Print all of it as JSON, the texts too
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct AgentArgs {
    #[command(subcommand)]
    pub(crate) command: AgentCommand,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum AgentCommand {
    /// List the agents with their permissions
    List(Common),
    /// Have a model write an agent from a description
    Create(CreateAgentArgs),
}

#[derive(Debug, Clone, Args)]
pub(crate) struct CreateAgentArgs {
    /// The folder of configuration to write into; this project's `.opencode` without one
    #[arg(long, value_name = "DIR")]
    pub(crate) path: Option<PathBuf>,
    /// What the agent is for; read from standard input without it
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Who may call it
    #[arg(long, value_parser = ["all", "primary", "subagent"], default_value = "all")]
    pub(crate) mode: String,
    /// The tools it may use, separated by commas; all without it
    #[arg(long, alias = "tools", value_name = "NAMES")]
    pub(crate) permissions: Option<String>,
    /// The model that writes it, as provider/model
    #[arg(short, long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}
