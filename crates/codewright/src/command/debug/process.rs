//! `debug info` and `debug wait`: the process and its system.

use std::process::ExitCode;

use codewright_config::{Env, env};
use tokio::signal::unix::{SignalKind, signal};

use crate::clean::clean_line;
use crate::connection::{VERSION, interrupted};
use crate::style;

/// The numbers of the signals that end `debug wait`.
const INTERRUPT: u8 = 2;
const TERMINATE: u8 = 15;

/// The version, the system, the terminal and the plugins as lines.
pub(super) fn info(env: &Env) -> String {
    let system = match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "Darwin",
        other => other,
    };
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    // Other systems have no such file; their release is left out.
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let system: Vec<_> =
        [system, release.trim(), architecture].into_iter().filter(|word| !word.is_empty()).collect();
    let terminal = clean_line(env.filled(env::TERM).unwrap_or("unknown"));
    format!(
        "codewright version: {VERSION}\nos: {}\nterminal: {terminal}\nplugins:\nnone\n",
        clean_line(&system.join(" "))
    )
}

/// Waits for a signal. The user starts this to examine the open process, so there is no deadline.
pub(super) async fn wait() -> anyhow::Result<ExitCode> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    style::note("Waiting for a signal");
    let number = tokio::select! {
        _ = interrupt.recv() => INTERRUPT,
        _ = terminate.recv() => TERMINATE,
    };
    Ok(interrupted(number))
}
