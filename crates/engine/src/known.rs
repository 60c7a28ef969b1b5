//! The files that each session has read or written, while the process runs.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use codewright_proto::SessionId;
use codewright_tools::KnownFiles;

/// The number of sessions that are remembered. The one that was used longest ago is removed first.
const MAX_SESSIONS: usize = 256;

#[derive(Default)]
pub(crate) struct SessionFiles(Mutex<Table>);

#[derive(Default)]
struct Table {
    uses: u64,
    sessions: HashMap<SessionId, (u64, KnownFiles)>,
}

impl SessionFiles {
    /// Returns the files of a session. All its calls share them.
    pub(crate) fn of(&self, session: &SessionId) -> KnownFiles {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.uses += 1;
        let now = table.uses;
        let (used, known) = table.sessions.entry(session.clone()).or_default();
        *used = now;
        let known = known.clone();
        if table.sessions.len() > MAX_SESSIONS {
            let oldest = table.sessions.iter().min_by_key(|(_, (used, _))| *used).map(|(id, _)| id.clone());
            oldest.map(|id| table.sessions.remove(&id));
        }
        known
    }
}
