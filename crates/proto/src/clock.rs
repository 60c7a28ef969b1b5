//! The source of the current time.
//!
//! Code that needs the time receives a [`Clock`], so that tests and recordings are reproducible.
//! Only this file reads the clock of the operating system.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Instant, UNIX_EPOCH};

/// A source of wall-clock time in milliseconds since 1970.
#[derive(Clone)]
pub struct Clock {
    read: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// The latest time that a steady clock returned, shared by its clones.
    floor: Option<Arc<AtomicU64>>,
    /// The clock that it follows.
    followed: Option<Arc<Followed>>,
}

/// The last known time of another clock.
struct Followed {
    since: Instant,
    /// Its time when `since` was the present.
    at_ms: AtomicU64,
    is_known: AtomicBool,
}

/// The largest difference from the followed clock that is not corrected. A time that arrives over a network is late by
/// about this much.
const TOLERANCE_MS: u64 = 20;

impl Clock {
    /// The clock of the operating system.
    #[must_use]
    pub fn system() -> Self {
        Self { read: Arc::new(system_ms), floor: None, followed: None }
    }

    /// A clock that starts at `start_ms` and advances by `step_ms` with every reading.
    #[must_use]
    pub fn stepping(start_ms: u64, step_ms: u64) -> Self {
        let at = AtomicU64::new(start_ms);
        let read = Arc::new(move || at.fetch_add(step_ms, Ordering::Relaxed));
        Self { read, floor: None, followed: None }
    }

    /// Returns a clock with the same time that never runs backwards. If the underlying clock is set back, the time
    /// stands still until it has caught up.
    #[must_use]
    pub fn steady(&self) -> Self {
        Self { read: Arc::clone(&self.read), floor: Some(Arc::default()), followed: self.followed.clone() }
    }

    /// Returns a clock that starts with the present time, and then advances evenly, whatever happens to this clock. It is
    /// corrected by [`Clock::follow`].
    #[must_use]
    pub fn following(&self) -> Self {
        let (since, at_ms) = (Instant::now(), AtomicU64::new(self.now_ms()));
        let followed = Arc::new(Followed { since, at_ms, is_known: AtomicBool::new(false) });
        let read = Arc::clone(&followed);
        Self { read: Arc::new(move || read.now_ms()), floor: None, followed: Some(followed) }
    }

    /// Sets a clock made by [`Clock::following`] to `ms`, the present time of the followed clock. Its clones and the
    /// steady clocks made from it change too. Differences of at most 20 ms are ignored. Other clocks do not change.
    ///
    /// The first call may set the clock back. After it, a steady clock never runs backwards.
    pub fn follow(&self, ms: u64) {
        let Some(followed) = &self.followed else { return };
        let is_first = !followed.is_known.swap(true, Ordering::Relaxed);
        if is_first || followed.now_ms().abs_diff(ms) > TOLERANCE_MS {
            followed.at_ms.store(ms.saturating_sub(followed.elapsed_ms()), Ordering::Relaxed);
        }
        if let (true, Some(floor)) = (is_first, &self.floor) {
            floor.store(0, Ordering::Relaxed);
        }
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

impl Followed {
    fn elapsed_ms(&self) -> u64 {
        self.since.elapsed().as_millis() as u64
    }

    fn now_ms(&self) -> u64 {
        self.at_ms.load(Ordering::Relaxed).saturating_add(self.elapsed_ms())
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
        let clock = Clock { read: Arc::new(read), floor: None, followed: None }.steady();
        assert_eq!(clock.now_ms(), 30);
        clock.clone().raise(35);
        assert_eq!([clock.now_ms(), clock.now_ms(), clock.now_ms()], [35, 35, 40]);
    }

    #[test]
    fn a_clock_that_follows_another_one_ignores_its_own() {
        // A day ahead, and jumping by a day with every reading.
        let (day, hour) = (86_400_000, 3_600_000);
        let clock = Clock::stepping(10 * day, day).following().steady();
        let copy = clock.clone();
        assert!(clock.now_ms() >= 10 * day);
        clock.follow(9 * day);
        let now = copy.now_ms();
        assert!((9 * day..9 * day + hour).contains(&now), "{now}");
        // Later the followed clock goes ahead, and then back.
        clock.follow(9 * day + 2 * hour);
        let ahead = copy.now_ms();
        assert!((9 * day + 2 * hour..9 * day + 3 * hour).contains(&ahead), "{ahead}");
        clock.follow(9 * day);
        assert!((ahead..ahead + hour).contains(&copy.now_ms()), "it does not run backwards");
    }
}
