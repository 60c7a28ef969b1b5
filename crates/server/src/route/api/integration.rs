//! Integrations: signing in to providers by key or browser, and their credentials.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use codewright_engine::{Attempt, Progress};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{shape, with_location};
use crate::Error;
use crate::extract::{Location, One, Payload};
use crate::state::App;

pub(in crate::route) async fn list(State(app): State<App>, location: Location) -> Json<Value> {
    let (sign_ins, labels) = (app.engine.providers().sign_in_methods(), app.engine.providers().labels());
    let all = location.instance.connections();
    with_location(&location, all.iter().map(|one| shape::integration(one, &sign_ins, &labels)).collect())
}

pub(in crate::route) async fn read(
    State(app): State<App>,
    location: Location,
    One(id): One<String>,
) -> Json<Value> {
    let (sign_ins, labels) = (app.engine.providers().sign_in_methods(), app.engine.providers().labels());
    let all = location.instance.connections();
    let found = all.iter().find(|provider| provider.id == id);
    with_location(&location, found.map_or(Value::Null, |one| shape::integration(one, &sign_ins, &labels)))
}

#[derive(Deserialize)]
pub(in crate::route) struct Key {
    key: String,
    label: Option<String>,
}

pub(in crate::route) async fn connect_key(
    State(app): State<App>,
    One(provider): One<String>,
    Payload(body): Payload<Key>,
) -> Result<StatusCode, Error> {
    let engine = app.engine.clone();
    app.finish(async move { engine.providers().set_key(&provider, &body.key, body.label.as_deref()).await })
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
pub(in crate::route) struct ConnectBody {
    #[serde(rename = "methodID")]
    method_id: String,
    inputs: BTreeMap<String, String>,
    label: Option<String>,
}

pub(in crate::route) async fn connect(
    State(app): State<App>,
    location: Location,
    One(provider): One<String>,
    Payload(body): Payload<ConnectBody>,
) -> Result<Json<Value>, Error> {
    let engine = app.engine.clone();
    let ConnectBody { method_id, inputs, label } = body;
    let begin = async move { engine.providers().begin_attempt(&provider, &method_id, &inputs, label).await };
    let attempt = app.finish(begin).await?;
    let data = json!({
        "attemptID": attempt.id,
        "url": attempt.url,
        "instructions": attempt.instructions,
        "mode": if attempt.is_automatic { "auto" } else { "code" },
        "time": time(&attempt),
    });
    Ok(with_location(&location, data))
}

pub(in crate::route) async fn status(
    State(app): State<App>,
    location: Location,
    One(id): One<String>,
) -> Result<Json<Value>, Error> {
    let (attempt, progress) = app.engine.providers().attempt(&id)?;
    let time = time(&attempt);
    let data = match progress {
        Progress::Pending => json!({"status": "pending", "time": time}),
        Progress::Complete => json!({"status": "complete", "time": time}),
        Progress::Failed(message) => json!({"status": "failed", "message": message, "time": time}),
        Progress::Expired => json!({"status": "expired", "time": time}),
    };
    Ok(with_location(&location, data))
}

pub(in crate::route) async fn cancel(State(app): State<App>, One(id): One<String>) -> StatusCode {
    app.engine.providers().cancel_attempt(&id).await;
    StatusCode::NO_CONTENT
}

#[derive(Deserialize)]
pub(in crate::route) struct Complete {
    code: Option<String>,
}

/// Responds when the sign-in has succeeded or failed.
pub(in crate::route) async fn complete(
    State(app): State<App>,
    One(id): One<String>,
    Payload(Complete { code }): Payload<Complete>,
) -> Result<StatusCode, Error> {
    app.engine.providers().complete_attempt(&id, code).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn time(attempt: &Attempt) -> Value {
    json!({"created": attempt.created, "expires": attempt.expires})
}

#[derive(Deserialize)]
pub(in crate::route) struct Label {
    label: String,
}

/// Sets the label of a credential. the id of a credential is the provider's id.
pub(in crate::route) async fn rename(
    State(app): State<App>,
    One(id): One<String>,
    Payload(Label { label }): Payload<Label>,
) -> Result<StatusCode, Error> {
    let engine = app.engine.clone();
    app.finish(async move { engine.providers().set_label(&id, &label).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(in crate::route) async fn disconnect(
    State(app): State<App>,
    One(id): One<String>,
) -> Result<StatusCode, Error> {
    let engine = app.engine.clone();
    app.finish(async move { engine.providers().remove_credential(&id).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}
