//! What waits for a user, in the shapes of the newer routes: questions and permissions, of a place
//! or of one session.

use axum::Json;
use axum::extract::State;
use codewright_engine::{self as engine, Resource, Wanted};
use codewright_proto::{
    Map, PermissionAnswer, PermissionId, PermissionRequest, ProjectId, QuestionAnswers, QuestionId,
    SessionId, ToolRef,
};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{given, known, located};
use crate::Error;
use crate::extract::{Here, One, Params, Payload, Two};
use crate::state::App;
use crate::v2::waiting::permission;

pub(in crate::route) async fn questions(State(app): State<App>, here: Here) -> Json<Value> {
    let pending = app.of_directory(&here, app.engine.questions(), |request| &request.session_id).await;
    located(&here, json!(pending))
}

pub(in crate::route) async fn questions_of(
    State(app): State<App>,
    One(id): One<SessionId>,
) -> Result<Json<Value>, Error> {
    known(&app, &id).await?;
    let asked = app.engine.questions();
    let of: Vec<_> = asked.into_iter().filter(|asked| asked.session_id == id).collect();
    Ok(Json(json!({ "data": of })))
}

pub(in crate::route) async fn reply(
    State(app): State<App>,
    Two(session, id): Two<SessionId, QuestionId>,
    Payload(answer): Payload<QuestionAnswers>,
) -> Result<StatusCode, Error> {
    asked_in(&app, &session, &id).await?;
    app.engine.answer_question(&id, answer.answers)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(in crate::route) async fn reject(
    State(app): State<App>,
    Two(session, id): Two<SessionId, QuestionId>,
) -> Result<StatusCode, Error> {
    asked_in(&app, &session, &id).await?;
    app.engine.reject_question(&id)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whether a question waits in a session: one session's client does not answer for another.
async fn asked_in(app: &App, session: &SessionId, id: &QuestionId) -> Result<(), Error> {
    known(app, session).await?;
    let asked = app.engine.questions();
    let is_there = asked.iter().any(|asked| asked.id == *id && asked.session_id == *session);
    let missing = || engine::Error::NotFound { resource: Resource::Question, id: id.to_string() };
    if is_there { Ok(()) } else { Err(missing().into()) }
}

pub(in crate::route) async fn permissions(State(app): State<App>, here: Here) -> Result<Json<Value>, Error> {
    let pending = app.engine.permissions().await?;
    let asked = app.of_directory(&here, pending, |request| &request.session_id).await;
    Ok(located(&here, asked.iter().map(permission).collect()))
}

pub(in crate::route) async fn permissions_of(
    State(app): State<App>,
    One(id): One<SessionId>,
) -> Result<Json<Value>, Error> {
    known(&app, &id).await?;
    let asked = app.engine.permissions().await?;
    let of: Vec<_> = asked.iter().filter(|asked| asked.session_id == id).map(permission).collect();
    Ok(Json(json!({ "data": of })))
}

pub(in crate::route) async fn permission_of(
    State(app): State<App>,
    Two(session, id): Two<SessionId, PermissionId>,
) -> Result<Json<Value>, Error> {
    Ok(Json(json!({ "data": permission(&wanted(&app, &session, &id).await?) })))
}

#[derive(Deserialize)]
pub(in crate::route) struct Want {
    id: Option<String>,
    action: String,
    resources: Vec<String>,
    #[serde(default)]
    save: Vec<String>,
    #[serde(default)]
    metadata: Map,
    source: Option<ToolRef>,
    agent: Option<String>,
}

/// Decides about something that the client would do; where a user has to, the request waits from now on.
pub(in crate::route) async fn want(
    State(app): State<App>,
    One(session): One<SessionId>,
    Payload(want): Payload<Want>,
) -> Result<Json<Value>, Error> {
    let id = want.id.as_deref().map(|id| given("id", PermissionId::parse(id))).transpose()?;
    known(&app, &session).await?;
    let wanted = Wanted {
        id,
        permission: want.action,
        patterns: want.resources,
        always: want.save,
        metadata: want.metadata,
        tool: want.source,
        agent: want.agent,
    };
    let engine = app.engine.clone();
    let (id, effect) = app.finish(async move { engine.want_permission(&session, wanted).await }).await?;
    Ok(Json(json!({"data": {"id": id, "effect": effect}})))
}

pub(in crate::route) async fn allow(
    State(app): State<App>,
    Two(session, id): Two<SessionId, PermissionId>,
    Payload(answer): Payload<PermissionAnswer>,
) -> Result<StatusCode, Error> {
    wanted(&app, &session, &id).await?;
    let engine = app.engine.clone();
    app.finish(async move { engine.answer_permission(&id, answer).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The request of a session that waits under this id.
async fn wanted(app: &App, session: &SessionId, id: &PermissionId) -> Result<PermissionRequest, Error> {
    known(app, session).await?;
    let mut asked = app.engine.permissions().await?.into_iter();
    let found = asked.find(|asked| asked.id == *id && asked.session_id == *session);
    let missing = || engine::Error::NotFound { resource: Resource::Permission, id: id.to_string() };
    Ok(found.ok_or_else(missing)?)
}

#[derive(Deserialize)]
pub(in crate::route) struct Of {
    #[serde(rename = "projectID")]
    project: Option<String>,
}

/// The approvals that users gave with "always".
pub(in crate::route) async fn saved(
    State(app): State<App>,
    Params(of): Params<Of>,
) -> Result<Json<Value>, Error> {
    let project = of.project.map(|id| ProjectId(id.into()));
    let saved = app.engine.saved_permissions(project).await?;
    let shown = saved.iter().map(|one| {
        json!({"id": one.id, "projectID": one.project_id, "action": one.action, "resource": one.resource})
    });
    Ok(Json(json!({ "data": shown.collect::<Vec<_>>() })))
}

/// Revokes an approval; one that is gone already is as good as revoked.
pub(in crate::route) async fn forget(
    State(app): State<App>,
    One(id): One<String>,
) -> Result<StatusCode, Error> {
    let engine = app.engine.clone();
    app.finish(async move { engine.revoke_permission(&id).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}
