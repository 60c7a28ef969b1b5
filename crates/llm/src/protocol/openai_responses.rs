//! OpenAI Responses, and the servers that speak it too.

pub(crate) mod error;
pub(crate) mod request;
pub(crate) mod stream;

/// Where responses are asked for, below the base URL.
pub(crate) const PATH: &str = "responses";
