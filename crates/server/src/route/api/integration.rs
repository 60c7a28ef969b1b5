//! Providers as things to sign in to: keys, sign-ins that go on by themselves, and what they gave.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use codewright_engine::{Attempt, Progress};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{located, shape};
use crate::Error;
use crate::extract::{Here, One, Payload};
use crate::state::App;

pub(in crate::route) async fn list(State(app): State<App>, here: Here) -> Json<Value> {
    let (sign_ins, labels) = (app.engine.providers().sign_in_methods(), app.engine.providers().labels());
    let all = here.place.connections();
    located(&here, all.iter().map(|known| shape::integration(known, &sign_ins, &labels)).collect())
}

pub(in crate::route) async fn read(State(app): State<App>, here: Here, One(id): One<String>) -> Json<Value> {
    let (sign_ins, labels) = (app.engine.providers().sign_in_methods(), app.engine.providers().labels());
    let all = here.place.connections();
    let found = all.iter().find(|(known, ..)| *known == id);
    located(&here, found.map_or(Value::Null, |known| shape::integration(known, &sign_ins, &labels)))
}

#[derive(Deserialize)]
pub(in crate::route) struct Key {
    key: String,
    label: Option<String>,
}

pub(in crate::route) async fn connect_key(
    State(app): State<App>,
    One(provider): One<String>,
    Payload(given): Payload<Key>,
) -> Result<StatusCode, Error> {
    let engine = app.engine.clone();
    app.finish(
        async move { engine.providers().set_key(&provider, &given.key, given.label.as_deref()).await },
    )
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
pub(in crate::route) struct Begin {
    #[serde(rename = "methodID")]
    method_id: String,
    inputs: BTreeMap<String, String>,
    label: Option<String>,
}

pub(in crate::route) async fn connect(
    State(app): State<App>,
    here: Here,
    One(provider): One<String>,
    Payload(asked): Payload<Begin>,
) -> Result<Json<Value>, Error> {
    let engine = app.engine.clone();
    let Begin { method_id, inputs, label } = asked;
    let begun = async move { engine.providers().begin_attempt(&provider, &method_id, &inputs, label).await };
    let attempt = app.finish(begun).await?;
    let data = json!({
        "attemptID": attempt.id,
        "url": attempt.url,
        "instructions": attempt.instructions,
        "mode": if attempt.is_automatic { "auto" } else { "code" },
        "time": time(&attempt),
    });
    Ok(located(&here, data))
}

pub(in crate::route) async fn status(
    State(app): State<App>,
    here: Here,
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
    Ok(located(&here, data))
}

pub(in crate::route) async fn cancel(State(app): State<App>, One(id): One<String>) -> StatusCode {
    app.engine.providers().cancel_attempt(&id).await;
    StatusCode::NO_CONTENT
}

#[derive(Deserialize)]
pub(in crate::route) struct Complete {
    code: Option<String>,
}

/// Answers when the sign-in has ended, well or badly.
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

/// A credential has the name of its provider.
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
