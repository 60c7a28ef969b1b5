//! Anthropic Messages.

pub(crate) mod error;
pub(crate) mod request;
pub(crate) mod stream;

/// Where messages are asked for, below the base URL.
pub(crate) const PATH: &str = "messages";
