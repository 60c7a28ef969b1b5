//! Messages and events as the newer routes show them: a pure projection of the one vocabulary.
//!
//! Nothing is stored in these shapes. A message is made of its parts, an event of what the log says
//! at its place, so both views of a session always tell the same.

pub(crate) mod event;
pub(crate) mod feed;
pub(crate) mod message;
mod patch;
pub(crate) mod prompt;
pub(crate) mod waiting;

/// How far before a place the log of a session is read, to know what was so there.
pub(crate) const LOOK_BACK: u64 = 8192;
/// How many events of the log are read at a time.
pub(crate) const PAGE_EVENTS: usize = 256;
