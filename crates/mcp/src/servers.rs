//! The servers of one directory: each is started, watched and restarted by one task.
//!
//! Servers start side by side and only when they are first needed. A server that cannot be started fails once, with one
//! sentence. A connection that ends is opened again, at most [`MAX_RESTARTS`] times in a row; requests are never
//! repeated, because they may have had an effect.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::{SignInRequest, needs_registration};
use crate::config::{Config, Kind};
use crate::connection::{Connection, Opened, Request};
use crate::error::Failure;
use crate::host::Host;
use crate::list::{self, Prompt, Resource, Template, Tool};

/// The number of times that a connection is opened again, unless it lasted for [`STABLE`].
const MAX_RESTARTS: u32 = 3;
/// The wait before the first restart. Each further one waits four times as long.
const FIRST_RESTART: Duration = Duration::from_secs(1);
/// The life of a connection after which earlier restarts do not count.
const STABLE: Duration = Duration::from_secs(60);
/// The wait before lists are read again after a change, so that a server cannot cause endless work.
const REFRESH_WAIT: Duration = Duration::from_millis(200);
/// The time limit of the check whether a sign-in is possible.
const SIGN_IN_CHECK: Duration = Duration::from_secs(10);
/// The time in which all servers end.
const CLOSE_DEADLINE: Duration = Duration::from_secs(6);

/// The status of a server for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    Connected,
    Disabled,
    Failed(String),
    NeedsAuth,
    NeedsRegistration(String),
}

/// A call of a tool.
pub struct Call<'a> {
    pub server: &'a str,
    /// The server's name for the tool.
    pub tool: &'a str,
    pub arguments: Map<String, Value>,
    pub cancel: &'a CancellationToken,
    /// Receives the messages about progress.
    pub progress: &'a (dyn Fn(&str) + Send + Sync),
}

/// The servers of a directory. Clones share everything.
#[derive(Clone)]
pub struct Servers(Arc<Shared>);

struct Shared {
    host: Arc<dyn Host>,
    servers: Mutex<Vec<Server>>,
    tasks: TaskTracker,
    /// Cancelled when all servers end.
    cancel: CancellationToken,
    /// Counts the changes of states.
    changes: watch::Sender<u64>,
}

struct Server {
    name: Arc<str>,
    config: Result<Config, String>,
    state: State,
    /// The challenge of a server that needs a sign-in.
    challenge: Option<String>,
    /// Which tools of its last list are left out, and why.
    warning: Option<String>,
    /// Ends the task of the server.
    stop: CancellationToken,
}

#[derive(Clone)]
enum State {
    /// It was not started yet.
    Idle,
    Starting,
    Connected(Arc<Connection>, Arc<[Arc<Tool>]>),
    Ended(Status),
}

impl Servers {
    /// The servers of a configuration. None is started.
    pub fn new(host: Arc<dyn Host>, configured: Vec<(String, Result<Config, String>)>) -> Self {
        let servers = configured.into_iter().map(|(name, config)| Server::new(&name, config)).collect();
        Self(Arc::new(Shared {
            host,
            servers: Mutex::new(servers),
            tasks: TaskTracker::new(),
            cancel: CancellationToken::new(),
            changes: watch::channel(0).0,
        }))
    }

    /// Starts every enabled server that was not started yet.
    pub fn start(&self) {
        let mut servers = self.0.lock();
        for server in servers.iter_mut().filter(|server| matches!(server.state, State::Idle)) {
            self.0.start(server);
        }
    }

    /// Uses a new configuration: servers that did not change stay connected.
    pub fn reconfigure(&self, configured: Vec<(String, Result<Config, String>)>) {
        let mut servers = self.0.lock();
        let mut old = std::mem::take(&mut *servers);
        for (name, config) in configured {
            let same = old.iter().position(|server| *server.name == *name && server.config == config);
            match same {
                Some(at) => servers.push(old.remove(at)),
                None => servers.push(Server::new(&name, config)),
            }
        }
        drop(servers);
        for server in old {
            server.stop.cancel();
        }
        self.0.changed();
    }

    /// Waits until every server is connected or has failed. Each has a time limit, so this ends.
    pub async fn settled(&self) {
        self.start();
        let mut changes = self.0.changes.subscribe();
        loop {
            let is_starting = |server: &Server| matches!(server.state, State::Starting);
            if !self.0.lock().iter().any(is_starting) {
                return;
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// The status of each server in the order of the configuration.
    #[must_use]
    pub fn statuses(&self) -> Vec<(String, Status)> {
        let servers = self.0.lock();
        servers.iter().map(|server| (server.name.to_string(), server.status())).collect()
    }

    /// The tools of a connected server that are left out, and why.
    #[must_use]
    pub fn warning(&self, name: &str) -> Option<String> {
        let servers = self.0.lock();
        let server = servers.iter().find(|server| *server.name == *name)?;
        server.warning.clone().filter(|_| matches!(server.state, State::Connected(..)))
    }

    /// The configuration of a server.
    #[must_use]
    pub fn config(&self, name: &str) -> Option<Result<Config, String>> {
        self.0.lock().iter().find(|server| *server.name == *name).map(|server| server.config.clone())
    }

    /// The challenge of a server that needs a sign-in, if it sent one.
    #[must_use]
    pub fn challenge(&self, name: &str) -> Option<String> {
        self.0.lock().iter().find(|server| *server.name == *name).and_then(|server| server.challenge.clone())
    }

    /// Connects a server again and waits for the result. Returns `false` if there is no server of that name.
    pub async fn connect(&self, name: &str) -> bool {
        let mut changes = self.0.changes.subscribe();
        {
            let mut servers = self.0.lock();
            let Some(server) = servers.iter_mut().find(|server| *server.name == *name) else { return false };
            server.renew();
            if let Ok(config) = &mut server.config {
                config.is_enabled = true;
            }
            self.0.start(server);
        }
        loop {
            let is_done = {
                let servers = self.0.lock();
                let server = servers.iter().find(|server| *server.name == *name);
                server.is_none_or(|server| !matches!(server.state, State::Starting))
            };
            if is_done || changes.changed().await.is_err() {
                return true;
            }
        }
    }

    /// Ends a server. Returns `false` if there is no server of that name.
    pub fn disconnect(&self, name: &str) -> bool {
        {
            let mut servers = self.0.lock();
            let Some(server) = servers.iter_mut().find(|server| *server.name == *name) else { return false };
            server.renew();
            server.state = State::Ended(Status::Disabled);
        }
        self.0.changed();
        self.0.host.tools_changed(name);
        true
    }

    /// Adds or replaces a server and connects it.
    pub async fn add(&self, name: &str, config: Config) {
        {
            let mut servers = self.0.lock();
            match servers.iter_mut().find(|server| *server.name == *name) {
                Some(server) => {
                    server.renew();
                    server.config = Ok(config.clone());
                }
                None => servers.push(Server::new(name, Ok(config.clone()))),
            }
        }
        if config.is_enabled {
            self.connect(name).await;
        }
    }

    /// Ends and forgets a server. Returns `false` if there is no server of that name.
    pub fn remove(&self, name: &str) -> bool {
        let removed = {
            let mut servers = self.0.lock();
            let at = servers.iter().position(|server| *server.name == *name);
            at.map(|at| servers.remove(at))
        };
        let Some(server) = removed else { return false };
        server.stop.cancel();
        self.0.changed();
        self.0.host.tools_changed(name);
        true
    }

    /// The tools of all connected servers, with the names of the servers.
    #[must_use]
    pub fn tools(&self) -> Vec<(Arc<str>, Arc<Tool>)> {
        let servers = self.0.lock();
        let mut all = Vec::new();
        for server in servers.iter() {
            if let State::Connected(_, tools) = &server.state {
                all.extend(tools.iter().map(|tool| (server.name.clone(), tool.clone())));
            }
        }
        all
    }

    /// The instructions of the connected servers.
    #[must_use]
    pub fn instructions(&self) -> Vec<(Arc<str>, String)> {
        let connected = self.connections();
        connected.into_iter().filter_map(|(name, one)| Some((name, one.instructions.clone()?))).collect()
    }

    /// Reports whether a connected server has resources.
    #[must_use]
    pub fn have_resources(&self) -> bool {
        self.connections().iter().any(|(_, connection)| connection.has_resources)
    }

    /// Calls a tool. Returns the result of the server, which may be an error.
    pub async fn call(&self, call: Call<'_>) -> Result<Value, Failure> {
        let connection = self.connection(call.server)?;
        let limit = match self.config(call.server) {
            Some(Ok(config)) => config.call_timeout,
            Some(Err(_)) | None => return Err(missing(call.server)),
        };
        let params = Some(json!({ "name": call.tool, "arguments": call.arguments }));
        let progress: Option<&(dyn Fn(&str) + Send + Sync)> = Some(call.progress);
        connection
            .request(Request { method: "tools/call", params, limit, cancel: call.cancel, progress })
            .await
    }

    /// The prompts of the connected servers. A server that fails has none.
    pub async fn prompts(&self) -> Vec<(Arc<str>, Prompt)> {
        let connections = self.connections().into_iter().filter(|(_, one)| one.has_prompts);
        self.listed(connections, "prompts/list", "prompts", list::prompts).await
    }

    /// The resources of the connected servers, or of one. A server that fails has none.
    pub async fn resources(&self, server: Option<&str>) -> Vec<(Arc<str>, Resource)> {
        let connections = self.connections().into_iter();
        let connections =
            connections.filter(|(name, one)| one.has_resources && server.is_none_or(|only| *only == **name));
        self.listed(connections, "resources/list", "resources", list::resources).await
    }

    /// The resource templates of the connected servers, or of one. A server that fails has none.
    pub async fn templates(&self, server: Option<&str>) -> Vec<(Arc<str>, Template)> {
        let connections = self.connections().into_iter();
        let connections =
            connections.filter(|(name, one)| one.has_resources && server.is_none_or(|only| *only == **name));
        self.listed(connections, "resources/templates/list", "resourceTemplates", list::templates).await
    }

    async fn listed<T>(
        &self,
        connections: impl Iterator<Item = (Arc<str>, Arc<Connection>)>,
        method: &str,
        key: &str,
        read: impl Fn(&[Value]) -> list::Read<T>,
    ) -> Vec<(Arc<str>, T)> {
        let lists = connections.map(|(name, connection)| async move {
            let values = connection.list(method, key).await;
            (name, connection, values)
        });
        let mut entries = Vec::new();
        for (name, connection, values) in futures_util::future::join_all(lists).await {
            match values.map(|values| read(&values)) {
                Ok(read) => {
                    if let Some(warning) = read.warning {
                        connection.session.log(&warning);
                    }
                    entries.extend(read.entries.into_iter().map(|entry| (name.clone(), entry)));
                }
                Err(failure) => connection.session.log(&format!("{method} failed: {failure}")),
            }
        }
        entries
    }

    /// Reads a resource of a server.
    pub async fn read_resource(&self, server: &str, uri: &str) -> Result<Value, Failure> {
        let params = Map::from_iter([("uri".to_owned(), Value::from(uri))]);
        self.connection(server)?.read("resources/read", params).await
    }

    /// Reads a prompt of a server.
    pub async fn prompt(
        &self,
        server: &str,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<Value, Failure> {
        let params =
            [("name".to_owned(), Value::from(name)), ("arguments".to_owned(), Value::Object(arguments))];
        self.connection(server)?.read("prompts/get", Map::from_iter(params)).await
    }

    /// Ends all servers and waits for them.
    pub async fn close(&self) {
        self.0.cancel.cancel();
        for server in self.0.lock().iter() {
            server.stop.cancel();
        }
        self.0.tasks.close();
        // What does not end is killed when it is dropped.
        drop(timeout(CLOSE_DEADLINE, self.0.tasks.wait()).await);
    }

    fn connections(&self) -> Vec<(Arc<str>, Arc<Connection>)> {
        let servers = self.0.lock();
        let connected = servers.iter().filter_map(|server| match &server.state {
            State::Connected(connection, _) => Some((server.name.clone(), connection.clone())),
            State::Idle | State::Starting | State::Ended(_) => None,
        });
        connected.collect()
    }

    fn connection(&self, name: &str) -> Result<Arc<Connection>, Failure> {
        let connection = self.connections().into_iter().find(|(server, _)| **server == *name);
        connection.map(|(_, connection)| connection).ok_or_else(|| missing(name))
    }
}

fn missing(name: &str) -> Failure {
    Failure::failed(format!("The MCP server `{name}` is not connected."))
}

impl Server {
    fn new(name: &str, config: Result<Config, String>) -> Self {
        Self {
            name: name.into(),
            config,
            state: State::Idle,
            challenge: None,
            warning: None,
            stop: CancellationToken::new(),
        }
    }

    /// Ends the task of the server. A new one can be started.
    fn renew(&mut self) {
        std::mem::take(&mut self.stop).cancel();
        self.state = State::Idle;
    }

    fn status(&self) -> Status {
        match (&self.config, &self.state) {
            (Err(error), _) => Status::Failed(error.clone()),
            (Ok(_), State::Connected(..)) => Status::Connected,
            (Ok(_), State::Ended(status)) => status.clone(),
            (Ok(config), State::Idle) if !config.is_enabled => Status::Disabled,
            (Ok(_), State::Idle | State::Starting) => Status::Failed("The server is starting.".to_owned()),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<Server>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Starts the task of a server, if it can be used.
    fn start(self: &Arc<Self>, server: &mut Server) {
        let Ok(config) = &server.config else { return };
        if !config.is_enabled || self.cancel.is_cancelled() {
            return;
        }
        server.state = State::Starting;
        let (shared, name, config, stop) =
            (self.clone(), server.name.clone(), config.clone(), server.stop.clone());
        self.tasks.spawn(async move { shared.run(name, config, stop).await });
    }

    /// Stores a state, unless the task of the server was ended meanwhile.
    fn warn(&self, name: &str, warning: Option<String>) {
        if let Some(server) = self.lock().iter_mut().find(|server| *server.name == *name) {
            server.warning = warning;
        }
    }

    fn set(&self, name: &str, stop: &CancellationToken, state: State) {
        {
            let mut servers = self.lock();
            let Some(server) = servers.iter_mut().find(|server| *server.name == *name) else { return };
            if stop.is_cancelled() {
                return;
            }
            server.state = state;
        }
        self.changed();
    }

    /// Keeps one server connected.
    async fn run(self: Arc<Self>, name: Arc<str>, config: Config, stop: CancellationToken) {
        let mut restarts = 0;
        loop {
            let opening = Opened::open(&name, &config, &self.host, &self.tasks);
            let Some(opened) = stop.run_until_cancelled(opening).await else { return };
            // A server that never worked is not started again.
            let is_new = opened.is_err() && restarts == 0;
            let failure = match opened {
                Ok(opened) => {
                    let begun = Instant::now();
                    let Some(failure) = self.serve(&name, opened, &stop).await else { return };
                    if begun.elapsed() >= STABLE {
                        restarts = 0;
                    }
                    failure
                }
                Err(failure) => failure,
            };
            let checking = self.checked(&name, &config, failure);
            let Some(failure) = stop.run_until_cancelled(checking).await else { return };
            self.host.log(&name, &failure.to_string());
            let is_last = is_new
                || restarts >= MAX_RESTARTS
                || !matches!(failure, Failure::Failed(_) | Failure::Closed);
            self.set(&name, &stop, State::Ended(status(&failure)));
            self.host.tools_changed(&name);
            if is_last || stop.run_until_cancelled(sleep(FIRST_RESTART * 4u32.pow(restarts))).await.is_none()
            {
                return;
            }
            restarts += 1;
        }
    }

    /// Keeps the challenge of a server that needs a sign-in, and checks that a sign-in is possible.
    async fn checked(&self, name: &str, config: &Config, failure: Failure) -> Failure {
        let (Failure::NeedsAuth { challenge }, Kind::Remote(remote)) = (&failure, &config.kind) else {
            return failure;
        };
        if let Some(server) = self.lock().iter_mut().find(|server| *server.name == *name) {
            server.challenge.clone_from(challenge);
        }
        let web = self.host.web();
        let request = SignInRequest { remote, challenge: challenge.as_deref(), redirect: "", web };
        match timeout(SIGN_IN_CHECK, needs_registration(request)).await {
            Ok(Some(failure)) => failure,
            Ok(None) | Err(_) => failure,
        }
    }

    /// Serves an open connection until it ends. Returns the reason, or `None` if it was stopped.
    async fn serve(&self, name: &Arc<str>, opened: Opened, stop: &CancellationToken) -> Option<Failure> {
        let connection = opened.connection.clone();
        let mut is_first = true;
        loop {
            let listed = tokio::select! {
                listed = connection.tools() => listed,
                failure = opened.ended() => return Some(failure),
                () = stop.cancelled() => {
                    opened.close().await;
                    return None;
                }
            };
            match listed {
                Ok(values) => {
                    let read = list::tools(&values, &|text| self.host.neutral(text));
                    if let Some(warning) = &read.warning {
                        self.host.log(name, warning);
                    }
                    self.warn(name, read.warning);
                    let tools = read.entries.into_iter().map(Arc::new).collect();
                    self.set(name, stop, State::Connected(connection.clone(), tools));
                    self.host.tools_changed(name);
                }
                Err(failure) if is_first => {
                    opened.close().await;
                    return Some(failure);
                }
                Err(failure) => self.host.log(name, &format!("reading the list of tools failed: {failure}")),
            }
            is_first = false;
            tokio::select! {
                () = connection.session.changed.notified() => sleep(REFRESH_WAIT).await,
                failure = opened.ended() => return Some(failure),
                () = stop.cancelled() => {
                    opened.close().await;
                    return None;
                }
            }
        }
    }
}

fn status(failure: &Failure) -> Status {
    match failure {
        Failure::NeedsAuth { .. } => Status::NeedsAuth,
        Failure::NeedsRegistration(reason) => Status::NeedsRegistration(reason.clone()),
        Failure::Failed(_) | Failure::Answered { .. } | Failure::Cancelled | Failure::Closed => {
            Status::Failed(failure.to_string())
        }
    }
}
