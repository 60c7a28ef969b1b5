//! `pr`: a task for another program. It fails with the reason and the commands to use instead.

use std::process::ExitCode;

use anyhow::bail;

use super::serve::program_name;
use crate::cli::PrArgs;

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
