//! Sessions and the agent loop; the only room that knows the others' meaning.
//!
//! A request goes in by [`Engine`], a fact comes out by its subscription. What to do
//! next, what to send and what a chunk means are pure functions of values; tasks and
//! sockets only carry them out.

#![warn(missing_docs)]

mod admit;
mod credential;
mod engine;
mod error;
mod models;
mod permission;
mod place;
mod prompts;
mod remote;
mod request;
mod run;
mod session;
mod toolbox;
mod transfer;

pub use codewright_store::inspect;
pub use codewright_store::{Incoming, Logged, Published, Salvage, SessionFilter, Subscription};
pub use credential::{sign_in, vault};
pub use engine::{Engine, Options};
pub use error::Error;
pub use place::Place;
pub use session::revert::Restored;
pub use transfer::{Export, Imported, MAX_DOCUMENT_BYTES, Mode, Outcome, Summary, Texts};
