//! Tests of the crate's public interface, with working and failing servers on real sockets.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bedrock;
mod chaos;
mod cohere;
mod google;
mod network;
mod server;
mod sign_in;
mod socket;
mod vault;
