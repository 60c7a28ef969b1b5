//! The MCP servers of a directory: status, connections and sign-ins.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value};

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

/// Handles the requests about sign-ins of one server.
pub(super) async fn server(
    State(app): State<App>,
    location: Location,
    One(name): One<String>,
) -> Result<Json<Value>, Error> {
    if app.engine.mcp().status(&location.instance).await.contains_key(&name) {
        return Err(Error::NotSupported { feature: "signing in to MCP servers" });
    }
    Err(missing(name))
}

fn missing(name: String) -> Error {
    Error::Missing { tag: "McpServerNotFoundError", key: "name", what: "MCP server", id: name }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_added_server_has_a_name_and_a_configuration() {
        assert!(serde_json::from_value::<Added>(json!({"name": "a", "config": {}})).is_ok());
        assert!(serde_json::from_value::<Added>(json!({"name": "a"})).is_err());
    }
}
