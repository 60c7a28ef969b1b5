//! Reading the configuration, without secrets, and changing it.

use axum::Json;
use axum::extract::State;
use serde_json::Value;

use crate::Error;
use crate::extract::{Location, Payload};
use crate::state::App;

pub(super) async fn read(location: Location) -> Json<Value> {
    Json(location.instance.config_shown())
}

pub(super) async fn change(
    State(app): State<App>,
    location: Location,
    Payload(change): Payload<Value>,
) -> Result<Json<Value>, Error> {
    let engine = app.engine.clone();
    app.finish(async move { engine.settings().change(&location.instance, change).await }).await.map(Json)
}

pub(super) async fn read_global(State(app): State<App>) -> Result<Json<Value>, Error> {
    Ok(Json(app.engine.settings().global()?))
}

pub(super) async fn change_global(
    State(app): State<App>,
    Payload(change): Payload<Value>,
) -> Result<Json<Value>, Error> {
    let engine = app.engine.clone();
    app.finish(async move { engine.settings().change_global(change).await }).await.map(Json)
}
