//! Sessions, their messages and their prompts.

pub(super) mod change;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bytes::Bytes;
use codewright_engine::{Engine, Json as StoredJson, Rest, SessionFilter};
use codewright_proto::{
    Action, CommandInput, ForkInput, MessageId, MessageWithParts, PromptBody, PromptInput, Rule, Session,
    SessionId, SessionInput, SessionPatch, SessionStatus, ShellInput, SummarizeInput,
};
use futures_util::{StreamExt as _, future, stream};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};

use crate::Error;
use crate::auth::{Level, Viewer, Who, check_arguments, check_parts, check_rules, on_session};
use crate::compress::LongReply;
use crate::extract::{Location, One, Params, Payload, Two, count};
use crate::serve::Closing;
use crate::state::App;

/// The default maximum of listed sessions.
const DEFAULT_SESSIONS: usize = 100;

#[derive(Deserialize)]
pub(super) struct ListQuery {
    scope: Option<String>,
    path: Option<String>,
    /// A directory of the same worktree as the request's.
    below: Option<String>,
    roots: Option<String>,
    #[serde(default, deserialize_with = "count")]
    start: Option<u64>,
    search: Option<String>,
    #[serde(default, deserialize_with = "count")]
    limit: Option<u64>,
}

pub(super) async fn list(
    State(app): State<App>,
    mut viewer: Viewer,
    location: Location,
    Params(query): Params<ListQuery>,
) -> Result<Response, Error> {
    let limit = query.limit.map_or(DEFAULT_SESSIONS, |limit| limit as usize);
    if let Some(below) = query.below.filter(|below| !below.is_empty()) {
        let filter = SessionFilter {
            below: Some(below),
            roots: query.roots.as_deref() == Some("true"),
            search: query.search.filter(|search| !search.is_empty()),
            start: query.start,
            ..SessionFilter::default()
        };
        let sessions = app.engine.sessions().in_worktree(&location.instance, filter).await?;
        let mut sessions = viewer.sessions(&app.engine, sessions).await;
        sessions.truncate(limit);
        return Ok(Json(sessions).into_response());
    }
    let path = query.path.filter(|path| !path.is_empty());
    let everywhere = !location.in_query || path.is_some() || query.scope.as_deref() == Some("project");
    let filter = SessionFilter {
        directory: (!everywhere).then(|| location.instance.path().directory),
        project: Some(location.instance.project().id),
        roots: query.roots.is_some_and(|roots| roots == "true"),
        search: query.search.filter(|search| !search.is_empty()),
        start: query.start,
        // Sessions that are filtered out below must not count.
        limit: (path.is_none() && viewer.sees_everything()).then_some(limit),
        ..SessionFilter::default()
    };
    if path.is_none() && viewer.sees_everything() {
        return Ok(json(Bytes::from_owner(app.engine.sessions().list_json(filter).await?)));
    }
    let mut sessions = app.engine.sessions().list(filter).await?;
    if let Some(path) = path {
        sessions.retain(|session| {
            session.path.as_deref().is_some_and(|at| std::path::Path::new(at).starts_with(&path))
        });
    }
    let mut sessions = viewer.sessions(&app.engine, sessions).await;
    sessions.truncate(limit);
    Ok(Json(sessions).into_response())
}

pub(super) async fn create(
    State(app): State<App>,
    mut viewer: Viewer,
    location: Location,
    Payload(mut input): Payload<SessionInput>,
) -> Result<Json<Session>, Error> {
    if let Some(parent) = &input.parent_id {
        on_session(&app, &mut viewer, Some(parent.as_str()), Level::Full).await?;
    }
    check_rules(viewer.who(), input.permission.iter().flatten())?;
    input.access = viewer.who().new_access()?;
    let engine = app.engine.clone();
    app.finish(async move { engine.sessions().create(&location.instance, input).await }).await.map(Json)
}

pub(super) async fn statuses(
    State(app): State<App>,
    mut viewer: Viewer,
    location: Location,
) -> Json<BTreeMap<SessionId, SessionStatus>> {
    let statuses =
        app.in_directory(&mut viewer, &location, app.engine.sessions().statuses(), |(id, _)| id).await;
    Json(statuses.into_iter().collect())
}

pub(super) async fn read(State(app): State<App>, One(id): One<SessionId>) -> Result<Json<Session>, Error> {
    Ok(Json(app.engine.sessions().get(&id).await?))
}

pub(super) async fn update(
    State(app): State<App>,
    who: Who,
    One(id): One<SessionId>,
    Payload(mut change): Payload<SessionPatch>,
) -> Result<Json<Session>, Error> {
    check_rules(&who, change.permission.iter().flatten())?;
    change.by = who.principal();
    let engine = app.engine.clone();
    app.finish(async move { engine.sessions().update(&id, change).await }).await.map(Json)
}

pub(super) async fn remove(State(app): State<App>, One(id): One<SessionId>) -> Result<Json<bool>, Error> {
    let engine = app.engine.clone();
    app.finish(async move { engine.sessions().delete(&id).await }).await.map(Json)
}

/// The largest integer that all JSON parsers represent exactly.
const MAX_WHOLE: f64 = 9_007_199_254_740_991.0;

#[derive(Deserialize)]
pub(super) struct Page {
    limit: Option<String>,
    before: Option<String>,
}

impl Page {
    /// Returns the size of a page, or `None` for all messages.
    fn limit(&self) -> Result<Option<usize>, Error> {
        let Some(text) = self.limit.as_deref().map(str::trim).filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let number = text.parse::<f64>().ok().filter(|number| number.fract() == 0.0 && *number <= MAX_WHOLE);
        match number {
            // For clients a limit of 0 means no limit.
            Some(number) if number >= 0.0 => Ok(Some(number as usize).filter(|limit| *limit > 0)),
            Some(_) => Err(Error::query(format!("`limit` must not be {text}"))),
            None => Err(Error::query(format!("`limit` must be a whole number, not `{text}`"))),
        }
    }
}

/// The last message of a page, encoded for clients.
#[derive(Serialize, Deserialize)]
struct Cursor {
    id: MessageId,
    time: u64,
}

impl Cursor {
    fn read(text: &str) -> Result<(u64, MessageId), Error> {
        let bad = || Error::query("`before` is not a cursor of this server");
        let json = BASE64_URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|_| bad())?;
        let cursor: Self = serde_json::from_slice(&json).map_err(|_| bad())?;
        let id = MessageId::parse(cursor.id.as_str()).map_err(|_| bad())?;
        Ok((cursor.time, id))
    }

    fn write(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(serde_json::json!({"id": self.id, "time": self.time}).to_string())
    }
}

pub(super) async fn messages(
    State(app): State<App>,
    One(id): One<SessionId>,
    Params(page): Params<Page>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Error> {
    let before = page.before.as_deref().filter(|before| !before.is_empty());
    let Some(limit) = page.limit()? else {
        if before.is_some() && page.limit.is_none() {
            return Err(Error::query("`before` needs a `limit`"));
        }
        let all = app.engine.sessions().messages_json(&id, None, None).await?;
        return Ok(stream_list(app.engine.clone(), all.json, all.rest));
    };
    let before = before.map(Cursor::read).transpose()?;
    let page = app.engine.sessions().messages_json(&id, Some(limit), before).await?;
    let mut response = stream_list(app.engine.clone(), page.json, page.rest);
    if let Some((time, id)) = page.next {
        let next = Cursor { id, time }.write();
        let link = format!("<{}>; rel=\"next\"", next_page(&uri, &headers, &next));
        let headers = response.headers_mut();
        headers.extend([
            (header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("Link, X-Next-Cursor")),
            (HeaderName::from_static("x-next-cursor"), header_value(&next)),
            (header::LINK, header_value(&link)),
        ]);
    }
    Ok(response)
}

/// Returns a response with serialized JSON.
fn json(text: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], text.into()).into_response()
}

/// Returns a response with a list that is read while it is sent, so that a long list is never in memory as a whole. If
/// reading fails, the connection is closed, so that no client mistakes a part of the list for all of it.
fn stream_list(engine: Engine, first: StoredJson, rest: Option<Rest>) -> Response {
    let first = Bytes::from_owner(first);
    let Some(rest) = rest else { return json(first) };
    let more = stream::try_unfold(Some(rest), move |rest| {
        let engine = engine.clone();
        async move {
            let Some(rest) = rest else { return Ok(None) };
            engine
                .sessions()
                .more_messages_json(rest)
                .await
                .map(|(piece, rest)| Some((Bytes::from_owner(piece), rest)))
        }
    });
    let all = stream::once(future::ready(Ok(first))).chain(more);
    let mut response = json(Body::from_stream(all));
    response.extensions_mut().insert(LongReply);
    response
}

/// Returns the URL of the request with another cursor. It is absolute if the request has a `Host` header.
fn next_page(uri: &Uri, headers: &HeaderMap, next: &str) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let origin = host.map(|host| format!("http://{host}")).unwrap_or_default();
    let pairs = uri.query().unwrap_or_default().split('&');
    let kept: String =
        pairs.filter(|pair| !pair.starts_with("before=")).map(|pair| format!("{pair}&")).collect();
    format!("{origin}{}?{kept}before={next}", uri.path())
}

/// Returns a header value. Base64 and parts of a URL only contain characters that are valid in headers.
fn header_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

pub(super) async fn message(
    State(app): State<App>,
    Two(id, message): Two<SessionId, MessageId>,
) -> Result<Json<MessageWithParts>, Error> {
    Ok(Json(app.engine.sessions().message(&id, &message).await?))
}

/// Responds when the turn has ended.
pub(super) async fn prompt(
    State(app): State<App>,
    who: Who,
    One(id): One<SessionId>,
    closing: Option<Extension<Closing>>,
    Payload(body): Payload<PromptBody>,
) -> Result<Response, Error> {
    let (engine, input) = (app.engine.clone(), prompt_input(&app, &who, &id, body).await?);
    respond_when_done(&app, closing, async move { engine.sessions().prompt(&id, input).await }).await
}

/// Returns the prompt of a sender.
///
/// # Errors
///
/// Fails if it contains what its sender may not send.
async fn prompt_input(app: &App, who: &Who, id: &SessionId, body: PromptBody) -> Result<PromptInput, Error> {
    let input = body.input().ok_or_else(|| Error::payload("Missing key\n  at [\"parts\"]"))?;
    let mut input = PromptInput { by: who.principal(), ..input };
    check_parts(app, who, id, &mut input.parts).await?;
    let on = input.tools.iter().flatten().filter(|(_, on)| **on);
    let rules: Vec<_> = on.map(|(tool, _)| Rule::new(tool, "*", Action::Allow)).collect();
    check_rules(who, &rules)?;
    Ok(input)
}

/// Runs a command and responds when the turn has ended.
pub(super) async fn command(
    State(app): State<App>,
    who: Who,
    One(id): One<SessionId>,
    closing: Option<Extension<Closing>>,
    Payload(mut input): Payload<CommandInput>,
) -> Result<Response, Error> {
    input.by = who.principal();
    check_parts(&app, &who, &id, &mut input.parts).await?;
    check_arguments(&app, &who, &id, &input.arguments).await?;
    let engine = app.engine.clone();
    respond_when_done(&app, closing, async move { engine.sessions().command(&id, input).await }).await
}

/// The body of `POST /session/{id}/init`.
#[derive(Deserialize)]
pub(super) struct InitBody {
    #[serde(rename = "messageID")]
    message_id: MessageId,
    #[serde(rename = "providerID")]
    provider_id: String,
    #[serde(rename = "modelID")]
    model_id: String,
}

/// Runs the command that writes `AGENTS.md` and responds when the turn has ended.
pub(super) async fn init(
    State(app): State<App>,
    who: Who,
    One(id): One<SessionId>,
    closing: Option<Extension<Closing>>,
    Payload(InitBody { message_id, provider_id, model_id }): Payload<InitBody>,
) -> Result<Response, Error> {
    let input = CommandInput {
        message_id: Some(message_id),
        model: Some(format!("{provider_id}/{model_id}")),
        command: "init".to_owned(),
        by: who.principal(),
        ..CommandInput::default()
    };
    let engine = app.engine.clone();
    respond_when_done(&app, closing, async move { engine.sessions().command(&id, input).await.map(|_| true) })
        .await
}

/// Runs a shell command of the user and responds when it has ended.
pub(super) async fn shell(
    State(app): State<App>,
    One(id): One<SessionId>,
    closing: Option<Extension<Closing>>,
    Payload(input): Payload<ShellInput>,
) -> Result<Response, Error> {
    let engine = app.engine.clone();
    respond_when_done(&app, closing, async move { engine.sessions().shell(&id, input).await }).await
}

/// Compacts the session and responds when the summary is complete.
pub(super) async fn summarize(
    State(app): State<App>,
    One(id): One<SessionId>,
    closing: Option<Extension<Closing>>,
    Payload(input): Payload<SummarizeInput>,
) -> Result<Response, Error> {
    let engine = app.engine.clone();
    respond_when_done(&app, closing, async move { engine.sessions().summarize(&id, input).await }).await
}

/// Compacts the session with its own model.
pub(super) async fn compact(
    State(app): State<App>,
    One(id): One<SessionId>,
    closing: Option<Extension<Closing>>,
) -> Result<Response, Error> {
    let engine = app.engine.clone();
    respond_when_done(&app, closing, async move { engine.sessions().compact(&id).await }).await
}

/// Responds when the work has ended.
///
/// An error before the first heartbeat has its own status. After that the response has started as a success. A space
/// per heartbeat, which JSON allows before a value, keeps the connection alive.
async fn respond_when_done<T: Serialize + Send + 'static>(
    app: &App,
    closing: Option<Extension<Closing>>,
    work: impl Future<Output = Result<T, codewright_engine::Error>> + Send + 'static,
) -> Result<Response, Error> {
    let beat = app.options.heartbeat;
    let closing = Closing::token(closing);
    let turn = {
        let app = app.clone();
        async move {
            let waiting = app.finish(work);
            let ended = closing.run_until_cancelled(waiting).await.unwrap_or(Err(Error::Closing))?;
            Ok(serde_json::to_string(&ended).expect("all replies can be serialized"))
        }
    };
    let mut turn: Turn = Box::pin(turn);
    if let Ok(ended) = timeout(beat, turn.as_mut()).await {
        return Ok(([(header::CONTENT_TYPE, "application/json")], ended?).into_response());
    }
    let chunks = stream::unfold(Some(turn), move |turn| async move {
        let mut turn = turn?;
        let (chunk, rest) = tokio::select! {
            ended = turn.as_mut() => {
                let json = ended.unwrap_or_else(|error| error.body().to_string());
                (Bytes::from(json), None)
            }
            () = sleep(beat) => (Bytes::from_static(b" "), Some(turn)),
        };
        Some((Ok::<_, Infallible>(chunk), rest))
    });
    let chunks = stream::StreamExt::chain(stream::iter([Ok(Bytes::from_static(b" "))]), chunks);
    Ok(([(header::CONTENT_TYPE, "application/json")], Body::from_stream(chunks)).into_response())
}

type Turn = Pin<Box<dyn Future<Output = Result<String, Error>> + Send>>;

pub(super) async fn prompt_async(
    State(app): State<App>,
    who: Who,
    One(id): One<SessionId>,
    Payload(body): Payload<PromptBody>,
) -> Result<StatusCode, Error> {
    let (engine, input) = (app.engine.clone(), prompt_input(&app, &who, &id, body).await?);
    app.finish(async move { engine.sessions().prompt_async(&id, input).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn abort(State(app): State<App>, One(id): One<SessionId>) -> Result<Json<bool>, Error> {
    let engine = app.engine.clone();
    app.finish(async move { engine.sessions().abort(&id).await }).await.map(Json)
}

pub(super) async fn fork(
    State(app): State<App>,
    who: Who,
    One(id): One<SessionId>,
    Payload(input): Payload<ForkInput>,
) -> Result<Json<Session>, Error> {
    let (engine, access) = (app.engine.clone(), who.new_access()?);
    let forked = async move { engine.sessions().fork_for(&id, input.message_id, access).await };
    app.finish(forked).await.map(Json)
}
