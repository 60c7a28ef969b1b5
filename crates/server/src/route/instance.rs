//! The server and one directory: health, paths, providers, agents, and putting it away.

use axum::Json;
use axum::extract::State;
use codewright_proto::{HealthReply, PathReply};
use serde_json::{Value, json};

use crate::extract::Here;
use crate::state::App;

pub(super) async fn health(State(app): State<App>) -> Json<HealthReply> {
    Json(HealthReply { healthy: true, version: app.engine.version().to_owned() })
}

pub(super) async fn path(here: Here) -> Json<PathReply> {
    Json(here.place.path())
}

pub(super) async fn providers(here: Here) -> Json<Value> {
    Json(here.place.providers_json())
}

pub(super) async fn all_providers(here: Here) -> Json<Value> {
    Json(here.place.provider_list_json())
}

pub(super) async fn agents(here: Here) -> Json<Value> {
    Json(here.place.agents_json())
}

/// Puts the directory away; its next request opens it anew.
pub(super) async fn dispose(State(app): State<App>, here: Here) -> Json<bool> {
    app.engine.instances().dispose(&here.place).await;
    Json(true)
}

pub(super) async fn dispose_all(State(app): State<App>) -> Json<bool> {
    app.engine.instances().dispose_all().await;
    Json(true)
}

/// The program is replaced by whoever installed it.
pub(super) async fn upgrade() -> Json<Value> {
    Json(json!({"success": false, "error": "this version does not replace itself"}))
}

pub(super) async fn commands(here: Here) -> Json<Value> {
    Json(here.place.commands_json())
}

pub(super) async fn skills(here: Here) -> Json<Value> {
    Json(here.place.skills_json())
}
