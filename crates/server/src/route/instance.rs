//! The server and its instances: health, paths, providers, agents, disposal.

use axum::Json;
use axum::extract::State;
use codewright_proto::{HealthReply, PathReply};
use serde_json::{Value, json};

use crate::Error;
use crate::auth::Viewer;
use crate::extract::Location;
use crate::state::App;

pub(super) async fn health() -> Json<HealthReply> {
    Json(HealthReply { healthy: true, version: codewright_proto::INTERFACE_VERSION.to_owned() })
}

pub(super) async fn path(location: Location) -> Json<PathReply> {
    Json(location.instance.path())
}

pub(super) async fn providers(location: Location) -> Json<Value> {
    Json(location.instance.providers_json())
}

pub(super) async fn all_providers(location: Location) -> Json<Value> {
    Json(location.instance.provider_list_json())
}

pub(super) async fn agents(location: Location, viewer: Viewer) -> Json<Value> {
    Json(location.instance.agents_for(viewer.audience()))
}

/// Disposes the instance. The next request for its directory creates a new one.
pub(super) async fn dispose(State(app): State<App>, location: Location) -> Json<bool> {
    app.engine.instances().dispose(&location.instance).await;
    Json(true)
}

pub(super) async fn dispose_all(State(app): State<App>) -> Json<bool> {
    app.engine.instances().dispose_all().await;
    Json(true)
}

/// Fails, because the program does not update itself.
pub(super) async fn upgrade() -> Json<Value> {
    Json(json!({"success": false, "error": "this version does not update itself"}))
}

pub(super) async fn commands(State(app): State<App>, location: Location, viewer: Viewer) -> Json<Value> {
    let mut commands = app.engine.mcp().commands(&location.instance).await;
    location.instance.mask(&mut commands, viewer.audience());
    Json(commands)
}

pub(super) async fn language_servers(State(app): State<App>, location: Location) -> Json<Value> {
    Json(app.engine.lsp().status(&location.instance))
}

pub(super) async fn formatters(location: Location) -> Json<Value> {
    Json(location.instance.formatters_json())
}

pub(super) async fn skills(location: Location) -> Json<Value> {
    Json(location.instance.skills_json())
}

/// Begins no more turns on this server, and hands its sessions over to others that share the store.
pub(super) async fn drain(State(app): State<App>) -> Result<Json<bool>, Error> {
    if app.engine.nodes().drain() {
        return Ok(Json(true));
    }
    Err(Error::NotSupported { feature: "draining a server whose sessions are not in PostgreSQL" })
}
