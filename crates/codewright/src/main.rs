//! The command line of Codewright, and the wiring of its rooms.
//!
//! One file a command. What is wrong is said on standard error in words a person can
//! act on; the exit code is 0 for a turn that was answered, 1 for a failure, and 130
//! or 143 for one that was interrupted.

mod cli;
mod command;
mod connection;
mod output;
mod style;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;

use cli::{Cli, Command};
use codewright_config::{Dirs, Env};
use codewright_tui::clean;

fn main() -> ExitCode {
    codewright_workspace::deny_tracing();
    // Before anything else: every command of a model starts the program this way.
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == codewright_workspace::SUPERVISE) {
        return codewright_workspace::supervise(args);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // A closed terminal cannot be told anything.
            drop(error.print());
            let asked = error.kind() == ErrorKind::DisplayHelp;
            return if asked { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
    };
    if cli.version {
        return print(&format!("{}\n", connection::VERSION));
    }
    repair_directories();
    let result = match cli.command {
        None => command::tui::main(cli.tui),
        Some(command) => run(command),
    };
    result.unwrap_or_else(|error| {
        style::error(&error);
        ExitCode::FAILURE
    })
}

/// Takes the permissions of other users from the program's own directories, which older versions did not.
fn repair_directories() {
    // Commands that need the directories report why there are none.
    let Ok(dirs) = Dirs::new(&Env::from_process()) else { return };
    for directory in [&dirs.data, &dirs.state, &dirs.cache] {
        if let Err(error) = codewright_workspace::repair_private_directory(directory) {
            let advice = format!("run `chmod 700 {}`", directory.display());
            style::warning(&format!("cannot make `{}` private: {error}; {advice}", directory.display()));
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Attach(args) => command::tui::attach(args),
        Command::Run(args) => command::run::main(args),
        Command::Serve(args) => command::serve::main(args),
        Command::Web(args) => command::serve::web(args),
        Command::Providers(args) => command::providers::main(args),
        Command::Models(args) => command::models::main(&args),
        Command::Export(args) => command::export::main(&args),
        Command::Import(args) => command::import::main(&args),
        Command::Permissions(args) => command::permissions::main(&args),
        Command::Session(args) => command::session::main(&args),
        Command::Stats(args) => command::stats::main(&args),
        Command::Db(args) => command::db::main(&args),
        Command::Agent(args) => command::agent::main(&args),
        Command::Debug(args) => command::debug::main(&args),
        Command::Trust(args) => command::trust::main(&args),
        Command::Demo(args) => command::demo::main(args),
    }
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody reads it.
        Err(_) => ExitCode::FAILURE,
    }
}
