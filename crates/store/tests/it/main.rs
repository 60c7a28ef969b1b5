//! The store at its face: real files, threads and restarts.

mod damage;
mod face;
mod feed;
mod lease;
mod opening;
mod process;
mod replay;
mod support;
mod sync;
