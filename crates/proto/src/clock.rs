//! Where time comes from.
//!
//! A clock is handed to whatever needs the time, so that tests and recordings
//! are stable. Only this file asks the operating system.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

/// A source of wall-clock time in milliseconds since 1970.
#[derive(Clone)]
pub struct Clock {
    read: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// The latest time of a steady clock, shared by its clones.
    floor: Option<Arc<AtomicU64>>,
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self { read: Arc::new(system_ms), floor: None }
    }

    /// A clock that starts at `start_ms` and advances by `step_ms` with every look.
    #[must_use]
    pub fn stepping(start_ms: u64, step_ms: u64) -> Self {
        let at = AtomicU64::new(start_ms);
        Self { read: Arc::new(move || at.fetch_add(step_ms, Ordering::Relaxed)), floor: None }
    }

    /// The same time, except that it never goes back: it stands still until a clock that was set back has caught up.
    #[must_use]
    pub fn steady(&self) -> Self {
        Self { read: Arc::clone(&self.read), floor: Some(Arc::default()) }
    }

    /// Makes a steady clock and its clones show at least this time; others do not heed it.
    pub fn raise(&self, ms: u64) {
        if let Some(floor) = &self.floor {
            floor.fetch_max(ms, Ordering::Relaxed);
        }
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        let now = (self.read)();
        match &self.floor {
            Some(floor) => floor.fetch_max(now, Ordering::Relaxed).max(now),
            None => now,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_clock_stands_where_another_goes_back() {
        let times = Arc::new(std::sync::Mutex::new(vec![30, 20, 10, 40]));
        let read = move || times.lock().unwrap().remove(0);
        let clock = Clock { read: Arc::new(read), floor: None }.steady();
        assert_eq!(clock.now_ms(), 30);
        clock.clone().raise(35);
        assert_eq!([clock.now_ms(), clock.now_ms(), clock.now_ms()], [35, 35, 40]);
    }
}
