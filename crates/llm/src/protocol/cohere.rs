//! Cohere's chat, second version.

pub(crate) mod error;
pub(crate) mod request;
pub(crate) mod stream;

/// Where chats are asked for, below the base URL.
pub(crate) const PATH: &str = "chat";
