//! Permission requests and their replies.

use axum::Json;
use axum::extract::State;
use codewright_proto::{
    Action, PermissionAnswer, PermissionId, PermissionReply, PermissionRequest, Rule, SessionId,
};
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

/// A rule for a session, or for the project of the directory if no session is named.
///
/// Unknown keys are rejected, because a misspelled session would make a rule for the whole project.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Addition {
    #[serde(rename = "sessionID")]
    session_id: Option<SessionId>,
    permission: String,
    pattern: String,
    action: Action,
}

pub(super) async fn add(
    State(app): State<App>,
    location: Location,
    Payload(Addition { session_id, permission, pattern, action }): Payload<Addition>,
) -> Result<Json<bool>, Error> {
    let (engine, rule) = (app.engine.clone(), Rule { permission, pattern, action });
    let added = async move {
        match session_id {
            Some(id) => engine.permissions().add_to_session(&id, rule).await,
            None => engine.permissions().add_to_project(&location.instance, rule).await,
        }
    };
    app.finish(added).await?;
    Ok(Json(true))
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
    pub(super) async fn answer(
        &self,
        id: PermissionId,
        answer: PermissionAnswer,
    ) -> Result<Json<bool>, Error> {
        let engine = self.engine.clone();
        self.finish(async move { engine.permissions().answer(&id, answer).await }).await?;
        Ok(Json(true))
    }
}
