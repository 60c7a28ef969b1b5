//! The API as Rust functions, over a socket or in process.
