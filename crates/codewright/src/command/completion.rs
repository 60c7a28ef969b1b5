//! `completion` and `man`: what packages and shells need to know about the command line.
//!
//! Both are generated from the definition in `cli.rs`. They open no directory and read no configuration.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::CommandFactory as _;
use clap_complete::Shell;
use codewright_config::{Env, env};

use super::serve::program_name;
use crate::cli::{Cli, CompletionArgs, ManArgs};
use crate::output::{Output, exit_code};

/// Prints the script that completes commands and options in a shell.
pub(crate) fn main(args: &CompletionArgs) -> anyhow::Result<ExitCode> {
    let shell = args.shell.unwrap_or_else(|| shell_of(&Env::from_process()));
    let mut script = Vec::new();
    // The script completes the name that the user calls.
    clap_complete::generate(shell, &mut Cli::command(), program_name(), &mut script);
    let mut output = Output::new();
    exit_code(output.write(&String::from_utf8_lossy(&script)).and_then(|()| output.finish()))
}

/// The user's shell, or bash if it is unknown.
fn shell_of(env: &Env) -> Shell {
    let path = env.filled(env::SHELL).unwrap_or_default();
    match Path::new(path).file_stem().and_then(|name| name.to_str()) {
        Some("zsh") => Shell::Zsh,
        Some("fish") => Shell::Fish,
        Some("elvish") => Shell::Elvish,
        Some("pwsh" | "powershell") => Shell::PowerShell,
        _ => Shell::Bash,
    }
}

/// Writes a man page for each command.
pub(crate) fn man(args: &ManArgs) -> anyhow::Result<ExitCode> {
    let directory = &args.directory;
    if !directory.is_dir() {
        bail!("`{}` is not a directory", directory.display());
    }
    clap_mangen::generate_to(Cli::command(), directory)
        .with_context(|| format!("cannot write to `{}`", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_comes_from_its_variable() {
        for (path, expected) in [
            ("/bin/zsh", Shell::Zsh),
            ("/usr/bin/fish", Shell::Fish),
            ("/opt/bin/elvish", Shell::Elvish),
            ("/usr/bin/pwsh", Shell::PowerShell),
            ("/bin/bash", Shell::Bash),
            ("/bin/ksh", Shell::Bash),
            ("", Shell::Bash),
        ] {
            assert_eq!(shell_of(&Env::from_pairs([("SHELL", path)])), expected, "{path}");
        }
    }
}
