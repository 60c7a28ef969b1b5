//! Language servers: their configuration, processes, documents, diagnostics and queries.
//!
//! A server is hostile: its messages are limited, its paths and texts are checked and cleaned, and it never delays a
//! caller longer than a deadline. Nothing runs unless the configuration enables it.

#![warn(missing_docs)]

mod client;
mod config;
mod connection;
mod diagnostic;
mod document;
mod error;
mod frame;
mod host;
mod query;
mod registered;
mod report;
mod servers;
mod session;
mod table;
mod uri;
mod watcher;

pub use config::{Python, Spec, configured};
pub use diagnostic::{Counts, Diagnostic, Position, Range, Severity};
pub use host::{Host, Launch, Provided, Wanted};
pub use query::{Answer, Operation, Query};
pub use report::Report;
pub use servers::{Change, Servers, Status};
pub use session::Kind;
