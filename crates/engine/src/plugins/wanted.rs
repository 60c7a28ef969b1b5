//! The plugins that a directory wants to run in one process.

use std::sync::Arc;

use codewright_config::CodeStamp;
use codewright_plugins::Setup;

use crate::packages::Owner;

/// What determines whether a running process can be kept.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) owner: Owner,
    pub(crate) setup: Setup,
    /// The state of the files.
    pub(crate) stamps: Arc<Vec<CodeStamp>>,
    /// The plugins that answer permission requests in the place of the user.
    pub(crate) granting: Vec<String>,
    /// The names of built-in tools.
    pub(crate) reserved: Vec<String>,
}
