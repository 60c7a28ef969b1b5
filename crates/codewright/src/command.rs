//! The commands, one file each.

pub(crate) mod demo;
pub(crate) mod models;
pub(crate) mod providers;
pub(crate) mod run;
pub(crate) mod serve;
