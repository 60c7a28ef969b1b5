//! Servers of the Model Context Protocol: their configuration, connections, tools, prompts and resources.
//!
//! The protocol itself is the SDK `rmcp`. This crate adds what it lacks: processes that are confined and never survive
//! this one, bounds for everything that a server sends, restarts, and the older transport over HTTP. A server is
//! hostile: its names, schemas and texts are checked and limited before anything else sees them.

pub mod auth;
mod config;
mod connection;
mod content;
mod error;
mod handler;
mod host;
mod http;
mod list;
mod names;
mod sampling;
mod servers;
mod sse;
mod stdio;
mod watched;

pub use config::{Config, Kind, Local, OAuth, Remote, Wire, configured};
pub use content::{Attached, Content, Part, prompt_text, resource_parts, result};
pub use error::Failure;
pub use handler::{ElicitReply, Elicitation, Field, FieldKind};
pub use host::{Boxed, Host};
pub use list::{Prompt, PromptArgument, Resource, Template, Tool};
pub use names::{sanitize, tool_names};
pub use sampling::{Sampled, Sampling, Speaker, Stop};
pub use servers::{Call, Servers, Status};
