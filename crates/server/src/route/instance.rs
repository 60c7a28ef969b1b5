//! The server and one directory: health, paths, project, configuration.

use axum::Json;
use axum::extract::State;
use codewright_proto::{HealthReply, PathReply, Project};
use serde_json::Value;

use crate::extract::Here;
use crate::state::App;

pub(super) async fn health(State(app): State<App>) -> Json<HealthReply> {
    Json(HealthReply { healthy: true, version: app.engine.version().to_owned() })
}

pub(super) async fn path(here: Here) -> Json<PathReply> {
    Json(here.place.path())
}

pub(super) async fn project(here: Here) -> Json<Project> {
    Json(here.place.project())
}

pub(super) async fn config(here: Here) -> Json<Value> {
    Json(here.place.config_json())
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
