//! A lock for each session: shared to add messages, exclusive to rewrite them.
//!
//! Prompts are admitted concurrently, also while the session is running. An operation that rewrites messages, such as a
//! revert, needs an idle session: it waits for prompts that are being admitted, and new prompts wait for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use codewright_proto::SessionId;
use codewright_store::{Claim, Lease, Store};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};
use tokio::time::timeout;

use crate::Error;
use crate::run::table::Runs;

/// How long a prompt waits for an operation, and an operation for prompts.
const PATIENCE: Duration = Duration::from_secs(60);
/// Unused locks are removed when there are more than this.
const MAX_IDLE: usize = 256;

/// One lock a session, made when it is first used.
#[derive(Default)]
pub(crate) struct SessionLocks(Mutex<HashMap<SessionId, Weak<RwLock<()>>>>);

/// While this is held no operation rewrites the session.
pub(crate) struct Shared(#[expect(dead_code, reason = "held, not read")] OwnedRwLockReadGuard<()>);

/// While this is held the session is idle in every process, and no prompt is admitted.
pub(crate) struct Exclusive {
    // Released before the lock, so that a run that waits for the lock finds the session free.
    _lease: Lease,
    _lock: OwnedRwLockWriteGuard<()>,
}

impl SessionLocks {
    /// Waits for the shared lock.
    pub(crate) async fn shared(&self, id: &SessionId) -> Result<Shared, Error> {
        let lock = self.lock(id);
        let guard = timeout(PATIENCE, lock.read_owned()).await.map_err(|_| Error::busy(id))?;
        Ok(Shared(guard))
    }

    /// Waits for the exclusive lock and takes the lease. Fails if the session is running.
    pub(crate) async fn exclusive(
        &self,
        runs: &Runs,
        store: &Store,
        id: &SessionId,
    ) -> Result<Exclusive, Error> {
        if runs.is_running(id) {
            return Err(Error::busy(id));
        }
        let lock = self.lock(id);
        let guard = timeout(PATIENCE, lock.write_owned()).await.map_err(|_| Error::busy(id))?;
        // A prompt that was being admitted has woken a run before it released the lock.
        if runs.is_running(id) {
            return Err(Error::busy(id));
        }
        match store.lease(id).await? {
            Claim::Held(lease) => Ok(Exclusive { _lease: lease, _lock: guard }),
            Claim::HeldBy(_) => Err(Error::busy(id)),
        }
    }

    fn lock(&self, id: &SessionId) -> Arc<RwLock<()>> {
        // Each change under the lock is one insertion or removal, so a poisoned map is consistent.
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(id).and_then(Weak::upgrade) {
            return lock;
        }
        if locks.len() >= MAX_IDLE {
            locks.retain(|_, lock| lock.strong_count() > 0);
        }
        let lock = Arc::new(RwLock::new(()));
        locks.insert(id.clone(), Arc::downgrade(&lock));
        lock
    }
}
