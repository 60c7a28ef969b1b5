//! Terminals, and the WebSockets that show them.
//!
//! A connection gets what was on the screen as one text, then a binary message that begins with a zero byte and
//! names the place reached in JSON, then what the program writes. What it sends is typed. Where a password protects
//! the server, a ticket that was fetched with it does instead, since pages cannot set a WebSocket's headers. Pages of
//! foreign origins are refused before, whatever they bring.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use codewright_engine::Attached;
use codewright_proto::{Pty, PtyId, PtyInput, PtyPatch, PtyTicket, Shell};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::extract::{Here, One, Params, Payload};
use crate::limit::Seat;
use crate::serve::Closing;
use crate::state::App;

/// The header by which a page shows that it may set headers here.
pub(super) const TICKET_HEADER: &str = "x-opencode-ticket";
/// The largest message that is typed.
const MAX_TYPED_BYTES: usize = 1024 * 1024;
/// How long a connection may not take what it is sent.
const SEND_DEADLINE: Duration = Duration::from_secs(30);
/// How often it is asked whether a connection lives.
const PING_EVERY: Duration = Duration::from_secs(30);

pub(super) async fn shells(State(app): State<App>) -> Json<Vec<Shell>> {
    Json(app.engine.shells())
}

pub(super) async fn list(State(app): State<App>, here: Here) -> Json<Vec<Pty>> {
    Json(app.engine.terminals(&here.place))
}

pub(super) async fn create(
    State(app): State<App>,
    here: Here,
    Payload(input): Payload<PtyInput>,
) -> Result<Json<Pty>, Error> {
    Ok(Json(app.engine.open_terminal(&here.place, input)?))
}

pub(super) async fn read(State(app): State<App>, One(id): One<PtyId>) -> Result<Json<Pty>, Error> {
    Ok(Json(app.engine.terminal(&id)?))
}

pub(super) async fn update(
    State(app): State<App>,
    One(id): One<PtyId>,
    Payload(patch): Payload<PtyPatch>,
) -> Result<Json<Pty>, Error> {
    Ok(Json(app.engine.change_terminal(&id, patch)?))
}

pub(super) async fn remove(State(app): State<App>, One(id): One<PtyId>) -> Result<Json<bool>, Error> {
    app.engine.close_terminal(&id)?;
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
    app.engine.terminal_ticket(&id).map(Json).map_err(|error| Error::from(error).into_response())
}

#[derive(Deserialize)]
pub(super) struct Wanted {
    cursor: Option<String>,
    ticket: Option<String>,
}

pub(super) async fn connect(
    State(app): State<App>,
    One(id): One<PtyId>,
    Params(wanted): Params<Wanted>,
    (seat, closing): (Option<Extension<Seat>>, Option<Extension<Closing>>),
    socket: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Response {
    let refuse = |status: StatusCode| (status, Body::empty()).into_response();
    let good = match &wanted.ticket {
        Some(ticket) => app.engine.redeem_ticket(&id, ticket),
        None => true,
    };
    if app.engine.terminal(&id).is_err() {
        return refuse(StatusCode::NOT_FOUND);
    }
    if !good {
        return refuse(StatusCode::FORBIDDEN);
    }
    let from = match wanted.cursor.as_deref() {
        None | Some("") => Some(0),
        Some("-1") => None,
        Some(text) => match text.parse() {
            Ok(place) => Some(place),
            Err(_) => return refuse(StatusCode::BAD_REQUEST),
        },
    };
    let (Ok(attached), Ok(socket)) = (app.engine.attach_terminal(&id, from), socket) else {
        return refuse(StatusCode::BAD_REQUEST);
    };
    let closing = Closing::token(closing);
    let socket = socket.max_message_size(MAX_TYPED_BYTES).max_frame_size(MAX_TYPED_BYTES);
    // The connection leaves the server's hands here, and still counts.
    let busy = seat.map(|Extension(seat)| seat.begin());
    socket.on_upgrade(move |socket| async move {
        let _busy = busy;
        // A connection that breaks is the client's affair.
        show(socket, attached, closing).await.unwrap_or_default();
    })
}

async fn show(mut socket: WebSocket, mut attached: Attached, closing: CancellationToken) -> Result<(), ()> {
    let earlier = attached.news();
    if !earlier.is_empty() {
        send(&mut socket, Message::text(earlier)).await?;
    }
    let place = [b"\0".as_slice(), json!({"cursor": attached.position()}).to_string().as_bytes()].concat();
    send(&mut socket, Message::binary(place)).await?;
    let mut ping = interval(PING_EVERY);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            news = attached.next() => match news {
                Some(news) => send(&mut socket, Message::text(news)).await?,
                None => break,
            },
            typed = socket.recv() => match typed {
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
