//! The arguments of `doctor` and `bug`.

use std::path::PathBuf;

use clap::Args;

use super::Common;

#[derive(Debug, Clone, Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct BugArgs {
    /// The file to write [default: `codewright-bug-TIME.md` in this directory]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
}
