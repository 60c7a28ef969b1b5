//! Leases: the right to run a session, for one owner at a time across processes.

use std::sync::Arc;

use codewright_proto::{Envelope, Event, MessageWithParts, Part, PermissionRequest, SessionId};
use tokio::sync::watch;

use crate::backend::Backend;
use crate::feed::KeepAwake;
use crate::{Condition, Error};

/// The result of leasing a session.
#[derive(Debug)]
pub enum Claim {
    /// The caller has the lease.
    Held(Lease),
    /// Another living owner has it.
    HeldBy(Holder),
}

/// The result of leasing a session, from a backend.
pub(crate) enum LeaseResult {
    /// Leased with this fence. The receiver gets stop requests.
    Ours(u64, watch::Receiver<bool>),
    /// A living owner has the session.
    Held(Holder),
}

/// The state of a session that its new owner needs.
#[derive(Debug, Clone)]
pub struct OpenWork {
    /// The last `seq`.
    pub seq: u64,
    /// The transcript, with the drafts.
    pub transcript: Vec<MessageWithParts>,
    /// The drafts of the former owner, each with the time it was written.
    pub drafts: Vec<(Part, u64)>,
    /// The permission requests of the session without a reply.
    pub requests: Vec<PermissionRequest>,
}

/// The owner of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The process id.
    pub pid: u32,
    /// Whether the lease belongs to this store instance.
    pub is_ours: bool,
}

/// The right to run one session. It is exclusive until it is released or dropped, or its process ends.
///
/// Dropping it releases the session soon and unconditionally. [`Lease::release`] makes sure that no new prompt is
/// missed.
pub struct Lease {
    log: Arc<dyn Backend>,
    session: SessionId,
    fence: u64,
    stop: StopSignal,
    _holding: KeepAwake,
    is_over: bool,
}

/// Notifies the owner of a session of stop requests from other processes.
#[derive(Debug, Clone)]
pub struct StopSignal(watch::Receiver<bool>);

impl StopSignal {
    pub(crate) fn new(is_requested: watch::Receiver<bool>) -> Self {
        Self(is_requested)
    }

    /// Waits until another process requests a stop, possibly forever.
    pub async fn wait(mut self) {
        if self.0.wait_for(|is_requested| *is_requested).await.is_err() {
            // The session was released, so no request can follow.
            std::future::pending::<()>().await;
        }
    }
}

impl Lease {
    pub(crate) fn new(
        log: Arc<dyn Backend>,
        session: SessionId,
        fence: u64,
        stop: StopSignal,
        holding: KeepAwake,
    ) -> Self {
        Self { log, session, fence, stop, _holding: holding, is_over: false }
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The number of owners that the session has had, including this one. Later owners have greater fences.
    #[must_use]
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// The signal of stop requests from other processes.
    #[must_use]
    pub fn stop_signal(&self) -> StopSignal {
        self.stop.clone()
    }

    /// Like [`Store::append`](crate::Store::append), but fails with [`Error::Fenced`] if the session has another owner.
    pub async fn append(&self, events: Vec<Event>) -> Result<Vec<Arc<Envelope>>, Error> {
        self.log.append(self.condition(), events).await
    }

    /// Like [`Store::draft`](crate::Store::draft), but fails with [`Error::Fenced`] if the session has another owner.
    pub async fn draft(&self, part: Part) -> Result<(), Error> {
        self.log.draft(self.condition(), part).await
    }

    /// Converts the drafts of a former owner to events.
    pub async fn settle(&self, drafts: Vec<(Part, u64)>) -> Result<(), Error> {
        let event = |(part, time)| Event::PartUpdated { session_id: self.session.clone(), part, time };
        self.append(drafts.into_iter().map(event).collect()).await?;
        Ok(())
    }

    /// Releases the session if no event of it was stored after `seen`. Returns whether it is released.
    ///
    /// `seen` is the `seq` of the last read. `false` means that there is something new to read, such as a prompt that was
    /// just admitted. Prompts that are admitted after `true` find the session free. A lease that was lost to another owner
    /// counts as released.
    pub async fn release(&mut self, seen: u64) -> Result<bool, Error> {
        if !self.is_over {
            self.is_over = self.log.release(&self.session, self.fence, seen).await?;
        }
        Ok(self.is_over)
    }

    fn condition(&self) -> Condition {
        Condition::Leased { session: self.session.clone(), fence: self.fence }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.is_over {
            self.log.abandon(&self.session, self.fence);
        }
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease").field("session", &self.session).field("fence", &self.fence).finish()
    }
}
