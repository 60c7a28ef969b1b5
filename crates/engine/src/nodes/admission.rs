//! Reserves a session for the run that answers a prompt, before the prompt is stored.
//!
//! The lease is taken first. So a prompt that is stored always has an owner, and if the server dies before it answers, the
//! owner's row shows the others that the session has work.

use codewright_proto::{Session, SessionId};
use codewright_store::Claim;

use crate::Error;
use crate::inner::Inner;

/// The reservation of a session. Dropping it releases the session, unless a run has begun.
pub(crate) struct Reserved<'a> {
    inner: &'a Inner,
    session: &'a Session,
    is_kept: bool,
}

impl Reserved<'_> {
    pub(crate) fn session(&self) -> &SessionId {
        &self.session.id
    }

    /// Leaves the lease to the run that begins.
    pub(crate) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            drop(self.inner.nodes.take_ready(&self.session.id));
        }
    }
}

/// Reserves a session that no run owns. Does nothing in a process that has no other servers.
///
/// A run that is about to end may have released its lease already. A prompt that arrives then needs an owner too; the run
/// continues with the reservation.
///
/// # Errors
///
/// Fails if this server drains, or if too many sessions wait already.
pub(crate) async fn reserve<'a>(
    inner: &'a Inner,
    session: &'a Session,
) -> Result<Option<Reserved<'a>>, Error> {
    let Some(cluster) = inner.nodes.get() else { return Ok(None) };
    // The sessions of subagents belong to a run that has begun.
    if session.parent_id.is_none() && !inner.runs.is_running(&session.id) {
        if cluster.is_draining() {
            return Err(Error::Unavailable { message: draining(&cluster.settings.name) });
        }
        let limit = cluster.settings.sessions + cluster.settings.waiting;
        if inner.runs.count() >= limit {
            let message = format!("{limit} sessions run or wait on `{}` already", cluster.settings.name);
            return Err(Error::Overloaded { message });
        }
    }
    let Claim::Held(lease) = inner.store.lease(&session.id).await? else { return Ok(None) };
    cluster.keep_ready(&session.id, lease);
    Ok(Some(Reserved { inner, session, is_kept: false }))
}

/// Gives a session with a new prompt an owner if it has none, before the prompt is acknowledged.
///
/// The owner of a session that was not reserved may have released it just before the prompt was stored, and a reservation
/// may have been lost while the database could not be reached. An owner that releases the session afterwards sees the
/// prompt and continues.
///
/// # Errors
///
/// Fails if the database cannot be reached. The prompt may then wait without an owner until another prompt arrives.
pub(crate) async fn secure(inner: &Inner, id: &SessionId) -> Result<(), Error> {
    let Some(cluster) = inner.nodes.get() else { return Ok(()) };
    if inner.store.ownership(id).await?.owner.is_some() {
        return Ok(());
    }
    if let Claim::Held(lease) = inner.store.lease(id).await? {
        cluster.keep_ready(id, lease);
    }
    Ok(())
}

/// The message of a server that drains.
fn draining(name: &str) -> String {
    format!("the server `{name}` drains and begins no more turns")
}
