//! The built-in tools on real directories, as a server would call them.

mod bash;
mod edit;
mod face;
mod patch;
mod project;
mod read;
mod search;
mod todowrite;
mod write;
