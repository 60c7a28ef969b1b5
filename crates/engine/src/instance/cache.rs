//! The open directories of this process.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use codewright_llm::oauth::SignIn;
use codewright_llm::vault::{Stamp, Stored};
use codewright_proto::Signal;
use tokio::sync::OnceCell;

use super::head::Heads;
use super::watcher::{self, Watchers};
use super::{Instance, Opening};
use crate::Error;

/// The number of directories that stay open. The least recently used one is closed for another.
pub(super) const MAX_INSTANCES: usize = 64;

/// A directory that is open or being opened.
type InstanceCell = Arc<OnceCell<Arc<Instance>>>;

/// The open directories and the credentials that they were opened with.
#[derive(Default)]
pub(crate) struct Instances {
    pub(crate) heads: Arc<Heads>,
    pub(crate) watchers: Arc<Watchers>,
    open: tokio::sync::Mutex<HashMap<PathBuf, (u64, InstanceCell)>>,
    seen: Mutex<Seen>,
}

/// The credentials at the last check.
#[derive(Default)]
struct Seen {
    stamp: Option<Stamp>,
    stored: Stored,
}

impl Instances {
    /// Returns the instance of a directory. The first caller opens it, and other callers for the same directory wait.
    pub(crate) async fn get(&self, opening: &Opening<'_>, directory: &Path) -> Result<Arc<Instance>, Error> {
        self.notice_credentials(opening.sign_in).await;
        if opening.trust.has_changed() {
            self.forget_all().await;
        }
        let cell = self.cell(directory, opening.clock.now_ms()).await;
        let open = async {
            // Boxed because it is rare and large, so it should not enlarge the future of every caller.
            let instance = Box::pin(Instance::open(opening, directory)).await?;
            if !watcher::is_disabled(opening.env) {
                self.heads.open(&instance).await;
            }
            self.watchers.open(&instance, opening.env);
            // Clients that know the directory already have its earlier models.
            let directory = instance.directory_text();
            opening.store.signal(Signal::IntegrationUpdated { directory: directory.clone() });
            opening.store.signal(Signal::CatalogUpdated { directory });
            Ok(Arc::new(instance))
        };
        cell.get_or_try_init(|| open).await.cloned()
    }

    /// Reopens directories after another process has signed in or out. Two `stat` calls detect this.
    async fn notice_credentials(&self, sign_in: &SignIn) {
        let vault = sign_in.vault();
        let stamp = vault.stamp();
        if self.seen.lock().unwrap_or_else(PoisonError::into_inner).stamp == Some(stamp) {
            return;
        }
        // An unreadable file is reported when a directory is opened.
        let Ok(stored) = vault.read() else { return };
        let changed = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let is_first = seen.stamp.replace(stamp).is_none();
            let changed = !is_first && !seen.stored.is_like(&stored);
            seen.stored = stored;
            changed
        };
        if changed {
            self.forget_all().await;
        }
    }

    /// Returns the directories that are open.
    pub(crate) async fn directories(&self) -> BTreeSet<String> {
        let instances = self.open.lock().await;
        instances
            .values()
            .filter_map(|(_, cell)| cell.get())
            .map(|instance| instance.directory_text())
            .collect()
    }

    /// Reopens all directories at their next use. Current users keep the old instances.
    pub(crate) async fn forget_all(&self) {
        let mut instances = self.open.lock().await;
        instances.clear();
        self.heads.put_all_away();
        self.watchers.put_all_away();
    }

    /// Reopens one directory at its next use.
    pub(crate) async fn forget(&self, directory: &Path) {
        let mut instances = self.open.lock().await;
        // The directory may have been opened under other paths too.
        instances.retain(|named, cell| {
            let (_, cell) = cell;
            named != directory && cell.get().is_none_or(|instance| instance.directory != directory)
        });
        self.heads.put_away(&directory.to_string_lossy());
        self.watchers.put_away(&directory.to_string_lossy());
    }

    async fn cell(&self, directory: &Path, now: u64) -> InstanceCell {
        let mut instances = self.open.lock().await;
        if let Some((used, cell)) = instances.get_mut(directory) {
            *used = now;
            return cell.clone();
        }
        if instances.len() >= MAX_INSTANCES
            && let Some(oldest) =
                instances.iter().min_by_key(|(_, (used, _))| *used).map(|(path, _)| path.clone())
        {
            let put_away = instances.remove(&oldest);
            if let Some(instance) = put_away.as_ref().and_then(|(_, cell)| cell.get()) {
                self.heads.put_away(&instance.path().directory);
                self.watchers.put_away(&instance.path().directory);
            }
        }
        let cell = InstanceCell::default();
        instances.insert(directory.to_owned(), (now, cell.clone()));
        cell
    }
}
