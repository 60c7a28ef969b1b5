//! The connection to one server: how it begins, and its requests.
//!
//! Every request has a time limit, which progress of the server extends. A request that is given up is cancelled at the
//! server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use codewright_workspace::{Outcome, Outlet, Served};
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, CustomRequest, ProtocolVersion};
use rmcp::service::{ClientInitializeError, Peer, PeerRequestOptions, RunningService, serve_client};
use rmcp::transport::Transport;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::{Config, Kind, Local, Remote, Wire};
use crate::error::{Failure, cut};
use crate::handler::{Handler, Session};
use crate::host::Host;
use crate::http::{Http, headers};
use crate::list::MAX_ENTRIES;
use crate::sse::Sse;
use crate::stdio::Stdio;
use crate::watched::Watched;

/// The time in which a process ends by itself after its input was closed.
const END_PATIENCE: Duration = Duration::from_secs(1);
/// The time in which a server accepts that a request is cancelled.
const CANCEL_WAIT: Duration = Duration::from_millis(500);
/// The limit of pages of a list.
const MAX_PAGES: usize = 100;
/// The first version of the protocol, which the SDK does not list.
const FIRST_VERSION: &str = "2024-10-07";
/// The longest request, however much progress it makes.
const MAX_REQUEST: Duration = Duration::from_secs(60 * 60);

/// An open connection. It is closed when the owner of [`Opened`] closes or drops it.
pub(crate) struct Connection {
    peer: Peer<RoleClient>,
    pub(crate) session: Arc<Session>,
    /// The instructions of the server for the model.
    pub(crate) instructions: Option<String>,
    pub(crate) has_prompts: bool,
    pub(crate) has_resources: bool,
    has_tools: bool,
    timeout: Duration,
    http: Option<Http>,
}

/// A connection and what keeps it open.
pub(crate) struct Opened {
    pub(crate) connection: Arc<Connection>,
    running: RunningService<RoleClient, Handler>,
    process: Option<Process>,
    /// Cancelled when the connection has ended.
    closed: CancellationToken,
}

/// A process and what is known about it.
struct Process {
    program: String,
    served: Served,
    strays: Arc<AtomicUsize>,
}

/// A request to a server.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: Option<Value>,
    /// The time limit without progress.
    pub(crate) limit: Duration,
    pub(crate) cancel: &'a CancellationToken,
    /// Receives the messages about progress.
    pub(crate) progress: Option<&'a (dyn Fn(&str) + Send + Sync)>,
}

impl Opened {
    /// Connects to a server.
    pub(crate) async fn open(
        server: &Arc<str>,
        config: &Config,
        host: &Arc<dyn Host>,
        tasks: &TaskTracker,
    ) -> Result<Self, Failure> {
        let opening = async {
            match &config.kind {
                Kind::Local(local) => Self::local(server, config, local, host, tasks).await,
                Kind::Remote(remote) => Self::remote(server, config, remote, host).await,
            }
        };
        let opened = match timeout(config.timeout, opening).await {
            Ok(opened) => opened,
            Err(_) => {
                let seconds = config.timeout.as_secs_f64();
                Err(Failure::failed(format!("The server did not answer within {seconds} s.")))
            }
        };
        opened.map_err(|failure| match &config.kind {
            Kind::Local(local) => match host.limits(local, config.of_repository) {
                Some(limits) => failure.with(&limits),
                None => failure,
            },
            Kind::Remote(_) => failure,
        })
    }

    async fn local(
        server: &Arc<str>,
        config: &Config,
        local: &Local,
        host: &Arc<dyn Host>,
        tasks: &TaskTracker,
    ) -> Result<Self, Failure> {
        let command = {
            let (host, server, local) = (host.clone(), server.clone(), local.clone());
            let of_repository = config.of_repository;
            let command = move || host.command(&server, &local, of_repository);
            tokio::task::spawn_blocking(command).await.map_err(Failure::failed)?.map_err(Failure::failed)?
        };
        let session = Arc::new(Session::new(server.clone(), host.clone(), config));
        let log = session.clone();
        let (served, socket) =
            codewright_workspace::serve(&command, Outlet::Connection, tasks, move |line| log.log(line))
                .map_err(|error| not_started(&local.program, &error))?;
        let process = Process { program: local.program.clone(), served, strays: Arc::default() };
        let (reader, writer) = socket.into_split();
        let transport = Stdio::new(reader, writer, process.strays.clone());
        // If this future is dropped, the transport is dropped too, which ends the process.
        let closed = process.served.closed().clone();
        match serve(&session, transport, &closed).await {
            Ok(running) => {
                Ok(Self { process: Some(process), ..Self::new(running, session, config, closed)? })
            }
            Err(error) => Err(process.explain(error.into()).await),
        }
    }

    async fn remote(
        server: &Arc<str>,
        config: &Config,
        remote: &Remote,
        host: &Arc<dyn Host>,
    ) -> Result<Self, Failure> {
        let client = {
            let (host, url) = (host.clone(), remote.url.clone());
            let client = tokio::task::spawn_blocking(move || host.http(&url)).await;
            client.map_err(Failure::failed)?.map_err(Failure::failed)?
        };
        let headers = headers(remote)?;
        let session = Arc::new(Session::new(server.clone(), host.clone(), config));
        let mut http = Http::new(server, host, remote, client);
        let mut first = None;
        if remote.wire != Wire::Sse {
            let closed = http.closed.clone();
            let served = serve(&session, http.transport(headers.clone()), &closed).await;
            match served.map_err(|error| explained(&http, error)) {
                Ok(running) => return Ok(Self::new(running, session, config, closed)?.with_http(http)),
                Err(failure @ (Failure::NeedsAuth { .. } | Failure::Answered { .. })) => return Err(failure),
                Err(failure) if remote.wire == Wire::Http => return Err(failure),
                Err(failure) => first = Some(failure),
            }
        }
        let closed = CancellationToken::new();
        http.closed = closed.clone();
        let transport =
            Sse::open(http.clone(), headers).await.map_err(|failure| http.of_configuration(failure));
        let transport = transport.map_err(|failure| match (&failure, first.take()) {
            // The newer transport is the likelier one.
            (Failure::NeedsAuth { .. }, _) | (_, None) => failure,
            (_, Some(first)) => first,
        })?;
        let running = serve(&session, transport, &closed).await.map_err(|error| explained(&http, error))?;
        Ok(Self::new(running, session, config, closed)?.with_http(http))
    }

    fn new(
        running: RunningService<RoleClient, Handler>,
        session: Arc<Session>,
        config: &Config,
        closed: CancellationToken,
    ) -> Result<Self, Failure> {
        let peer = running.peer().clone();
        let info = peer.peer_info();
        let version = info.as_ref().map(|info| info.protocol_version.as_str().to_owned());
        if let Some(version) = version.filter(|version| !is_known(version)) {
            return Err(Failure::failed(format!(
                "The server speaks another version of the protocol: {}.",
                cut(&version)
            )));
        }
        let capabilities = info.as_ref().map(|info| info.capabilities.clone()).unwrap_or_default();
        let connection = Connection {
            peer,
            session,
            instructions: info.and_then(|info| info.instructions.clone()),
            has_tools: capabilities.tools.is_some(),
            has_prompts: capabilities.prompts.is_some(),
            has_resources: capabilities.resources.is_some(),
            timeout: config.timeout,
            http: None,
        };
        Ok(Self { connection: Arc::new(connection), running, process: None, closed })
    }

    fn with_http(mut self, http: Http) -> Self {
        if let Some(connection) = Arc::get_mut(&mut self.connection) {
            connection.http = Some(http);
        }
        self
    }

    /// Waits until the connection has ended by itself. Returns the reason.
    pub(crate) async fn ended(&self) -> Failure {
        self.closed.cancelled().await;
        match &self.process {
            Some(process) => process.explain(Failure::Closed).await,
            None => self.connection.http.as_ref().and_then(Http::take_failure).unwrap_or(Failure::Closed),
        }
    }

    /// Closes the connection and waits until its process has ended.
    pub(crate) async fn close(mut self) {
        // A connection that does not close is abandoned; its process is ended all the same.
        drop(self.running.close_with_timeout(END_PATIENCE).await);
        if let Some(process) = self.process.take() {
            process.served.end().await;
        }
    }
}

/// Whether this program speaks a version of the protocol. The SDK does not check the version that a server chose.
fn is_known(version: &str) -> bool {
    version == FIRST_VERSION || ProtocolVersion::KNOWN_VERSIONS.iter().any(|known| known.as_str() == version)
}

/// Begins the protocol on a transport. `closed` is cancelled when the connection ends.
async fn serve<T: Transport<RoleClient> + 'static>(
    session: &Arc<Session>,
    transport: T,
    closed: &CancellationToken,
) -> Result<RunningService<RoleClient, Handler>, ClientInitializeError> {
    serve_client(Handler(session.clone()), Watched::new(transport, closed.clone())).await
}

fn not_started(program: &str, error: &codewright_workspace::Error) -> Failure {
    match error {
        codewright_workspace::Error::Start { source, .. }
            if source.kind() == std::io::ErrorKind::NotFound =>
        {
            missing(program)
        }
        other => Failure::failed(format!("{}.", cut(&other.to_string()))),
    }
}

fn missing(program: &str) -> Failure {
    let program = cut(program);
    if program.contains('/') {
        Failure::failed(format!("`{program}` does not exist."))
    } else {
        Failure::failed(format!("Executable not found in $PATH: \"{program}\""))
    }
}

fn explained(http: &Http, error: ClientInitializeError) -> Failure {
    match (Failure::from(error), http.take_failure()) {
        (failure @ Failure::Answered { .. }, _) => failure,
        (_, Some(failure)) => failure,
        (failure, None) => failure,
    }
}

impl Process {
    /// Adds what is known about the process to the failure of its connection.
    async fn explain(&self, failure: Failure) -> Failure {
        if !matches!(failure, Failure::Closed | Failure::Failed(_)) {
            return failure;
        }
        let strays = self.strays.load(Ordering::Relaxed);
        match self.served.outcome().await {
            Outcome::Missing => missing(&self.program),
            Outcome::NotExecutable => {
                Failure::failed(format!("Cannot start `{}`: it is not executable.", cut(&self.program)))
            }
            Outcome::Ended { code, last_line: Some(last) } => Failure::failed(format!(
                "The server ended with exit code {code}: {}.",
                cut(&last).trim_end_matches('.')
            )),
            Outcome::Ended { code, last_line: None } if strays > 0 => Failure::failed(format!(
                "The server ended with exit code {code} after {strays} lines of output that are not MCP."
            )),
            Outcome::Ended { code, last_line: None } => {
                Failure::failed(format!("The server ended with exit code {code}."))
            }
            Outcome::Unknown => match failure {
                Failure::Closed => Failure::failed("The server closed its output."),
                failure => failure,
            },
        }
    }
}

impl Connection {
    /// Sends a request and waits for its result.
    pub(crate) async fn request(&self, request: Request<'_>) -> Result<Value, Failure> {
        let Request { method, params, limit, cancel, progress } = request;
        let message = ClientRequest::CustomRequest(CustomRequest::new(method, params));
        let sending = self.peer.send_cancellable_request(message, PeerRequestOptions::no_options());
        let Ok(sent) = timeout(limit, sending).await else { return Err(late(limit)) };
        let mut handle = sent?;
        let token = handle.progress_token.clone();
        let mut steps = self.session.follow(token.clone());
        let last = Instant::now() + MAX_REQUEST;
        let mut deadline = (Instant::now() + limit).min(last);
        let result = loop {
            tokio::select! {
                answer = &mut handle.rx => break Some(answer),
                () = cancel.cancelled() => break None,
                () = sleep_until(deadline) => break None,
                Ok(()) = steps.changed() => {
                    deadline = (Instant::now() + limit).min(last);
                    let text = steps.borrow_and_update().1.clone();
                    if let (Some(progress), Some(text)) = (progress, text) {
                        progress(&text);
                    }
                }
            }
        };
        self.session.unfollow(&token);
        match result {
            Some(Ok(answer)) => Ok(serde_json::to_value(answer?).map_err(Failure::failed)?),
            Some(Err(_)) => Err(self.lost()),
            None => {
                let is_cancelled = cancel.is_cancelled();
                let reason =
                    if is_cancelled { "the user aborted the request" } else { "the request took too long" };
                // The server may be gone, and one that reads nothing must not delay the caller.
                drop(timeout(CANCEL_WAIT, handle.cancel(Some(reason.to_owned()))).await);
                Err(if is_cancelled { Failure::Cancelled } else { late(limit) })
            }
        }
    }

    fn lost(&self) -> Failure {
        self.http.as_ref().and_then(Http::failure).unwrap_or(Failure::Closed)
    }

    /// Reads all pages of a list.
    pub(crate) async fn list(&self, method: &str, key: &str) -> Result<Vec<Value>, Failure> {
        let cancel = CancellationToken::new();
        let mut entries = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let params = cursor.as_ref().map(|cursor| json!({ "cursor": cursor }));
            let request = Request { method, params, limit: self.timeout, cancel: &cancel, progress: None };
            let mut page = self.request(request).await?;
            match page.get_mut(key).map(Value::take) {
                Some(Value::Array(list)) => entries.extend(list),
                _ => {
                    return Err(Failure::failed(format!(
                        "The server's answer to `{method}` contains no list."
                    )));
                }
            }
            let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            if next.is_none() || next == cursor || entries.len() > MAX_ENTRIES {
                break;
            }
            cursor = next;
        }
        Ok(entries)
    }

    /// The list of tools. Servers without tools have none.
    pub(crate) async fn tools(&self) -> Result<Vec<Value>, Failure> {
        if self.has_tools { self.list("tools/list", "tools").await } else { Ok(Vec::new()) }
    }

    /// Reads a prompt or a resource.
    pub(crate) async fn read(&self, method: &str, params: Map<String, Value>) -> Result<Value, Failure> {
        let cancel = CancellationToken::new();
        let params = Some(Value::Object(params));
        self.request(Request { method, params, limit: self.timeout, cancel: &cancel, progress: None }).await
    }
}

fn late(limit: Duration) -> Failure {
    Failure::failed(format!("The server did not answer within {} s.", limit.as_secs_f64()))
}
