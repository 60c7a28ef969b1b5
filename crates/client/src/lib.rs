//! The API as Rust functions, over a socket or in process.
//!
//! A [`Client`] promises that every call either gives the value the server sent
//! or says in words what went wrong, and that none of them waits for ever.
//! [`Events`] delivers what happens from the moment it was opened.

#![warn(missing_docs)]

mod client;
mod error;
mod events;
mod frames;
mod query;
mod transport;

pub use client::Client;
pub use error::Error;
pub use events::Events;
pub use query::SessionQuery;
