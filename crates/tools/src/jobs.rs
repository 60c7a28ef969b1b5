//! Background commands, which outlast the call that started them.
//!
//! Their number, time and stored output are limited. They end with their owner: the session, its directory or
//! the server. They are confined like any command.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codewright_workspace::{Command, End, Limits, run};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::ToolError;
use crate::tool::bash::sandbox::notes;
use crate::tool::bash::steps::Steps;

/// The limit of running commands for each session.
pub(crate) const MAX_OF_SESSION: usize = 8;
/// The limit of running commands for all sessions.
const MAX_OF_ALL: usize = 32;
/// The number of ended commands that a session remembers.
const MAX_ENDED: usize = 16;
/// The number of bytes that are stored of the end of an output.
const KEPT_BYTES: usize = 50 * 1024;

/// All background commands of a server.
#[derive(Debug, Clone, Default)]
pub struct Jobs(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    last: u64,
    is_closed: bool,
    owners: BTreeMap<String, Owner>,
}

#[derive(Debug, Default)]
struct Owner {
    directory: PathBuf,
    /// In the order of their start.
    jobs: VecDeque<Arc<Job>>,
}

/// The background commands of one session.
#[derive(Debug, Clone, Default)]
pub struct OwnJobs {
    all: Jobs,
    owner: String,
    directory: PathBuf,
}

/// One command.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) command: String,
    stop: CancellationToken,
    state: watch::Sender<State>,
}

/// The state of a command.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    /// Why and how it ended, if it has ended.
    pub(crate) end: Option<Ending>,
    /// The end of the output.
    pub(crate) text: String,
    /// The size of the whole output.
    pub(crate) bytes: u64,
    /// The file with the whole output, if that is long.
    pub(crate) file: Option<PathBuf>,
    /// Notes about what the sandbox prevented, once it has ended.
    pub(crate) notes: Vec<String>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    Exited(i32),
    TimedOut,
    Stopped,
    /// It could not be started.
    Failed(String),
}

impl Jobs {
    /// The commands of one session.
    pub fn of(&self, owner: &str, directory: &Path) -> OwnJobs {
        OwnJobs { all: self.clone(), owner: owner.to_owned(), directory: directory.to_owned() }
    }

    /// Reports whether a command of any session runs.
    #[must_use]
    pub fn are_running(&self) -> bool {
        self.lock().owners.values().any(|owner| owner.running() > 0)
    }

    /// Stops all commands of a session and forgets them.
    pub fn end(&self, owner: &str) {
        if let Some(owner) = self.lock().owners.remove(owner) {
            owner.stop();
        }
    }

    /// Stops all commands of a directory's sessions and forgets them.
    pub fn end_in(&self, directory: &Path) {
        self.lock().owners.retain(|_, owner| {
            let is_there = owner.directory == directory;
            if is_there {
                owner.stop();
            }
            !is_there
        });
    }

    /// Stops all commands and forgets them.
    pub fn end_all(&self) {
        std::mem::take(&mut self.lock().owners).values().for_each(Owner::stop);
    }

    /// Stops all commands. No command can be started after that.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.end_all();
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Every change under the lock is one insertion or removal, so a poisoned table is consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Owner {
    fn stop(&self) {
        self.jobs.iter().for_each(|job| job.stop.cancel());
    }

    fn running(&self) -> usize {
        self.jobs.iter().filter(|job| job.is_running()).count()
    }
}

impl OwnJobs {
    /// Starts a command. `tasks` waits for its end.
    pub(crate) fn begin(
        &self,
        line: &str,
        command: Command,
        limits: Limits,
        tasks: &TaskTracker,
    ) -> Result<Arc<Job>, ToolError> {
        let job = {
            let mut table = self.all.lock();
            let all: usize = table.owners.values().map(Owner::running).sum();
            let own = table.owners.get(&self.owner).map_or(0, Owner::running);
            if table.is_closed || own >= MAX_OF_SESSION || all >= MAX_OF_ALL {
                return Err(ToolError::Model(format!(
                    "Too many commands run in the background: at most {MAX_OF_SESSION} of one session, \
                     {MAX_OF_ALL} of all. Stop one first."
                )));
            }
            table.last += 1;
            let id = format!("job_{}", table.last);
            let stop = CancellationToken::new();
            let job = Job { id, command: line.to_owned(), stop, state: watch::Sender::default() };
            let job = Arc::new(job);
            let owner = table.owners.entry(self.owner.clone()).or_default();
            owner.directory.clone_from(&self.directory);
            owner.jobs.push_back(job.clone());
            while owner.jobs.len() - owner.running() > MAX_ENDED
                && let Some(oldest) = owner.jobs.iter().position(|job| !job.is_running())
            {
                owner.jobs.remove(oldest);
            }
            job
        };
        tasks.spawn(work(job.clone(), command, limits));
        Ok(job)
    }

    /// The commands of the session, in the order of their start.
    pub(crate) fn list(&self) -> Vec<Arc<Job>> {
        let table = self.all.lock();
        table.owners.get(&self.owner).map(|owner| owner.jobs.iter().cloned().collect()).unwrap_or_default()
    }

    /// The session's command with that id.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<Job>> {
        self.list().into_iter().find(|job| job.id == id)
    }
}

impl Job {
    /// The current state.
    pub(crate) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// Requests the end of the command.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits for the end of the command, but at most `limit`.
    pub(crate) async fn ended(&self, limit: Duration) {
        let mut state = self.state.subscribe();
        let ended = state.wait_for(|state| state.end.is_some());
        // The caller looks at the state after a timeout, too.
        drop(tokio::time::timeout(limit, ended).await);
    }

    fn is_running(&self) -> bool {
        self.state.borrow().end.is_none()
    }
}

/// Runs a command to its end.
async fn work(job: Arc<Job>, command: Command, limits: Limits) {
    let (confined, directory) = (command.sandbox.clone(), command.directory.clone());
    let steps = confined.as_deref().map(Steps::of).unwrap_or_default();
    let keep = |output: &codewright_workspace::Output, end: Option<Ending>, notes: Vec<String>| {
        let file = output.file().map(Path::to_owned);
        let text = output.tail(KEPT_BYTES);
        job.state.send_replace(State { end, text, bytes: output.bytes(), file, notes });
    };
    let ended = run(command, limits, &job.stop, &mut |output| keep(output, None, Vec::new())).await;
    match ended {
        Ok(mut ended) => {
            // The command has ended only when its child processes have, too.
            if let Some(rest) = ended.rest.take() {
                rest.end().await;
            }
            let end = match ended.end {
                End::Exited(code) => Ending::Exited(code),
                End::TimedOut => Ending::TimedOut,
                End::Cancelled => Ending::Stopped,
            };
            let found = confined.map(|confined| {
                let mut found = notes(&confined, &ended, &directory, &job.command);
                found.extend(steps.end(&confined));
                found
            });
            keep(&ended.output, Some(end), found.unwrap_or_default());
        }
        Err(error) => {
            let end = Some(Ending::Failed(error.to_string()));
            job.state.send_replace(State { end, ..State::default() });
        }
    }
}
