//! The store at its face: real files, threads and restarts.

mod face;
mod feed;
mod opening;
mod replay;
mod support;
