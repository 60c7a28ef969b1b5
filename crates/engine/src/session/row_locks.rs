//! Locks for changes of session rows in this process.
//!
//! A row is read, changed and written on the condition that it is unchanged, which protects it from every process. The
//! locks only keep the changes of one process from overtaking each other again and again.

use std::hash::{BuildHasher as _, RandomState};

use codewright_proto::SessionId;
use tokio::sync::{Mutex, MutexGuard};

/// The number of locks. Changes of different sessions rarely share one.
const LOCKS: usize = 64;

/// A fixed number of locks, shared by all sessions.
pub(crate) struct RowLocks {
    locks: [Mutex<()>; LOCKS],
    /// Randomly seeded, so that a client cannot choose ids that share a lock.
    hasher: RandomState,
}

impl Default for RowLocks {
    fn default() -> Self {
        Self { locks: std::array::from_fn(|_| Mutex::default()), hasher: RandomState::new() }
    }
}

impl RowLocks {
    /// Waits until no other task of this process changes the session.
    pub(crate) async fn lock(&self, id: &SessionId) -> MutexGuard<'_, ()> {
        let at = self.hasher.hash_one(id.as_str()) % LOCKS as u64;
        let lock = usize::try_from(at).ok().and_then(|at| self.locks.get(at)).unwrap_or(&self.locks[0]);
        lock.lock().await
    }
}
