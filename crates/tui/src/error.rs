//! The errors of the client.

use std::io;

/// The reason why the client cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The terminal cannot be used.
    #[error("cannot use the terminal")]
    Terminal(#[source] io::Error),
    /// The server cannot be reached at the start.
    #[error(transparent)]
    Server(codewright_client::Error),
}
