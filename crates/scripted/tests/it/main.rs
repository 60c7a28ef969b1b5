//! Tests of the scripted model over a real socket, with a client that compares bytes.

mod answers;
mod checks;
mod client;
mod faults;
mod serving;
