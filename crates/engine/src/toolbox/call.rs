//! The path of every tool call: parse, request permission, run, truncate, record.
//!
//! No tool can skip a permission request, and no tool contains one. A call always ends in a state that the
//! model can read, even if its arguments are invalid or the tool panics.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use codewright_proto::{
    Event, FileAttachment, FileChange, Map, MessageId, SessionId, Signal, Span, ToolRef, ToolSpan, ToolState,
};
use codewright_telemetry::{Kind, within as within_span};
use codewright_tools::{
    AnyTool, Ask, Batch, Effect, FileEdit, LoadedInstructions, Output, TodoAccess, Tool as _, ToolCx,
    ToolError, trim,
};
use futures_util::FutureExt as _;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::grant::Granted;
use super::selection::Selection;
use super::{INVALID, changes_nothing, effect};
use crate::engine::Inner;
use crate::instance::Instance;
use crate::run::files::Files;
use crate::run::recorder::{CALL_ABORTED, Call, CallUpdate};
use crate::run::structured;
use crate::subagent::Caller;

/// The number of earlier identical calls in one response after which a call needs permission.
const DOOM_LOOP: usize = 2;
/// The number of characters of invalid arguments that are quoted to the model.
const MAX_QUOTED_CHARS: usize = 2000;

/// The context of one call.
pub(crate) struct CallCx {
    pub(crate) inner: Arc<Inner>,
    pub(crate) instance: Arc<Instance>,
    pub(crate) session_id: SessionId,
    pub(crate) message_id: MessageId,
    pub(crate) selection: Selection,
    pub(crate) caller: Arc<Caller>,
    pub(crate) updates: mpsc::Sender<CallUpdate>,
    pub(crate) cancel: CancellationToken,
    /// The number of earlier identical calls in the same response.
    pub(crate) repeated: usize,
    /// The schema of the structured output that the prompt requests.
    pub(crate) schema: Option<Arc<Value>>,
    /// The files of the step.
    pub(crate) files: Option<Arc<Files>>,
    /// The instruction files that the model has received.
    pub(crate) instructions: LoadedInstructions,
}

/// The reason why a call has no result.
pub(super) enum Failure {
    /// The model gets this message.
    Message(String),
    /// The turn was stopped.
    Aborted,
}

/// A call whose arguments were parsed.
pub(super) struct ParsedCall<'a> {
    pub(super) call: &'a Call,
    pub(super) tool: &'a Arc<dyn AnyTool>,
    pub(super) input: Value,
    /// Receives a value when the call is recorded.
    pub(super) recorded: oneshot::Receiver<()>,
    pub(super) start: u64,
}

impl CallCx {
    /// Makes a call and records its duration.
    pub(crate) async fn call(self, call: Call) {
        // A model may invent names, and spans must not contain them.
        let tool = self.selection.find(&call.name);
        let name = tool.as_ref().map_or(INVALID, |tool| tool.name());
        let mut span = self.inner.tracer.span_on("execute_tool", name, Kind::Internal);
        span.set("gen_ai.operation.name", "execute_tool");
        span.set("gen_ai.tool.name", name);
        if let Some(class) = within_span(span.context(), self.run(call)).await {
            span.fail(class);
        }
    }

    /// Runs a call to its end and reports its progress. Returns the class of its failure.
    async fn run(&self, call: Call) -> Option<&'static str> {
        let start = self.inner.clock.now_ms();
        let input = arguments(&call.arguments);
        if let (Some(schema), true, Ok(input)) = (&self.schema, call.name == structured::TOOL, &input) {
            self.submit(&call, input.clone(), schema, start).await;
            return None;
        }
        let last = match (self.selection.find(&call.name), input) {
            (None, _) => self.invalid(&call, unavailable(&call.name, &self.selection.offered), start).await,
            (Some(_), Err(error)) => self.invalid(&call, error, start).await,
            (Some(tool), Ok(input)) => {
                let (stored, recorded) = oneshot::channel();
                let running = self.running(&call, &tool, &input, start);
                self.report(CallUpdate { stored: Some(stored), ..running }).await;
                let parsed = ParsedCall { call: &call, tool: &tool, input: input.clone(), recorded, start };
                let work = self.work(parsed);
                let result = AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
                    let name = tool.name();
                    Err(Failure::Message(format!("The {name} tool failed: this is a bug in Codewright.")))
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

    /// Records the structured output that the prompt requests.
    async fn submit(&self, call: &Call, input: Value, schema: &Value, start: u64) {
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

    /// Requests the permissions of a call and runs it.
    async fn work(&self, parsed: ParsedCall<'_>) -> Result<Output, Failure> {
        let ParsedCall { call, tool, input, recorded, start } = parsed;
        if self.repeated >= DOOM_LOOP {
            self.gate(&doom_loop(tool.name(), &input), None).await?;
        }
        if tool.name() == Batch::NAME {
            return within(tool.deadline(), tool.name(), self.batch(call, recorded, input)).await?;
        }
        let cx = self.call_cx(call, tool, self.progress(call, tool, &input, start)).await?;
        let granted = self.granted(call, tool, &input, &cx).await?;
        self.until_recorded(recorded).await?;
        within(tool.deadline(), tool.name(), self.effect(tool, input, &cx, granted)).await?
    }

    /// Waits until the call is recorded, because no effect may precede its record.
    pub(super) async fn until_recorded(&self, recorded: oneshot::Receiver<()>) -> Result<(), Failure> {
        let recorded = self.cancel.run_until_cancelled(recorded).await;
        if !matches!(recorded, Some(Ok(()))) || self.cancel.is_cancelled() {
            return Err(Failure::Aborted);
        }
        Ok(())
    }

    pub(super) fn tool_ref(&self, call: &Call) -> ToolRef {
        ToolRef { message_id: self.message_id.clone(), call_id: call.id.clone() }
    }

    /// Runs a call after its permissions were granted.
    pub(super) async fn effect(
        &self,
        tool: &Arc<dyn AnyTool>,
        input: Value,
        cx: &ToolCx,
        granted: Granted,
    ) -> Result<Output, Failure> {
        let command = self.files.as_ref().filter(|_| effect(tool.name()) == Effect::Unknown);
        if let Some(files) = command {
            let ready = self.cancel.run_until_cancelled(files.before_command()).await;
            ready.ok_or(Failure::Aborted)?;
        }
        if let Some(files) = self.files.as_ref().filter(|_| !changes_nothing(tool.name())) {
            let ready = self.cancel.run_until_cancelled(files.before_change()).await;
            ready.ok_or(Failure::Aborted)?;
        }
        let done = match self.still_granted(granted, tool, &input, cx).await {
            Ok(()) => tool.run(input, cx).await.or_else(|error| match error {
                // The output of a stopped call so far is kept.
                ToolError::Cancelled(Some(output)) => Ok(*output),
                error => Err(failure(error)),
            }),
            Err(refused) => Err(refused),
        };
        // After a stopped turn the step does this, because the caller does not wait so long.
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
            signal(Signal::FileWatcherUpdated { directory, file, event });
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
            .map_err(|error| Failure::Message(format!("The list could not be stored: {error}")))
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
            Err(Failure::Message(error)) => ToolState::Error { input, error, metadata: None, time },
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
        // The receiver is dropped only when the process ends.
        drop(self.updates.send(update).await);
    }
}

pub(super) fn failure(error: ToolError) -> Failure {
    match error {
        ToolError::Model(message) | ToolError::Broken(message) => Failure::Message(message),
        ToolError::Cancelled(_) => Failure::Aborted,
    }
}

/// Waits for a tool, but at most `limit`.
pub(super) async fn within<T>(
    limit: Duration,
    tool: &str,
    work: impl Future<Output = T>,
) -> Result<T, Failure> {
    tokio::time::timeout(limit, work).await.map_err(|_| {
        let minutes = limit.as_secs() / 60;
        Failure::Message(format!("The {tool} tool did not end within {minutes} minutes."))
    })
}

fn doom_loop(tool: &str, input: &Value) -> Ask {
    let mut metadata = Map::new();
    metadata.insert("tool".to_owned(), tool.into());
    metadata.insert("input".to_owned(), input.clone());
    Ask {
        permission: "doom_loop".to_owned(),
        patterns: vec![tool.to_owned()],
        always: vec![tool.to_owned()],
        metadata,
        implied: Vec::new(),
    }
}

/// Parses arguments. Empty arguments are an empty object.
fn arguments(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    serde_json::from_str(text).map_err(|error| {
        let quoted: String = text.chars().take(MAX_QUOTED_CHARS).collect();
        format!("the arguments are not valid JSON ({error}): {quoted}")
    })
}

pub(super) fn unavailable(name: &str, offered: &[Arc<dyn AnyTool>]) -> String {
    let mut names: Vec<_> = offered.iter().map(|tool| tool.name()).chain([INVALID]).collect();
    names.sort_unstable();
    format!("Model tried to call unavailable tool '{name}'. Available tools: {}.", names.join(", "))
}
