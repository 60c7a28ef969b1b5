//! The MCP servers of open directories.
//!
//! Servers belong to a directory and start when it is first used. They stay connected while the directory is opened
//! again with the same configuration. Without configured servers nothing exists here.

mod catalogue;
pub(crate) mod commands;
pub(crate) mod economy;
mod gateway;
pub(crate) mod host;
pub(crate) mod instructions;
pub(crate) mod kept;
pub(crate) mod operations;
pub(crate) mod pending;
pub(crate) mod resources;
pub(crate) mod sample;
mod search;
mod shown;
pub(crate) mod sign_in;
pub(crate) mod tokens;
pub(crate) mod tool;
pub(crate) mod vault;
pub(crate) mod web;
pub(crate) mod wrapped;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use codewright_mcp::{Config, Servers};
use codewright_tools::Host;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use pending::McpSignIns;
use tokens::Tokens;

/// The number of directories whose servers stay connected. Those of the least recently used one end for another.
const MAX_DIRECTORIES: usize = 16;

/// The servers of a configuration, each with its error if it cannot be used.
pub(crate) type Configured = Vec<(String, Result<Config, String>)>;

/// The servers of all directories.
pub(crate) struct McpTable {
    open: Mutex<HashMap<PathBuf, Entry>>,
    /// The running calls, which can ask the user.
    pub(crate) asking: Arc<Asking>,
    /// How sessions are offered the tools.
    pub(crate) decisions: economy::Decisions,
    pub(crate) tokens: Tokens,
    pub(crate) sign_ins: McpSignIns,
    /// Opens a page in the user's browser.
    pub(crate) browser: OnceLock<OpenBrowser>,
}

/// Opens a URL in the user's browser. Returns whether a program was started.
pub type OpenBrowser = fn(&codewright_config::Env, &str) -> bool;

struct Entry {
    servers: Servers,
    configured: Arc<Configured>,
    used: u64,
}

/// Returns the servers of a configuration and of the documents that it was merged from.
pub(crate) fn of(
    config: &codewright_config::Config,
    parts: Option<&codewright_config::Parts>,
) -> Arc<Configured> {
    let documents = parts.map(|parts| (&parts.user.raw, &parts.repository.raw));
    Arc::new(configured(&config.raw, documents))
}

/// Returns the servers of a configuration. `parts` are the user's and the repository's, if the repository has one.
///
/// A server that the user configured is the user's: a repository can only switch it off. Otherwise a repository could
/// send the user's headers to another address.
fn configured(merged: &Value, parts: Option<(&Value, &Value)>) -> Configured {
    if merged.get("mcp").is_none() {
        return Vec::new();
    }
    let Some((user, repository)) = parts else { return codewright_mcp::configured(merged, |_| false) };
    let off = |name: &str| {
        repository.get("mcp").and_then(|servers| servers.get(name)?.get("enabled"))
            == Some(&Value::Bool(false))
    };
    let users = codewright_mcp::configured(user, |_| false);
    let known: Vec<String> = users.iter().map(|(name, _)| name.clone()).collect();
    let users = users.into_iter().map(|(name, config)| {
        let is_off = off(&name);
        (name, config.map(|config| Config { is_enabled: config.is_enabled && !is_off, ..config }))
    });
    let others = codewright_mcp::configured(repository, |_| true);
    users.chain(others.into_iter().filter(|(name, _)| !known.contains(name))).collect()
}

impl McpTable {
    pub(crate) fn new(tokens: Tokens) -> Self {
        Self {
            decisions: economy::Decisions::default(),
            open: Mutex::default(),
            asking: Arc::default(),
            tokens,
            sign_ins: McpSignIns::default(),
            browser: OnceLock::new(),
        }
    }

    /// Returns the servers of a directory, and creates them with `create` if necessary.
    pub(crate) fn open(
        &self,
        directory: &Path,
        configured: &Arc<Configured>,
        now: u64,
        create: impl FnOnce() -> Servers,
    ) -> (Servers, Option<Servers>) {
        let mut open = self.lock();
        if let Some(entry) = open.get_mut(directory) {
            entry.used = now;
            if entry.configured != *configured {
                entry.configured = configured.clone();
                entry.servers.reconfigure(configured.as_ref().clone());
            }
            return (entry.servers.clone(), None);
        }
        let oldest = (open.len() >= MAX_DIRECTORIES)
            .then(|| open.iter().min_by_key(|(_, entry)| entry.used).map(|(path, _)| path.clone()))
            .flatten();
        let closed = oldest.and_then(|oldest| open.remove(&oldest)).map(|entry| entry.servers);
        let servers = create();
        let entry = Entry { servers: servers.clone(), configured: configured.clone(), used: now };
        open.insert(directory.to_owned(), entry);
        (servers, closed)
    }

    /// Returns the servers of a directory, if there are any.
    pub(crate) fn find(&self, directory: &Path) -> Option<Servers> {
        self.lock().get(directory).map(|entry| entry.servers.clone())
    }

    /// Begins to end the servers of a directory. The result waits for them, but not without end.
    pub(crate) fn close(&self, directory: &Path) -> impl Future<Output = ()> + Send + use<> {
        let entry = self.lock().remove(directory);
        async move {
            if let Some(Entry { servers, .. }) = entry {
                servers.close().await;
            }
        }
    }

    /// Ends the servers of all directories in the background.
    pub(crate) fn close_all(&self, tasks: &TaskTracker) {
        for Entry { servers, .. } in std::mem::take(&mut *self.lock()).into_values() {
            tasks.spawn(async move { servers.close().await });
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Entry>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The hosts of running calls, by directory and server. A question of a server belongs to its newest call.
#[derive(Default)]
pub(crate) struct Asking(Mutex<Hosts>);

type Hosts = HashMap<(PathBuf, String), Vec<Arc<dyn Host>>>;

impl Asking {
    /// Registers a call until the result is dropped.
    pub(crate) fn begin(self: &Arc<Self>, directory: &Path, server: &str, host: Arc<dyn Host>) -> Standing {
        let key = (directory.to_owned(), server.to_owned());
        self.lock().entry(key.clone()).or_default().push(host.clone());
        Standing { asking: self.clone(), key, host }
    }

    /// Returns the host of the newest call of a server.
    pub(crate) fn of(&self, directory: &Path, server: &str) -> Option<Arc<dyn Host>> {
        self.lock().get(&(directory.to_owned(), server.to_owned()))?.last().cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Hosts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A registered call.
pub(crate) struct Standing {
    asking: Arc<Asking>,
    key: (PathBuf, String),
    host: Arc<dyn Host>,
}

impl Drop for Standing {
    fn drop(&mut self) {
        let mut hosts = self.asking.lock();
        let Some(standing) = hosts.get_mut(&self.key) else { return };
        standing.retain(|host| !Arc::ptr_eq(host, &self.host));
        if standing.is_empty() {
            hosts.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_repository_cannot_change_the_users_server() {
        let user =
            json!({"mcp": {"mine": {"type": "remote", "url": "https://mine", "headers": {"a": "secret"}}}});
        let repository = json!({"mcp": {"mine": {"type": "remote", "url": "https://evil", "enabled": false},
                                        "theirs": {"type": "local", "command": ["x"]}}});
        let merged = json!({"mcp": {"mine": {}, "theirs": {}}});
        let servers = configured(&merged, Some((&user, &repository)));
        let (name, mine) = &servers[0];
        let mine = mine.as_ref().unwrap();
        assert!(
            name == "mine"
                && !mine.is_enabled
                && !mine.of_repository
                && format!("{mine:?}").contains("\"mine\"")
        );
        assert!(
            servers[1].0 == "theirs" && servers[1].1.as_ref().unwrap().of_repository && servers.len() == 2
        );
    }
}
