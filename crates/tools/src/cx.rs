//! The context of a call: everything that a tool may use.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use codewright_workspace::{Confined, Confinement, Documents, Held, Likeness, Opening, Workspace};
use serde_json::{Map, Value};
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::web::NoWeb;
use crate::{
    Bounds, Effects, Host, KnownFiles, LoadedInstructions, NoHost, OwnJobs, PermissionRequests, ReadRules,
    SearchEngine, Skill, ToolError, Web,
};

/// The size of the table at which entries of unlocked files are removed.
const LOCKS_BEFORE_SWEEP: usize = 256;

/// Everything that a tool may use during one call.
#[derive(Clone)]
pub struct ToolCx {
    /// The directory that relative paths start from, without links.
    pub directory: PathBuf,
    /// The worktree around the directory without links, or `/` if there is none.
    pub worktree: PathBuf,
    /// The places that this call was judged by.
    pub judged: Judged,
    /// How files are opened.
    pub opening: Opening,
    /// The documents of the user's editor, through which files are read and written.
    pub documents: Option<Arc<dyn Documents>>,
    /// The home directory, which `~` stands for in commands.
    pub home: Option<PathBuf>,
    /// The limits for an output.
    pub bounds: Bounds,
    /// The directory for outputs that are too long to be returned whole.
    pub output_dir: PathBuf,
    /// Returns the name of the next file in `output_dir`.
    pub new_output_id: Arc<dyn Fn() -> String + Send + Sync>,
    /// Cancelled when the call must end.
    pub cancel: CancellationToken,
    /// Tasks that clean up after a cancelled call. Their owner waits for them.
    pub background: TaskTracker,
    /// Receives the files that a call changes.
    pub effects: Effects,
    /// Receives the progress of a running call.
    pub progress: Progress,
    /// Requests permissions that become known only while a call runs.
    pub permission_requests: PermissionRequests,
    /// Decides which files a search may read.
    pub read_rules: ReadRules,
    /// Access to the network.
    pub web: Arc<dyn Web>,
    /// The skills that this call may load.
    pub skills: Arc<[Skill]>,
    /// The session's todo list.
    pub todos: Arc<[Value]>,
    /// The search engine for the web.
    pub engine: SearchEngine,
    /// The session's background commands.
    pub jobs: OwnJobs,
    /// The versions of files that the session has seen.
    pub known: KnownFiles,
    /// The instruction files that the model has received.
    pub instructions: LoadedInstructions,
    /// The variables of child processes.
    pub env: Environment,
    /// The locks of all calls of the server.
    pub locks: FileLocks,
    /// The shell that runs commands, with `-c`.
    pub shell: PathBuf,
    /// Does the things that need a user or a session.
    pub host: Arc<dyn Host>,
    /// How a command and its child processes are kept together.
    pub confinement: Confinement,
    /// The access of a command. `None` restricts nothing.
    pub sandbox: Option<Arc<Confined>>,
    /// Whether the model can start a subagent. Only advice depends on it.
    pub can_delegate: bool,
}

impl ToolCx {
    /// A context outside a session: no questions, no network, and only this directory.
    pub fn alone(directory: &Path, output_dir: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            worktree: directory.to_owned(),
            judged: Judged::default(),
            opening: Opening::default(),
            documents: None,
            home: None,
            bounds: Bounds::default(),
            output_dir: output_dir.to_owned(),
            new_output_id: Arc::new(|| "tool_output".to_owned()),
            cancel: CancellationToken::new(),
            background: TaskTracker::new(),
            effects: Effects::none(),
            progress: Progress::none(),
            permission_requests: PermissionRequests::none(),
            read_rules: ReadRules::open(),
            web: Arc::new(NoWeb),
            skills: Arc::default(),
            todos: Arc::default(),
            engine: SearchEngine::default(),
            jobs: OwnJobs::default(),
            known: KnownFiles::default(),
            instructions: LoadedInstructions::default(),
            env: Environment::default(),
            locks: FileLocks::default(),
            shell: PathBuf::from("/bin/sh"),
            host: Arc::new(NoHost),
            confinement: Confinement::Group,
            sandbox: None,
            can_delegate: false,
        }
    }

    /// The workspace.
    pub(crate) fn workspace(&self) -> Workspace {
        Workspace::fixed(&self.directory, &self.worktree).opening(self.opening)
    }

    /// Resolves a path that the call names, and remembers the result for its run.
    pub(crate) fn judge(&self, path: &str) -> Result<Held, ToolError> {
        self.judge_spelled(path, Likeness::Canonical)
    }

    /// Does the same for a path that should exist: it may mean the one file with an alike name.
    pub(crate) fn judge_existing(&self, path: &str) -> Result<Held, ToolError> {
        self.judge_spelled(path, Likeness::Compatible)
    }

    fn judge_spelled(&self, path: &str, likeness: Likeness) -> Result<Held, ToolError> {
        let held = self.hold(path, likeness)?;
        self.judged.keep(path, held.clone());
        Ok(held)
    }

    /// Returns the place that was judged for a path. A call without a judgement resolves the path now.
    pub(crate) fn judged(&self, path: &str) -> Result<Held, ToolError> {
        let judged = self.judged.lock();
        match judged.get(path) {
            Some(held) => Ok(held.clone()),
            None if judged.is_empty() => self.hold(path, Likeness::Compatible),
            // The call means something else than it did when it was checked.
            None => {
                Err(ToolError::Model(format!("`{path}` has just been changed by somebody else; try again")))
            }
        }
    }

    fn hold(&self, path: &str, likeness: Likeness) -> Result<Held, ToolError> {
        let path = self.below_home(path);
        Ok(self.workspace().hold_spelled(&path, likeness)?.with_documents(self.documents.clone()))
    }

    /// A path with the home directory in place of `~`, unless the directory has a file of this name.
    fn below_home(&self, path: &str) -> PathBuf {
        let home = || {
            let below = Path::new(path).strip_prefix("~").ok()?;
            let is_name = self.directory.join("~").symlink_metadata().is_ok();
            self.home.as_deref().filter(|_| !is_name).map(|home| home.join(below))
        };
        home().unwrap_or_else(|| PathBuf::from(path))
    }

    /// A new file for a long output.
    pub(crate) fn new_output_path(&self) -> PathBuf {
        self.output_dir.join((self.new_output_id)())
    }

    /// Runs a function that reads from the disk. Returns at once if the call is cancelled.
    pub(crate) async fn reading<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        self.cancel.run_until_cancelled(settled(work)).await.unwrap_or(Err(ToolError::Cancelled(None)))
    }
}

/// Runs a function that changes the disk, to its end even if the call is cancelled.
pub(crate) async fn settled<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(ToolError::Broken(format!("a file operation failed: {error}"))))
}

/// The places that a call was judged by. It runs on these, so that a link which is exchanged after the check leads
/// nowhere. Clones share them; each call has its own.
#[derive(Debug, Clone, Default)]
pub struct Judged(Arc<Mutex<HashMap<String, Held>>>);

impl Judged {
    /// Adds a place that was judged elsewhere.
    pub fn keep(&self, path: &str, held: Held) {
        self.lock().insert(path.to_owned(), held);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The differences between a child's environment and the server's.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Variables that every child gets.
    pub set: Vec<(String, String)>,
    /// Variables that no child gets, because they are secrets.
    pub remove: Vec<String>,
}

/// Receives the progress of a running call: metadata, and sometimes a title.
#[derive(Clone)]
pub struct Progress(Arc<Sink>);

type Sink = dyn Fn(Map<String, Value>, Option<String>) + Send + Sync;

impl Progress {
    /// Calls `sink` for each report. It must not block.
    pub fn new(sink: impl Fn(Map<String, Value>, Option<String>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }

    /// Discards all reports.
    pub fn none() -> Self {
        Self::new(|_, _| {})
    }

    /// Reports metadata.
    pub fn report(&self, metadata: Map<String, Value>) {
        (self.0)(metadata, None);
    }

    /// Reports metadata and a line about the current work.
    pub fn report_titled(&self, metadata: Map<String, Value>, title: &str) {
        (self.0)(metadata, Some(title.to_owned()));
    }
}

/// A lock for each file, so that changes of a file happen one after another.
#[derive(Clone, Default)]
pub struct FileLocks(Arc<Mutex<Table>>);

type Table = HashMap<PathBuf, Weak<tokio::sync::Mutex<()>>>;

impl FileLocks {
    /// Waits for the lock of a file. `path` must have its links followed.
    ///
    /// # Errors
    ///
    /// Fails if the call is cancelled.
    pub async fn lock(&self, path: &Path, cancel: &CancellationToken) -> Result<FileLock, ToolError> {
        let lock = self.entry(path);
        let held = cancel.run_until_cancelled(lock.lock_owned()).await;
        held.map(FileLock).ok_or(ToolError::Cancelled(None))
    }

    fn entry(&self, path: &Path) -> Arc<tokio::sync::Mutex<()>> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = table.get(path).and_then(Weak::upgrade) {
            return lock;
        }
        if table.len() >= LOCKS_BEFORE_SWEEP {
            table.retain(|_, lock| lock.strong_count() > 0);
        }
        let lock = Arc::default();
        table.insert(path.to_owned(), Arc::downgrade(&lock));
        lock
    }
}

/// The lock of a file, until it is dropped.
pub struct FileLock(#[expect(dead_code, reason = "held for its drop")] OwnedMutexGuard<()>);
