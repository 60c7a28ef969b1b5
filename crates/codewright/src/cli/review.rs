//! The arguments of `review`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use codewright_proto::Severity;

use super::Common;

#[derive(Debug, Clone, Args)]
pub(crate) struct ReviewArgs {
    /// The changes, such as `main...HEAD`; a branch or commit alone means the changes since then. Without it, the
    /// uncommitted work
    #[arg(value_name = "RANGE")]
    pub(crate) range: Option<String>,
    /// Print text, JSON or SARIF
    #[arg(long, value_enum, default_value_t = ReviewFormat::Text)]
    pub(crate) format: ReviewFormat,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The model, as provider/model or a part of its name that only one model has
    #[arg(short, long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// Exit with 3 if a finding is at least this severe
    #[arg(long, value_enum, value_name = "SEVERITY")]
    pub(crate) fail_on: Option<LeastSeverity>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LeastSeverity {
    /// A detail
    Low,
    /// A problem in rare situations
    Medium,
    /// A bug that users meet
    High,
    /// Loss of data, a security hole or a crash
    Critical,
}

impl From<LeastSeverity> for Severity {
    fn from(least: LeastSeverity) -> Self {
        match least {
            LeastSeverity::Low => Self::Low,
            LeastSeverity::Medium => Self::Medium,
            LeastSeverity::High => Self::High,
            LeastSeverity::Critical => Self::Critical,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReviewFormat {
    Text,
    Json,
    Sarif,
}
