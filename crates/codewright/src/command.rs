//! The subcommands, one file each.

pub(crate) mod acp;
pub(crate) mod agent;
pub(crate) mod bug;
pub(crate) mod completion;
pub(crate) mod db;
pub(crate) mod debug;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod outside;
pub(crate) mod permissions;
pub(crate) mod plugin;
pub(crate) mod providers;
pub(crate) mod review;
pub(crate) mod run;
pub(crate) mod sandbox;
pub(crate) mod serve;
pub(crate) mod session;
pub(crate) mod stats;
pub(crate) mod trust;
pub(crate) mod tui;
pub(crate) mod uninstall;
pub(crate) mod upgrade;
pub(crate) mod users;

/// The stack size of a thread that runs turns. Unoptimized builds need more than the default of 2 MiB; unused pages
/// cost no memory.
pub(crate) const STACK_BYTES: usize = 8 * 1024 * 1024;
