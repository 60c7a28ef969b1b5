//! The parts of the engine's interface: one small type for each subject.
//!
//! Each type borrows the engine and is returned by a method of [`crate::Engine`]. Its methods are next to the code that
//! they call.

pub(crate) mod events;
mod nodes;
mod permissions;
mod providers;
mod questions;
mod sessions;

use std::sync::Arc;

use crate::inner::Inner;

macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy)]
            pub struct $name<'a>(pub(crate) &'a Arc<Inner>);
        )*
    };
}

parts! {
    /// The stored events and the subscription to new ones.
    Events,
    /// Sessions, their messages, prompts and commands.
    Sessions,
    /// Permission requests and saved approvals.
    Permissions,
    /// The questions of tools to the user.
    Questions,
    /// The model catalog, credentials and sign-ins.
    Providers,
    /// Open directories and their agents.
    Instances,
    /// The projects that directories belong to.
    Projects,
    /// The worktrees of projects.
    Worktrees,
    /// The pseudo-terminals of clients.
    Terminals,
    /// Which directories the user trusts.
    Trust,
    /// Changes of the configuration.
    Settings,
    /// Import and export of sessions.
    Transfer,
    /// Usage, quotas and the audit log of a server with several users.
    Users,
    /// The log file.
    Log,
    /// The sandbox of the model's commands.
    Sandboxes,
    /// The MCP servers of directories.
    Mcp,
    /// The language servers of directories.
    Lsp,
    /// The packages that the key `plugin` names.
    Packages,
    /// The plugins and tool files of directories.
    Extensions,
    /// This server among others that share its store.
    Nodes,
}
