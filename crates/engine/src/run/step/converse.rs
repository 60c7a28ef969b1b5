//! Requests an answer and runs its calls.
//!
//! A call starts as soon as the model has completed it, in parallel with the others. A failed attempt is retried only
//! before its first call, because calls have effects.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use codewright_llm::{EventStream, ModelEvent};
use codewright_proto::{Clock, SessionStatus};
use codewright_store::Lease;
use codewright_telemetry::{Span, carry};
use futures_util::FutureExt as _;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::prepare::Step;
use super::store::flush;
use crate::extension::Moment;
use crate::extension::moments::TextOf;
use crate::inner::Inner;
use crate::run::recorder::{Call, CallUpdate, Recorder};
use crate::run::repetition::Repetition;
use crate::run::retry;
use crate::run::status::set_status;
use crate::toolbox::call::CallCx;
use crate::toolbox::repaired;
use crate::{Error, telemetry};

/// The shortest time between two publications of deltas: one frame of a display.
const FRAME: Duration = Duration::from_millis(16);
/// How long the calls of an aborted turn may take to end before the turn continues without them.
const ABORT_GRACE: Duration = Duration::from_millis(90);
/// How long a started answer waits for the first snapshot of the files.
const LOOK_GRACE: Duration = Duration::from_millis(500);
/// How long abandoned calls may take to end before they are dropped.
const CALL_END: Duration = Duration::from_secs(10);
/// The number of call reports that are not recorded yet. Calls wait when the channel is full.
const PENDING_UPDATES: usize = 64;
/// The end of an attempt at an answer.
pub(crate) enum Attempt {
    Answered,
    Failed(codewright_llm::Error),
    /// The provider accepted the request, and its answer is empty.
    Silent(codewright_llm::Error),
    Aborted,
}

/// Requests an answer. Failed attempts are retried while that is safe and allowed.
pub(crate) async fn answer(
    inner: &Arc<Inner>,
    lease: &Lease,
    step: &Step,
    recorder: &mut Recorder,
    cancel: &CancellationToken,
) -> Result<Attempt, Error> {
    let id = recorder.message().session_id.clone();
    let (mut silent, begun) = (0, Instant::now());
    for attempt in 1.. {
        set_status(inner, &id, SessionStatus::Busy);
        let error = match Conversation::new(inner, lease, step, recorder, cancel).hold().await? {
            Attempt::Failed(error) => {
                silent = 0;
                error
            }
            Attempt::Silent(error) => {
                silent += 1;
                error
            }
            end @ (Attempt::Answered | Attempt::Aborted) => return Ok(end),
        };
        let asked = match &error {
            codewright_llm::Error::Busy { retry_after, .. } => *retry_after,
            // The calls have run, so the next step continues from there.
            _ if recorder.has_calls() => return Ok(Attempt::Answered),
            _ => return Ok(Attempt::Failed(error)),
        };
        if recorder.has_calls() {
            return Ok(Attempt::Answered);
        }
        let wait = match error.failure().is_unreachable {
            true => retry::wait_unreachable(attempt, begun.elapsed()),
            false => retry::wait(attempt, asked).filter(|_| silent < retry::MAX_SILENT),
        };
        let Some(wait) = wait else { return Ok(Attempt::Failed(error)) };
        recorder.restart();
        flush(lease, inner, recorder).await?;
        // Clients compare this with the clock of their machine, and the time of the messages can differ from it.
        let next = Clock::system().now_ms() + wait.as_millis() as u64;
        let message = match error.failure() {
            // Clients recognize the condition by this text.
            failure if failure.status == Some(529) => "Provider is overloaded".to_owned(),
            failure => failure.message.clone(),
        };
        set_status(inner, &id, SessionStatus::Retry { attempt, message, next });
        if cancel.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
            return Ok(Attempt::Aborted);
        }
    }
    Ok(Attempt::Aborted)
}

/// One attempt: an answer and the calls that run in parallel.
pub(crate) struct Conversation<'a> {
    inner: &'a Arc<Inner>,
    lease: &'a Lease,
    step: &'a Step,
    recorder: &'a mut Recorder,
    cancel: &'a CancellationToken,
    calls: JoinSet<()>,
    sender: mpsc::Sender<CallUpdate>,
    updates: mpsc::Receiver<CallUpdate>,
    /// The last calls of the turn.
    repetition: Repetition,
    /// Calls that wait until they are recorded.
    unstored: Vec<oneshot::Sender<()>>,
    /// A draft that is being stored. The answer is published in the meantime.
    drafting: Option<Drafting<'a>>,
}

type Drafting<'a> = Pin<Box<dyn Future<Output = Result<(), codewright_store::Error>> + Send + 'a>>;

impl<'a> Conversation<'a> {
    pub(crate) fn new(
        inner: &'a Arc<Inner>,
        lease: &'a Lease,
        step: &'a Step,
        recorder: &'a mut Recorder,
        cancel: &'a CancellationToken,
    ) -> Self {
        let (sender, updates) = mpsc::channel(PENDING_UPDATES);
        Self {
            inner,
            lease,
            step,
            recorder,
            cancel,
            calls: JoinSet::new(),
            sender,
            updates,
            repetition: step.repetition.clone(),
            unstored: Vec::new(),
            drafting: None,
        }
    }

    /// Stores and publishes the records, and notifies the calls that wait for them.
    async fn flush(&mut self) -> Result<(), Error> {
        if self.recorder.has_events() {
            // The last event of a part removes its draft, so it is stored after the draft.
            self.drafted().await?;
        }
        flush(self.lease, self.inner, self.recorder).await?;
        for stored in self.unstored.drain(..) {
            // A call that has ended no longer listens.
            let _: Result<(), ()> = stored.send(());
        }
        Ok(())
    }

    fn updated(&mut self, mut update: CallUpdate) {
        self.unstored.extend(update.stored.take());
        self.recorder.call_updated(update);
    }

    /// Records the progress and drafts that are due.
    async fn catch_up(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        self.recorder.record_due(now);
        self.recorder.began_with(self.step.files.as_ref().and_then(|files| files.first()));
        if let Some(part) = self.recorder.draft(now) {
            self.drafted().await?;
            self.drafting = Some(Box::pin(self.lease.draft(part)));
        }
        Ok(())
    }

    /// Waits until the draft is stored.
    async fn drafted(&mut self) -> Result<(), Error> {
        match self.drafting.take() {
            Some(drafting) => Ok(drafting.await?),
            None => Ok(()),
        }
    }

    async fn hold(mut self) -> Result<Attempt, Error> {
        let span = telemetry::request(&self.inner.tracer, &self.step.model);
        // Boxed, because the future is large and the next one contains it.
        let asked = Box::pin(self.inner.llm.stream(&self.step.model, &self.step.request));
        let asked = async {
            match &self.step.files {
                Some(files) => files.along(asked).await,
                None => asked.await,
            }
        };
        let stream = match self.cancel.run_until_cancelled(asked).await {
            None => return Ok(self.tell(span, Attempt::Aborted)),
            Some(Err(error)) => return Ok(self.tell(span, Attempt::Failed(error))),
            Some(Ok(stream)) => stream,
        };
        if let Some(files) = &self.step.files {
            // The part that starts the step names the tree. A later tree is recorded in a second event.
            self.cancel.run_until_cancelled(files.looked(LOOK_GRACE)).await;
            self.recorder.began_with(files.first());
        }
        let end = self.listen(stream).await?;
        let end = self.tell(span, end);
        if matches!(end, Attempt::Aborted) {
            self.end_calls().await?;
        } else {
            // After a broken stream the results of running calls are still needed.
            self.finish_calls().await?;
            if self.cancel.is_cancelled() {
                return Ok(Attempt::Aborted);
            }
        }
        Ok(end)
    }

    /// Ends the span of an attempt's request.
    fn tell(&self, span: Span, end: Attempt) -> Attempt {
        let error = match &end {
            Attempt::Answered => None,
            Attempt::Failed(error) | Attempt::Silent(error) => Some(Some(error)),
            Attempt::Aborted => Some(None),
        };
        telemetry::answered(span, &self.recorder.message().tokens, error);
        end
    }

    /// Reads the answer to its end, records it and starts its calls.
    async fn listen(&mut self, mut stream: EventStream) -> Result<Attempt, Error> {
        // The first delta of a text is published at once, and later ones once per frame.
        let mut frame = Instant::now();
        let mut tick = pin!(tokio::time::sleep_until(frame));
        loop {
            // Events that have arrived are read without waiting, because most deltas come in bursts. They are recorded
            // together.
            let mut is_full = false;
            loop {
                while let Some(event) = stream.try_next() {
                    if let Some(end) = self.record_event(Some(Ok(event))).await? {
                        return Ok(end);
                    }
                }
                if is_full {
                    break;
                }
                let Some(event) = stream.next().now_or_never() else { break };
                if let Some(end) = self.record_event(event).await? {
                    return Ok(end);
                }
                is_full = Instant::now() >= frame;
            }
            if self.recorder.has_events() || !self.unstored.is_empty() || Instant::now() >= frame {
                // The start of a text is an event, which must not delay the first delta.
                let has_shown = self.recorder.has_deltas();
                self.flush().await?;
                self.catch_up().await?;
                if has_shown {
                    frame = Instant::now() + FRAME;
                    tick.as_mut().reset(frame);
                }
            }
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Ok(Attempt::Aborted),
                Some(update) = self.updates.recv() => self.updated(update),
                done = async { self.drafting.as_mut().expect("there is a draft").await }, if self.drafting.is_some() => {
                    self.drafting = None;
                    done?;
                }
                event = stream.next() => if let Some(end) = self.record_event(event).await? {
                    return Ok(end);
                },
                () = tick.as_mut(), if !self.recorder.is_empty() => {}
                () = until(self.recorder.due()) => self.catch_up().await?,
            }
        }
    }

    /// Records one event of the model. Returns the end of the attempt, if this is it.
    async fn record_event(
        &mut self,
        event: Option<Result<ModelEvent, codewright_llm::Error>>,
    ) -> Result<Option<Attempt>, Error> {
        match event {
            None => Ok(Some(Attempt::Answered)),
            Some(Err(error)) if self.recorder.has_begun() => Ok(Some(Attempt::Failed(error))),
            Some(Err(error)) => Ok(Some(Attempt::Silent(error))),
            Some(Ok(event)) => {
                if !self.recorder.has_begun() {
                    self.recorder.began_with(self.step.files.as_ref().and_then(|files| files.first()));
                }
                self.complete_text(&event).await;
                if let Some(call) = self.recorder.push(event) {
                    // Stored before it runs, because a record always precedes the effect.
                    self.flush().await?;
                    self.start(call);
                }
                Ok(None)
            }
        }
    }

    /// Lets the extensions change a text that an event ends.
    async fn complete_text(&mut self, event: &ModelEvent) {
        if !self.step.extensions.take(Moment::TextComplete) {
            return;
        }
        let Some((part, text)) = self.recorder.text_ended_by(event) else { return };
        let message = self.recorder.message();
        let of = TextOf { session: &message.session_id, message: &message.id, part: &part };
        let text = self.step.extensions.text_complete(of, text).await;
        self.recorder.replace_text(text);
    }

    /// Runs one call that no model requested to its end.
    pub(crate) async fn alone(mut self, call: Call) -> Result<Attempt, Error> {
        self.flush().await?;
        self.start(call);
        while !self.calls.is_empty() {
            if self.recorder.has_events() || !self.unstored.is_empty() {
                self.flush().await?;
            }
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => {
                    self.end_calls().await?;
                    return Ok(Attempt::Aborted);
                }
                Some(update) = self.updates.recv() => self.updated(update),
                // A call that panicked has reported it, see `CallCx::call`.
                _ = self.calls.join_next() => {}
                () = until(self.recorder.due()) => self.catch_up().await?,
            }
        }
        self.finish_calls().await?;
        Ok(Attempt::Answered)
    }

    fn start(&mut self, call: Call) {
        let call = self.repaired(call);
        let call = self.unwrapped(call);
        let call = self.repaired(call);
        let input = serde_json::from_str(&call.arguments).ok();
        let repeats = match (self.step.selection.find(&call.name), input) {
            (Some(tool), Some(input)) => self.repetition.add(tool.name(), input),
            (None, _) | (_, None) => {
                self.repetition = Repetition::default();
                false
            }
        };
        let message = self.recorder.message();
        let cx = CallCx {
            inner: self.inner.clone(),
            instance: self.step.instance.clone(),
            session_id: message.session_id.clone(),
            message_id: message.id.clone(),
            selection: self.step.selection.clone(),
            caller: self.step.caller.clone(),
            updates: self.sender.clone(),
            cancel: self.cancel.child_token(),
            repeats,
            schema: self.step.schema.clone(),
            files: self.step.files.clone(),
            loaded: self.step.loaded.clone(),
            extensions: self.step.extensions.clone(),
            hook_id: None,
        };
        self.calls.spawn(carry(cx.call(call)));
    }

    /// Returns a call whose name and arguments are corrected, if only one correction fits. It is recorded as repaired, and
    /// later requests contain the corrected form.
    fn repaired(&mut self, call: Call) -> Call {
        let selection = &self.step.selection;
        let fixed = repaired(selection, self.step.schema.as_deref(), &call.name, &call.arguments);
        let Some((name, arguments)) = fixed else { return call };
        self.recorder.call_repaired(&call.id);
        Call { name, arguments, ..call }
    }

    /// Returns the call of a server's tool that the model made through the search tool, and any other call as it is.
    fn unwrapped(&mut self, call: Call) -> Call {
        let input = serde_json::from_str::<Value>(&call.arguments).ok();
        let inner = input.and_then(|input| self.step.selection.inner_call(&call.name, &input));
        let Some((name, arguments)) = inner else { return call };
        self.recorder.called_through(&call.id);
        Call { name, arguments: arguments.to_string(), ..call }
    }

    /// Waits until every call has ended and records their reports.
    async fn finish_calls(&mut self) -> Result<(), Error> {
        while !self.calls.is_empty() {
            // Stored before waiting, because a call may wait for its record.
            if self.recorder.has_events() || !self.unstored.is_empty() {
                self.flush().await?;
            }
            tokio::select! {
                biased;
                Some(update) = self.updates.recv() => self.updated(update),
                // A call that panicked has reported it, see `CallCx::call`.
                _ = self.calls.join_next() => {}
                () = until(self.recorder.due()) => self.catch_up().await?,
            }
        }
        while let Ok(update) = self.updates.try_recv() {
            self.updated(update);
        }
        self.flush().await
    }

    /// Gives the calls of an aborted turn a short time to end, then abandons them.
    async fn end_calls(&mut self) -> Result<(), Error> {
        if let Ok(done) = tokio::time::timeout(ABORT_GRACE, self.finish_calls()).await {
            return done;
        }
        let mut calls = std::mem::take(&mut self.calls);
        self.inner.tasks.spawn(async move {
            let all = async { while calls.join_next().await.is_some() {} };
            if tokio::time::timeout(CALL_END, all).await.is_err() {
                calls.shutdown().await;
            }
        });
        self.flush().await
    }
}

/// Waits until a time, or forever.
async fn until(then: Option<Instant>) {
    match then {
        Some(then) => tokio::time::sleep_until(then).await,
        None => std::future::pending().await,
    }
}
