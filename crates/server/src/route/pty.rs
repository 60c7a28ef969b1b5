//! Terminals and their WebSockets.
//!
//! A WebSocket receives the earlier output as one text message, then a binary message with a zero byte and the current
//! cursor as JSON, then new output. Its messages are the input of the terminal. If the server has a password, the
//! client connects with a ticket that it requested before, because pages cannot set the headers of a WebSocket. Pages
//! of foreign origins are rejected even with a ticket.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::{IntoResponse, Response};
use codewright_engine::Attached;
use codewright_proto::{Pty, PtyId, PtyInput, PtyPatch, PtyTicket, Shell};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::extract::{Connection, Location, One, Params, Payload};
use crate::state::App;

/// The header that proves that the page passed a preflight and may use the server.
pub(super) const TICKET_HEADER: &str = "x-opencode-ticket";
/// The maximum size of an input message.
const MAX_INPUT_BYTES: usize = 1024 * 1024;
/// The deadline for sending a message.
const SEND_DEADLINE: Duration = Duration::from_secs(30);
/// The interval of pings.
const PING_EVERY: Duration = Duration::from_secs(30);

pub(super) async fn shells(State(app): State<App>) -> Json<Vec<Shell>> {
    Json(app.engine.terminals().shells())
}

pub(super) async fn list(State(app): State<App>, location: Location) -> Json<Vec<Pty>> {
    Json(app.engine.terminals().list(&location.instance))
}

pub(super) async fn create(
    State(app): State<App>,
    location: Location,
    Payload(input): Payload<PtyInput>,
) -> Result<Json<Pty>, Error> {
    Ok(Json(app.engine.terminals().open(&location.instance, input)?))
}

pub(super) async fn read(State(app): State<App>, One(id): One<PtyId>) -> Result<Json<Pty>, Error> {
    Ok(Json(app.engine.terminals().get(&id)?))
}

pub(super) async fn update(
    State(app): State<App>,
    One(id): One<PtyId>,
    Payload(patch): Payload<PtyPatch>,
) -> Result<Json<Pty>, Error> {
    Ok(Json(app.engine.terminals().change(&id, patch)?))
}

pub(super) async fn remove(State(app): State<App>, One(id): One<PtyId>) -> Result<Json<bool>, Error> {
    app.engine.terminals().close(&id)?;
    Ok(Json(true))
}

pub(super) async fn ticket(
    State(app): State<App>,
    One(id): One<PtyId>,
    headers: HeaderMap,
) -> Result<Json<PtyTicket>, Response> {
    if headers.get(TICKET_HEADER).is_none_or(|value| value != "1") {
        let message = "Invalid PTY connect token request";
        let body = Json(json!({"_tag": "PtyForbiddenError", "message": message}));
        return Err((StatusCode::FORBIDDEN, body).into_response());
    }
    app.engine.terminals().ticket(&id).map(Json).map_err(|error| Error::from(error).into_response())
}

#[derive(Deserialize)]
pub(super) struct ConnectQuery {
    cursor: Option<String>,
    ticket: Option<String>,
}

pub(super) async fn connect(
    State(app): State<App>,
    One(id): One<PtyId>,
    Params(query): Params<ConnectQuery>,
    connection: Connection,
    socket: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Response {
    let reject = |status: StatusCode| (status, Body::empty()).into_response();
    let is_allowed = match &query.ticket {
        Some(ticket) => app.engine.terminals().redeem_ticket(&id, ticket),
        None => true,
    };
    if app.engine.terminals().get(&id).is_err() {
        return reject(StatusCode::NOT_FOUND);
    }
    if !is_allowed {
        return reject(StatusCode::FORBIDDEN);
    }
    let from = match query.cursor.as_deref() {
        None | Some("") => Some(0),
        Some("-1") => None,
        Some(text) => match text.parse() {
            Ok(cursor) => Some(cursor),
            Err(_) => return reject(StatusCode::BAD_REQUEST),
        },
    };
    let (Ok(attached), Ok(socket)) = (app.engine.terminals().attach(&id, from), socket) else {
        return reject(StatusCode::BAD_REQUEST);
    };
    let Connection { slot, closing } = connection;
    let socket = socket.max_message_size(MAX_INPUT_BYTES).max_frame_size(MAX_INPUT_BYTES);
    // After the upgrade the server no longer tracks the connection, but it still counts as active.
    let busy = slot.map(|slot| slot.begin());
    socket.on_upgrade(move |socket| async move {
        let _busy = busy;
        // A broken connection needs no handling: the client has closed it.
        show(socket, attached, closing).await.unwrap_or_default();
    })
}

async fn show(mut socket: WebSocket, mut attached: Attached, closing: CancellationToken) -> Result<(), ()> {
    let output = attached.news();
    if !output.is_empty() {
        send(&mut socket, Message::text(output)).await?;
    }
    let cursor = [b"\0".as_slice(), json!({"cursor": attached.position()}).to_string().as_bytes()].concat();
    send(&mut socket, Message::binary(cursor)).await?;
    let mut ping = interval(PING_EVERY);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            output = attached.next() => match output {
                Some(output) => send(&mut socket, Message::text(output)).await?,
                None => break,
            },
            input = socket.recv() => match input {
                Some(Ok(Message::Text(text))) => attached.write(text.as_bytes()).await,
                Some(Ok(Message::Binary(bytes))) => attached.write(&bytes).await,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Ok(()),
            },
            _ = ping.tick() => send(&mut socket, Message::Ping(Default::default())).await?,
            () = closing.cancelled() => break,
        }
    }
    let frame = CloseFrame { code: close_code::NORMAL, reason: "".into() };
    send(&mut socket, Message::Close(Some(frame))).await
}

async fn send(socket: &mut WebSocket, message: Message) -> Result<(), ()> {
    match timeout(SEND_DEADLINE, socket.send(message)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(()),
    }
}
