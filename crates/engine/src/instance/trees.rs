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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_keeps_its_tree_until_many_others_have_one() {
        let trees = Trees::default();
        let id = |n: usize| SessionId::parse(&format!("ses_{n:012}aaaaaaaaaaaaaa")).unwrap();
        for n in 0..=MAX_SESSIONS {
            trees.keep(&id(n), &Arc::from(n.to_string()));
        }
        assert_eq!(trees.get(&id(0)), None);
        assert_eq!(trees.get(&id(1)).as_deref(), Some("1"));
    }
}
