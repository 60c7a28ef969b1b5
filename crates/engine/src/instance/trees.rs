//! The file trees that sessions have received.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use codewright_proto::SessionId;

/// The number of sessions whose trees are kept.
const MAX_SESSIONS: usize = 64;

/// The trees that sessions have received, newest last.
///
/// A session keeps its first tree, because a changed one would make providers forget the whole conversation.
#[derive(Default)]
pub(super) struct Trees(Mutex<VecDeque<(SessionId, Arc<str>)>>);

impl Trees {
    pub(super) fn get(&self, session: &SessionId) -> Option<Arc<str>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(id, _)| id == session).map(|(_, tree)| Arc::clone(tree))
    }

    pub(super) fn keep(&self, session: &SessionId, tree: &Arc<str>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_SESSIONS {
            kept.pop_front();
        }
        kept.push_back((session.clone(), Arc::clone(tree)));
    }
}
