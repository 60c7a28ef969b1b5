//! Reading the configuration, without secrets, and changing it.

use axum::Json;
use axum::extract::State;
use serde_json::Value;

use crate::Error;
use crate::auth::Viewer;
use crate::extract::{Location, Payload};
use crate::state::App;

pub(super) async fn read(location: Location, viewer: Viewer) -> Json<Value> {
    Json(location.instance.config_for(viewer.audience()))
}

pub(super) async fn change(
    State(app): State<App>,
    location: Location,
    Payload(change): Payload<Value>,
) -> Result<Json<Value>, Error> {
    let engine = app.engine.clone();
    app.finish(async move { engine.settings().change(&location.instance, change).await }).await.map(Json)
}

pub(super) async fn read_global(State(app): State<App>, viewer: Viewer) -> Result<Json<Value>, Error> {
    Ok(Json(app.engine.settings().global(viewer.audience())?))
}

pub(super) async fn change_global(
    State(app): State<App>,
    Payload(change): Payload<Value>,
) -> Result<Json<Value>, Error> {
    let engine = app.engine.clone();
    app.finish(async move { engine.settings().change_global(change).await }).await.map(Json)
}
