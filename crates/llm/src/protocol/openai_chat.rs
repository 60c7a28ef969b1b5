//! OpenAI Chat Completions and its many imitations.

pub(crate) mod error;
pub(crate) mod request;
pub(crate) mod rules;
pub(crate) mod stream;

/// The path under the base URL.
pub(crate) const PATH: &str = "chat/completions";
