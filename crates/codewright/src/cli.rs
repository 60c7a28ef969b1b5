//! The definition of the command line.
//!
//! Help texts are the doc comments here; `docs/cli.md` is generated from them.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

mod client;
mod debug;
mod diagnosis;
mod help;
mod install;
mod model;
mod review;
mod server;
mod session;
mod setup;
mod word;

pub(crate) use client::*;
pub(crate) use debug::*;
pub(crate) use diagnosis::*;
pub(crate) use help::definition;
pub(crate) use install::*;
pub(crate) use model::*;
pub(crate) use review::*;
pub(crate) use server::*;
pub(crate) use session::*;
pub(crate) use setup::*;

/// An AI coding agent for your terminal.
#[derive(Debug, Parser)]
#[command(name = "codewright", disable_version_flag = true)]
pub(crate) struct Cli {
    /// Print the version number
    #[arg(short, long, global = true)]
    pub(crate) version: bool,
    /// Store sessions in this database, `postgres://…`, instead of the file [env: OPENCODE_STORE]
    #[arg(long, value_name = "URL", global = true, hide_short_help = true)]
    pub(crate) store: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) tui: TuiArgs,
}

impl Cli {
    /// Parses the program's name and its arguments.
    ///
    /// The definition of all commands is a twentieth of the work of a short run, so the usual commands are parsed without the
    /// others. If that fails, the whole definition decides, which also writes help and errors.
    pub(crate) fn read(args: &[OsString]) -> Result<Self, clap::Error> {
        let usual = args.get(1..).and_then(Self::usual);
        let cli = usual.map_or_else(|| Self::whole(args), Ok)?;
        if cli.command.is_some() && cli.tui.common.sandbox.is_some() {
            // It would belong to the terminal client alone, and the command would run with less protection than requested.
            let message = "write `--sandbox` after the command";
            return Err(Self::command().error(ErrorKind::ArgumentConflict, message));
        }
        let is_remote = match &cli.command {
            Some(Command::Attach(_)) => true,
            Some(Command::Run(args)) => args.attach.is_some(),
            _ => false,
        };
        if is_remote && cli.store.is_some() {
            let message = "`--store` belongs to the server: start it with this option";
            return Err(Self::command().error(ErrorKind::ArgumentConflict, message));
        }
        Ok(cli)
    }

    /// Parses with the whole definition.
    fn whole(args: &[OsString]) -> Result<Self, clap::Error> {
        let matches = definition().try_get_matches_from(args).map_err(|error| word::mistake(args, error))?;
        word::place_prompt(Self::from_arg_matches(&matches)?)
    }

    fn usual(args: &[OsString]) -> Option<Self> {
        let of =
            |command| Self { version: false, store: None, command: Some(command), tui: TuiArgs::default() };
        let Some((name, rest)) = args.split_first() else {
            return Some(Self { version: false, store: None, command: None, tui: alone(&[])? });
        };
        match name.to_str()? {
            "run" => Some(of(Command::Run(alone(rest)?))),
            "serve" => Some(of(Command::Serve(alone(rest)?))),
            _ => None,
        }
    }
}

/// Parses the arguments of one command, or returns `None` for an error or a request for help.
fn alone<A: Args>(args: &[OsString]) -> Option<A> {
    let command = A::augment_args(clap::Command::new("codewright").no_binary_name(true));
    A::from_arg_matches(&command.try_get_matches_from(args).ok()?).ok()
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Open the terminal client on a running server
    Attach(AttachArgs),
    /// Run one prompt and print the answer
    Run(RunArgs),
    /// Review changes and print the findings
    Review(ReviewArgs),
    /// Start a server for clients
    Serve(ServeArgs),
    /// Start a server and open its web page in the browser
    Web(WebArgs),
    /// List, add and remove credentials of model providers
    #[command(visible_alias = "auth")]
    Providers(ProvidersArgs),
    /// List the available models
    Models(ModelsArgs),
    /// Export a session as JSON
    Export(ExportArgs),
    /// Import a session from a file or a share, or all sessions of another program
    Import(ImportArgs),
    /// List, delete, undo and redo sessions
    Session(SessionArgs),
    /// List, add and sign in to MCP servers
    Mcp(McpArgs),
    /// Serve an editor over standard input and output with the Agent Client Protocol
    Acp(AcpArgs),
    /// List, add, update and remove plugins
    #[command(visible_alias = "plug", args_conflicts_with_subcommands = true)]
    Plugin(PluginArgs),
    /// Make tokens for the users of a server, and print the audit log
    Users(UsersArgs),
    /// List and revoke permissions that were granted with "always"
    Permissions(PermissionsArgs),
    /// Show the usage of tokens, costs, models and tools
    Stats(StatsArgs),
    /// Query the database with SQL
    #[command(args_conflicts_with_subcommands = true)]
    Db(DbArgs),
    /// List agents and create new ones
    Agent(AgentArgs),
    /// List, add and remove trusted directories
    Trust(TrustArgs),
    /// Show what the sandbox of commands enforces, or run a command in it
    Sandbox(SandboxArgs),
    /// Show paths, configuration, files, snapshots, skills, agents and prompts
    Debug(DebugArgs),
    /// Check key, network, sandbox, terminal and more, with advice
    Doctor(DoctorArgs),
    /// Write a report of a problem into a file, without secrets; nothing is sent
    Bug(BugArgs),
    /// Print a shell script that completes commands and options
    Completion(CompletionArgs),
    /// Upgrade the program, or print the command of the package manager that installed it
    Upgrade(UpgradeArgs),
    /// Delete the files that the program created
    Uninstall(UninstallArgs),
    /// Print how to check out a GitHub pull request; this version does not run `gh`
    #[command(hide = true)]
    Pr(PrArgs),
    /// Write the man pages, for packages
    #[command(hide = true)]
    Man(ManArgs),
    /// Watch the agent fix a bug, without an API key or a network
    Demo(DemoArgs),
}

/// Flags that every command accepts because existing scripts pass them.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Common {
    /// Print logs to standard error
    #[arg(long)]
    pub(crate) print_logs: bool,
    /// The least severe level that is logged
    #[arg(long, value_name = "LEVEL", ignore_case = true, value_parser = ["DEBUG", "INFO", "WARN", "ERROR"])]
    pub(crate) log_level: Option<String>,
    /// Run without external plugins
    #[arg(long)]
    pub(crate) pure: bool,
    /// Restrict the commands of the model; overrides the configuration
    #[arg(long, value_name = "MODE", value_parser = ["read-only", "workspace", "off"])]
    pub(crate) sandbox: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    Table,
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_that_would_be_ignored_is_an_error() {
        for (line, is_error) in [
            ("--sandbox read-only run hi", true),
            ("--sandbox read-only sandbox", true),
            ("--sandbox read-only", false),
            ("sandbox --sandbox read-only", false),
            ("run --sandbox read-only hi", false),
            ("run --store postgres://h/d hi", false),
            ("--store postgres://h/d run hi", false),
            ("--store postgres://h/d", false),
            ("run --store postgres://h/d --attach http://localhost:1 hi", true),
            ("attach http://localhost:1 --store postgres://h/d", true),
        ] {
            let args: Vec<_> =
                ["codewright"].into_iter().chain(line.split_whitespace()).map(OsString::from).collect();
            assert_eq!(Cli::read(&args).is_err(), is_error, "{line}");
        }
    }

    #[test]
    fn a_usual_command_is_parsed_as_by_the_whole_definition() {
        for (line, is_usual) in [
            ("", true),
            ("run", true),
            ("run hi", true),
            ("run two words -m a/b --format json --title", true),
            ("run --title= -c --file x -- -v --help", true),
            ("run help", true),
            ("run -i --sandbox read-only --log-level debug", true),
            ("serve", true),
            ("serve --port 4096 --hostname 0.0.0.0 --print-logs", true),
            ("run hi -v", false),
            ("run --version", false),
            ("run --help", false),
            ("run --unknown", false),
            ("run --format xml", false),
            ("serve --port x", false),
            ("serve --socket s --port 1", false),
            ("-v", false),
            ("directory", false),
            ("session list", false),
            ("help run", false),
        ] {
            let args: Vec<_> =
                ["codewright"].into_iter().chain(line.split_whitespace()).map(OsString::from).collect();
            let usual = Cli::usual(&args[1..]);
            assert_eq!(usual.is_some(), is_usual, "{line}");
            match (usual, Cli::try_parse_from(&args)) {
                (Some(usual), Ok(whole)) => assert_eq!(format!("{usual:?}"), format!("{whole:?}"), "{line}"),
                (Some(_), Err(error)) => panic!("{line}: {error}"),
                (None, _) => {}
            }
        }
    }
}
