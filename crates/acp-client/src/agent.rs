//! A connected agent and its sessions.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, ClientCapabilities, ContentBlock, FileSystemCapabilities, Implementation,
    InitializeRequest, InitializeResponse, LoadSessionRequest, LoadSessionResponse, McpServer,
    NewSessionRequest, NewSessionResponse, PromptRequest, ResumeSessionRequest, ResumeSessionResponse,
    SessionConfigOption, SessionModeState,
};
use codewright_workspace::{Outcome, Outlet, Served, serve};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use crate::error::Error;
use crate::host::{Host, Spec};
use crate::peer::{AUTH_REQUIRED, Failure, Peer, RpcError};
use crate::routes::Routes;
use crate::turn::{Event, Turn};

/// The time in which an agent must start. Package managers download it before the first start.
const START_DEADLINE: Duration = Duration::from_secs(120);
/// The time in which an agent must open a session or change an option of it.
const SESSION_DEADLINE: Duration = Duration::from_secs(60);
/// The number of sessions that are kept for one process. The least recently used one is forgotten for another.
const MAX_SESSIONS: usize = 256;
/// The number of events of a prompt that are not read yet. Reading from the agent waits when it is reached.
const MAX_EVENTS: usize = 8;
/// The longest text of an agent in an error.
const MAX_ERROR_CHARS: usize = 500;
/// The longest id of a session.
const MAX_ID_BYTES: usize = 1024;

/// A connected agent.
pub struct Agent {
    spec: Spec,
    host: Arc<dyn Host>,
    peer: Arc<Peer>,
    served: Served,
    routes: Arc<Routes>,
    capabilities: AgentCapabilities,
    /// How users sign in, as the agent describes it.
    sign_in: Vec<String>,
    sessions: tokio::sync::Mutex<Sessions>,
}

#[derive(Default)]
struct Sessions {
    open: HashMap<String, (Arc<Session>, u64)>,
    uses: u64,
}

/// A session of an agent.
pub struct Session {
    id: String,
    /// Locked by the prompt that runs.
    turn: Arc<tokio::sync::Mutex<()>>,
    memory: Mutex<Memory>,
}

/// How a session is opened.
#[derive(Debug, Clone, Default)]
pub struct Opening {
    /// Its working directory.
    pub directory: PathBuf,
    /// The MCP servers that the agent may use.
    pub servers: Vec<McpServer>,
    /// The session of an earlier process, which continues if the agent can do that.
    pub earlier: Option<Earlier>,
}

/// A session of an earlier process of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Earlier {
    /// The agent's id of the session.
    pub id: String,
    /// What the owner remembers about it.
    pub memory: Memory,
}

/// A session as the agent opened it.
struct Opened {
    id: String,
    options: Option<Vec<SessionConfigOption>>,
    modes: Option<SessionModeState>,
    memory: Memory,
}

/// What the owner remembers about a session of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    /// The last message that the agent knows.
    pub message: Option<String>,
    /// The cost of the session so far, as the agent reported it.
    pub cost: f64,
}

impl Session {
    /// The agent's id of the session.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits until no prompt of the session runs.
    pub async fn idle(&self) {
        drop(self.turn.lock().await);
    }

    /// Returns what the owner remembers.
    #[must_use]
    pub fn memory(&self) -> Memory {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes what the owner remembers.
    pub fn remember(&self, change: impl FnOnce(&mut Memory)) {
        change(&mut self.memory.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Agent {
    /// Starts an agent and negotiates with it.
    pub(crate) async fn start(
        spec: &Spec,
        host: &Arc<dyn Host>,
        tasks: &TaskTracker,
    ) -> Result<Arc<Self>, Error> {
        let (of_host, of_spec) = (host.clone(), spec.clone());
        let command = tokio::task::spawn_blocking(move || of_host.command(&of_spec)).await;
        let failed = |why: &str| Error::Failed(format!("the agent `{}` cannot start: {why}", spec.name));
        let command = command.map_err(|error| failed(&error.to_string()))?.map_err(|why| failed(&why))?;
        let (logged, name) = (host.clone(), spec.name.clone());
        let (served, socket) =
            serve(&command, Outlet::Connection, tasks, move |line| logged.log(&name, line))
                .map_err(|error| failed(&error.to_string()))?;
        // A start that is given up ends the process.
        let guard = served.closed().clone().drop_guard();
        let routes = Arc::new(Routes::new(&spec.name, host.clone()));
        let peer = Peer::start(socket, served.closed().clone(), tasks, routes.clone());
        let fs = FileSystemCapabilities::new().read_text_file(true).write_text_file(true);
        let request = InitializeRequest::new(ProtocolVersion::V1)
            .client_capabilities(ClientCapabilities::new().fs(fs).terminal(true))
            .client_info(Implementation::new("codewright", host.version()));
        let answer = peer.request::<InitializeResponse>("initialize", &request, START_DEADLINE).await;
        let agent = |capabilities, sign_in| Self {
            spec: spec.clone(),
            host: host.clone(),
            peer: peer.clone(),
            served: served.clone(),
            routes: routes.clone(),
            capabilities,
            sign_in,
            sessions: tokio::sync::Mutex::default(),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) => {
                return Err(agent(AgentCapabilities::new(), Vec::new()).failed("starting", failure).await);
            }
        };
        if answer.protocol_version != ProtocolVersion::V1 {
            return Err(failed(&format!("it speaks version {} of the protocol", answer.protocol_version)));
        }
        let names = answer.auth_methods.iter().take(MAX_SESSIONS).map(|method| method.name().to_owned());
        guard.disarm();
        Ok(Arc::new(agent(answer.agent_capabilities, names.collect())))
    }

    /// Reports whether the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.peer.closed.is_cancelled()
    }

    /// What the agent can do.
    #[must_use]
    pub fn capabilities(&self) -> &AgentCapabilities {
        &self.capabilities
    }

    /// Ends the process of the agent and waits until it is gone, but not for long.
    pub(crate) async fn end(&self) {
        self.peer.closed.cancel();
        self.served.clone().end().await;
    }

    /// Returns the session for a key, which is opened if this process of the agent does not have it. The memory of a session
    /// that could not continue is empty.
    ///
    /// # Errors
    ///
    /// Fails if the agent refuses, and if it does not answer in time.
    pub async fn session(self: &Arc<Self>, key: &str, opening: &Opening) -> Result<Arc<Session>, Error> {
        let mut sessions = self.sessions.lock().await;
        sessions.uses += 1;
        let now = sessions.uses;
        if let Some((session, used)) = sessions.open.get_mut(key) {
            *used = now;
            return Ok(session.clone());
        }
        let servers = self.usable(&opening.servers);
        let opened = match self.open_earlier(opening, &servers).await? {
            Some(opened) => opened,
            None => self.open_new(opening, servers).await?,
        };
        self.set_options(&opened).await?;
        let Opened { id, memory, .. } = opened;
        let session = Arc::new(Session { id, turn: Arc::default(), memory: Mutex::new(memory) });
        if sessions.open.len() >= MAX_SESSIONS {
            let oldest = sessions.open.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| sessions.open.remove(&oldest));
        }
        sessions.open.insert(key.to_owned(), (session.clone(), now));
        Ok(session)
    }

    /// Returns the servers whose transport the agent has.
    fn usable(&self, servers: &[McpServer]) -> Vec<McpServer> {
        let can = &self.capabilities.mcp_capabilities;
        let is_usable = |server: &&McpServer| match server {
            McpServer::Stdio(_) => true,
            McpServer::Http(_) => can.http,
            McpServer::Sse(_) => can.sse,
            _ => false,
        };
        let usable: Vec<_> = servers.iter().filter(is_usable).cloned().collect();
        if usable.len() < servers.len() {
            let count = servers.len() - usable.len();
            self.log(&format!("{count} MCP servers are not passed, because the agent has no such transport"));
        }
        usable
    }

    async fn open_new(&self, opening: &Opening, servers: Vec<McpServer>) -> Result<Opened, Error> {
        let request = NewSessionRequest::new(&opening.directory).mcp_servers(servers);
        let opened = self.peer.request::<NewSessionResponse>("session/new", &request, SESSION_DEADLINE).await;
        match opened {
            Ok(opened) if opened.session_id.0.len() <= MAX_ID_BYTES => Ok(Opened {
                id: opened.session_id.0.to_string(),
                options: opened.config_options,
                modes: opened.modes,
                memory: Memory::default(),
            }),
            Ok(_) => Err(self.misbehaved("the id of its session is too long")),
            Err(failure) => Err(self.failed("opening a session", failure).await),
        }
    }

    /// Continues the session of an earlier process. Returns `None` if the agent cannot do that. Updates about the earlier
    /// conversation are ignored, because no prompt runs.
    async fn open_earlier(&self, opening: &Opening, servers: &[McpServer]) -> Result<Option<Opened>, Error> {
        let Some(Earlier { id, memory }) = opening.earlier.clone() else { return Ok(None) };
        let (directory, servers) = (&opening.directory, servers.to_vec());
        let answer = if self.capabilities.session_capabilities.resume.is_some() {
            let request = ResumeSessionRequest::new(id.clone(), directory).mcp_servers(servers);
            let answer =
                self.peer.request::<ResumeSessionResponse>("session/resume", &request, SESSION_DEADLINE);
            answer.await.map(|answer| (answer.config_options, answer.modes))
        } else if self.capabilities.load_session {
            let request = LoadSessionRequest::new(id.clone(), directory).mcp_servers(servers);
            let answer = self.peer.request::<LoadSessionResponse>("session/load", &request, SESSION_DEADLINE);
            answer.await.map(|answer| (answer.config_options, answer.modes))
        } else {
            return Ok(None);
        };
        match answer {
            Ok((options, modes)) => Ok(Some(Opened { id, options, modes, memory })),
            Err(Failure::Refused(error)) if error.code != AUTH_REQUIRED => {
                self.log(&format!("it does not continue an earlier session: {}", plain(&error.message)));
                Ok(None)
            }
            Err(failure) => Err(self.failed("continuing a session", failure).await),
        }
    }

    /// Forgets the session of a key, so that the next one starts without its conversation.
    pub async fn forget(&self, key: &str) {
        self.sessions.lock().await.open.remove(key);
    }

    /// Sets the configured options of a session. Options that the agent does not have are reported in the log.
    async fn set_options(&self, opened: &Opened) -> Result<(), Error> {
        let session = &opened.id;
        for (id, value) in &self.spec.options {
            let options = opened.options.iter().flatten();
            let has_option = options.into_iter().any(|option| *option.id.0 == **id);
            let has_mode = id == "mode"
                && opened
                    .modes
                    .iter()
                    .flat_map(|modes| &modes.available_modes)
                    .any(|mode| *mode.id.0 == **value);
            let (method, params) = if has_option {
                let params = json!({"sessionId": session, "configId": id, "value": value});
                ("session/set_config_option", params)
            } else if has_mode {
                ("session/set_mode", json!({"sessionId": session, "modeId": value}))
            } else {
                self.log(&format!("it has no option `{id}` with the value `{value}`"));
                continue;
            };
            if let Err(failure) = self.peer.request::<Value>(method, &params, SESSION_DEADLINE).await {
                return Err(self.failed(&format!("setting the option `{id}`"), failure).await);
            }
        }
        Ok(())
    }

    /// Sends a prompt. Waits until an earlier prompt of the session has ended.
    ///
    /// # Errors
    ///
    /// Fails if the agent is gone.
    pub async fn prompt(
        self: &Arc<Self>,
        session: &Arc<Session>,
        blocks: Vec<ContentBlock>,
    ) -> Result<Turn, Error> {
        let turn = session.turn.clone().lock_owned().await;
        let (sender, events) = mpsc::channel::<Event>(MAX_EVENTS);
        self.routes.open(&session.id, sender);
        let request = PromptRequest::new(session.id.clone(), blocks);
        match self.peer.begin("session/prompt", &request).await {
            Ok(answer) => Ok(Turn::new(self.clone(), session.clone(), events, answer, turn)),
            Err(failure) => {
                self.routes.close(&session.id);
                Err(self.failed("sending a prompt", failure).await)
            }
        }
    }

    pub(crate) fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    pub(crate) fn routes(&self) -> &Routes {
        &self.routes
    }

    pub(crate) fn log(&self, text: &str) {
        self.host.log(&self.spec.name, text);
    }

    /// The error of a connection that has ended, with what is known about the process.
    pub(crate) async fn ended(&self) -> Error {
        let name = &self.spec.name;
        Error::Failed(match self.served.outcome().await {
            Outcome::Missing => {
                format!("the agent `{name}` cannot start: there is no program `{}`", self.spec.program)
            }
            Outcome::NotExecutable => {
                format!("the agent `{name}` cannot start: `{}` is not executable", self.spec.program)
            }
            Outcome::Ended { code, last_line } => {
                let said = last_line.map(|line| format!(": {}", plain(&line))).unwrap_or_default();
                format!("the agent `{name}` ended with the exit code {code}{said}")
            }
            Outcome::Unknown => format!("the connection to the agent `{name}` ended"),
        })
    }

    /// The error of an answer that does not follow the protocol.
    pub(crate) fn misbehaved(&self, why: impl std::fmt::Display) -> Error {
        let why = plain(&why.to_string());
        Error::Failed(format!("the agent `{}` does not follow the protocol: {why}", self.spec.name))
    }

    /// The error of a request that the agent refused.
    pub(crate) fn refused(&self, what: &str, error: &RpcError) -> Error {
        let (name, message) = (&self.spec.name, plain(&error.message));
        if error.code != AUTH_REQUIRED {
            return Error::Failed(format!("the agent `{name}` refused {what}: {message}"));
        }
        let methods: Vec<_> = self.sign_in.iter().map(|method| format!("`{}`", plain(method))).collect();
        let methods = if methods.is_empty() { String::new() } else { format!(" ({})", methods.join(", ")) };
        Error::SignIn(format!(
            "the agent `{name}` needs a sign-in{methods}: sign in with its own program `{}`, and try again",
            self.spec.program
        ))
    }

    async fn failed(&self, what: &str, failure: Failure) -> Error {
        match failure {
            Failure::Refused(error) => self.refused(what, &error),
            Failure::Ended => self.ended().await,
            Failure::Late => {
                // A process that hangs is of no use for other sessions either.
                self.peer.closed.cancel();
                Error::Failed(format!("the agent `{}` did not answer in time: {what}", self.spec.name))
            }
            Failure::Invalid(why) => self.misbehaved(why),
        }
    }
}

/// Text of an agent as a part of one line.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_ERROR_CHARS).collect()
}
