//! Permission requests and their replies.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use codewright_proto::{
    Action, PermissionAnswer, PermissionId, PermissionReply, PermissionRequest, Rule, SessionId,
};
use serde::Deserialize;

use crate::Error;
use crate::auth::{Level, Viewer, Who, check_reply, check_rules, on_session, record_reply};
use crate::extract::{Location, One, Payload, Two};
use crate::state::App;

pub(super) async fn list(
    State(app): State<App>,
    mut viewer: Viewer,
    location: Location,
) -> Result<Json<Vec<PermissionRequest>>, Error> {
    let pending = app.engine.permissions().pending().await?;
    Ok(Json(app.in_directory(&mut viewer, &location, pending, |request| &request.session_id).await))
}

pub(super) async fn reply(
    State(app): State<App>,
    who: Who,
    One(id): One<PermissionId>,
    Payload(answer): Payload<PermissionAnswer>,
) -> Result<Json<bool>, Error> {
    app.answer(&who, id, answer).await
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
    mut viewer: Viewer,
    location: Location,
    Payload(Addition { session_id, permission, pattern, action }): Payload<Addition>,
) -> Result<Json<bool>, Error> {
    let (engine, rule) = (app.engine.clone(), Rule::new(&permission, &pattern, action));
    match &session_id {
        Some(id) => on_session(&app, &mut viewer, Some(id.as_str()), Level::Full).await?,
        None if viewer.limited().is_some() => {
            return Err(Error::Forbidden { why: "only administrators change the rules of a project" });
        }
        None => {}
    }
    check_rules(viewer.who(), [&rule])?;
    let by = viewer.who().principal();
    let added = async move {
        match session_id {
            Some(id) => engine.permissions().add_to_session(&id, rule, by).await,
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
    who: Who,
    Two(_, id): Two<SessionId, PermissionId>,
    Payload(answer): Payload<Response>,
) -> Result<Json<bool>, Error> {
    app.answer(&who, id, answer.response.into()).await
}

impl crate::state::Server {
    pub(in crate::route) async fn answer(
        self: &Arc<Self>,
        who: &Who,
        id: PermissionId,
        answer: PermissionAnswer,
    ) -> Result<Json<bool>, Error> {
        let answer = Box::pin(check_reply(self, who, &id, answer)).await?;
        let (engine, target, reply) = (self.engine.clone(), id.to_string(), answer.reply);
        let by = who.replier();
        self.finish(async move { engine.permissions().answer_as(by, &id, answer).await }).await?;
        Box::pin(record_reply(self, who, &target, reply)).await;
        Ok(Json(true))
    }
}
