//! Terminals in the v2 API. The WebSocket is the same as in the v1 API.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use codewright_proto::{PtyId, PtyInput, PtyPatch};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::with_location;
use crate::Error;
use crate::extract::{Location, One, Payload};
use crate::route::pty::TICKET_HEADER;
use crate::state::App;

pub(in crate::route) async fn list(State(app): State<App>, location: Location) -> Json<Value> {
    with_location(&location, json!(app.engine.terminals().list(&location.instance)))
}

pub(in crate::route) async fn create(
    State(app): State<App>,
    location: Location,
    Payload(input): Payload<PtyInput>,
) -> Result<Json<Value>, Error> {
    Ok(with_location(&location, json!(app.engine.terminals().open(&location.instance, input)?)))
}

pub(in crate::route) async fn read(
    State(app): State<App>,
    location: Location,
    One(id): One<PtyId>,
) -> Result<Json<Value>, Error> {
    Ok(with_location(&location, json!(app.engine.terminals().get(&id)?)))
}

pub(in crate::route) async fn update(
    State(app): State<App>,
    location: Location,
    One(id): One<PtyId>,
    Payload(patch): Payload<PtyPatch>,
) -> Result<Json<Value>, Error> {
    Ok(with_location(&location, json!(app.engine.terminals().change(&id, patch)?)))
}

pub(in crate::route) async fn remove(
    State(app): State<App>,
    One(id): One<PtyId>,
) -> Result<StatusCode, Error> {
    app.engine.terminals().close(&id)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(in crate::route) async fn ticket(
    State(app): State<App>,
    location: Location,
    One(id): One<PtyId>,
    headers: HeaderMap,
) -> Result<Json<Value>, Response> {
    if headers.get(TICKET_HEADER).is_none_or(|value| value != "1") {
        let body = json!({"_tag": "ForbiddenError", "message": "Invalid PTY connect token request"});
        return Err((StatusCode::FORBIDDEN, Json(body)).into_response());
    }
    let ticket = app.engine.terminals().ticket(&id).map_err(|error| Error::from(error).into_response())?;
    Ok(with_location(&location, json!(ticket)))
}
