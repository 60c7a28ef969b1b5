//! Questions and permission requests in the v2 API, of a directory or of one session.

use axum::Json;
use axum::extract::State;
use codewright_engine::{self as engine, PermissionInput, Resource};
use codewright_proto::{
    Map, PermissionAnswer, PermissionId, PermissionRequest, Principal, ProjectId, QuestionAnswers,
    QuestionId, SessionId, ToolRef,
};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{find_session, parse_id, with_location};
use crate::Error;
use crate::auth::{Viewer, Who, answer_question};
use crate::extract::{Location, One, Params, Payload, Two};
use crate::state::App;
use crate::v2::pending::permission;

pub(in crate::route) async fn questions(
    State(app): State<App>,
    mut viewer: Viewer,
    location: Location,
) -> Json<Value> {
    let pending = app
        .in_directory(&mut viewer, &location, app.engine.questions().pending(), |request| &request.session_id)
        .await;
    with_location(&location, json!(pending))
}

pub(in crate::route) async fn questions_of(
    State(app): State<App>,
    One(id): One<SessionId>,
) -> Result<Json<Value>, Error> {
    find_session(&app, &id).await?;
    let pending = app.engine.questions().pending();
    let data: Vec<_> = pending.into_iter().filter(|request| request.session_id == id).collect();
    Ok(Json(json!({ "data": data })))
}

pub(in crate::route) async fn reply(
    State(app): State<App>,
    who: Who,
    Two(session, id): Two<SessionId, QuestionId>,
    Payload(answer): Payload<QuestionAnswers>,
) -> Result<StatusCode, Error> {
    check_question(&app, &session, &id).await?;
    Box::pin(answer_question(&app, &who, &id, Some(answer.answers))).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(in crate::route) async fn reject(
    State(app): State<App>,
    who: Who,
    Two(session, id): Two<SessionId, QuestionId>,
) -> Result<StatusCode, Error> {
    check_question(&app, &session, &id).await?;
    Box::pin(answer_question(&app, &who, &id, None)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Fails if the session has no such pending question: a client of one session must not answer for another one.
async fn check_question(app: &App, session: &SessionId, id: &QuestionId) -> Result<(), Error> {
    find_session(app, session).await?;
    let mut pending = app.engine.questions().pending().into_iter();
    let is_pending = pending.any(|request| request.id == *id && request.session_id == *session);
    let missing = || engine::Error::NotFound { resource: Resource::Question, id: id.to_string() };
    if is_pending { Ok(()) } else { Err(missing().into()) }
}

pub(in crate::route) async fn permissions(
    State(app): State<App>,
    mut viewer: Viewer,
    location: Location,
) -> Result<Json<Value>, Error> {
    let pending = app.engine.permissions().pending().await?;
    let pending = app.in_directory(&mut viewer, &location, pending, |request| &request.session_id).await;
    Ok(with_location(&location, pending.iter().map(permission).collect()))
}

pub(in crate::route) async fn permissions_of(
    State(app): State<App>,
    One(id): One<SessionId>,
) -> Result<Json<Value>, Error> {
    find_session(&app, &id).await?;
    let pending = app.engine.permissions().pending().await?;
    let data: Vec<_> = pending.iter().filter(|request| request.session_id == id).map(permission).collect();
    Ok(Json(json!({ "data": data })))
}

pub(in crate::route) async fn permission_of(
    State(app): State<App>,
    Two(session, id): Two<SessionId, PermissionId>,
) -> Result<Json<Value>, Error> {
    Ok(Json(json!({ "data": permission(&pending_permission(&app, &session, &id).await?) })))
}

#[derive(Deserialize)]
pub(in crate::route) struct PermissionBody {
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

/// Evaluates the permission for an action of the client. If the user has to decide, the request is pending afterwards.
pub(in crate::route) async fn request_permission(
    State(app): State<App>,
    One(session): One<SessionId>,
    Payload(body): Payload<PermissionBody>,
) -> Result<Json<Value>, Error> {
    let id = body.id.as_deref().map(|id| parse_id("id", PermissionId::parse(id))).transpose()?;
    find_session(&app, &session).await?;
    let wanted = PermissionInput {
        id,
        permission: body.action,
        patterns: body.resources,
        always: body.save,
        metadata: body.metadata,
        tool: body.source,
        agent: body.agent,
    };
    let engine = app.engine.clone();
    let (id, effect) =
        app.finish(async move { engine.permissions().request(&session, wanted).await }).await?;
    Ok(Json(json!({"data": {"id": id, "effect": effect}})))
}

pub(in crate::route) async fn reply_permission(
    State(app): State<App>,
    who: Who,
    Two(session, id): Two<SessionId, PermissionId>,
    Payload(answer): Payload<PermissionAnswer>,
) -> Result<StatusCode, Error> {
    pending_permission(&app, &session, &id).await?;
    app.answer(&who, id, answer).await.map(|_| StatusCode::NO_CONTENT)
}

/// Returns a pending permission request of a session.
async fn pending_permission(
    app: &App,
    session: &SessionId,
    id: &PermissionId,
) -> Result<PermissionRequest, Error> {
    find_session(app, session).await?;
    let mut pending = app.engine.permissions().pending().await?.into_iter();
    let found = pending.find(|request| request.id == *id && request.session_id == *session);
    let missing = || engine::Error::NotFound { resource: Resource::Permission, id: id.to_string() };
    Ok(found.ok_or_else(missing)?)
}

#[derive(Deserialize)]
pub(in crate::route) struct SavedQuery {
    #[serde(rename = "projectID")]
    project: Option<String>,
}

/// Lists the permissions that the user granted with `always`.
pub(in crate::route) async fn saved(
    State(app): State<App>,
    Params(query): Params<SavedQuery>,
) -> Result<Json<Value>, Error> {
    let project = query.project.map(|id| ProjectId(id.into()));
    let saved = app.engine.permissions().saved(project).await?;
    let data = saved.iter().map(|one| {
        let mut entry = json!({
            "id": one.id, "projectID": one.project_id, "action": one.action, "resource": one.resource,
        });
        // A machine with a single owner shows nothing new.
        if let Some(giver) = engine::approval_giver(one).filter(|giver| giver != Principal::Owner.name()) {
            entry["by"] = giver.into();
        }
        entry
    });
    Ok(Json(json!({ "data": data.collect::<Vec<_>>() })))
}

/// Revokes a granted permission. Succeeds if it has already been revoked.
pub(in crate::route) async fn revoke(
    State(app): State<App>,
    One(id): One<String>,
) -> Result<StatusCode, Error> {
    let engine = app.engine.clone();
    app.finish(async move { engine.permissions().revoke(&id).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}
