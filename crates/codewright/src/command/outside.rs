//! `upgrade` and `pr`: tasks for other programs. They fail with the reason and the commands to use instead.

use std::process::ExitCode;

use anyhow::bail;

use super::serve::program_name;
use crate::cli::{PrArgs, UpgradeArgs};
use crate::connection::VERSION;

pub(crate) fn upgrade(args: &UpgradeArgs) -> anyhow::Result<ExitCode> {
    let target = args.target.as_deref().map(|target| target.trim_start_matches('v'));
    if target == Some(VERSION) {
        return Ok(crate::print(&format!("version {VERSION} is installed\n")));
    }
    let target = target.map_or_else(|| "the new version".to_owned(), |target| format!("version {target}"));
    bail!(
        "this program does not upgrade itself: there is no release server, and it never replaces its own file\n\
         install {} with the package manager that installed version {VERSION}, or build it from source with \
         `cargo build --release`",
        crate::clean::clean_line(&target)
    );
}

/// Explains how to check out a pull request.
///
/// `gh pr checkout` runs git with the hooks, filters and settings of the repository. Those can start programs, and some
/// come from the branch that is checked out.
pub(crate) fn pull_request(args: &PrArgs) -> anyhow::Result<ExitCode> {
    let number = args.number;
    bail!(
        "this program does not check out pull requests: `gh pr checkout` runs git with the repository's hooks and \
         filters, and those can start programs\n\
         if you trust the repository and the pull request, run `gh pr checkout {number} --branch pr/{number}`, and then \
         `{}`",
        program_name()
    );
}
