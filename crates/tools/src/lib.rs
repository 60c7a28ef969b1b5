//! What a tool is, and the built-in ones.
//!
//! A tool is a name, a description, a schema for its input, the list of leaves a
//! call needs, and the call. Tools never ask for leave themselves and never see
//! a session: whoever runs them does both, the same way for every tool.

#![warn(missing_docs)]

mod ask;
mod cx;
mod effect;
mod error;
mod output;
mod render;
mod schema;
mod tool;
mod trim;

use std::sync::Arc;

pub use ask::Ask;
pub use cx::{Environment, FileLocks, Progress, ToolCx};
pub use effect::{Effects, FileEffect};
pub use error::ToolError;
pub use output::{Attachment, Output};
pub use render::{Unfilled, render};
pub use schema::conform;
pub use tool::bash::Bash;
pub use tool::edit::Edit;
pub use tool::glob::Glob;
pub use tool::grep::Grep;
pub use tool::read::Read;
pub use tool::write::Write;
pub use tool::{AnyTool, Boxed, Tool, erase};
pub use trim::{MAX_BYTES, MAX_LINES, trim};

/// The tools that come with the program, in the order models are shown them.
pub fn builtin() -> Vec<Arc<dyn AnyTool>> {
    vec![erase(Bash), erase(Edit), erase(Glob), erase(Grep), erase(Read), erase(Write)]
}
