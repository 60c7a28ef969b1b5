//! The server with a real engine and a scripted model, called directly and over a socket.

#![allow(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod auth;
mod bench;
mod browse;
mod compress;
mod document;
mod events;
mod features;
mod fuzz;
mod http;
mod log;
mod page;
mod project;
mod prompt;
mod rules;
mod security;
mod sign_in;
mod signing;
mod socket;
mod v2;
mod view;
mod watcher;
