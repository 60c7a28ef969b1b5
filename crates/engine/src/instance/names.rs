//! The cached names under a directory.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the list of names is cached, so that each key of a search does not walk the tree.
const NAMES_LIFE: Duration = Duration::from_secs(2);

/// The names under a directory, with the time at which they were read.
#[derive(Default)]
pub(super) struct Names(Mutex<Option<(Instant, Arc<Vec<String>>)>>);

impl Names {
    /// Returns the names, unless they are missing or too old.
    pub(super) fn current(&self) -> Option<Arc<Vec<String>>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let current = known.as_ref().filter(|(when, _)| when.elapsed() < NAMES_LIFE);
        current.map(|(_, names)| Arc::clone(names))
    }

    /// Replaces the names.
    pub(super) fn replace(&self, names: &Arc<Vec<String>>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some((Instant::now(), Arc::clone(names)));
    }
}
