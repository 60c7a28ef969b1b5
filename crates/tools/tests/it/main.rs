//! The built-in tools in real directories, called as the server calls them.

mod bash;
mod conditional;
mod edit;
mod exchange;
mod face;

mod patch;
mod project;
mod read;
mod schemas;
mod search;
mod skill;
mod todowrite;
mod webfetch;
mod write;
