//! The operations of clients on language servers.

use std::sync::Arc;

use serde_json::{Value, json};

use super::host;
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
            if let Some(error) = status.error {
                shown["error"] = error.into();
            }
            shown
        });
        statuses.collect()
    }
}
