//! Reading and changing a session between prompts: messages, parts, revert, diff, todos, sharing.

use axum::Json;
use axum::extract::State;
use codewright_proto::{
    FileDiff, KeptFile, MessageId, Part, PartBody, PartId, RevertInput, Session, SessionId, Todo,
    UnrevertInput,
};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::auth::Who;
use crate::extract::{One, Params, Payload, Three, Two};
use crate::state::App;

pub(in crate::route) async fn children(
    State(app): State<App>,
    One(id): One<SessionId>,
) -> Result<Json<Vec<Session>>, Error> {
    Ok(Json(app.engine.sessions().children(&id).await?))
}

pub(in crate::route) async fn todos(
    State(app): State<App>,
    One(id): One<SessionId>,
) -> Result<Json<Vec<Todo>>, Error> {
    Ok(Json(app.engine.sessions().todos(&id).await?))
}

#[derive(Deserialize)]
pub(in crate::route) struct DiffQuery {
    #[serde(rename = "messageID")]
    message_id: Option<String>,
}

pub(in crate::route) async fn diff(
    State(app): State<App>,
    One(id): One<SessionId>,
    Params(query): Params<DiffQuery>,
) -> Result<Json<Vec<FileDiff>>, Error> {
    let message = query.message_id.as_deref().map(MessageId::parse).transpose();
    let message = message.map_err(|error| Error::query(error.to_string()))?;
    Ok(Json(app.engine.sessions().diff(&id, message.as_ref()).await?))
}

pub(in crate::route) async fn remove_message(
    State(app): State<App>,
    Two(id, message): Two<SessionId, MessageId>,
) -> Result<Json<bool>, Error> {
    let engine = app.engine.clone();
    app.finish(async move { engine.sessions().remove_message(&id, &message).await }).await.map(Json)
}

pub(in crate::route) async fn remove_part(
    State(app): State<App>,
    Three(id, message, part): Three<SessionId, MessageId, PartId>,
) -> Result<Json<bool>, Error> {
    let engine = app.engine.clone();
    app.finish(async move { engine.sessions().remove_part(&id, &message, &part).await }).await.map(Json)
}

pub(in crate::route) async fn update_part(
    State(app): State<App>,
    who: Who,
    Three(id, message, part): Three<SessionId, MessageId, PartId>,
    Payload(value): Payload<Part>,
) -> Result<Json<Part>, Error> {
    if (&value.session_id, &value.message_id, &value.id) != (&id, &message, &part) {
        let message = "the ids of the part differ from those in the path".to_owned();
        return Err(Error::Invalid { message, kind: "Payload" });
    }
    if who.limited().is_some() {
        let stored = app.engine.sessions().message(&id, &message).await?.parts;
        let is_text = |part: &Part| matches!(part.body, PartBody::Text(_));
        // Undo and the next request believe what the other parts say about calls and files.
        if !is_text(&value) || !stored.iter().any(|stored| stored.id == part && is_text(stored)) {
            return Err(Error::Forbidden { why: "users may only change the text of a message" });
        }
    }
    let engine = app.engine.clone();
    app.finish(async move { engine.sessions().update_part(value).await }).await.map(Json)
}

pub(in crate::route) async fn revert(
    State(app): State<App>,
    One(id): One<SessionId>,
    Payload(input): Payload<RevertInput>,
) -> Result<Json<Session>, Error> {
    check_prefix("messageID", "msg", input.message_id.as_str())?;
    if let Some(part) = &input.part_id {
        check_prefix("partID", "prt", part.as_str())?;
    }
    let engine = app.engine.clone();
    app.finish(async move { engine.sessions().revert(&id, input).await }).await.map(Json)
}

/// An unreverted session, and the files that were not restored.
#[derive(Serialize)]
pub(in crate::route) struct Unreverted {
    #[serde(flatten)]
    session: Session,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kept: Vec<KeptFile>,
}

pub(in crate::route) async fn unrevert(
    State(app): State<App>,
    One(id): One<SessionId>,
    Payload(input): Payload<UnrevertInput>,
) -> Result<Json<Unreverted>, Error> {
    let engine = app.engine.clone();
    let result = app.finish(async move { engine.sessions().unrevert(&id, input).await }).await?;
    Ok(Json(Unreverted { session: result.session, kept: result.kept }))
}

/// Checks the prefix of an id in a body. The types of bodies do not check ids.
fn check_prefix(key: &str, prefix: &str, id: &str) -> Result<(), Error> {
    if id.starts_with(prefix) {
        return Ok(());
    }
    let shown: String = id.chars().take(40).collect();
    let message = format!("Expected a string starting with \"{prefix}\", got \"{shown}\"\n  at [\"{key}\"]");
    Err(Error::Invalid { message, kind: "Payload" })
}

/// Fails, because sessions cannot be shared.
pub(in crate::route) async fn share(
    State(app): State<App>,
    One(id): One<SessionId>,
) -> Result<Json<Session>, Error> {
    app.engine.sessions().get(&id).await?;
    Err(Error::NotSupported { feature: "sharing a session" })
}

pub(in crate::route) async fn unshare(
    State(app): State<App>,
    One(id): One<SessionId>,
) -> Result<Json<Session>, Error> {
    let engine = app.engine.clone();
    app.finish(async move { engine.sessions().unshare(&id).await }).await.map(Json)
}
