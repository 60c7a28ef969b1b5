//! Work that one session hands to another.
//!
//! A subagent is an ordinary session with a parent, so it streams, is stored and can be looked at
//! like any other. It works under the permission rules of its call, ends with that call,
//! and never stops whoever waits for it: stopping goes downwards only.

pub(crate) mod handover;
pub(crate) mod table;
