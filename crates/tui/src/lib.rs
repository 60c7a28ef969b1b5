//! The terminal client: what happens on a server, drawn, and keys turned into requests.

pub mod clean;

mod app;
mod ascii;
mod asked;
mod bidi;
mod blocks;
mod clipboard;
mod diff;
mod editor;
mod error;
mod fuzzy;
mod highlight;
mod keys;
mod layer;
mod local;
mod look;
mod markdown;
mod mini;
mod mirror;
mod msg;
mod panel;
mod prompt;
mod review;
mod runner;
mod scroll;
mod state;
mod terminal;
#[cfg(test)]
mod tests;
mod theme;
mod transcript;
mod trust;
mod update;
mod view;
mod wrap;
mod zone;

pub use app::{Ended, run};
pub use clipboard::{Desk, Multiplexer};
pub use error::Error;
pub use state::{First, Options};
pub use theme::{Depth, Mode};
pub use zone::Zone;
