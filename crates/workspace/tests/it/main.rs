//! This crate with real directories and real processes.

#[cfg(target_os = "linux")]
mod breakout;
mod files;
mod held;
#[cfg(target_os = "linux")]
mod names;
mod processes;
#[cfg(target_os = "linux")]
mod sandboxed;
mod searches;
#[cfg(target_os = "linux")]
mod servers;
