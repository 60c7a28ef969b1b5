//! The plugins and tool files of open directories.
//!
//! Two processes run them at most: one for those of the user, and one for those of a repository that the user trusts. So
//! the code of a repository never runs beside the user's, whose plugins may hold credentials. A process starts when a
//! directory with plugins is first used. Without plugins nothing exists here.

pub(crate) mod access;
pub(crate) mod changes;
pub(crate) mod configure;
pub(crate) mod configured;
pub(crate) mod current;
pub(crate) mod extension;
pub(crate) mod host;
pub(crate) mod open;
pub(crate) mod operations;
pub(crate) mod runtime;
pub(crate) mod sign_in;
pub(crate) mod sign_ins;
pub(crate) mod tool;
pub(crate) mod transform;
pub(crate) mod wanted;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use codewright_config::Overlay;
use codewright_llm::CustomFetch;
use codewright_plugins::{ApiRequest, ApiResponse, Boxed, Plugins};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use extension::HostExtension;
use sign_ins::SignIns;
use wanted::Wanted;

/// The number of directories whose processes keep running. Those of the least recently used one end for another.
const MAX_DIRECTORIES: usize = 16;
/// The number of directories whose start is remembered.
const MAX_WAKING: usize = 1000;
/// The address of the API for plugins if this program listens on no port.
const DEFAULT_URL: &str = "http://localhost:4096/";

/// Answers the requests of plugins to the API.
pub type PluginApi = Arc<dyn Fn(ApiRequest) -> Boxed<'static, Result<ApiResponse, String>> + Send + Sync>;

/// What plugins of the v2 form change of a directory, in the form of the other API.
#[derive(Debug, Clone)]
pub struct PluginDraft {
    /// The agents.
    pub agents: Value,
    /// The commands.
    pub commands: Value,
    /// The skills.
    pub skills: Value,
    /// The providers that can be used.
    pub providers: Value,
    /// The configuration.
    pub config: Value,
}

/// Converts a draft to the form of the v2 API.
pub type PluginLists = fn(&PluginDraft) -> Value;

/// The plugins of all directories.
#[derive(Default)]
pub(crate) struct PluginTable {
    open: Mutex<HashMap<PathBuf, Entry>>,
    api: OnceLock<PluginApi>,
    lists: OnceLock<PluginLists>,
    url: OnceLock<String>,
    is_disabled: AtomicBool,
    /// Whether a plugin of the user cannot be loaded without bun.
    needs_bun: AtomicBool,
    /// What plugins have changed, by directory.
    changed: Mutex<HashMap<PathBuf, Changed>>,
    /// The sign-ins of plugins that wait for their end.
    pub(crate) sign_ins: SignIns,
    /// The directories whose plugins start soon.
    waking: Mutex<BTreeSet<PathBuf>>,
    /// The directories whose clients got lists before the plugins were loaded.
    reporting: Mutex<BTreeSet<PathBuf>>,
    /// Cancelled when the program ends.
    pub(crate) ending: CancellationToken,
}

/// A function of a plugin that sends the requests of a provider.
#[derive(Clone)]
pub(crate) struct NamedFetch {
    /// Tells it apart from those of other processes and plugins.
    pub(crate) name: String,
    pub(crate) fetch: CustomFetch,
}

/// What the plugins of a directory have changed.
#[derive(Clone, Default)]
pub(crate) struct Changed {
    /// The configuration.
    pub(crate) overlay: Arc<Overlay>,
    /// The functions that send the requests of providers.
    pub(crate) fetches: BTreeMap<String, NamedFetch>,
    /// The providers whose credentials the user's plugins may read.
    pub(crate) providers: BTreeSet<String>,
}

#[derive(Default)]
struct Entry {
    extensions: Vec<Arc<HostExtension>>,
    used: u64,
}

impl PluginTable {
    fn changed(&self) -> MutexGuard<'_, HashMap<PathBuf, Changed>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a plugin of the user cannot be loaded without bun.
    pub(crate) fn needs_bun(&self) -> bool {
        self.needs_bun.load(Ordering::Relaxed)
    }

    /// Records that a plugin cannot be loaded without bun.
    pub(crate) fn need_bun(&self) {
        self.needs_bun.store(true, Ordering::Relaxed);
    }

    /// Returns what the plugins of a directory have changed in its configuration.
    pub(crate) fn overlay(&self, directory: &Path) -> Arc<Overlay> {
        self.changed().get(directory).map(|changed| changed.overlay.clone()).unwrap_or_default()
    }

    /// Returns the functions that send the requests of providers.
    pub(crate) fn fetches(&self, directory: &Path) -> BTreeMap<String, CustomFetch> {
        let changed = self.changed();
        let fetches = changed.get(directory).into_iter().flat_map(|changed| &changed.fetches);
        fetches.map(|(provider, named)| (provider.clone(), named.fetch.clone())).collect()
    }

    /// Returns what the plugins of a directory have changed.
    pub(crate) fn changes(&self, directory: &Path) -> Changed {
        self.changed().get(directory).cloned().unwrap_or_default()
    }

    /// Sets what the plugins of a directory have changed.
    pub(crate) fn set_changes(&self, directory: &Path, changes: Changed) {
        let is_empty =
            changes.overlay.is_empty() && changes.fetches.is_empty() && changes.providers.is_empty();
        let mut changed = self.changed();
        if is_empty {
            changed.remove(directory);
        } else {
            changed.insert(directory.to_owned(), changes);
        }
    }

    /// Lets the user's plugins read the credentials of these providers.
    pub(crate) fn allow(&self, directory: &Path, providers: BTreeSet<String>) {
        self.changed().entry(directory.to_owned()).or_default().providers = providers;
    }

    /// Reports whether the user's plugins may read the credential of a provider.
    pub(crate) fn may_read(&self, directory: &Path, provider: &str) -> bool {
        self.changed().get(directory).is_some_and(|changed| changed.providers.contains(provider))
    }

    /// Claims the start of the plugins of a directory that nobody has started.
    pub(crate) fn wake(&self, directory: &Path) -> bool {
        let mut waking = self.waking.lock().unwrap_or_else(PoisonError::into_inner);
        if waking.len() >= MAX_WAKING {
            waking.clear();
        }
        waking.insert(directory.to_owned())
    }

    /// Claims the report to clients that got lists before the plugins of a directory were loaded.
    pub(crate) fn begin_report(&self, directory: &Path) -> bool {
        self.reporting.lock().unwrap_or_else(PoisonError::into_inner).insert(directory.to_owned())
    }

    /// Ends the report, so that the next one can begin.
    pub(crate) fn end_report(&self, directory: &Path) {
        self.reporting.lock().unwrap_or_else(PoisonError::into_inner).remove(directory);
    }

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

    /// Sets the function that converts drafts. The first one counts.
    pub(crate) fn set_lists(&self, lists: PluginLists) {
        // A second router of the same engine has the same function.
        let _ = self.lists.set(lists);
    }

    pub(crate) fn lists(&self) -> Option<PluginLists> {
        self.lists.get().copied()
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

    /// Returns the extensions of a directory that exist.
    pub(crate) fn find(&self, directory: &Path) -> Vec<Arc<HostExtension>> {
        self.lock().get(directory).map(|entry| entry.extensions.clone()).unwrap_or_default()
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

    /// Begins to end the processes of a directory. The result waits for them, but not without end.
    pub(crate) fn close(&self, directory: &Path) -> impl Future<Output = ()> + Send + use<> {
        self.changed().remove(directory);
        self.waking.lock().unwrap_or_else(PoisonError::into_inner).remove(directory);
        let entry = self.lock().remove(directory);
        let closing = entry.into_iter().flat_map(|entry| entry.extensions);
        let closing = closing.map(|extension| async move { extension.plugins.close().await });
        let closing: Vec<_> = closing.collect();
        async move { drop(futures_util::future::join_all(closing).await) }
    }

    /// Ends all processes. Waits until they have ended, but not without end.
    pub(crate) async fn close_all(&self) {
        self.changed().clear();
        self.waking.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let open = std::mem::take(&mut *self.lock());
        let all = open.into_values().flat_map(|entry| entry.extensions);
        let closing = all.map(|extension| async move { extension.plugins.close().await });
        futures_util::future::join_all(closing).await;
    }
}
