//! The thread that returns memory after work.

use std::sync::OnceLock;
use std::time::Duration;

use crate::code;
use crate::quiet::Quiet;

/// How long no work may end before memory is returned.
const PAUSE: Duration = Duration::from_secs(3);
/// The stack of the thread, which calls no deep functions.
const STACK_BYTES: usize = 64 * 1024;

/// The state of the thread, once it has been started.
static QUIET: OnceLock<Quiet> = OnceLock::new();

/// Starts the thread, once. It ends with the process.
pub(crate) fn start() {
    if QUIET.set(Quiet::default()).is_err() {
        return;
    }
    let watch = || {
        while let Some(quiet) = QUIET.get() {
            quiet.wait(PAUSE);
            #[cfg(target_env = "gnu")]
            crate::glibc::trim();
            code::release();
        }
    };
    let thread = std::thread::Builder::new().name("memory".to_owned()).stack_size(STACK_BYTES);
    // Without the thread the program works as well, with more memory.
    drop(thread.spawn(watch));
    // The start is work as well.
    work_ended();
}

/// Wakes the thread if it sleeps.
pub(crate) fn work_ended() {
    if let Some(quiet) = QUIET.get() {
        quiet.work_ended();
    }
}
