//! One function per route.
//!
//! Every call but [`Client::prompt`] and the event stream is answered within
//! thirty seconds or fails. A prompt takes as long as its turn: the server
//! sends a blank every ten seconds to show that it is alive, and a minute
//! without one is a failure.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use codewright_proto::{
    ApiError, CommandInput, FileDiff, HealthReply, KeptFile, MessageId, MessageWithParts, Part, PartId,
    PathReply, PermissionAnswer, PermissionId, PermissionRequest, Project, PromptInput, QuestionAnswers,
    QuestionId, QuestionRequest, RevertInput, Session, SessionId, SessionInput, SessionPatch, SessionStatus,
    ShellInput, SummarizeInput, Todo, TrustDismissal, TrustInput, TrustRecord, TrustReply, UnrevertInput,
    VcsFile, VcsReply,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use tower::Service;

use crate::error::Cause;
use crate::events::Events;
use crate::query::{escape, with_query};
use crate::transport::{Body, Transport, base};
use crate::{Error, SessionQuery};

/// How long an ordinary call may take.
const DEADLINE: Duration = Duration::from_secs(30);
/// How long taking files back or forth may take.
const FILE_DEADLINE: Duration = Duration::from_secs(300);
/// How long the server may be silent while a prompt is answered.
const SILENCE: Duration = Duration::from_secs(60);
/// The longest answer that is read.
const MAX_REPLY_BYTES: usize = 256 * 1024 * 1024;
/// How much of an answer that is not understood is repeated, in characters.
const EXCERPT_CHARS: usize = 200;

/// A server, and in which directory and as whom it is asked. Clones are cheap.
#[derive(Clone)]
pub struct Client(Arc<Server>);

#[derive(Clone)]
pub(crate) struct Server {
    transport: Transport,
    /// What paths are appended to; empty in process.
    base: String,
    authorization: Option<HeaderValue>,
    directory: Option<String>,
}

/// One request, before it knows its server.
struct Call {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    body: Option<Vec<u8>>,
}

/// How long an answer is waited for.
#[derive(Clone, Copy)]
enum Patience {
    /// For all of it.
    Whole(Duration),
    /// For its next bytes.
    Silence(Duration),
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    bytes: Vec<u8>,
}

impl Client {
    /// A client of the server at an `http://` address, with user name and password if it wants them.
    ///
    /// Nothing is sent yet. Without a directory the server's own is meant.
    pub fn http(
        base_url: &str,
        auth: Option<(String, String)>,
        directory: Option<String>,
    ) -> Result<Self, Error> {
        let authorization = auth.map(|(user, password)| {
            let encoded = STANDARD.encode(format!("{user}:{password}"));
            let mut value = HeaderValue::try_from(format!("Basic {encoded}")).expect("base64 is ASCII");
            value.set_sensitive(true);
            value
        });
        let base = base(base_url)?;
        Ok(Self(Arc::new(Server { transport: Transport::http(), base, authorization, directory })))
    }

    /// A client of a server that is called directly, without a socket.
    pub fn in_process<S, B>(service: S) -> Self
    where
        S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = Infallible>,
        S: Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Cause>,
    {
        let transport = Transport::in_process(service);
        Self(Arc::new(Server { transport, base: String::new(), authorization: None, directory: None }))
    }

    /// The same server, asked in another directory.
    #[must_use]
    pub fn in_directory(&self, directory: impl Into<String>) -> Self {
        Self(Arc::new(Server { directory: Some(directory.into()), ..(*self.0).clone() }))
    }

    /// Whether the server is there, and its version.
    pub async fn health(&self) -> Result<HealthReply, Error> {
        self.get("/global/health").await
    }

    /// Makes a session in the client's directory.
    pub async fn create_session(&self, input: &SessionInput) -> Result<Session, Error> {
        self.post("/session", input).await
    }

    /// One session.
    pub async fn session(&self, id: &SessionId) -> Result<Session, Error> {
        self.get(&session_path(id, "")).await
    }

    /// Sessions, newest first.
    pub async fn sessions(&self, query: &SessionQuery) -> Result<Vec<Session>, Error> {
        let call = Call { query: query.pairs(), ..Call::new(Method::GET, "/session") };
        self.0.value(call).await
    }

    /// Changes a session's title or rules.
    pub async fn update_session(&self, id: &SessionId, patch: &SessionPatch) -> Result<Session, Error> {
        let call = Call::new(Method::PATCH, &session_path(id, "")).with_body(patch);
        self.0.value(call).await
    }

    /// Deletes a session and all that belongs to it.
    pub async fn delete_session(&self, id: &SessionId) -> Result<bool, Error> {
        self.0.value(Call::new(Method::DELETE, &session_path(id, ""))).await
    }

    /// A session's messages, oldest first; with a limit, the newest so many.
    pub async fn messages(
        &self,
        id: &SessionId,
        limit: Option<usize>,
    ) -> Result<Vec<MessageWithParts>, Error> {
        let query = limit.map(|limit| ("limit", limit.to_string())).into_iter().collect();
        let call = Call { query, ..Call::new(Method::GET, &session_path(id, "/message")) };
        self.0.value(call).await
    }

    /// A page of a session's messages, oldest first, and the cursor of the page before it.
    ///
    /// Without a cursor it is the last page.
    pub async fn messages_page(
        &self,
        id: &SessionId,
        limit: usize,
        before: Option<&str>,
    ) -> Result<(Vec<MessageWithParts>, Option<String>), Error> {
        let mut query = vec![("limit", limit.to_string())];
        query.extend(before.map(|before| ("before", before.to_owned())));
        let call = Call { query, ..Call::new(Method::GET, &session_path(id, "/message")) };
        let answer = self.0.exchange(call, Patience::Whole(DEADLINE)).await?;
        let next = answer.headers.get("x-next-cursor").and_then(|next| next.to_str().ok()).map(str::to_owned);
        let messages = serde_json::from_slice(&answer.bytes)
            .map_err(|error| self.0.not_understood("GET messages", &answer, &error))?;
        Ok((messages, next))
    }

    /// One message.
    pub async fn message(&self, id: &SessionId, message: &MessageId) -> Result<MessageWithParts, Error> {
        self.get(&message_path(id, message, "")).await
    }

    /// Sends a prompt and waits until it is answered, however long that takes.
    pub async fn prompt(&self, id: &SessionId, input: &PromptInput) -> Result<MessageWithParts, Error> {
        let call = Call::new(Method::POST, &session_path(id, "/message")).with_body(input);
        let answer = self.0.exchange(call, Patience::Silence(SILENCE)).await?;
        match serde_json::from_slice(&answer.bytes) {
            Ok(message) => Ok(message),
            Err(error) => Err(self.0.late_error(&answer, &error)),
        }
    }

    /// Runs a command and waits until it is answered, however long that takes.
    pub async fn command(&self, id: &SessionId, input: &CommandInput) -> Result<MessageWithParts, Error> {
        let call = Call::new(Method::POST, &session_path(id, "/command")).with_body(input);
        let answer = self.0.exchange(call, Patience::Silence(SILENCE)).await?;
        serde_json::from_slice(&answer.bytes).map_err(|error| self.0.late_error(&answer, &error))
    }

    /// Runs a command line of the user's and waits until it has ended, however long that takes.
    pub async fn shell(&self, id: &SessionId, input: &ShellInput) -> Result<(), Error> {
        let call = Call::new(Method::POST, &session_path(id, "/shell")).with_body(input);
        let answer = self.0.exchange(call, Patience::Silence(SILENCE)).await?;
        match serde_json::from_slice::<MessageWithParts>(&answer.bytes) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.0.late_error(&answer, &error)),
        }
    }

    /// Files and directories whose names resemble a text, the most alike first.
    pub async fn find_files(&self, query: &str, limit: usize) -> Result<Vec<String>, Error> {
        let query = vec![("query", query.to_owned()), ("limit", limit.to_string())];
        self.0.value(Call { query, ..Call::new(Method::GET, "/find/file") }).await
    }

    /// The branches of the directory.
    pub async fn vcs(&self) -> Result<VcsReply, Error> {
        self.get("/vcs").await
    }

    /// What differs in the directory from the last commit (`git`) or from where its branch began (`branch`).
    pub async fn vcs_diff(&self, mode: &str, context: u32) -> Result<Vec<VcsFile>, Error> {
        let query = vec![("mode", mode.to_owned()), ("context", context.to_string())];
        self.patient(Call { query, ..Call::new(Method::GET, "/vcs/diff") }).await
    }

    /// The skills that the directory knows.
    pub async fn skills(&self) -> Result<Value, Error> {
        self.get("/skill").await
    }

    /// The tool servers and how they are.
    pub async fn mcp(&self) -> Result<Value, Error> {
        self.get("/mcp").await
    }

    /// Connects to a tool server, or lets it go.
    pub async fn switch_mcp(&self, name: &str, on: bool) -> Result<bool, Error> {
        let path = format!("/mcp/{}/{}", escape(name), if on { "connect" } else { "disconnect" });
        self.patient(Call::new(Method::POST, &path)).await
    }

    /// The language servers and how they are.
    pub async fn lsp(&self) -> Result<Value, Error> {
        self.get("/lsp").await
    }

    /// The formatters, and which of them are used.
    pub async fn formatters(&self) -> Result<Value, Error> {
        self.get("/formatter").await
    }

    /// The directories of a project.
    pub async fn project_directories(&self, project: &str) -> Result<Value, Error> {
        self.get(&format!("/project/{}/directories", escape(project))).await
    }

    /// The workspaces of a project.
    pub async fn workspaces(&self) -> Result<Value, Error> {
        self.get("/experimental/workspace").await
    }

    /// Moves a session to another directory of its project; its changes stay where they are.
    pub async fn move_session(&self, id: &SessionId, directory: &str) -> Result<(), Error> {
        let body = serde_json::json!({"sessionID": id, "destination": {"directory": directory}});
        let path = "/experimental/control-plane/move-session";
        let call = Call::new(Method::POST, path).with_body(&body);
        self.0.exchange(call, Patience::Whole(FILE_DEADLINE)).await.map(|_| ())
    }

    /// Publishes a session.
    pub async fn share(&self, id: &SessionId) -> Result<Session, Error> {
        self.0.value(Call::new(Method::POST, &session_path(id, "/share"))).await
    }

    /// Takes a published session back.
    pub async fn unshare(&self, id: &SessionId) -> Result<Session, Error> {
        self.0.value(Call::new(Method::DELETE, &session_path(id, "/share"))).await
    }

    /// All providers there are, and which of them can be used.
    pub async fn all_providers(&self) -> Result<Value, Error> {
        self.get("/provider").await
    }

    /// How one can sign in to which provider.
    pub async fn sign_in_methods(&self) -> Result<Value, Error> {
        self.get("/provider/auth").await
    }

    /// Begins a sign-in: where to go, and whether a code is to be brought back.
    pub async fn begin_sign_in(
        &self,
        provider: &str,
        method: usize,
        inputs: &BTreeMap<String, String>,
    ) -> Result<Value, Error> {
        let body = serde_json::json!({"method": method, "inputs": inputs});
        self.post(&format!("/provider/{}/oauth/authorize", escape(provider)), &body).await
    }

    /// Ends a sign-in, with the code that was brought back; without one it waits until the user is done elsewhere.
    pub async fn finish_sign_in(
        &self,
        provider: &str,
        method: usize,
        code: Option<&str>,
    ) -> Result<bool, Error> {
        let mut body = serde_json::json!({"method": method});
        if let Some(code) = code {
            body["code"] = Value::from(code);
        }
        let path = format!("/provider/{}/oauth/callback", escape(provider));
        let call = Call::new(Method::POST, &path).with_body(&body);
        self.patient(call).await
    }

    /// Stores a key for a provider.
    pub async fn put_key(&self, provider: &str, key: &str) -> Result<bool, Error> {
        let body = serde_json::json!({"type": "api", "key": key});
        let path = format!("/auth/{}", escape(provider));
        self.0.value(Call::new(Method::PUT, &path).with_body(&body)).await
    }

    /// The commands that the directory knows.
    pub async fn commands(&self) -> Result<Value, Error> {
        self.get("/command").await
    }

    /// Sends a prompt; what comes of it is told by events.
    pub async fn prompt_async(&self, id: &SessionId, input: &PromptInput) -> Result<(), Error> {
        let call = Call::new(Method::POST, &session_path(id, "/prompt_async")).with_body(input);
        self.0.exchange(call, Patience::Whole(DEADLINE)).await.map(|_| ())
    }

    /// Stops a session's turn.
    pub async fn abort(&self, id: &SessionId) -> Result<bool, Error> {
        self.0.value(Call::new(Method::POST, &session_path(id, "/abort"))).await
    }

    /// A new session with the messages of another, up to but without `until` if it is given.
    pub async fn fork(&self, id: &SessionId, until: Option<&MessageId>) -> Result<Session, Error> {
        let until: BTreeMap<_, _> = until.map(|until| ("messageID", until)).into_iter().collect();
        self.post(&session_path(id, "/fork"), &until).await
    }

    /// The sessions that a session started.
    pub async fn children(&self, id: &SessionId) -> Result<Vec<Session>, Error> {
        self.get(&session_path(id, "/children")).await
    }

    /// A session's list of things to do.
    pub async fn todos(&self, id: &SessionId) -> Result<Vec<Todo>, Error> {
        self.get(&session_path(id, "/todo")).await
    }

    /// What a prompt changed; without one, what is taken back at this moment.
    pub async fn diff(&self, id: &SessionId, message: Option<&MessageId>) -> Result<Vec<FileDiff>, Error> {
        let query = message.map(|message| ("messageID", message.to_string())).into_iter().collect();
        self.0.value(Call { query, ..Call::new(Method::GET, &session_path(id, "/diff")) }).await
    }

    /// Puts a summary in the place of the conversation so far, and waits for it.
    pub async fn summarize(&self, id: &SessionId, input: &SummarizeInput) -> Result<bool, Error> {
        let call = Call::new(Method::POST, &session_path(id, "/summarize")).with_body(input);
        let answer = self.0.exchange(call, Patience::Silence(SILENCE)).await?;
        serde_json::from_slice(&answer.bytes).map_err(|error| self.0.late_error(&answer, &error))
    }

    /// Takes a session and its files back to the moment before a message or part.
    pub async fn revert(&self, id: &SessionId, input: &RevertInput) -> Result<Session, Error> {
        let call = Call::new(Method::POST, &session_path(id, "/revert")).with_body(input);
        self.patient(call).await
    }

    /// Takes a session forth again; with it the files that did not come along.
    pub async fn unrevert(
        &self,
        id: &SessionId,
        input: &UnrevertInput,
    ) -> Result<(Session, Vec<KeptFile>), Error> {
        #[derive(Deserialize)]
        struct Unreverted {
            #[serde(flatten)]
            session: Session,
            #[serde(default)]
            kept: Vec<KeptFile>,
        }
        let call = Call::new(Method::POST, &session_path(id, "/unrevert")).with_body(input);
        let Unreverted { session, kept } = self.patient(call).await?;
        Ok((session, kept))
    }

    /// Removes a message; files stay as they are.
    pub async fn remove_message(&self, id: &SessionId, message: &MessageId) -> Result<bool, Error> {
        self.0.value(Call::new(Method::DELETE, &message_path(id, message, ""))).await
    }

    /// Removes a part of a message.
    pub async fn remove_part(
        &self,
        id: &SessionId,
        message: &MessageId,
        part: &PartId,
    ) -> Result<bool, Error> {
        let path = message_path(id, message, &format!("/part/{}", escape(part.as_str())));
        self.0.value(Call::new(Method::DELETE, &path)).await
    }

    /// Gives a part a new value, or its message a new part.
    pub async fn update_part(&self, part: &Part) -> Result<Part, Error> {
        let rest = format!("/part/{}", escape(part.id.as_str()));
        let path = message_path(&part.session_id, &part.message_id, &rest);
        self.0.value(Call::new(Method::PATCH, &path).with_body(part)).await
    }

    /// What sessions do that are not idle.
    pub async fn statuses(&self) -> Result<BTreeMap<SessionId, SessionStatus>, Error> {
        self.get("/session/status").await
    }

    /// The permission requests that wait for a user.
    pub async fn permissions(&self) -> Result<Vec<PermissionRequest>, Error> {
        self.get("/permission").await
    }

    /// Answers a permission request.
    pub async fn reply_permission(
        &self,
        id: &PermissionId,
        answer: &PermissionAnswer,
    ) -> Result<bool, Error> {
        self.post(&format!("/permission/{}/reply", escape(id.as_str())), answer).await
    }

    /// The trust of the directory.
    pub async fn trust(&self) -> Result<TrustReply, Error> {
        self.get("/trust").await
    }

    /// Decides whether the directory is trusted.
    pub async fn decide_trust(&self, input: &TrustInput) -> Result<TrustReply, Error> {
        self.post("/trust", input).await
    }

    /// Tells the server that the user was asked about these control files and has not decided.
    pub async fn dismiss_trust(&self, dismissal: &TrustDismissal) -> Result<bool, Error> {
        self.post("/trust/dismiss", dismissal).await
    }

    /// The stored trust decisions, the newest first.
    pub async fn trust_decisions(&self) -> Result<Vec<TrustRecord>, Error> {
        self.get("/trust/decisions").await
    }

    /// Removes the trust decision about a directory; whether there was one.
    pub async fn remove_trust(&self, path: &str) -> Result<bool, Error> {
        self.0.value(Call::new(Method::DELETE, &format!("/trust/decisions?path={}", escape(path)))).await
    }

    /// The questions that wait for a user.
    pub async fn questions(&self) -> Result<Vec<QuestionRequest>, Error> {
        self.get("/question").await
    }

    /// Answers a question.
    pub async fn reply_question(&self, id: &QuestionId, answers: &QuestionAnswers) -> Result<bool, Error> {
        self.post(&format!("/question/{}/reply", escape(id.as_str())), answers).await
    }

    /// Refuses a question.
    pub async fn reject_question(&self, id: &QuestionId) -> Result<bool, Error> {
        self.post(&format!("/question/{}/reject", escape(id.as_str())), &serde_json::json!({})).await
    }

    /// Where things are.
    pub async fn path(&self) -> Result<PathReply, Error> {
        self.get("/path").await
    }

    /// The project of the directory.
    pub async fn project(&self) -> Result<Project, Error> {
        self.get("/project/current").await
    }

    /// The configuration that holds in the directory.
    pub async fn config(&self) -> Result<Value, Error> {
        self.get("/config").await
    }

    /// The agents that the directory knows.
    pub async fn agents(&self) -> Result<Value, Error> {
        self.get("/agent").await
    }

    /// The providers that can be used, with their models and default models.
    pub async fn providers(&self) -> Result<Value, Error> {
        self.get("/config/providers").await
    }

    /// What happens in the directory from now on.
    ///
    /// When this returns the stream is open: nothing that happens afterwards is missed.
    pub async fn events(&self) -> Result<Events, Error> {
        self.open_events(None).await
    }

    /// What happened in the directory after a place in the log, and what happens from now on.
    pub async fn events_after(&self, position: u64) -> Result<Events, Error> {
        self.open_events(Some(position)).await
    }

    async fn open_events(&self, position: Option<u64>) -> Result<Events, Error> {
        let server = &self.0;
        let mut request = server.request(Call::new(Method::GET, "/event"))?;
        request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(position) = position {
            request.headers_mut().insert("last-event-id", HeaderValue::from(position));
        }
        let deadline = Instant::now() + DEADLINE;
        let response = server.send(request, deadline, DEADLINE).await?;
        let kind = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        if response.status() != StatusCode::OK
            || !kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"))
        {
            let answer = server.read(response, Patience::Whole(DEADLINE), deadline).await?;
            return Err(match server.accept(answer) {
                Err(error) => error,
                Ok(_) => server.protocol("`GET /event` is not an event stream"),
            });
        }
        let opened = Events::open(Arc::clone(server), response.into_body());
        timeout_at(deadline, opened).await.map_err(|_| server.timeout(DEADLINE))?
    }

    /// A call whose work on files may take longer than an ordinary one.
    async fn patient<T: DeserializeOwned>(&self, call: Call) -> Result<T, Error> {
        let name = format!("{} {}", call.method, call.path);
        let answer = self.0.exchange(call, Patience::Whole(FILE_DEADLINE)).await?;
        serde_json::from_slice(&answer.bytes).map_err(|error| self.0.not_understood(&name, &answer, &error))
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.0.value(Call::new(Method::GET, path)).await
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Error> {
        self.0.value(Call::new(Method::POST, path).with_body(body)).await
    }
}

impl Call {
    fn new(method: Method, path: &str) -> Self {
        Self { method, path: path.to_owned(), query: Vec::new(), body: None }
    }

    fn with_body(mut self, body: &impl Serialize) -> Self {
        // Only maps with keys that are not text fail, and the vocabulary has none.
        self.body = Some(serde_json::to_vec(body).expect("the vocabulary is JSON"));
        self
    }
}

impl Server {
    async fn value<T: DeserializeOwned>(&self, call: Call) -> Result<T, Error> {
        let name = format!("{} {}", call.method, call.path);
        let answer = self.exchange(call, Patience::Whole(DEADLINE)).await?;
        serde_json::from_slice(&answer.bytes).map_err(|error| self.not_understood(&name, &answer, &error))
    }

    async fn exchange(&self, call: Call, patience: Patience) -> Result<Answer, Error> {
        let request = self.request(call)?;
        let after = patience.duration();
        let deadline = Instant::now() + after;
        let response = self.send(request, deadline, after).await?;
        self.accept(self.read(response, patience, deadline).await?)
    }

    fn request(&self, mut call: Call) -> Result<Request<Full<Bytes>>, Error> {
        // Reading requests name the directory in the query, as the other clients do; some
        // proxies cache by address alone.
        let reads = call.method == Method::GET;
        let named = call.query.iter().any(|(name, _)| *name == "directory");
        let directory = self.directory.as_deref().filter(|_| !named);
        if let Some(directory) = directory.filter(|_| reads) {
            call.query.push(("directory", directory.to_owned()));
        }
        let address = format!("{}{}", self.base, with_query(&call.path, &call.query));
        let mut request = Request::builder().method(call.method).uri(address);
        if let Some(directory) = directory.filter(|_| !reads) {
            request = request.header("x-opencode-directory", escape(directory));
        }
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization.clone());
        }
        if call.body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        request
            .body(Full::new(call.body.map(Bytes::from).unwrap_or_default()))
            .map_err(|error| self.unreachable(error.into()))
    }

    async fn send(
        &self,
        request: Request<Full<Bytes>>,
        deadline: Instant,
        after: Duration,
    ) -> Result<Response<Body>, Error> {
        let sent = timeout_at(deadline, self.transport.send(request)).await;
        sent.map_err(|_| self.timeout(after))?.map_err(|source| self.broken(source))
    }

    async fn read(
        &self,
        response: Response<Body>,
        patience: Patience,
        mut deadline: Instant,
    ) -> Result<Answer, Error> {
        let (head, mut body) = response.into_parts();
        let mut bytes = Vec::new();
        loop {
            let arrived = timeout_at(deadline, body.frame()).await;
            let Some(frame) = arrived.map_err(|_| self.timeout(patience.duration()))? else { break };
            let frame = frame.map_err(|source| self.broken(source))?;
            let Some(data) = frame.data_ref() else { continue };
            if bytes.len() + data.len() > MAX_REPLY_BYTES {
                let limit = MAX_REPLY_BYTES / 1024 / 1024;
                return Err(self.protocol(format!("it has more than {limit} MiB")));
            }
            bytes.extend_from_slice(data);
            if let Patience::Silence(silence) = patience {
                deadline = Instant::now() + silence;
            }
        }
        Ok(Answer { status: head.status, headers: head.headers, bytes })
    }

    /// Lets a success through and turns everything else into an error.
    fn accept(&self, answer: Answer) -> Result<Answer, Error> {
        if answer.status == StatusCode::UNAUTHORIZED {
            return Err(Error::Unauthorized);
        }
        let kind = answer.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        if kind.is_some_and(|kind| kind.starts_with(b"text/html")) {
            return Err(self.protocol("it is a web page"));
        }
        if answer.status.is_success() {
            return Ok(answer);
        }
        let error = api_error(&answer.bytes).unwrap_or_else(|| {
            let reason = answer.status.canonical_reason().unwrap_or("unknown status");
            ApiError::new(
                "UnknownError",
                format!("{} {reason} {}", answer.status.as_u16(), excerpt(&answer.bytes)),
            )
        });
        Err(Error::Api { status: answer.status, error })
    }

    /// A server that has begun to answer can no longer change the status; it puts the error into the body.
    fn late_error(&self, answer: &Answer, error: &serde_json::Error) -> Error {
        match api_error(&answer.bytes) {
            Some(error) => Error::Api { status: StatusCode::INTERNAL_SERVER_ERROR, error },
            None => self.not_understood("the answer to the prompt", answer, error),
        }
    }

    fn not_understood(&self, what: &str, answer: &Answer, error: &serde_json::Error) -> Error {
        self.protocol(format!("{what}: {error} in `{}`", excerpt(&answer.bytes)))
    }

    fn broken(&self, source: Cause) -> Error {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(source.as_ref());
        while let Some(error) = cause {
            if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse) {
                return self.protocol("it is not HTTP");
            }
            cause = error.source();
        }
        self.unreachable(source)
    }

    pub(crate) fn unreachable(&self, source: Cause) -> Error {
        Error::Unreachable { url: self.name(), source }
    }

    pub(crate) fn protocol(&self, reason: impl Into<String>) -> Error {
        Error::Protocol { url: self.name(), reason: reason.into() }
    }

    pub(crate) fn timeout(&self, after: Duration) -> Error {
        Error::Timeout { url: self.name(), after }
    }

    fn name(&self) -> String {
        if self.base.is_empty() { "this process".to_owned() } else { self.base.clone() }
    }
}

impl Patience {
    fn duration(self) -> Duration {
        match self {
            Self::Whole(duration) | Self::Silence(duration) => duration,
        }
    }
}

fn session_path(id: &SessionId, rest: &str) -> String {
    format!("/session/{}{rest}", escape(id.as_str()))
}

fn message_path(id: &SessionId, message: &MessageId, rest: &str) -> String {
    session_path(id, &format!("/message/{}{rest}", escape(message.as_str())))
}

/// Reads an error body: `{name, data}`, or the `{_tag, message, …}` that a few routes use.
fn api_error(bytes: &[u8]) -> Option<ApiError> {
    if let Ok(error) = serde_json::from_slice(bytes) {
        return Some(error);
    }
    let Ok(Value::Object(mut data)) = serde_json::from_slice(bytes) else { return None };
    let Some(Value::String(name)) = data.remove("_tag") else { return None };
    Some(ApiError { name, data })
}

fn excerpt(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(EXCERPT_CHARS * 4)])
        .chars()
        .take(EXCERPT_CHARS)
        .collect()
}
