//! Watches the HEAD of open repositories and publishes changes while a client follows events.
//!
//! Git replaces the HEAD file, so its folder is watched. If the system does not report what changed in the folder, HEAD
//! is read again. Without followers there are no watches.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codewright_proto::{FileChange, Signal};
use codewright_store::Store;
use codewright_workspace::git::{git_dirs, read_small};
use codewright_workspace::{Change, Changed, Folder, Watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::Instance;

const HEAD: &str = "HEAD";
/// The largest HEAD file that is read.
const MAX_BYTES: u64 = 4096;
/// The number of directories whose repositories are watched, equal to the number of open directories.
const MAX_DIRECTORIES: usize = 64;

/// The repositories of open directories.
#[derive(Default)]
pub(crate) struct Heads {
    state: Mutex<State>,
    /// The tasks of the watches. The end of the program does not wait for them.
    tasks: TaskTracker,
}

#[derive(Default)]
struct State {
    followers: usize,
    /// The worktree root of each directory.
    directories: HashMap<String, PathBuf>,
    /// Present while at least one client follows events.
    watching: Option<Watching>,
}

struct Watching {
    watch: Arc<Watch>,
    /// Keyed by the folder that contains HEAD.
    repositories: HashMap<PathBuf, Repository>,
    _until: DropGuard,
}

struct Repository {
    folder: Option<Folder>,
    /// The branch that was last read or published; `None` before the first read.
    known: Option<Option<String>>,
    /// The directories whose followers are notified.
    directories: BTreeSet<String>,
}

/// A follower of events, until this value is dropped.
pub(crate) struct Following(Arc<Heads>);

impl Drop for Following {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.followers -= 1;
        if state.followers == 0 {
            state.watching = None;
        }
    }
}

impl Heads {
    /// Watches the repository of a directory from now on, while a client follows events.
    pub(crate) async fn open(&self, instance: &Instance) {
        if !instance.worktree.git {
            return;
        }
        let (directory, root) = (instance.path.directory.clone(), instance.worktree.root.clone());
        {
            let mut state = self.lock();
            if state.directories.len() >= MAX_DIRECTORIES && !state.directories.contains_key(&directory) {
                return;
            }
            state.directories.insert(directory.clone(), root.clone());
            if state.watching.is_none() {
                return;
            }
        }
        self.begin(directory, &root).await;
    }

    /// Stops watching for a directory.
    pub(crate) fn put_away(&self, directory: &str) {
        let mut state = self.lock();
        state.directories.remove(directory);
        let Some(Watching { watch, repositories, .. }) = &mut state.watching else { return };
        repositories.retain(|_, repository| {
            repository.directories.remove(directory);
            let is_wanted = !repository.directories.is_empty();
            if let (false, Some(folder)) = (is_wanted, repository.folder) {
                watch.remove(folder);
            }
            is_wanted
        });
    }

    /// Stops watching for all open directories.
    pub(crate) fn put_all_away(&self) {
        let directories: Vec<_> = self.lock().directories.keys().cloned().collect();
        for directory in directories {
            self.put_away(&directory);
        }
    }

    /// Reports whether a client follows events.
    pub(crate) fn has_followers(&self) -> bool {
        self.lock().followers > 0
    }

    /// Publishes changes in every open directory until the returned value is dropped.
    pub(crate) async fn follow(self: &Arc<Self>, store: &Store) -> Following {
        let (following, begun) = {
            let mut state = self.lock();
            state.followers += 1;
            let following = Following(Arc::clone(self));
            if state.watching.is_some() {
                return following;
            }
            let (watch, until) = (Arc::new(Watch::new()), CancellationToken::new());
            let telling = tell(Arc::clone(self), Arc::clone(&watch), store.clone());
            self.tasks.spawn(until.clone().run_until_cancelled_owned(telling));
            let (repositories, _until) = (HashMap::new(), until.drop_guard());
            state.watching = Some(Watching { watch, repositories, _until });
            (following, state.directories.clone())
        };
        for (directory, root) in begun {
            self.begin(directory, &root).await;
        }
        following
    }

    async fn begin(&self, directory: String, root: &Path) {
        let Some(folder) = repository(root).await else { return };
        {
            let mut state = self.lock();
            let State { directories, watching, .. } = &mut *state;
            // The directory may have been closed in the meantime, or the last follower may have gone.
            let (Some(watching), true) = (watching, directories.contains_key(&directory)) else { return };
            let Watching { watch, repositories, .. } = watching;
            let repository = repositories.entry(folder.clone()).or_insert_with(|| Repository {
                folder: watch.add(&folder),
                known: None,
                directories: BTreeSet::new(),
            });
            repository.directories.insert(directory);
        }
        let branch = branch(&folder).await;
        if let Some(watching) = &mut self.lock().watching
            && let Some(repository) = watching.repositories.get_mut(&folder)
        {
            repository.known.get_or_insert(branch);
        }
    }

    /// Returns the folders whose HEAD changed, with the changes. Returns all folders if the changes are unknown.
    fn changed(&self, changed: Option<&[Changed]>) -> Vec<(PathBuf, Vec<Change>)> {
        let state = self.lock();
        let watching = state.watching.iter().flat_map(|watching| &watching.repositories);
        let Some(changed) = changed else {
            return watching.map(|(folder, _)| (folder.clone(), Vec::new())).collect();
        };
        let of = |repository: &Repository| {
            let here = changed.iter().filter(|changed| repository.folder == Some(changed.folder));
            let mut changes: Vec<_> = here.filter(|it| it.name == HEAD).map(|it| it.change).collect();
            changes.dedup();
            changes
        };
        let watching = watching.map(|(folder, repository)| (folder.clone(), of(repository)));
        watching.filter(|(_, changes)| !changes.is_empty()).collect()
    }

    /// Records a branch. Returns the directories to notify and whether the branch changed.
    fn note(&self, folder: &Path, branch: Option<&Option<String>>) -> (BTreeSet<String>, bool) {
        let mut state = self.lock();
        let repository = state.watching.as_mut().and_then(|it| it.repositories.get_mut(folder));
        let Some(repository) = repository else { return (BTreeSet::new(), false) };
        let is_other = branch.is_some_and(|branch| repository.known.as_ref() != Some(branch));
        if let Some(branch) = branch {
            repository.known = Some(branch.clone());
        }
        (repository.directories.clone(), is_other)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A half-finished change leaves only an unused watch.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Publishes the changes of watched HEADs until it is cancelled.
async fn tell(heads: Arc<Heads>, watch: Arc<Watch>, store: Store) {
    loop {
        let changed = watch.next().await;
        for (folder, mut changes) in heads.changed(changed.as_deref()) {
            let is_told = !changes.is_empty();
            let is_whole =
                !is_told || changes.iter().any(|it| matches!(it, Change::Placed | Change::Written));
            // The branch comes from the content of HEAD; a removed or created file does not change it.
            let branch = if is_whole { Some(branch(&folder).await) } else { None };
            let (directories, is_other) = heads.note(&folder, branch.as_ref());
            if is_other && !is_told {
                changes.push(Change::Written);
            }
            let file = folder.join(HEAD).to_string_lossy().into_owned();
            for directory in directories {
                for event in changes.iter().copied().map(event) {
                    let (directory, file) = (directory.clone(), file.clone());
                    store.signal(Signal::FileWatcherUpdated { directory, file, event });
                }
                if let (true, Some(branch)) = (is_other, &branch) {
                    store.signal(Signal::VcsBranchUpdated { directory, branch: branch.clone() });
                }
            }
        }
    }
}

fn event(change: Change) -> FileChange {
    match change {
        Change::Made | Change::Placed => FileChange::Add,
        Change::Written => FileChange::Change,
        Change::Gone => FileChange::Unlink,
    }
}

/// Returns the folder that contains the HEAD of a repository.
async fn repository(root: &Path) -> Option<PathBuf> {
    let root = root.to_owned();
    tokio::task::spawn_blocking(move || git_dirs(&root)).await.ok()?.map(|dirs| dirs.own)
}

/// Returns the branch that HEAD names; `None` if it names a commit or cannot be parsed.
async fn branch(folder: &Path) -> Option<String> {
    let head = folder.join(HEAD);
    // In old repositories HEAD is a link.
    let text = match tokio::fs::read_link(&head).await {
        Ok(target) => target.to_str()?.to_owned(),
        Err(_) => short(head).await?.strip_prefix("ref:")?.trim().to_owned(),
    };
    let name = text.strip_prefix("refs/heads/")?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// Returns the text of a short regular file. Other kinds of files are not read.
async fn short(path: PathBuf) -> Option<String> {
    let read = tokio::task::spawn_blocking(move || read_small(&path, MAX_BYTES));
    String::from_utf8(read.await.ok()??).ok()
}
