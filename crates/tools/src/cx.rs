//! What a call may reach.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use codewright_workspace::{Confinement, Workspace};
use serde_json::{Map, Value};
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::web::NoWeb;
use crate::{
    Bounds, Effects, Host, KnownFiles, Leave, Nobody, OwnJobs, ReadRules, SearchEngine, Skill,
    ToldInstructions, ToolError, Web,
};

/// Entries of free files are removed when the table has grown to this.
const LOCKS_BEFORE_SWEEP: usize = 256;

/// Everything a call is given.
#[derive(Clone)]
pub struct ToolCx {
    /// Where relative paths start.
    pub directory: PathBuf,
    /// The worktree around the directory; `/` when there is none.
    pub worktree: PathBuf,
    /// The home directory, which `~` stands for in commands.
    pub home: Option<PathBuf>,
    /// How much of an output is shown.
    pub bounds: Bounds,
    /// Where long outputs are kept whole.
    pub output_dir: PathBuf,
    /// Gives the name of the next such file.
    pub new_output_id: Arc<dyn Fn() -> String + Send + Sync>,
    /// Cancelled when the call is to end.
    pub cancel: CancellationToken,
    /// Ends what a cancelled call leaves behind; whoever owns it waits for that.
    pub background: TaskTracker,
    /// Takes what a call does to files.
    pub effects: Effects,
    /// Takes what a running call shows.
    pub progress: Progress,
    /// Takes asks that show only while a call runs.
    pub leave: Leave,
    /// Decides which files a search may look into.
    pub read_rules: ReadRules,
    /// The way to servers.
    pub web: Arc<dyn Web>,
    /// The skills that this call may load.
    pub skills: Arc<[Skill]>,
    /// The session's list of things to do.
    pub todos: Arc<[Value]>,
    /// Where searches of the web go.
    pub engine: SearchEngine,
    /// The session's commands in the background.
    pub jobs: OwnJobs,
    /// What the session knows of files.
    pub known: KnownFiles,
    /// The instruction files that the model has been told.
    pub told: ToldInstructions,
    /// The variables of child processes.
    pub env: Environment,
    /// The locks of all calls of the server.
    pub locks: FileLocks,
    /// The shell that runs commands, with `-c`.
    pub shell: PathBuf,
    /// Answers what a tool cannot do alone.
    pub host: Arc<dyn Host>,
    /// What holds a command together with all that it starts.
    pub confinement: Confinement,
    /// Whether the model may hand work to a subagent; only advice depends on it.
    pub can_delegate: bool,
}

impl ToolCx {
    /// A call that nobody watches, in a directory of its own: nothing is asked, and there is no network.
    pub fn alone(directory: &Path, output_dir: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            worktree: directory.to_owned(),
            home: None,
            bounds: Bounds::default(),
            output_dir: output_dir.to_owned(),
            new_output_id: Arc::new(|| "tool_output".to_owned()),
            cancel: CancellationToken::new(),
            background: TaskTracker::new(),
            effects: Effects::none(),
            progress: Progress::none(),
            leave: Leave::none(),
            read_rules: ReadRules::open(),
            web: Arc::new(NoWeb),
            skills: Arc::default(),
            todos: Arc::default(),
            engine: SearchEngine::default(),
            jobs: OwnJobs::default(),
            known: KnownFiles::default(),
            told: ToldInstructions::default(),
            env: Environment::default(),
            locks: FileLocks::default(),
            shell: PathBuf::from("/bin/sh"),
            host: Arc::new(Nobody),
            confinement: Confinement::Group,
            can_delegate: false,
        }
    }

    /// The directory with its links followed.
    pub(crate) fn workspace(&self) -> Result<Workspace, ToolError> {
        Ok(Workspace::new(&self.directory, &self.worktree)?)
    }

    /// A new file for a long output.
    pub(crate) fn new_output_path(&self) -> PathBuf {
        self.output_dir.join((self.new_output_id)())
    }

    /// Runs something that reads from the disk.
    pub(crate) async fn reading<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        self.cancel.run_until_cancelled(settled(work)).await.unwrap_or(Err(ToolError::Cancelled(None)))
    }
}

/// Runs something that changes the disk, to its end even when the call is cancelled.
pub(crate) async fn settled<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(ToolError::Broken(format!("a file operation failed: {error}"))))
}

/// How children's variables differ from the server's own.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Set for every child.
    pub set: Vec<(String, String)>,
    /// Kept from every child: secrets.
    pub remove: Vec<String>,
}

/// Takes what a running call shows: its metadata and, if it has one, its title.
#[derive(Clone)]
pub struct Progress(Arc<Sink>);

type Sink = dyn Fn(Map<String, Value>, Option<String>) + Send + Sync;

impl Progress {
    /// Calls `sink` for each report; it must not block.
    pub fn new(sink: impl Fn(Map<String, Value>, Option<String>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }

    /// Shows nobody anything.
    pub fn none() -> Self {
        Self::new(|_, _| {})
    }

    pub(crate) fn report(&self, metadata: Map<String, Value>) {
        (self.0)(metadata, None);
    }

    /// The same with a line that says what the call does.
    pub fn report_titled(&self, metadata: Map<String, Value>, title: &str) {
        (self.0)(metadata, Some(title.to_owned()));
    }
}

/// One lock for each file, so that changes to a file come one after the other.
#[derive(Clone, Default)]
pub struct FileLocks(Arc<Mutex<Table>>);

type Table = HashMap<PathBuf, Weak<tokio::sync::Mutex<()>>>;

impl FileLocks {
    /// Waits until nobody else holds the file; `path` has its links followed.
    pub(crate) async fn lock(&self, path: &Path, cancel: &CancellationToken) -> Result<Held, ToolError> {
        let lock = self.entry(path);
        let held = cancel.run_until_cancelled(lock.lock_owned()).await;
        held.map(Held).ok_or(ToolError::Cancelled(None))
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

/// The right to change a file, until dropped.
pub(crate) struct Held(#[expect(dead_code, reason = "held for its drop")] OwnedMutexGuard<()>);
