//! The arguments of `completion`, `man`, `upgrade`, `uninstall` and `pr`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

use super::Common;

#[derive(Debug, Clone, Args)]
pub(crate) struct CompletionArgs {
    /// The shell [default: the one in `SHELL`, or bash]
    #[arg(value_enum)]
    pub(crate) shell: Option<Shell>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ManArgs {
    /// The directory to write to; it must exist
    pub(crate) directory: PathBuf,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct UpgradeArgs {
    /// The version
    pub(crate) target: Option<String>,
    /// Print the command for this way of installation
    #[arg(short, long, value_parser = ["curl", "npm", "pnpm", "bun", "brew", "choco", "scoop", "uv", "pipx", "pip", "nix", "cargo"])]
    pub(crate) method: Option<String>,
    /// Print whether a newer version is published
    #[arg(long, conflicts_with = "rollback")]
    pub(crate) check: bool,
    /// Return to the version before the last upgrade
    #[arg(long, conflicts_with_all = ["target", "method"])]
    pub(crate) rollback: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct UninstallArgs {
    /// Keep the configuration; it is always kept, because you may have written it
    #[arg(short = 'c', long)]
    pub(crate) keep_config: bool,
    /// Keep sessions, credentials and snapshots
    #[arg(short = 'd', long)]
    pub(crate) keep_data: bool,
    /// Print what would be deleted, without deleting it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Delete without asking
    #[arg(short, long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct PrArgs {
    /// The number of the pull request
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) number: u64,
    #[command(flatten)]
    pub(crate) common: Common,
}
