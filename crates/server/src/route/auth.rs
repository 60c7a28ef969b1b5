//! Storing and removing credentials, and signing in to providers. No response contains a credential.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::Value;

use crate::Error;
use crate::extract::{Location, One, Payload};
use crate::state::App;

#[derive(Deserialize)]
pub(super) struct BeginBody {
    method: usize,
    #[serde(default)]
    inputs: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
pub(super) struct FinishBody {
    method: usize,
    #[serde(default)]
    code: Option<String>,
}

pub(super) async fn set(
    State(app): State<App>,
    One(provider): One<String>,
    Payload(entry): Payload<Value>,
) -> Result<Json<bool>, Error> {
    app.engine.providers().set_credential(&provider, &entry).await?;
    Ok(Json(true))
}

pub(super) async fn remove(State(app): State<App>, One(provider): One<String>) -> Result<Json<bool>, Error> {
    app.engine.providers().remove_credential(&provider).await?;
    Ok(Json(true))
}

pub(super) async fn methods(State(app): State<App>, location: Location) -> Json<Value> {
    let mut methods = app.engine.providers().sign_in_methods();
    let of_plugins = app.engine.extensions().sign_in_methods(&location.instance).await;
    if let Some(methods) = methods.as_object_mut() {
        methods.extend(of_plugins);
    }
    Json(methods)
}

pub(super) async fn begin(
    State(app): State<App>,
    location: Location,
    One(provider): One<String>,
    Payload(body): Payload<BeginBody>,
) -> Result<Json<Value>, Error> {
    let extensions = app.engine.extensions();
    let of_plugin =
        extensions.begin_sign_in(&location.instance, &provider, body.method, body.inputs.as_ref()).await?;
    if let Some(page) = of_plugin {
        return Ok(Json(page));
    }
    let inputs = body.inputs.unwrap_or_default();
    Ok(Json(app.engine.providers().begin_sign_in(&provider, body.method, &inputs).await?))
}

pub(super) async fn finish(
    State(app): State<App>,
    One(provider): One<String>,
    Payload(body): Payload<FinishBody>,
) -> Result<Json<bool>, Error> {
    let extensions = app.engine.extensions();
    if !extensions.finish_sign_in(&provider, body.method, body.code.clone()).await? {
        app.engine.providers().finish_sign_in(&provider, body.method, body.code).await?;
    }
    Ok(Json(true))
}
