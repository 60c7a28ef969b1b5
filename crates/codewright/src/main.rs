//! The command line of Codewright.
//!
//! Each subcommand has a file in `command/`. Errors are printed on standard error with a hint where one is known.
//! The exit code is 0 for success, 1 for a failure, and 130 or 143 after an interrupt or a termination signal.

mod browser;
mod cli;
mod command;
mod connection;
#[cfg(test)]
mod docs;
mod output;
mod style;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use clap::error::ErrorKind;

use cli::{Cli, Command};
use codewright_config::{Dirs, Env};
use codewright_tui::clean;

fn main() -> ExitCode {
    let started = Instant::now();
    codewright_workspace::deny_tracing();
    codewright_memory::limit();
    // First, because every command that the model runs starts the program this way.
    let mut args = std::env::args_os().skip(1);
    let first = args.next();
    match &first {
        Some(first) if first == codewright_workspace::SUPERVISE => {
            return codewright_workspace::supervise(args);
        }
        Some(first) if first == codewright_workspace::CONFINE => return codewright_workspace::confine(args),
        _ => {}
    }
    let args: Vec<_> = std::env::args_os().take(1).chain(first).chain(args).collect();
    let cli = match Cli::read(&args) {
        Ok(cli) => cli,
        Err(error) => {
            // Nothing can be reported to a closed terminal.
            drop(error.print());
            let is_help = error.kind() == ErrorKind::DisplayHelp;
            return if is_help { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
    };
    if cli.version {
        return print(&format!("{}\n", connection::shown_version()));
    }
    if let Some(url) = cli.store {
        connection::set_store(url);
    }
    repair_directories();
    let result = match cli.command {
        None => command::tui::main(cli.tui),
        Some(command) => run(command, started),
    };
    result.unwrap_or_else(|error| {
        style::error(&error);
        ExitCode::FAILURE
    })
}

/// Removes the permissions of other users from the program's own directories. Older versions created them readable.
fn repair_directories() {
    // Commands that need the directories report the error.
    let Ok(dirs) = Dirs::new(&Env::from_process()) else { return };
    for directory in [&dirs.data, &dirs.state, &dirs.cache] {
        if let Err(error) = codewright_workspace::repair_private_directory(directory) {
            let advice = format!("run `chmod 700 {}`", directory.display());
            style::warning(&format!("cannot make `{}` private: {error}; {advice}", directory.display()));
        }
    }
}

fn run(command: Command, started: Instant) -> anyhow::Result<ExitCode> {
    match command {
        Command::Attach(args) => command::tui::attach(args),
        Command::Run(args) => command::run::main(args),
        Command::Review(args) => command::review::main(&args),
        Command::Serve(args) => command::serve::main(args),
        Command::Web(args) => command::serve::web(args),
        Command::Providers(args) => command::providers::main(args),
        Command::Models(args) => command::models::main(&args),
        Command::Export(args) => command::export::main(&args),
        Command::Import(args) => command::import::main(&args),
        Command::Mcp(args) => command::mcp::main(&args),
        Command::Acp(args) => command::acp::main(args),
        Command::Plugin(args) => command::plugin::main(&args),
        Command::Users(args) => command::users::main(&args),
        Command::Permissions(args) => command::permissions::main(&args),
        Command::Session(args) => command::session::main(&args),
        Command::Stats(args) => command::stats::main(&args),
        Command::Db(args) => command::db::main(&args),
        Command::Agent(args) => command::agent::main(&args),
        Command::Doctor(args) => command::doctor::main(&args),
        Command::Bug(args) => command::bug::main(&args),
        Command::Debug(args) => command::debug::main(&args, started),
        Command::Completion(args) => command::completion::main(&args),
        Command::Man(args) => command::completion::man(&args),
        Command::Upgrade(args) => command::upgrade::main(&args),
        Command::Pr(args) => command::outside::pull_request(&args),
        Command::Uninstall(args) => command::uninstall::main(&args),
        Command::Trust(args) => command::trust::main(&args),
        Command::Sandbox(args) => command::sandbox::main(&args),
        Command::Demo(args) => command::demo::main(args),
    }
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader closed the pipe.
        Err(_) => ExitCode::FAILURE,
    }
}
