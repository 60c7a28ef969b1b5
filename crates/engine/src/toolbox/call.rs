//! Runs one tool call, from its arguments to its recorded result.
//!
//! The order is: parse, check permissions, run, truncate, record. So every tool needs permission, and no tool
//! implements it. A call always ends with a state that the model receives, for any arguments and any failure.

mod batch;
mod edited;
mod grant;
mod host;
mod wider;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use codewright_config::SandboxMode;
use codewright_permission::By;
use codewright_proto::{
    Event, FileAttachment, FileChange, Map, MessageId, SessionId, Signal, Span, ToolRef, ToolSpan, ToolState,
};
use codewright_telemetry::{Kind, within as within_span};
use codewright_tools::{
    AnyTool, Ask, Batch, Effect, Effects, Facts, FileEdit, LoadedInstructions, Output, Permission,
    PermissionRequests, Progress, ReadRules, Task, TodoAccess, Tool as _, ToolCx, ToolError, arguments,
    conform, has_variants, trim,
};
use codewright_workspace::Documents;
use futures_util::FutureExt as _;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::selection::Selection;
use crate::extension::moments::{Rights, ToolCall};
use crate::extension::{Extensions, Moment};
use crate::hosts::{Origin, User};
use crate::inner::Inner;
use crate::instance::Instance;
use crate::permission::approval::Scope;
use crate::permission::gate::Asker;
use crate::permission::held::Held;
use crate::permission::reading::read_rules;
use crate::run::files::Files;
use crate::run::recorder::{CALL_ABORTED, Call, CallUpdate};
use crate::run::structured;
use crate::sandbox::enforcement::{Consent, mode};
use crate::sandbox::masked::masked;
use crate::sandbox::{Restricted, Subject};
use crate::subagent::handover::Caller;
use host::CallHost;

use super::INVALID;
use super::check::{Failure, failure, gate};
use super::cx::tool_cx;

/// The deadline for computing which permissions a call needs.
const ASKS_DEADLINE: Duration = Duration::from_secs(5 * 60);
/// The number of callers of a subagent whose editors are looked up.
const MAX_CALLERS: usize = 64;

/// The context of one call.
#[derive(Clone)]
pub(crate) struct CallCx {
    pub(crate) inner: Arc<Inner>,
    pub(crate) instance: Arc<Instance>,
    pub(crate) session_id: SessionId,
    pub(crate) message_id: MessageId,
    pub(crate) selection: Selection,
    pub(crate) caller: Arc<Caller>,
    pub(crate) updates: mpsc::Sender<CallUpdate>,
    pub(crate) cancel: CancellationToken,
    /// Whether the call repeats the calls before it, so that it needs permission.
    pub(crate) repeats: bool,
    /// The schema of the value that the prompt requests.
    pub(crate) schema: Option<Arc<Value>>,
    /// The files of the step.
    pub(crate) files: Option<Arc<Files>>,
    /// The instruction files that the model has received.
    pub(crate) loaded: LoadedInstructions,
    pub(crate) extensions: Extensions,
    /// The id under which extensions know a call of a batch.
    pub(crate) hook_id: Option<String>,
}

/// A call that may have effects as soon as it is recorded.
struct PendingCall<'a> {
    call: &'a Call,
    recorded: oneshot::Receiver<()>,
}

/// The permissions granted to a call so far.
struct Granted {
    asks: Vec<Ask>,
    tool: ToolRef,
}

impl CallCx {
    /// Runs a call and exports its span.
    pub(crate) async fn call(self, call: Call) {
        // A model may invent names; only names of existing tools are exported.
        let tool = self.selection.find(&call.name);
        let name = tool.as_ref().map_or("invalid", |tool| tool.name());
        let mut span = self.inner.tracer.span_on("execute_tool", name, Kind::Internal);
        span.set("gen_ai.operation.name", "execute_tool");
        span.set("gen_ai.tool.name", name);
        if let Some(class) = within_span(span.context(), self.to_the_end(call)).await {
            span.fail(class);
        }
    }

    /// Runs a call to its end and reports its states. Returns the failure class.
    async fn to_the_end(&self, call: Call) -> Option<&'static str> {
        let start = self.inner.clock.now_ms();
        let input = match self.selection.find(&call.name) {
            Some(tool) => arguments(&call.arguments, &tool.parameters()),
            None => arguments(&call.arguments, self.schema.as_deref().unwrap_or(&Value::Null)),
        };
        let input = input.map(|read| read.input);
        if let (Some(schema), true, Ok(input)) = (&self.schema, call.name == structured::TOOL, &input) {
            self.hand_in(&call, input.clone(), schema, start).await;
            return None;
        }
        let last = match (self.selection.find(&call.name), input) {
            (None, _) => self.invalid(&call, unavailable(&call.name, &self.selection.offered), start).await,
            (Some(_), Err(error)) => self.invalid(&call, error, start).await,
            (Some(tool), Ok(input)) => {
                let (stored, recorded) = oneshot::channel();
                let running = self.running(&call, &tool, &input, start);
                self.report(CallUpdate { stored: Some(stored), ..running }).await;
                let work = self.work(PendingCall { call: &call, recorded }, &tool, input.clone(), start);
                let result = AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
                    let name = tool.name();
                    Err(Failure::Told(format!("The {name} tool failed: this is a bug in Codewright.")))
                });
                let state = self.state(input, start, result);
                CallUpdate { call_id: call.id.clone(), tool: tool.name().to_owned(), state, stored: None }
            }
        };
        let class = match &last.state {
            ToolState::Error { .. } if self.cancel.is_cancelled() => Some("aborted"),
            ToolState::Error { .. } => Some("tool"),
            ToolState::Pending { .. } | ToolState::Running { .. } | ToolState::Completed { .. } => None,
        };
        self.report(last).await;
        class
    }

    /// Accepts the value that the prompt requests.
    async fn hand_in(&self, call: &Call, input: Value, schema: &Value, start: u64) {
        let update = |state| {
            let tool = structured::TOOL.to_owned();
            CallUpdate { call_id: call.id.clone(), tool, state, stored: None }
        };
        let time = Span { start, end: None };
        let running = ToolState::Running { input: input.clone(), title: None, metadata: None, time };
        self.report(update(running)).await;
        let time = ToolSpan { start, end: self.inner.clock.now_ms(), compacted: None };
        self.report(update(structured::judged(input, schema, time))).await;
    }

    async fn work(
        &self,
        pending: PendingCall<'_>,
        tool: &Arc<dyn AnyTool>,
        input: Value,
        start: u64,
    ) -> Result<Output, Failure> {
        if self.repeats {
            self.gate(&doom_loop(tool.name(), &input), None).await?;
        }
        let call = pending.call;
        if tool.name() != Batch::NAME {
            check_variants(tool.as_ref(), &input)?;
        }
        let input = if tool.facts().lists_agents { with_agent(&self.instance, input) } else { input };
        let of = ToolCall { tool: tool.name(), session: &self.session_id, call_id: &call.id };
        let input = self.extensions.tool_before(of, input).await.map_err(Failure::Told)?;
        let args = self.extensions.take(Moment::ToolAfter).then(|| input.clone());
        let output = if tool.name() == Batch::NAME {
            within(tool.deadline(), tool.name(), self.batch(pending, input)).await??
        } else {
            self.single(pending, tool, input, start).await?
        };
        Ok(match args {
            Some(args) => self.extensions.tool_after(of, &args, output).await,
            None => output,
        })
    }

    /// Runs a call that is not a batch, after the extensions have changed its arguments.
    async fn single(
        &self,
        pending: PendingCall<'_>,
        tool: &Arc<dyn AnyTool>,
        input: Value,
        start: u64,
    ) -> Result<Output, Failure> {
        let PendingCall { call, recorded } = pending;
        let cx = self.call_cx(call, tool, self.progress(call, tool, &input, start)).await?;
        // Clients show the arguments of the call that asks.
        self.until_recorded(recorded).await?;
        let granted = self.request_permissions(call, tool, &input, &cx).await?;
        within(tool.deadline(), tool.name(), self.effect(tool, input, &cx, granted)).await?
    }

    /// Waits until the call is recorded, because a record always precedes the effect. A step that cannot record ends.
    async fn until_recorded(&self, recorded: oneshot::Receiver<()>) -> Result<(), Failure> {
        let recorded = self.cancel.run_until_cancelled(recorded).await;
        if !matches!(recorded, Some(Ok(()))) || self.cancel.is_cancelled() {
            return Err(Failure::Aborted);
        }
        Ok(())
    }

    fn tool_ref(&self, call: &Call) -> ToolRef {
        ToolRef { message_id: self.message_id.clone(), call_id: call.id.clone() }
    }

    /// Runs the tool with the granted permissions.
    async fn effect(
        &self,
        tool: &Arc<dyn AnyTool>,
        input: Value,
        cx: &ToolCx,
        granted: Granted,
    ) -> Result<Output, Failure> {
        let effect = tool.facts().effect;
        let command = self.files.as_ref().filter(|_| effect == Effect::Unknown);
        if let Some(files) = command {
            let ready = self.cancel.run_until_cancelled(files.before_command()).await;
            ready.ok_or(Failure::Aborted)?;
        }
        if let Some(files) = self.files.as_ref().filter(|_| effect != Effect::None) {
            let ready = self.cancel.run_until_cancelled(files.before_change()).await;
            ready.ok_or(Failure::Aborted)?;
        }
        let done = match self.request_new_permissions(granted, tool, &input, cx).await {
            Ok(granted) => self.run_and_follow_up(tool, input, cx, &granted).await,
            Err(refused) => Err(refused),
        };
        // For an aborted turn the step does this, because it does not wait for the call.
        if let Some(files) = command.filter(|_| !self.cancel.is_cancelled()) {
            files.after_command().await;
        }
        let output = done?;
        let facts = tool.facts();
        self.report_edits(&(facts.edits)(&output.metadata));
        if facts.todos == TodoAccess::Write {
            self.store_todos(&output).await?;
        }
        if facts.limits_output { Ok(output) } else { trim(output, cx).await.map_err(failure) }
    }

    /// Runs the tool. The commands that it starts are in the sandbox of this call.
    async fn run_confined(
        &self,
        tool: &Arc<dyn AnyTool>,
        input: Value,
        cx: &ToolCx,
        granted: &Granted,
    ) -> Result<Output, Failure> {
        let restricted =
            if tool.facts().starts_commands { self.confine(granted, &input).await? } else { None };
        let mut cx = cx.clone();
        let mut remarks = Vec::new();
        if let Some(Restricted { confined, variables, notes }) = restricted {
            cx.sandbox = Some(confined);
            cx.env.set.extend(variables);
            remarks = notes;
        }
        if tool.facts().starts_commands {
            let (cwd, session) = (&self.instance.directory, Some(&self.session_id));
            let call_id = Some(granted.tool.call_id.as_str());
            let is_off = mode(&self.inner, &self.instance, self.caller.rules.sandbox()) == SandboxMode::Off;
            let rights = if cx.sandbox.is_some() || is_off { Rights::Own } else { Rights::More };
            cx.env.set.extend(self.extensions.shell_env(cwd, session, call_id, rights).await);
        }
        let _running = tool.facts().starts_commands.then(|| self.inner.documents.command_runs());
        let output = tool.run(input, &cx).await.or_else(|error| match error {
            // The output of an aborted call so far is kept.
            ToolError::Cancelled(Some(output)) => Ok(*output),
            error => Err(failure(error)),
        });
        output.map(|output| with_remarks(output, &remarks))
    }

    /// Returns the sandbox of the commands of this call.
    async fn confine(&self, granted: &Granted, input: &Value) -> Result<Option<Restricted>, Failure> {
        let restricted = self.restricted(granted).await?;
        let connect = |restricted| self.origin(granted, input).connect(restricted);
        restricted.map(connect).transpose().map_err(Failure::Told)
    }

    /// Returns the sandbox of this call without a network.
    async fn restricted(&self, granted: &Granted) -> Result<Option<Restricted>, Failure> {
        let mut subject = Subject {
            required: self.caller.rules.sandbox(),
            user: self.caller.rules.user(),
            ..Subject::new(&self.inner, &self.instance, &self.session_id, granted.asks())
        };
        if subject.mode() == SandboxMode::Off {
            return Ok(None);
        }
        let masked = masked(&self.caller.rules, &self.inner, &self.instance).await;
        subject.masked = masked.map_err(Failure::Told)?;
        let support = self.inner.sandbox_support().await;
        subject.confine(&support, Consent::of(granted.asks())).map_err(Failure::Told)
    }

    /// The author of the connections of a command.
    fn origin(&self, granted: &Granted, input: &Value) -> Origin {
        Origin {
            inner: Arc::clone(&self.inner),
            instance: Arc::clone(&self.instance),
            session_id: self.session_id.clone(),
            rules: self.caller.rules.clone(),
            tool: Some(granted.tool.clone()),
            command: input["command"].as_str().unwrap_or_default().to_owned(),
            user: User::Present,
            granted: granted.hosts(),
        }
    }

    async fn gate(&self, ask: &Ask, tool: Option<ToolRef>) -> Result<By, Failure> {
        self.gate_in_sandbox(ask, tool, None).await
    }

    /// Does the same for a call whose sandbox holds some effects.
    async fn gate_in_sandbox(
        &self,
        ask: &Ask,
        tool: Option<ToolRef>,
        held: Option<&Held>,
    ) -> Result<By, Failure> {
        let asker = Asker {
            held,
            hook_id: self.hook_id.as_deref(),
            session_id: &self.session_id,
            instance: &self.instance,
            rules: &self.caller.rules,
            tool,
            cancel: &self.cancel,
        };
        gate(&self.inner, ask, &asker).await
    }

    /// Returns the permission requests that a running tool can make.
    fn permission_requests(&self, tool: ToolRef) -> PermissionRequests {
        let (inner, session_id, caller) =
            (Arc::clone(&self.inner), self.session_id.clone(), Arc::clone(&self.caller));
        let (instance, cancel) = (Arc::clone(&self.instance), self.cancel.clone());
        let hook_id = self.hook_id.clone();
        PermissionRequests::new(move |ask| {
            let (inner, session_id, caller) = (Arc::clone(&inner), session_id.clone(), Arc::clone(&caller));
            let hook_id = hook_id.clone();
            let (instance, cancel, tool) = (Arc::clone(&instance), cancel.clone(), Some(tool.clone()));
            async move {
                let rules = &caller.rules;
                let asker = Asker {
                    session_id: &session_id,
                    instance: &instance,
                    rules,
                    held: None,
                    hook_id: hook_id.as_deref(),
                    tool,
                    cancel: &cancel,
                };
                gate(&inner, &ask, &asker).await.map(drop).map_err(|failure| match failure {
                    Failure::Told(message) => ToolError::Model(message),
                    Failure::Aborted => ToolError::Cancelled(None),
                })
            }
        })
    }

    /// Returns the function that publishes the progress of a call.
    fn progress(&self, call: &Call, tool: &Arc<dyn AnyTool>, input: &Value, start: u64) -> Progress {
        let (updates, call_id, name, input) =
            (self.updates.clone(), call.id.clone(), tool.name().to_owned(), input.clone());
        Progress::new(move |metadata, title| {
            let time = Span { start, end: None };
            let state = ToolState::Running { input: input.clone(), title, metadata: Some(metadata), time };
            let update = CallUpdate { call_id: call_id.clone(), tool: name.clone(), state, stored: None };
            // Progress is dropped if the channel is full; the end is always reported.
            drop(updates.try_send(update));
        })
    }

    /// Returns the context that the tool receives.
    async fn call_cx(
        &self,
        call: &Call,
        tool: &Arc<dyn AnyTool>,
        progress: Progress,
    ) -> Result<ToolCx, Failure> {
        let host = Arc::new(CallHost {
            inner: self.inner.clone(),
            instance: self.instance.clone(),
            caller: self.caller.clone(),
            progress: progress.clone(),
            session_id: self.session_id.clone(),
            tool: self.tool_ref(call),
            cancel: self.cancel.clone(),
        });
        let effects = self.files.as_ref().map_or_else(Effects::none, Files::effects);
        let permission_requests = self.permission_requests(self.tool_ref(call));
        let has_todos = tool.facts().todos == TodoAccess::Read;
        let todos = if has_todos { self.todos().await? } else { Arc::default() };
        let skills = self.instance.skills(&self.caller.rules).into();
        let known = self.inner.known.of(&self.session_id);
        let read_rules = self.read_rules(tool.facts()).await?;
        let documents = self.documents().await;
        let can_delegate = self.selection.offered.iter().any(|tool| tool.name() == Task::NAME);
        Ok(ToolCx {
            effects,
            documents,
            permission_requests,
            read_rules,
            skills,
            todos,
            known,
            jobs: self.inner.jobs.of(self.session_id.as_str(), &self.instance.directory),
            instructions: self.loaded.clone(),
            host,
            can_delegate,
            output_dir: self.inner.dirs.tool_output_of(self.caller.rules.user()),
            ..tool_cx(&self.inner, &self.instance, self.cancel.clone(), progress)
        })
    }

    /// The documents of the user's editor. A subagent has those of its callers.
    async fn documents(&self) -> Option<Arc<dyn Documents>> {
        if self.inner.documents.is_empty() {
            return None;
        }
        let mut id = self.session_id.clone();
        for _ in 0..MAX_CALLERS {
            if let Some(documents) = self.inner.documents.of(&id, &self.inner.jobs) {
                return Some(documents);
            }
            id = self.inner.store.session(&id).await.ok()??.parent_id?;
        }
        None
    }

    /// The rules that filter the files which a tool finds.
    async fn read_rules(&self, facts: &Facts) -> Result<ReadRules, Failure> {
        if !facts.finds_files {
            return Ok(ReadRules::open());
        }
        let approvals = self.inner.gate.approvals(&Scope::of(&self.instance)).await;
        let approvals = approvals
            .map_err(|error| Failure::Told(format!("The saved permissions could not be read: {error}")))?;
        let hides = self.inner.gate.hides(&self.instance);
        Ok(read_rules(&self.caller.rules, approvals, self.instance.worktree.root.clone(), hides))
    }

    /// Reports the files that a call changed to clients.
    fn report_edits(&self, edits: &[(&str, FileEdit)]) {
        let directory = self.instance.directory_text();
        let signal = |signal| self.inner.store.signal(signal);
        // A removed file was not edited.
        for (file, _) in edits.iter().filter(|(_, edit)| *edit != FileEdit::Removed) {
            signal(Signal::FileEdited { directory: directory.clone(), file: (*file).to_owned() });
        }
        for (file, edit) in edits {
            let event = match edit {
                FileEdit::Added => FileChange::Add,
                FileEdit::Changed => FileChange::Change,
                FileEdit::Removed => FileChange::Unlink,
            };
            let (directory, file) = (directory.clone(), (*file).to_owned());
            self.inner.instances.watchers.note(&file);
            signal(Signal::FileWatcherUpdated { directory, file, event });
        }
    }

    /// The session's todo list.
    async fn todos(&self) -> Result<Arc<[Value]>, Failure> {
        let failed =
            |error: &dyn std::fmt::Display| Failure::Told(format!("The list could not be read: {error}"));
        let todos = self.inner.store.todos(&self.session_id).await.map_err(|error| failed(&error))?;
        match serde_json::to_value(todos) {
            Ok(Value::Array(todos)) => Ok(todos.into()),
            Ok(_) => Ok(Arc::default()),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Stores the todo list that a call wrote.
    async fn store_todos(&self, output: &Output) -> Result<(), Failure> {
        let Some(todos) = output.metadata.get("todos") else { return Ok(()) };
        let stored = async {
            let todos = serde_json::from_value(todos.clone()).map_err(|error| error.to_string())?;
            let event = Event::TodoUpdated { session_id: self.session_id.clone(), todos };
            self.inner.store.append(vec![event]).await.map_err(|error| error.to_string())
        };
        stored
            .await
            .map(drop)
            .map_err(|error| Failure::Told(format!("The list could not be stored: {error}")))
    }

    fn running(&self, call: &Call, tool: &Arc<dyn AnyTool>, input: &Value, start: u64) -> CallUpdate {
        let time = Span { start, end: None };
        let state = ToolState::Running { input: input.clone(), title: None, metadata: None, time };
        CallUpdate { call_id: call.id.clone(), tool: tool.name().to_owned(), state, stored: None }
    }

    fn state(&self, input: Value, start: u64, result: Result<Output, Failure>) -> ToolState {
        let time = ToolSpan { start, end: self.inner.clock.now_ms(), compacted: None };
        match result {
            Ok(output) => {
                let attachments = output.attachments.into_iter().map(|attachment| FileAttachment {
                    id: self.inner.ids.part(),
                    session_id: self.session_id.clone(),
                    message_id: self.message_id.clone(),
                    kind: "file".to_owned(),
                    mime: attachment.mime,
                    filename: attachment.filename,
                    url: attachment.url,
                });
                let attachments: Vec<_> = attachments.collect();
                ToolState::Completed {
                    input,
                    output: output.output,
                    title: output.title,
                    metadata: output.metadata,
                    time,
                    attachments: (!attachments.is_empty()).then_some(attachments),
                }
            }
            Err(Failure::Told(error)) => ToolState::Error { input, error, metadata: None, time },
            Err(Failure::Aborted) => {
                ToolState::Error { input, error: CALL_ABORTED.to_owned(), metadata: None, time }
            }
        }
    }

    /// Records an invalid call as a completed call of `invalid`.
    async fn invalid(&self, call: &Call, error: String, start: u64) -> CallUpdate {
        let input = serde_json::json!({ "tool": call.name, "error": error });
        let update =
            |state| CallUpdate { call_id: call.id.clone(), tool: INVALID.to_owned(), state, stored: None };
        let time = Span { start, end: None };
        let running = ToolState::Running { input: input.clone(), title: None, metadata: None, time };
        self.report(update(running)).await;
        let output = format!("The arguments provided to the tool are invalid: {error}");
        let mut metadata = Map::new();
        metadata.insert("truncated".to_owned(), Value::Bool(false));
        let time = ToolSpan { start, end: self.inner.clock.now_ms(), compacted: None };
        let state = ToolState::Completed {
            input,
            output,
            title: "Invalid Tool".to_owned(),
            metadata,
            time,
            attachments: None,
        };
        update(state)
    }

    async fn report(&self, update: CallUpdate) {
        // The receiver is gone only when the process ends.
        drop(self.updates.send(update).await);
    }
}

/// Adds remarks about the sandbox to the result of a call.
fn with_remarks(mut output: Output, remarks: &[String]) -> Output {
    if !remarks.is_empty() {
        output.output += &format!("\n\n<shell_metadata>\n{}\n</shell_metadata>", remarks.join("\n"));
    }
    output
}

/// Waits for a tool until a deadline.
async fn within<T>(limit: Duration, tool: &str, work: impl Future<Output = T>) -> Result<T, Failure> {
    tokio::time::timeout(limit, work).await.map_err(|_| {
        let minutes = limit.as_secs() / 60;
        Failure::Told(format!("The {tool} tool did not end within {minutes} minutes."))
    })
}

/// Corrects the case of the agent's name in a call, if only one agent can be meant. Hooks and rules then decide about the
/// agent that runs.
fn with_agent(instance: &Instance, mut input: Value) -> Value {
    /// The argument with the name.
    const AGENT: &str = "subagent_type";
    let Some(given) = input[AGENT].as_str().map(str::trim) else { return input };
    let names = || instance.agents().iter().filter(|agent| !agent.hidden).map(|agent| agent.name.as_str());
    let mut similar = names().filter(|name| name.eq_ignore_ascii_case(given));
    let meant =
        names().find(|name| *name == given).or_else(|| similar.next().filter(|_| similar.next().is_none()));
    if let Some(name) = meant {
        input[AGENT] = name.into();
    }
    input
}

fn doom_loop(tool: &str, input: &Value) -> Ask {
    let mut metadata = Map::new();
    metadata.insert("tool".to_owned(), tool.into());
    metadata.insert("input".to_owned(), input.clone());
    let always = vec![tool.to_owned()];
    Ask { always, metadata, ..Ask::new(Permission::DoomLoop, vec![tool.to_owned()]) }
}

/// Validates the arguments of a tool of which not every provider could describe the variants.
fn check_variants(tool: &dyn AnyTool, input: &Value) -> Result<(), Failure> {
    let schema = tool.parameters();
    if !has_variants(&schema) {
        return Ok(());
    }
    conform(tool.name(), &schema, input.clone()).map(drop).map_err(failure)
}

fn unavailable(name: &str, offered: &[Arc<dyn AnyTool>]) -> String {
    let mut names: Vec<_> = offered.iter().map(|tool| tool.name()).chain([INVALID]).collect();
    names.sort_unstable();
    format!("Model tried to call unavailable tool '{name}'. Available tools: {}.", names.join(", "))
}
