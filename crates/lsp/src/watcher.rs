//! The changes of files in a directory, while a server has registered for them.
//!
//! All servers of a directory share one watched tree. It reports changes by tools, commands, the user and other programs.
//! Where the system cannot report changes, servers learn of the changes of tools, and of open documents that changed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codewright_workspace::{Tree, TreeChange, TreeChanges, TreeOptions};
use tokio::sync::broadcast;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The batches of changes that wait for a slow follower, which misses older ones.
const MAX_BATCHES: usize = 32;
/// The shortest time between two scans of the directory.
const REOPEN_INTERVAL: Duration = Duration::from_secs(5);

/// Changed paths, in their order.
pub(crate) type Changes = Arc<[(PathBuf, TreeChange)]>;

/// Watches a directory for its servers.
pub(crate) struct Watcher {
    /// The directory. `None` if watching is disabled.
    options: Option<TreeOptions>,
    tasks: TaskTracker,
    changes: Mutex<Option<broadcast::Sender<Changes>>>,
}

impl Watcher {
    pub(crate) fn new(options: Option<TreeOptions>, tasks: TaskTracker) -> Self {
        Self { options, tasks, changes: Mutex::default() }
    }

    /// Follows the changes. The directory is watched until the last follower is dropped.
    pub(crate) fn follow(&self) -> Option<broadcast::Receiver<Changes>> {
        let options = self.options.clone()?;
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let running = changes.as_ref().filter(|running| running.receiver_count() > 0);
        if let Some(running) = running {
            return Some(running.subscribe());
        }
        let (sender, receiver) = broadcast::channel(MAX_BATCHES);
        *changes = Some(sender.clone());
        self.tasks.spawn(async move {
            let cancel = CancellationToken::new();
            let _stop = cancel.clone().drop_guard();
            tokio::select! {
                () = sender.closed() => {}
                () = watch(options, &sender, &cancel) => {}
            }
        });
        Some(receiver)
    }
}

/// Sends the changes of a directory. Returns if the system cannot report them.
async fn watch(options: TreeOptions, sender: &broadcast::Sender<Changes>, cancel: &CancellationToken) {
    while let Some(mut tree) = Tree::open(options.clone(), cancel).await {
        while let TreeChanges::Some(changes) = tree.next(cancel).await {
            // It fails if the last follower is gone.
            drop(sender.send(changes.into()));
        }
        drop(tree);
        sleep(REOPEN_INTERVAL).await;
    }
}
