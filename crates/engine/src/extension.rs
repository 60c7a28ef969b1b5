//! Extensions: plugins and command hooks that take part in the work of a directory.
//!
//! This is the one place at which they are called. A directory without extensions has an empty [`Extensions`], whose
//! functions return at once. An extension that fails never fails a turn: the failure is logged and shown once, and the
//! work continues with what the extension left.

pub(crate) mod events;
mod messages;
pub(crate) mod model_request;
pub(crate) mod moments;
pub(crate) mod open;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codewright_plugins::WorkspaceAdapter;
use codewright_proto::SessionId;
use codewright_tools::AnyTool;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The number of different failures of a directory that are reported.
const MAX_REPORTED: usize = 200;
/// Why a session has ended.
pub(crate) const ENDED_BY_PROGRAM: &str = "other";
/// See [`ENDED_BY_PROGRAM`].
pub(crate) const DELETED: &str = "clear";
/// The number of sessions whose end is reported when the program ends.
const MAX_ENDED: usize = 20;
/// The number of sessions whose start is remembered. The start of a forgotten session is reported again.
const MAX_STARTED: usize = 10_000;

pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A moment at which extensions are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Moment {
    ChatMessage,
    ChatParams,
    ChatHeaders,
    ToolDefinition,
    ToolBefore,
    ToolAfter,
    ShellEnv,
    CommandBefore,
    Messages,
    System,
    TextComplete,
    Compacting,
    AutoContinue,
    SmallModel,
    Permission,
    /// The first prompt of a session in this process. Not a hook of plugins, like those below.
    SessionStart,
    SessionEnd,
    /// A run has nothing left to do.
    Stop,
    SubagentStop,
    BeforeCompaction,
    /// A permission request or a question waits for the user.
    Notification,
}

impl Moment {
    /// Returns the name of the hook. The names of plugin hooks are those of the plugin interface.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ChatMessage => "chat.message",
            Self::ChatParams => "chat.params",
            Self::ChatHeaders => "chat.headers",
            Self::ToolDefinition => "tool.definition",
            Self::ToolBefore => "tool.execute.before",
            Self::ToolAfter => "tool.execute.after",
            Self::ShellEnv => "shell.env",
            Self::CommandBefore => "command.execute.before",
            Self::Messages => "experimental.chat.messages.transform",
            Self::System => "experimental.chat.system.transform",
            Self::TextComplete => "experimental.text.complete",
            Self::Compacting => "experimental.session.compacting",
            Self::AutoContinue => "experimental.compaction.autocontinue",
            Self::SmallModel => "experimental.provider.small_model",
            Self::Permission => "permission.ask",
            Self::SessionStart => "session.start",
            Self::SessionEnd => "session.end",
            Self::Stop => "stop",
            Self::SubagentStop => "subagent.stop",
            Self::BeforeCompaction => "compaction.before",
            Self::Notification => "notification",
        }
    }
}

/// One call of the extensions: a value that they read and a value that they may change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) moment: Moment,
    pub(crate) input: Value,
    pub(crate) output: Value,
}

/// The answer of one extension.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reply {
    /// The changed value.
    pub(crate) output: Value,
    /// The reason if the extension refuses the action. It counts only at moments before an action.
    pub(crate) refusal: Option<String>,
    /// Text that the extension adds for the model.
    pub(crate) context: Vec<String>,
    /// Answers a permission request in the place of the user. Only hooks of the user's own configuration do.
    pub(crate) grants: bool,
    pub(crate) failures: Vec<Failure>,
}

/// A failure of an extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The name of the plugin or hook.
    pub(crate) extension: String,
    pub(crate) message: String,
}

/// The author of an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    /// The user, or somebody whose code the user installed.
    User,
    /// A repository.
    Repository,
}

/// A source of hooks, tools and events: the plugin host of a directory, or its command hooks.
pub(crate) trait Extension: Send + Sync {
    /// Reports whether it has something to do at a moment. Nothing is built for moments that no extension takes.
    fn takes(&self, moment: Moment) -> bool;

    /// Handles a moment. It ends before a deadline of its own, and returns `call.output` unchanged if it fails.
    fn call(&self, call: Call) -> Boxed<'_, Reply>;

    /// The author of its code.
    fn author(&self) -> Author {
        Author::User
    }

    /// Reports whether it receives events.
    fn takes_events(&self) -> bool {
        false
    }

    /// Receives an event of the directory. Must not block; a surplus is dropped.
    fn event(&self, _event: &Arc<Value>) {}

    /// Returns the tools that it adds.
    fn tools(&self) -> Vec<Arc<dyn AnyTool>> {
        Vec::new()
    }

    /// Returns the workspace adapters that it has registered.
    fn workspaces(&self) -> Vec<WorkspaceAdapter> {
        Vec::new()
    }
}

/// The combined answer of all extensions.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Answer {
    pub(crate) output: Value,
    pub(crate) refusal: Option<String>,
    pub(crate) context: Vec<String>,
    /// Whether one of them answers a permission request in the place of the user.
    pub(crate) grants: bool,
}

/// Returns what counts of the output of a repository's extension, given the output that it received and its own.
type Admit<'a> = dyn Fn(&Value, Value) -> Value + Sync + 'a;

type Report = Box<dyn Fn(&Failure) + Send + Sync>;

/// The extensions of an open directory, in the order in which they are called. Clones share everything.
#[derive(Clone, Default)]
pub(crate) struct Extensions(Option<Arc<Opened>>);

struct Opened {
    all: Vec<Arc<dyn Extension>>,
    report: Report,
    /// The failures that were reported.
    reported: Mutex<BTreeSet<(String, &'static str)>>,
    /// The sessions whose start was reported.
    started: Mutex<BTreeSet<SessionId>>,
    /// Cancelled when the directory is closed or opened again with other extensions.
    closed: CancellationToken,
}

impl Extensions {
    /// Creates the extensions of a directory. `report` logs and shows a failure.
    pub(crate) fn new(all: Vec<Arc<dyn Extension>>, report: Report) -> Self {
        let (reported, started, closed) = (Mutex::default(), Mutex::default(), CancellationToken::new());
        let opened = Opened { all, report, reported, started, closed };
        Self((!opened.all.is_empty()).then(|| Arc::new(opened)))
    }

    /// Reports whether these are the extensions, in the same order.
    fn are(&self, all: &[Arc<dyn Extension>]) -> bool {
        let own = self.0.as_ref().map_or(&[][..], |opened| &opened.all);
        own.len() == all.len() && own.iter().zip(all).all(|(own, other)| Arc::ptr_eq(own, other))
    }

    /// Reports whether there are no extensions.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Reports whether an extension takes a moment.
    pub(crate) fn take(&self, moment: Moment) -> bool {
        self.0.iter().flat_map(|opened| &opened.all).any(|extension| extension.takes(moment))
    }

    /// Reports whether an extension receives events.
    pub(crate) fn take_events(&self) -> bool {
        self.0.iter().flat_map(|opened| &opened.all).any(|extension| extension.takes_events())
    }

    /// Returns the token that is cancelled when the extensions are closed.
    pub(crate) fn closed(&self) -> CancellationToken {
        self.0.as_ref().map(|opened| opened.closed.clone()).unwrap_or_default()
    }

    /// Returns the tools of all extensions.
    pub(crate) fn tools(&self) -> Vec<Arc<dyn AnyTool>> {
        self.0.iter().flat_map(|opened| &opened.all).flat_map(|extension| extension.tools()).collect()
    }

    /// Returns the workspace adapters of all extensions.
    pub(crate) fn workspaces(&self) -> Vec<WorkspaceAdapter> {
        let all = self.0.iter().flat_map(|opened| &opened.all);
        all.flat_map(|extension| extension.workspaces()).collect()
    }

    /// Sends an event to all extensions that receive events.
    pub(crate) fn event(&self, event: &Arc<Value>) {
        let all = self.0.iter().flat_map(|opened| &opened.all);
        all.filter(|extension| extension.takes_events()).for_each(|extension| extension.event(event));
    }

    /// Calls the extensions one after the other. Each receives the output of the one before it. A refusal ends the
    /// sequence.
    pub(crate) async fn call(&self, moment: Moment, input: Value, output: Value) -> Answer {
        self.call_limited(moment, input, output, None).await
    }

    /// Does the same. What the extensions of a repository return passes through `admit`, together with what they received.
    async fn call_limited(
        &self,
        moment: Moment,
        input: Value,
        output: Value,
        admit: Option<&Admit<'_>>,
    ) -> Answer {
        let mut answer = Answer { output, ..Answer::default() };
        let Some(opened) = &self.0 else { return answer };
        for extension in opened.all.iter().filter(|extension| extension.takes(moment)) {
            let admit = admit.filter(|_| extension.author() == Author::Repository);
            let before = admit.map(|_| answer.output.clone());
            let call = Call { moment, input: input.clone(), output: std::mem::take(&mut answer.output) };
            let reply = extension.call(call).await;
            answer.output = match (admit, &before) {
                (Some(admit), Some(before)) => admit(before, reply.output),
                _ => reply.output,
            };
            answer.context.extend(reply.context);
            answer.grants |= reply.grants;
            reply.failures.iter().for_each(|failure| opened.report(moment, failure));
            if reply.refusal.is_some() {
                answer.refusal = reply.refusal;
                break;
            }
        }
        answer
    }

    /// Reports a value of an extension that cannot be used.
    fn reject(&self, moment: Moment, message: String) {
        if let Some(opened) = &self.0 {
            opened.report(moment, &Failure { extension: "an extension".to_owned(), message });
        }
    }

    /// Reports whether this is the first call for a session.
    fn starts(&self, session: &SessionId) -> bool {
        let Some(opened) = &self.0 else { return false };
        let mut started = opened.started.lock().unwrap_or_else(PoisonError::into_inner);
        if started.len() >= MAX_STARTED {
            started.clear();
        }
        started.insert(session.clone())
    }

    /// Forgets that a session has started. Returns whether it had.
    fn ends(&self, session: &SessionId) -> bool {
        let Some(opened) = &self.0 else { return false };
        opened.started.lock().unwrap_or_else(PoisonError::into_inner).remove(session)
    }
}

impl Opened {
    /// Reports a failure once for each extension and moment.
    fn report(&self, moment: Moment, failure: &Failure) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.len() < MAX_REPORTED && reported.insert((failure.extension.clone(), moment.name())) {
            drop(reported);
            (self.report)(failure);
        }
    }
}

impl Extensions {
    /// The sessions that have started and not ended.
    fn started(&self) -> Vec<SessionId> {
        let Some(opened) = &self.0 else { return Vec::new() };
        opened.started.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// Whether extensions were opened just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IsNew {
    Yes,
    No,
}

/// The extensions of all directories in which they were opened.
#[derive(Default)]
pub(crate) struct ExtensionTable(Mutex<HashMap<PathBuf, Extensions>>);

impl ExtensionTable {
    /// Returns the extensions of a directory that are open.
    pub(crate) fn find(&self, directory: &Path) -> Extensions {
        self.lock().get(directory).cloned().unwrap_or_default()
    }

    /// Calls `session.end` for all sessions that have started, because the program ends.
    pub(crate) async fn end_all(&self) {
        let open: Vec<Extensions> = self.lock().values().cloned().collect();
        let ends = open.iter().flat_map(|extensions| {
            extensions.started().into_iter().map(move |session| async move {
                extensions.session_end(&session, ENDED_BY_PROGRAM).await;
            })
        });
        let ends: Vec<_> = ends.take(MAX_ENDED).collect();
        futures_util::future::join_all(ends).await;
    }

    /// Sets the extensions of a directory. Returns the known value if nothing has changed.
    pub(crate) fn set(
        &self,
        directory: &Path,
        all: Vec<Arc<dyn Extension>>,
        report: impl Fn(&Failure) + Send + Sync + 'static,
    ) -> (Extensions, IsNew) {
        let mut open = self.lock();
        let known = open.get(directory).cloned().unwrap_or_default();
        if known.are(&all) {
            return (known, IsNew::No);
        }
        known.closed().cancel();
        let extensions = Extensions::new(all, Box::new(report));
        if extensions.is_empty() {
            open.remove(directory);
        } else {
            open.insert(directory.to_owned(), extensions.clone());
        }
        (extensions, IsNew::Yes)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Extensions>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use codewright_llm::ToolSpec;
    use codewright_proto::{Clock, CreatedTime, Ids, Part, PartBody, PromptModel, TextPart, UserMessage};
    use codewright_tools::Output;
    use serde_json::json;

    use super::moments::{Rights, ToolCall};
    use super::*;

    type Act = fn(&Call) -> Reply;
    type Seen = Arc<Mutex<Vec<String>>>;

    /// An extension that applies a function to every moment.
    struct Fake {
        name: &'static str,
        seen: Seen,
        act: Act,
    }

    impl Extension for Fake {
        fn takes(&self, moment: Moment) -> bool {
            !matches!(moment, Moment::Permission | Moment::SessionStart)
        }

        fn call(&self, call: Call) -> Boxed<'_, Reply> {
            self.seen.lock().unwrap().push(format!("{} {}", self.name, call.moment.name()));
            Box::pin(async move { (self.act)(&call) })
        }
    }

    fn extensions(acts: &[(&'static str, Act)]) -> (Extensions, Seen) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let fake = |(name, act): &(&'static str, Act)| -> Arc<dyn Extension> {
            Arc::new(Fake { name, seen: seen.clone(), act: *act })
        };
        let all = acts.iter().map(fake).collect();
        let reported = seen.clone();
        let report = move |failure: &Failure| {
            reported.lock().unwrap().push(format!("report {}: {}", failure.extension, failure.message));
        };
        (Extensions::new(all, Box::new(report)), seen)
    }

    fn text(call: &Call, key: &str) -> String {
        call.output[key].as_str().unwrap_or_default().to_owned()
    }

    fn appends(call: &Call) -> Reply {
        let changed = text(call, "output") + "+";
        Reply { output: json!({ "output": changed }), ..Reply::default() }
    }

    fn fails(call: &Call) -> Reply {
        let failure = Failure { extension: "bad".to_owned(), message: "broke".to_owned() };
        Reply { output: call.output.clone(), failures: vec![failure], ..Reply::default() }
    }

    fn refuses(call: &Call) -> Reply {
        Reply { output: call.output.clone(), refusal: Some("no".to_owned()), ..Reply::default() }
    }

    fn session() -> SessionId {
        Ids::seeded(Clock::stepping(1, 1), 1).session()
    }

    fn call(session: &SessionId) -> ToolCall<'_> {
        ToolCall { tool: "read", session, call_id: "c" }
    }

    #[tokio::test]
    async fn each_extension_receives_the_output_of_the_one_before() {
        let (extensions, seen) = extensions(&[("a", appends), ("b", appends)]);
        let session = session();
        let output = Output { title: "t".to_owned(), ..Output::new("t", "x") };
        let after = extensions.tool_after(call(&session), &json!({}), output).await;
        assert_eq!((after.output.as_str(), after.title.as_str()), ("x++", "t"));
        assert_eq!(*seen.lock().unwrap(), ["a tool.execute.after", "b tool.execute.after"]);
    }

    #[tokio::test]
    async fn a_failure_is_reported_once_and_the_next_extension_runs() {
        let (extensions, seen) = extensions(&[("a", fails), ("b", appends)]);
        let session = session();
        for _ in 0..2 {
            let after = extensions.tool_after(call(&session), &json!({}), Output::new("", "x")).await;
            assert_eq!(after.output, "x+");
        }
        let seen = seen.lock().unwrap();
        assert_eq!(seen.iter().filter(|line| *line == "report bad: broke").count(), 1, "{seen:?}");
    }

    #[tokio::test]
    async fn a_refusal_ends_the_sequence() {
        let (extensions, seen) = extensions(&[("a", refuses), ("b", appends)]);
        let session = session();
        let refused = extensions.tool_before(call(&session), json!({})).await;
        assert_eq!(refused, Err("no".to_owned()));
        assert_eq!(*seen.lock().unwrap(), ["a tool.execute.before"]);
    }

    #[tokio::test]
    async fn without_extensions_nothing_changes() {
        let (none, session) = (Extensions::default(), session());
        assert_eq!(none.tool_before(call(&session), json!({"a": 1})).await, Ok(json!({"a": 1})));
        assert_eq!(none.shell_env(Path::new("/"), None, None, Rights::Own).await, []);
        let mut specs = [ToolSpec { name: "t".into(), description: "d".into(), parameters: json!({}) }];
        none.tool_definitions(&mut specs, |_| true).await;
        assert_eq!(specs[0].description, "d");
    }

    #[tokio::test]
    async fn a_changed_prompt_keeps_its_ids_and_an_unusable_change_is_left_out() {
        let ids = Ids::seeded(Clock::stepping(1, 1), 1);
        let message = UserMessage {
            id: ids.message(),
            session_id: ids.session(),
            time: CreatedTime { created: 1 },
            format: None,
            summary: None,
            agent: "build".into(),
            model: PromptModel { provider_id: "p".into(), model_id: "m".into(), variant: None },
            system: None,
            tools: None,
        };
        let body = PartBody::Text(TextPart { text: "hi".into(), ..TextPart::default() });
        let (session_id, message_id) = (message.session_id.clone(), message.id.clone());
        let part = Part { id: ids.part(), session_id, message_id, body: body.clone() };
        let good = |call: &Call| {
            let mut output = call.output.clone();
            output["message"]["id"] = "msg_other".into();
            output["message"]["system"] = "s".into();
            output["parts"].as_array_mut().unwrap().push(json!({"type": "text", "text": "more"}));
            Reply { output, ..Reply::default() }
        };
        let bad = |call: &Call| {
            let mut output = call.output.clone();
            output["parts"] = json!([{"type": "nonsense"}]);
            Reply { output, ..Reply::default() }
        };
        let (extended, _) = extensions(&[("a", good)]);
        let (changed, parts) =
            extended.chat_message(None, message.clone(), vec![part.clone()]).await.unwrap();
        assert_eq!((changed.id.clone(), changed.system.as_deref()), (message.id.clone(), Some("s")));
        assert_eq!((parts.len(), parts[0].0.as_ref()), (2, Some(&part.id)));
        let (broken, seen) = extensions(&[("a", bad)]);
        let (_, parts) = broken.chat_message(None, message, vec![part.clone()]).await.unwrap();
        assert_eq!(parts, vec![(Some(part.id), body)]);
        assert!(seen.lock().unwrap().iter().any(|line| line.contains("cannot be used")));
    }
}
