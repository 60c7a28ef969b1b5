//! Reverting a session in two steps: stage, then clear or commit.

use axum::Json;
use axum::extract::State;
use codewright_proto::{MessageId, RevertInput, SessionId, UnrevertInput};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{find_session, parse_id};
use crate::Error;
use crate::extract::{One, Payload};
use crate::state::App;
use crate::v2::event;

#[derive(Deserialize)]
pub(in crate::route) struct Stage {
    #[serde(rename = "messageID")]
    message_id: String,
    files: Option<bool>,
}

/// Reverts the session and, unless `files` is false, its files.
pub(in crate::route) async fn stage(
    State(app): State<App>,
    One(id): One<SessionId>,
    Payload(body): Payload<Stage>,
) -> Result<Json<Value>, Error> {
    let message_id = parse_id("messageID", MessageId::parse(&body.message_id))?;
    find_session(&app, &id).await?;
    if !app.engine.sessions().has_message(&id, &message_id).await? {
        return Err(Error::MissingMessage { session: id, message: message_id });
    }
    let engine = app.engine.clone();
    let session = app
        .finish(async move {
            let input = RevertInput { message_id, part_id: None, force: None };
            match body.files {
                Some(false) => engine.sessions().revert_messages(&id, input).await,
                Some(true) | None => engine.sessions().revert(&id, input).await,
            }
        })
        .await?;
    Ok(Json(json!({ "data": session.revert.as_ref().map(event::revert) })))
}

pub(in crate::route) async fn clear(
    State(app): State<App>,
    One(id): One<SessionId>,
) -> Result<StatusCode, Error> {
    find_session(&app, &id).await?;
    let engine = app.engine.clone();
    app.finish(async move { engine.sessions().unrevert(&id, UnrevertInput::default()).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(in crate::route) async fn commit(
    State(app): State<App>,
    One(id): One<SessionId>,
) -> Result<StatusCode, Error> {
    find_session(&app, &id).await?;
    let engine = app.engine.clone();
    app.finish(async move { engine.sessions().commit_revert(&id).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}
