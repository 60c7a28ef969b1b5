//! This crate with real directories and real processes.

mod files;
mod processes;
mod searches;
