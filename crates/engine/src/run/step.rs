//! One step: one answer of the model, and the calls it makes.
//!
//! A call starts as soon as the model has finished writing it, beside the others;
//! the step ends when the answer and all its calls have. A failed attempt is
//! repeated while that is safe, that is until the first call.

use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use codewright_llm::{EventStream, Model, ModelEvent, Request, ToolSpec};
use codewright_proto::{
    AssistantMessage, Event, Message, MessageError, MessagePath, MessageWithParts, Part, PartBody,
    PromptModel, SessionId, SessionStatus, Signal, TokenUsage, ToolPart, ToolState, UserMessage,
};
use codewright_store::Lease;
use codewright_telemetry::{Span, carry};
use codewright_tools::{LoadedInstructions, ModelName};
use futures_util::FutureExt as _;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::files::{Files, left_by_last};
use super::recorder::{Call, CallUpdate, Record, Recorder};
use super::status::{set_status, signal_idle};
use super::{compact, message, retry, structured, summary};
use crate::error::describe;
use crate::error::message_error;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::models::options::merge;
use crate::models::prices;
use crate::permission::rules::PermissionRules;
use crate::permission::session::session_rules;
use crate::request::instructions::Found;
use crate::request::skills;
use crate::request::system::{self, Block, Facts};
use crate::request::{self, Parts};
use crate::subagent::handover::Caller;
use crate::toolbox::Selection;
use crate::toolbox::call::CallCx;
use crate::toolbox::spec::spec;
use crate::{Error, Level, telemetry};

/// Deltas are shown at most this often: what a person sees as smooth.
const FRAME: Duration = Duration::from_millis(16);
/// How long calls may take to end themselves before the stopped turn goes on without them.
const ABORT_GRACE: Duration = Duration::from_millis(90);
/// How long a stopped turn waits to learn what it did to files.
const FILES_GRACE: Duration = Duration::from_millis(40);
/// How long an answer that has begun waits for the look at files that began before it.
const LOOK_GRACE: Duration = Duration::from_millis(40);
/// How long calls that were left behind may take to end before they are dropped.
const CALL_END: Duration = Duration::from_secs(10);
/// Reports of calls that the step has not recorded yet; a call waits when it is full.
const PENDING_UPDATES: usize = 64;

/// What a step works with.
pub(crate) struct Step {
    pub(crate) instance: Arc<Instance>,
    pub(crate) model: Arc<Model>,
    pub(crate) request: Request,
    pub(crate) selection: Selection,
    pub(crate) caller: Arc<Caller>,
    /// The schema of the value that the prompt asks for.
    pub(crate) schema: Option<Arc<Value>>,
    /// What the step does to files.
    pub(crate) files: Option<Arc<Files>>,
    /// The instruction files that the model has been told.
    pub(crate) told: LoadedInstructions,
}

impl Step {
    /// A request whose answer is words alone.
    pub(crate) fn without_tools(instance: Arc<Instance>, model: Arc<Model>, request: Request) -> Self {
        let (selection, caller, told) = (Selection::default(), Arc::default(), LoadedInstructions::default());
        Self { instance, model, request, selection, caller, schema: None, files: None, told }
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
    lease: &Lease,
    transcript: Vec<MessageWithParts>,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let id = lease.session();
    let Some(prompt) = last_prompt(&transcript).cloned() else { return Ok(()) };
    let session = inner.session(id).await?;
    let instance = inner.instance(std::path::Path::new(&session.directory));
    let Some(instance) = cancel.run_until_cancelled(instance).await else {
        return stopped_early(inner, lease, &transcript).await;
    };
    let instance = instance?;
    let looking = cancel.child_token();
    let _looked = looking.clone().drop_guard();
    let known = left_by_last(&transcript, inner.clock.now_ms());
    let files = Files::begin(&instance, &inner.tasks, looking, known);
    let message = message::answer(inner, instance.message_path(), &prompt, (&prompt.agent, &prompt.model));
    let mut recorder = Recorder::new(inner.ids.clone(), inner.clock.clone(), message);
    flush(lease, inner, &mut recorder).await?;
    summary::keep(inner, lease, &transcript).await?;
    if super::title::is_wanted(&transcript) {
        super::title::start(inner, &instance, &session, &transcript);
    }
    let Some(instructions) = cancel.run_until_cancelled(instance.instructions(&inner.llm)).await else {
        return fail(lease, inner, recorder, MessageError::aborted()).await;
    };
    let cx = Preparing { inner, session: &session, prompt: &prompt, transcript: &transcript };
    let rules = session_rules(inner, &instance, &session, &prompt.agent).await;
    let prepared = rules.and_then(|rules| prepare(instance, &cx, rules, &instructions));
    let misses = structured::misses(&transcript, &prompt.id);
    let may_compact = prepared.as_ref().is_ok_and(|step| compact::may_follow(&step.instance, &transcript));
    drop(transcript);
    let step = match prepared {
        Ok(step) => Step { files: Some(files.clone()), ..step },
        Err(error) => {
            let message = describe(&error);
            let error = match error {
                Error::UnknownModel { .. } | Error::NoProvider { .. } | Error::NoKey { .. } => {
                    MessageError::ProviderAuthError { provider_id: prompt.model.provider_id.clone(), message }
                }
                _ => MessageError::UnknownError { message, reference: None },
            };
            return fail(lease, inner, recorder, error).await;
        }
    };
    let end = answer(inner, (lease, &step), &mut recorder, cancel).await?;
    match end {
        Attempt::Answered => {
            let cost = cost(&step.model, &recorder.message().tokens);
            let error = given_up(&prompt, misses, &recorder);
            if let Some(error) = error.clone() {
                inner.store.signal(Signal::SessionError { session_id: Some(id.clone()), error });
            }
            let done = files.close().await;
            recorder.began_with(files.first());
            recorder.finish(cost, error, done);
            flush(lease, inner, &mut recorder).await?;
            account(inner, id, recorder.message()).await
        }
        Attempt::Aborted => {
            leave_files(inner, &files, &mut recorder).await;
            give_up(lease, inner, recorder, MessageError::aborted()).await
        }
        // What was not answered is no failure of the answer: the prompt is given again after a summary.
        Attempt::Failed(error @ codewright_llm::Error::Overflow { .. }) if may_compact => {
            let error = message_error(&error);
            inner.store.signal(Signal::SessionError { session_id: Some(id.clone()), error });
            recorder.close(None);
            flush(lease, inner, &mut recorder).await?;
            compact::ask(inner, id, (&prompt.agent, &prompt.model), compact::Cause::Refused).await
        }
        Attempt::Failed(error) | Attempt::Silent(error) => {
            let mut known = message_error(&error);
            suggest(&step, &mut known);
            recorder.changed(files.close().await.patch);
            give_up(lease, inner, recorder, known).await
        }
    }
}

/// Answers a prompt that was stopped before its answer began: whoever waits for it is told, and it is not asked again.
pub(crate) async fn stopped_early(
    inner: &Arc<Inner>,
    lease: &Lease,
    transcript: &[MessageWithParts],
) -> Result<(), Error> {
    let Some(prompt) = last_prompt(transcript) else { return Ok(()) };
    let session = inner.session(lease.session()).await?;
    let instance = inner.instance(std::path::Path::new(&session.directory));
    let path = match tokio::time::timeout(FILES_GRACE, instance).await {
        Ok(Ok(instance)) => instance.message_path(),
        // It may be what took so long that it was stopped.
        Ok(Err(_)) | Err(_) => MessagePath { cwd: session.directory.clone(), root: session.directory },
    };
    let message = message::answer(inner, path, prompt, (&prompt.agent, &prompt.model));
    let recorder = Recorder::new(inner.ids.clone(), inner.clock.clone(), message).without_steps();
    fail(lease, inner, recorder, MessageError::aborted()).await
}

fn last_prompt(transcript: &[MessageWithParts]) -> Option<&UserMessage> {
    transcript.iter().rev().find_map(|message| match &message.info {
        Message::User(prompt) => Some(prompt),
        Message::Assistant(_) => None,
    })
}

/// Records what a stopped step did to files; what takes longer is recorded when it is known.
pub(crate) async fn leave_files(inner: &Arc<Inner>, files: &Arc<Files>, recorder: &mut Recorder) {
    let (message, files) = (recorder.message(), files.clone());
    let (session_id, message_id) = (message.session_id.clone(), message.id.clone());
    let (found, patch) = oneshot::channel();
    let inner_ = inner.clone();
    inner.tasks.spawn(async move {
        let Some(patch) = files.close().await.patch else { return };
        let Err(patch) = found.send(patch) else { return };
        let part = Part { id: inner_.ids.part(), session_id: session_id.clone(), message_id, body: patch };
        let event = Event::PartUpdated { session_id, part, time: inner_.clock.now_ms() };
        // A session that was deleted meanwhile needs it no more.
        drop(inner_.store.append(vec![event]).await);
    });
    if let Ok(Ok(patch)) = tokio::time::timeout(FILES_GRACE, patch).await {
        recorder.changed(Some(patch));
    }
}

/// The error of a step that was the last one allowed and has not given the value that was asked for.
fn given_up(prompt: &UserMessage, misses: u32, recorder: &Recorder) -> Option<MessageError> {
    structured::wanted(prompt)?;
    let missed = recorder.has_refused_value() || !recorder.has_calls();
    if missed { structured::given_up(prompt, misses + 1) } else { None }
}

/// A provider that does not know the model may know one of a like name.
fn suggest(step: &Step, error: &mut MessageError) {
    if let MessageError::APIError { message, status_code: Some(404), .. } = error
        && message.to_lowercase().contains("model")
    {
        let nearest = step.instance.models.nearest(&step.model);
        if !nearest.is_empty() {
            message.push_str(&format!(" (did you mean {}?)", nearest.join(", ")));
        }
    }
}

/// What a step is made from.
struct Preparing<'a> {
    inner: &'a Inner,
    session: &'a codewright_proto::Session,
    prompt: &'a UserMessage,
    transcript: &'a [MessageWithParts],
}

/// The tools, as a model is shown them, and those that stand behind them.
pub(crate) type Offer = (Vec<ToolSpec>, Selection);

/// The tools that a model is offered for a prompt under these permission rules.
pub(crate) fn offer(
    inner: &Inner,
    instance: &Instance,
    (model, rules): (&Model, &PermissionRules),
    prompt: &UserMessage,
) -> Offer {
    let name = ModelName { provider_id: &model.provider_id, api_id: &model.api_id };
    let selection = inner.toolbox.select(name, rules, &instance.switches(prompt.tools.as_ref()));
    let tools = selection.offered.iter().map(|tool| spec(tool.as_ref(), instance, rules));
    let mut tools: Vec<_> = tools.chain(structured::wanted(prompt).map(structured::spec)).collect();
    tools.sort_by_key(|tool| tool.name.to_lowercase());
    (tools, selection)
}

/// The blocks of the system text of a step.
pub(crate) fn system_blocks(
    instance: &Instance,
    (prompt, began_ms): (&UserMessage, u64),
    (model, tools): (&Model, &[ToolSpec]),
    instructions: &Found,
    rules: &PermissionRules,
) -> Result<Vec<Block>, Error> {
    let agent = instance.agent(&prompt.agent)?;
    let has = |tool: &str| tools.iter().any(|offered| offered.name == tool);
    let family = instance.family(model);
    let own = agent.prompt.clone().filter(|own| !own.trim().is_empty());
    let base_origin = match &own {
        Some(_) => format!("agent `{}`", agent.name),
        None => format!("family `{}`", family.name()),
    };
    // With a ChatGPT account the family's words are the request's instructions already.
    let base = own.unwrap_or_else(|| if model.is_codex() { String::new() } else { family.prompt(&has) });
    Ok(system::blocks(&Facts {
        header: instance.prompt.header.as_deref(),
        base: &base,
        base_origin,
        model_name: &model.name,
        model_id: format!("{}/{}", model.provider_id, model.id),
        directory: &instance.directory,
        worktree: &instance.worktree.root,
        is_git: instance.worktree.git,
        began_ms,
        rules: &instructions.rules,
        instructions: &instructions.listed,
        skills: has("skill").then(|| skills::block(&instance.skills(rules))).flatten(),
        structured: structured::wanted(prompt).is_some(),
        config: instance.prompt.system.as_deref(),
        user: prompt.system.as_deref(),
        strict: instance.prompt.strict,
    }))
}

fn prepare(
    instance: Arc<Instance>,
    cx: &Preparing<'_>,
    rules: PermissionRules,
    instructions: &Found,
) -> Result<Step, Error> {
    let Preparing { inner, session, prompt, transcript } = *cx;
    let model = instance.models.find(&prompt.model.provider_id, &prompt.model.model_id)?;
    let agent = instance.agent(&prompt.agent)?;
    let (tools, selection) = offer(inner, &instance, (&model, &rules), prompt);
    for warning in &instructions.warnings {
        instance.warn(warning);
    }
    // The day of the first prompt, not of this step: a new day must not change what was sent before.
    let began_ms = transcript.first().map_or_else(|| inner.clock.now_ms(), |first| first.info.created());
    let blocks = system_blocks(&instance, (prompt, began_ms), (&model, &tools), instructions, &rules)?;
    let system = system::joined(&blocks);
    let mut options = agent.options.clone();
    if let Some(variant) = prompt.model.variant.as_deref() {
        merge_variant(&instance, &model, variant, &mut options);
    }
    if !model.capabilities.tool_call && !selection.offered.is_empty() {
        let (provider, id) = (&model.provider_id, &model.id);
        instance.warn(&format!(
            "the model `{provider}/{id}` is not known to call tools, so it is offered none and can only talk; \
             if it can, set `provider.{provider}.models.{id}.tool_call` to true in opencode.json"
        ));
    }
    let schema = structured::wanted(prompt);
    let plan_file = instance.enabled_plan_file(&inner.dirs, session);
    let parts = Parts {
        session,
        transcript,
        prompt,
        steps: agent.steps,
        plan_file: plan_file.as_deref(),
        system,
        tools,
        wants_value: schema.is_some(),
        temperature: agent.temperature,
        top_p: agent.top_p,
        options,
    };
    let request = request::request(parts, &model);
    let schema = schema.cloned().map(Arc::new);
    let caller = Arc::new(caller(prompt, transcript, rules));
    let told = told(instructions, transcript);
    Ok(Step { instance, model, request, selection, caller, schema, files: None, told })
}

/// The instruction files that stand in the request: in the system text, or behind something that was read.
fn told(instructions: &Found, transcript: &[MessageWithParts]) -> LoadedInstructions {
    let files = instructions.rules.iter().chain(&instructions.listed);
    let system = files.map(|file| PathBuf::from(&file.origin));
    let read = transcript.iter().flat_map(|message| &message.parts).filter_map(|part| match &part.body {
        PartBody::Tool(ToolPart { state: ToolState::Completed { metadata, .. }, .. }) => {
            metadata.get("loaded")?.as_array()
        }
        _ => None,
    });
    let read = read.flatten().filter_map(Value::as_str).map(PathBuf::from);
    LoadedInstructions::new(system.chain(read))
}

/// Who makes the calls of a step.
fn caller(prompt: &UserMessage, transcript: &[MessageWithParts], rules: PermissionRules) -> Caller {
    let asked = transcript.iter().rev().find(|message| *message.info.id() == prompt.id);
    let named = asked.into_iter().flat_map(|message| &message.parts).filter_map(|part| match &part.body {
        PartBody::Agent { name, .. } => Some(name.clone()),
        _ => None,
    });
    let off = prompt.tools.iter().flatten().filter(|(_, on)| !**on);
    Caller {
        rules,
        model: Some(PromptModel { variant: None, ..prompt.model.clone() }),
        switched_off: off.map(|(tool, _)| tool.clone()).collect(),
        named: named.collect(),
    }
}

/// Lays the options of a named variant over others.
fn merge_variant(instance: &Instance, model: &Model, name: &str, options: &mut Map<String, Value>) {
    match instance.models.variant(model, name) {
        Some(variant) => merge(options, variant),
        // The name that stands for no variant.
        None if name == "default" => {}
        // Clients keep a variant while models change, so that an unknown one is no reason to fail.
        None => {
            let has = match instance.models.variants(model).as_slice() {
                [] => "it has none".to_owned(),
                names => format!("it has {}", names.join(", ")),
            };
            let model = format!("{}/{}", model.provider_id, model.id);
            instance.warn(&format!("the model `{model}` has no variant `{name}`; {has}"));
        }
    }
}

/// Gets an answer, repeating what failed while that is safe and allowed.
pub(crate) async fn answer(
    inner: &Arc<Inner>,
    (lease, step): (&Lease, &Step),
    recorder: &mut Recorder,
    cancel: &CancellationToken,
) -> Result<Attempt, Error> {
    let id = recorder.message().session_id.clone();
    let mut silent = 0;
    for attempt in 1.. {
        set_status(inner, &id, SessionStatus::Busy);
        let error = match Conversation::new(inner, (lease, step), recorder, cancel).hold().await? {
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
        flush(lease, inner, recorder).await?;
        let next = inner.clock.now_ms() + wait.as_millis() as u64;
        let message = match error.failure() {
            // Clients know the condition by these words.
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

/// Makes one call that no model asked for.
pub(crate) async fn call(
    inner: &Arc<Inner>,
    (lease, step): (&Lease, &Step),
    recorder: &mut Recorder,
    call: Call,
    cancel: &CancellationToken,
) -> Result<Attempt, Error> {
    Conversation::new(inner, (lease, step), recorder, cancel).alone(call).await
}

/// One attempt: a stream, and the calls that run beside it.
struct Conversation<'a> {
    inner: &'a Arc<Inner>,
    lease: &'a Lease,
    step: &'a Step,
    recorder: &'a mut Recorder,
    cancel: &'a CancellationToken,
    calls: JoinSet<()>,
    sender: mpsc::Sender<CallUpdate>,
    updates: mpsc::Receiver<CallUpdate>,
    called: Vec<Call>,
    /// Calls that wait for their record.
    unstored: Vec<oneshot::Sender<()>>,
    /// A draft that is being written: what the model says meanwhile is shown without waiting for it.
    drafting: Option<Drafting<'a>>,
}

type Drafting<'a> = Pin<Box<dyn Future<Output = Result<(), codewright_store::Error>> + Send + 'a>>;

impl<'a> Conversation<'a> {
    fn new(
        inner: &'a Arc<Inner>,
        (lease, step): (&'a Lease, &'a Step),
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
            called: Vec::new(),
            unstored: Vec::new(),
            drafting: None,
        }
    }

    /// Stores and shows what was recorded, and tells the calls that wait for it.
    async fn flush(&mut self) -> Result<(), Error> {
        if self.recorder.has_events() {
            // A part's last event takes its draft away, so it comes after it.
            self.drafted().await?;
        }
        flush(self.lease, self.inner, self.recorder).await?;
        for stored in self.unstored.drain(..) {
            // A call that has ended meanwhile does not listen.
            let _: Result<(), ()> = stored.send(());
        }
        Ok(())
    }

    fn updated(&mut self, mut update: CallUpdate) {
        self.unstored.extend(update.stored.take());
        self.recorder.call_updated(update);
    }

    /// Keeps what has been held back long enough.
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

    /// Waits for the draft that is being written.
    async fn drafted(&mut self) -> Result<(), Error> {
        match self.drafting.take() {
            Some(drafting) => Ok(drafting.await?),
            None => Ok(()),
        }
    }

    async fn hold(mut self) -> Result<Attempt, Error> {
        let span = telemetry::request(&self.inner.tracer, &self.step.model);
        let asked = self.inner.llm.stream(&self.step.model, &self.step.request);
        let stream = match self.cancel.run_until_cancelled(asked).await {
            None => return Ok(self.tell(span, Attempt::Aborted)),
            Some(Err(error)) => return Ok(self.tell(span, Attempt::Failed(error))),
            Some(Ok(stream)) => stream,
        };
        if let Some(files) = &self.step.files {
            // The part that begins the step names the tree; one that takes longer is named in a second event.
            self.cancel.run_until_cancelled(files.looked(LOOK_GRACE)).await;
            self.recorder.began_with(files.first());
        }
        let end = self.listen(stream).await?;
        let end = self.tell(span, end);
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

    /// Tells how the request of an attempt ended.
    fn tell(&self, span: Span, end: Attempt) -> Attempt {
        let error = match &end {
            Attempt::Answered => None,
            Attempt::Failed(error) | Attempt::Silent(error) => Some(Some(error)),
            Attempt::Aborted => Some(None),
        };
        telemetry::answered(span, &self.recorder.message().tokens, error);
        end
    }

    /// Reads the answer to its end, recording it and starting its calls.
    async fn listen(&mut self, mut stream: EventStream) -> Result<Attempt, Error> {
        // The first delta of a text is shown at once, and whatever follows within a frame with the next.
        let mut frame = Instant::now();
        let mut tick = pin!(tokio::time::sleep_until(frame));
        loop {
            // What has arrived already is taken without waiting: most deltas come in bursts.
            // What was read with a piece of the answer is recorded with it.
            let mut is_full = false;
            loop {
                while let Some(event) = stream.try_next() {
                    if let Some(end) = self.heard(Some(Ok(event))).await? {
                        return Ok(end);
                    }
                }
                if is_full {
                    break;
                }
                let Some(event) = stream.next().now_or_never() else { break };
                if let Some(end) = self.heard(event).await? {
                    return Ok(end);
                }
                is_full = Instant::now() >= frame;
            }
            if self.recorder.has_events() || !self.unstored.is_empty() || Instant::now() >= frame {
                // That a text begins is an event; it must not make its first delta wait.
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
                event = stream.next() => if let Some(end) = self.heard(event).await? {
                    return Ok(end);
                },
                () = tick.as_mut(), if !self.recorder.is_empty() => {}
                () = until(self.recorder.due()) => self.catch_up().await?,
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
                if !self.recorder.has_begun() {
                    self.recorder.began_with(self.step.files.as_ref().and_then(|files| files.first()));
                }
                if let Some(call) = self.recorder.push(event) {
                    // Stored before it runs: an effect never precedes its record.
                    self.flush().await?;
                    self.start(call);
                }
                Ok(None)
            }
        }
    }

    /// Makes one call that no model asked for, to its end.
    async fn alone(mut self, call: Call) -> Result<Attempt, Error> {
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
                // A call that panicked has said so itself, see `CallCx::call`.
                _ = self.calls.join_next() => {}
                () = until(self.recorder.due()) => self.catch_up().await?,
            }
        }
        self.finish_calls().await?;
        Ok(Attempt::Answered)
    }

    fn start(&mut self, call: Call) {
        let repeated =
            self.called.iter().filter(|other| other.name == call.name && other.arguments == call.arguments);
        let repeated = repeated.count();
        self.called.push(call.clone());
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
            repeated,
            schema: self.step.schema.clone(),
            files: self.step.files.clone(),
            told: self.step.told.clone(),
        };
        self.calls.spawn(carry(cx.call(call)));
    }

    /// Waits until every call has ended, recording what they report.
    async fn finish_calls(&mut self) -> Result<(), Error> {
        while !self.calls.is_empty() {
            // Before anything is waited for: a call may wait for its record.
            if self.recorder.has_events() || !self.unstored.is_empty() {
                self.flush().await?;
            }
            tokio::select! {
                biased;
                Some(update) = self.updates.recv() => self.updated(update),
                // A call that panicked has said so itself, see `CallCx::call`.
                _ = self.calls.join_next() => {}
                () = until(self.recorder.due()) => self.catch_up().await?,
            }
        }
        while let Ok(update) = self.updates.try_recv() {
            self.updated(update);
        }
        self.flush().await
    }

    /// Gives the calls of a stopped turn a moment to end themselves, then leaves them to end alone.
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

/// Waits until then, or for ever.
async fn until(then: Option<Instant>) {
    match then {
        Some(then) => tokio::time::sleep_until(then).await,
        None => std::future::pending().await,
    }
}

/// Stores and shows what was recorded, in its order.
pub(crate) async fn flush(lease: &Lease, inner: &Inner, recorder: &mut Recorder) -> Result<(), Error> {
    let mut events = Vec::new();
    for record in recorder.take() {
        match record {
            Record::Event(event) => events.push(event),
            Record::Signal(signal) => {
                if !events.is_empty() {
                    lease.append(std::mem::take(&mut events)).await?;
                }
                inner.store.signal(signal);
            }
        }
    }
    if !events.is_empty() {
        lease.append(events).await?;
    }
    Ok(())
}

/// Ends a step that has no answer, and tells everyone why.
pub(crate) async fn fail(
    lease: &Lease,
    inner: &Inner,
    mut recorder: Recorder,
    error: MessageError,
) -> Result<(), Error> {
    tell_failure(inner, &recorder, error.clone()).await;
    recorder.close(Some(error));
    flush(lease, inner, &mut recorder).await
}

/// The same of a step whose model was asked: clients hear that the session rests before the message ends,
/// and again when the turn is over.
pub(crate) async fn give_up(
    lease: &Lease,
    inner: &Inner,
    mut recorder: Recorder,
    error: MessageError,
) -> Result<(), Error> {
    tell_failure(inner, &recorder, error.clone()).await;
    signal_idle(inner, &recorder.message().session_id);
    recorder.unfinish();
    recorder.close(Some(error));
    flush(lease, inner, &mut recorder).await
}

async fn tell_failure(inner: &Inner, recorder: &Recorder, error: MessageError) {
    let session_id = Some(recorder.message().session_id.clone());
    note_failure(inner, recorder.message(), &error).await;
    inner.store.signal(Signal::SessionError { session_id, error });
}

/// Writes down why a turn failed; that a user stopped it is no failure.
async fn note_failure(inner: &Inner, message: &AssistantMessage, error: &MessageError) {
    let told = json!(error);
    if told["name"] == "MessageAbortedError" {
        return;
    }
    let words = told["data"]["message"].as_str().unwrap_or_default();
    let about = json!({
        "sessionID": message.session_id,
        "messageID": message.id,
        "error": told["name"],
        "statusCode": told["data"]["statusCode"],
        "model": format!("{}/{}", message.provider_id, message.model_id),
    });
    inner.journal.note(Level::Warn, "session", words, Some(about)).await;
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
