//! Storing and removing credentials, and signing in to providers. No response contains a credential.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use codewright_engine::KeyVerdict;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Error;
use crate::extract::{Location, One, Payload};
use crate::state::App;

/// The longest wait for a provider that checks a key.
const VERIFY_DEADLINE: Duration = Duration::from_secs(4);

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

/// Asks a provider whether it accepts the stored key, with a request that costs nothing.
pub(super) async fn verify(
    State(app): State<App>,
    location: Location,
    One(provider): One<String>,
) -> Result<Json<Value>, Error> {
    let probe = app.engine.providers().probe(&location.instance, Some(&provider), VERIFY_DEADLINE).await;
    let probe = probe.map_err(|error| match error {
        codewright_engine::Error::UnknownModel { .. } => {
            Error::payload(format!("there is no provider `{provider}`"))
        }
        other => other.into(),
    })?;
    let (status, message) = match probe.verdict {
        KeyVerdict::Accepted => ("accepted", None),
        KeyVerdict::Refused(why) => ("refused", Some(why)),
        KeyVerdict::Unchecked(why) => ("unchecked", Some(why)),
        KeyVerdict::Unreachable(why) => ("unreachable", Some(why)),
    };
    Ok(Json(json!({ "status": status, "message": message })))
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
