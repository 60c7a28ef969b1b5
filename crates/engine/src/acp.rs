//! Other agents of the Agent Client Protocol, which answer prompts in place of a model.
//!
//! A directory has one process for each agent, which serves all sessions of the directory. It starts with the first
//! prompt and keeps running while the directory is open.

pub(crate) mod host;
pub(crate) mod kept;
pub(crate) mod model;
pub(crate) mod prompt;
pub(crate) mod servers;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codewright_acp_client::Agents;
use tokio_util::task::TaskTracker;

use crate::instance::Instance;

/// The number of directories whose agents keep running. Those of the least recently used one end for another.
const MAX_DIRECTORIES: usize = 16;

/// The agents of all directories.
#[derive(Default)]
pub(crate) struct AcpTable(Mutex<HashMap<PathBuf, Entry>>);

/// The instance with the current configuration of a directory.
pub(crate) type Current = Arc<Mutex<Arc<Instance>>>;

struct Entry {
    agents: Agents,
    current: Current,
    used: u64,
}

impl AcpTable {
    /// Returns the agents of a directory, and creates them if necessary. Also returns agents that must be closed.
    pub(crate) fn open(
        &self,
        instance: &Arc<Instance>,
        now: u64,
        create: impl FnOnce(Current) -> Agents,
    ) -> (Agents, Option<Agents>) {
        let mut open = self.lock();
        if let Some(entry) = open.get_mut(&instance.directory) {
            entry.used = now;
            // Agents that start later are in the sandbox of the current configuration.
            *entry.current.lock().unwrap_or_else(PoisonError::into_inner) = instance.clone();
            return (entry.agents.clone(), None);
        }
        let mut closed = None;
        if open.len() >= MAX_DIRECTORIES {
            let oldest = open.iter().min_by_key(|(_, entry)| entry.used).map(|(path, _)| path.clone());
            closed = oldest.and_then(|oldest| open.remove(&oldest)).map(|entry| entry.agents);
        }
        let current: Current = Arc::new(Mutex::new(instance.clone()));
        let agents = create(current.clone());
        let entry = Entry { agents: agents.clone(), current, used: now };
        open.insert(instance.directory.clone(), entry);
        (agents, closed)
    }

    /// Begins to end the agents of a directory. The result waits for them, but not without end.
    pub(crate) fn close(&self, directory: &Path) -> impl Future<Output = ()> + Send + use<> {
        let entry = self.lock().remove(directory);
        async move {
            if let Some(Entry { agents, .. }) = entry {
                agents.close().await;
            }
        }
    }

    /// Ends the agents of all directories in the background.
    pub(crate) fn close_all(&self, tasks: &TaskTracker) {
        for Entry { agents, .. } in std::mem::take(&mut *self.lock()).into_values() {
            tasks.spawn(async move { agents.close().await });
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
