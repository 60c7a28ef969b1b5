//! Workspace trust: the requests of a repository, and the decisions of the user.

use axum::Json;
use axum::extract::State;
use codewright_proto::{TrustDismissal, TrustInput, TrustRecord, TrustReply};
use serde::Deserialize;

use crate::Error;
use crate::extract::{Location, Params, Payload};
use crate::state::App;

pub(super) async fn read(State(app): State<App>, location: Location) -> Json<TrustReply> {
    Json(app.engine.trust().of(&location.instance))
}

pub(super) async fn decide(
    State(app): State<App>,
    location: Location,
    Payload(input): Payload<TrustInput>,
) -> Result<Json<TrustReply>, Error> {
    let engine = app.engine.clone();
    app.finish(async move { engine.trust().decide(&location.instance, input).await }).await.map(Json)
}

pub(super) async fn dismiss(
    State(app): State<App>,
    location: Location,
    Payload(dismissal): Payload<TrustDismissal>,
) -> Result<Json<bool>, Error> {
    app.engine.trust().dismiss(&location.instance, &dismissal)?;
    Ok(Json(true))
}

pub(super) async fn list(State(app): State<App>) -> Result<Json<Vec<TrustRecord>>, Error> {
    Ok(Json(app.engine.trust().decisions()?))
}

#[derive(Deserialize)]
pub(super) struct Directory {
    path: String,
}

pub(super) async fn remove(
    State(app): State<App>,
    Params(directory): Params<Directory>,
) -> Result<Json<bool>, Error> {
    let engine = app.engine.clone();
    app.finish(async move { engine.trust().remove(&directory.path).await }).await.map(Json)
}
