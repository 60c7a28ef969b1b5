//! Tests of the store's public interface, with real files, threads and restarts.

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
