//! Watches the files of open directories and publishes their changes while a client follows events.
//!
//! OpenCode needs an environment variable for it. Without followers there are no watches. A program that ends with its turn
//! watches only if the variable is set, because a scan costs more than its events are worth.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use codewright_config::Env;
use codewright_config::env::{EXPERIMENTAL, EXPERIMENTAL_DISABLE_FILEWATCHER, EXPERIMENTAL_FILEWATCHER};
use codewright_proto::{FileChange, Signal};
use codewright_store::Store;
use codewright_workspace::{Limit, Tree, TreeChange, TreeChanges, TreeOptions};
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::{Instance, MAX_INSTANCES};
use crate::journal::{Journal, Level};

/// The number of directories that are watched at the same time.
const MAX_TREES: usize = 8;
/// The delay before the first scan of a directory, so that a client that only asks one question causes none.
const START_DELAY: Duration = Duration::from_millis(100);
/// The shortest time between two scans of a directory.
const REOPEN_INTERVAL: Duration = Duration::from_secs(5);
/// The number of remembered changes of tools.
const MAX_REPORTED: usize = 256;
/// How long a change of a tool is remembered.
const REPORTED_FOR: Duration = Duration::from_secs(2);

/// Reports whether file watching is disabled altogether.
pub(crate) fn is_disabled(env: &Env) -> bool {
    env.is_on(EXPERIMENTAL_DISABLE_FILEWATCHER)
}

/// Reports whether the user asked for file watching.
fn is_requested(env: &Env) -> bool {
    env.is_on(EXPERIMENTAL_FILEWATCHER) || env.is_on(EXPERIMENTAL)
}

/// Returns the watched files of a directory.
pub(crate) fn options(instance: &Instance) -> TreeOptions {
    let worktree = if instance.worktree.git { &instance.worktree.root } else { &instance.directory };
    TreeOptions {
        root: instance.directory.clone(),
        worktree: worktree.clone(),
        ignored: ignored(&instance.raw_config),
    }
}

/// The watched trees of open directories.
#[derive(Default)]
pub(crate) struct Watchers {
    state: Mutex<State>,
    /// The tasks of the trees. The end of the program does not wait for them.
    tasks: TaskTracker,
    /// The files that tools changed recently. Their changes are published already.
    reported: Mutex<VecDeque<(String, Instant)>>,
}

#[derive(Default)]
struct State {
    followers: usize,
    /// Followers cause no watches.
    is_off: bool,
    directories: HashMap<String, TreeOptions>,
    /// Present while at least one client follows events.
    output: Option<Output>,
    /// The running tasks, by directory.
    running: HashMap<String, DropGuard>,
    is_limit_logged: bool,
}

/// Where a task publishes changes and logs limits.
#[derive(Clone)]
struct Output {
    store: Store,
    journal: Arc<Journal>,
}

/// A follower of events, until this value is dropped.
pub(crate) struct Watching(Arc<Watchers>);

impl Drop for Watching {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.followers -= 1;
        if state.followers == 0 {
            state.output = None;
            state.running.clear();
        }
    }
}

impl Watchers {
    /// Watches a directory from now on, while a client follows events.
    pub(crate) fn open(self: &Arc<Self>, instance: &Instance, env: &Env) {
        if is_disabled(env) {
            return;
        }
        let directory = instance.path.directory.clone();
        let options = options(instance);
        let mut state = self.lock();
        if state.directories.len() >= MAX_INSTANCES && !state.directories.contains_key(&directory) {
            return;
        }
        state.directories.insert(directory.clone(), options);
        self.begin(&mut state, directory);
    }

    /// Watches files only if the user asked for it.
    pub(crate) fn only_on_request(&self, env: &Env) {
        if is_requested(env) {
            return;
        }
        let mut state = self.lock();
        state.is_off = true;
        state.running.clear();
    }

    /// Stops watching a directory.
    pub(crate) fn put_away(&self, directory: &str) {
        let mut state = self.lock();
        state.directories.remove(directory);
        state.running.remove(directory);
    }

    /// Stops watching all directories.
    pub(crate) fn put_all_away(&self) {
        let mut state = self.lock();
        state.directories.clear();
        state.running.clear();
    }

    /// Publishes changes in every open directory until the returned value is dropped.
    pub(crate) fn follow(self: &Arc<Self>, store: &Store, journal: &Arc<Journal>) -> Watching {
        let mut state = self.lock();
        state.followers += 1;
        if state.output.is_none() {
            state.output = Some(Output { store: store.clone(), journal: Arc::clone(journal) });
            let directories: Vec<_> = state.directories.keys().cloned().collect();
            for directory in directories {
                self.begin(&mut state, directory);
            }
        }
        Watching(Arc::clone(self))
    }

    /// Remembers that the change of a file was published.
    pub(crate) fn note(&self, file: &str) {
        if self.lock().running.is_empty() {
            return;
        }
        let mut reported = self.reported();
        if reported.len() >= MAX_REPORTED {
            reported.pop_front();
        }
        reported.push_back((file.to_owned(), Instant::now()));
    }

    /// Reports whether the change of a file was published a short time ago.
    fn is_reported(&self, file: &str) -> bool {
        let mut reported = self.reported();
        while reported.front().is_some_and(|(_, at)| at.elapsed() > REPORTED_FOR) {
            reported.pop_front();
        }
        reported.iter().any(|(known, _)| known == file)
    }

    /// Starts the task of a directory, if a client follows events.
    fn begin(self: &Arc<Self>, state: &mut State, directory: String) {
        let (Some(output), Some(options)) = (&state.output, state.directories.get(&directory)) else {
            return;
        };
        if state.is_off {
            return;
        }
        let (output, options) = (output.clone(), options.clone());
        if state.running.len() >= MAX_TREES && !state.running.contains_key(&directory) {
            if !std::mem::replace(&mut state.is_limit_logged, true) {
                let text = format!("the files of only {MAX_TREES} directories are watched");
                self.tasks.spawn(async move { output.warn(&text).await });
            }
            return;
        }
        let until = CancellationToken::new();
        let task = publish(Arc::clone(self), directory.clone(), options, output, until.clone());
        self.tasks.spawn(until.clone().run_until_cancelled_owned(task));
        state.running.insert(directory, until.drop_guard());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is complete or leaves a task that is not needed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reported(&self) -> MutexGuard<'_, VecDeque<(String, Instant)>> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Output {
    async fn warn(&self, text: &str) {
        self.journal.note(Level::Warn, "watcher", text, None).await;
    }
}

/// Publishes the changes of a tree until it is cancelled.
async fn publish(
    watchers: Arc<Watchers>,
    directory: String,
    options: TreeOptions,
    output: Output,
    cancel: CancellationToken,
) {
    tokio::time::sleep(START_DELAY).await;
    let mut is_limit_logged = false;
    while let Some(mut tree) = Tree::open(options.clone(), &cancel).await {
        loop {
            if let Some(limit) = tree.reached_limit().filter(|_| !is_limit_logged) {
                is_limit_logged = true;
                let what = match limit {
                    Limit::Directories => "too many directories to watch",
                    Limit::Changes => "too many changes at once",
                };
                output
                    .warn(&format!("{what} in `{directory}`: some changes of files are not reported"))
                    .await;
            }
            let TreeChanges::Some(changes) = tree.next(&cancel).await else { break };
            for (file, change) in changes {
                let file = text(&file);
                if !watchers.is_reported(&file) {
                    let (directory, event) = (directory.clone(), event(change));
                    output.store.signal(Signal::FileWatcherUpdated { directory, file, event });
                }
            }
        }
        drop(tree);
        tokio::time::sleep(REOPEN_INTERVAL).await;
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn event(change: TreeChange) -> FileChange {
    match change {
        TreeChange::Added => FileChange::Add,
        TreeChange::Changed => FileChange::Change,
        TreeChange::Removed => FileChange::Unlink,
    }
}

/// Returns the patterns of `watcher.ignore`.
fn ignored(config: &Value) -> Vec<String> {
    let patterns = config["watcher"]["ignore"].as_array().into_iter().flatten();
    patterns.filter_map(|pattern| pattern.as_str().map(str::to_owned)).collect()
}
