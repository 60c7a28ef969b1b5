//! The operations of clients on language servers.

use std::path::Path;
use std::sync::Arc;

use codewright_lsp::{Operation, Query};
use serde_json::{Value, json};

use super::{host, install};
use crate::Error;
use crate::instance::Instance;
use crate::interface::Lsp;

impl Lsp<'_> {
    /// Returns the status of the servers that were started or could not be, for `GET /lsp`.
    #[must_use]
    pub fn status(self, instance: &Arc<Instance>) -> Value {
        let Some(servers) = host::servers(self.0, instance) else { return json!([]) };
        let statuses = servers.statuses().into_iter().map(|status| {
            let root = status.root.strip_prefix(&instance.directory).unwrap_or(&status.root);
            let state = if status.error.is_some() { "error" } else { "connected" };
            let root = root.to_string_lossy();
            let mut shown = json!({"id": status.id, "name": status.id, "root": root, "status": state});
            if status.error.is_none() {
                shown["diagnostics"] = json!(status.counts);
            }
            if let Some(error) = status.error {
                shown["error"] = error.into();
            }
            if status.is_installing {
                shown["installing"] = true.into();
            }
            shown
        });
        statuses.collect()
    }

    /// Searches the symbols of the running servers, for `GET /find/symbol`.
    pub async fn symbols(self, instance: &Arc<Instance>, name: &str) -> Vec<Value> {
        match host::servers(self.0, instance) {
            Some(servers) => servers.symbols(name).await,
            None => Vec::new(),
        }
    }

    /// Searches the symbols of the running servers, for the command line.
    ///
    /// # Errors
    ///
    /// Fails if language servers are disabled.
    pub async fn symbols_if_enabled(self, instance: &Arc<Instance>, name: &str) -> Result<Vec<Value>, Error> {
        let servers = host::servers(self.0, instance).ok_or_else(disabled)?;
        Ok(servers.symbols(name).await)
    }

    /// Starts the servers of a file, and returns the names of those that are being installed.
    ///
    /// # Errors
    ///
    /// Fails if language servers are disabled.
    pub async fn prepare(self, instance: &Arc<Instance>, path: &Path) -> Result<Vec<String>, Error> {
        let servers = host::servers(self.0, instance).ok_or_else(disabled)?;
        servers.prepare(&instance.directory.join(path)).await;
        let installing = servers.statuses().into_iter().filter(|status| status.is_installing);
        Ok(installing.map(|status| status.id).collect())
    }

    /// Waits until no server of a list is being installed, at most five minutes.
    pub async fn installed(self, servers: &[String]) {
        install::installed(self.0, servers).await;
    }

    /// The reasons why servers do not work, each with the name of the server.
    #[must_use]
    pub fn problems(self, instance: &Arc<Instance>) -> Vec<(String, String)> {
        let Some(servers) = host::servers(self.0, instance) else { return Vec::new() };
        servers.statuses().into_iter().filter_map(|status| Some((status.id, status.error?))).collect()
    }

    /// Starts the servers of a file and returns the diagnostics of all files that have some, by path.
    ///
    /// # Errors
    ///
    /// Fails if language servers are disabled.
    pub async fn diagnostics(self, instance: &Arc<Instance>, path: &Path) -> Result<Value, Error> {
        let servers = host::servers(self.0, instance).ok_or_else(disabled)?;
        let files = servers.diagnostics_of(&instance.directory.join(path)).await;
        serde_json::to_value(files).map_err(|error| Error::machine(error.to_string()))
    }

    /// Starts the servers of a file and returns its symbols.
    ///
    /// # Errors
    ///
    /// Fails if language servers are disabled or none answers.
    pub async fn document_symbols(self, instance: &Arc<Instance>, path: &Path) -> Result<Vec<Value>, Error> {
        let servers = host::servers(self.0, instance).ok_or_else(disabled)?;
        let query = Query {
            operation: Operation::DocumentSymbol,
            path: instance.directory.join(path),
            line: 1,
            character: 1,
            name: String::new(),
        };
        Ok(servers.query(&query).await.map_err(Error::machine)?.entries)
    }
}

fn disabled() -> Error {
    Error::invalid("language servers are disabled: the configuration key `lsp` is not set")
}
