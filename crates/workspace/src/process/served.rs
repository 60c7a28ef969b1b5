//! A program that serves a protocol on its input and output, and what is known about its end.
//!
//! The exit code and the last lines of the error output are kept, so that the owner can explain why a connection ended.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connected::{Connected, Errors, Outlet, Peer, connect};
use super::{Command, usage};
use crate::Error;

/// The time in which a process ends by itself after its input was closed.
const END_PATIENCE: Duration = Duration::from_secs(1);
/// The time in which the end of a process is noticed after its connection ended. Longer than [`END_PATIENCE`], after
/// which the process is ended.
const EXIT_WAIT: Duration = Duration::from_secs(3);
/// The part of the error output that is kept.
const TAIL_BYTES: usize = 4096;
/// The supervisor's exit code for a missing program.
const NOT_FOUND: i32 = 127;
/// The beginning of the supervisor's message about a program that it cannot start.
const NOT_STARTED: &str = "cannot start `";

/// Receives lines for the log.
type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// A running server process.
#[derive(Clone, Debug)]
pub struct Served {
    id: Option<u32>,
    exit: watch::Receiver<Option<Option<i32>>>,
    tail: Arc<Mutex<Vec<u8>>>,
    closed: CancellationToken,
    /// Cancelled when the error output was read to its end.
    drained: CancellationToken,
}

/// What is known about the end of a server process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// There is no such program.
    Missing,
    /// The program is not executable.
    NotExecutable,
    /// It ended.
    Ended {
        /// The exit code.
        code: i32,
        /// The last line of the error output.
        last_line: Option<String>,
    },
    /// It still runs, or its exit code is not known.
    Unknown,
}

/// Starts a program that serves on its input and output. `log` gets each line of its error output, and a sentence for
/// each protected file that it could not create.
///
/// # Errors
///
/// Fails if the program cannot be started. See [`connect`].
pub fn serve(
    command: &Command,
    outlet: Outlet,
    tasks: &TaskTracker,
    log: impl Fn(&str) + Send + Sync + 'static,
) -> Result<(Served, Peer), Error> {
    let (program, socket, errors) = connect(command, outlet)?;
    let (exited, exit) = watch::channel(None);
    let served = Served {
        id: program.id(),
        exit,
        tail: Arc::default(),
        closed: CancellationToken::new(),
        drained: CancellationToken::new(),
    };
    let log: Log = Arc::new(log);
    tasks.spawn(keep(program, served.closed.clone(), exited, log.clone()));
    tasks.spawn(read_errors(errors, served.clone(), log));
    Ok((served, socket))
}

impl Served {
    /// The token that ends the process when it is cancelled. The owner cancels it when the connection has ended.
    #[must_use]
    pub fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// Ends the process and waits until it is gone, but not for long.
    pub async fn end(mut self) {
        self.closed.cancel();
        drop(timeout(END_PATIENCE * 4, self.gone()).await);
    }

    /// Returns the memory of the process and its descendants in bytes, if the system reports it. Reads many files.
    #[must_use]
    pub fn memory(&self) -> Option<u64> {
        usage::memory(self.id?)
    }

    /// Returns the memory of the program alone in bytes, without what it has started, if the system reports it.
    #[must_use]
    pub fn own_memory(&self) -> Option<u64> {
        usage::own_memory(self.id?)
    }

    /// Returns what is known about the end of the process, after a short wait.
    pub async fn outcome(&self) -> Outcome {
        let mut process = self.clone();
        let has_ended = timeout(EXIT_WAIT, process.gone()).await.is_ok();
        let code = if has_ended { *self.exit.borrow() } else { None };
        let Some(code) = code.flatten() else { return Outcome::Unknown };
        drop(timeout(EXIT_WAIT, self.drained.cancelled()).await);
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let tail = String::from_utf8_lossy(&tail);
        let last_line = tail.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
        let is_not_started = last_line.as_ref().is_some_and(|line| line.starts_with(NOT_STARTED));
        match code {
            NOT_FOUND if is_not_started => Outcome::Missing,
            _ if is_not_started => Outcome::NotExecutable,
            code => Outcome::Ended { code, last_line },
        }
    }

    /// Waits until the process has ended.
    async fn gone(&mut self) {
        // The sender is gone only after it sent.
        drop(self.exit.wait_for(Option::is_some).await);
    }
}

/// Ends a process when its connection is closed, and stores its exit code.
async fn keep(
    mut program: Connected,
    closed: CancellationToken,
    exited: watch::Sender<Option<Option<i32>>>,
    log: Log,
) {
    let ended = closed.run_until_cancelled(program.wait(&*log)).await;
    let code = match ended {
        Some(code) => Some(code),
        // A program that ends closes its output first, so the end of the connection can be noticed before the exit
        // code.
        None => program.end(END_PATIENCE, &*log).await,
    };
    exited.send_replace(Some(code));
}

/// Logs the error output and keeps its end.
async fn read_errors(mut errors: Errors, served: Served, log: Log) {
    let _drained = served.drained.clone().drop_guard();
    let mut chunk = vec![0; TAIL_BYTES];
    loop {
        let count = errors.read(&mut chunk).await;
        if count == 0 {
            return;
        }
        let new = &chunk[..count];
        for line in String::from_utf8_lossy(new).lines().filter(|line| !line.trim().is_empty()) {
            log(line);
        }
        let mut tail = served.tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(new);
        let surplus = tail.len().saturating_sub(TAIL_BYTES);
        tail.drain(..surplus);
    }
}
