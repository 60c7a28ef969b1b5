//! Tests of the engine with a scripted model, a real socket and a real store.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cache;
mod catalog;
mod compaction;
mod desk;
mod files;
mod formatter;
mod gemini;
mod history;
mod permission;
mod plan;
mod projects;
mod prompts;
mod question;
mod responses;
mod sessions;
mod structured;
mod subagent;
mod turn;
mod undo;
