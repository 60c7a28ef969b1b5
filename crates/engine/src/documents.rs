//! The documents of users' editors, by session.
//!
//! They are used only while no command of the model runs: an editor opens paths by itself, and a command could exchange a
//! directory for a link between the check of a path and the editor's use of it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codewright_proto::SessionId;
use codewright_tools::Jobs;
use codewright_workspace::Documents;

/// The number of sessions whose editors are known.
const MAX_SESSIONS: usize = 1024;

/// The documents of all sessions.
#[derive(Debug, Default)]
pub(crate) struct DocumentTable {
    of_sessions: Mutex<HashMap<SessionId, Arc<dyn Documents>>>,
    /// The number of commands of the model that run.
    commands: Arc<AtomicUsize>,
}

/// A running command of the model.
pub(crate) struct RunningCommand(Arc<AtomicUsize>);

impl Drop for RunningCommand {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The documents of a session, while they can be used.
#[derive(Debug)]
struct Guarded {
    documents: Arc<dyn Documents>,
    commands: Arc<AtomicUsize>,
    jobs: Jobs,
}

impl DocumentTable {
    /// Sets or removes the documents of a session.
    pub(crate) fn set(&self, session: &SessionId, documents: Option<Arc<dyn Documents>>) {
        let mut table = self.lock();
        match documents {
            // Without an entry the files on the disk are used.
            Some(_) if table.len() >= MAX_SESSIONS && !table.contains_key(session) => {}
            Some(documents) => drop(table.insert(session.clone(), documents)),
            None => drop(table.remove(session)),
        }
    }

    /// Reports whether no session has documents.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Returns the documents of a session.
    pub(crate) fn of(&self, session: &SessionId, jobs: &Jobs) -> Option<Arc<dyn Documents>> {
        let documents = self.lock().get(session).cloned()?;
        Some(Arc::new(Guarded { documents, commands: self.commands.clone(), jobs: jobs.clone() }))
    }

    /// Notes that a command of the model runs until the result is dropped.
    pub(crate) fn command_runs(&self) -> RunningCommand {
        self.commands.fetch_add(1, Ordering::AcqRel);
        RunningCommand(self.commands.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<dyn Documents>>> {
        self.of_sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guarded {
    fn is_safe(&self) -> bool {
        self.commands.load(Ordering::Acquire) == 0 && !self.jobs.are_running()
    }
}

impl Documents for Guarded {
    fn read(&self, path: &Path) -> Option<String> {
        if self.is_safe() { self.documents.read(path) } else { None }
    }

    fn write(&self, path: &Path, text: &str) -> bool {
        self.is_safe() && self.documents.write(path, text)
    }
}
