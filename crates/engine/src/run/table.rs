//! The table of the sessions that run in this process.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use codewright_proto::{SessionId, SessionStatus};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The runs of this process, by session.
#[derive(Default)]
pub(crate) struct Runs(Mutex<Table>);

struct Handle {
    cancel: CancellationToken,
    /// Distinguishes this run from a later one of the same session.
    generation: u64,
    /// Prompts admitted since the run began; it ends only when it has seen them all.
    admitted: u64,
    ended: watch::Receiver<bool>,
    status: SessionStatus,
}

#[derive(Default)]
struct Table {
    handles: HashMap<SessionId, Handle>,
    generations: u64,
}

/// An entry of the table, held by the task that runs the session.
pub(crate) struct Entry {
    pub(crate) id: SessionId,
    pub(crate) cancel: CancellationToken,
    generation: u64,
    ended: watch::Sender<bool>,
}

impl Entry {
    /// Ends the wait of every [`Turn`] of this run.
    pub(crate) fn end(&self) {
        codewright_memory::work_ended();
        // No caller may be waiting any more.
        self.ended.send_replace(true);
    }
}

/// The end of a turn, for a caller that waits for it.
pub(crate) struct Turn(watch::Receiver<bool>);

impl Turn {
    /// Waits until the run that answers the prompt has ended.
    pub(crate) async fn ended(mut self) {
        // An error means that the run is gone, which is an end as well.
        drop(self.0.wait_for(|ended| *ended).await);
    }
}

/// The response to a run that wants to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    /// The run has ended.
    Ended,
    /// The run has ended, and a prompt that came while it was being stopped needs another one.
    EndedWithPrompt,
    /// A prompt was admitted that the run has not seen, so the run continues.
    GoesOn,
}

impl Table {
    fn insert(&mut self, id: &SessionId, admitted: u64, cancel: CancellationToken) -> (Entry, Turn) {
        self.generations += 1;
        let generation = self.generations;
        let (sender, ended) = watch::channel(false);
        let turn = Turn(ended.clone());
        let status = SessionStatus::Busy;
        let handle = Handle { cancel: cancel.clone(), generation, admitted, ended, status };
        self.handles.insert(id.clone(), handle);
        (Entry { id: id.clone(), cancel, generation, ended: sender }, turn)
    }
}

impl Runs {
    /// Counts an admitted prompt. Returns a new entry if the session was idle.
    pub(crate) fn admit(&self, id: &SessionId, cancel: &CancellationToken) -> (Turn, Option<Entry>) {
        let mut table = self.lock();
        if let Some(handle) = table.handles.get_mut(id) {
            handle.admitted += 1;
            return (Turn(handle.ended.clone()), None);
        }
        let (entry, turn) = table.insert(id, 1, cancel.child_token());
        (turn, Some(entry))
    }

    /// Registers work without a prompt; `None` if the session is running.
    pub(crate) fn occupy(&self, id: &SessionId, cancel: &CancellationToken) -> Option<Entry> {
        let mut table = self.lock();
        if table.handles.contains_key(id) {
            return None;
        }
        Some(table.insert(id, 0, cancel.child_token()).0)
    }

    /// Removes a run unless a prompt was admitted after `seen`; `before` is called just before.
    pub(crate) fn release(&self, entry: &Entry, seen: u64, before: impl FnOnce()) -> Release {
        let mut table = self.lock();
        let Some(handle) = table.handles.get(&entry.id) else { return Release::Ended };
        if handle.generation != entry.generation {
            return Release::Ended;
        }
        let is_late = handle.admitted > seen;
        if is_late && !entry.cancel.is_cancelled() {
            return Release::GoesOn;
        }
        before();
        table.handles.remove(&entry.id);
        if is_late { Release::EndedWithPrompt } else { Release::Ended }
    }

    /// Removes a run that did not release itself.
    pub(crate) fn forget(&self, entry: &Entry) {
        let mut table = self.lock();
        if table.handles.get(&entry.id).is_some_and(|handle| handle.generation == entry.generation) {
            table.handles.remove(&entry.id);
        }
    }

    /// Cancels a session's run, if there is one.
    pub(crate) fn cancel(&self, id: &SessionId) -> Option<Turn> {
        self.lock().handles.get(id).map(|handle| {
            handle.cancel.cancel();
            Turn(handle.ended.clone())
        })
    }

    /// Cancels all runs.
    pub(crate) fn cancel_all(&self) -> Vec<Turn> {
        let table = self.lock();
        let cancel = |handle: &Handle| {
            handle.cancel.cancel();
            Turn(handle.ended.clone())
        };
        table.handles.values().map(cancel).collect()
    }

    /// Returns the number of runs.
    pub(crate) fn count(&self) -> usize {
        self.lock().handles.len()
    }

    /// Reports whether a session is running.
    pub(crate) fn is_running(&self, id: &SessionId) -> bool {
        self.lock().handles.contains_key(id)
    }

    /// Returns the status of the running sessions.
    pub(crate) fn statuses(&self) -> Vec<(SessionId, SessionStatus)> {
        self.lock().handles.iter().map(|(id, handle)| (id.clone(), handle.status.clone())).collect()
    }

    pub(crate) fn set_status(&self, id: &SessionId, status: &SessionStatus) {
        if let Some(handle) = self.lock().handles.get_mut(id) {
            handle.status = status.clone();
        }
    }

    /// Returns the number of prompts admitted to a session's run.
    pub(crate) fn admitted(&self, id: &SessionId) -> u64 {
        self.lock().handles.get(id).map_or(0, |handle| handle.admitted)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Each change under the lock is one assignment or insertion, so a poisoned table is consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
