//! Configuration: read, without its secrets, and changed by what clients lay over it.

use axum::Json;
use axum::extract::State;
use serde_json::Value;

use crate::Error;
use crate::extract::{Here, Payload};
use crate::state::App;

pub(super) async fn read(here: Here) -> Json<Value> {
    Json(here.place.config_shown())
}

pub(super) async fn change(
    State(app): State<App>,
    here: Here,
    Payload(change): Payload<Value>,
) -> Result<Json<Value>, Error> {
    let engine = app.engine.clone();
    app.finish(async move { engine.settings().change(&here.place, change).await }).await.map(Json)
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
