//! One server in one root: it starts when it is needed, and one task owns its process.
//!
//! A server that ends by itself is started again a few times. It is ended when it is idle, when it uses too much memory,
//! and with its owner.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use codewright_workspace::{Outcome, Outlet, ProgramSearch, Served, serve};
use serde_json::{Value, json};
use tokio::sync::{broadcast, watch};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::{Found, Missing, Spec};
use crate::connection::Connection;
use crate::diagnostic::Store;
use crate::error::{Failure, cut};
use crate::host::{Host, Launch};
use crate::registered::Registered;
use crate::session::{Handler, Session, folders};
use crate::uri;
use crate::watcher::{Changes, Watcher};

/// The longest time until a server is ready.
const INITIALIZE_LIMIT: Duration = Duration::from_secs(60);
/// The number of restarts.
const MAX_RESTARTS: u32 = 3;
/// The time before the first restart. It grows with each.
const RESTART_DELAY: Duration = Duration::from_millis(500);
/// The failures of a server that ran this long are forgotten.
const STABLE: Duration = Duration::from_secs(10 * 60);
/// The interval of the checks of memory and idle time.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The time in which a server answers `shutdown`.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(1);
/// The time that an edit waits for a server.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// The time that an edit waits for a server which was repeatedly late.
const LEAST_PATIENCE: Duration = Duration::from_millis(250);
/// The files whose newest texts are numbered.
const MAX_LATEST: usize = 1000;
/// The time without new diagnostics after which they are complete.
const QUIET: Duration = Duration::from_millis(150);
/// The number of changes after which a server that sent its diagnostics at once each time is not waited for any longer.
const SETTLED: u32 = 4;

/// A server in a root.
pub(crate) struct Client {
    pub(crate) spec: Spec,
    pub(crate) root: PathBuf,
    pub(crate) store: Arc<Store>,
    search: ProgramSearch,
    host: Arc<dyn Host>,
    watcher: Arc<Watcher>,
    tasks: TaskTracker,
    state: watch::Sender<State>,
    times: Mutex<Times>,
    /// The numbers of the last texts of files that wait for the server.
    latest: Mutex<HashMap<PathBuf, u64>>,
    stop: CancellationToken,
}

/// What all servers of a directory share.
#[derive(Clone)]
pub(crate) struct Around {
    pub(crate) search: ProgramSearch,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) watcher: Arc<Watcher>,
    pub(crate) tasks: TaskTracker,
}

#[derive(Clone)]
pub(crate) enum State {
    /// It is not running.
    Idle,
    Starting,
    Ready(Arc<Session>),
    /// It failed and is started again.
    Restarting(String),
    Failed(String),
}

struct Times {
    used: Instant,
    patience: Duration,
    /// The last changes of documents whose diagnostics came at once, and were followed by none.
    at_once: u32,
    /// The number of diagnostics at the end of the last of them.
    seen: u64,
}

/// The diagnostics that an edit waits for.
struct Since {
    /// The number of the last diagnostics of the file before the edit.
    before: u64,
    version: i64,
}

/// The end of a run of a server.
enum Ended {
    /// Nobody needs it.
    Unneeded,
    /// It may work another time.
    Crashed(String),
    /// It would fail again.
    Unusable(String),
}

impl Client {
    pub(crate) fn new(spec: Spec, root: PathBuf, around: &Around) -> Self {
        let Around { search, host, watcher, tasks } = around.clone();
        let times = Times { used: Instant::now(), patience: PATIENCE, at_once: 0, seen: 0 };
        Self {
            spec,
            root,
            store: Arc::default(),
            search,
            host,
            watcher,
            tasks,
            state: watch::channel(State::Idle).0,
            times: Mutex::new(times),
            latest: Mutex::default(),
            stop: CancellationToken::new(),
        }
    }

    pub(crate) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// The time that an edit waits for this server.
    pub(crate) fn patience(&self) -> Duration {
        self.times().patience
    }

    /// Ends the server. Its task ends a little later.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Starts the server if it is not running. Does not wait.
    pub(crate) fn wake(self: &Arc<Self>) {
        self.times().used = Instant::now();
        let mut is_new = false;
        self.state.send_if_modified(|state| {
            is_new = matches!(state, State::Idle) && !self.stop.is_cancelled();
            if is_new {
                *state = State::Starting;
            }
            is_new
        });
        if is_new {
            let client = self.clone();
            self.tasks.spawn(async move { client.run().await });
        }
    }

    /// The server when it is ready. The caller limits the time.
    pub(crate) async fn session(self: &Arc<Self>) -> Result<Arc<Session>, Failure> {
        self.wake();
        let mut states = self.state.subscribe();
        loop {
            match states.borrow_and_update().clone() {
                State::Ready(session) => return Ok(session),
                State::Failed(reason) => return Err(Failure::Failed(reason)),
                State::Idle => return Err(Failure::Closed),
                State::Starting | State::Restarting(_) => {}
            }
            if states.changed().await.is_err() {
                return Err(Failure::Closed);
            }
        }
    }

    /// Returns the number of a new text of a file, which makes older ones that wait obsolete.
    pub(crate) fn announce(&self, path: &Path) -> u64 {
        let mut latest = self.latest();
        if latest.len() >= MAX_LATEST {
            latest.clear();
        }
        let number = latest.entry(path.to_owned()).or_default();
        *number += 1;
        *number
    }

    /// Sends the text of a file with this number and waits for its diagnostics. The caller limits the time.
    pub(crate) async fn diagnose(
        self: &Arc<Self>,
        path: &Path,
        text: &str,
        number: u64,
    ) -> Result<(), Failure> {
        let session = self.session().await?;
        if self.latest().get(path).is_some_and(|latest| *latest != number) {
            return Ok(());
        }
        self.notice_followers();
        let before = self.store.of(path).at;
        let known = session.documents().version(path);
        let Some(version) = session.put(path, text) else { return Ok(()) };
        if session.can("diagnosticProvider") {
            session.pull(path).await?;
        } else if known != Some(version) || before == 0 {
            self.pushed(&session, path, Since { before, version }).await?;
        }
        Ok(())
    }

    /// Waits until the server has sent the diagnostics of a version, and for more that follow at once. Most servers send
    /// them once, and one that did so several times is not waited for.
    async fn pushed(&self, session: &Session, path: &Path, since: Since) -> Result<(), Failure> {
        let Since { before, version } = since;
        let is_settled = self.times().at_once >= SETTLED;
        let mut changes = self.store.changes();
        let (mut last, mut first) = (before, None);
        loop {
            let now = self.store.of(path);
            let is_new = now.at > before && now.version.is_none_or(|of| of >= version);
            if is_new && is_settled && now.version == Some(version) {
                self.times().seen = self.store.count();
                return Ok(());
            }
            let wait = if is_new && now.at == last { QUIET } else { INITIALIZE_LIMIT };
            if is_new && now.at != last {
                first.get_or_insert(now.at);
                last = now.at;
                continue;
            }
            tokio::select! {
                changed = timeout(wait, changes.changed()) => match changed {
                    Ok(_) => {}
                    Err(_) if is_new => {
                        self.remember(first);
                        return Ok(());
                    }
                    Err(_) => return Err(Failure::Late("The server sent no diagnostics.".to_owned())),
                },
                () = session.connection.ended() => return Err(Failure::Closed),
            }
        }
    }

    /// Remembers whether the diagnostics of a version were the only ones. `first` is their number.
    fn remember(&self, first: Option<u64>) {
        let count = self.store.count();
        let mut times = self.times();
        times.at_once = if first == Some(count) { times.at_once.saturating_add(1) } else { 0 };
        times.seen = count;
    }

    /// Notices diagnostics that came after a caller stopped waiting, so that the next one waits for them.
    fn notice_followers(&self) {
        let count = self.store.count();
        let mut times = self.times();
        if times.seen != count {
            times.at_once = 0;
        }
    }

    /// A caller got its diagnostics in time.
    pub(crate) fn was_prompt(&self) {
        self.times().patience = PATIENCE;
    }

    /// A caller stopped waiting, so the next one waits less.
    pub(crate) fn was_late(&self) {
        let mut times = self.times();
        times.patience = (times.patience / 2).max(LEAST_PATIENCE);
    }

    fn latest(&self) -> MutexGuard<'_, HashMap<PathBuf, u64>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: State) {
        self.state.send_replace(state);
        self.host.updated();
    }

    /// Owns the process until nobody needs it or it has failed too often.
    async fn run(self: Arc<Self>) {
        let mut failures = 0;
        loop {
            let begun = Instant::now();
            let (text, can_restart) = match self.serve().await {
                // The state is set already, and the server may have been woken since.
                Ended::Unneeded => return,
                Ended::Crashed(text) => (text, true),
                Ended::Unusable(text) => (text, false),
            };
            if begun.elapsed() > STABLE {
                failures = 0;
            }
            failures += 1;
            self.store.clear();
            self.host.log(&self.spec.id, &text);
            if !can_restart || failures > MAX_RESTARTS {
                return self.set(State::Failed(text));
            }
            self.set(State::Restarting(text));
            if self.stop.run_until_cancelled(sleep(RESTART_DELAY * failures)).await.is_none() {
                return self.set(State::Idle);
            }
        }
    }

    /// Starts the server and waits for its end.
    async fn serve(self: &Arc<Self>) -> Ended {
        let (command, settings) = match self.command().await {
            Ok(found) => found,
            Err(reason) => return Ended::Unusable(reason),
        };
        let handler = Arc::new(Handler {
            server: self.spec.id.clone(),
            root: self.root.clone(),
            project: self.search.root().to_owned(),
            settings: self.spec.initialization.clone(),
            store: self.store.clone(),
            host: self.host.clone(),
            registered: Registered::default(),
            rate: Mutex::default(),
        });
        let log = handler.clone();
        let (served, peer) = match serve(&command, Outlet::Connection, &self.tasks, move |line| log.log(line))
        {
            Ok(started) => started,
            Err(error) => return Ended::Unusable(cut(&format!("{error}."))),
        };
        let connection = Connection::open(peer, handler.clone(), served.closed(), &self.tasks);
        let params = self.params(settings);
        let initialized = connection.request("initialize", &params, INITIALIZE_LIMIT);
        let ended = match self.stop.run_until_cancelled(initialized).await {
            None => Ended::Unneeded,
            Some(Ok(initialized)) => {
                connection.notify("initialized", &json!({}));
                if let Some(settings) = &self.spec.initialization {
                    let settings = json!({ "settings": settings });
                    connection.notify("workspace/didChangeConfiguration", &settings);
                }
                let session = Arc::new(Session::new(connection.clone(), &initialized, handler));
                self.times().patience = PATIENCE;
                self.set(State::Ready(session.clone()));
                self.keep(&session, &served).await
            }
            Some(Err(Failure::Closed)) => {
                Ended::Crashed(explain(&connection, &served, &command.program).await)
            }
            Some(Err(failure)) => Ended::Unusable(failure.to_string()),
        };
        // The document and diagnostics of a server that ended are unknown to the next one.
        if matches!(ended, Ended::Unneeded) {
            self.store.clear();
            self.set(State::Idle);
            let shutdown = connection.request("shutdown", &Value::Null, SHUTDOWN_LIMIT).await;
            if shutdown.is_ok() {
                connection.notify("exit", &Value::Null);
                drop(timeout(SHUTDOWN_LIMIT, connection.ended()).await);
            }
        }
        served.end().await;
        match (ended, served_missing(&command.program)) {
            (Ended::Crashed(_), Some(reason)) => Ended::Unusable(reason),
            (ended, _) => ended,
        }
    }

    /// Waits until a ready server ends or must be ended.
    async fn keep(&self, session: &Arc<Session>, served: &Served) -> Ended {
        let (connection, registered) = (&session.connection, session.registered());
        let mut followed = None;
        let mut tick = interval(LOOK_EVERY.min(self.spec.idle));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = connection.ended() => {
                    return Ended::Crashed(explain(connection, served, Path::new(&self.spec.id)).await);
                }
                () = self.stop.cancelled() => return Ended::Unneeded,
                () = registered.changed() => {
                    if registered.is_empty() {
                        followed = None;
                    } else if followed.is_none() {
                        followed = self.watcher.follow();
                    }
                }
                changes = next(&mut followed) => session.report(changes).await,
                _ = tick.tick() => {
                    if self.times().used.elapsed() >= self.spec.idle {
                        return Ended::Unneeded;
                    }
                    let process = served.clone();
                    let memory = tokio::task::spawn_blocking(move || process.memory()).await.ok().flatten();
                    if memory.is_some_and(|memory| memory > self.spec.memory) {
                        let limit = self.spec.memory / 1024 / 1024;
                        return Ended::Crashed(format!("The server used more than {limit} MiB of memory."));
                    }
                }
            }
        }
    }

    /// The command with its sandbox, and the settings that an installed server needs.
    async fn command(self: &Arc<Self>) -> Result<(codewright_workspace::Command, Option<Value>), String> {
        let client = self.clone();
        let command = tokio::task::spawn_blocking(move || {
            let found = client.spec.command(&client.search, &client.root, &*client.host);
            let Found { words, settings } = found.map_err(|missing| match missing {
                Missing::Unneeded => "It is not installed.".to_owned(),
                Missing::Installing(text) | Missing::Problem(text) => text,
            })?;
            let mut words = words.into_iter();
            let command = client.host.command(&Launch {
                server: client.spec.id.clone(),
                program: words.next().unwrap_or_default(),
                args: words.collect(),
                root: client.root.clone(),
                environment: client.spec.environment.clone(),
                of_repository: client.spec.of_repository,
                runs_project: client.spec.runs_project(),
            })?;
            Ok((command, settings))
        });
        command.await.map_err(|error| error.to_string())?
    }

    /// The params of `initialize`.
    fn params(&self, settings: Option<Value>) -> Value {
        let mut options = settings.unwrap_or_else(|| json!({}));
        for (key, value) in self.spec.initialization.iter().filter_map(Value::as_object).flatten() {
            options[key] = value.clone();
        }
        let link = json!({"dynamicRegistration": false, "linkSupport": true});
        let plain = json!({"dynamicRegistration": false});
        json!({
            "processId": null,
            "clientInfo": {"name": "codewright", "version": self.host.version()},
            "rootUri": uri::of(&self.root),
            "rootPath": self.root,
            "workspaceFolders": folders(&self.root),
            "initializationOptions": options,
            "capabilities": {
                "general": {"positionEncodings": ["utf-16", "utf-8"]},
                "window": {"workDoneProgress": true},
                "workspace": {
                    "applyEdit": false,
                    "configuration": true,
                    "workspaceFolders": true,
                    "didChangeConfiguration": {"dynamicRegistration": false},
                    "didChangeWatchedFiles": {"dynamicRegistration": true},
                    "symbol": plain,
                },
                "textDocument": {
                    "synchronization": {"dynamicRegistration": false, "didSave": true},
                    "publishDiagnostics": {"versionSupport": true, "relatedInformation": false},
                    "diagnostic": {"dynamicRegistration": false, "relatedDocumentSupport": true},
                    "hover": {"dynamicRegistration": false, "contentFormat": ["markdown", "plaintext"]},
                    "definition": link,
                    "implementation": link,
                    "references": plain,
                    "documentSymbol": {"dynamicRegistration": false, "hierarchicalDocumentSymbolSupport": true},
                    "callHierarchy": plain,
                },
            },
        })
    }
}

/// The next changes of files, if they are followed.
async fn next(followed: &mut Option<broadcast::Receiver<Changes>>) -> Changes {
    while let Some(changes) = followed {
        match changes.recv().await {
            Ok(changes) => return changes,
            // The server misses the changes that were too many.
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => break,
        }
    }
    std::future::pending().await
}

/// Whether the program has disappeared since it was found.
fn served_missing(program: &Path) -> Option<String> {
    let is_missing = program.is_absolute() && !program.exists();
    is_missing.then(|| format!("The program `{}` does not exist.", cut(&program.to_string_lossy())))
}

/// Why a connection ended.
async fn explain(connection: &Connection, served: &Served, program: &Path) -> String {
    if let Some(reason) = connection.reason() {
        return reason;
    }
    match served.outcome().await {
        Outcome::Missing => "The program of the server does not exist.".to_owned(),
        Outcome::NotExecutable => {
            format!("Cannot start `{}`: it is not executable.", cut(&program.to_string_lossy()))
        }
        Outcome::Ended { code, last_line: Some(last) } => {
            format!("The server ended with exit code {code}: {}.", cut(&last).trim_end_matches('.'))
        }
        Outcome::Ended { code, last_line: None } => format!("The server ended with exit code {code}."),
        Outcome::Unknown => "The server closed its output.".to_owned(),
    }
}
