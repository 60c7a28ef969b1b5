//! The operations of clients on MCP servers.

use std::sync::Arc;

use codewright_mcp::{Config, Servers, Status};
use serde_json::{Map, Value, json};

use super::{commands, host};
use crate::Error;
use crate::instance::Instance;
use crate::interface::Mcp;

/// The longest name of a server.
const MAX_NAME_BYTES: usize = 200;

impl Mcp<'_> {
    /// Returns the status of each server, after it is connected or has failed.
    pub async fn status(self, instance: &Arc<Instance>) -> Map<String, Value> {
        let Some(servers) = self.settled(instance).await else { return Map::new() };
        servers.statuses().into_iter().map(|(name, status)| (name, status_json(&status))).collect()
    }

    /// Adds or replaces a server for the life of the instance, and connects it.
    pub async fn add(self, instance: &Arc<Instance>, name: &str, config: &Value) -> Result<(), Error> {
        if name.is_empty() || name.len() > MAX_NAME_BYTES {
            return Err(Error::invalid(format!("the name of a server has 1 to {MAX_NAME_BYTES} bytes")));
        }
        let timeout = instance.raw_config().pointer("/experimental/mcp_timeout").and_then(Value::as_u64);
        let config = Config::parse(config, timeout).map_err(Error::invalid)?;
        host::opened(self.0, instance).add(name, config).await;
        Ok(())
    }

    /// Ends and forgets a server. Returns `false` if there is no such server.
    pub fn remove(self, instance: &Arc<Instance>, name: &str) -> bool {
        host::servers(self.0, instance).is_some_and(|servers| servers.remove(name))
    }

    /// Connects a server. Returns `false` if there is no such server.
    pub async fn connect(self, instance: &Arc<Instance>, name: &str) -> bool {
        match host::servers(self.0, instance) {
            Some(servers) => servers.connect(name).await,
            None => false,
        }
    }

    /// Ends the connection of a server. Returns `false` if there is no such server.
    pub fn disconnect(self, instance: &Arc<Instance>, name: &str) -> bool {
        host::servers(self.0, instance).is_some_and(|servers| servers.disconnect(name))
    }

    /// Returns the resources of all servers, keyed by server and address.
    pub async fn resources(self, instance: &Arc<Instance>) -> Map<String, Value> {
        let Some(servers) = self.settled(instance).await else { return Map::new() };
        let resources = servers.resources(None).await.into_iter().map(|(client, resource)| {
            let mut shown = json!({ "name": resource.name, "uri": resource.uri });
            if let Some(description) = &resource.description {
                shown["description"] = description.as_str().into();
            }
            if let Some(mime) = &resource.mime {
                shown["mimeType"] = mime.as_str().into();
            }
            shown["client"] = (*client).into();
            (format!("{client}:{}", resource.uri), shown)
        });
        resources.collect()
    }

    /// Returns the commands of a directory, with the prompts of its servers.
    pub async fn commands(self, instance: &Arc<Instance>) -> Value {
        let mut listed = instance.commands_json();
        if let (Some(servers), Some(list)) = (self.settled(instance).await, listed.as_array_mut()) {
            // Skills come last.
            let at = list.iter().position(|command| command["source"] == "skill").unwrap_or(list.len());
            let known: Vec<Value> = list.iter().map(|command| command["name"].clone()).collect();
            let prompts = commands::commands(&servers).await.into_iter().map(|command| json!(command));
            let prompts: Vec<_> = prompts.filter(|command| !known.contains(&command["name"])).collect();
            list.splice(at..at, prompts);
        }
        listed
    }

    async fn settled(self, instance: &Arc<Instance>) -> Option<Servers> {
        let servers = host::servers(self.0, instance)?;
        servers.settled().await;
        Some(servers)
    }
}

fn status_json(status: &Status) -> Value {
    match status {
        Status::Connected => json!({"status": "connected"}),
        Status::Disabled => json!({"status": "disabled"}),
        Status::Failed(error) => json!({"status": "failed", "error": error}),
        Status::NeedsAuth => json!({"status": "needs_auth"}),
        Status::NeedsRegistration(error) => json!({"status": "needs_client_registration", "error": error}),
    }
}
