//! The parts that providers have refused.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// The number of remembered parts.
const REMEMBERED: usize = 512;

/// The refused parts, by model and content. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refusals(Arc<Mutex<VecDeque<String>>>);

impl Refusals {
    /// Returns the parts so far.
    pub(super) fn all(&self) -> VecDeque<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers parts. The oldest are forgotten.
    pub(super) fn add(&self, keys: Vec<String>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(keys);
        let excess = known.len().saturating_sub(REMEMBERED);
        known.drain(..excess);
    }
}
