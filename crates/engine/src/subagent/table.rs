//! The table of subagents that run in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codewright_proto::SessionId;
use tokio_util::sync::CancellationToken;

use crate::permission::rules::PermissionRules;

/// The number of subagents that run at once. Further calls fail.
const MAX_AT_WORK: usize = 64;

#[derive(Default)]
pub(crate) struct Subagents(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    at_work: HashMap<u64, AtWork>,
    next: u64,
}

struct AtWork {
    child: SessionId,
    parent: SessionId,
    rules: PermissionRules,
    /// Whether no call waits for the result.
    is_background: bool,
    silenced: CancellationToken,
}

impl Subagents {
    /// Registers a subagent until the result is dropped. Returns `None` if too many run.
    pub(crate) fn begin(
        &self,
        parent: &SessionId,
        child: &SessionId,
        rules: &PermissionRules,
        is_background: bool,
    ) -> Option<Noted> {
        let mut table = self.lock();
        if table.at_work.len() >= MAX_AT_WORK {
            return None;
        }
        table.next += 1;
        let number = table.next;
        let (child, parent, rules) = (child.clone(), parent.clone(), rules.clone());
        let silenced = CancellationToken::new();
        let at_work = AtWork { child, parent, rules, is_background, silenced: silenced.clone() };
        table.at_work.insert(number, at_work);
        Some(Noted { table: self.0.clone(), number, silenced })
    }

    /// Returns the permission rules of the calls that a session works for, if there are any.
    pub(crate) fn above(&self, child: &SessionId) -> Option<Vec<PermissionRules>> {
        let table = self.lock();
        let rules = table.at_work.values().filter(|at_work| at_work.child == *child);
        let rules: Vec<_> = rules.map(|at_work| at_work.rules.clone()).collect();
        (!rules.is_empty()).then_some(rules)
    }

    /// Discards the reports of a session's background subagents, and returns their sessions.
    pub(crate) fn silence(&self, parent: &SessionId) -> Vec<SessionId> {
        let table = self.lock();
        let of_parent =
            table.at_work.values().filter(|at_work| at_work.is_background && at_work.parent == *parent);
        let silenced = of_parent.map(|at_work| {
            at_work.silenced.cancel();
            at_work.child.clone()
        });
        silenced.collect()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Each change under the lock is one insertion or removal, so a poisoned table is consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A registered subagent.
pub(crate) struct Noted {
    table: Arc<Mutex<Table>>,
    number: u64,
    /// Cancelled when the report is not needed any more.
    pub(crate) silenced: CancellationToken,
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).at_work.remove(&self.number);
    }
}
