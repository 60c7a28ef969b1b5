//! The MCP servers of a directory: status, connections and sign-ins.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::Error;
use crate::extract::{Location, One, Params, Payload};
use crate::state::App;

/// A server to add.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Added {
    name: String,
    config: Value,
}

/// A server to remove.
#[derive(Deserialize)]
pub(super) struct Named {
    name: String,
}

pub(super) async fn status(State(app): State<App>, location: Location) -> Json<Map<String, Value>> {
    Json(app.engine.mcp().status(&location.instance).await)
}

pub(super) async fn add(
    State(app): State<App>,
    location: Location,
    Payload(added): Payload<Added>,
) -> Result<Json<Map<String, Value>>, Error> {
    app.engine.mcp().add(&location.instance, &added.name, &added.config).await?;
    Ok(Json(app.engine.mcp().status(&location.instance).await))
}

/// Ends and forgets a server until the configuration is read again.
pub(super) async fn remove(
    State(app): State<App>,
    location: Location,
    Params(named): Params<Named>,
) -> Result<Json<Map<String, Value>>, Error> {
    if !app.engine.mcp().remove(&location.instance, &named.name) {
        return Err(missing(named.name));
    }
    Ok(Json(app.engine.mcp().status(&location.instance).await))
}

pub(super) async fn connect(
    State(app): State<App>,
    location: Location,
    One(name): One<String>,
) -> Result<Json<bool>, Error> {
    let is_known = app.engine.mcp().connect(&location.instance, &name).await;
    if is_known { Ok(Json(true)) } else { Err(missing(name)) }
}

pub(super) async fn disconnect(
    State(app): State<App>,
    location: Location,
    One(name): One<String>,
) -> Result<Json<bool>, Error> {
    if app.engine.mcp().disconnect(&location.instance, &name) { Ok(Json(true)) } else { Err(missing(name)) }
}

pub(super) async fn resources(State(app): State<App>, location: Location) -> Json<Map<String, Value>> {
    Json(app.engine.mcp().resources(&location.instance).await)
}

/// The URL or the code that the user pasted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pasted {
    code: String,
}

/// Starts a sign-in. It ends by itself if the browser returns to the server's machine.
pub(super) async fn begin(
    State(app): State<App>,
    location: Location,
    One(name): One<String>,
) -> Result<Json<Value>, Error> {
    check(&app, &location, &name)?;
    let page = app.engine.mcp().begin_sign_in(&location.instance, &name).await?;
    Ok(Json(json!({"authorizationUrl": page.url, "oauthState": page.state})))
}

pub(super) async fn callback(
    State(app): State<App>,
    location: Location,
    One(name): One<String>,
    Payload(pasted): Payload<Pasted>,
) -> Result<Json<Value>, Error> {
    check(&app, &location, &name)?;
    Ok(Json(app.engine.mcp().paste_sign_in(&location.instance, &name, &pasted.code).await?))
}

/// Starts a sign-in, opens the browser and waits for the user.
pub(super) async fn authenticate(
    State(app): State<App>,
    location: Location,
    One(name): One<String>,
) -> Result<Json<Value>, Error> {
    check(&app, &location, &name)?;
    Ok(Json(app.engine.mcp().authenticate(&location.instance, &name).await?))
}

pub(super) async fn sign_out(
    State(app): State<App>,
    location: Location,
    One(name): One<String>,
) -> Result<Json<Value>, Error> {
    match app.engine.mcp().sign_out(&location.instance, &name).await? {
        Some(_) => Ok(Json(json!({"success": true}))),
        None => Err(missing(name)),
    }
}

/// Refuses a server that does not exist or has no sign-in.
fn check(app: &App, location: &Location, name: &str) -> Result<(), Error> {
    match app.engine.mcp().can_sign_in(&location.instance, name) {
        Some(true) => Ok(()),
        Some(false) => Err(Error::NoSignIn { name: name.to_owned() }),
        None => Err(missing(name.to_owned())),
    }
}

fn missing(name: String) -> Error {
    Error::Missing { tag: "McpServerNotFoundError", key: "name", what: "MCP server", id: name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_added_server_has_a_name_and_a_configuration() {
        assert!(serde_json::from_value::<Added>(json!({"name": "a", "config": {}})).is_ok());
        assert!(serde_json::from_value::<Added>(json!({"name": "a"})).is_err());
    }
}
