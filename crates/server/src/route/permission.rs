//! Permission requests and their replies.

use axum::Json;
use axum::extract::State;
use codewright_proto::{PermissionAnswer, PermissionId, PermissionReply, PermissionRequest, SessionId};
use serde::Deserialize;

use crate::Error;
use crate::extract::{Location, One, Payload, Two};
use crate::state::App;

pub(super) async fn list(
    State(app): State<App>,
    location: Location,
) -> Result<Json<Vec<PermissionRequest>>, Error> {
    let pending = app.engine.permissions().pending().await?;
    Ok(Json(app.in_directory(&location, pending, |request| &request.session_id).await))
}

pub(super) async fn reply(
    State(app): State<App>,
    One(id): One<PermissionId>,
    Payload(answer): Payload<PermissionAnswer>,
) -> Result<Json<bool>, Error> {
    app.answer(id, answer).await
}

/// The reply in the format of older clients.
#[derive(Deserialize)]
pub(super) struct Response {
    response: PermissionReply,
}

pub(super) async fn respond(
    State(app): State<App>,
    Two(_, id): Two<SessionId, PermissionId>,
    Payload(answer): Payload<Response>,
) -> Result<Json<bool>, Error> {
    app.answer(id, PermissionAnswer { reply: answer.response, message: None }).await
}

impl crate::state::Server {
    async fn answer(&self, id: PermissionId, answer: PermissionAnswer) -> Result<Json<bool>, Error> {
        let engine = self.engine.clone();
        self.finish(async move { engine.permissions().answer(&id, answer).await }).await?;
        Ok(Json(true))
    }
}
