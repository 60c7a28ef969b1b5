//! A client of the server's API, over a socket or in process.
//!
//! Every function of a [`Client`] returns the value that the server sent, or an error that describes
//! the failure. No call waits forever. [`Events`] is the stream of events from the moment it was opened.

#![warn(missing_docs)]

mod client;
mod error;
mod events;
mod exchange;
mod frames;
mod query;
mod slash;
mod transport;

pub use client::Client;
pub use error::Error;
pub use events::Events;
pub use query::SessionQuery;
pub use slash::slash_command;
