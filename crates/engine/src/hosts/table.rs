//! The state of all proxies: what they share, the hosts that users rejected, and the number of open questions.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use codewright_proto::SessionId;
use codewright_proxy::{Deadlines, Shared};
use tokio_util::task::TaskTracker;

/// The number of sessions that are remembered. All are forgotten when it is exceeded, which leads to more questions.
const MAX_SESSIONS: usize = 256;
/// The number of rejected hosts of a session that are remembered.
const MAX_REJECTED: usize = 256;
/// The number of questions of a session that are open at a time.
const MAX_OPEN: usize = 8;

/// The state of all proxies of an engine.
pub(crate) struct Hosts {
    pub(super) shared: Shared,
    sessions: Arc<Mutex<HashMap<SessionId, Entry>>>,
}

#[derive(Debug, Default)]
struct Entry {
    rejected: HashSet<String>,
    open: usize,
}

impl Hosts {
    /// Returns an empty table. `tasks` waits for the connections.
    pub(crate) fn new(tasks: TaskTracker) -> Self {
        Self { shared: Shared::new(tasks, Deadlines::default()), sessions: Arc::default() }
    }

    /// Forgets the hosts that the user rejected, because a new prompt is a new decision.
    pub(crate) fn begin_turn(&self, session: &SessionId) {
        if let Some(entry) = self.lock().get_mut(session) {
            entry.rejected.clear();
        }
    }

    /// Notes that the user rejected a host.
    pub(super) fn reject(&self, session: &SessionId, host: &str) {
        let mut sessions = self.lock();
        if let Some(entry) = sessions.get_mut(session).filter(|entry| entry.rejected.len() < MAX_REJECTED) {
            entry.rejected.insert(host.to_owned());
        }
    }

    /// Reports whether the user rejected a host since the last prompt.
    pub(super) fn is_rejected(&self, session: &SessionId, host: &str) -> bool {
        self.lock().get(session).is_some_and(|entry| entry.rejected.contains(host))
    }

    /// Counts a question. Returns `None` if the session has too many.
    pub(super) fn open(&self, session: &SessionId) -> Option<Open> {
        let mut sessions = self.lock();
        if sessions.len() >= MAX_SESSIONS && !sessions.contains_key(session) {
            sessions.retain(|_, entry| entry.open > 0);
            if sessions.len() >= MAX_SESSIONS {
                return None;
            }
        }
        let entry = sessions.entry(session.clone()).or_default();
        if entry.open >= MAX_OPEN {
            return None;
        }
        entry.open += 1;
        Some(Open { sessions: Arc::clone(&self.sessions), session: session.clone() })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Entry>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open question, until it is dropped.
pub(super) struct Open {
    sessions: Arc<Mutex<HashMap<SessionId, Entry>>>,
    session: SessionId,
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = sessions.get_mut(&self.session) {
            entry.open -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_questions_are_limited_and_a_prompt_forgets_rejections() {
        let hosts = Hosts::new(TaskTracker::new());
        let [one, other] = ["ses_one", "ses_two"].map(|id| SessionId::parse(id).unwrap());
        let mut open: Vec<Open> = (0..MAX_OPEN).map_while(|_| hosts.open(&one)).collect();
        assert_eq!(open.len(), MAX_OPEN);
        assert!(hosts.open(&one).is_none() && hosts.open(&other).is_some());
        open.pop();
        assert!(hosts.open(&one).is_some());
        hosts.reject(&one, "a:1");
        assert!(hosts.is_rejected(&one, "a:1") && !hosts.is_rejected(&other, "a:1"));
        hosts.begin_turn(&one);
        assert!(!hosts.is_rejected(&one, "a:1"));
    }
}
