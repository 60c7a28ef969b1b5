//! The process that runs the plugins and tool files of a directory.
//!
//! The process is a script (`plugin-host/` in the repository), which is part of this program and runs with bun, Node or
//! deno. It loads the plugins and speaks JSON-RPC over one socket. This crate starts it, owns it and bounds everything
//! that it can do: time, memory, messages and log lines. A plugin that blocks or ends the process is reported by name, and
//! the process is started again without it.

#![warn(missing_docs)]

mod connection;
mod error;
mod host;
mod inbox;
mod plugins;
mod protocol;
mod runtime;
mod script;
mod session;
mod stream;

pub use error::Failure;
pub use host::{ApiRequest, ApiResponse, Body, Boxed, Host, Level, ToolAsk, ToolPort};
pub use plugins::{Plugins, Setup};
pub use protocol::{
    Auth, AuthMethod, AuthPrompt, CodePlace, HookCall, HookFailure, HookReply, Loaded, PluginEntry, ToolCall,
    ToolEntry, ToolInfo, WorkspaceAdapter,
};
pub use runtime::{Runtime, RuntimeKind};
pub use script::SCRIPTS;
pub use session::FetchRequest;
pub use stream::FetchResponse;
