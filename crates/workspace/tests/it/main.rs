//! The workspace on real directories and with real processes.

mod files;
mod processes;
mod searches;
