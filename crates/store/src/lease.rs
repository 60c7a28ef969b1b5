//! The right to run a session, which one owner has at a time, across processes.

use std::sync::Arc;

use codewright_proto::{Envelope, Event, Part, SessionId};
use tokio::sync::watch;

use crate::backend::Backend;
use crate::feed::Holding;
use crate::{Condition, Error};

/// What came of asking for a session.
#[derive(Debug)]
pub enum Claim {
    /// It is the caller's until it is let go.
    Held(Lease),
    /// Somebody who is alive has it.
    HeldBy(Holder),
}

/// Who has a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// Whether the lease was taken through this very store.
    pub is_ours: bool,
}

/// The right to run one session. Nobody else has it until it is released, dropped,
/// or its process has ended.
///
/// Dropping lets go without a condition, soon; [`Lease::release`] is the way that
/// strands no prompt.
pub struct Lease {
    log: Arc<dyn Backend>,
    session: SessionId,
    fence: u64,
    stop: StopSignal,
    _holding: Holding,
    is_over: bool,
}

/// Hears of other processes that want a session's work stopped.
#[derive(Debug, Clone)]
pub struct StopSignal(watch::Receiver<bool>);

impl StopSignal {
    pub(crate) fn new(asked: watch::Receiver<bool>) -> Self {
        Self(asked)
    }

    /// Waits until another process wants the session stopped; for ever if none does.
    pub async fn asked(mut self) {
        if self.0.wait_for(|asked| *asked).await.is_err() {
            // The session was let go, so nobody can ask any more.
            std::future::pending::<()>().await;
        }
    }
}

impl Lease {
    pub(crate) fn new(
        log: Arc<dyn Backend>,
        (session, fence): (SessionId, u64),
        stop: StopSignal,
        holding: Holding,
    ) -> Self {
        Self { log, session, fence, stop, _holding: holding, is_over: false }
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// How many owners the session has had, this one included; later owners have greater ones.
    #[must_use]
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// What tells that another process wants the session stopped.
    #[must_use]
    pub fn stop_signal(&self) -> StopSignal {
        self.stop.clone()
    }

    /// Like [`Store::append`](crate::Store::append), but refused with [`Error::Fenced`] once the session is another's.
    pub async fn append(&self, events: Vec<Event>) -> Result<Vec<Arc<Envelope>>, Error> {
        self.log.append(self.condition(), events).await
    }

    /// Like [`Store::draft`](crate::Store::draft), but refused with [`Error::Fenced`] once the session is another's.
    pub async fn draft(&self, part: Part) -> Result<(), Error> {
        self.log.draft(self.condition(), part).await
    }

    /// Turns the drafts that a former owner left into events; returns how many there were.
    pub async fn settle_drafts(&self) -> Result<usize, Error> {
        let drafts = self.log.drafts(&self.session).await?;
        let count = drafts.len();
        let event = |(part, time)| Event::PartUpdated { session_id: self.session.clone(), part, time };
        self.append(drafts.into_iter().map(event).collect()).await?;
        Ok(count)
    }

    /// Lets the session go unless anything was stored of it behind `seen`; whether it is let go.
    ///
    /// `seen` is the `seq` that came with what was last read. On `false` there is
    /// something new to look at, such as a prompt that was admitted in this moment;
    /// whoever admits after `true` finds the session free. A lease that was lost to
    /// another owner counts as let go.
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
