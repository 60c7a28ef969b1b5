//! Waiting until no work has ended for a while, without waking up when no work ends.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The finished pieces of work, and the thread that waits for them.
#[derive(Debug, Default)]
pub(crate) struct Quiet {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The number of reports, modulo its size.
    ended: u64,
    /// The value of `ended` that the waiting thread has acted on.
    seen: u64,
}

impl Quiet {
    /// Counts a piece of work, and wakes the waiting thread if it sleeps without a deadline.
    pub(crate) fn work_ended(&self) {
        let mut state = self.lock();
        // The thread sleeps without a deadline only while there is nothing new.
        let is_first = state.ended == state.seen;
        state.ended = state.ended.wrapping_add(1);
        drop(state);
        if is_first {
            self.changed.notify_one();
        }
    }

    /// Waits for a piece of work, and then until none has ended for `pause`.
    pub(crate) fn wait(&self, pause: Duration) {
        let mut state = self.lock();
        while state.ended == state.seen {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        loop {
            let before = state.ended;
            drop(state);
            std::thread::sleep(pause);
            state = self.lock();
            if state.ended == before {
                state.seen = before;
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment, so a poisoned state is still consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const PAUSE: Duration = Duration::from_millis(200);
    /// Longer than any wait on a busy machine.
    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn a_wait_ends_after_the_last_work_and_the_next_one_needs_new_work() {
        let quiet = Quiet::default();
        let (ended, waits) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..2 {
                    quiet.wait(PAUSE);
                    ended.send(()).unwrap();
                }
            });
            assert!(waits.recv_timeout(2 * PAUSE).is_err(), "no work has ended");
            for _ in 0..20 {
                quiet.work_ended();
                assert!(waits.try_recv().is_err(), "work is still ending");
                std::thread::sleep(PAUSE / 20);
            }
            waits.recv_timeout(LONG).unwrap();
            assert!(waits.recv_timeout(2 * PAUSE).is_err(), "no further work has ended");
            quiet.work_ended();
            waits.recv_timeout(LONG).unwrap();
        });
    }
}
