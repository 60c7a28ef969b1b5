//! Watches a directory with its subdirectories.
//!
//! Changes are collected for a short time and merged, so a file that is written often is reported once. Links are not
//! followed. The number of watches, of read entries and of collected changes is limited; a limit is reported once, and
//! then the changes beyond it are missing.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::rules::{Filter, Rules, budget, is_rules_file};
use super::{Change, Changed, Folder, Watch};

/// The number of watched directories.
const MAX_WATCHES: usize = 8192;
/// The number of entries that one scan reads to find directories.
const MAX_ENTRIES: usize = 200_000;
/// The number of collected changes.
const MAX_PENDING: usize = 4096;
/// The number of changes that are returned at once.
const MAX_BATCH: usize = 256;
/// The time for which changes are collected.
const COLLECT: Duration = Duration::from_millis(100);

/// The merged change of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeChange {
    /// It was created or moved here.
    Added,
    /// It was written.
    Changed,
    /// It was removed or moved away.
    Removed,
}

/// A limit of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The tree has too many directories or entries, or the system allows no more watches.
    Directories,
    /// There were too many changes at once.
    Changes,
}

/// The next changes of a tree.
#[derive(Debug, PartialEq, Eq)]
pub enum TreeChanges {
    /// Changed paths, in their order.
    Some(Vec<(PathBuf, TreeChange)>),
    /// The rules changed or changes were lost, so that the tree must be opened again.
    Stale,
}

/// The directory of a tree and its exclusions.
#[derive(Debug, Clone)]
pub struct TreeOptions {
    /// The directory.
    pub root: PathBuf,
    /// The worktree, whose ignore files apply.
    pub worktree: PathBuf,
    /// Additional exclusions with the syntax of `.gitignore`.
    pub ignored: Vec<String>,
}

/// A watched directory with its subdirectories.
pub struct Tree {
    watch: Arc<Watch>,
    state: Arc<Mutex<State>>,
}

struct State {
    filter: Filter,
    directories: HashMap<Folder, Directory>,
    folders: BTreeMap<PathBuf, Folder>,
    rules_budget: usize,
    pending: Pending,
    /// Whether the rules changed or changes were lost.
    is_stale: bool,
    limit: Option<Limit>,
    /// Whether the limit was reported.
    is_limit_reported: bool,
}

struct Directory {
    path: PathBuf,
    rules: Arc<Rules>,
}

impl Tree {
    /// Watches a tree. Returns `None` if the system cannot report changes.
    pub async fn open(options: TreeOptions, cancel: &CancellationToken) -> Option<Self> {
        let watch = Arc::new(Watch::new());
        if !watch.is_supported() {
            return None;
        }
        let TreeOptions { root, worktree, ignored } = options;
        let cancel = cancel.clone();
        let scan = {
            let watch = Arc::clone(&watch);
            move || {
                let mut rules_budget = budget();
                let rules = Rules::of_root(&root, &worktree, &mut rules_budget);
                let mut state = State::new(Filter::new(&root, &ignored), rules_budget);
                state.scan(&watch, Start { path: root, rules, is_new: false }, &cancel);
                state
            }
        };
        let state = tokio::task::spawn_blocking(scan).await.ok()?;
        Some(Self { watch, state: Arc::new(Mutex::new(state)) })
    }

    /// Waits for changes.
    pub async fn next(&mut self, cancel: &CancellationToken) -> TreeChanges {
        loop {
            let (is_empty, is_stale) = {
                let state = self.lock();
                (state.pending.is_empty(), state.is_stale)
            };
            match (is_empty, is_stale) {
                (true, true) => return TreeChanges::Stale,
                (true, false) => self.take(self.watch.next().await, cancel).await,
                (false, _) => {}
            }
            let until = Instant::now() + COLLECT;
            while let Ok(changes) = timeout_at(until, self.watch.next()).await {
                self.take(changes, cancel).await;
            }
            let batch = self.lock().pending.drain();
            if !batch.is_empty() {
                return TreeChanges::Some(batch);
            }
        }
    }

    /// Returns the limit that was reached, once.
    pub fn reached_limit(&mut self) -> Option<Limit> {
        let mut state = self.lock();
        let limit = state.limit.filter(|_| !state.is_limit_reported);
        state.is_limit_reported |= limit.is_some();
        limit
    }

    /// Collects changes. Without them the tree is stale.
    async fn take(&self, changes: Option<Vec<Changed>>, cancel: &CancellationToken) {
        let starts: Vec<_> = {
            let mut state = self.lock();
            let Some(changes) = changes else {
                state.is_stale = true;
                return;
            };
            state.is_stale |= changes.iter().any(|it| is_rules_file(&it.name));
            changes.iter().filter_map(|it| state.note(&self.watch, it)).collect()
        };
        if starts.is_empty() {
            return;
        }
        let (watch, state, cancel) = (Arc::clone(&self.watch), Arc::clone(&self.state), cancel.clone());
        let scan = move || {
            let mut state = lock(&state);
            starts.into_iter().for_each(|start| state.scan(&watch, start, &cancel));
        };
        // A scan that fails leaves directories without a watch.
        drop(tokio::task::spawn_blocking(scan).await);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // After a panic in the middle of a change, some directories are not watched.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A directory where a scan begins.
struct Start {
    path: PathBuf,
    rules: Arc<Rules>,
    /// Whether its entries are reported, because they were created before it was watched.
    is_new: bool,
}

impl State {
    fn new(filter: Filter, rules_budget: usize) -> Self {
        Self {
            filter,
            directories: HashMap::new(),
            folders: BTreeMap::new(),
            rules_budget,
            pending: Pending::default(),
            is_stale: false,
            limit: None,
            is_limit_reported: false,
        }
    }

    /// Watches a directory and those below it. A directory is watched before its entries are read, so that none is
    /// missed in between.
    fn scan(&mut self, watch: &Watch, start: Start, cancel: &CancellationToken) {
        let Start { path, rules, is_new } = start;
        let (mut next, mut read) = (vec![(path, rules)], 0);
        while let Some((path, rules)) = next.pop() {
            if cancel.is_cancelled() {
                return;
            }
            if self.directories.len() >= MAX_WATCHES || read >= MAX_ENTRIES {
                self.limit.get_or_insert(Limit::Directories);
                return;
            }
            let Some(folder) = watch.add_below(&path) else {
                // Directories that vanished or cannot be read are left out.
                if path.symlink_metadata().is_ok_and(|found| found.is_dir())
                    && std::fs::read_dir(&path).is_ok()
                {
                    self.limit.get_or_insert(Limit::Directories);
                }
                continue;
            };
            let Ok(entries) = std::fs::read_dir(&path) else { continue };
            for entry in entries.flatten() {
                read += 1;
                if read >= MAX_ENTRIES {
                    self.limit.get_or_insert(Limit::Directories);
                    break;
                }
                let (found, is_directory) = (entry.path(), entry.file_type().is_ok_and(|kind| kind.is_dir()));
                if (!is_directory && !is_new) || self.is_excluded(&rules, &found, is_directory) {
                    continue;
                }
                if is_new {
                    self.collect(found.clone(), TreeChange::Added);
                }
                if is_directory {
                    let rules = Rules::below(&rules, &found, &mut self.rules_budget);
                    next.push((found, rules));
                }
            }
            self.folders.insert(path.clone(), folder);
            self.directories.insert(folder, Directory { path, rules });
        }
    }

    /// Collects a change. Returns the directory that it created.
    fn note(&mut self, watch: &Watch, changed: &Changed) -> Option<Start> {
        let Directory { path, rules } = self.directories.get(&changed.folder)?;
        let (path, rules) = (path.join(&changed.name), Arc::clone(rules));
        if self.is_excluded(&rules, &path, changed.is_directory) {
            return None;
        }
        let change = match changed.change {
            Change::Made | Change::Placed => TreeChange::Added,
            Change::Written => TreeChange::Changed,
            Change::Gone => TreeChange::Removed,
        };
        self.collect(path.clone(), change);
        match (changed.is_directory, change) {
            (true, TreeChange::Added) => {
                let rules = Rules::below(&rules, &path, &mut self.rules_budget);
                Some(Start { path, rules, is_new: true })
            }
            (true, TreeChange::Removed) => {
                self.forget(watch, &path);
                None
            }
            _ => None,
        }
    }

    /// Ends the watches of a directory that is not here any more.
    fn forget(&mut self, watch: &Watch, path: &Path) {
        let below: Vec<PathBuf> = self
            .folders
            .range(path.to_owned()..)
            .take_while(|(below, _)| below.starts_with(path))
            .map(|(below, _)| below.clone())
            .collect();
        for path in below {
            if let Some(folder) = self.folders.remove(&path) {
                self.directories.remove(&folder);
                watch.remove(folder);
            }
        }
    }

    fn is_excluded(&self, rules: &Rules, path: &Path, is_directory: bool) -> bool {
        self.filter.excludes(path, is_directory) || rules.ignore(path, is_directory)
    }

    fn collect(&mut self, path: PathBuf, change: TreeChange) {
        if !self.pending.push(path, change) {
            self.limit.get_or_insert(Limit::Changes);
        }
    }
}

/// Changes that are not returned yet, in their order.
#[derive(Default)]
struct Pending {
    numbers: HashMap<PathBuf, u64>,
    changes: BTreeMap<u64, (PathBuf, TreeChange)>,
    next: u64,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Adds or merges a change. Returns false if there are too many.
    fn push(&mut self, path: PathBuf, change: TreeChange) -> bool {
        if let Some(number) = self.numbers.get(&path).copied() {
            match self.changes.get_mut(&number) {
                Some((_, old)) => match merged(*old, change) {
                    Some(both) => *old = both,
                    None => {
                        self.changes.remove(&number);
                        self.numbers.remove(&path);
                    }
                },
                None => drop(self.numbers.remove(&path)),
            }
            return true;
        }
        if self.changes.len() >= MAX_PENDING {
            return false;
        }
        self.next += 1;
        self.numbers.insert(path.clone(), self.next);
        self.changes.insert(self.next, (path, change));
        true
    }

    fn drain(&mut self) -> Vec<(PathBuf, TreeChange)> {
        let mut batch = Vec::new();
        while batch.len() < MAX_BATCH
            && let Some((_, (path, change))) = self.changes.pop_first()
        {
            self.numbers.remove(&path);
            batch.push((path, change));
        }
        batch
    }
}

/// Returns the change that two changes of a path amount to, or `None` if the path is as before.
fn merged(old: TreeChange, new: TreeChange) -> Option<TreeChange> {
    match (old, new) {
        (TreeChange::Added, TreeChange::Removed) => None,
        (TreeChange::Added, _) => Some(TreeChange::Added),
        (TreeChange::Removed, TreeChange::Added) => Some(TreeChange::Changed),
        (_, new @ TreeChange::Removed) => Some(new),
        (TreeChange::Changed | TreeChange::Removed, _) => Some(TreeChange::Changed),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;

    use super::*;

    async fn open(root: &Path, ignored: &[&str]) -> Tree {
        let ignored = ignored.iter().map(|one| (*one).to_owned()).collect();
        let options = TreeOptions { root: root.to_owned(), worktree: root.to_owned(), ignored };
        Tree::open(options, &CancellationToken::new()).await.expect("the system can watch")
    }

    /// Returns the changes up to that of `last`, as relative paths with a sign.
    async fn until(tree: &mut Tree, root: &Path, last: &str) -> Vec<String> {
        let mut all = Vec::new();
        let found = async {
            while !all.iter().any(|one| one == last) {
                let TreeChanges::Some(batch) = tree.next(&CancellationToken::new()).await else {
                    panic!("the tree is stale: {all:?}")
                };
                all.extend(batch.into_iter().map(|(path, change)| {
                    let sign = match change {
                        TreeChange::Added => '+',
                        TreeChange::Changed => '~',
                        TreeChange::Removed => '-',
                    };
                    format!("{sign}{}", path.strip_prefix(root).expect("it is below").display())
                }));
            }
        };
        tokio::time::timeout(Duration::from_secs(20), found).await.expect("the change is reported");
        all
    }

    #[tokio::test]
    async fn changes_in_the_whole_tree_are_merged_and_reported() {
        let root = tempfile::tempdir().unwrap();
        let (root, at) = (root.path(), |name: &str| root.path().join(name));
        fs::create_dir_all(at("src/deep")).unwrap();
        fs::write(at("src/deep/old"), "1").unwrap();
        let mut tree = open(root, &[]).await;
        fs::write(at("src/deep/old"), "2").unwrap();
        fs::write(at("src/deep/old"), "3").unwrap();
        fs::write(at("new"), "1").unwrap();
        fs::write(at("gone"), "1").unwrap();
        fs::remove_file(at("gone")).unwrap();
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/b/c"), "1").unwrap();
        let seen = until(&mut tree, root, "+a/b/c").await;
        assert_eq!(seen, ["~src/deep/old", "+new", "+a", "+a/b", "+a/b/c"]);
        fs::rename(at("a"), at("moved")).unwrap();
        assert_eq!(until(&mut tree, root, "+moved/b/c").await, ["-a", "+moved", "+moved/b", "+moved/b/c"]);
        fs::write(at("moved/b/c"), "2").unwrap();
        assert_eq!(until(&mut tree, root, "~moved/b/c").await, ["~moved/b/c"]);
        fs::remove_dir_all(at("moved")).unwrap();
        assert!(until(&mut tree, root, "-moved").await.contains(&"-moved/b/c".to_owned()));
    }

    #[tokio::test]
    async fn excluded_files_and_linked_directories_are_not_reported() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (root, at) = (root.path(), |name: &str| root.path().join(name));
        for name in [".git", "node_modules/x", "build", "dist"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at(".gitignore"), "build\n*.log\n").unwrap();
        std::os::unix::fs::symlink(outside.path(), at("link")).unwrap();
        let mut tree = open(root, &["dist/**"]).await;
        for name in [".git/index", "node_modules/x/y", "build/out", "dist/a", "a.log", "link/secret"] {
            fs::write(at(name), "1").unwrap();
        }
        fs::write(at("last"), "1").unwrap();
        assert_eq!(until(&mut tree, root, "+last").await, ["+last"]);
        fs::write(at(".gitignore"), "").unwrap();
        assert_eq!(until(&mut tree, root, "~.gitignore").await, ["~.gitignore"]);
        assert_eq!(tree.next(&CancellationToken::new()).await, TreeChanges::Stale);
    }

    #[tokio::test]
    async fn too_many_changes_and_directories_reach_a_limit_once() {
        let root = tempfile::tempdir().unwrap();
        let mut tree = open(root.path(), &[]).await;
        assert_eq!(tree.reached_limit(), None);
        for at in 0..MAX_WATCHES + 10 {
            fs::create_dir(root.path().join(format!("d{at}"))).unwrap();
        }
        let cancel = CancellationToken::new();
        let reached = async {
            loop {
                let TreeChanges::Some(batch) = tree.next(&cancel).await else { panic!("changes were lost") };
                assert!(batch.len() <= MAX_BATCH);
                if let Some(limit) = tree.reached_limit() {
                    return limit;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), reached).await.expect("a limit is reached");
        assert_eq!(tree.reached_limit(), None);
        assert!(tree.lock().directories.len() <= MAX_WATCHES);
        drop(tree);
        let mut tree = open(root.path(), &[]).await;
        assert_eq!(tree.reached_limit(), Some(Limit::Directories));
    }

    #[test]
    fn two_changes_of_a_path_become_one() {
        use TreeChange::{Added, Changed, Removed};
        for (old, new, expected) in [
            (Added, Changed, Some(Added)),
            (Added, Removed, None),
            (Changed, Changed, Some(Changed)),
            (Changed, Removed, Some(Removed)),
            (Removed, Added, Some(Changed)),
        ] {
            assert_eq!(merged(old, new), expected, "{old:?} {new:?}");
        }
    }
}
