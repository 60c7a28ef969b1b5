//! The room at its face: good and bad servers on a real socket.

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
