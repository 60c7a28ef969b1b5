//! The plugins of a directory and the one process that runs them.
//!
//! The process starts when it is first needed, and one task owns it. It is started again after a crash, a few times and
//! with growing delays. A plugin that blocked or crashed it is left out from then on.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use codewright_workspace::{Outcome, Outlet, ProgramSearch, Served, serve};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Failure;
use crate::connection::Connection;
use crate::host::{Host, Level, ToolPort};
use crate::inbox::{Inbox, Receiver};
use crate::protocol::{
    HookCall, HookReply, Initialized, Loaded, PluginEntry, ToolCall, ToolEntry, VERSION, entries,
};
use crate::runtime::{Runtime, RuntimeKind, too_old};
use crate::script;
use crate::session::{FetchRequest, Plan, Session};
use crate::stream::FetchResponse;

/// The time in which a plugin is loaded.
const LOAD_LIMIT: Duration = Duration::from_secs(10);
/// The time in addition to [`LOAD_LIMIT`] until the process counts as blocked.
const LOAD_GRACE: Duration = Duration::from_secs(5);
/// The time that a caller waits for the plugins.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// The time that a tool call waits for a process that is started again.
const RESTART_LIMIT: Duration = Duration::from_secs(20);
/// The time limit of a tool call in the process. The caller has its own.
const TOOL_LIMIT: Duration = Duration::from_secs(60 * 60);
/// The time that a plugin has for its end.
const DISPOSE_LIMIT: Duration = Duration::from_secs(1);
/// The number of restarts of a process that lives shorter than [`STABLE`] each time.
const MAX_RESTARTS: u32 = 3;
/// The wait before the first restart. Each further one waits four times as long.
const FIRST_RESTART: Duration = Duration::from_millis(500);
/// The life of a process after which earlier restarts do not count.
const STABLE: Duration = Duration::from_secs(60);
/// The interval of the checks of memory while plugins work.
const CHECK_EVERY: Duration = Duration::from_secs(2);
/// The interval while they do not.
const CHECK_IDLE: Duration = Duration::from_secs(60);
/// The end of work, without which plugins count as idle.
const IDLE_AFTER: Duration = Duration::from_secs(10);
/// The characters of a reported message.
const MAX_MESSAGE_CHARS: usize = 1000;

/// What a process runs, and its limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The plugins, in the order in which they are called.
    pub plugins: Vec<PluginEntry>,
    /// The files with tools.
    pub tools: Vec<ToolEntry>,
    /// The directory.
    pub directory: PathBuf,
    /// The root of the repository, or `/`.
    pub worktree: PathBuf,
    /// The project, in the form of the API.
    pub project: Value,
    /// The address of this program's API, which need not be open.
    pub server_url: String,
    /// The version of the plugin interface.
    pub version: String,
    /// The directory into which the script is written.
    pub cache: PathBuf,
    /// Where runtimes are found.
    pub search: ProgramSearch,
    /// The runtime that the user chose.
    pub runtime: Option<RuntimeKind>,
    /// A runtime that the program has installed. It is used if none is installed, and bun in place of another runtime that
    /// the user did not choose.
    pub fallback: Option<Runtime>,
    /// The limit for the memory of the process.
    pub memory_bytes: u64,
    /// The time limit of a hook.
    pub hook_limit: Duration,
}

/// The plugins of a directory. Clones share everything.
#[derive(Clone)]
pub struct Plugins(Arc<Shared>);

struct Shared {
    host: Arc<dyn Host>,
    setup: Setup,
    state: watch::Sender<State>,
    /// The plugins that are left out, with the reasons.
    left_out: Mutex<BTreeMap<usize, String>>,
    /// The plugins whose failure to load was reported.
    reported: Mutex<BTreeMap<usize, String>>,
    /// The number of processes that have loaded their plugins.
    started: AtomicU64,
    tasks: TaskTracker,
    stop: CancellationToken,
}

#[derive(Clone)]
enum State {
    /// It was not started yet.
    Idle,
    Starting,
    Ready(Arc<Session>),
    /// It ended and starts again soon.
    Restarting,
    Ended,
}

/// The end of a process.
enum Ended {
    /// Nobody needs it.
    Unneeded,
    /// It may work without this plugin, or another time.
    Crashed(Option<usize>, String),
    /// It would fail again.
    Unusable(String),
}

impl Plugins {
    /// Creates the plugins without starting anything.
    pub fn new(host: Arc<dyn Host>, setup: Setup) -> Self {
        Self(Arc::new(Shared {
            host,
            setup,
            state: watch::channel(State::Idle).0,
            left_out: Mutex::default(),
            reported: Mutex::default(),
            started: AtomicU64::new(0),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }))
    }

    /// Returns what the process runs.
    #[must_use]
    pub fn setup(&self) -> &Setup {
        &self.0.setup
    }

    /// Starts the process if it is not running. Does not wait.
    pub fn start(&self) {
        let mut is_new = false;
        self.0.state.send_if_modified(|state| {
            is_new = matches!(state, State::Idle) && !self.0.stop.is_cancelled();
            if is_new {
                *state = State::Starting;
            }
            is_new
        });
        if is_new {
            let shared = self.0.clone();
            self.0.tasks.spawn(async move { shared.run().await });
        }
    }

    /// Waits until the plugins are loaded or have failed, but not without end.
    pub async fn ready(&self) {
        self.start();
        let mut states = self.0.state.subscribe();
        let is_settled = |state: &State| matches!(state, State::Ready(_) | State::Ended | State::Idle);
        // The sender lives as long as this value.
        drop(timeout(READY_LIMIT, states.wait_for(is_settled)).await);
    }

    /// Reports whether the process is running and has loaded its plugins.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.session().is_some()
    }

    /// Returns a number that changes when the plugins are loaded again. `None` while the process is not running.
    #[must_use]
    pub fn generation(&self) -> Option<u64> {
        self.session().map(|session| session.generation)
    }

    /// Returns whether an error of a plugin is only that the sandbox keeps a file from it. Reports that once.
    #[must_use]
    pub fn is_denied(&self, plugin: &str, message: &str) -> bool {
        self.0.host.is_denied(plugin, message)
    }

    /// Reports a plugin to the user.
    pub fn report(&self, plugin: &str, message: &str) {
        self.0.host.failed(plugin, message);
    }

    fn session(&self) -> Option<Arc<Session>> {
        match &*self.0.state.borrow() {
            State::Ready(session) => Some(session.clone()),
            State::Idle | State::Starting | State::Restarting | State::Ended => None,
        }
    }

    /// Returns the loaded plugins and tool files. Empty while the process is not running.
    #[must_use]
    pub fn loaded(&self) -> Vec<Loaded> {
        self.session().map(|session| session.loaded.clone()).unwrap_or_default()
    }

    /// Reports whether a plugin has a hook.
    #[must_use]
    pub fn has_hook(&self, name: &str) -> bool {
        self.session().is_some_and(|session| session.has_hook(name))
    }

    /// Returns the positions and names of the plugins with a hook.
    #[must_use]
    pub fn with_hook(&self, name: &str) -> Vec<(usize, String)> {
        let session = self.session();
        let loaded = session.iter().flat_map(|session| &session.loaded);
        let with_hook = loaded.filter(|loaded| loaded.hooks.iter().any(|hook| hook == name));
        with_hook.map(|loaded| (loaded.index, loaded.name.clone())).collect()
    }

    /// Calls a hook of the plugins, one after the other. A process that ends meanwhile changes nothing.
    pub async fn hook(&self, call: HookCall<'_>) -> HookReply {
        match self.session() {
            Some(session) => session.hook(call).await,
            None => HookReply::default(),
        }
    }

    /// Sends an event to the plugins that receive events. Does not wait.
    pub fn event(&self, event: &Value) {
        if let Some(session) = self.session() {
            session.event(event);
        }
    }

    /// Runs a tool.
    ///
    /// # Errors
    ///
    /// Fails if the tool fails, or the process ends or is not running.
    pub async fn execute(
        &self,
        call: &ToolCall,
        port: Arc<dyn ToolPort>,
        cancel: &CancellationToken,
    ) -> Result<Value, Failure> {
        // Another plugin may have ended the process just now.
        if !self.is_ready() {
            drop(timeout(RESTART_LIMIT, self.ready()).await);
        }
        self.session().ok_or(Failure::Closed)?.execute(call, port, cancel).await
    }

    /// Sends a request to one plugin.
    ///
    /// # Errors
    ///
    /// Fails if the plugin fails, or the process ends or is not running.
    pub async fn request(
        &self,
        index: usize,
        method: &str,
        params: &Value,
        limit: Duration,
    ) -> Result<Value, Failure> {
        self.session().ok_or(Failure::Closed)?.request(index, method, params, limit).await
    }

    /// Sends a request of a provider through a plugin's own `fetch`.
    ///
    /// # Errors
    ///
    /// Fails if the plugin fails, or the process ends or is not running.
    pub async fn fetch(&self, index: usize, request: &FetchRequest<'_>) -> Result<FetchResponse, Failure> {
        self.session().ok_or(Failure::Closed)?.fetch(index, request).await
    }

    /// Lets the plugins end and ends the process, but not without end.
    pub async fn close(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        drop(timeout(DISPOSE_LIMIT * 8, self.0.tasks.wait()).await);
    }
}

impl Shared {
    fn left_out(&self) -> MutexGuard<'_, BTreeMap<usize, String>> {
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names of all plugins by their position, from the configuration.
    fn names(&self) -> Vec<String> {
        let plugins = self.setup.plugins.iter().map(|entry| entry.spec.clone());
        plugins.chain(self.setup.tools.iter().map(|entry| entry.name.clone())).collect()
    }

    fn name(&self, index: usize) -> String {
        self.names().into_iter().nth(index).unwrap_or_default()
    }

    /// Reports a plugin once.
    fn report(&self, index: usize, name: &str, message: &str) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.insert(index, message.to_owned()).as_deref() == Some(message) {
            return;
        }
        drop(reported);
        let message: String = message.chars().take(MAX_MESSAGE_CHARS).collect();
        self.host.failed(name, &message);
    }

    /// Owns the process until nobody needs it or it has failed too often.
    async fn run(self: Arc<Self>) {
        let mut failures = 0;
        loop {
            let begun = Instant::now();
            let ended = self.serve().await;
            if begun.elapsed() > STABLE {
                failures = 0;
            }
            let (culprit, text) = match ended {
                Ended::Unneeded => break,
                Ended::Unusable(text) => {
                    self.host.failed("plugins", &text);
                    break;
                }
                Ended::Crashed(culprit, text) => (culprit, text),
            };
            match culprit {
                Some(index) => {
                    let message = format!("{text} The plugin is left out until it is changed.");
                    self.left_out().insert(index, message.clone());
                    self.report(index, &self.name(index), &message);
                }
                None => {
                    failures += 1;
                    if failures > MAX_RESTARTS {
                        let text = format!("{text} It is not started again until the plugins are changed.");
                        self.host.failed("plugins", &text);
                        break;
                    }
                    self.host.failed("plugins", &text);
                }
            }
            self.state.send_replace(State::Restarting);
            let delay = FIRST_RESTART * 4_u32.saturating_pow(failures.saturating_sub(1));
            if self.stop.run_until_cancelled(sleep(delay)).await.is_none() {
                break;
            }
        }
        self.state.send_replace(State::Ended);
    }

    /// Starts the process and waits for its end.
    async fn serve(self: &Arc<Self>) -> Ended {
        let count = self.setup.plugins.len() + self.setup.tools.len();
        if self.left_out().len() >= count {
            return Ended::Unneeded;
        }
        let shared = self.clone();
        let prepared = tokio::task::spawn_blocking(move || shared.prepare()).await;
        let command = match prepared.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(command) => command,
            Err(reason) => return Ended::Unusable(reason),
        };
        let cancel = CancellationToken::new();
        let _cancelled = cancel.clone().drop_guard();
        let inbox = Arc::new(Inbox::new(self.host.clone(), self.tasks.clone(), cancel));
        let log = inbox.clone();
        let log = move |line: &str| log.log(Level::Info, None, line);
        let (served, peer) = match serve(&command, Outlet::Errors, &self.tasks, log) {
            Ok(started) => started,
            Err(error) => return Ended::Unusable(format!("{error}.")),
        };
        let receiver = Arc::new(Receiver(inbox.clone()));
        let connection = Connection::open(peer, receiver, served.closed(), &self.tasks);
        inbox.connect(&connection);
        let ended = match self.stop.run_until_cancelled(self.initialize(&connection, &inbox, &served)).await {
            None => Ended::Unneeded,
            Some(Err(ended)) => ended,
            Some(Ok(session)) => {
                let session = Arc::new(session);
                self.state.send_replace(State::Ready(session.clone()));
                self.keep(&session, &served).await
            }
        };
        if matches!(ended, Ended::Unneeded) {
            let limit = DISPOSE_LIMIT * 2;
            // A process that does not answer is killed below.
            drop(connection.request("dispose", &json!({}), limit).await);
            served.end().await;
        } else {
            // The reason is reported at once, also while a process that is blocked has not ended yet.
            self.tasks.spawn(served.end());
        }
        ended
    }

    fn prepare(&self) -> Result<codewright_workspace::Command, String> {
        let Setup { search, runtime, fallback, .. } = &self.setup;
        let runtime = Runtime::choose(Runtime::find(search, *runtime), *runtime, fallback.clone())?;
        let script = script::prepare(&self.setup.cache)?;
        self.host.command(&runtime, &script)
    }

    /// Loads the plugins.
    async fn initialize(
        &self,
        connection: &Connection,
        inbox: &Arc<Inbox>,
        served: &Served,
    ) -> Result<Session, Ended> {
        let setup = &self.setup;
        let mut names = self.names();
        inbox.name(names.clone());
        let left_out: Vec<usize> = self.left_out().keys().copied().collect();
        let (plugins, tools) = entries(&setup.plugins, &setup.tools, |index| left_out.contains(&index));
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let params = json!({
            "protocol": VERSION,
            "directory": setup.directory,
            "worktree": setup.worktree,
            "project": setup.project,
            "serverUrl": setup.server_url,
            "version": setup.version,
            "env": {},
            "plugins": plugins,
            "tools": tools,
            "deadlines": {
                "load": milliseconds(LOAD_LIMIT),
                "hook": milliseconds(setup.hook_limit),
                "tool": milliseconds(TOOL_LIMIT),
                "dispose": milliseconds(DISPOSE_LIMIT),
            },
        });
        let answer = self.loaded(connection, inbox, &params).await;
        let index = inbox.loading.borrow().0;
        let answer = match answer {
            Ok(answer) => answer,
            Err(Failure::Blocked) => {
                return Err(Ended::Crashed(index, "It blocks the process that loads plugins.".to_owned()));
            }
            Err(Failure::Closed) => return Err(self.crashed(connection, served, index).await),
            Err(failure) => return Err(Ended::Unusable(format!("The plugins cannot be loaded: {failure}."))),
        };
        let initialized: Initialized = serde_json::from_str(answer.get()).map_err(|error| {
            Ended::Unusable(format!("The answer of the plugins cannot be read: {error}."))
        })?;
        let runtime = &initialized.runtime;
        if let Some(reason) = too_old(&runtime.name, &runtime.version) {
            return Err(Ended::Unusable(reason));
        }
        inbox.log(Level::Debug, None, &format!("plugins run with {} {}", runtime.name, runtime.version));
        for loaded in &initialized.plugins {
            if let Some(name) = names.get_mut(loaded.index).filter(|_| !loaded.name.is_empty()) {
                name.clone_from(&loaded.name);
            }
            self.note(inbox, loaded);
        }
        let generation = self.started.fetch_add(1, Ordering::Relaxed);
        let loaded = initialized.plugins;
        Ok(Session::new(
            connection.clone(),
            inbox.clone(),
            Plan { loaded, names, generation, hook_limit: setup.hook_limit },
        ))
    }

    /// Reports a plugin that was not loaded.
    fn note(&self, inbox: &Inbox, loaded: &Loaded) {
        if let Some(error) = &loaded.error {
            let message = match error.place.text() {
                Some(place) => format!("{} ({place})", error.message),
                None => error.message.clone(),
            };
            self.report(loaded.index, &loaded.name, &message);
        }
        match loaded.skipped.as_deref() {
            None => {}
            Some("tui") => {
                let text = "plugins for the terminal client are not supported; it was skipped";
                inbox.log(Level::Info, Some(&loaded.name), text);
            }
            Some(reason) => self.report(loaded.index, &loaded.name, reason),
        }
    }

    /// Sends `initialize` and waits for its answer as long as plugins are loaded in time.
    async fn loaded(
        &self,
        connection: &Connection,
        inbox: &Inbox,
        params: &Value,
    ) -> Result<Box<serde_json::value::RawValue>, Failure> {
        let mut loading = inbox.loading.subscribe();
        let mut sent = connection.send("initialize", params)?;
        loop {
            tokio::select! {
                answer = sent.answer() => return answer,
                changed = timeout(LOAD_LIMIT + LOAD_GRACE, loading.changed()) => match changed {
                    Ok(_) => {}
                    Err(_) => return Err(Failure::Blocked),
                },
            }
        }
    }

    /// Waits until the process ends or must be ended.
    async fn keep(&self, session: &Arc<Session>, served: &Served) -> Ended {
        let (mut active, mut checked) = (Instant::now(), Instant::now());
        loop {
            let every = if active.elapsed() < IDLE_AFTER { CHECK_EVERY } else { CHECK_IDLE };
            tokio::select! {
                () = session.connection.ended() => {
                    let blocked = *session.blocked.lock().unwrap_or_else(PoisonError::into_inner);
                    return self.crashed(&session.connection, served, blocked.or_else(|| only(session))).await;
                }
                () = self.stop.cancelled() => return Ended::Unneeded,
                () = session.inbox.activity.notified() => active = Instant::now(),
                () = sleep(every.saturating_sub(checked.elapsed())) => {
                    checked = Instant::now();
                    if active.elapsed() < IDLE_AFTER {
                        let session = session.clone();
                        self.tasks.spawn(async move { session.check().await });
                    }
                    let process = served.clone();
                    let memory = tokio::task::spawn_blocking(move || process.own_memory()).await;
                    if memory.ok().flatten().is_some_and(|memory| memory > self.setup.memory_bytes) {
                        return Ended::Crashed(only(session), self.too_large());
                    }
                }
            }
        }
    }

    fn too_large(&self) -> String {
        let mebibytes = self.setup.memory_bytes / 1024 / 1024;
        format!("The plugins used more than {mebibytes} MiB of memory (`plugin_host.memory`).")
    }

    /// Explains the end of the process.
    async fn crashed(&self, connection: &Connection, served: &Served, culprit: Option<usize>) -> Ended {
        let reason = connection.reason();
        // Before the outcome is awaited, because a process that is blocked does not end by itself.
        served.closed().cancel();
        if let Some(reason) = reason {
            return Ended::Crashed(culprit, format!("The process that runs plugins was ended: {reason}."));
        }
        match served.outcome().await {
            Outcome::Missing => Ended::Unusable("The program that runs plugins has disappeared.".to_owned()),
            Outcome::NotExecutable => {
                Ended::Unusable("The program that runs plugins cannot be started.".to_owned())
            }
            Outcome::Ended { code, last_line } => {
                // V8 ends the process with SIGABRT when its heap is full, and the kernel with SIGKILL.
                match code {
                    134 => return Ended::Crashed(culprit, self.too_large()),
                    137 => {
                        let text = "The process that runs plugins was killed. Perhaps the machine has no memory left.";
                        return Ended::Crashed(culprit, text.to_owned());
                    }
                    _ => {}
                }
                let line = last_line.map(|line| format!(": {line}")).unwrap_or_default();
                let text = format!("The process that runs plugins ended with code {code}{line}.");
                Ended::Crashed(culprit, text)
            }
            Outcome::Unknown => Ended::Crashed(culprit, "The process that runs plugins ended.".to_owned()),
        }
    }
}

/// The plugin that probably is the reason for a crash: the only one that was running, or the only one that exists.
fn only(session: &Session) -> Option<usize> {
    let mut running = session.inbox.running();
    running.sort_unstable();
    running.dedup();
    match (running.as_slice(), session.loaded.as_slice()) {
        ([index], _) => Some(*index),
        ([], [loaded]) => Some(loaded.index),
        _ => None,
    }
}
