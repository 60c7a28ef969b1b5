//! The plugins and tool files of open directories.
//!
//! Two processes run them at most: one for those of the user, and one for those of a repository that the user trusts. So
//! the code of a repository never runs beside the user's, whose plugins may hold credentials. A process starts when a
//! directory with plugins is first used. Without plugins nothing exists here.

pub(crate) mod access;
pub(crate) mod current;
pub(crate) mod extension;
pub(crate) mod host;
pub(crate) mod open;
pub(crate) mod operations;
pub(crate) mod tool;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use codewright_config::CodeStamp;
use codewright_plugins::{ApiRequest, ApiResponse, Boxed, Plugins, Setup};
use tokio_util::task::TaskTracker;

use crate::packages::Owner;
use extension::HostExtension;

/// The number of directories whose processes keep running. Those of the least recently used one end for another.
const MAX_DIRECTORIES: usize = 16;
/// The address of the API for plugins if this program listens on no port.
const DEFAULT_URL: &str = "http://localhost:4096/";

/// Answers the requests of plugins to the API.
pub type PluginApi = Arc<dyn Fn(ApiRequest) -> Boxed<'static, Result<ApiResponse, String>> + Send + Sync>;

/// The plugins of all directories.
#[derive(Default)]
pub(crate) struct PluginTable {
    open: Mutex<HashMap<PathBuf, Entry>>,
    api: OnceLock<PluginApi>,
    url: OnceLock<String>,
    is_disabled: AtomicBool,
}

#[derive(Default)]
struct Entry {
    extensions: Vec<Arc<HostExtension>>,
    used: u64,
}

/// What determines whether a running process can be kept.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) owner: Owner,
    pub(crate) setup: Setup,
    /// The state of the files.
    pub(crate) stamps: Arc<Vec<CodeStamp>>,
    /// The plugins that answer permission requests in the place of the user.
    pub(crate) granting: Vec<String>,
    /// The names of built-in tools.
    pub(crate) reserved: Vec<String>,
}

impl PluginTable {
    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Entry>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the function that answers requests to the API. The first one counts.
    pub(crate) fn set_api(&self, api: PluginApi) {
        // A second router of the same engine answers in the same way.
        drop(self.api.set(api));
    }

    pub(crate) fn api(&self) -> Option<PluginApi> {
        self.api.get().cloned()
    }

    /// Sets the address on which this program listens. The first one counts.
    pub(crate) fn set_url(&self, url: String) {
        drop(self.url.set(url));
    }

    pub(crate) fn url(&self) -> String {
        self.url.get().cloned().unwrap_or_else(|| DEFAULT_URL.to_owned())
    }

    /// Runs no plugins from now on.
    pub(crate) fn disable(&self) {
        self.is_disabled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_disabled(&self) -> bool {
        self.is_disabled.load(Ordering::Relaxed)
    }

    /// Reports whether processes of a directory exist.
    pub(crate) fn has(&self, directory: &Path) -> bool {
        self.lock().contains_key(directory)
    }

    /// Returns the wanted extensions of a directory. Also returns those that must be closed.
    pub(crate) fn open(
        &self,
        directory: &Path,
        wanted: Vec<Wanted>,
        now: u64,
        create: impl Fn(&Wanted) -> Plugins,
    ) -> (Vec<Arc<HostExtension>>, Vec<Arc<HostExtension>>) {
        let mut open = self.lock();
        let mut closed = Vec::new();
        if !open.contains_key(directory) && open.len() >= MAX_DIRECTORIES {
            let oldest = open.iter().min_by_key(|(_, entry)| entry.used).map(|(path, _)| path.clone());
            let oldest = oldest.and_then(|oldest| open.remove(&oldest));
            closed.extend(oldest.into_iter().flat_map(|entry| entry.extensions));
        }
        let mut known = open.remove(directory).unwrap_or_default().extensions;
        let mut extensions = Vec::new();
        for wanted in wanted {
            let same = known.iter().position(|extension| extension.wanted == wanted);
            extensions.push(match same {
                Some(at) => known.remove(at),
                None => {
                    let plugins = create(&wanted);
                    Arc::new(HostExtension::new(plugins, wanted))
                }
            });
        }
        closed.extend(known);
        if !extensions.is_empty() {
            open.insert(directory.to_owned(), Entry { extensions: extensions.clone(), used: now });
        }
        (extensions, closed)
    }

    /// Ends the processes of a directory in the background.
    pub(crate) fn close(&self, directory: &Path, tasks: &TaskTracker) {
        let entry = self.lock().remove(directory);
        for extension in entry.into_iter().flat_map(|entry| entry.extensions) {
            tasks.spawn(async move { extension.plugins.close().await });
        }
    }

    /// Ends all processes. Waits until they have ended, but not without end.
    pub(crate) async fn close_all(&self) {
        let open = std::mem::take(&mut *self.lock());
        let all = open.into_values().flat_map(|entry| entry.extensions);
        let closing = all.map(|extension| async move { extension.plugins.close().await });
        futures_util::future::join_all(closing).await;
    }
}
