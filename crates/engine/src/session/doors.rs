//! Who may change a session's messages at this moment.
//!
//! Prompts are taken in side by side, whatever the session does. An operation that
//! rewrites what is there, such as taking a session back, wants it for itself and at
//! rest: it waits for prompts that are being taken in, and holds up those that come.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use codewright_proto::SessionId;
use codewright_store::{Claim, Lease};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};
use tokio::time::timeout;

use crate::Error;
use crate::engine::Inner;

/// How long a prompt waits for an operation, and an operation for prompts.
const PATIENCE: Duration = Duration::from_secs(60);
/// Doors that nobody uses are thrown out when there are more than this.
const MAX_IDLE: usize = 256;

/// One door a session, made when it is first used.
#[derive(Default)]
pub(crate) struct Doors(Mutex<HashMap<SessionId, Weak<RwLock<()>>>>);

/// While this is held no operation rewrites the session.
pub(crate) struct Entered(#[expect(dead_code, reason = "held, not read")] OwnedRwLockReadGuard<()>);

/// While this is held the session is at rest, here and in other processes, and no prompt is taken in.
pub(crate) struct Alone {
    // Let go before the door is opened, so that a run that waits there finds the session free.
    _lease: Lease,
    _door: OwnedRwLockWriteGuard<()>,
}

impl Doors {
    /// Goes in to add to a session.
    pub(crate) async fn enter(&self, id: &SessionId) -> Result<Entered, Error> {
        let door = self.door(id);
        let guard = timeout(PATIENCE, door.read_owned()).await.map_err(|_| Error::busy(id))?;
        Ok(Entered(guard))
    }

    /// Goes in alone to rewrite a session; an error if it is at work.
    pub(crate) async fn alone(&self, inner: &Inner, id: &SessionId) -> Result<Alone, Error> {
        if inner.runs.is_running(id) {
            return Err(Error::busy(id));
        }
        let door = self.door(id);
        let guard = timeout(PATIENCE, door.write_owned()).await.map_err(|_| Error::busy(id))?;
        // A prompt that was being taken in has woken a run before it let go of the door.
        if inner.runs.is_running(id) {
            return Err(Error::busy(id));
        }
        match inner.store.lease(id).await? {
            Claim::Held(lease) => Ok(Alone { _lease: lease, _door: guard }),
            Claim::HeldBy(_) => Err(Error::busy(id)),
        }
    }

    fn door(&self, id: &SessionId) -> Arc<RwLock<()>> {
        // Every change under the lock is one insertion or removal: a poisoned map is whole.
        let mut doors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(door) = doors.get(id).and_then(Weak::upgrade) {
            return door;
        }
        if doors.len() >= MAX_IDLE {
            doors.retain(|_, door| door.strong_count() > 0);
        }
        let door = Arc::new(RwLock::new(()));
        doors.insert(id.clone(), Arc::downgrade(&door));
        door
    }
}
