//! The built-in tools on real directories, as a server would call them.

mod bash;
mod edit;
mod face;
mod older;
mod patch;
mod project;
mod read;
mod schemas;
mod search;
mod skill;
mod todowrite;
mod webfetch;
mod write;
