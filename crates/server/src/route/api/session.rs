//! Creating and changing sessions in the v2 API.

use axum::extract::State;
use axum::{Extension, Json};
use codewright_proto::{ModelRef, SessionId, SessionInput};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{find_session, parse_id, shape};
use crate::Error;
use crate::auth::{Level, Viewer, on_session};
use crate::extract::{Location, One, Payload};
use crate::serve::Closing;
use crate::state::App;

#[derive(Deserialize)]
pub(in crate::route) struct SessionBody {
    id: Option<String>,
    agent: Option<String>,
    model: Option<ModelRef>,
    location: Option<LocationInput>,
}

#[derive(Deserialize)]
struct LocationInput {
    directory: String,
    #[serde(rename = "workspaceID")]
    workspace_id: Option<String>,
}

pub(in crate::route) async fn create(
    State(app): State<App>,
    mut viewer: Viewer,
    location: Location,
    Payload(body): Payload<SessionBody>,
) -> Result<Json<Value>, Error> {
    let access = viewer.who().new_access()?;
    let id = body.id.as_deref().map(|id| parse_id("id", SessionId::parse(id))).transpose()?;
    if let Some(id) = &id
        && app.engine.sessions().get(id).await.is_ok()
    {
        // An existing session is returned, so the user must be able to see it.
        on_session(&app, &mut viewer, Some(id.as_str()), Level::Full).await?;
    }
    let instance = match body.location {
        Some(LocationInput { workspace_id: Some(_), .. }) => {
            return Err(Error::NotSupported { feature: "working in workspaces" });
        }
        Some(LocationInput { directory, .. }) => {
            Location::open(&app, viewer.who(), &app.engine.default_directory().join(directory)).await?
        }
        None => location.instance,
    };
    let input = SessionInput { agent: body.agent, model: body.model, access, ..SessionInput::default() };
    let engine = app.engine.clone();
    let create = async move {
        match id {
            Some(id) => engine.sessions().create_as(&instance, id, input).await,
            None => engine.sessions().create(&instance, input).await,
        }
    };
    let session = app.finish(create).await?;
    Ok(Json(json!({ "data": shape::session(&session) })))
}

#[derive(Deserialize)]
pub(in crate::route) struct Agent {
    agent: String,
}

pub(in crate::route) async fn agent(
    State(app): State<App>,
    One(id): One<SessionId>,
    Payload(Agent { agent }): Payload<Agent>,
) -> Result<StatusCode, Error> {
    find_session(&app, &id).await?;
    let engine = app.engine.clone();
    app.finish(async move { engine.sessions().choose(&id, Some(agent), None).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
pub(in crate::route) struct Model {
    model: ModelRef,
}

pub(in crate::route) async fn model(
    State(app): State<App>,
    One(id): One<SessionId>,
    Payload(Model { model }): Payload<Model>,
) -> Result<StatusCode, Error> {
    find_session(&app, &id).await?;
    let engine = app.engine.clone();
    app.finish(async move { engine.sessions().choose(&id, None, Some(model)).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(in crate::route) async fn interrupt(
    State(app): State<App>,
    One(id): One<SessionId>,
) -> Result<StatusCode, Error> {
    find_session(&app, &id).await?;
    let engine = app.engine.clone();
    app.finish(async move { engine.sessions().abort(&id).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Responds when the session is idle.
pub(in crate::route) async fn wait(
    State(app): State<App>,
    One(id): One<SessionId>,
    closing: Option<Extension<Closing>>,
) -> Result<StatusCode, Error> {
    find_session(&app, &id).await?;
    let closing = Closing::token(closing);
    let mut feed = app.engine.events().subscribe();
    while app.engine.sessions().statuses().contains_key(&id) {
        let next = closing.run_until_cancelled(feed.next()).await;
        next.ok_or(Error::Closing)?.map_err(|_| Error::Closing)?;
    }
    Ok(StatusCode::NO_CONTENT)
}

pub(in crate::route) async fn compact(
    State(app): State<App>,
    One(id): One<SessionId>,
) -> Result<StatusCode, Error> {
    find_session(&app, &id).await?;
    let engine = app.engine.clone();
    app.finish(async move { engine.sessions().compact(&id).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}
