//! Subagents: sessions that work for a call of another session.
//!
//! A subagent is an ordinary session with a parent, so it streams, is stored and can be displayed like any other. It
//! has the permission rules of its call and ends with that call. Aborting it does not abort its caller.

pub(crate) mod handover;
pub(crate) mod table;
