//! Runs the hooks of a directory at the moments of its sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use codewright_config::SandboxMode;
use codewright_proto::{SessionId, Signal, Toast, ToastVariant};
use futures_util::stream::{self, StreamExt as _};
use serde_json::{Map, Value, json};

use super::answer::{HookEnd, Outcome, Verdict};
use super::process::{self, Log, Start};
use super::{Author, Hook, HookEvent, List, own_input, tool_input, tool_names};
use crate::extension::{Boxed, Call, Extension, Failure, Moment, Reply};
use crate::inner::Inner;
use crate::instance::Instance;
use crate::journal::Level;
use crate::run::stop::stop;
use crate::sandbox::prepared::{Origin, Prepared, Wanted, prepare};

/// The number of hooks that run at the same time for one event.
const MAX_PARALLEL: usize = 8;
/// The number of calls whose arguments are remembered for permission requests.
const MAX_CALLS: usize = 1000;
/// The longest time of a hook at the end of a session, because the program may be ending.
const END_DEADLINE: Duration = Duration::from_secs(5);
/// The largest input of a hook. Longer texts in it are cut.
const MAX_INPUT_TEXT_BYTES: usize = 1024 * 1024;

/// The hooks of an open directory.
pub(crate) struct CommandHooks {
    hooks: List,
    inner: Weak<Inner>,
    instance: Weak<Instance>,
    calls: Mutex<HashMap<String, KnownCall>>,
}

/// A call before which hooks ran.
struct KnownCall {
    tool: String,
    input: Value,
    /// What the hooks decided about its permission requests.
    verdict: Option<Verdict>,
}

/// What happens at an event.
struct Occasion {
    event: HookEvent,
    /// The names that matchers are compared with.
    names: Vec<String>,
    session: Option<SessionId>,
    /// The fields of the input besides the common ones.
    fields: Value,
}

impl CommandHooks {
    pub(crate) fn new(hooks: &List, inner: &Arc<Inner>, instance: &Arc<Instance>) -> Self {
        Self {
            hooks: hooks.clone(),
            inner: Arc::downgrade(inner),
            instance: Arc::downgrade(instance),
            calls: Mutex::default(),
        }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, KnownCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the hooks of an event and ends the turn if one of them says so.
    async fn fire(&self, occasion: Occasion) -> (Outcome, Vec<Failure>) {
        let (Some(inner), Some(instance)) = (self.inner.upgrade(), self.instance.upgrade()) else {
            return (Outcome::default(), Vec::new());
        };
        let Occasion { event, names, session, fields } = occasion;
        let mut input = json!({
            "session_id": session,
            "cwd": instance.directory,
            "hook_event_name": event.name(),
            "permission_mode": "default",
        });
        if let (Some(input), Value::Object(fields)) = (input.as_object_mut(), fields) {
            input.extend(fields);
        }
        let input = Arc::new(input.to_string().into_bytes());
        let hooks: Vec<Hook> = self.hooks.of(event, &names).into_iter().cloned().collect();
        let run = |hook: Hook| {
            let (inner, instance, input) = (inner.clone(), instance.clone(), input.clone());
            async move {
                let end = match start(&inner, &instance, &hook).await {
                    Ok(start) => process::run(start, input, &inner.tasks, log(&inner, &instance)).await,
                    Err(reason) => HookEnd::Failed(reason),
                };
                (hook, end)
            }
        };
        let (mut outcome, mut failures) = (Outcome::default(), Vec::new());
        let mut ends = stream::iter(hooks.into_iter().map(run)).buffered(MAX_PARALLEL);
        while let Some((hook, end)) = ends.next().await {
            let known = outcome.notices.len();
            let shown: String = hook.command.lines().next().unwrap_or_default().chars().take(60).collect();
            let is_answer = matches!(&end, HookEnd::Exited { code: 0, stdout, .. } if said(stdout));
            outcome.add(event, hook.author, end);
            if !is_answer {
                let failed = outcome.notices.split_off(known);
                let failure = |message| Failure { extension: format!("hook `{shown}`"), message };
                failures.extend(failed.into_iter().map(failure));
            }
        }
        for message in std::mem::take(&mut outcome.notices) {
            let toast = Toast { message, variant: ToastVariant::Info, ..Toast::default() };
            inner.store.signal(Signal::TuiToastShow { directory: instance.directory_text(), toast });
        }
        if let (Some(_), Some(session), false) = (&outcome.stop, session, is_end(event)) {
            // Not awaited: the turn waits for this hook.
            let stopping = inner.clone();
            inner.tasks.spawn(async move { stop(&stopping, &session).await.map(drop).ok() });
        }
        (outcome, failures)
    }

    /// Runs the hooks before a call.
    async fn tool_before(&self, mut call: Call) -> Reply {
        let (tool, args) = (text(&call.input["tool"]), call.output["args"].clone());
        let names = self.names(&tool);
        let (outcome, failures) = self
            .fire(Occasion {
                event: HookEvent::PreToolUse,
                session: session(&call.input),
                fields: json!({
                    "tool_name": names.first(),
                    "tool_input": tool_input(&args),
                    "tool_use_id": call.input["callID"],
                }),
                names,
            })
            .await;
        let mut refusal = outcome.blocked().map(str::to_owned);
        let args = match outcome.input {
            Some(changed) => own_input(changed, &args),
            None => args,
        };
        call.output["args"] = args.clone();
        let verdict = outcome.verdict.filter(|_| refusal.is_none());
        if verdict.is_some() || self.hooks.has(HookEvent::PermissionRequest) {
            let mut calls = self.calls();
            if calls.len() >= MAX_CALLS {
                // Those of calls that have ended.
                calls.retain(|_, call| call.verdict == Some(Verdict::Ask));
            }
            if calls.len() >= MAX_CALLS {
                refusal.get_or_insert_with(|| "Too many calls wait for hooks.".to_owned());
            } else {
                calls.insert(text(&call.input["callID"]), KnownCall { tool, input: args, verdict });
            }
        }
        Reply { output: call.output, refusal, failures, ..Reply::default() }
    }

    /// Runs the hooks after a call. The reason of a hook that blocks is added to the output.
    async fn tool_after(&self, call: Call) -> Reply {
        let tool = text(&call.input["tool"]);
        self.calls().remove(&text(&call.input["callID"]));
        let names = self.names(&tool);
        let mut response = call.output.clone();
        if let Some(output) = response["output"].as_str() {
            let output = shortened(output);
            response["stdout"] = output.clone().into();
            response["output"] = output.into();
        }
        if let Some(response) = response.as_object_mut() {
            response.remove("attachments");
        }
        let (outcome, failures) = self
            .fire(Occasion {
                event: HookEvent::PostToolUse,
                session: session(&call.input),
                fields: json!({
                    "tool_name": names.first(),
                    "tool_input": tool_input(&call.input["args"]),
                    "tool_response": response,
                    "tool_use_id": call.input["callID"],
                }),
                names,
            })
            .await;
        let blocked = outcome.blocked().map(str::to_owned);
        let context = blocked.into_iter().chain(outcome.contexts).collect();
        Reply { output: call.output, context, failures, ..Reply::default() }
    }

    /// Runs the hooks before the user is asked. Without a question only the decision before the call counts.
    async fn permission(&self, mut call: Call) -> Reply {
        let id = text(&call.input["tool"]["callID"]);
        let known = {
            let calls = self.calls();
            calls.get(&id).map(|known| (known.tool.clone(), known.input.clone(), known.verdict))
        };
        let before = known.as_ref().and_then(|(_, _, verdict)| *verdict);
        let is_asked = call.output["status"] == "ask";
        if !is_asked {
            if before == Some(Verdict::Ask) {
                call.output["status"] = "ask".into();
            }
            return Reply { output: call.output, ..Reply::default() };
        }
        let grants = before == Some(Verdict::Allow);
        if !self.hooks.has(HookEvent::PermissionRequest) {
            return Reply { output: call.output, grants, ..Reply::default() };
        }
        let (tool, input) = match known {
            Some((tool, input, _)) => (tool, input),
            None => (text(&call.input["permission"]), json!({ "patterns": call.input["patterns"] })),
        };
        let names = self.names(&tool);
        let (outcome, failures) = self
            .fire(Occasion {
                event: HookEvent::PermissionRequest,
                session: session(&call.input),
                fields: json!({
                    "tool_name": names.first(),
                    "tool_input": tool_input(&input),
                    "permission": call.input["permission"],
                    "patterns": call.input["patterns"],
                }),
                names,
            })
            .await;
        let refusal = outcome.blocked().map(str::to_owned);
        let grants = outcome.verdict.map_or(grants, |verdict| verdict == Verdict::Allow);
        Reply { output: call.output, refusal, failures, grants, ..Reply::default() }
    }

    /// Runs the hooks of a prompt.
    async fn prompt(&self, call: Call) -> Reply {
        let parts = call.output["parts"].as_array().into_iter().flatten();
        let written = parts.filter(|part| part["type"] == "text" && part["synthetic"] != true);
        let prompt: Vec<&str> = written.filter_map(|part| part["text"].as_str()).collect();
        let fields = json!({ "prompt": shortened(&prompt.join("\n")) });
        self.simple(HookEvent::UserPromptSubmit, call, fields, Vec::new()).await
    }

    /// Runs the hooks of an event that can be refused and adds their texts.
    async fn simple(&self, event: HookEvent, call: Call, fields: Value, names: Vec<String>) -> Reply {
        let session = session(&call.input);
        let (outcome, failures) = self.fire(Occasion { event, names, session, fields }).await;
        // A hook that ends the turn does not continue it.
        let refusal = match (event, &outcome.stop) {
            (HookEvent::Stop | HookEvent::SubagentStop, Some(_)) => None,
            _ => outcome.blocked().map(str::to_owned),
        };
        Reply { output: call.output, refusal, context: outcome.contexts, failures, ..Reply::default() }
    }

    /// Runs the hooks of a notification without making other events wait.
    fn notify(self: &Arc<Self>, call: &Call) {
        let Some(inner) = self.inner.upgrade() else { return };
        let kind = text(&call.input["type"]);
        let (message, name) = match kind.as_str() {
            "permission" => {
                let permission = text(&call.input["request"]["permission"]);
                (format!("Codewright needs your permission for {permission}"), "permission_prompt")
            }
            _ => ("Codewright asks you a question".to_owned(), "elicitation_dialog"),
        };
        let occasion = Occasion {
            event: HookEvent::Notification,
            names: vec![name.to_owned()],
            session: session(&call.input),
            fields: json!({ "message": message, "notification_type": name }),
        };
        let hooks = Arc::clone(self);
        let cancel = inner.cancel.clone();
        inner.tasks.spawn(async move {
            cancel.run_until_cancelled(hooks.fire(occasion)).await;
        });
    }

    /// The names of a tool, that of Claude Code first.
    fn names(&self, tool: &str) -> Vec<String> {
        let mut names = tool_names(tool);
        let servers = self.instance.upgrade().map(|instance| instance.mcp.clone());
        for (server, _) in servers.iter().flat_map(|servers| servers.iter()) {
            if let Some(rest) = tool.strip_prefix(server.as_str()).and_then(|rest| rest.strip_prefix('_')) {
                names.insert(0, format!("mcp__{server}__{rest}"));
            }
        }
        names
    }

    async fn session_start(&self, call: Call) -> Reply {
        let is_new = match (self.inner.upgrade(), session(&call.input)) {
            (Some(inner), Some(session)) => {
                inner.store.messages(&session, Some(1)).await.is_ok_and(|messages| messages.is_empty())
            }
            _ => true,
        };
        let source = if is_new { "startup" } else { "resume" };
        self.simple(HookEvent::SessionStart, call, json!({ "source": source }), vec![source.to_owned()]).await
    }
}

/// The hooks of a directory as an extension.
pub(crate) struct HookExtension(pub(crate) Arc<CommandHooks>);

impl Extension for HookExtension {
    fn takes(&self, moment: Moment) -> bool {
        let hooks = &self.0.hooks;
        match moment {
            Moment::ToolBefore => hooks.has(HookEvent::PreToolUse) || hooks.has(HookEvent::PermissionRequest),
            Moment::Permission => hooks.has(HookEvent::PreToolUse) || hooks.has(HookEvent::PermissionRequest),
            moment => event_of(moment).is_some_and(|event| hooks.has(event)),
        }
    }

    fn call(&self, call: Call) -> Boxed<'_, Reply> {
        let hooks = &self.0;
        Box::pin(async move {
            match call.moment {
                Moment::ToolBefore => hooks.tool_before(call).await,
                Moment::ToolAfter => hooks.tool_after(call).await,
                Moment::Permission => hooks.permission(call).await,
                Moment::ChatMessage => hooks.prompt(call).await,
                Moment::SessionStart => hooks.session_start(call).await,
                Moment::Notification => {
                    hooks.notify(&call);
                    Reply { output: call.output, ..Reply::default() }
                }
                moment => match event_of(moment) {
                    Some(event) => {
                        let (fields, names) = fields(event, &call.input);
                        hooks.simple(event, call, fields, names).await
                    }
                    None => Reply { output: call.output, ..Reply::default() },
                },
            }
        })
    }
}

/// The event of a moment.
fn event_of(moment: Moment) -> Option<HookEvent> {
    match moment {
        Moment::SessionStart => Some(HookEvent::SessionStart),
        Moment::SessionEnd => Some(HookEvent::SessionEnd),
        Moment::ChatMessage => Some(HookEvent::UserPromptSubmit),
        Moment::ToolBefore => Some(HookEvent::PreToolUse),
        Moment::ToolAfter => Some(HookEvent::PostToolUse),
        Moment::Permission => Some(HookEvent::PermissionRequest),
        Moment::Notification => Some(HookEvent::Notification),
        Moment::Stop => Some(HookEvent::Stop),
        Moment::SubagentStop => Some(HookEvent::SubagentStop),
        Moment::BeforeCompaction => Some(HookEvent::PreCompact),
        Moment::ChatParams
        | Moment::ChatHeaders
        | Moment::ToolDefinition
        | Moment::ShellEnv
        | Moment::CommandBefore
        | Moment::Messages
        | Moment::System
        | Moment::TextComplete
        | Moment::Compacting
        | Moment::AutoContinue
        | Moment::SmallModel => None,
    }
}

/// The fields and the matched names of the other events.
fn fields(event: HookEvent, input: &Value) -> (Value, Vec<String>) {
    match event {
        HookEvent::Stop | HookEvent::SubagentStop => {
            let repeats = input["repeats"].as_u64().unwrap_or_default();
            (json!({ "stop_hook_active": repeats > 0 }), Vec::new())
        }
        HookEvent::PreCompact => {
            let trigger = input["trigger"].as_str().unwrap_or("auto");
            (json!({ "trigger": trigger, "custom_instructions": "" }), vec![trigger.to_owned()])
        }
        HookEvent::SessionEnd => {
            let reason = input["reason"].as_str().unwrap_or("clear");
            (json!({ "reason": reason }), vec![reason.to_owned()])
        }
        HookEvent::SessionStart
        | HookEvent::UserPromptSubmit
        | HookEvent::PreToolUse
        | HookEvent::PostToolUse
        | HookEvent::PermissionRequest
        | HookEvent::Notification => (Value::Object(Map::new()), Vec::new()),
    }
}

/// Returns the hooks of a directory as an extension. The value is the same while the directory stays open.
pub(crate) fn extension(inner: &Arc<Inner>, instance: &Arc<Instance>) -> Option<Arc<dyn Extension>> {
    if instance.hooks.list().is_empty() {
        return None;
    }
    let create = || -> Arc<dyn Extension> {
        Arc::new(HookExtension(Arc::new(CommandHooks::new(instance.hooks.list(), inner, instance))))
    };
    Some(instance.hooks.opened.get_or_init(create).clone())
}

/// The variables with the root of the project.
const PROJECT: [&str; 2] = ["CLAUDE_PROJECT_DIR", "CODEWRIGHT_PROJECT_DIR"];

/// Prepares the start of a hook. A hook of a repository has the sandbox of a repository's programs.
async fn start(inner: &Arc<Inner>, instance: &Arc<Instance>, hook: &Hook) -> Result<Start, String> {
    let (shared, of, author) = (inner.clone(), instance.clone(), hook.author);
    let root = instance.programs.root().display().to_string();
    // What a hook runs is decided with the variables that name the project.
    let line = PROJECT.iter().fold(hook.command.clone(), |line, name| {
        line.replace(&format!("${{{name}}}"), &root).replace(&format!("${name}"), &root)
    });
    let preparing = tokio::task::spawn_blocking(move || {
        let args = ["-c".to_owned(), line];
        let wanted = Wanted {
            program: "/bin/sh",
            args: &args,
            cwd: Some(&of.directory),
            directory: &of.directory,
            origin: if author == Author::Repository { Origin::Repository } else { Origin::User },
            write: &[],
            required: SandboxMode::Off,
        };
        prepare(&shared, &of, wanted)
    });
    let prepared = preparing.await.unwrap_or_else(|error| Err(error.to_string()))?;
    let Prepared { directory, env, env_remove, sandbox, .. } = prepared;
    let own = PROJECT.iter().map(|name| ((*name).to_owned(), root.clone()));
    let deadline = if is_end(hook.event) { hook.deadline.min(END_DEADLINE) } else { hook.deadline };
    Ok(Start {
        command: hook.command.clone(),
        directory,
        env: env.into_iter().chain(own).collect(),
        env_remove,
        confinement: inner.confinement.clone(),
        sandbox,
        deadline,
    })
}

/// Returns the log for what the sandbox reports about a hook.
fn log(inner: &Arc<Inner>, instance: &Instance) -> Log {
    let (inner, about) = (Arc::downgrade(inner), json!({ "directory": instance.directory_text() }));
    Box::new(move |text| {
        let Some(inner) = inner.upgrade() else { return };
        let (journal, text, about) = (inner.journal.clone(), text.to_owned(), about.clone());
        inner.tasks.spawn(async move { journal.note(Level::Info, "hook", &text, Some(about)).await });
    })
}

fn is_end(event: HookEvent) -> bool {
    event == HookEvent::SessionEnd
}

/// Whether an output is a valid answer, whose messages are not failures.
fn said(stdout: &str) -> bool {
    let answer: Result<Value, _> = serde_json::from_str(stdout.trim());
    answer.is_ok_and(|answer| answer["systemMessage"].is_string())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn session(input: &Value) -> Option<SessionId> {
    SessionId::parse(input["sessionID"].as_str()?).ok()
}

fn shortened(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_INPUT_TEXT_BYTES);
    text[..end].to_owned()
}
