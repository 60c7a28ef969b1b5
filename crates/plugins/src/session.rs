//! A running process with its plugins.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::Failure;
use crate::connection::{Connection, Sent};
use crate::host::ToolPort;
use crate::inbox::Inbox;
use crate::protocol::{HookCall, HookFailure, HookParams, HookReply, HookResult, Loaded, ToolCall};
use crate::stream::FetchResponse;

/// The time in addition to the limit of a plugin. The process itself reports a plugin that is late, unless it is blocked.
const GRACE: Duration = Duration::from_secs(2);
/// The interval at which a process that runs a tool is asked whether it still answers.
const PING_EVERY: Duration = Duration::from_secs(10);
/// The time until an aborted tool call is abandoned.
const ABORT_GRACE: Duration = Duration::from_secs(1);
/// The time until a plugin's own `fetch` has the head of a response.
const FETCH_LIMIT: Duration = Duration::from_secs(300);
/// A hook that no plugin has. Its answer shows that the process is not blocked.
const PING: &str = "codewright.ping";
/// The hook that receives events.
const EVENT: &str = "event";
/// The hook before a tool call, which can refuse it.
const BEFORE_CALL: &str = "tool.execute.before";

/// Whether a hook did not end in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IsLate {
    Yes,
    No,
}

/// A request of a provider that a plugin sends.
#[derive(Debug, Clone)]
pub struct FetchRequest<'a> {
    /// The handle of the plugin's function.
    pub handle: &'a str,
    /// The address.
    pub url: &'a str,
    /// The method.
    pub method: &'a str,
    /// The headers.
    pub headers: &'a [(String, String)],
    /// The body.
    pub body: &'a [u8],
}

/// What a process has loaded.
pub(crate) struct Plan {
    pub(crate) loaded: Vec<Loaded>,
    pub(crate) names: Vec<String>,
    pub(crate) generation: u64,
    pub(crate) hook_limit: Duration,
}

/// A process that has loaded its plugins.
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) loaded: Vec<Loaded>,
    /// The names of all plugins by their position.
    pub(crate) names: Vec<String>,
    pub(crate) generation: u64,
    hook_limit: Duration,
    /// The hooks that were too slow and are not called again.
    slow: Mutex<BTreeSet<(usize, String)>>,
    /// The plugin that blocked the process.
    pub(crate) blocked: Mutex<Option<usize>>,
    last_call: AtomicU64,
    dropped: AtomicU64,
    is_checking: AtomicBool,
}

/// Forgets which plugin ran for a request, unless the process has ended, because the plugin may be the reason.
struct Position<'a> {
    session: &'a Session,
    request: u64,
}

impl Drop for Position<'_> {
    fn drop(&mut self) {
        if !self.session.connection.is_closed() {
            self.session.inbox.forget(self.request);
        }
    }
}

/// Aborts a tool call that nobody waits for.
struct Abort<'a> {
    session: &'a Session,
    call: String,
    is_over: bool,
}

impl Drop for Abort<'_> {
    fn drop(&mut self) {
        self.session.inbox.remove_port(&self.call);
        if !self.is_over {
            self.session.connection.notify("tool.abort", &json!({ "call": self.call }));
        }
    }
}

#[derive(Deserialize)]
struct FetchHead {
    status: u16,
    headers: Vec<(String, String)>,
}

impl Session {
    pub(crate) fn new(connection: Connection, inbox: Arc<Inbox>, plan: Plan) -> Self {
        let Plan { loaded, names, generation, hook_limit } = plan;
        Self {
            connection,
            inbox,
            loaded,
            names,
            generation,
            hook_limit,
            slow: Mutex::default(),
            blocked: Mutex::default(),
            last_call: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            is_checking: AtomicBool::new(false),
        }
    }

    /// Returns the plugins that have a hook.
    fn with_hook<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Loaded> {
        self.loaded.iter().filter(move |loaded| loaded.hooks.iter().any(|hook| hook == name))
    }

    pub(crate) fn has_hook(&self, name: &str) -> bool {
        self.with_hook(name).next().is_some()
    }

    fn plugin(&self, index: usize) -> String {
        self.names.get(index).cloned().unwrap_or_else(|| format!("plugin {index}"))
    }

    /// Calls a hook of the plugins, one after the other.
    pub(crate) async fn hook(&self, call: HookCall<'_>) -> HookReply {
        let slow = {
            let slow = self.slow.lock().unwrap_or_else(PoisonError::into_inner);
            let of_hook = slow.iter().filter(|(_, hook)| hook == call.name);
            of_hook.map(|(index, _)| *index).collect::<BTreeSet<_>>()
        };
        let is_called = |index: &usize| !slow.contains(index) && call.only.is_none_or(|only| only == *index);
        let called: BTreeSet<usize> =
            self.with_hook(call.name).map(|loaded| loaded.index).filter(is_called).collect();
        if called.is_empty() {
            return HookReply::default();
        }
        let all = self.loaded.iter().map(|loaded| loaded.index);
        let skip = all.filter(|index| !called.contains(index)).collect();
        let params = HookParams { name: call.name, input: call.input, output: call.output, skip };
        let answer = match self.connection.send("hook", &params) {
            Ok(sent) => self.watched(sent).await,
            Err(failure) => Err(failure),
        };
        let parsed = answer.and_then(|answer| {
            serde_json::from_str::<HookResult>(answer.get())
                .map_err(|error| Failure::Refused(format!("the answer cannot be read: {error}")))
        });
        match parsed {
            Ok(result) => self.reply(call.name, result),
            // A guard that blocks the process has not allowed the call.
            Err(Failure::Blocked) if call.name == BEFORE_CALL => {
                self.failed(&called, IsLate::Yes, &Failure::Blocked)
            }
            // The owner of the process reports its end.
            Err(Failure::Closed | Failure::Blocked) => HookReply::default(),
            Err(failure) => self.failed(&called, IsLate::No, &failure),
        }
    }

    /// The reply of plugins that could not be called.
    fn failed(&self, called: &BTreeSet<usize>, is_late: IsLate, failure: &Failure) -> HookReply {
        let culprit = *self.blocked.lock().unwrap_or_else(PoisonError::into_inner);
        let culprit = culprit.filter(|_| is_late == IsLate::Yes);
        let plugins: Vec<String> = match culprit {
            Some(index) => vec![self.plugin(index)],
            None => called.iter().map(|index| self.plugin(*index)).collect(),
        };
        let plugin = plugins.join(", ");
        let reason = format!("{plugin}: {failure}");
        let (message, is_late) = (failure.to_string(), is_late == IsLate::Yes);
        let failure = HookFailure { plugin, message, reason, is_thrown: false, is_late };
        HookReply { failures: vec![failure], ..HookReply::default() }
    }

    fn reply(&self, name: &str, result: HookResult) -> HookReply {
        let mut slow = self.slow.lock().unwrap_or_else(PoisonError::into_inner);
        let failures = result.failures.into_iter().map(|failure| {
            let reason = failure.message;
            let mut message = match failure.place.text() {
                Some(place) => format!("{reason} ({place})"),
                None => reason.clone(),
            };
            // A guard is called again, because calls must not pass without it.
            if failure.timeout && name != BEFORE_CALL {
                slow.insert((failure.index, name.to_owned()));
                message.push_str("; it is not called again");
            }
            let plugin = self.plugin(failure.index);
            HookFailure { plugin, message, reason, is_thrown: failure.thrown, is_late: failure.timeout }
        });
        let failures = failures.collect();
        HookReply { input: result.input, output: result.output, agents: result.agents, failures }
    }

    /// Waits for the answer of a request during which plugins run one after the other, each with its own limit.
    async fn watched(&self, mut sent: Sent) -> Result<Box<RawValue>, Failure> {
        let request = sent.id;
        let _position = Position { session: self, request };
        let begun = std::time::Instant::now();
        loop {
            let position = self.inbox.position(request);
            let since = position.map_or(begun, |(_, since)| since);
            let until = Instant::from_std(since + self.hook_limit + GRACE);
            if let Ok(answer) = timeout_at(until, sent.answer()).await {
                return answer;
            }
            if self.inbox.position(request) == position {
                return Err(self.block(position.map(|(index, _)| index)));
            }
        }
    }

    /// Ends the process because it does not answer. `index` is the plugin that runs, if it is known.
    fn block(&self, index: Option<usize>) -> Failure {
        let mut blocked = self.blocked.lock().unwrap_or_else(PoisonError::into_inner);
        if blocked.is_none() {
            *blocked = index;
        }
        self.connection.fail("it does not answer".to_owned());
        Failure::Blocked
    }

    /// Sends an event to the plugins that receive events.
    pub(crate) fn event(&self, event: &Value) {
        self.inbox.activity.notify_one();
        if !self.connection.notify_if_idle("event", &json!({ "event": event }))
            && self.dropped.fetch_add(1, Ordering::Relaxed) == 0
        {
            let text = "events come faster than the plugins read them; some are left out";
            self.inbox.log(crate::Level::Warn, None, text);
        }
    }

    /// Runs a tool. It is aborted if `cancel` is cancelled.
    pub(crate) async fn execute(
        &self,
        call: &ToolCall,
        port: Arc<dyn ToolPort>,
        cancel: &CancellationToken,
    ) -> Result<Value, Failure> {
        let id = format!("call-{}", self.last_call.fetch_add(1, Ordering::Relaxed));
        self.inbox.add_port(&id, port);
        let mut abort = Abort { session: self, call: id.clone(), is_over: false };
        let params = json!({
            "index": call.index, "tool": call.tool, "args": call.args, "context": call.context, "call": id,
        });
        let mut sent = self.connection.send("tool.execute", &params)?;
        let _position = Position { session: self, request: sent.id };
        self.inbox.enter(sent.id, call.index);
        let answer = loop {
            tokio::select! {
                answer = sent.answer() => break answer,
                () = cancel.cancelled() => {
                    self.connection.notify("tool.abort", &json!({ "call": id }));
                    break timeout(ABORT_GRACE, sent.answer()).await.unwrap_or(Err(Failure::Closed));
                }
                () = tokio::time::sleep(PING_EVERY) => self.ping(call.index).await?,
            }
        };
        abort.is_over = true;
        value(&answer?)
    }

    /// Ends the process if a plugin blocks it while it handles events, unless a check is running.
    pub(crate) async fn check(&self) {
        if self.is_checking.swap(true, Ordering::Relaxed) {
            return;
        }
        let with_events: Vec<usize> = self.with_hook(EVENT).map(|loaded| loaded.index).collect();
        if let Err(Failure::Blocked) = self.answers().await {
            self.block(match with_events.as_slice() {
                [index] => Some(*index),
                _ => None,
            });
        }
        self.is_checking.store(false, Ordering::Relaxed);
    }

    /// Asks the process whether it still answers.
    async fn answers(&self) -> Result<(), Failure> {
        let nothing = Value::Null;
        let params = HookParams { name: PING, input: &nothing, output: &nothing, skip: Vec::new() };
        match self.connection.request("hook", &params, self.hook_limit + GRACE).await {
            Err(failure @ (Failure::Blocked | Failure::Closed)) => Err(failure),
            Ok(_) | Err(Failure::Plugin { .. } | Failure::Refused(_)) => Ok(()),
        }
    }

    /// Ends the process if it does not answer while a plugin works.
    async fn ping(&self, index: usize) -> Result<(), Failure> {
        self.answers().await.map_err(|failure| match failure {
            Failure::Blocked => self.block(Some(index)),
            other => other,
        })
    }

    /// Sends a request to one plugin.
    pub(crate) async fn request(
        &self,
        index: usize,
        method: &str,
        params: &Value,
        limit: Duration,
    ) -> Result<Value, Failure> {
        let mut sent = self.connection.send(method, params)?;
        let _position = Position { session: self, request: sent.id };
        self.inbox.enter(sent.id, index);
        let begun = Instant::now();
        loop {
            tokio::select! {
                answer = sent.answer() => return value(&answer?),
                () = tokio::time::sleep(PING_EVERY.min(limit)) => {
                    if begun.elapsed() > limit + GRACE {
                        return Err(Failure::Refused(format!("{} took too long", self.plugin(index))));
                    }
                    self.ping(index).await?;
                }
            }
        }
    }

    /// Sends a request of a provider through a plugin's own `fetch`.
    pub(crate) async fn fetch(
        &self,
        index: usize,
        request: &FetchRequest<'_>,
    ) -> Result<FetchResponse, Failure> {
        let id = format!("fetch-{}", self.last_call.fetch_add(1, Ordering::Relaxed));
        let FetchRequest { handle, url, method, headers, body } = request;
        let mut params =
            json!({ "handle": handle, "id": id, "url": url, "method": method, "headers": headers });
        if !body.is_empty() {
            params["body"] = STANDARD.encode(body).into();
        }
        // Opened first, because the body may follow at once. It is cancelled when it is dropped.
        let body = self.incoming(&id);
        let head = self.request(index, "fetch", &params, FETCH_LIMIT).await?;
        let FetchHead { status, headers } = serde_json::from_value(head)
            .map_err(|error| Failure::Refused(format!("the answer cannot be read: {error}")))?;
        Ok(FetchResponse { status, headers, body })
    }

    fn incoming(&self, id: &str) -> crate::Body {
        self.inbox.incoming.open(id, &self.connection)
    }
}

fn value(answer: &RawValue) -> Result<Value, Failure> {
    serde_json::from_str(answer.get())
        .map_err(|error| Failure::Refused(format!("the answer cannot be read: {error}")))
}
