//! A terminal that does not show what is typed.

use std::process::{Command, Stdio};

/// Runs `read` while nothing typed is shown; the terminal is as before when this returns.
///
/// `stty` belongs to every system that has terminals; where it fails, what is typed is not asked for.
pub(super) fn hidden<T>(read: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let _shown = Shown::hide()?;
    read()
}

/// Shows what is typed again when it goes.
struct Shown;

impl Shown {
    fn hide() -> anyhow::Result<Self> {
        let is_done = stty("-echo");
        anyhow::ensure!(is_done, "the terminal cannot hide what is typed; pipe the key in instead");
        Ok(Self)
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        // A terminal that is gone needs no echo.
        stty("echo");
    }
}

fn stty(argument: &str) -> bool {
    let mut stty = Command::new("stty");
    stty.arg(argument).stdin(Stdio::inherit()).stdout(Stdio::null()).stderr(Stdio::null());
    stty.status().is_ok_and(|status| status.success())
}
