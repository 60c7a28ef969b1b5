//! The public interface of snapshots, with real directories and the real `git`.

#![expect(clippy::unwrap_used, reason = "a failure is a failed test")]

mod hostile;
mod keeping;
mod scene;
mod tracking;
mod unchanged;
mod undoing;
