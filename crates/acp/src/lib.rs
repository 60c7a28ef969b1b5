//! The Agent Client Protocol (ACP), which editors speak to agents: JSON-RPC over the standard streams of a process.
//!
//! This crate is a client of the API like any other. It turns the requests of an editor into calls of the API, and
//! events into updates of the editor's sessions, so a session of an editor is the same session for every other client.
//!
//! One process serves many sessions in many directories. It ends when its input ends.

#![warn(missing_docs)]

mod agent;
mod content;
mod feed;
mod files;
mod options;
mod permission;
mod prompt;
mod session;
mod terminal;
mod transport;
mod update;

pub use agent::{Identity, serve};
pub use files::{Documents, EditorFiles};
