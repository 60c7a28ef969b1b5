//! The state for which plugins have changed the configuration.

use codewright_llm::vault::Stamp;

/// The loaded plugins and the stored credentials.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Configured {
    /// The number of the process that has loaded them.
    pub(crate) generation: u64,
    pub(crate) credentials: Stamp,
}
