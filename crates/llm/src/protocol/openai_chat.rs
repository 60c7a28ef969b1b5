//! OpenAI Chat Completions, and the many servers that imitate it.

pub(crate) mod error;
pub(crate) mod request;
pub(crate) mod stream;

/// Where completions are asked for, below the base URL.
pub(crate) const PATH: &str = "chat/completions";
