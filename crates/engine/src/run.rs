//! The loop of one session: look at the transcript, decide, do, until there is nothing left to do.
//!
//! One run a session at a time, in all processes: a run works while it has the session's
//! lease. A prompt that arrives meanwhile is just another message: the loop reads the
//! transcript afresh before every step. Letting go is conditional on nothing having
//! arrived since, so no prompt is ever stranded.
//!
//! A run that finds its session at work in another process waits. Then it takes the
//! session itself: mostly its prompt has been answered and there is nothing left to do;
//! if the other process died, this one goes on.

pub(crate) mod compact;
pub(crate) mod files;
pub(crate) mod message;
pub(crate) mod next;
pub(crate) mod recorder;
pub(crate) mod recover;
pub(crate) mod retry;
pub(crate) mod step;
pub(crate) mod structured;
pub(crate) mod subtask;
pub(crate) mod summary;
pub(crate) mod title;

use std::collections::HashMap;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codewright_proto::{Message, MessageError, MessageWithParts, SessionId, SessionStatus, Signal};
use codewright_store::{Claim, Lease};
use codewright_telemetry::{Kind, within};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::engine::Inner;
use crate::error::is_fenced;
use crate::{Error, trust};
use next::{Next, WhenRefused, next, was_refused};

/// The runs of this process, by session.
#[derive(Default)]
pub(crate) struct Runs(Mutex<Table>);

struct Handle {
    cancel: CancellationToken,
    /// Tells this run from a later one of the same session.
    generation: u64,
    /// Prompts admitted since the run began; it ends only when it has seen them all.
    admitted: u64,
    ended: watch::Receiver<bool>,
    status: SessionStatus,
}

#[derive(Default)]
struct Table {
    handles: HashMap<SessionId, Handle>,
    generations: u64,
}

impl Table {
    fn insert(
        &mut self,
        inner: &Arc<Inner>,
        id: &SessionId,
        admitted: u64,
    ) -> (Run, watch::Sender<bool>, watch::Receiver<bool>) {
        self.generations += 1;
        let generation = self.generations;
        let cancel = inner.cancel.child_token();
        let (ended, receiver) = watch::channel(false);
        let status = SessionStatus::Busy;
        let handle = Handle { cancel: cancel.clone(), generation, admitted, ended: receiver.clone(), status };
        self.handles.insert(id.clone(), handle);
        (Run { inner: inner.clone(), id: id.clone(), cancel, generation }, ended, receiver)
    }
}

/// What a caller waits on for a turn to end.
pub(crate) struct Turn(watch::Receiver<bool>);

impl Turn {
    /// Waits until the run that answers the prompt has ended.
    pub(crate) async fn ended(mut self) {
        // An error means that the run is gone, which is an end as well.
        drop(self.0.wait_for(|ended| *ended).await);
    }
}

impl Runs {
    /// Makes sure that a run answers what was just admitted.
    pub(crate) fn wake(&self, inner: &Arc<Inner>, id: &SessionId) -> Turn {
        let mut table = self.lock();
        if let Some(handle) = table.handles.get_mut(id) {
            handle.admitted += 1;
            return Turn(handle.ended.clone());
        }
        let (run, ended, receiver) = table.insert(inner, id, 1);
        drop(table);
        let mut span = inner.tracer.span("turn", Kind::Internal);
        span.set("session.id", id.as_str());
        inner.tasks.spawn(async move {
            within(span.context(), run.to_the_end()).await;
            drop(span);
            // Nobody may be waiting any more.
            ended.send_replace(true);
        });
        Turn(receiver)
    }

    /// Does something else with a session as if it were a turn; whether the session was free for it.
    ///
    /// A prompt that comes meanwhile is answered afterwards.
    pub(crate) fn begin<W: Future<Output = ()> + Send + 'static>(
        &self,
        inner: &Arc<Inner>,
        id: &SessionId,
        work: impl FnOnce(CancellationToken) -> W,
    ) -> bool {
        let mut table = self.lock();
        if table.handles.contains_key(id) {
            return false;
        }
        let (run, ended, _) = table.insert(inner, id, 0);
        drop(table);
        set_status(inner, id, SessionStatus::Busy);
        let work = work(run.cancel.clone());
        inner.tasks.spawn(async move {
            work.await;
            if !run.release(0) {
                run.to_the_end().await;
            }
            // Nobody may be waiting any more.
            ended.send_replace(true);
        });
        true
    }

    /// Stops a session's run; whether there was one.
    pub(crate) fn cancel(&self, id: &SessionId) -> Option<Turn> {
        self.lock().handles.get(id).map(|handle| {
            handle.cancel.cancel();
            Turn(handle.ended.clone())
        })
    }

    /// Whether a session is at work.
    pub(crate) fn is_running(&self, id: &SessionId) -> bool {
        self.lock().handles.contains_key(id)
    }

    /// What the running sessions do.
    pub(crate) fn statuses(&self) -> Vec<(SessionId, SessionStatus)> {
        self.lock().handles.iter().map(|(id, handle)| (id.clone(), handle.status.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Every change under the lock is one assignment or one insertion: a poisoned table is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_status(&self, id: &SessionId, status: &SessionStatus) {
        if let Some(handle) = self.lock().handles.get_mut(id) {
            handle.status = status.clone();
        }
    }

    fn admitted(&self, id: &SessionId) -> u64 {
        self.lock().handles.get(id).map_or(0, |handle| handle.admitted)
    }
}

/// One session at work.
struct Run {
    inner: Arc<Inner>,
    id: SessionId,
    cancel: CancellationToken,
    generation: u64,
}

impl Run {
    async fn to_the_end(&self) {
        loop {
            let mut seen = self.inner.runs.admitted(&self.id);
            match self.own().await {
                Ok(Some((lease, is_late))) => self.work(lease, is_late, &mut seen).await,
                // Stopped while another process works: its turn is its own.
                Ok(None) => {}
                Err(error) => self.report(&error),
            }
            if self.release(seen) {
                return;
            }
        }
    }

    /// Takes the session, waiting while another process has it; whether that was so.
    async fn own(&self) -> Result<Option<(Lease, bool)>, Error> {
        let mut is_late = false;
        loop {
            if let Claim::Held(lease) = self.inner.store.lease(&self.id).await? {
                return Ok(Some((lease, is_late)));
            }
            if !is_late {
                set_status(&self.inner, &self.id, SessionStatus::Busy);
                is_late = true;
            }
            let free = self.inner.store.wait_until_free(&self.id);
            match self.cancel.run_until_cancelled(free).await {
                None => return Ok(None),
                Some(free) => free?,
            }
        }
    }

    /// Works until there is nothing left to do and the session is let go, or another process wants it stopped.
    async fn work(&self, lease: Lease, is_late: bool, seen: &mut u64) {
        let stop = lease.stop_signal();
        let listen = async {
            stop.wait().await;
            stop_below(&self.inner, &self.id);
            self.cancel.cancel();
            std::future::pending::<()>().await;
        };
        let work = self.work_unheard(lease, is_late, seen);
        futures_util::future::select(pin!(work), pin!(listen)).await;
    }

    async fn work_unheard(&self, mut lease: Lease, is_late: bool, seen: &mut u64) {
        let mut known = match recover::recover(&self.inner, &lease).await {
            Ok(known) => Some(known),
            Err(error) => return self.report(&error),
        };
        if let (true, Some((_, transcript))) = (is_late, &known) {
            self.tell_failure(transcript);
        }
        if let Err(error) = self.ask_for_trust().await {
            return self.report(&error);
        }
        loop {
            let at = match self.turns(&lease, known.take(), seen).await {
                Ok(at) => at,
                // Whoever has the session now works on it; dropping the lease lets go of it otherwise.
                Err(error) => return self.report(&error),
            };
            let at = if self.cancel.is_cancelled() { u64::MAX } else { at };
            match lease.release(at).await {
                Ok(true) => return,
                // Something was stored since: perhaps a prompt, of this process or another.
                Ok(false) => {}
                Err(error) => return self.report(&error.into()),
            }
        }
    }

    /// Asks whether the directory is trusted, before the first step.
    async fn ask_for_trust(&self) -> Result<(), Error> {
        let session = self.inner.session(&self.id).await?;
        // Most turns ask nothing, so the question takes no room in the future of every turn.
        Box::pin(trust::ask(&self.inner, &session, &self.cancel)).await
    }

    /// Takes steps until there is nothing left to do; `seen` counts the prompts it knew of.
    ///
    /// The `seq` up to which the session was looked at.
    async fn turns(
        &self,
        lease: &Lease,
        mut known: Option<(u64, Vec<MessageWithParts>)>,
        seen: &mut u64,
    ) -> Result<u64, Error> {
        loop {
            *seen = self.inner.runs.admitted(&self.id);
            let is_first = known.is_some();
            let (at, mut transcript) = match known.take() {
                Some(known) => known,
                None => self.inner.store.transcript_at(&self.id).await?,
            };
            let next = next(&transcript, self.when_refused(&transcript).await?);
            if self.cancel.is_cancelled() {
                // Later ones were stopped together with the step that went before.
                if is_first && matches!(next, Next::Step) {
                    step::stopped_early(&self.inner, lease, &transcript).await?;
                }
                return Ok(at);
            }
            // A step may turn out to need room first, which is asked for as a part of the step before it.
            let is_on_the_way = matches!(next, Next::Step)
                && transcript.last().is_some_and(|last| matches!(last.info, Message::Assistant(_)));
            // Said at every turn of the loop, the last one among them, unless a step has ended the turn itself.
            if !is_on_the_way && (!matches!(next, Next::Idle) || ended_by_itself(&transcript)) {
                set_status(&self.inner, &self.id, SessionStatus::Busy);
            }
            match next {
                Next::Idle => {
                    summary::keep(&self.inner, lease, &transcript).await?;
                    compact::tidy(&self.inner, &self.id, &mut transcript).await?;
                    return Ok(at);
                }
                Next::Compact { asked } => {
                    let work = compact::compact(&self.inner, lease, (transcript, asked), &self.cancel);
                    self.told("compact", work).await?;
                }
                Next::Subtask { nth } => {
                    set_status(&self.inner, &self.id, SessionStatus::Busy);
                    let work = subtask::subtask(&self.inner, lease, (&transcript, nth), &self.cancel);
                    self.told("subtask", work).await?;
                }
                Next::Step => {
                    if compact::make_room(&self.inner, &self.id, &mut transcript).await? {
                        continue;
                    }
                    if is_on_the_way {
                        set_status(&self.inner, &self.id, SessionStatus::Busy);
                    }
                    self.inner.outputs.in_use(&self.inner.tasks, &transcript, self.inner.clock.now_ms());
                    self.told("step", step::step(&self.inner, lease, transcript, &self.cancel)).await?;
                }
            }
        }
    }

    /// Does a part of the turn, and tells how long it took.
    async fn told(&self, name: &str, work: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
        let mut span = self.inner.tracer.span(name, Kind::Internal);
        let done = within(span.context(), work).await;
        if done.is_err() {
            span.fail("internal");
        }
        done
    }

    /// What the configuration says of calls that the user refuses; only asked where there is one.
    async fn when_refused(&self, transcript: &[MessageWithParts]) -> Result<WhenRefused, Error> {
        if !was_refused(transcript) {
            return Ok(WhenRefused::Ends);
        }
        let session = self.inner.session(&self.id).await?;
        let instance = self.inner.instance(Path::new(&session.directory)).await?;
        Ok(if instance.settled.goes_on_when_refused { WhenRefused::GoesOn } else { WhenRefused::Ends })
    }

    fn report(&self, error: &Error) {
        let message = describe(error);
        // A turn that another process has taken over has not failed.
        if !is_fenced(error) {
            self.signal_error(MessageError::UnknownError { message, reference: None });
        }
    }

    /// Tells clients of this process how a turn ended that another process held.
    fn tell_failure(&self, transcript: &[MessageWithParts]) {
        if let Some(Message::Assistant(info)) = transcript.last().map(|last| &last.info)
            && let Some(error) = &info.error
        {
            self.signal_error(error.clone());
        }
    }

    fn signal_error(&self, error: MessageError) {
        self.inner.store.signal(Signal::SessionError { session_id: Some(self.id.clone()), error });
    }

    /// Lets the session go, unless something was admitted after `seen`.
    fn release(&self, seen: u64) -> bool {
        let mut table = self.inner.runs.lock();
        let Some(handle) = table.handles.get(&self.id) else { return true };
        if handle.generation != self.generation {
            return true;
        }
        let late = handle.admitted > seen;
        if late && !self.cancel.is_cancelled() {
            return false;
        }
        // Said before another run can begin, so that nobody takes its work for idleness.
        tell_idle(&self.inner, &self.id);
        table.handles.remove(&self.id);
        drop(table);
        if late {
            // A prompt that came while the turn was being stopped is a new turn.
            self.inner.runs.wake(&self.inner, &self.id);
        }
        true
    }
}

impl Drop for Run {
    /// A run that panicked must not hold its session for ever.
    fn drop(&mut self) {
        let mut table = self.inner.runs.lock();
        if table.handles.get(&self.id).is_some_and(|handle| handle.generation == self.generation) {
            table.handles.remove(&self.id);
        }
    }
}

/// Whether the model had nothing more to say, and nothing went wrong.
fn ended_by_itself(transcript: &[MessageWithParts]) -> bool {
    transcript.last().is_some_and(|last| match &last.info {
        Message::Assistant(info) => {
            info.error.is_none() && info.finish.as_deref().is_some_and(|finish| finish != "tool-calls")
        }
        Message::User(_) => false,
    })
}

/// Stops what works for a session and nobody waits for.
fn stop_below(inner: &Inner, id: &SessionId) {
    for child in inner.subagents.silence(id) {
        stop_below(inner, &child);
        // It ends by itself.
        drop(inner.runs.cancel(&child));
    }
}

/// Tells clients that a session rests.
///
/// They hear it once more, before the last of it is told, of a turn whose answer failed or was stopped;
/// what counts is [`Runs::is_running`].
pub(crate) fn tell_idle(inner: &Inner, id: &SessionId) {
    inner.store.signal(Signal::SessionStatus { session_id: id.clone(), status: SessionStatus::Idle });
    inner.store.signal(Signal::SessionIdle { session_id: id.clone() });
}

pub(crate) fn set_status(inner: &Inner, id: &SessionId, status: SessionStatus) {
    inner.runs.set_status(id, &status);
    inner.store.signal(Signal::SessionStatus { session_id: id.clone(), status });
}

/// The error and what the user may try, in one text.
pub(crate) fn describe(error: &Error) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}
