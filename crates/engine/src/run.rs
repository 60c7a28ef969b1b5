//! The loop of one session: read the transcript, decide, act, until nothing is left to do.
//!
//! At most one run works on a session, across all processes: it holds the session's lease. A prompt that arrives during
//! a run is another message, because the loop reads the transcript again before every step. A run ends only if nothing
//! has arrived since, so every prompt is answered.
//!
//! If another process runs the session, the run waits and then takes the lease. Usually the prompt has been answered by
//! then; if the other process died, this run continues.

pub(crate) mod after;
pub(crate) mod agent;
pub(crate) mod compact;
pub(crate) mod context;
pub(crate) mod files;
pub(crate) mod message;
pub(crate) mod next;
pub(crate) mod prompt;
pub(crate) mod recorder;
pub(crate) mod recover;
pub(crate) mod refusal;
pub(crate) mod repetition;
pub(crate) mod retry;
pub(crate) mod status;
pub(crate) mod step;
pub(crate) mod stop;
pub(crate) mod structured;
pub(crate) mod subtask;
pub(crate) mod summary;
pub(crate) mod table;
pub(crate) mod title;
pub(crate) mod wake;

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use codewright_proto::{Message, MessageError, MessageWithParts, SessionId, SessionStatus, Signal};
use codewright_store::{Claim, Lease};
use codewright_telemetry::{Kind, within};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::error::{describe, is_fenced};
use crate::inner::Inner;
use crate::trust;
use crate::users::quota;
use after::Stops;
use context::Context;
use next::{Next, WhenRefused, next};
use recover::Aftermath;
use refusal::was_refused;
use status::{set_status, signal_idle};
use stop::cancel_subagents;
use table::{Entry, Release};
use wake::wake;

/// How long a turn of one of several servers tries again while the database cannot be reached.
const STORE_PATIENCE: Duration = Duration::from_secs(10 * 60);
/// How often a run that waits for a lease checks whether it was reserved for it.
const READY_PAUSE: Duration = Duration::from_millis(500);
/// The pause before another attempt.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// Starts the task of a registered run.
pub(crate) fn start(inner: &Arc<Inner>, entry: Entry) {
    let mut span = inner.tracer.span("turn", Kind::Internal);
    span.set("session.id", entry.id.as_str());
    let run = Run { inner: inner.clone(), entry };
    inner.tasks.spawn(async move {
        within(span.context(), run.to_the_end()).await;
        drop(span);
        run.entry.end();
    });
}

/// Runs other work in a session like a turn. Returns whether the session was idle.
///
/// A prompt that arrives in the meantime is answered afterwards.
pub(crate) fn occupy<W: Future<Output = ()> + Send + 'static>(
    inner: &Arc<Inner>,
    id: &SessionId,
    work: impl FnOnce(CancellationToken) -> W,
) -> bool {
    let Some(entry) = inner.runs.occupy(id, &inner.cancel) else { return false };
    set_status(inner, id, SessionStatus::Busy);
    let work = work(entry.cancel.clone());
    let run = Run { inner: inner.clone(), entry };
    inner.tasks.spawn(async move {
        work.await;
        if !run.release(0) {
            run.to_the_end().await;
        }
        run.entry.end();
    });
    true
}

/// How a run got its lease.
#[derive(Clone, Copy)]
struct Beginning {
    /// It waited for another owner.
    is_late: bool,
    /// It lost its lease to another server before.
    was_fenced: bool,
}

/// A run of one session.
struct Run {
    inner: Arc<Inner>,
    entry: Entry,
}

impl Run {
    async fn to_the_end(&self) {
        let mut first_failure = None;
        let mut was_fenced = false;
        loop {
            let mut seen = self.inner.runs.admitted(&self.entry.id);
            let worked = match self.own().await {
                Ok(Some((lease, is_late))) => {
                    let _slot = self.slot().await;
                    self.work(lease, Beginning { is_late, was_fenced }, &mut seen).await
                }
                // Aborted while another process runs the turn, which is not affected.
                Ok(None) => Ok(()),
                Err(error) => Err((None, error)),
            };
            match worked {
                Ok(()) => first_failure = None,
                Err((lease, error)) => {
                    let since = *first_failure.get_or_insert_with(Instant::now);
                    if self.is_repeated(&error, since) {
                        was_fenced = is_fenced(&error);
                        // The next attempt continues with the same lease, unless another server has taken the session.
                        if let (Some(cluster), Some(lease), false) =
                            (self.inner.nodes.get(), lease, was_fenced)
                        {
                            cluster.keep_ready(&self.entry.id, lease);
                        }
                        let _: Option<()> = self.entry.cancel.run_until_cancelled(sleep(STORE_PAUSE)).await;
                        continue;
                    }
                    drop(lease);
                    self.report(&error);
                }
            }
            if self.release(seen) {
                return;
            }
        }
    }

    /// Whether a turn of one of several servers continues after a failure: its database could not be reached, or another
    /// server took the session meanwhile. That server may have released it before this one stored its prompt.
    fn is_repeated(&self, error: &Error, since: Instant) -> bool {
        self.inner.nodes.get().is_some()
            && !self.entry.cancel.is_cancelled()
            && since.elapsed() < STORE_PATIENCE
            && (is_fenced(error) || matches!(error, Error::Store(error) if error.is_passing()))
    }

    /// Waits until this server may run one more session. The sessions of subagents need no room of their own, because
    /// their callers wait for them.
    async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        let cluster = self.inner.nodes.get()?;
        let session = self.inner.session(&self.entry.id).await.ok()?;
        if session.parent_id.is_some() {
            return None;
        }
        self.entry.cancel.run_until_cancelled(cluster.slot()).await?
    }

    /// Takes the lease, waiting while another process holds it. Also returns whether it had to wait.
    async fn own(&self) -> Result<Option<(Lease, bool)>, Error> {
        let mut is_late = false;
        loop {
            // A prompt or a takeover may have reserved the session while this run waited.
            if let Some(lease) = self.inner.nodes.take_ready(&self.entry.id) {
                return Ok(Some((lease, is_late)));
            }
            if let Claim::Held(lease) = self.inner.store.lease(&self.entry.id).await? {
                return Ok(Some((lease, is_late)));
            }
            if !is_late {
                set_status(&self.inner, &self.entry.id, SessionStatus::Busy);
                is_late = true;
            }
            let free = async {
                let free = self.inner.store.wait_until_free(&self.entry.id);
                if self.inner.nodes.get().is_some() {
                    return timeout(READY_PAUSE, free).await.unwrap_or(Ok(()));
                }
                free.await
            };
            match self.entry.cancel.run_until_cancelled(free).await {
                None => return Ok(None),
                Some(free) => free?,
            }
        }
    }

    /// Works until nothing is left to do and the lease is released, or until another process requests an abort.
    /// A failure is returned with the lease.
    async fn work(
        &self,
        mut lease: Lease,
        beginning: Beginning,
        seen: &mut u64,
    ) -> Result<(), (Option<Lease>, Error)> {
        let stop = lease.stop_signal();
        let listen = async {
            stop.wait().await;
            cancel_subagents(&self.inner, &self.entry.id);
            self.entry.cancel.cancel();
            std::future::pending::<Result<(), Error>>().await
        };
        let worked = {
            let work = self.work_unheard(&mut lease, beginning, seen);
            futures_util::future::select(pin!(work), pin!(listen)).await.factor_first().0
        };
        worked.map_err(|error| (Some(lease), error))
    }

    async fn work_unheard(
        &self,
        lease: &mut Lease,
        beginning: Beginning,
        seen: &mut u64,
    ) -> Result<(), Error> {
        let aftermath = match self.inner.nodes.get() {
            Some(_) => Aftermath::GoesOn,
            None => Aftermath::Ends,
        };
        let mut known = Some(recover::recover(&self.inner, lease, aftermath).await?);
        if let (true, Some((_, transcript))) = (beginning.is_late, &known) {
            self.tell_failure(transcript);
        }
        // The other server has done the work, and called the extensions at its end.
        if let (true, Some((at, transcript))) = (beginning.was_fenced, &known)
            && matches!(next(transcript, WhenRefused::Ends), Next::Idle | Next::NoPrompt)
            && lease.release(*at).await?
        {
            return Ok(());
        }
        self.ask_for_trust().await?;
        let mut stops = Stops::default();
        loop {
            // After an error another process may hold the lease; otherwise dropping it releases it.
            // Boxed, as the work of a turn below: in an unoptimised build their futures together exceed the stack of a thread.
            let at = Box::pin(self.turns(lease, known.take(), seen, &mut stops)).await?;
            let at = if self.entry.cancel.is_cancelled() { u64::MAX } else { at };
            if lease.release(at).await? {
                return Ok(());
            }
            // An event was stored in the meantime, perhaps a prompt of this or another process.
        }
    }

    /// Requests trust in the directory before the first step.
    async fn ask_for_trust(&self) -> Result<(), Error> {
        let session = self.inner.session(&self.entry.id).await?;
        // Boxed because most turns have no question, so it should not enlarge every turn's future.
        Box::pin(trust::question::ask(&self.inner, &session, &self.entry.cancel)).await
    }

    /// Runs steps until nothing is left to do. `seen` counts the known prompts.
    ///
    /// Returns the `seq` up to which the session was read.
    async fn turns(
        &self,
        lease: &Lease,
        mut known: Option<(u64, Vec<MessageWithParts>)>,
        seen: &mut u64,
        stops: &mut Stops,
    ) -> Result<u64, Error> {
        loop {
            *seen = self.inner.runs.admitted(&self.entry.id);
            let is_first = known.is_some();
            let (at, mut transcript) = match known.take() {
                Some(known) => known,
                None => self.inner.store.transcript_at(&self.entry.id).await?,
            };
            // The answer must come after a prompt that another server has stored, whose clock may be ahead.
            self.inner.continue_after(transcript.last());
            let next = next(&transcript, self.when_refused(&transcript).await?);
            if self.entry.cancel.is_cancelled() {
                // Later prompts were aborted together with the previous step.
                if is_first && matches!(next, Next::Step) {
                    step::stopped_early(&self.inner, lease, &transcript).await?;
                }
                return Ok(at);
            }
            // A step may first need room, which is requested as a part of the previous step.
            let is_on_the_way = matches!(next, Next::Step)
                && transcript.last().is_some_and(|last| matches!(last.info, Message::Assistant(_)));
            // Published at every iteration, including the last, unless a step has ended the turn itself.
            if !is_on_the_way
                && (!matches!(next, Next::Idle | Next::NoPrompt) || ended_by_itself(&transcript))
            {
                set_status(&self.inner, &self.entry.id, SessionStatus::Busy);
            }
            match next {
                Next::NoPrompt => return Err(Error::invalid("the session has no prompt to answer")),
                Next::Idle => {
                    let context = Context::resolve(&self.inner, &self.entry.id).await?;
                    summary::keep(&self.inner, &context, &transcript).await?;
                    compact::tidy(&self.inner, &context.instance, &mut transcript).await?;
                    if stops.after(&self.inner, lease, &context, &transcript).await? {
                        continue;
                    }
                    return Ok(at);
                }
                Next::Compact { asked } => {
                    let cancel = &self.entry.cancel;
                    let work = Box::pin(compact::compact(&self.inner, lease, transcript, asked, cancel));
                    self.traced("compact", work).await?;
                }
                Next::Subtask { nth } => {
                    if Box::pin(self.is_refused_by_quota(lease, &transcript)).await? {
                        continue;
                    }
                    set_status(&self.inner, &self.entry.id, SessionStatus::Busy);
                    let cancel = &self.entry.cancel;
                    let work = Box::pin(subtask::subtask(&self.inner, lease, &transcript, nth, cancel));
                    self.traced("subtask", work).await?;
                }
                Next::Step => {
                    let context = Context::resolve(&self.inner, &self.entry.id);
                    let Some(context) = self.entry.cancel.run_until_cancelled(context).await else {
                        step::stopped_early(&self.inner, lease, &transcript).await?;
                        continue;
                    };
                    let context = context?;
                    if Box::pin(self.is_refused_by_quota(lease, &transcript)).await? {
                        continue;
                    }
                    if compact::make_room(&self.inner, &context, &mut transcript).await? {
                        continue;
                    }
                    if is_on_the_way {
                        set_status(&self.inner, &self.entry.id, SessionStatus::Busy);
                    }
                    self.inner.outputs.in_use(&self.inner.tasks, &transcript, self.inner.clock.now_ms());
                    let cancel = &self.entry.cancel;
                    if agent::program(&context, &transcript).is_some() {
                        // Boxed because most turns have no other agent, so it should not enlarge every turn's future.
                        let work = Box::pin(agent::step(&self.inner, lease, context, transcript, cancel));
                        self.traced("step", work).await?;
                        continue;
                    }
                    let work = Box::pin(step::step(&self.inner, lease, context, transcript, cancel));
                    self.traced("step", work).await?;
                }
            }
        }
    }

    /// Ends the turn with an error if a quota is used up. Returns whether it has ended.
    async fn is_refused_by_quota(
        &self,
        lease: &Lease,
        transcript: &[MessageWithParts],
    ) -> Result<bool, Error> {
        if !quota::is_limited(&self.inner) {
            return Ok(false);
        }
        let session = self.inner.session(&self.entry.id).await?;
        match quota::check_spent(&self.inner, &session).await {
            Ok(()) => Ok(false),
            Err(Error::Quota { message, .. }) => {
                let error = MessageError::UnknownError { message, reference: None };
                step::ended_early(&self.inner, lease, transcript, error).await?;
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// Runs a part of the turn and exports its span.
    async fn traced(&self, name: &str, work: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
        let mut span = self.inner.tracer.span(name, Kind::Internal);
        let done = within(span.context(), work).await;
        if done.is_err() {
            span.fail("internal");
        }
        done
    }

    /// Returns the configured effect of a rejection. The configuration is read only after a rejection.
    async fn when_refused(&self, transcript: &[MessageWithParts]) -> Result<WhenRefused, Error> {
        if !was_refused(transcript) {
            return Ok(WhenRefused::Ends);
        }
        let Context { instance, .. } = Context::resolve(&self.inner, &self.entry.id).await?;
        Ok(if instance.settled.goes_on_when_refused { WhenRefused::GoesOn } else { WhenRefused::Ends })
    }

    fn report(&self, error: &Error) {
        let message = describe(error);
        // A turn that another process has taken over has not failed.
        if !is_fenced(error) {
            self.signal_error(MessageError::UnknownError { message, reference: None });
        }
    }

    /// Publishes in this process how a turn of another process ended.
    fn tell_failure(&self, transcript: &[MessageWithParts]) {
        if let Some(Message::Assistant(info)) = transcript.last().map(|last| &last.info)
            && let Some(error) = &info.error
        {
            self.signal_error(error.clone());
        }
    }

    fn signal_error(&self, error: MessageError) {
        self.inner.store.signal(Signal::SessionError { session_id: Some(self.entry.id.clone()), error });
    }

    /// Releases the session unless a prompt was admitted after `seen`. Returns whether it was released.
    fn release(&self, seen: u64) -> bool {
        // Published before another run can start, so that clients do not see that run as idle.
        let idle = || signal_idle(&self.inner, &self.entry.id);
        match self.inner.runs.release(&self.entry, seen, idle) {
            Release::GoesOn => return false,
            Release::Ended => {}
            Release::EndedWithPrompt => drop(wake(&self.inner, &self.entry.id)),
        }
        true
    }
}

impl Drop for Run {
    /// A run that panicked must not block its session forever.
    fn drop(&mut self) {
        self.inner.runs.forget(&self.entry);
    }
}

/// Reports whether the model finished without an error.
fn ended_by_itself(transcript: &[MessageWithParts]) -> bool {
    transcript.last().is_some_and(|last| match &last.info {
        Message::Assistant(info) => {
            info.error.is_none() && info.finish.as_deref().is_some_and(|finish| finish != "tool-calls")
        }
        Message::User(_) => false,
    })
}
