//! The configured MCP servers. This version does not connect to them.

use axum::Json;
use serde_json::{Map, Value, json};

use crate::Error;
use crate::extract::{Location, One};

/// The error of every enabled server.
const NOT_SUPPORTED: &str = "MCP servers are not supported by this version";

pub(super) async fn status(location: Location) -> Json<Map<String, Value>> {
    let config = location.instance.config_json();
    let servers = config.get("mcp").and_then(Value::as_object).cloned().unwrap_or_default();
    let statuses = servers.into_iter().map(|(name, server)| {
        let off = server.get("enabled") == Some(&Value::Bool(false));
        let status = if off {
            json!({"status": "disabled"})
        } else {
            json!({"status": "failed", "error": NOT_SUPPORTED})
        };
        (name, status)
    });
    Json(statuses.collect())
}

pub(super) async fn add(_location: Location) -> Result<Json<Value>, Error> {
    Err(Error::NotSupported { feature: "connecting to MCP servers" })
}

/// Handles all requests about one server.
pub(super) async fn server(location: Location, One(name): One<String>) -> Result<Json<Value>, Error> {
    let config = location.instance.config_json();
    if config.get("mcp").and_then(|servers| servers.get(&name)).is_some() {
        return Err(Error::NotSupported { feature: "connecting to MCP servers" });
    }
    Err(Error::Missing { tag: "McpServerNotFoundError", key: "name", what: "MCP server", id: name })
}
