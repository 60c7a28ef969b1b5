//! The store at its face: real files, threads and restarts.

mod conformance;
mod damage;
mod face;
mod feed;
mod full;
mod lease;
mod opening;
mod permission;
mod process;
mod replay;
mod support;
mod sync;
