//! The requests of an editor.

use std::collections::HashMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, AuthMethod, AuthMethodAgent, AuthenticateRequest, AuthenticateResponse,
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, CancelNotification, ClientCapabilities,
    CloseSessionRequest, CloseSessionResponse, ConfigOptionUpdate, DeleteSessionRequest,
    DeleteSessionResponse, ForkSessionRequest, ForkSessionResponse, Implementation, InitializeRequest,
    InitializeResponse, ListSessionsRequest, ListSessionsResponse, LoadSessionRequest, LoadSessionResponse,
    McpCapabilities, McpServer, NewSessionRequest, NewSessionResponse, PromptCapabilities, PromptRequest,
    ResumeSessionRequest, ResumeSessionResponse, SessionCapabilities, SessionCloseCapabilities,
    SessionConfigOptionValue, SessionDeleteCapabilities, SessionForkCapabilities, SessionInfo,
    SessionListCapabilities, SessionNotification, SessionResumeCapabilities, SessionUpdate,
    SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, SetSessionModeRequest,
    SetSessionModeResponse, UnstructuredCommandInput,
};
use agent_client_protocol::{Agent as AgentRole, Client as Editor, Error, Lines};
use codewright_client::{Client, SessionQuery};
use codewright_proto::{Message, SessionId, SessionInput};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::files::{Documents, EditorFiles};
use crate::options::Menu;
use crate::session::Session;
use crate::transport::{Backlog, Output, lines};
use crate::{feed, prompt, update};

/// The most sessions that are open at the same time.
const MAX_SESSIONS: usize = 256;
/// The most sessions in a list.
const MAX_LISTED: usize = 100;
/// The most servers that an editor may bring with a session.
const MAX_SERVERS: usize = 64;
/// How long a new session waits for the servers that the editor brings. They connect in the background after that.
const SERVERS_DEADLINE: Duration = Duration::from_secs(5);
/// The deepest chain of subagent sessions.
const MAX_DEPTH: usize = 64;
/// The codes of errors, as the protocol names them.
pub(crate) const INTERNAL_ERROR: i32 = -32603;
const INVALID_PARAMS: i32 = -32602;
const NOT_FOUND: i32 = -32002;
/// The capability of editors that show the output of commands which run here, in the metadata of their capabilities.
const TERMINAL_OUTPUT: &str = "terminal_output";
/// The name of the sign-in.
const SIGN_IN: &str = "codewright-login";

/// The program that speaks to the editor.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Its version.
    pub version: &'static str,
    /// The command with which users sign in to a provider.
    pub sign_in: &'static str,
}

/// Serves an editor until its input ends.
///
/// # Errors
///
/// Fails if the streams break.
pub async fn serve<R, W>(
    client: Client,
    identity: Identity,
    documents: Option<Arc<dyn Documents>>,
    input: R,
    output: W,
) -> Result<(), Error>
where
    R: AsyncRead + Send + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let backlog = Backlog::default();
    let transport = Lines::new(Output::new(output, backlog.clone()), lines(input, backlog.clone()));
    let agent = Arc::new(Agent {
        client,
        identity,
        documents,
        backlog,
        connection: OnceLock::new(),
        offer: OnceLock::new(),
        sessions: Mutex::default(),
        feeds: Mutex::default(),
        tasks: TaskTracker::new(),
    });
    let result = connect(&agent, transport).await;
    agent.end().await;
    result
}

/// What an editor can do.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Offer {
    reads_files: bool,
    writes_files: bool,
    /// Whether it shows the output of commands that run here like that of a terminal.
    pub(crate) shows_terminals: bool,
}

impl Offer {
    fn of(capabilities: &ClientCapabilities) -> Self {
        let meta = capabilities.meta.as_ref();
        Self {
            reads_files: capabilities.fs.read_text_file,
            writes_files: capabilities.fs.write_text_file,
            shows_terminals: meta.and_then(|meta| meta.get(TERMINAL_OUTPUT)?.as_bool()).unwrap_or(false),
        }
    }
}

/// The state of a connection.
pub(crate) struct Agent {
    client: Client,
    identity: Identity,
    documents: Option<Arc<dyn Documents>>,
    backlog: Backlog,
    connection: OnceLock<ConnectionTo<Editor>>,
    /// What the editor offers, as its first `initialize` says.
    offer: OnceLock<Offer>,
    sessions: Mutex<HashMap<SessionId, Arc<Session>>>,
    /// The event streams, one for each directory.
    feeds: Mutex<HashMap<PathBuf, tokio::task::AbortHandle>>,
    tasks: TaskTracker,
}

/// Handles a request in a task of its own, so that no request waits for another one.
macro_rules! request {
    ($agent:ident, $method:ident, $request:ty) => {{
        let agent = Arc::clone($agent);
        async move |request: $request, responder, connection: ConnectionTo<Editor>| {
            let agent = Arc::clone(&agent);
            agent.connection.get_or_init(|| connection.clone());
            let tasks = agent.tasks.clone();
            tasks.spawn(async move {
                let result = agent.$method(request).await;
                // If this fails, the connection has ended.
                drop(responder.respond_with_result(result));
            });
            Ok(())
        }
    }};
}

async fn connect<S, L>(agent: &Arc<Agent>, transport: Lines<S, L>) -> Result<(), Error>
where
    S: futures_util::Sink<String, Error = std::io::Error> + Send + 'static,
    L: futures_util::Stream<Item = std::io::Result<String>> + Send + 'static,
{
    use agent_client_protocol::{on_receive_notification, on_receive_request};
    let cancelling = Arc::clone(agent);
    AgentRole
        .v1()
        .name("codewright")
        .on_receive_request(request!(agent, initialize, InitializeRequest), on_receive_request!())
        .on_receive_request(request!(agent, authenticate, AuthenticateRequest), on_receive_request!())
        .on_receive_request(request!(agent, new_session, NewSessionRequest), on_receive_request!())
        .on_receive_request(request!(agent, load_session, LoadSessionRequest), on_receive_request!())
        .on_receive_request(request!(agent, resume_session, ResumeSessionRequest), on_receive_request!())
        .on_receive_request(request!(agent, fork_session, ForkSessionRequest), on_receive_request!())
        .on_receive_request(request!(agent, list_sessions, ListSessionsRequest), on_receive_request!())
        .on_receive_request(request!(agent, close_session, CloseSessionRequest), on_receive_request!())
        .on_receive_request(request!(agent, delete_session, DeleteSessionRequest), on_receive_request!())
        .on_receive_request(request!(agent, set_mode, SetSessionModeRequest), on_receive_request!())
        .on_receive_request(request!(agent, set_option, SetSessionConfigOptionRequest), on_receive_request!())
        .on_receive_request(request!(agent, prompt, PromptRequest), on_receive_request!())
        .on_receive_notification(
            async move |cancel: CancelNotification, _connection| {
                if let Ok(session) = cancelling.session(&cancel.session_id.to_string()) {
                    session.cancel();
                }
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_to(transport)
        .await
}

impl Agent {
    /// The connection to the editor, which exists since its first request.
    pub(crate) fn connection(&self) -> Option<&ConnectionTo<Editor>> {
        self.connection.get()
    }

    /// Runs a task until the connection ends.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Sends an update of a session.
    pub(crate) fn update(&self, id: &SessionId, update: SessionUpdate) {
        let notification = SessionNotification::new(id.as_str().to_owned(), update);
        self.backlog.add(codewright_proto::json_bytes(&notification));
        if let Some(connection) = self.connection() {
            // If this fails, the connection has ended.
            drop(connection.send_notification(notification));
        }
    }

    /// Waits until the editor has read enough. Returns false if it has stopped reading.
    pub(crate) async fn room(&self) -> bool {
        self.backlog.room().await
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session that the editor has opened.
    pub(crate) fn opened(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.sessions().get(id).cloned()
    }

    /// The session of the editor that a session belongs to: itself, or the one that started it as a subagent.
    pub(crate) async fn owner(&self, id: &SessionId) -> Option<Arc<Session>> {
        let mut id = id.clone();
        for _ in 0..MAX_DEPTH {
            if let Some(session) = self.opened(&id) {
                return Some(session);
            }
            id = self.client.session(&id).await.ok()?.parent_id?;
        }
        None
    }

    /// Forgets a session.
    pub(crate) fn forget(&self, id: &SessionId) {
        self.sessions().remove(id);
        if let Some(documents) = &self.documents {
            documents.closed(id);
        }
    }

    /// What the editor can do.
    pub(crate) fn offer(&self) -> Offer {
        self.offer.get().copied().unwrap_or_default()
    }

    /// Offers the files of the editor to the tools of a session.
    fn offer_files(&self, session: &SessionId) {
        let offer = self.offer();
        // A change without the text of the document would lose what is not saved.
        let Some(documents) = self.documents.as_ref().filter(|_| offer.reads_files) else { return };
        let Some(connection) = self.connection().cloned() else { return };
        let files = EditorFiles::reading(connection, session.clone());
        documents.opened(session, if offer.writes_files { files.writing() } else { files });
    }

    /// Forgets an event stream that has ended, so that the next session opens a new one.
    pub(crate) fn lost(&self, directory: &Path) {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner).remove(directory);
    }

    /// Ends all turns and tasks.
    async fn end(&self) {
        let sessions: Vec<_> = self.sessions().drain().map(|(_, session)| session).collect();
        for session in sessions {
            session.cancel();
            if let Some(documents) = &self.documents {
                documents.closed(&session.id);
            }
        }
        for (_, feed) in self.feeds.lock().unwrap_or_else(PoisonError::into_inner).drain() {
            feed.abort();
        }
        self.tasks.close();
        drop(timeout(Duration::from_secs(2), self.tasks.wait()).await);
    }

    fn session(&self, id: &str) -> Result<Arc<Session>, Error> {
        let session = SessionId::parse(id).ok().and_then(|id| self.opened(&id));
        session.ok_or_else(|| invalid(format!("the session `{id}` is not open")))
    }

    async fn initialize(self: &Arc<Self>, request: InitializeRequest) -> Result<InitializeResponse, Error> {
        self.offer.get_or_init(|| Offer::of(&request.client_capabilities));
        let sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .fork(SessionForkCapabilities::new())
            .close(SessionCloseCapabilities::new())
            .delete(SessionDeleteCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .mcp_capabilities(McpCapabilities::new().http(true).sse(true))
            .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
            .session_capabilities(sessions);
        let sign_in = AuthMethodAgent::new(SIGN_IN, "Sign in to a provider")
            .description(format!("Run `{}` in a terminal", self.identity.sign_in));
        Ok(InitializeResponse::new(request.protocol_version)
            .agent_capabilities(capabilities)
            .auth_methods(vec![AuthMethod::Agent(sign_in)])
            .agent_info(Implementation::new("Codewright", self.identity.version)))
    }

    /// Signing in happens in a terminal, so there is nothing to do here.
    async fn authenticate(
        self: &Arc<Self>,
        request: AuthenticateRequest,
    ) -> Result<AuthenticateResponse, Error> {
        match request.method_id.to_string().as_str() {
            SIGN_IN => Ok(AuthenticateResponse::new()),
            other => Err(invalid(format!("there is no sign-in `{other}`"))),
        }
    }

    async fn new_session(self: &Arc<Self>, request: NewSessionRequest) -> Result<NewSessionResponse, Error> {
        let client = self.directory(&request.cwd)?;
        add_servers(&self.tasks, &client, request.mcp_servers).await?;
        let menu = Menu::read(&client).await.map_err(failed)?;
        let session = client.create_session(&SessionInput::default()).await.map_err(failed)?;
        let session = self.open(Session::new(&session, client, menu)).await?;
        let options = session.menu.options(&session.choice());
        Ok(NewSessionResponse::new(session.id.as_str().to_owned()).config_options(options))
    }

    async fn load_session(
        self: &Arc<Self>,
        request: LoadSessionRequest,
    ) -> Result<LoadSessionResponse, Error> {
        let session = self.reopen(&request.session_id.to_string(), &request.cwd, request.mcp_servers).await?;
        self.replay(&session).await?;
        Ok(LoadSessionResponse::new().config_options(session.menu.options(&session.choice())))
    }

    async fn resume_session(
        self: &Arc<Self>,
        request: ResumeSessionRequest,
    ) -> Result<ResumeSessionResponse, Error> {
        let session = self.reopen(&request.session_id.to_string(), &request.cwd, request.mcp_servers).await?;
        Ok(ResumeSessionResponse::new().config_options(session.menu.options(&session.choice())))
    }

    async fn fork_session(
        self: &Arc<Self>,
        request: ForkSessionRequest,
    ) -> Result<ForkSessionResponse, Error> {
        let client = self.directory(&request.cwd)?;
        let id = session_id(&request.session_id.to_string())?;
        let forked = client.fork(&id, None).await.map_err(failed)?;
        let session = self.reopen(forked.id.as_str(), &request.cwd, request.mcp_servers).await?;
        self.replay(&session).await?;
        let options = session.menu.options(&session.choice());
        Ok(ForkSessionResponse::new(session.id.as_str().to_owned()).config_options(options))
    }

    async fn list_sessions(
        self: &Arc<Self>,
        request: ListSessionsRequest,
    ) -> Result<ListSessionsResponse, Error> {
        let client = match &request.cwd {
            Some(directory) => self.directory(directory)?,
            None => self.client.clone(),
        };
        let query = SessionQuery { roots: true, limit: Some(MAX_LISTED), ..SessionQuery::default() };
        let sessions = client.sessions(&query).await.map_err(failed)?;
        let info = |session: codewright_proto::Session| {
            let updated = i64::try_from(session.time.updated).unwrap_or(i64::MAX);
            let updated = Timestamp::from_millisecond(updated).ok().map(|time| format!("{time:.3}"));
            SessionInfo::new(session.id.as_str().to_owned(), session.directory)
                .title(session.title)
                .updated_at(updated)
        };
        Ok(ListSessionsResponse::new(sessions.into_iter().map(info).collect()))
    }

    async fn close_session(
        self: &Arc<Self>,
        request: CloseSessionRequest,
    ) -> Result<CloseSessionResponse, Error> {
        let session = self.session(&request.session_id.to_string())?;
        session.cancel();
        self.forget(&session.id);
        Ok(CloseSessionResponse::new())
    }

    async fn delete_session(
        self: &Arc<Self>,
        request: DeleteSessionRequest,
    ) -> Result<DeleteSessionResponse, Error> {
        let id = session_id(&request.session_id.to_string())?;
        self.client.delete_session(&id).await.map_err(failed)?;
        self.forget(&id);
        Ok(DeleteSessionResponse::new())
    }

    async fn set_mode(
        self: &Arc<Self>,
        request: SetSessionModeRequest,
    ) -> Result<SetSessionModeResponse, Error> {
        let session = self.session(&request.session_id.to_string())?;
        session.choose("mode", &request.mode_id.to_string()).map_err(invalid)?;
        Ok(SetSessionModeResponse::new())
    }

    async fn set_option(
        self: &Arc<Self>,
        request: SetSessionConfigOptionRequest,
    ) -> Result<SetSessionConfigOptionResponse, Error> {
        let session = self.session(&request.session_id.to_string())?;
        let value = match &request.value {
            SessionConfigOptionValue::ValueId { value } => value.to_string(),
            _ => return Err(invalid("the value of an option must be one of its choices")),
        };
        session.choose(&request.config_id.to_string(), &value).map_err(invalid)?;
        let options = session.menu.options(&session.choice());
        let changed = ConfigOptionUpdate::new(options.clone());
        self.update(&session.id, SessionUpdate::ConfigOptionUpdate(changed));
        Ok(SetSessionConfigOptionResponse::new(options))
    }

    async fn prompt(
        self: &Arc<Self>,
        request: PromptRequest,
    ) -> Result<agent_client_protocol::v1::schema::PromptResponse, Error> {
        let session = self.session(&request.session_id.to_string())?;
        prompt::run(self, &session, request.prompt).await
    }

    /// A client of the API for a directory that the editor names.
    fn directory(&self, directory: &Path) -> Result<Client, Error> {
        let shown = directory.display();
        if !directory.is_absolute() {
            return Err(invalid(format!("the working directory `{shown}` is not an absolute path")));
        }
        let name = directory.to_str().ok_or_else(|| invalid(format!("`{shown}` is not UTF-8")))?;
        Ok(self.client.in_directory(name))
    }

    /// Opens a stored session.
    async fn reopen(
        self: &Arc<Self>,
        id: &str,
        directory: &Path,
        servers: Vec<McpServer>,
    ) -> Result<Arc<Session>, Error> {
        let info = self.directory(directory)?.session(&session_id(id)?).await.map_err(failed)?;
        // A session belongs to its own directory, whatever the editor has opened.
        let client = self.directory(Path::new(&info.directory))?;
        add_servers(&self.tasks, &client, servers).await?;
        let menu = Menu::read(&client).await.map_err(failed)?;
        self.open(Session::new(&info, client, menu)).await
    }

    /// Makes a session known, and follows the events of its directory.
    async fn open(self: &Arc<Self>, session: Arc<Session>) -> Result<Arc<Session>, Error> {
        self.follow(&session).await?;
        {
            let mut sessions = self.sessions();
            if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(&session.id) {
                return Err(invalid(format!("{MAX_SESSIONS} sessions are open; close one first")));
            }
            sessions.insert(session.id.clone(), session.clone());
        }
        self.offer_files(&session.id);
        self.spawn(announce(Arc::clone(self), session.clone()));
        Ok(session)
    }

    async fn follow(self: &Arc<Self>, session: &Session) -> Result<(), Error> {
        let is_followed =
            || self.feeds.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&session.directory);
        if is_followed() {
            return Ok(());
        }
        let events = session.client.events().await.map_err(failed)?;
        if is_followed() {
            return Ok(());
        }
        let followed =
            feed::follow(Arc::clone(self), session.client.clone(), session.directory.clone(), events);
        let task = self.tasks.spawn(followed);
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = feeds.insert(session.directory.clone(), task.abort_handle()) {
            other.abort();
        }
        Ok(())
    }

    /// Sends the messages of a session.
    async fn replay(&self, session: &Session) -> Result<(), Error> {
        let messages = session.client.messages(&session.id, None).await.map_err(failed)?;
        for message in messages {
            let is_user = matches!(message.info, Message::User(_));
            for part in &message.parts {
                let updates =
                    if is_user { update::user(part) } else { update::answer(part, &session.directory) };
                for shown in updates {
                    self.update(&session.id, shown);
                }
                if !self.room().await {
                    return Err(Error::new(INTERNAL_ERROR, "the editor does not read"));
                }
            }
        }
        Ok(())
    }
}

/// Sends the commands of a directory.
async fn announce(agent: Arc<Agent>, session: Arc<Session>) {
    let Ok(commands) = session.client.commands().await else { return };
    let mut known =
        commands.as_array().map(Vec::as_slice).unwrap_or_default().iter().filter_map(known).collect();
    add_compact(&mut known);
    agent.update(&session.id, SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(known)));
}

fn known(command: &Value) -> Option<AvailableCommand> {
    let name = command["name"].as_str()?;
    let description = command["description"].as_str().unwrap_or_default();
    let takes_input = command["hints"].as_array().is_some_and(|hints| !hints.is_empty());
    let hint = AvailableCommandInput::Unstructured(UnstructuredCommandInput::new("arguments"));
    Some(AvailableCommand::new(name, description).input(takes_input.then_some(hint)))
}

fn add_compact(commands: &mut Vec<AvailableCommand>) {
    if commands.iter().all(|command| command.name != prompt::COMPACT) {
        commands
            .push(AvailableCommand::new(prompt::COMPACT, "Summarize the conversation to free its context"));
    }
}

/// Adds the servers that an editor brings to a directory. One that cannot connect has a status, and the session goes on.
async fn add_servers(tasks: &TaskTracker, client: &Client, servers: Vec<McpServer>) -> Result<(), Error> {
    if servers.len() > MAX_SERVERS {
        return Err(invalid(format!("a session can have at most {MAX_SERVERS} MCP servers")));
    }
    let added: Vec<_> = servers
        .into_iter()
        .map(|server| {
            let (name, config) = server_config(server)?;
            let client = client.clone();
            Ok(tasks.spawn(async move { client.add_mcp(&name, &config).await }))
        })
        .collect::<Result<_, Error>>()?;
    drop(timeout(SERVERS_DEADLINE, futures_util::future::join_all(added)).await);
    Ok(())
}

/// A server of an editor in the form of the configuration.
fn server_config(server: McpServer) -> Result<(String, Value), Error> {
    let object = |pairs: Vec<(String, String)>| -> Map<String, Value> {
        pairs.into_iter().map(|(name, value)| (name, Value::String(value))).collect()
    };
    let remote =
        |url: String, headers: Map<String, Value>| json!({"type": "remote", "url": url, "headers": headers});
    match server {
        McpServer::Stdio(it) => {
            let program = it.command.to_string_lossy().into_owned();
            let command: Vec<_> = std::iter::once(program).chain(it.args).collect();
            let env = object(it.env.into_iter().map(|variable| (variable.name, variable.value)).collect());
            Ok((it.name, json!({"type": "local", "command": command, "environment": env})))
        }
        McpServer::Http(it) => {
            let headers = it.headers.into_iter().map(|header| (header.name, header.value)).collect();
            Ok((it.name, remote(it.url, object(headers))))
        }
        McpServer::Sse(it) => {
            let headers = it.headers.into_iter().map(|header| (header.name, header.value)).collect();
            Ok((it.name, remote(it.url, object(headers))))
        }
        _ => Err(invalid("a server has an unknown transport")),
    }
}

fn session_id(id: &str) -> Result<SessionId, Error> {
    SessionId::parse(id).map_err(|error| invalid(error.to_string()))
}

/// The error of a request with wrong content.
pub(crate) fn invalid(message: impl Into<String>) -> Error {
    Error::new(INVALID_PARAMS, message)
}

/// The error of the API as one of the protocol.
pub(crate) fn failed(error: codewright_client::Error) -> Error {
    let code = if error.is_not_found() {
        NOT_FOUND
    } else if matches!(&error, codewright_client::Error::Api { status, .. } if status.is_client_error()) {
        INVALID_PARAMS
    } else {
        INTERNAL_ERROR
    };
    let hint = match &error {
        codewright_client::Error::Api { error, .. } => error.data.get("hint").and_then(Value::as_str),
        other => other.hint(),
    };
    let text = hint.map_or_else(|| error.to_string(), |hint| format!("{error}\n{hint}"));
    Error::new(code, text)
}
