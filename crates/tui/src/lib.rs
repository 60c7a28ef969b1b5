//! The terminal client: draws the sessions of a server and turns keys into requests.

mod channel;
pub mod clean;

mod app;
mod ascii;
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
mod link;
mod local;
mod look;
mod markdown;
mod mini;
mod mirror;
mod msg;
mod notification;
mod opener;
mod panel;
mod permission_mode;
mod progress;
mod prompt;
mod request;
mod resource;
mod review;
mod runner;
mod scroll;
mod search;
mod selection;
mod state;
mod symbol;
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
pub use channel::Channel;
pub use clipboard::{Desktop, Multiplexer};
pub use error::Error;
pub use notification::Sequence;
pub use opener::{Ide, Signs};
pub use state::{First, Links, Options};
pub use theme::{Depth, Mode};
pub use zone::Zone;
