//! MCP servers: those of the configuration, none of which this version connects to.

use axum::Json;
use serde_json::{Map, Value, json};

use crate::Error;
use crate::extract::{Here, One};

/// What every server that is not switched off says of itself.
const NOT_YET: &str = "MCP servers are not offered by this version";

pub(super) async fn status(here: Here) -> Json<Map<String, Value>> {
    let config = here.place.config_json();
    let servers = config.get("mcp").and_then(Value::as_object).cloned().unwrap_or_default();
    let told = servers.into_iter().map(|(name, server)| {
        let off = server.get("enabled") == Some(&Value::Bool(false));
        let status =
            if off { json!({"status": "disabled"}) } else { json!({"status": "failed", "error": NOT_YET}) };
        (name, status)
    });
    Json(told.collect())
}

pub(super) async fn add(_here: Here) -> Result<Json<Value>, Error> {
    Err(Error::NotOffered { what: "connecting to MCP servers" })
}

/// Everything else that is done to one server.
pub(super) async fn one(here: Here, One(name): One<String>) -> Result<Json<Value>, Error> {
    let config = here.place.config_json();
    if config.get("mcp").and_then(|servers| servers.get(&name)).is_some() {
        return Err(Error::NotOffered { what: "connecting to MCP servers" });
    }
    Err(Error::Missing { tag: "McpServerNotFoundError", key: "name", what: "MCP server", id: name })
}
