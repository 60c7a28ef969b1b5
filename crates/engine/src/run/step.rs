//! One step: one answer of the model, and the calls it makes.
//!
//! A call starts as soon as the model has finished writing it, beside the others;
//! the step ends when the answer and all its calls have. A failed attempt is
//! repeated while that is safe, that is until the first call.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use codewright_llm::{EventStream, Model, ModelEvent, Request, ToolSpec};
use codewright_proto::{
    AssistantMessage, AssistantTime, Message, MessageError, MessagePath, MessageWithParts, Rule, SessionId,
    SessionStatus, Signal, TokenUsage, UserMessage,
};
use codewright_tools::AnyTool;
use futures_util::FutureExt as _;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::recorder::{Call, CallUpdate, Record, Recorder};
use super::{compact, retry, set_status};
use crate::engine::Inner;
use crate::error::message_error;
use crate::models::{merge, prices};
use crate::place::Place;
use crate::request::system::{Facts, system};
use crate::request::{self, Parts};
use crate::toolbox::CallCx;
use crate::{Error, permission, prompts};

/// Deltas are shown at most this often: what a person sees as smooth.
const FRAME: Duration = Duration::from_millis(16);
/// How long calls may take to end themselves after the turn was stopped.
const ABORT_GRACE: Duration = Duration::from_secs(3);
/// Reports of calls that the step has not recorded yet; a call waits when it is full.
const PENDING_UPDATES: usize = 64;

/// What a step works with.
pub(crate) struct Step {
    pub(crate) place: Arc<Place>,
    pub(crate) model: Arc<Model>,
    pub(crate) request: Request,
    pub(crate) offered: Vec<Arc<dyn AnyTool>>,
    pub(crate) rules: Arc<[Rule]>,
}

impl Step {
    /// A request whose answer is words alone.
    pub(crate) fn without_tools(place: Arc<Place>, model: Arc<Model>, request: Request) -> Self {
        Self { place, model, request, offered: Vec::new(), rules: Arc::default() }
    }
}

/// How an attempt at an answer ended.
pub(crate) enum Attempt {
    Answered,
    Failed(codewright_llm::Error),
    /// The provider took the request and its answer holds nothing.
    Silent(codewright_llm::Error),
    Aborted,
}

/// Takes one step.
pub(crate) async fn step(
    inner: &Arc<Inner>,
    id: &SessionId,
    transcript: Vec<MessageWithParts>,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let prompt = transcript.iter().rev().find_map(|message| match &message.info {
        Message::User(prompt) => Some(prompt.clone()),
        Message::Assistant(_) => None,
    });
    let Some(prompt) = prompt else { return Ok(()) };
    let session = inner.session(id).await?;
    let place = inner.place(std::path::Path::new(&session.directory)).await?;
    let message = new_message(inner, &place, &prompt);
    let mut recorder = Recorder::new(inner.ids.clone(), inner.clock.clone(), message);
    flush(inner, &mut recorder).await?;
    if transcript.len() == 1 {
        super::title::start(inner, &place, &session, &transcript);
    }
    let prepared = prepare(inner, place, &session, &prompt, &transcript);
    let may_compact = prepared.as_ref().is_ok_and(|step| compact::may_follow(&step.place, &transcript));
    drop(transcript);
    let step = match prepared {
        Ok(step) => step,
        Err(error) => {
            let message = super::describe(&error);
            let error = match error {
                Error::UnknownModel { .. } | Error::NoProvider { .. } | Error::NoKey { .. } => {
                    MessageError::ProviderAuthError { provider_id: prompt.model.provider_id.clone(), message }
                }
                _ => MessageError::UnknownError { message, reference: None },
            };
            return fail(inner, recorder, error).await;
        }
    };
    let end = answer(inner, &step, &mut recorder, cancel).await?;
    match end {
        Attempt::Answered => {
            let cost = cost(&step.model, &recorder.message().tokens);
            recorder.finish(cost);
            flush(inner, &mut recorder).await?;
            account(inner, id, recorder.message()).await
        }
        Attempt::Aborted => fail(inner, recorder, MessageError::aborted()).await,
        // What was not answered is no failure of the answer: the prompt is given again after a summary.
        Attempt::Failed(error @ codewright_llm::Error::Overflow { .. }) if may_compact => {
            let error = message_error(&error);
            inner.store.signal(Signal::SessionError { session_id: Some(id.clone()), error });
            recorder.close(None);
            flush(inner, &mut recorder).await?;
            compact::ask(inner, id, (&prompt.agent, &prompt.model), compact::Cause::Refused).await
        }
        Attempt::Failed(error) | Attempt::Silent(error) => {
            let mut known = message_error(&error);
            suggest(&step, &mut known);
            fail(inner, recorder, known).await
        }
    }
}

/// A provider that does not know the model may know one of a like name.
fn suggest(step: &Step, error: &mut MessageError) {
    if let MessageError::APIError { message, status_code: Some(404), .. } = error
        && message.to_lowercase().contains("model")
    {
        let nearest = step.place.models.nearest(&step.model);
        if !nearest.is_empty() {
            message.push_str(&format!(" (did you mean {}?)", nearest.join(", ")));
        }
    }
}

fn new_message(inner: &Inner, place: &Place, prompt: &UserMessage) -> AssistantMessage {
    AssistantMessage {
        id: inner.ids.message(),
        session_id: prompt.session_id.clone(),
        time: AssistantTime { created: inner.clock.now_ms(), completed: None },
        error: None,
        parent_id: prompt.id.clone(),
        model_id: prompt.model.model_id.clone(),
        provider_id: prompt.model.provider_id.clone(),
        mode: prompt.agent.clone(),
        agent: prompt.agent.clone(),
        path: MessagePath { cwd: place.directory_text(), root: place.worktree_text() },
        summary: None,
        cost: 0.0,
        tokens: TokenUsage::default(),
        structured: None,
        variant: prompt.model.variant.clone(),
        finish: None,
    }
}

fn prepare(
    inner: &Inner,
    place: Arc<Place>,
    session: &codewright_proto::Session,
    prompt: &UserMessage,
    transcript: &[MessageWithParts],
) -> Result<Step, Error> {
    let model = place.models.find(&prompt.model.provider_id, &prompt.model.model_id)?;
    let agent = place.agent(&prompt.agent)?;
    let mut rules = agent.permission.clone();
    rules.extend(session.permission.iter().flatten().cloned());
    let offered = inner.toolbox.offered(&rules, prompt.tools.as_ref());
    let tools = offered.iter().map(|tool| ToolSpec {
        name: tool.name().to_owned(),
        description: tool.description(),
        parameters: tool.parameters(),
    });
    let (instructions, warnings) = place.instructions();
    for warning in warnings {
        place.warn(&warning);
    }
    let family = || prompts::Family::of(&model.provider_id, &model.api_id).prompt();
    // With a ChatGPT account the family's words are the request's instructions already.
    let base =
        agent.prompt.clone().unwrap_or_else(|| if model.is_codex() { String::new() } else { family() });
    let system = system(&Facts {
        base: &base,
        model_name: &model.name,
        model_id: format!("{}/{}", model.provider_id, model.id),
        directory: &place.directory,
        worktree: &place.worktree.root,
        is_git: place.worktree.git,
        // The day of the first prompt, not of this step: a new day must not change what was sent before.
        began_ms: transcript.first().map_or_else(|| inner.clock.now_ms(), |first| first.info.created()),
        instructions: &instructions,
        user: prompt.system.as_deref(),
    });
    let mut options = agent.options.clone();
    if let Some(variant) = prompt.model.variant.as_deref() {
        merge_variant(&place, &model, variant, &mut options);
    }
    if !model.capabilities.tool_call && !offered.is_empty() {
        let name = format!("{}/{}", model.provider_id, model.id);
        place.warn(&format!("the model `{name}` is not known to call tools; it may only talk"));
    }
    let parts = Parts {
        session,
        transcript,
        system,
        tools: tools.collect(),
        temperature: agent.temperature,
        top_p: agent.top_p,
        options,
    };
    let request = request::request(parts, &model);
    Ok(Step { place, model, request, offered, rules: rules.into() })
}

/// Lays the options of a named variant over others.
fn merge_variant(place: &Place, model: &Model, name: &str, options: &mut Map<String, Value>) {
    match place.models.variant(model, name) {
        Some(variant) => merge(options, variant),
        // The name that stands for no variant.
        None if name == "default" => {}
        // Clients keep a variant while models change, so that an unknown one is no reason to fail.
        None => {
            let has = match place.models.variants(model).as_slice() {
                [] => "it has none".to_owned(),
                names => format!("it has {}", names.join(", ")),
            };
            let model = format!("{}/{}", model.provider_id, model.id);
            place.warn(&format!("the model `{model}` has no variant `{name}`; {has}"));
        }
    }
}

/// Gets an answer, repeating what failed while that is safe and allowed.
pub(crate) async fn answer(
    inner: &Arc<Inner>,
    step: &Step,
    recorder: &mut Recorder,
    cancel: &CancellationToken,
) -> Result<Attempt, Error> {
    let id = recorder.message().session_id.clone();
    let mut silent = 0;
    for attempt in 1.. {
        let error = match Conversation::new(inner, step, recorder, cancel).hold().await? {
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
            // The calls have been run and answered: the next step goes on from there.
            _ if recorder.has_calls() => return Ok(Attempt::Answered),
            _ => return Ok(Attempt::Failed(error)),
        };
        if recorder.has_calls() {
            return Ok(Attempt::Answered);
        }
        let wait = retry::wait(attempt, asked).filter(|_| silent < retry::MAX_SILENT);
        let Some(wait) = wait else { return Ok(Attempt::Failed(error)) };
        recorder.restart();
        flush(inner, recorder).await?;
        let next = inner.clock.now_ms() + wait.as_millis() as u64;
        let message = error.failure().message.clone();
        set_status(inner, &id, SessionStatus::Retry { attempt, message, next });
        if cancel.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
            return Ok(Attempt::Aborted);
        }
        set_status(inner, &id, SessionStatus::Busy);
    }
    Ok(Attempt::Aborted)
}

/// One attempt: a stream, and the calls that run beside it.
struct Conversation<'a> {
    inner: &'a Arc<Inner>,
    step: &'a Step,
    recorder: &'a mut Recorder,
    cancel: &'a CancellationToken,
    calls: JoinSet<()>,
    sender: mpsc::Sender<CallUpdate>,
    updates: mpsc::Receiver<CallUpdate>,
    called: Vec<Call>,
}

impl<'a> Conversation<'a> {
    fn new(
        inner: &'a Arc<Inner>,
        step: &'a Step,
        recorder: &'a mut Recorder,
        cancel: &'a CancellationToken,
    ) -> Self {
        let (sender, updates) = mpsc::channel(PENDING_UPDATES);
        Self { inner, step, recorder, cancel, calls: JoinSet::new(), sender, updates, called: Vec::new() }
    }

    async fn hold(mut self) -> Result<Attempt, Error> {
        let asked = self.inner.llm.stream(&self.step.model, &self.step.request);
        let stream = match self.cancel.run_until_cancelled(asked).await {
            None => return Ok(Attempt::Aborted),
            Some(Err(error)) => return Ok(Attempt::Failed(error)),
            Some(Ok(stream)) => stream,
        };
        let end = self.listen(stream).await?;
        if matches!(end, Attempt::Aborted) {
            self.end_calls().await?;
        } else {
            // A stream that died may leave calls at work: their results are wanted all the same.
            self.finish_calls().await?;
            if self.cancel.is_cancelled() {
                return Ok(Attempt::Aborted);
            }
        }
        Ok(end)
    }

    /// Reads the answer to its end, recording it and starting its calls.
    async fn listen(&mut self, mut stream: EventStream) -> Result<Attempt, Error> {
        let mut frame = Instant::now() + FRAME;
        let mut tick = pin!(tokio::time::sleep_until(frame));
        loop {
            // What has arrived already is taken without waiting: most deltas come in bursts.
            loop {
                while let Some(event) = stream.try_next() {
                    if let Some(end) = self.heard(Some(Ok(event))).await? {
                        return Ok(end);
                    }
                }
                let Some(event) = stream.next().now_or_never() else { break };
                if let Some(end) = self.heard(event).await? {
                    return Ok(end);
                }
                if Instant::now() >= frame {
                    break;
                }
            }
            if self.recorder.has_events() || Instant::now() >= frame {
                flush(self.inner, self.recorder).await?;
                frame = Instant::now() + FRAME;
                tick.as_mut().reset(frame);
            }
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Ok(Attempt::Aborted),
                Some(update) = self.updates.recv() => self.recorder.call_updated(update),
                event = stream.next() => if let Some(end) = self.heard(event).await? {
                    return Ok(end);
                },
                () = tick.as_mut(), if !self.recorder.is_empty() => {}
            }
        }
    }

    /// Records one thing the model said; the end of the attempt if it was that.
    async fn heard(
        &mut self,
        event: Option<Result<ModelEvent, codewright_llm::Error>>,
    ) -> Result<Option<Attempt>, Error> {
        match event {
            None => Ok(Some(Attempt::Answered)),
            Some(Err(error)) if self.recorder.has_begun() => Ok(Some(Attempt::Failed(error))),
            Some(Err(error)) => Ok(Some(Attempt::Silent(error))),
            Some(Ok(event)) => {
                if let Some(call) = self.recorder.push(event) {
                    // Stored before it runs: an effect never precedes its record.
                    flush(self.inner, self.recorder).await?;
                    self.start(call);
                }
                Ok(None)
            }
        }
    }

    fn start(&mut self, call: Call) {
        let repeated =
            self.called.iter().filter(|other| other.name == call.name && other.arguments == call.arguments);
        let repeated = repeated.count();
        self.called.push(call.clone());
        let message = self.recorder.message();
        let cx = CallCx {
            inner: self.inner.clone(),
            place: self.step.place.clone(),
            session_id: message.session_id.clone(),
            message_id: message.id.clone(),
            offered: self.step.offered.clone(),
            rules: self.step.rules.clone(),
            updates: self.sender.clone(),
            cancel: self.cancel.child_token(),
            repeated,
        };
        self.calls.spawn(cx.call(call));
    }

    /// Waits until every call has ended, recording what they report.
    async fn finish_calls(&mut self) -> Result<(), Error> {
        while !self.calls.is_empty() {
            tokio::select! {
                biased;
                Some(update) = self.updates.recv() => self.recorder.call_updated(update),
                // A call that panicked has said so itself, see `CallCx::call`.
                _ = self.calls.join_next() => {}
            }
            if self.recorder.has_events() {
                flush(self.inner, self.recorder).await?;
            }
        }
        while let Ok(update) = self.updates.try_recv() {
            self.recorder.call_updated(update);
        }
        flush(self.inner, self.recorder).await
    }

    /// Gives the calls of a stopped turn a moment to end themselves, then ends them.
    async fn end_calls(&mut self) -> Result<(), Error> {
        if let Ok(done) = tokio::time::timeout(ABORT_GRACE, self.finish_calls()).await {
            return done;
        }
        self.calls.shutdown().await;
        self.finish_calls().await
    }
}

/// Stores and shows what was recorded, in its order.
pub(crate) async fn flush(inner: &Inner, recorder: &mut Recorder) -> Result<(), Error> {
    let mut events = Vec::new();
    for record in recorder.take() {
        match record {
            Record::Event(event) => events.push(event),
            Record::Signal(signal) => {
                if !events.is_empty() {
                    inner.store.append(std::mem::take(&mut events)).await?;
                }
                inner.store.signal(signal);
            }
        }
    }
    if !events.is_empty() {
        inner.store.append(events).await?;
    }
    Ok(())
}

/// Ends a step that has no answer, and tells everyone why.
pub(crate) async fn fail(inner: &Inner, mut recorder: Recorder, error: MessageError) -> Result<(), Error> {
    let session_id = Some(recorder.message().session_id.clone());
    recorder.close(Some(error.clone()));
    inner.store.signal(Signal::SessionError { session_id, error });
    flush(inner, &mut recorder).await
}

/// Adds what the step used to its session.
pub(crate) async fn account(inner: &Inner, id: &SessionId, message: &AssistantMessage) -> Result<(), Error> {
    let now = inner.clock.now_ms();
    inner
        .update_session(id, |session| {
            session.tokens.add(&message.tokens);
            session.cost += message.cost;
            session.time.updated = now;
        })
        .await?;
    Ok(())
}

/// US dollars for the tokens of a step.
pub(crate) fn cost(model: &Model, tokens: &TokenUsage) -> f64 {
    let request = tokens.input + tokens.cache.read + tokens.cache.write;
    let price = prices(model, request);
    let dollars = tokens.input as f64 * price.input
        + (tokens.output + tokens.reasoning) as f64 * price.output
        + tokens.cache.read as f64 * price.cache_read
        + tokens.cache.write as f64 * price.cache_write;
    dollars / 1e6
}

/// The rules under which a tool is hidden speak of its permission key, not of its name.
pub(crate) fn hidden(rules: &[Rule], permission: &str) -> bool {
    permission::evaluate::is_off(rules, permission)
}
