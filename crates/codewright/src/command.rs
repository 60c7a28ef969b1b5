//! The commands, one file each.

pub(crate) mod agent;
pub(crate) mod db;
pub(crate) mod debug;
pub(crate) mod demo;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod models;
pub(crate) mod permissions;
pub(crate) mod providers;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod session;
pub(crate) mod stats;
pub(crate) mod trust;
pub(crate) mod tui;

/// The stack of a thread that runs turns. Unoptimized builds need more than the usual 2 MiB; a page that is
/// never touched costs nothing.
pub(crate) const STACK_BYTES: usize = 8 * 1024 * 1024;
