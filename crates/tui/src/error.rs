//! What keeps the client from running.

use std::io;

/// Why the client ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The terminal cannot be drawn on.
    #[error("cannot use the terminal")]
    Terminal(#[source] io::Error),
    /// The server cannot be reached at the start, so there is nothing to show.
    #[error(transparent)]
    Server(codewright_client::Error),
}
