//! A step that another agent answers: its updates become the records that a model's answer would have.
//!
//! The agent runs its own loop, so its whole answer is one step. Its process changes files like a command: the directory
//! is compared before and after. Its requests are served while it answers.

mod calls;
mod serve;
mod terminals;

use std::sync::Arc;
use std::time::Duration;

use codewright_acp_client::schema::{
    ContentChunk, PlanEntry, PlanEntryPriority, PlanEntryStatus, PromptResponse, SessionUpdate, StopReason,
    ToolCall, ToolCallUpdate,
};
use codewright_acp_client::{
    Agent, Event as AgentEvent, Opening, Request, Responder, Session as AgentSession, Spec, Turn,
};
use codewright_config::{AcpProgram, AgentSpec};
use codewright_llm::{FinishReason, ModelEvent, Usage};
use codewright_proto::{
    Event, MessageError, MessageWithParts, PromptModel, Session, SessionId, Todo, UserMessage,
};
use codewright_store::Lease;
use codewright_telemetry::carry;
use codewright_tools::{AnyTool, Bash, ReadText, Write, erase};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::files::{Files, tree_of_last_step};
use super::message;
use super::prompt::last_prompt;
use super::recorder::Recorder;
use super::status::set_status;
use super::step::fail::{fail, give_up};
use super::step::leave_files_after;
use super::step::store::{account, flush};
use super::{summary, title};
use crate::acp::prompt::{Receiver, blocks};
use crate::acp::{host, kept, servers};
use crate::error::describe;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::permission::rules::PermissionRules;
use crate::permission::session::session_rules;
use crate::session::DEFAULT_TITLE;
use crate::subagent::handover::Caller;
use crate::{Error, extension};
use calls::{Calls, Change, Moment, TooManyCalls, block_text};
use serve::{About, Serving};
use terminals::Terminals;

/// The longest time that an agent may be silent while none of its requests is served.
const IDLE_DEADLINE: Duration = Duration::from_secs(30 * 60);
/// The most text and reasoning of one answer.
const MAX_TEXT_BYTES: usize = 16 << 20;
/// The shortest time between two publications of deltas: one frame of a display.
const FRAME: Duration = Duration::from_millis(16);
/// The shortest time between two stored plans.
const PLAN_EVERY: Duration = Duration::from_millis(200);
/// The number of starts of an agent whose earlier prompt ends its process.
const MAX_STARTS: u32 = 3;
/// The number of titles that an agent can give to a session in one answer.
const MAX_TITLES: usize = 8;
/// The number of entries of a plan, and the length of one.
const MAX_PLAN: usize = 200;
const MAX_ENTRY_CHARS: usize = 1000;
/// The time in which the requests of an ended answer must end before they are dropped.
const REQUESTS_END: Duration = Duration::from_secs(10);

/// Returns the program that answers the last prompt of a transcript in place of a model.
pub(crate) fn program<'a>(
    context: &'a Context,
    transcript: &[MessageWithParts],
) -> Option<(&'a AgentSpec, &'a AcpProgram)> {
    let (prompt, _) = last_prompt(transcript)?;
    let agent = context.instance.agent(&prompt.agent).ok()?;
    Some((agent, agent.acp.as_ref()?))
}

/// Runs one step of another agent.
pub(crate) async fn step(
    inner: &Arc<Inner>,
    lease: &Lease,
    context: Context,
    transcript: Vec<MessageWithParts>,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let Some((prompt, _)) = last_prompt(&transcript) else { return Ok(()) };
    let (prompt, instance) = (prompt.clone(), context.instance.clone());
    let known = tree_of_last_step(&transcript, inner.clock.now_ms());
    let files = Files::begin(&instance, &inner.tasks, cancel.child_token(), known);
    let model = crate::acp::model::model(&prompt.agent);
    let message = message::answer(inner, instance.message_path(), &prompt, &prompt.agent, &model);
    let mut recorder = Recorder::new(inner.ids.clone(), inner.clock.clone(), message);
    flush(lease, inner, &mut recorder).await?;
    summary::keep(inner, &context, &transcript).await?;
    set_status(inner, &prompt.session_id, codewright_proto::SessionStatus::Busy);
    let is_first = title::is_wanted(&transcript);
    let began = begin(inner, &context, &transcript, &recorder);
    let began = match cancel.run_until_cancelled(Box::pin(began)).await {
        None => return fail(lease, inner, recorder, MessageError::aborted()).await,
        Some(Err(error)) => return fail(lease, inner, recorder, error).await,
        Some(Ok(began)) => began,
    };
    let mut answering = Answering::begin(inner, lease, &prompt, recorder);
    if is_first {
        let text = title::first_text(&transcript).unwrap_or_default();
        answering.title = name_session(inner, &context.session, &text).await?;
    }
    drop(transcript);
    answer(answering, began, &instance, &files, cancel).await
}

/// Sends the prompt and records the answer.
async fn answer(
    mut answering: Answering<'_>,
    began: Began,
    instance: &Arc<Instance>,
    files: &Arc<Files>,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let Began { agent, session, content, rules, spec, note } = began;
    if let Some(note) = note {
        answering.recorder.note(&note);
    }
    let Answering { inner, lease, prompt, .. } = answering;
    let extensions = extension::open::ready(inner, instance).await;
    let turn = async {
        files.before_command().await;
        agent.prompt(&session, content).await
    };
    let turn = match cancel.run_until_cancelled(turn).await {
        None => return fail(lease, inner, answering.recorder, MessageError::aborted()).await,
        Some(Err(error)) => return fail(lease, inner, answering.recorder, error_of(prompt, &error)).await,
        Some(Ok(turn)) => turn,
    };
    let message = answering.recorder.message().clone();
    session.remember(|memory| memory.message = Some(message.id.to_string()));
    keep(inner, instance, &spec, &message.session_id, &session).await;
    let caller = caller(prompt, rules);
    let serving = Serving {
        inner: inner.clone(),
        instance: instance.clone(),
        session_id: message.session_id,
        message_id: message.id,
        agent: prompt.agent.clone(),
        tools: tools(&caller),
        caller: Arc::new(caller),
        cancel: cancel.child_token(),
        files: files.clone(),
        extensions,
        terminals: Arc::new(Terminals::default()),
    };
    answering.calls = Calls::new(&prompt.agent, &instance.directory);
    let (inner, id) = (inner.clone(), serving.session_id.clone());
    let end = answering.run(turn, Served { session: session.clone(), serving }, files, cancel).await;
    // The cost is known now.
    keep(&inner, instance, &spec, &id, &session).await;
    end
}

/// Stores the session of the agent, so that it continues after a restart.
async fn keep(inner: &Inner, instance: &Instance, spec: &Spec, id: &SessionId, session: &AgentSession) {
    if let Err(why) = kept::keep(inner, id, spec, session).await {
        instance
            .warn(&format!("the agent `{}` will not continue its session after a restart: {why}", spec.name));
    }
}

/// The session of an agent, and what serves its requests.
struct Served {
    session: Arc<AgentSession>,
    serving: Serving,
}

/// A connected agent, and the content of the prompt.
struct Began {
    agent: Arc<Agent>,
    session: Arc<AgentSession>,
    content: Vec<codewright_acp_client::schema::ContentBlock>,
    rules: PermissionRules,
    spec: Spec,
    /// What the user should know about the session.
    note: Option<String>,
}

/// Connects the agent and prepares the prompt.
async fn begin(
    inner: &Arc<Inner>,
    context: &Context,
    transcript: &[MessageWithParts],
    recorder: &Recorder,
) -> Result<Began, MessageError> {
    let unknown = |error: &Error| MessageError::UnknownError { message: describe(error), reference: None };
    let Context { session, instance } = context;
    let Some((prompt, (spec, named))) =
        last_prompt(transcript).map(|(prompt, _)| prompt).zip(program(context, transcript))
    else {
        return Err(unknown(&Error::invalid("the agent has no program")));
    };
    let rules =
        session_rules(inner, instance, session, &prompt.agent).await.map_err(|error| unknown(&error))?;
    let failed = |error: codewright_acp_client::Error| error_of(prompt, &error);
    let started = host::spec(spec, named, rules.sandbox());
    let key = recorder.message().session_id.to_string();
    let receiver =
        servers::Receiver { program: named, rules: &rules, prompt, is_read_only: started.is_read_only };
    let mut opening = Opening {
        directory: instance.directory.clone(),
        servers: servers::servers(inner, instance, receiver),
        earlier: kept::earlier(inner, &session.id, &started).await,
    };
    let (agent, mut opened) = connected(inner, instance, &started, &key, &opening).await.map_err(failed)?;
    let is_lost = opening.earlier.is_some() && opened.memory().message.is_none();
    let note = is_lost.then(|| {
        format!(
            "The agent `{}` could not continue its earlier session. It began a new one and received the conversation as text.",
            started.name
        )
    });
    let place = |known: &String| transcript.iter().position(|message| message.info.id().as_str() == known);
    let mut known = opened.memory().message.map(|known| place(&known));
    if known == Some(None) {
        // The message was undone, so the agent's conversation is another one.
        agent.forget(&key).await;
        opening.earlier = None;
        opened = agent.session(&key, &opening).await.map_err(failed)?;
        known = None;
    }
    let instructions = spec.prompt.as_deref().filter(|_| known.is_none());
    let reads_images = agent.capabilities().prompt_capabilities.image;
    let unknown_from = known.flatten().map_or(0, |at| at + 1);
    let receiver = Receiver { unknown_from, instructions, reads_images };
    let at = transcript.iter().position(|message| *message.info.id() == prompt.id).unwrap_or_default();
    let content = blocks(transcript, at, receiver);
    Ok(Began { agent, session: opened, content, rules, spec: started, note })
}

/// Returns a running agent and its session for a key, when an earlier prompt of it has ended.
async fn connected(
    inner: &Arc<Inner>,
    instance: &Arc<Instance>,
    spec: &Spec,
    key: &str,
    opening: &Opening,
) -> Result<(Arc<Agent>, Arc<AgentSession>), codewright_acp_client::Error> {
    let agents = host::agents(inner, instance);
    let mut attempt = 1;
    loop {
        let agent = agents.connect(spec).await?;
        let session = agent.session(key, opening).await?;
        session.idle().await;
        // An earlier prompt that did not stop has ended the process.
        if !agent.is_closed() || attempt == MAX_STARTS {
            return Ok((agent, session));
        }
        attempt += 1;
    }
}

/// Names a new session after its first prompt, because there may be no model that could write a title. Returns the title.
async fn name_session(inner: &Inner, session: &Session, prompt: &str) -> Result<Option<String>, Error> {
    let Some(title) = title::clean(prompt).filter(|_| session.parent_id.is_none()) else { return Ok(None) };
    inner
        .update_session(&session.id, |session| {
            if session.title.starts_with(DEFAULT_TITLE) {
                session.title.clone_from(&title);
            }
        })
        .await?;
    Ok(Some(title))
}

/// Returns the caller of the calls that serve the agent.
fn caller(prompt: &UserMessage, rules: PermissionRules) -> Caller {
    let off = prompt.tools.iter().flatten().filter(|(_, on)| !**on).map(|(tool, _)| tool.clone());
    Caller { rules, agent: prompt.agent.clone(), switched_off: off.collect(), ..Caller::default() }
}

/// Returns the tools that serve the agent.
fn tools(caller: &Caller) -> Vec<Arc<dyn AnyTool>> {
    let tools = [erase(ReadText), erase(Write), erase(Bash)];
    let is_on = |tool: &Arc<dyn AnyTool>| !caller.switched_off.iter().any(|off| off == tool.name());
    tools.into_iter().filter(is_on).collect()
}

/// The error of an agent as that of a message.
fn error_of(prompt: &UserMessage, error: &codewright_acp_client::Error) -> MessageError {
    let message = error.to_string();
    match error {
        codewright_acp_client::Error::SignIn(_) => {
            let PromptModel { provider_id, .. } = crate::acp::model::model(&prompt.agent);
            MessageError::ProviderAuthError { provider_id, message }
        }
        codewright_acp_client::Error::Failed(_) => MessageError::UnknownError { message, reference: None },
    }
}

/// An answer that arrives.
struct Answering<'a> {
    inner: &'a Arc<Inner>,
    lease: &'a Lease,
    prompt: &'a UserMessage,
    recorder: Recorder,
    calls: Calls,
    /// The requests that are being served.
    requests: JoinSet<()>,
    text_bytes: usize,
    /// The agent's id of the growing message.
    message_id: Option<String>,
    /// A plan that is not stored yet.
    plan: Option<Vec<Todo>>,
    /// The title that this answer has given to the session.
    title: Option<String>,
    /// The number of titles that the agent has sent.
    titles: usize,
    usage: Usage,
    /// The cost of this answer.
    cost: f64,
}

/// The end of an answer.
enum End {
    Answered(PromptResponse),
    Failed(MessageError),
    Aborted,
}

impl<'a> Answering<'a> {
    /// An answer of which nothing has arrived.
    fn begin(inner: &'a Arc<Inner>, lease: &'a Lease, prompt: &'a UserMessage, recorder: Recorder) -> Self {
        Self {
            inner,
            lease,
            prompt,
            recorder,
            calls: Calls::default(),
            requests: JoinSet::new(),
            text_bytes: 0,
            message_id: None,
            plan: None,
            title: None,
            titles: 0,
            usage: Usage::default(),
            cost: 0.0,
        }
    }

    async fn run(
        mut self,
        mut turn: Turn,
        served: Served,
        files: &Arc<Files>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        // The process of the agent could exchange paths like a command.
        let running = self.inner.documents.command_runs();
        let end = self.listen(&mut turn, &served, cancel).await?;
        served.serving.cancel.cancel();
        self.store_plan().await?;
        let Self { inner, lease, mut recorder, requests, mut usage, cost, .. } = self;
        let failed = match end {
            End::Aborted => MessageError::aborted(),
            End::Failed(error) => error,
            End::Answered(response) => match reason_of(&response) {
                Ok(reason) => {
                    end_requests(requests).await;
                    drop(turn);
                    if let Some(reported) = usage_of(&response) {
                        usage = reported;
                    }
                    drop(recorder.push(ModelEvent::Finish { reason, usage }));
                    files.after_command().await;
                    let done = files.close().await;
                    recorder.began_with(files.first());
                    recorder.finish(cost, None, done);
                    flush(lease, inner, &mut recorder).await?;
                    let message = recorder.message();
                    return account(inner, &message.session_id, &message.tokens, cost).await;
                }
                Err(error) => error,
            },
        };
        // The agent may change files until it has stopped, which must not delay the end of the turn.
        let stopped = async move {
            end_requests(requests).await;
            turn.stop().await;
            drop(running);
        };
        leave_files_after(inner, files, &mut recorder, stopped).await;
        give_up(lease, inner, recorder, failed).await
    }

    /// Records the answer until its end.
    async fn listen(
        &mut self,
        turn: &mut Turn,
        served: &Served,
        cancel: &CancellationToken,
    ) -> Result<End, Error> {
        let Served { session, serving } = served;
        let (mut frame, mut next_plan) = (Instant::now(), Instant::now());
        let mut idle = Instant::now() + IDLE_DEADLINE;
        loop {
            let now = Instant::now();
            if self.recorder.has_events() || now >= frame {
                flush(self.lease, self.inner, &mut self.recorder).await?;
                frame = now + FRAME;
            }
            self.recorder.record_due(now);
            if let Some(part) = self.recorder.draft(now) {
                self.lease.draft(part).await?;
            }
            if self.plan.is_some() && now >= next_plan {
                self.store_plan().await?;
                next_plan = now + PLAN_EVERY;
            }
            if !self.requests.is_empty() {
                idle = now + IDLE_DEADLINE;
            }
            let due = self.recorder.due().unwrap_or(idle).min(idle);
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Ok(End::Aborted),
                Some(_) = self.requests.join_next(), if !self.requests.is_empty() => {}
                event = turn.next() => {
                    idle = Instant::now() + IDLE_DEADLINE;
                    match event {
                        AgentEvent::Ended(Ok(response)) => return Ok(End::Answered(response)),
                        AgentEvent::Ended(Err(error)) => return Ok(End::Failed(error_of(self.prompt, &error))),
                        AgentEvent::Update(update) => {
                            if let Err(message) = self.update(*update, session, &serving.terminals).await? {
                                return Ok(End::Failed(MessageError::UnknownError { message, reference: None }));
                            }
                        }
                        AgentEvent::Request(request, responder) => {
                            if let Err(TooManyCalls) = self.request(request, responder, serving) {
                                let message = TooManyCalls::message(&self.prompt.agent);
                                return Ok(End::Failed(MessageError::UnknownError { message, reference: None }));
                            }
                        }
                    }
                }
                () = sleep_until(frame), if !self.recorder.is_empty() => {}
                () = sleep_until(next_plan), if self.plan.is_some() => {}
                () = sleep_until(due) => {
                    if Instant::now() >= idle {
                        return Ok(End::Failed(self.silent()));
                    }
                }
            }
        }
    }

    fn silent(&self) -> MessageError {
        let minutes = IDLE_DEADLINE.as_secs() / 60;
        let message = format!("the agent `{}` was silent for {minutes} minutes", self.prompt.agent);
        MessageError::UnknownError { message, reference: None }
    }

    /// Records an update. Returns a sentence if the answer cannot go on.
    async fn update(
        &mut self,
        update: SessionUpdate,
        session: &AgentSession,
        terminals: &Terminals,
    ) -> Result<Result<(), String>, Error> {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => return Ok(self.text(&chunk, ModelEvent::TextDelta)),
            SessionUpdate::AgentThoughtChunk(chunk) => {
                return Ok(self.text(&chunk, ModelEvent::ReasoningDelta));
            }
            SessionUpdate::ToolCall(call) => return Ok(self.tool_call(call, terminals)),
            SessionUpdate::ToolCallUpdate(update) => return Ok(self.tool_call_update(update, terminals)),
            SessionUpdate::Plan(plan) => {
                self.plan = Some(plan.entries.iter().take(MAX_PLAN).map(todo).collect());
            }
            SessionUpdate::UsageUpdate(update) => {
                self.usage.input = update.used;
                if let Some(cost) =
                    update.cost.filter(|cost| cost.currency == "USD" && cost.amount.is_finite())
                {
                    let before = session.memory().cost;
                    self.cost += (cost.amount - before).max(0.0);
                    session.remember(|memory| memory.cost = cost.amount);
                }
            }
            SessionUpdate::SessionInfoUpdate(info) => {
                if let Some(title) = info.title.value().and_then(|title| title::clean(title)) {
                    self.rename(title).await?;
                }
            }
            _ => {}
        }
        Ok(Ok(()))
    }

    /// Gives the session a title of the agent, unless a user or a caller has given one.
    async fn rename(&mut self, title: String) -> Result<(), Error> {
        self.titles += 1;
        if self.titles > MAX_TITLES || self.title.as_ref() == Some(&title) {
            return Ok(());
        }
        let own = self.title.replace(title.clone());
        let rename = |session: &mut Session| {
            let is_own = own.as_ref() == Some(&session.title) || session.title.starts_with(DEFAULT_TITLE);
            if session.parent_id.is_none() && is_own {
                session.title.clone_from(&title);
            }
        };
        self.inner.update_session(&self.prompt.session_id, rename).await?;
        Ok(())
    }

    /// Records text or reasoning.
    fn text(&mut self, chunk: &ContentChunk, event: fn(String) -> ModelEvent) -> Result<(), String> {
        let Some(text) = block_text(&chunk.content).filter(|text| !text.is_empty()) else { return Ok(()) };
        self.text_bytes += text.len();
        if self.text_bytes > MAX_TEXT_BYTES {
            let mib = MAX_TEXT_BYTES >> 20;
            return Err(format!("the agent `{}` sent more than {mib} MiB of text", self.prompt.agent));
        }
        let id = chunk.message_id.as_ref().map(|id| id.0.to_string());
        if id.is_some() && self.message_id.is_some() && id != self.message_id {
            drop(self.recorder.push(ModelEvent::TextEnd));
        }
        self.message_id = id.or(self.message_id.take());
        drop(self.recorder.push(event(text)));
        Ok(())
    }

    fn tool_call(&mut self, call: ToolCall, terminals: &Terminals) -> Result<(), String> {
        let change = self.with_calls(terminals, |calls, at| calls.announced(call, at));
        self.apply(change).map_err(|TooManyCalls| TooManyCalls::message(&self.prompt.agent))
    }

    fn tool_call_update(&mut self, update: ToolCallUpdate, terminals: &Terminals) -> Result<(), String> {
        let change = self.with_calls(terminals, |calls, at| calls.updated(update, at));
        self.apply(change).map_err(|TooManyCalls| TooManyCalls::message(&self.prompt.agent))
    }

    fn with_calls<T>(&mut self, terminals: &Terminals, act: impl FnOnce(&mut Calls, &Moment<'_>) -> T) -> T {
        let ids = self.inner.ids.clone();
        let new_id = || format!("call_{:016x}", ids.random());
        let terminal = |id: &str| terminals.find(id).map(|terminal| terminal.output().text);
        let now = self.inner.clock.now_ms();
        act(&mut self.calls, &Moment { now, new_id: &new_id, terminal: &terminal })
    }

    fn apply(&mut self, change: Result<Change, TooManyCalls>) -> Result<(), TooManyCalls> {
        let Change { began, update } = change?;
        if let Some((id, name)) = began {
            drop(self.recorder.push(ModelEvent::ToolStart { id, name }));
        }
        if let Some(update) = update {
            self.recorder.call_updated(update);
        }
        Ok(())
    }

    /// Starts to serve a request.
    fn request(
        &mut self,
        request: Request,
        responder: Responder,
        serving: &Serving,
    ) -> Result<(), TooManyCalls> {
        let Request::Permission(request) = request else {
            self.requests.spawn(carry(serving.clone().serve(request, responder)));
            return Ok(());
        };
        // The request may be the first mention of the call.
        let update = request.tool_call.clone();
        let id = update.tool_call_id.0.to_string();
        let change = self.with_calls(&serving.terminals, |calls, at| calls.updated(update, at));
        self.apply(change)?;
        let call = self.calls.known(&id).cloned();
        let call = call.unwrap_or_else(|| ToolCall::new(id.clone(), String::new()));
        let about = About { call_id: self.calls.id(&id).map(str::to_owned), call };
        self.requests.spawn(carry(serving.clone().permission(*request, about, responder)));
        Ok(())
    }

    /// Stores the plan of the agent as the todo list of the session.
    async fn store_plan(&mut self) -> Result<(), Error> {
        let Some(todos) = self.plan.take() else { return Ok(()) };
        let session_id = self.prompt.session_id.clone();
        self.lease.append(vec![Event::TodoUpdated { session_id, todos }]).await?;
        Ok(())
    }
}

/// Waits for requests that are being served, and drops those that take too long.
async fn end_requests(mut requests: JoinSet<()>) {
    let all = async { while requests.join_next().await.is_some() {} };
    if tokio::time::timeout(REQUESTS_END, all).await.is_err() {
        requests.shutdown().await;
    }
}

fn reason_of(response: &PromptResponse) -> Result<FinishReason, MessageError> {
    match response.stop_reason {
        StopReason::EndTurn | StopReason::MaxTurnRequests => Ok(FinishReason::Stop),
        StopReason::MaxTokens => Ok(FinishReason::Length),
        StopReason::Refusal => {
            Err(MessageError::ContentFilterError { message: "the agent refused the prompt".to_owned() })
        }
        StopReason::Cancelled => Err(MessageError::aborted()),
        _ => Ok(FinishReason::Unknown),
    }
}

fn usage_of(response: &PromptResponse) -> Option<Usage> {
    let usage = response.usage.as_ref()?;
    Some(Usage {
        input: usage.input_tokens,
        output: usage.output_tokens,
        reasoning: usage.thought_tokens.unwrap_or(0),
        cache_read: usage.cached_read_tokens.unwrap_or(0),
        cache_write: usage.cached_write_tokens.unwrap_or(0),
        total: Some(usage.total_tokens),
    })
}

/// An entry of the agent's plan as one of the todo list.
fn todo(entry: &PlanEntry) -> Todo {
    let content = entry.content.chars().filter(|c| !c.is_control() || *c == '\n').take(MAX_ENTRY_CHARS);
    let status = match entry.status {
        PlanEntryStatus::InProgress => "in_progress",
        PlanEntryStatus::Completed => "completed",
        _ => "pending",
    };
    let priority = match entry.priority {
        PlanEntryPriority::High => "high",
        PlanEntryPriority::Low => "low",
        _ => "medium",
    };
    Todo { content: content.collect(), status: status.to_owned(), priority: priority.to_owned() }
}
