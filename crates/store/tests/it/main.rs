//! Tests of the store's public interface, with real files, threads and restarts.

mod conformance;
mod damage;
#[cfg(feature = "postgres")]
mod database;
mod face;
mod feed;
mod full;
mod lease;
mod opening;
mod permission;
#[cfg(feature = "postgres")]
mod postgres;
mod process;
mod replay;
mod support;
mod sync;

#[cfg(feature = "postgres")]
#[expect(unreachable_pub, dead_code, reason = "the tests of the program use it too")]
#[path = "../../../testkit/src/postgres.rs"]
mod server;
