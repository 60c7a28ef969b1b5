//! Where time comes from.
//!
//! A clock is handed to whatever needs the time, so that tests and recordings
//! are stable. Only this file asks the operating system.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

/// A source of wall-clock time in milliseconds since 1970.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self(Arc::new(system_ms))
    }

    /// A clock that starts at `start_ms` and advances by `step_ms` with every look.
    #[must_use]
    pub fn stepping(start_ms: u64, step_ms: u64) -> Self {
        let at = AtomicU64::new(start_ms);
        Self(Arc::new(move || at.fetch_add(step_ms, Ordering::Relaxed)))
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        (self.0)()
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
fn system_ms() -> u64 {
    // A clock before 1970 is read as 1970: ids stay ordered by their counter.
    std::time::SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64)
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}
