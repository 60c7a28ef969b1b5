//! The source of the current time.
//!
//! Code that needs the time receives a [`Clock`], so that tests and recordings are reproducible.
//! Only this file reads the clock of the operating system.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

/// A source of wall-clock time in milliseconds since 1970.
#[derive(Clone)]
pub struct Clock {
    read: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// The latest time that a steady clock returned, shared by its clones.
    floor: Option<Arc<AtomicU64>>,
}

impl Clock {
    /// The clock of the operating system.
    #[must_use]
    pub fn system() -> Self {
        Self { read: Arc::new(system_ms), floor: None }
    }

    /// A clock that starts at `start_ms` and advances by `step_ms` with every reading.
    #[must_use]
    pub fn stepping(start_ms: u64, step_ms: u64) -> Self {
        let at = AtomicU64::new(start_ms);
        Self { read: Arc::new(move || at.fetch_add(step_ms, Ordering::Relaxed)), floor: None }
    }

    /// Returns a clock with the same time that never runs backwards. If the underlying clock is set back, the time
    /// stands still until it has caught up.
    #[must_use]
    pub fn steady(&self) -> Self {
        Self { read: Arc::clone(&self.read), floor: Some(Arc::default()) }
    }

    /// Moves a steady clock and its clones forward to at least `ms`. Has no effect on other clocks.
    pub fn raise(&self, ms: u64) {
        if let Some(floor) = &self.floor {
            floor.fetch_max(ms, Ordering::Relaxed);
        }
    }

    /// Returns the time in milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        let now = (self.read)();
        match &self.floor {
            Some(floor) => floor.fetch_max(now, Ordering::Relaxed).max(now),
            None => now,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the only place that reads the system clock")]
fn system_ms() -> u64 {
    // A time before 1970 counts as 1970: the counter of the ids keeps them in order.
    std::time::SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64)
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_clock_stands_still_when_the_system_clock_is_set_back() {
        let times = Arc::new(std::sync::Mutex::new(vec![30, 20, 10, 40]));
        let read = move || times.lock().unwrap().remove(0);
        let clock = Clock { read: Arc::new(read), floor: None }.steady();
        assert_eq!(clock.now_ms(), 30);
        clock.clone().raise(35);
        assert_eq!([clock.now_ms(), clock.now_ms(), clock.now_ms()], [35, 35, 40]);
    }
}
