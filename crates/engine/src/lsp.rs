//! The language servers of open directories.
//!
//! Servers belong to a directory. They start when a file of their kind is first read or changed, and keep running while
//! the directory is opened again with the same configuration.

pub(crate) mod host;
mod install;
pub(crate) mod operations;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use codewright_config::env::EXPERIMENTAL_LSP_TY;
use codewright_config::{Config, Env, Parts};
use codewright_lsp::{Python, Servers, Spec};
use tokio_util::task::TaskTracker;

/// The number of directories whose servers keep running. Those of the least recently used one end for another.
const MAX_DIRECTORIES: usize = 16;

/// The servers of all directories.
#[derive(Default)]
pub(crate) struct LspTable(Mutex<HashMap<PathBuf, Entry>>);

struct Entry {
    servers: Servers,
    used: u64,
}

/// Returns the servers of a configuration and of the documents that it was merged from.
pub(crate) fn of(config: &Config, parts: Option<&Parts>, env: &Env) -> Vec<Spec> {
    let python = if env.is_on(EXPERIMENTAL_LSP_TY) { Python::Ty } else { Python::Pyright };
    let parts = parts.map(|parts| (&parts.user.raw, &parts.repository.raw));
    codewright_lsp::configured(&config.raw, parts, python)
}

impl LspTable {
    /// Returns the servers of a directory, and creates them if necessary. Also returns servers that must be closed.
    pub(crate) fn open(
        &self,
        directory: &Path,
        specs: &[Spec],
        now: u64,
        create: impl FnOnce() -> Servers,
    ) -> (Servers, Vec<Servers>) {
        let mut open = self.lock();
        if let Some(entry) = open.get_mut(directory) {
            entry.used = now;
            if entry.servers.specs() == specs {
                return (entry.servers.clone(), Vec::new());
            }
        }
        let mut closed: Vec<Entry> = open.remove(directory).into_iter().collect();
        if open.len() >= MAX_DIRECTORIES {
            let oldest = open.iter().min_by_key(|(_, entry)| entry.used).map(|(path, _)| path.clone());
            closed.extend(oldest.and_then(|oldest| open.remove(&oldest)));
        }
        let servers = create();
        open.insert(directory.to_owned(), Entry { servers: servers.clone(), used: now });
        (servers, closed.into_iter().map(|entry| entry.servers).collect())
    }

    /// The servers of a directory, if there are any.
    fn find(&self, directory: &Path) -> Option<Servers> {
        self.lock().get(directory).map(|entry| entry.servers.clone())
    }

    /// The servers of all directories.
    fn all(&self) -> Vec<Servers> {
        self.lock().values().map(|entry| entry.servers.clone()).collect()
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
