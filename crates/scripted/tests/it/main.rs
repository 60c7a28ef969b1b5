//! The scripted model at its face: a real socket, and a client that looks at the bytes.

mod answers;
mod checks;
mod client;
mod faults;
mod serving;
