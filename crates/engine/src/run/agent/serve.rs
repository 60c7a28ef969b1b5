//! The requests of another agent: files, terminals and permissions.
//!
//! Files are read and written and commands run by our tools, so the rules, the sandbox, undo and every limit of these
//! tools apply. These calls are not records of the session, because the agent reports its calls itself.

use std::sync::Arc;

use codewright_acp_client::schema::{
    CreateTerminalRequest, CreateTerminalResponse, PermissionOptionKind, ReadTextFileRequest,
    ReadTextFileResponse, RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SelectedPermissionOutcome, TerminalOutputResponse, ToolCall, ToolKind, WaitForTerminalExitResponse,
    WriteTextFileRequest,
};
use codewright_acp_client::{Request, Responder, RpcError};
use codewright_proto::{MessageId, SessionId, ToolRef, ToolState};
use codewright_tools::{AnyTool, Ask, LoadedInstructions};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::calls::{command, diffs, kind_name, line};
use super::terminals::{self, MAX_TERMINALS, Terminals};
use crate::extension::Extensions;
use crate::inner::Inner;
use crate::instance::Instance;
use crate::permission::gate::Asker;
use crate::run::files::Files;
use crate::run::recorder::{Call, CallUpdate};
use crate::subagent::handover::Caller;
use crate::toolbox::Selection;
use crate::toolbox::call::CallCx;
use crate::toolbox::check::{Failure, check_call, gate};

/// The longest time that a command of a terminal runs, in milliseconds. The tool limits it further.
const TERMINAL_DEADLINE_MS: u64 = 60 * 60 * 1000;
/// The most output of a terminal that is sent if the agent sets no limit.
const MAX_OUTPUT_BYTES: usize = 1 << 20;
/// The number of reports of a call that are not read yet.
const PENDING_UPDATES: usize = 16;
/// The error code of a missing file.
const NOT_FOUND: i64 = -32002;
/// The number of paths of one permission request.
const MAX_PATHS: usize = 20;

/// What the requests of one answer need.
#[derive(Clone)]
pub(crate) struct Serving {
    pub(crate) inner: Arc<Inner>,
    pub(crate) instance: Arc<Instance>,
    pub(crate) session_id: SessionId,
    pub(crate) message_id: MessageId,
    pub(crate) agent: String,
    pub(crate) caller: Arc<Caller>,
    /// The tools that serve requests.
    pub(crate) tools: Vec<Arc<dyn AnyTool>>,
    pub(crate) cancel: CancellationToken,
    pub(crate) files: Arc<Files>,
    pub(crate) extensions: Extensions,
    pub(crate) terminals: Arc<Terminals>,
}

/// The call that a permission request is about, as it is recorded.
pub(crate) struct About {
    pub(crate) call_id: Option<String>,
    pub(crate) call: ToolCall,
}

impl Serving {
    /// Serves a request other than one for a permission.
    pub(crate) async fn serve(self, request: Request, responder: Responder) {
        let answer = match request {
            Request::Permission(_) => Err(RpcError::refused("a permission request needs a call")),
            Request::ReadTextFile(it) => self.read(*it).await,
            Request::WriteTextFile(it) => self.write(*it).await,
            Request::CreateTerminal(it) => self.create_terminal(*it).await,
            Request::TerminalOutput(it) => self.output(&it.terminal_id.0),
            Request::WaitForTerminalExit(it) => self.wait_for_exit(&it.terminal_id.0).await,
            Request::KillTerminal(it) => self.kill(&it.terminal_id.0),
            Request::ReleaseTerminal(it) => self.release(&it.terminal_id.0),
        };
        responder.respond(answer).await;
    }

    async fn read(&self, request: ReadTextFileRequest) -> Result<Value, RpcError> {
        let mut input = json!({ "filePath": request.path.to_string_lossy() });
        if let Some(line) = request.line {
            input["offset"] = line.into();
        }
        if let Some(limit) = request.limit {
            input["limit"] = limit.into();
        }
        match self.call("read", input).await {
            ToolState::Completed { output, .. } => json_of(&ReadTextFileResponse::new(output)),
            other => Err(error_of(&other)),
        }
    }

    async fn write(&self, request: WriteTextFileRequest) -> Result<Value, RpcError> {
        let input = json!({ "filePath": request.path.to_string_lossy(), "content": request.content });
        match self.call("write", input).await {
            ToolState::Completed { .. } => Ok(json!({})),
            other => Err(error_of(&other)),
        }
    }

    async fn create_terminal(&self, request: CreateTerminalRequest) -> Result<Value, RpcError> {
        let variables: Vec<_> =
            request.env.into_iter().map(|variable| (variable.name, variable.value)).collect();
        let command =
            terminals::line(&request.command, &request.args, &variables).map_err(RpcError::invalid)?;
        let mut input = json!({ "command": command, "timeout": TERMINAL_DEADLINE_MS });
        if let Some(cwd) = &request.cwd {
            input["workdir"] = json!(cwd.to_string_lossy());
        }
        let limit = request.output_byte_limit.and_then(|limit| usize::try_from(limit).ok());
        let limit = limit.unwrap_or(MAX_OUTPUT_BYTES).min(MAX_OUTPUT_BYTES);
        let id = format!("term_{:016x}", self.inner.ids.random());
        let cancel = self.cancel.child_token();
        let Some(terminal) = self.terminals.add(&id, limit, cancel.clone()) else {
            return Err(RpcError::refused(format!(
                "at most {MAX_TERMINALS} terminals are open; release one first"
            )));
        };
        let (serving, running) = (Self { cancel, ..self.clone() }, terminal.clone());
        // The task ends with the command, which the token of the answer ends.
        self.inner.tasks.spawn(async move {
            let state = serving.run("bash", input, |state| running.record(state)).await;
            running.record(state);
        });
        match terminal.started().await {
            Ok(()) => json_of(&CreateTerminalResponse::new(id)),
            Err(reason) => {
                self.terminals.release(&id);
                Err(RpcError::refused(reason))
            }
        }
    }

    fn output(&self, id: &str) -> Result<Value, RpcError> {
        let output = self.terminal(id)?.output();
        json_of(&TerminalOutputResponse::new(output.text, output.is_truncated).exit_status(output.exit))
    }

    async fn wait_for_exit(&self, id: &str) -> Result<Value, RpcError> {
        let output = self.terminal(id)?.ended().await;
        json_of(&WaitForTerminalExitResponse::new(output.exit.unwrap_or_default()))
    }

    fn kill(&self, id: &str) -> Result<Value, RpcError> {
        self.terminal(id)?.cancel.cancel();
        Ok(json!({}))
    }

    fn release(&self, id: &str) -> Result<Value, RpcError> {
        if self.terminals.release(id) { Ok(json!({})) } else { Err(no_terminal(id)) }
    }

    fn terminal(&self, id: &str) -> Result<Arc<terminals::Terminal>, RpcError> {
        self.terminals.find(id).ok_or_else(|| no_terminal(id))
    }

    /// Asks for a permission of a call of the agent, with the rules of the session.
    pub(crate) async fn permission(
        self,
        request: RequestPermissionRequest,
        about: About,
        responder: Responder,
    ) {
        let granted = self.is_granted(&about).await;
        let outcome = match granted {
            Ok(true) => choice(&request, &GRANTED),
            Ok(false) | Err(Failure::Told(_)) => choice(&request, &REFUSED),
            Err(Failure::Aborted) => RequestPermissionOutcome::Cancelled,
        };
        responder.respond(json_of(&RequestPermissionResponse::new(outcome))).await;
    }

    async fn is_granted(&self, about: &About) -> Result<bool, Failure> {
        let call_id = about.call_id.clone();
        let tool = call_id.map(|call_id| ToolRef { message_id: self.message_id.clone(), call_id });
        let asker = Asker {
            held: None,
            hook_id: None,
            session_id: &self.session_id,
            instance: &self.instance,
            rules: &self.caller.rules,
            tool,
            cancel: &self.cancel,
        };
        let refused = |result: Result<(), String>| {
            if self.cancel.is_cancelled() { Err(Failure::Aborted) } else { Ok(result.is_ok()) }
        };
        if about.call.kind == ToolKind::Execute
            && let Some(command) = command(&about.call)
        {
            return refused(check_call(&self.inner, &asker, "bash", &json!({ "command": command })).await);
        }
        if about.call.kind == ToolKind::Read
            && let Some(location) = about.call.locations.first()
        {
            let input = json!({ "filePath": location.path.to_string_lossy() });
            return refused(check_call(&self.inner, &asker, "read", &input).await);
        }
        for ask in self.asks(&about.call) {
            gate(&self.inner, &ask, &asker).await?;
        }
        Ok(true)
    }

    /// The permissions for a call that none of our tools could make.
    fn asks(&self, call: &ToolCall) -> Vec<Ask> {
        let title = line(&call.title);
        let permission = match call.kind {
            ToolKind::Edit | ToolKind::Delete | ToolKind::Move => "edit".to_owned(),
            ToolKind::Fetch => "webfetch".to_owned(),
            ToolKind::Search => "grep".to_owned(),
            ToolKind::Read => "read".to_owned(),
            ToolKind::Execute => "bash".to_owned(),
            kind => format!("{}_{}", self.agent, kind_name(kind)),
        };
        let named =
            diffs(call).map(|diff| &diff.path).chain(call.locations.iter().map(|location| &location.path));
        let mut paths: Vec<_> =
            named.take(MAX_PATHS).map(|path| self.instance.directory.join(path)).collect();
        paths.dedup();
        let root = &self.instance.worktree.root;
        let mut asks = Vec::new();
        let mut patterns = Vec::new();
        for path in paths.iter().filter(|_| permission == "edit") {
            match path.strip_prefix(root) {
                Ok(inside) if !inside.components().any(|part| part.as_os_str() == "..") => {
                    patterns.push(inside.to_string_lossy().into_owned());
                }
                _ => {
                    let parent = path.parent().unwrap_or(path);
                    let pattern = format!("{}/*", parent.display());
                    asks.push(Ask::new("external_directory", vec![pattern]));
                    patterns.push(path.to_string_lossy().into_owned());
                }
            }
        }
        if patterns.is_empty() {
            patterns.push(if title.is_empty() { "*".to_owned() } else { title.clone() });
        }
        let mut ask = Ask::new(&permission, patterns).with("agent", self.agent.as_str()).with("title", title);
        if let Some(path) = paths.first() {
            ask = ask.with("filepath", path.to_string_lossy());
        }
        asks.push(ask);
        asks
    }

    /// Runs a tool to its end.
    async fn call(&self, tool: &str, input: Value) -> ToolState {
        self.run(tool, input, |_| {}).await
    }

    /// Runs a tool to its end, and reports its states.
    async fn run(&self, tool: &str, input: Value, report: impl Fn(ToolState)) -> ToolState {
        let (updates, mut received) = mpsc::channel::<CallUpdate>(PENDING_UPDATES);
        let offered = self.tools.iter().filter(|known| known.name() == tool).cloned().collect();
        let cx = CallCx {
            inner: self.inner.clone(),
            instance: self.instance.clone(),
            session_id: self.session_id.clone(),
            message_id: self.message_id.clone(),
            selection: Selection { offered, ..Selection::default() },
            caller: self.caller.clone(),
            updates,
            cancel: self.cancel.clone(),
            repeats: false,
            schema: None,
            files: Some(self.files.clone()),
            loaded: LoadedInstructions::default(),
            extensions: self.extensions.clone(),
            hook_id: None,
        };
        let id = format!("call_{:016x}", self.inner.ids.random());
        let call = Call { id, name: tool.to_owned(), arguments: input.to_string() };
        let read = async {
            let mut last = None;
            while let Some(update) = received.recv().await {
                if let Some(stored) = update.stored {
                    // The call may have ended. Nothing is stored, because the agent reports its calls.
                    let _: Result<(), ()> = stored.send(());
                }
                last = Some(update.state.clone());
                report(update.state);
            }
            last
        };
        let ((), last) = tokio::join!(cx.call(call), read);
        last.unwrap_or_else(ToolState::pending)
    }
}

/// The options that grant, the preferred one first.
const GRANTED: [PermissionOptionKind; 2] =
    [PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways];
/// The options that refuse, the preferred one first.
const REFUSED: [PermissionOptionKind; 2] =
    [PermissionOptionKind::RejectOnce, PermissionOptionKind::RejectAlways];

/// Returns the first of these options that the agent offers.
fn choice(request: &RequestPermissionRequest, kinds: &[PermissionOptionKind]) -> RequestPermissionOutcome {
    let mut chosen =
        kinds.iter().filter_map(|kind| request.options.iter().find(|option| option.kind == *kind));
    match chosen.next() {
        Some(option) => {
            RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
        }
        // The agent offers no way to state the decision.
        None => RequestPermissionOutcome::Cancelled,
    }
}

fn no_terminal(id: &str) -> RpcError {
    RpcError::invalid(format!("there is no terminal `{}`", line(id)))
}

fn json_of(value: &impl Serialize) -> Result<Value, RpcError> {
    serde_json::to_value(value).map_err(|error| RpcError::refused(error.to_string()))
}

/// The error of a call that has no result.
fn error_of(state: &ToolState) -> RpcError {
    match state {
        ToolState::Error { error, .. } if error.starts_with("File not found") => {
            RpcError { code: NOT_FOUND, message: error.clone() }
        }
        ToolState::Error { error, .. } => RpcError::refused(error.clone()),
        ToolState::Pending { .. } | ToolState::Running { .. } | ToolState::Completed { .. } => {
            RpcError::refused("the call has no result")
        }
    }
}
