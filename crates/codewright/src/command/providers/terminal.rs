//! Reads secrets from a terminal without echo.

use std::process::{Command, Stdio};

/// Runs `read` while the terminal's echo is off, and restores the echo.
///
/// Uses `stty`, which every supported system has. If it fails, `read` is not run.
pub(super) fn without_echo<T>(read: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let _echo_off = EchoOff::new()?;
    read()
}

/// Turns the echo on again when dropped.
struct EchoOff;

impl EchoOff {
    fn new() -> anyhow::Result<Self> {
        let is_done = stty("-echo");
        anyhow::ensure!(is_done, "the terminal cannot turn off its echo; pipe the key in instead");
        Ok(Self)
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        // If the terminal is closed, there is nothing to restore.
        stty("echo");
    }
}

fn stty(argument: &str) -> bool {
    let mut stty = Command::new("stty");
    stty.arg(argument).stdin(Stdio::inherit()).stdout(Stdio::null()).stderr(Stdio::null());
    stty.status().is_ok_and(|status| status.success())
}
