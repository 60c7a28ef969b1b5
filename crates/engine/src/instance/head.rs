//! What the HEAD of open repositories points at, told while somebody follows events.
//!
//! Git puts a new HEAD in the place of the old one, so it is the folder that is watched. Where the
//! system does not say what happens in it, HEAD is looked at. While nobody follows, nothing is there.

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
/// The most that is read of HEAD.
const MAX_BYTES: u64 = 4096;
/// Directories whose repositories are watched; as many as are held open.
const MAX_DIRECTORIES: usize = 64;

/// The repositories of open directories.
#[derive(Default)]
pub(crate) struct Heads {
    state: Mutex<State>,
    /// Nobody waits for what works here.
    tasks: TaskTracker,
}

#[derive(Default)]
struct State {
    followers: usize,
    /// The top of each directory's repository.
    directories: HashMap<String, PathBuf>,
    /// Only while somebody follows.
    watching: Option<Watching>,
}

struct Watching {
    watch: Arc<Watch>,
    /// By the folder that HEAD is in.
    repositories: HashMap<PathBuf, Repository>,
    _until: DropGuard,
}

struct Repository {
    folder: Option<Folder>,
    /// What was last seen, or told; none before the first look.
    known: Option<Option<String>>,
    /// Those who are told.
    directories: BTreeSet<String>,
}

/// Somebody who follows events, until this is dropped.
pub struct Following(Arc<Heads>);

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
    /// Watches the repository of a directory from now on, while somebody follows.
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

    /// Watches for a directory no longer.
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

    /// Watches for none of the open directories any longer.
    pub(crate) fn put_all_away(&self) {
        let directories: Vec<_> = self.lock().directories.keys().cloned().collect();
        for directory in directories {
            self.put_away(&directory);
        }
    }

    /// Whether a client reads events.
    pub(crate) fn has_followers(&self) -> bool {
        self.lock().followers > 0
    }

    /// Tells of every open directory until the returned value is dropped.
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
            // It may have been put away, or everybody have gone.
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

    /// The folders whose HEAD changed, and how; all of them to be looked at if it is not known what changed.
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

    /// Takes note of a branch; those who are to be told, and whether it is another one.
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
        // Whatever is left half done is only a watch that nobody needs.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells what happens to watched HEADs, for as long as it is waited for.
async fn tell(heads: Arc<Heads>, watch: Arc<Watch>, store: Store) {
    loop {
        let changed = watch.next().await;
        for (folder, mut changes) in heads.changed(changed.as_deref()) {
            let is_told = !changes.is_empty();
            let is_whole =
                !is_told || changes.iter().any(|it| matches!(it, Change::Placed | Change::Written));
            // A branch is told by what HEAD says, and not by its being gone or just made.
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

/// The folder in which a repository has its HEAD.
async fn repository(root: &Path) -> Option<PathBuf> {
    let root = root.to_owned();
    tokio::task::spawn_blocking(move || git_dirs(&root)).await.ok()?.map(|dirs| dirs.own)
}

/// The branch that HEAD names; none if it names a commit, or nothing that one understands.
async fn branch(folder: &Path) -> Option<String> {
    let head = folder.join(HEAD);
    // Old repositories have a link.
    let text = match tokio::fs::read_link(&head).await {
        Ok(target) => target.to_str()?.to_owned(),
        Err(_) => short(head).await?.strip_prefix("ref:")?.trim().to_owned(),
    };
    let name = text.strip_prefix("refs/heads/")?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// The text of a short file; whatever else bears its name is not read.
async fn short(path: PathBuf) -> Option<String> {
    let read = tokio::task::spawn_blocking(move || read_small(&path, MAX_BYTES));
    String::from_utf8(read.await.ok()??).ok()
}
