//! Passes requests on to the server that can answer them, if several servers share a database.
//!
//! A request may reach any of them. `reach` says where a route is answered, `choose` which servers come into question, and
//! `forward` sends the request there. Such a request is signed with the secret that the servers have in common (`sign`), and
//! is never passed on again. `signals` carries what is not stored, such as the deltas of a text, to the streams of the
//! other servers. A server with a store in a file has none of this.

pub(crate) mod choose;
mod forward;
mod gather;
pub(crate) mod reach;
mod sign;
pub(crate) mod signals;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use codewright_engine::{Engine, Member, NodeView};
use codewright_proto::{PermissionId, PtyId, QuestionId, SessionId};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::Error;
use crate::extract::named_directory;
use crate::route::Reached;
use crate::state::App;
use choose::{Choice, Question};
use forward::{DIRECTORY, Outcome, Sent};
use reach::{Holder, Reach};
use sign::{Nonces, Secret};

/// The header that a server signs a request with.
pub(crate) const HEADER: &str = "x-codewright-node";
/// The header that says who sent a request, if it was not a client. Only a signed one has a meaning.
pub(crate) const SENDER: &str = "x-codewright-sender";
/// See [`SENDER`].
pub(crate) const LOCAL: &str = "local";
/// The memory of all request bodies that are passed on or checked at the same time.
const MAX_BODIES_KIB: usize = 128 * 1024;
/// How long a request waits for such memory.
const ROOM_TIMEOUT: Duration = Duration::from_secs(10);
/// The deadline for connecting to another server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest silence of another server within an answer. Streams and waiting prompts send a sign of life every ten seconds.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(120);

/// The connections of this server to the others.
pub(crate) struct Nodes {
    /// `None` without an address of this server: it passes nothing on and accepts nothing.
    connected: Option<Connected>,
    room: Arc<Semaphore>,
    nonces: Mutex<Nonces>,
}

/// What a connection to another server needs.
struct Connected {
    secret: Secret,
    client: reqwest::Client,
}

/// Marks a request of another server, whose signature was checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfNode {
    /// Whether that process sent it itself, such as for a plugin, and so without a user.
    pub(crate) is_local: bool,
}

/// Marks the answer of another server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passed;

impl Nodes {
    /// Returns the connections, if the engine has joined other servers.
    pub(crate) fn new(engine: &Engine) -> Option<Self> {
        let settings = engine.nodes().settings()?;
        let secret = settings.address.and(settings.secret);
        let connected = secret.and_then(|secret| {
            // It fails if a provider is already installed, which is fine.
            drop(rustls::crypto::ring::default_provider().install_default());
            let client = reqwest::Client::builder()
                .no_proxy()
                .no_gzip()
                .http1_only()
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(CONNECT_TIMEOUT)
                .read_timeout(SILENCE_TIMEOUT);
            // Without a client nothing is passed on, as without an address.
            client.build().ok().map(|client| Connected { secret: Secret::new(&secret), client })
        });
        let room = Arc::new(Semaphore::new(MAX_BODIES_KIB));
        Some(Self { connected, room, nonces: Mutex::default() })
    }

    /// Checks the signature of a request from another server, and marks the request.
    pub(crate) async fn check(app: &App, request: Request) -> Result<Request, Error> {
        let (mut parts, body) = request.into_parts();
        let Some(signature) = parts.headers.remove(HEADER) else {
            return Ok(Request::from_parts(parts, body));
        };
        let nodes = app.nodes.as_ref().ok_or(Error::Unauthorized)?;
        let connected = nodes.connected.as_ref().ok_or(Error::Unauthorized)?;
        let view = app.engine.nodes().view().ok_or_else(unknown)?;
        let signed = sign::Claim::read(&signature, &parts).ok_or(Error::Unauthorized)?;
        signed.check(&connected.secret, &view)?;
        nodes.nonces.lock().unwrap_or_else(PoisonError::into_inner).add(&signed, view.now_ms)?;
        let (body, room) = nodes.read(app, body).await?;
        signed.check_body(&body)?;
        let is_local = parts.headers.get(SENDER).is_some_and(|sender| sender == LOCAL);
        parts.extensions.insert(OfNode { is_local });
        // The body is in memory as long as the request.
        parts.extensions.insert(Arc::new(room));
        Ok(Request::from_parts(parts, Body::from(body)))
    }

    /// Reads the body of a request, within the limits of the server.
    async fn read(&self, app: &App, body: Body) -> Result<(Bytes, OwnedSemaphorePermit), Error> {
        let limit_bytes = app.options.body_limit_bytes;
        let size = http_body::Body::size_hint(&body).upper().map_or(limit_bytes, |size| size as usize);
        let kib = size.min(limit_bytes).div_ceil(1024) as u32;
        let room = timeout(ROOM_TIMEOUT, Arc::clone(&self.room).acquire_many_owned(kib)).await;
        let Ok(Ok(room)) = room else { return Err(Error::Full) };
        let collected = timeout(app.options.body_deadline, Limited::new(body, limit_bytes).collect()).await;
        match collected.map_err(|_| Error::SlowBody)? {
            Ok(collected) => Ok((collected.to_bytes(), room)),
            Err(error) if error.is::<LengthLimitError>() => Err(Error::TooLarge { limit_bytes }),
            Err(_) => Err(Error::payload("the request body is incomplete")),
        }
    }
}

/// The error while the database cannot be read.
fn unknown() -> Error {
    Error::NoNode { message: "the database cannot be read, so the other servers are not known".to_owned() }
}

/// Answers a request here, or passes it on to a server that can.
pub(crate) async fn route(
    State((app, route)): State<(App, Reached)>,
    request: Request,
    next: Next,
) -> Response {
    let answered = match route.reach {
        Reach::Here => Ok(next.run(request).await),
        _ if request.extensions().get::<OfNode>().is_some() => arrived(&app, route, request, next).await,
        Reach::Everywhere => Ok(gather::everywhere(&app, request, next).await),
        Reach::Holder(holder) => of_holder(&app, holder, request, next).await,
        Reach::Session | Reach::SessionOrHere => of_session(&app, route, request, next).await,
        Reach::Directory => of_directory(&app, route, request, next).await,
    };
    answered.unwrap_or_else(Error::into_response)
}

/// Answers a request that another server has passed on. It is not passed on again.
async fn arrived(app: &App, route: Reached, request: Request, next: Next) -> Result<Response, Error> {
    let nodes = app.engine.nodes();
    let directory = match route.reach {
        Reach::Session => match session_id(route.path, request.uri().path()) {
            // A session that runs here may go on while the server drains.
            Some(id) if nodes.is_running(&id) => None,
            Some(id) if nodes.is_draining() => return Err(Error::Misdirected { id: id.to_string() }),
            Some(id) => app.directories.of(&app.engine, &id).await.map(|home| PathBuf::from(&home.directory)),
            None => None,
        },
        Reach::Directory => directory_of(&request)?,
        Reach::Here | Reach::SessionOrHere | Reach::Everywhere | Reach::Holder(_) => None,
    };
    match directory {
        Some(directory) if !nodes.can_work(&directory).await => {
            Err(Error::Misdirected { id: directory.to_string_lossy().into_owned() })
        }
        Some(_) | None => Ok(next.run(request).await),
    }
}

async fn of_session(app: &App, route: Reached, request: Request, next: Next) -> Result<Response, Error> {
    let nodes = app.engine.nodes();
    // The route reports an id that is not one, and a session that does not exist.
    let Some(id) = session_id(route.path, request.uri().path()) else { return Ok(next.run(request).await) };
    if nodes.is_running(&id) {
        return Ok(next.run(request).await);
    }
    let Some(home) = app.directories.of(&app.engine, &id).await else { return Ok(next.run(request).await) };
    let directory = Path::new(&home.directory);
    let is_here = nodes.can_work(directory).await && !nodes.is_draining();
    // Shortly after the start nothing is known of others.
    let view = match nodes.view() {
        Some(view) => view,
        None if is_here => return Ok(next.run(request).await),
        None => return Err(unknown()),
    };
    let ownership = nodes.ownership(&id).await?;
    let question = Question {
        directory: &home.directory,
        owner: ownership.owner.as_deref(),
        last: ownership.last.as_deref(),
        is_here,
        is_connected: app.nodes.as_ref().is_some_and(|nodes| nodes.connected.is_some()),
    };
    let mut choices = choose::choose(&view, &question);
    if choices.is_empty() && route.reach == Reach::SessionOrHere {
        choices.push(Choice::Here);
    }
    try_all(app, Attempt { choices, directory, view, route }, request, next).await
}

async fn of_directory(app: &App, route: Reached, request: Request, next: Next) -> Result<Response, Error> {
    let nodes = app.engine.nodes();
    let Some(directory) = directory_of(&request)? else { return Ok(next.run(request).await) };
    if nodes.can_work(&directory).await {
        return Ok(next.run(request).await);
    }
    let view = nodes.view().ok_or_else(unknown)?;
    let text = directory.to_string_lossy();
    let is_connected = app.nodes.as_ref().is_some_and(|nodes| nodes.connected.is_some());
    let question = Question { directory: &text, owner: None, last: None, is_here: false, is_connected };
    let choices = choose::choose(&view, &question);
    if choices.is_empty() {
        // The route reports a directory that does not exist anywhere.
        return Ok(next.run(request).await);
    }
    try_all(app, Attempt { choices, directory: &directory, view, route }, request, next).await
}

/// The servers that come into question for a request.
struct Attempt<'a> {
    choices: Vec<Choice>,
    directory: &'a Path,
    view: NodeView,
    route: Reached,
}

/// Lets the first server answer that can. A request that a server may have received is not repeated.
async fn try_all(app: &App, attempt: Attempt<'_>, request: Request, next: Next) -> Result<Response, Error> {
    let Attempt { choices, directory, view, route } = attempt;
    if let Some(Choice::Here) = choices.first() {
        return Ok(next.run(request).await);
    }
    let nodes = app.nodes.as_ref().ok_or_else(unknown)?;
    let (mut parts, body) = request.into_parts();
    let (body, _room) = nodes.read(app, body).await?;
    for choice in choices {
        let member = match choice {
            Choice::Here => return Ok(next.run(Request::from_parts(parts, Body::from(body))).await),
            Choice::There(member) => member,
        };
        let sent = Sent {
            parts: &mut parts,
            body: &body,
            directory: Some(directory),
            has_deadline: route.has_deadline,
        };
        match nodes.forward(app, &view, &member, sent).await {
            Outcome::Answered(response) => return Ok(response),
            Outcome::NotReceived => {}
            Outcome::Broken(error) => return Err(error),
        }
    }
    Err(nowhere(directory, &view))
}

/// The error if no server can work in a directory.
fn nowhere(directory: &Path, view: &NodeView) -> Error {
    let name = |member: &Member| {
        let state = if member.is_draining { " (drains)" } else { "" };
        format!("`{}`{state}", member.name)
    };
    let names: Vec<_> = view.members.all.iter().map(name).collect();
    let message = format!(
        "no server can work in `{}` now; the servers are {}",
        directory.display(),
        if names.is_empty() { "not known".to_owned() } else { names.join(", ") }
    );
    Error::NoNode { message }
}

/// Asks the servers one after the other, because only one of them has the terminal or question.
async fn of_holder(app: &App, holder: Holder, request: Request, next: Next) -> Result<Response, Error> {
    let Some(nodes) = app.nodes.as_ref().filter(|nodes| nodes.connected.is_some()) else {
        return Ok(next.run(request).await);
    };
    if holder != Holder::QuestionInBody && is_here(app, holder, request.uri().path()) {
        return Ok(next.run(request).await);
    }
    let view = app.engine.nodes().view().ok_or_else(unknown)?;
    let (mut parts, body) = request.into_parts();
    let (body, _room) = nodes.read(app, body).await?;
    let is_known = holder == Holder::QuestionInBody && is_answered_here(app, &body);
    let others = view.members.all.iter().filter(|member| member.id != view.members.own && !is_known);
    for member in others {
        let sent = Sent { parts: &mut parts, body: &body, directory: None, has_deadline: false };
        match nodes.forward(app, &view, member, sent).await {
            Outcome::Answered(response) if response.status() != http::StatusCode::NOT_FOUND => {
                return Ok(response);
            }
            Outcome::Answered(_) | Outcome::NotReceived => {}
            Outcome::Broken(error) => return Err(error),
        }
    }
    Ok(next.run(Request::from_parts(parts, Body::from(body))).await)
}

/// Whether the terminal or question in a path is one of this server.
fn is_here(app: &App, holder: Holder, path: &str) -> bool {
    path.split('/').any(|name| match holder {
        Holder::Terminal => PtyId::parse(name).is_ok_and(|id| app.engine.terminals().get(&id).is_ok()),
        Holder::Question | Holder::QuestionInBody => {
            QuestionId::parse(name).is_ok_and(|id| is_asked_here(app, &id))
        }
    })
}

fn is_asked_here(app: &App, id: &QuestionId) -> bool {
    app.engine.questions().pending().iter().any(|request| request.id == *id)
}

/// Whether an answer is to a permission request, which every server can store, or to a question of this server.
fn is_answered_here(app: &App, body: &[u8]) -> bool {
    let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let id = body["id"].as_str().unwrap_or_default();
    PermissionId::parse(id).is_ok() || QuestionId::parse(id).is_ok_and(|id| is_asked_here(app, &id))
}

/// The session in a path.
fn session_id(template: &str, path: &str) -> Option<SessionId> {
    let (_, name) = template.split('/').zip(path.split('/')).find(|(part, _)| *part == "{sessionID}")?;
    SessionId::parse(name).ok()
}

/// The absolute directory that a request names.
fn directory_of(request: &Request) -> Result<Option<PathBuf>, Error> {
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.uri = request.uri().clone();
    parts.headers.extend(request.headers().get(DIRECTORY).cloned().map(|value| (DIRECTORY, value)));
    let (named, _) = named_directory(&parts)?;
    Ok(named.map(PathBuf::from).filter(|directory| directory.is_absolute()))
}
