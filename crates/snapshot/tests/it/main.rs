//! Snapshots at their face: real directories, the real `git`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod hostile;
mod keeping;
mod scene;
mod tracking;
mod undoing;
