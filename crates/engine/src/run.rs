//! The loop of one session: look at the transcript, decide, do, until there is nothing left to do.
//!
//! One run a session at a time. A prompt that arrives meanwhile is just another
//! message: the loop reads the transcript afresh before every step. Letting go is
//! conditional on nothing having arrived since, so no prompt is ever stranded.

pub(crate) mod compact;
pub(crate) mod next;
pub(crate) mod recorder;
pub(crate) mod retry;
pub(crate) mod step;
pub(crate) mod title;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codewright_proto::{
    AssistantMessage, Event, Message, MessageError, MessageWithParts, Part, PartBody, SessionId,
    SessionStatus, Signal, ToolPart, ToolSpan, ToolState,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::engine::Inner;
use next::{Next, next};

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
        table.generations += 1;
        let generation = table.generations;
        let cancel = inner.cancel.child_token();
        let (ended, receiver) = watch::channel(false);
        let status = SessionStatus::Busy;
        let handle =
            Handle { cancel: cancel.clone(), generation, admitted: 1, ended: receiver.clone(), status };
        table.handles.insert(id.clone(), handle);
        drop(table);
        let run = Run { inner: inner.clone(), id: id.clone(), cancel, generation };
        inner.tasks.spawn(async move {
            run.to_the_end().await;
            // Nobody may be waiting any more.
            ended.send_replace(true);
        });
        Turn(receiver)
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
            let mut seen = 0;
            if let Err(error) = self.turns(&mut seen).await {
                let error = MessageError::UnknownError { message: describe(&error), reference: None };
                self.inner.store.signal(Signal::SessionError { session_id: Some(self.id.clone()), error });
            }
            if self.release(seen) {
                return;
            }
        }
    }

    /// Takes steps until there is nothing left to do; `seen` counts the prompts it knew of.
    async fn turns(&self, seen: &mut u64) -> Result<(), Error> {
        *seen = self.inner.runs.admitted(&self.id);
        close_leftovers(&self.inner, &self.id).await?;
        loop {
            *seen = self.inner.runs.admitted(&self.id);
            if self.cancel.is_cancelled() {
                return Ok(());
            }
            let mut transcript = self.inner.store.transcript(&self.id).await?;
            match next(&transcript) {
                Next::Idle => return compact::tidy(&self.inner, &self.id, &mut transcript).await,
                Next::Compact { asked } => {
                    set_status(&self.inner, &self.id, SessionStatus::Busy);
                    compact::compact(&self.inner, &self.id, (transcript, asked), &self.cancel).await?;
                }
                Next::Step => {
                    set_status(&self.inner, &self.id, SessionStatus::Busy);
                    if compact::make_room(&self.inner, &self.id, &mut transcript).await? {
                        continue;
                    }
                    step::step(&self.inner, &self.id, transcript, &self.cancel).await?;
                }
            }
        }
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
        let session_id = self.id.clone();
        self.inner.store.signal(Signal::SessionStatus { session_id, status: SessionStatus::Idle });
        self.inner.store.signal(Signal::SessionIdle { session_id: self.id.clone() });
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

/// Ends what a process that died left open, so that the transcript is whole again.
async fn close_leftovers(inner: &Inner, id: &SessionId) -> Result<(), Error> {
    let now = inner.clock.now_ms();
    let mut events = Vec::new();
    for message in inner.store.transcript(id).await? {
        if let Message::Assistant(info) = &message.info
            && info.time.completed.is_none()
        {
            close_message(&message, info, now, &mut events);
        }
    }
    if !events.is_empty() {
        inner.store.append(events).await?;
    }
    Ok(())
}

fn close_message(message: &MessageWithParts, info: &AssistantMessage, now: u64, events: &mut Vec<Event>) {
    for part in &message.parts {
        let PartBody::Tool(call) = &part.body else { continue };
        let (input, start, error) = match &call.state {
            ToolState::Pending { .. } => {
                (serde_json::json!({}), now, "The process ended before this call began.")
            }
            ToolState::Running { input, time, .. } => (
                input.clone(),
                time.start,
                "The process ended while this call was running; whether it took effect is uncertain.",
            ),
            ToolState::Completed { .. } | ToolState::Error { .. } => continue,
        };
        let time = ToolSpan { start, end: now, compacted: None };
        let state = ToolState::Error { input, error: error.to_owned(), metadata: None, time };
        let body = PartBody::Tool(ToolPart { state, ..call.clone() });
        let part = Part { body, ..part.clone() };
        events.push(Event::PartUpdated { session_id: info.session_id.clone(), part, time: now });
    }
    let mut info = info.clone();
    info.time.completed = Some(now);
    info.error.get_or_insert_with(|| MessageError::MessageAbortedError {
        message: "The process ended before the answer was complete".to_owned(),
    });
    let session_id = info.session_id.clone();
    events.push(Event::MessageUpdated { session_id, info: Message::Assistant(info) });
}
