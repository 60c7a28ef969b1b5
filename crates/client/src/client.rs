//! The client: one function for each route of the API.
//!
//! An ordinary call is answered within thirty seconds or fails. Calls that wait for a turn
//! ([`Client::prompt`], [`Client::command`], [`Client::shell`], [`Client::summarize`]) take as long as
//! the turn: the server sends a blank every ten seconds to show that it is alive, and the call fails
//! after a minute without one.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use codewright_proto::{
    BugReport, CommandInput, FileDiff, HealthReply, KeptFile, MessageId, MessageWithParts, Part, PartId,
    PathReply, PermissionAnswer, PermissionId, PermissionRequest, Project, PromptInput, QuestionAnswers,
    QuestionId, QuestionRequest, RevertInput, Review, ReviewRequest, Session, SessionId, SessionInput,
    SessionPatch, SessionStatus, ShellInput, SummarizeInput, Todo, TrustDismissal, TrustInput, TrustRecord,
    TrustReply, UnrevertInput, VcsFile, VcsReply, Worktree, WorktreeCreateInput,
};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use tower::Service;

use crate::error::Cause;
use crate::events::Events;
use crate::exchange::{Call, DEADLINE, Limit, Server};
use crate::query::escape;
use crate::transport::{Transport, base};
use crate::{Error, SessionQuery};

/// The number of sessions among which the last one of a directory is searched.
const LAST_SESSIONS: usize = 100;
/// The time limit of calls that work on files or wait for another server.
const SLOW_DEADLINE: Duration = Duration::from_secs(300);
/// The deadline of a list that plugins change: longer than the server waits for an installation.
const LIST_DEADLINE: Duration = Duration::from_secs(150);

/// The preference of a client whose lists wait for plugins that are loaded, but not for an installation. In seconds.
const QUICK: &str = "wait=2";

/// A client of a server, for one directory and one user. Clones are cheap.
#[derive(Clone)]
pub struct Client(Arc<Server>);

impl Client {
    /// Creates a client of the server at an `http://` URL. `auth` is a user name and a password.
    ///
    /// Nothing is sent yet. Without a directory, requests are for the server's own directory.
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
        Ok(Self(Arc::new(Server {
            transport: Transport::http(),
            base,
            authorization,
            directory,
            preference: None,
        })))
    }

    /// Creates a client that calls a server directly, without a socket.
    pub fn in_process<S, B>(service: S) -> Self
    where
        S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = Infallible>,
        S: Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Cause>,
    {
        let transport = Transport::in_process(service);
        let base = String::new();
        Self(Arc::new(Server { transport, base, authorization: None, directory: None, preference: None }))
    }

    /// Returns a client whose lists wait for plugins for a few seconds at most. After `server.instance.disposed` it fetches
    /// them again.
    #[must_use]
    pub fn with_quick_lists(&self) -> Self {
        let preference = Some(HeaderValue::from_static(QUICK));
        Self(Arc::new(Server { preference, ..(*self.0).clone() }))
    }

    /// Returns a client of the same server for another directory.
    #[must_use]
    pub fn in_directory(&self, directory: impl Into<String>) -> Self {
        Self(Arc::new(Server { directory: Some(directory.into()), ..(*self.0).clone() }))
    }

    /// Returns the version of the server, which shows that it is running.
    pub async fn health(&self) -> Result<HealthReply, Error> {
        self.get("/global/health").await
    }

    /// Creates a session in the client's directory.
    pub async fn create_session(&self, input: &SessionInput) -> Result<Session, Error> {
        self.post("/session", input).await
    }

    /// Returns a session.
    pub async fn session(&self, id: &SessionId) -> Result<Session, Error> {
        self.get(&session_path(id, "")).await
    }

    /// Returns the sessions that match a query, newest first.
    pub async fn sessions(&self, query: &SessionQuery) -> Result<Vec<Session>, Error> {
        let call = Call { query: query.pairs(), ..Call::new(Method::GET, "/session") };
        self.0.value(call).await
    }

    /// Returns the session that was changed last in the client's directory or below it, or `None`. Sessions of subagents, of
    /// other worktrees and of directories that no longer exist do not count.
    pub async fn last_session(&self) -> Result<Option<Session>, Error> {
        let below = self.path().await?.directory;
        let query = SessionQuery {
            roots: true,
            whole_project: true,
            below: Some(below.clone()),
            limit: Some(LAST_SESSIONS),
            ..SessionQuery::default()
        };
        let found = self.sessions(&query).await?;
        // A server that does not know `below` returns the sessions of the whole project.
        Ok(found.into_iter().find(|session| Path::new(&session.directory).starts_with(&below)))
    }

    /// Changes the title or the permission rules of a session.
    pub async fn update_session(&self, id: &SessionId, patch: &SessionPatch) -> Result<Session, Error> {
        let call = Call::new(Method::PATCH, &session_path(id, "")).with_body(patch);
        self.0.value(call).await
    }

    /// Deletes a session and all that belongs to it.
    pub async fn delete_session(&self, id: &SessionId) -> Result<bool, Error> {
        self.0.value(Call::new(Method::DELETE, &session_path(id, ""))).await
    }

    /// Returns the messages of a session, oldest first. A limit keeps only the newest messages.
    pub async fn messages(
        &self,
        id: &SessionId,
        limit: Option<usize>,
    ) -> Result<Vec<MessageWithParts>, Error> {
        let query = limit.map(|limit| ("limit", limit.to_string())).into_iter().collect();
        let call = Call { query, ..Call::new(Method::GET, &session_path(id, "/message")) };
        self.0.value(call).await
    }

    /// Returns a page of the messages of a session, oldest first, and the cursor of the previous page.
    ///
    /// Without a cursor, it returns the last page.
    pub async fn messages_page(
        &self,
        id: &SessionId,
        limit: usize,
        before: Option<&str>,
    ) -> Result<(Vec<MessageWithParts>, Option<String>), Error> {
        let mut query = vec![("limit", limit.to_string())];
        query.extend(before.map(|before| ("before", before.to_owned())));
        let call = Call { query, ..Call::new(Method::GET, &session_path(id, "/message")) };
        let answer = self.0.exchange(call, Limit::Total(DEADLINE)).await?;
        let next = answer.headers.get("x-next-cursor").and_then(|next| next.to_str().ok()).map(str::to_owned);
        let messages = serde_json::from_slice(&answer.bytes)
            .map_err(|error| self.0.invalid("GET messages", &answer, &error))?;
        Ok((messages, next))
    }

    /// Returns a message.
    pub async fn message(&self, id: &SessionId, message: &MessageId) -> Result<MessageWithParts, Error> {
        self.get(&message_path(id, message, "")).await
    }

    /// Sends a prompt and waits for the end of the turn.
    pub async fn prompt(&self, id: &SessionId, input: &PromptInput) -> Result<MessageWithParts, Error> {
        let call = Call::new(Method::POST, &session_path(id, "/message")).with_body(input);
        self.0.late_value(call).await
    }

    /// Runs a command and waits for the end of the turn.
    pub async fn command(&self, id: &SessionId, input: &CommandInput) -> Result<MessageWithParts, Error> {
        let call = Call::new(Method::POST, &session_path(id, "/command")).with_body(input);
        self.0.late_value(call).await
    }

    /// Runs a shell command of the user and waits for its end.
    pub async fn shell(&self, id: &SessionId, input: &ShellInput) -> Result<(), Error> {
        let call = Call::new(Method::POST, &session_path(id, "/shell")).with_body(input);
        self.0.late_value::<MessageWithParts>(call).await.map(drop)
    }

    /// Returns files and directories whose paths match a text, best match first.
    pub async fn find_files(&self, query: &str, limit: usize) -> Result<Vec<String>, Error> {
        let query = vec![("query", query.to_owned()), ("limit", limit.to_string())];
        self.0.value(Call { query, ..Call::new(Method::GET, "/find/file") }).await
    }

    /// Returns symbols of running language servers whose names match a text.
    pub async fn find_symbols(&self, query: &str) -> Result<Vec<Value>, Error> {
        let query = vec![("query", query.to_owned())];
        self.0.value(Call { query, ..Call::new(Method::GET, "/find/symbol") }).await
    }

    /// Returns the branches of the directory.
    pub async fn vcs(&self) -> Result<VcsReply, Error> {
        self.get("/vcs").await
    }

    /// Applies a patch to the directory as a whole.
    pub async fn apply_patch(&self, patch: &str) -> Result<Value, Error> {
        self.post("/vcs/apply", &json!({ "patch": patch })).await
    }

    /// Returns the session and the prompt of a review of the uncommitted changes, or of a range.
    pub async fn review_request(&self, range: Option<&str>) -> Result<ReviewRequest, Error> {
        let query = range.map(|range| ("range", range.to_owned())).into_iter().collect();
        self.slow(Call { query, ..Call::new(Method::GET, "/experimental/review") }).await
    }

    /// Returns the findings of a review.
    pub async fn review(&self, id: &SessionId) -> Result<Review, Error> {
        self.get(&session_path(id, "/review")).await
    }

    /// Returns a report of a problem, without credentials. Nothing is sent.
    pub async fn bug_report(&self) -> Result<BugReport, Error> {
        self.slow(Call::new(Method::POST, "/experimental/bug").with_body(&json!({}))).await
    }

    /// Returns the changes in the directory since the last commit (mode `git`) or since its branch
    /// began (mode `branch`).
    pub async fn vcs_diff(&self, mode: &str, context: u32) -> Result<Vec<VcsFile>, Error> {
        let query = vec![("mode", mode.to_owned()), ("context", context.to_string())];
        self.slow(Call { query, ..Call::new(Method::GET, "/vcs/diff") }).await
    }

    /// Returns the skills of the directory.
    pub async fn skills(&self) -> Result<Value, Error> {
        self.list("/skill").await
    }

    /// Returns the MCP servers and their states.
    pub async fn mcp(&self) -> Result<Value, Error> {
        self.list("/mcp").await
    }

    /// Adds an MCP server to the directory until the server of the API ends, and returns the states of all.
    pub async fn add_mcp(&self, name: &str, config: &Value) -> Result<Value, Error> {
        let body = serde_json::json!({ "name": name, "config": config });
        self.slow(Call::new(Method::POST, "/mcp").with_body(&body)).await
    }

    /// Connects to an MCP server, or disconnects from it.
    pub async fn switch_mcp(&self, name: &str, on: bool) -> Result<bool, Error> {
        let path = format!("/mcp/{}/{}", escape(name), if on { "connect" } else { "disconnect" });
        self.slow(Call::new(Method::POST, &path)).await
    }

    /// Starts the sign-in to an MCP server and returns the address of the page.
    pub async fn begin_mcp_sign_in(&self, name: &str) -> Result<Value, Error> {
        self.slow(Call::new(Method::POST, &format!("/mcp/{}/auth", escape(name)))).await
    }

    /// Ends the sign-in to an MCP server with the code, or with the address that the browser ended at.
    pub async fn finish_mcp_sign_in(&self, name: &str, code: &str) -> Result<Value, Error> {
        let path = format!("/mcp/{}/auth/callback", escape(name));
        let call = Call::new(Method::POST, &path).with_body(&serde_json::json!({ "code": code }));
        self.slow(call).await
    }

    /// Returns the language servers and their states.
    pub async fn lsp(&self) -> Result<Value, Error> {
        self.get("/lsp").await
    }

    /// Returns the resources of the MCP servers.
    pub async fn resources(&self) -> Result<Value, Error> {
        self.get("/experimental/resource").await
    }

    /// Returns the formatters, and whether they are enabled.
    pub async fn formatters(&self) -> Result<Value, Error> {
        self.get("/formatter").await
    }

    /// Returns the directories of a project.
    pub async fn project_directories(&self, project: &str) -> Result<Value, Error> {
        self.get(&format!("/project/{}/directories", escape(project))).await
    }

    /// Returns the workspaces of a project.
    pub async fn workspaces(&self) -> Result<Value, Error> {
        self.get("/experimental/workspace").await
    }

    /// Moves a session to another directory of its project. Files do not move.
    pub async fn move_session(&self, id: &SessionId, directory: &str) -> Result<(), Error> {
        let body = serde_json::json!({"sessionID": id, "destination": {"directory": directory}});
        let path = "/experimental/control-plane/move-session";
        let call = Call::new(Method::POST, path).with_body(&body);
        self.0.exchange(call, Limit::Total(SLOW_DEADLINE)).await.map(|_| ())
    }

    /// Creates a worktree of the project. Its files are created in the background.
    pub async fn create_worktree(&self, input: &WorktreeCreateInput) -> Result<Worktree, Error> {
        self.slow(Call::new(Method::POST, "/experimental/worktree").with_body(input)).await
    }

    /// Publishes a session.
    pub async fn share(&self, id: &SessionId) -> Result<Session, Error> {
        self.0.value(Call::new(Method::POST, &session_path(id, "/share"))).await
    }

    /// Removes a published session.
    pub async fn unshare(&self, id: &SessionId) -> Result<Session, Error> {
        self.0.value(Call::new(Method::DELETE, &session_path(id, "/share"))).await
    }

    /// Returns all providers, and which of them are available.
    pub async fn all_providers(&self) -> Result<Value, Error> {
        self.list("/provider").await
    }

    /// Returns the sign-in methods of every provider.
    pub async fn sign_in_methods(&self) -> Result<Value, Error> {
        self.list("/provider/auth").await
    }

    /// Starts a sign-in. Returns the URL to open, and whether the user must enter a code.
    pub async fn begin_sign_in(
        &self,
        provider: &str,
        method: usize,
        inputs: &BTreeMap<String, String>,
    ) -> Result<Value, Error> {
        let mut body = serde_json::json!({"method": method});
        // Plugins take an empty object as a sign-in of the command line.
        if !inputs.is_empty() {
            body["inputs"] = serde_json::json!(inputs);
        }
        self.post(&format!("/provider/{}/oauth/authorize", escape(provider)), &body).await
    }

    /// Finishes a sign-in with a code. Without one, waits until the user has signed in in the browser.
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
        self.slow(call).await
    }

    /// Stores an API key for a provider, with the answers to the sign-in questions.
    pub async fn put_key(
        &self,
        provider: &str,
        key: &str,
        inputs: &BTreeMap<String, String>,
    ) -> Result<bool, Error> {
        let mut body = serde_json::json!({"type": "api", "key": key});
        if !inputs.is_empty() {
            body["metadata"] = serde_json::json!(inputs);
        }
        let path = format!("/auth/{}", escape(provider));
        self.0.value(Call::new(Method::PUT, &path).with_body(&body)).await
    }

    /// Returns the commands of the directory.
    pub async fn commands(&self) -> Result<Value, Error> {
        self.list("/command").await
    }

    /// Sends a prompt without waiting for its turn. Events report the turn's progress.
    pub async fn prompt_async(&self, id: &SessionId, input: &PromptInput) -> Result<(), Error> {
        let call = Call::new(Method::POST, &session_path(id, "/prompt_async")).with_body(input);
        self.0.exchange(call, Limit::Total(DEADLINE)).await.map(|_| ())
    }

    /// Takes the server out of service among those that share its store.
    pub async fn drain(&self) -> Result<bool, Error> {
        self.0.value(Call::new(Method::POST, "/global/drain")).await
    }

    /// Aborts the turn of a session.
    pub async fn abort(&self, id: &SessionId) -> Result<bool, Error> {
        self.0.value(Call::new(Method::POST, &session_path(id, "/abort"))).await
    }

    /// Creates a session with the messages of another, up to `until`, which is not included.
    pub async fn fork(&self, id: &SessionId, until: Option<&MessageId>) -> Result<Session, Error> {
        let until: BTreeMap<_, _> = until.map(|until| ("messageID", until)).into_iter().collect();
        self.post(&session_path(id, "/fork"), &until).await
    }

    /// Returns the sessions that a session started.
    pub async fn children(&self, id: &SessionId) -> Result<Vec<Session>, Error> {
        self.get(&session_path(id, "/children")).await
    }

    /// Returns the to-do list of a session.
    pub async fn todos(&self, id: &SessionId) -> Result<Vec<Todo>, Error> {
        self.get(&session_path(id, "/todo")).await
    }

    /// Returns the changes of a prompt. Without one, returns the changes that are currently undone.
    pub async fn diff(&self, id: &SessionId, message: Option<&MessageId>) -> Result<Vec<FileDiff>, Error> {
        let query = message.map(|message| ("messageID", message.to_string())).into_iter().collect();
        self.0.value(Call { query, ..Call::new(Method::GET, &session_path(id, "/diff")) }).await
    }

    /// Replaces the conversation so far with a summary, and waits for it.
    pub async fn summarize(&self, id: &SessionId, input: &SummarizeInput) -> Result<bool, Error> {
        let call = Call::new(Method::POST, &session_path(id, "/summarize")).with_body(input);
        self.0.late_value(call).await
    }

    /// Reverts a session and its files to their state before a message or part.
    pub async fn revert(&self, id: &SessionId, input: &RevertInput) -> Result<Session, Error> {
        let call = Call::new(Method::POST, &session_path(id, "/revert")).with_body(input);
        self.slow(call).await
    }

    /// Redoes the undone part of a session. Also returns the files that were not restored.
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
        let Unreverted { session, kept } = self.slow(call).await?;
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

    /// Replaces a part, or adds it to its message.
    pub async fn update_part(&self, part: &Part) -> Result<Part, Error> {
        let rest = format!("/part/{}", escape(part.id.as_str()));
        let path = message_path(&part.session_id, &part.message_id, &rest);
        self.0.value(Call::new(Method::PATCH, &path).with_body(part)).await
    }

    /// Returns the status of every session that is not idle.
    pub async fn statuses(&self) -> Result<BTreeMap<SessionId, SessionStatus>, Error> {
        self.get("/session/status").await
    }

    /// Returns the pending permission requests.
    pub async fn permissions(&self) -> Result<Vec<PermissionRequest>, Error> {
        self.get("/permission").await
    }

    /// Replies to a permission request.
    pub async fn reply_permission(
        &self,
        id: &PermissionId,
        answer: &PermissionAnswer,
    ) -> Result<bool, Error> {
        self.post(&format!("/permission/{}/reply", escape(id.as_str())), answer).await
    }

    /// Returns the sandbox of commands. The server finds out what its machine enforces.
    pub async fn sandbox(&self) -> Result<Value, Error> {
        self.get("/experimental/sandbox?probe=true").await
    }

    /// Returns the setting of the sandbox of commands, without starting a process.
    pub async fn sandbox_setting(&self) -> Result<Value, Error> {
        self.get("/experimental/sandbox").await
    }

    /// Returns the tools that a model is offered, with their schemas.
    pub async fn tools(&self, provider: &str, model: &str) -> Result<Value, Error> {
        let query = vec![("provider", provider.to_owned()), ("model", model.to_owned())];
        self.0.value(Call { query, ..Call::new(Method::GET, "/experimental/tool") }).await
    }

    /// Returns the trust of the directory.
    pub async fn trust(&self) -> Result<TrustReply, Error> {
        self.get("/trust").await
    }

    /// Decides whether the directory is trusted.
    pub async fn decide_trust(&self, input: &TrustInput) -> Result<TrustReply, Error> {
        self.post("/trust", input).await
    }

    /// Records that the user saw these control files and did not decide.
    pub async fn dismiss_trust(&self, dismissal: &TrustDismissal) -> Result<bool, Error> {
        self.post("/trust/dismiss", dismissal).await
    }

    /// Returns the stored trust decisions, newest first.
    pub async fn trust_decisions(&self) -> Result<Vec<TrustRecord>, Error> {
        self.get("/trust/decisions").await
    }

    /// Removes the trust decision about a directory. Returns whether there was one.
    pub async fn remove_trust(&self, path: &str) -> Result<bool, Error> {
        self.0.value(Call::new(Method::DELETE, &format!("/trust/decisions?path={}", escape(path)))).await
    }

    /// Returns the pending questions.
    pub async fn questions(&self) -> Result<Vec<QuestionRequest>, Error> {
        self.get("/question").await
    }

    /// Answers a question.
    pub async fn reply_question(&self, id: &QuestionId, answers: &QuestionAnswers) -> Result<bool, Error> {
        self.post(&format!("/question/{}/reply", escape(id.as_str())), answers).await
    }

    /// Rejects a question.
    pub async fn reject_question(&self, id: &QuestionId) -> Result<bool, Error> {
        self.post(&format!("/question/{}/reject", escape(id.as_str())), &serde_json::json!({})).await
    }

    /// Returns the directories that the server uses.
    pub async fn path(&self) -> Result<PathReply, Error> {
        self.get("/path").await
    }

    /// Returns the project of the directory.
    pub async fn project(&self) -> Result<Project, Error> {
        self.get("/project/current").await
    }

    /// Returns the configuration of the directory.
    pub async fn config(&self) -> Result<Value, Error> {
        self.list("/config").await
    }

    /// Changes the configuration of the directory. Returns the changed configuration.
    ///
    /// # Errors
    ///
    /// Fails if a key or a value is invalid. Nothing is changed then.
    pub async fn change_config(&self, change: &Value) -> Result<Value, Error> {
        self.0.value(Call::new(Method::PATCH, "/config").with_body(change)).await
    }

    /// Returns the agents of the directory.
    pub async fn agents(&self) -> Result<Value, Error> {
        self.list("/agent").await
    }

    /// Returns the available providers, with their models and default models.
    pub async fn providers(&self) -> Result<Value, Error> {
        self.list("/config/providers").await
    }

    /// Asks a provider whether it accepts the stored key: `status` and `message`.
    pub async fn verify_credential(&self, provider: &str) -> Result<Value, Error> {
        self.post(&format!("/auth/{}/verify", escape(provider)), &serde_json::json!({})).await
    }

    /// Opens the event stream of the directory.
    ///
    /// No event that is emitted after this function has returned is missed.
    pub async fn events(&self) -> Result<Events, Error> {
        self.open_events(None).await
    }

    /// Opens the event stream of the directory after a position in the event log.
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
            let answer = server.read(response, Limit::Total(DEADLINE), deadline).await?;
            return Err(match server.accept(answer) {
                Err(error) => error,
                Ok(_) => server.protocol("`GET /event` is not an event stream"),
            });
        }
        let opened = Events::open(Arc::clone(server), response.into_body());
        timeout_at(deadline, opened).await.map_err(|_| server.timeout(DEADLINE))?
    }

    /// Sends a call that may take longer than an ordinary one.
    async fn slow<T: DeserializeOwned>(&self, call: Call) -> Result<T, Error> {
        self.0.value_within(call, SLOW_DEADLINE).await
    }

    /// Returns a list that plugins change. The server waits for a plugin that is being installed.
    async fn list<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.0.value_within(Call::new(Method::GET, path), LIST_DEADLINE).await
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.0.value(Call::new(Method::GET, path)).await
    }

    async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Error> {
        self.0.value(Call::new(Method::POST, path).with_body(body)).await
    }
}

fn session_path(id: &SessionId, rest: &str) -> String {
    format!("/session/{}{rest}", escape(id.as_str()))
}

fn message_path(id: &SessionId, message: &MessageId, rest: &str) -> String {
    session_path(id, &format!("/message/{}{rest}", escape(message.as_str())))
}
