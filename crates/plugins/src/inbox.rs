//! Receives what the process sends: log lines, requests of plugins, pieces of bodies.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::connection::{Connection, Inbound, Request};
use crate::host::{ApiRequest, Host, Level, ToolAsk, ToolPort};
use crate::protocol::MAX_OPEN;
use crate::stream::{Incoming, Outgoing};

/// Log lines of a process in [`LOG_TIME`].
const MAX_LOG_LINES: u32 = 2000;
/// See [`MAX_LOG_LINES`].
const LOG_TIME: Duration = Duration::from_secs(10);
/// The characters of a log line.
const MAX_LOG_CHARS: usize = 1000;
/// The answer of the API may take this long, because a prompt waits for the model.
const API_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);

/// The state of one process that its messages change.
pub(crate) struct Inbox {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) outgoing: Outgoing,
    pub(crate) incoming: Arc<Incoming>,
    /// The position of the plugin that is being loaded, and the number of messages about it.
    pub(crate) loading: watch::Sender<(Option<usize>, u64)>,
    /// The plugin that runs for each open request, and since when.
    positions: Mutex<HashMap<u64, (usize, Instant)>>,
    /// The running tool calls.
    ports: Mutex<HashMap<String, Arc<dyn ToolPort>>>,
    names: OnceLock<Vec<String>>,
    /// The plugins of which a failure was reported.
    failed: Mutex<BTreeSet<usize>>,
    /// Notified about every message.
    pub(crate) activity: Notify,
    rate: Mutex<(Option<Instant>, u32)>,
    connection: OnceLock<Connection>,
    tasks: TaskTracker,
    cancel: CancellationToken,
}

#[derive(Deserialize)]
struct At {
    #[serde(default)]
    id: u64,
    index: usize,
}

#[derive(Deserialize)]
struct LogLine {
    #[serde(default)]
    level: String,
    #[serde(default)]
    index: Option<usize>,
    message: String,
}

#[derive(Deserialize)]
struct Piece {
    id: String,
    #[serde(default)]
    data: String,
    #[serde(default)]
    bytes: usize,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    call: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    metadata: Map<String, Value>,
}

#[derive(Deserialize)]
struct Ask {
    call: String,
    #[serde(flatten)]
    ask: ToolAsk,
}

#[derive(Deserialize)]
struct Http {
    id: String,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    #[serde(default)]
    body: String,
}

#[derive(Deserialize)]
struct Credential {
    provider: String,
}

impl Inbox {
    pub(crate) fn new(host: Arc<dyn Host>, tasks: TaskTracker, cancel: CancellationToken) -> Self {
        Self {
            host,
            outgoing: Outgoing::default(),
            incoming: Arc::default(),
            loading: watch::channel((None, 0)).0,
            positions: Mutex::default(),
            ports: Mutex::default(),
            names: OnceLock::new(),
            failed: Mutex::default(),
            activity: Notify::new(),
            rate: Mutex::default(),
            connection: OnceLock::new(),
            tasks,
            cancel,
        }
    }

    /// Sets the connection, on which bodies are sent.
    pub(crate) fn connect(&self, connection: &Connection) {
        // It is set once, right after the connection was opened.
        drop(self.connection.set(connection.clone()));
    }

    /// Sets the names of the plugins.
    pub(crate) fn name(&self, names: Vec<String>) {
        // A process loads its plugins once.
        drop(self.names.set(names));
    }

    fn positions(&self) -> MutexGuard<'_, HashMap<u64, (usize, Instant)>> {
        self.positions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ports(&self) -> MutexGuard<'_, HashMap<String, Arc<dyn ToolPort>>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the plugin that runs for a request, and since when.
    pub(crate) fn position(&self, request: u64) -> Option<(usize, Instant)> {
        self.positions().get(&request).copied()
    }

    pub(crate) fn forget(&self, request: u64) {
        self.positions().remove(&request);
    }

    /// Returns the plugins that run now.
    pub(crate) fn running(&self) -> Vec<usize> {
        self.positions().values().map(|(index, _)| *index).collect()
    }

    /// Notes that a plugin runs for a request.
    pub(crate) fn enter(&self, request: u64, index: usize) {
        let mut positions = self.positions();
        if positions.len() < MAX_OPEN * 2 {
            positions.insert(request, (index, Instant::now()));
        }
    }

    pub(crate) fn add_port(&self, call: &str, port: Arc<dyn ToolPort>) {
        self.ports().insert(call.to_owned(), port);
    }

    pub(crate) fn remove_port(&self, call: &str) {
        self.ports().remove(call);
    }

    fn port(&self, call: &str) -> Option<Arc<dyn ToolPort>> {
        self.ports().get(call).cloned()
    }

    /// Logs a line unless there were too many.
    pub(crate) fn log(&self, level: Level, plugin: Option<&str>, text: &str) {
        let count = {
            let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            if rate.0.is_none_or(|since| now.duration_since(since) > LOG_TIME) {
                *rate = (Some(now), 0);
            }
            rate.1 = rate.1.saturating_add(1);
            rate.1
        };
        if count < MAX_LOG_LINES {
            let text: String = text.chars().take(MAX_LOG_CHARS).collect();
            self.host.log(level, plugin, &text);
        } else if count == MAX_LOG_LINES {
            self.host.log(Level::Warn, plugin, "the plugins write too much; lines are left out");
        }
    }

    fn logged(&self, line: &LogLine) {
        let level = match line.level.as_str() {
            "debug" => Level::Debug,
            "warn" => Level::Warn,
            "error" => Level::Error,
            _ => Level::Info,
        };
        let name = line.index.and_then(|index| self.names.get()?.get(index)).map(String::as_str);
        self.log(level, name, &line.message);
    }

    /// Reports the first failure of each plugin outside calls to the user.
    fn failed(&self, line: &LogLine) {
        let Some(index) = line.index else { return };
        let Some(name) = self.names.get().and_then(|names| names.get(index)) else { return };
        // Only positions of plugins get here, so the set is bounded.
        if self.failed.lock().unwrap_or_else(PoisonError::into_inner).insert(index) {
            let message: String = line.message.chars().take(MAX_LOG_CHARS).collect();
            self.host.failed(name, &message);
        }
    }

    /// Receives a message about a body.
    fn body(&self, method: &str, piece: Piece) {
        let Piece { id, data, bytes, error } = piece;
        match method {
            "http.credit" => self.outgoing.extend(&id, bytes),
            "http.cancel" => self.outgoing.cancel(&id),
            "fetch.data" => self.incoming.push(&id, &data),
            _ => self.incoming.end(&id, error),
        }
    }

    /// Runs work of a request beside the reader.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let cancel = self.cancel.clone();
        self.tasks.spawn(async move {
            cancel.run_until_cancelled(work).await;
        });
    }

    fn asked(&self, request: Request) {
        let Some((Ask { call, ask }, request)) = request.parse::<Ask>() else { return };
        let Some(port) = self.port(&call) else {
            return request.answer(Err("the tool call has ended".to_owned()));
        };
        self.spawn(async move { request.answer(port.ask(ask).await.map(|()| json!({}))) });
    }

    fn credential(&self, request: Request) {
        let Some((Credential { provider }, request)) = request.parse::<Credential>() else { return };
        let host = self.host.clone();
        self.spawn(async move { request.answer(Ok(host.credential(&provider).await)) });
    }

    fn reload(&self, request: Request) {
        let host = self.host.clone();
        self.spawn(async move { request.answer(host.reload().await.map(|()| json!({}))) });
    }

    fn http(self: &Arc<Self>, request: Request) {
        let Some((http, request)) = request.parse::<Http>() else { return };
        let Some(connection) = self.connection.get().cloned() else { return };
        let Http { id, method, path, headers, body } = http;
        let Ok(body) = STANDARD.decode(body) else {
            return request.answer(Err("the body is not base64".to_owned()));
        };
        let Some(cancel) = self.outgoing.begin(&id) else {
            return request.answer(Err("too many requests of plugins are open".to_owned()));
        };
        let inbox = self.clone();
        self.spawn(async move {
            let answer = inbox.host.api(ApiRequest { method, path, headers, body });
            let answer = tokio::time::timeout(API_LIMIT, cancel.run_until_cancelled(answer)).await;
            match answer {
                Ok(Some(Ok(response))) => {
                    let head = json!({ "status": response.status, "headers": response.headers });
                    request.answer(Ok(head));
                    inbox.outgoing.send(&connection, &id, response.body).await;
                }
                Ok(Some(Err(reason))) => request.answer(Err(reason)),
                Ok(None) | Err(_) => request.answer(Err("the request was cancelled".to_owned())),
            }
            inbox.outgoing.end(&id);
        });
    }
}

fn parse<T: for<'a> Deserialize<'a>>(params: &RawValue) -> Option<T> {
    serde_json::from_str(params.get()).ok()
}

/// An inbox as the receiver of a connection.
pub(crate) struct Receiver(pub(crate) Arc<Inbox>);

impl Inbound for Receiver {
    fn notified(&self, method: &str, params: &RawValue) {
        let inbox = &self.0;
        inbox.activity.notify_one();
        match method {
            "at" => {
                if let Some(At { id, index }) = parse(params) {
                    inbox.enter(id, index);
                }
            }
            "loading" => {
                let index = parse(params).map(|At { index, .. }| index);
                inbox.loading.send_modify(|loading| *loading = (index, loading.1 + 1));
            }
            "log" => {
                if let Some(line) = parse::<LogLine>(params) {
                    inbox.logged(&line);
                }
            }
            "failed" => {
                if let Some(line) = parse::<LogLine>(params) {
                    inbox.failed(&line);
                }
            }
            "http.credit" | "http.cancel" | "fetch.data" | "fetch.end" => {
                if let Some(piece) = parse::<Piece>(params) {
                    inbox.body(method, piece);
                }
            }
            "tool.metadata" => {
                let Some(Metadata { call, title, metadata }) = parse(params) else { return };
                if let Some(port) = inbox.port(&call) {
                    port.metadata(title, metadata);
                }
            }
            // A newer script may report more.
            _ => {}
        }
    }

    fn requested(&self, request: Request) {
        self.0.activity.notify_one();
        match request.method.as_str() {
            "http" => self.0.http(request),
            "tool.ask" => self.0.asked(request),
            "auth.get" => self.0.credential(request),
            "reload" => self.0.reload(request),
            method => {
                let message = format!("unknown method {method}");
                request.answer(Err(message));
            }
        }
    }

    fn foreign(&self, line: &str) {
        self.0.log(Level::Info, None, line);
    }
}
