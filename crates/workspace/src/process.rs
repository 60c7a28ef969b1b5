//! Runs a program to its end.
//!
//! The program and everything that it starts are confined ([`Confinement`]). It has an empty stdin and one
//! pipe for both outputs, so that they arrive in order. Memory is bounded, a process that keeps the pipe open
//! does not block the caller, and no process survives the end of the program, a timeout, a cancellation, a
//! dropped future or, with a supervisor, the death of this process. A cancelled caller does not wait for a
//! program that ends slowly: it gets the [`Rest`] to end later.

mod confined;
mod connected;
mod held;
mod origin;
mod output;
mod served;
mod supervisor;
mod terminal;
mod usage;

use std::ffi::OsString;
use std::future::pending;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;

pub use confined::{Confined, Connections, RefusedHost, confine, probe_sandbox, sandbox_support};
pub use connected::{Connected, Errors, Outlet, Peer, connect};
pub use held::Confinement;
use held::{Ends, GRACE, Held, Input, REAP, Refusals};
pub use origin::{Author, Descent, has_commands, process_descent, socket_descent};
pub use output::Output;
pub use served::{Outcome, Served, serve};
pub use supervisor::{SUPERVISE, deny_tracing, supervise};
pub use terminal::{Screen, Seated, TerminalSize, open_terminal};

use codewright_sandbox::Launch;

use crate::Error;

/// The time for output that was written just before the program ended.
const DRAIN: Duration = supervisor::DRAIN;
/// The time after a cancellation before the caller continues without the program.
const CANCEL_WAIT: Duration = Duration::from_millis(40);
/// The shortest interval between two calls of the watcher.
const WATCH_EVERY: Duration = Duration::from_millis(100);
/// The number of starts if the machine changes while a sandbox is built.
const MAX_STARTS: usize = 3;
/// The beginning of bubblewrap's messages, and its exit code.
const BUILDER: &str = "bwrap: ";
/// See [`BUILDER`].
const BUILDER_FAILED: i32 = 1;
/// The size of one read.
const CHUNK_BYTES: usize = 64 * 1024;

/// A program to run.
#[derive(Debug, Clone)]
pub struct Command {
    /// The path or name of the program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its working directory.
    pub directory: PathBuf,
    /// Additional variables.
    pub env: Vec<(String, String)>,
    /// Inherited variables that are removed.
    pub env_remove: Vec<String>,
    /// How it and its child processes are kept together.
    pub confinement: Confinement,
    /// The access of the program and its child processes. `None` restricts nothing.
    pub sandbox: Option<Arc<Confined>>,
    /// The author of the command.
    pub author: Author,
}

/// The limits of a run.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The time limit.
    pub timeout: Duration,
    /// If the output has more lines or bytes, it is also written to `spill`.
    pub lines: usize,
    /// See `lines`.
    pub bytes: usize,
    /// The file for the whole output, if it is long.
    pub spill: PathBuf,
}

/// The reason why a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It exited with this code. A signal counts as 128 plus its number.
    Exited(i32),
    /// It exceeded its time limit.
    TimedOut,
    /// The caller cancelled it.
    Cancelled,
}

/// A program that has ended.
#[derive(Debug)]
pub struct Ended {
    /// The reason.
    pub end: End,
    /// Its output.
    pub output: Output,
    /// The processes that a cancellation has left to end.
    pub rest: Option<Rest>,
    /// The protected files that the program could not create or change in its sandbox.
    pub refused_names: Vec<PathBuf>,
    /// The hosts that the program could not reach, because they were not permitted.
    pub refused: Vec<RefusedHost>,
    /// The sandbox could not be built, because something it covers has disappeared meanwhile.
    never_started: bool,
}

/// A cancelled program that may still run. Dropping this kills it at once.
#[derive(Debug)]
pub struct Rest(Held);

impl Rest {
    /// Waits for the processes to end, then kills and reaps them.
    pub async fn end(self) {
        self.0.end().await;
    }
}

/// Runs a program. `watch` gets the output so far, about ten times a second.
pub async fn run(
    command: Command,
    limits: Limits,
    cancel: &CancellationToken,
    watch: &mut (dyn FnMut(&Output) + Send),
) -> Result<Ended, Error> {
    let Some(confined) = command.sandbox.clone() else {
        return run_to_end(command, None, limits, cancel, watch).await;
    };
    let mut started = begin(&command, &confined)?;
    let mut starts = 0;
    let mut ended = loop {
        starts += 1;
        let ended = run_to_end(command.clone(), started.take(), limits.clone(), cancel, watch).await?;
        if !ended.never_started || starts >= MAX_STARTS {
            break ended;
        }
    };
    ended.refused =
        confined.connections.as_ref().map(|connections| connections.refused()).unwrap_or_default();
    Ok(ended)
}

/// A program and its output.
type Started = (Held, Receiver);

/// Computes the restrictions while the helper that waits for them is started. Without such a helper nothing is started.
fn begin(command: &Command, confined: &Confined) -> Result<Option<Started>, Error> {
    let launch = confined.launch_early(&command.confinement)?;
    let Some((mut held, pipe)) = launch.map(|launch| start(command, Some(launch))).transpose()? else {
        return Ok(None);
    };
    let plan = confined.plan(&command.confinement, &command.directory)?;
    // A helper that gets nothing ends with its lifeline.
    let is_restricted = plan.is_some_and(|plan| held.restrict(&plan));
    Ok(is_restricted.then_some((held, pipe)))
}

/// Runs a program that is started once.
async fn run_to_end(
    command: Command,
    started: Option<Started>,
    limits: Limits,
    cancel: &CancellationToken,
    watch: &mut (dyn FnMut(&Output) + Send),
) -> Result<Ended, Error> {
    let (mut held, mut pipe) = match started {
        Some(started) => started,
        None => start(&command, None)?,
    };
    let mut refusals = held.refusals().filter(|_| command.sandbox.is_some());
    let mut output = Output::new(limits.lines, limits.bytes, limits.spill);
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut tick = interval(WATCH_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let deadline = Instant::now() + limits.timeout;
    let mut phase = Phase::Running;
    let (mut open, mut fresh) = (true, false);
    loop {
        tokio::select! {
            read = pipe.read(&mut chunk), if open => match read {
                Ok(count) if count > 0 => {
                    output.push(&chunk[..count]).await;
                    fresh = true;
                }
                // A broken pipe ends the output like a closed one.
                Ok(_) | Err(_) => open = false,
            },
            code = held.wait(), if phase.is_alive() => phase = phase.exited(code),
            () = cancel.cancelled(), if matches!(phase, Phase::Running) => {
                phase = stop(&mut held, End::Cancelled);
            }
            () = sleep_until(deadline), if matches!(phase, Phase::Running) => {
                phase = stop(&mut held, End::TimedOut);
            }
            () = phase.timer() => match phase {
                Phase::Stopping { end: end @ End::Cancelled, until } => {
                    phase = Phase::Draining { end, until };
                    open = false;
                }
                Phase::Stopping { end, .. } => {
                    held.kill();
                    phase = Phase::Killed { end, until: Instant::now() + REAP };
                }
                Phase::Killed { end, .. } | Phase::Draining { end, .. } => {
                    phase = Phase::Draining { end, until: Instant::now() };
                    open = false;
                }
                Phase::Running => {}
            },
            _ = tick.tick(), if fresh && phase.is_alive() => {
                watch(&output);
                fresh = false;
            }
        }
        if let (Phase::Draining { end, .. }, false) = (&phase, open) {
            let end = *end;
            output.close().await;
            let refused_names = refusals.as_mut().map(Refusals::rest).unwrap_or_default();
            if end == End::Cancelled {
                let rest = (!held.is_over()).then_some(Rest(held));
                return Ok(Ended {
                    end,
                    output,
                    rest,
                    refused_names,
                    refused: Vec::new(),
                    never_started: false,
                });
            }
            let never_started = end == End::Exited(BUILDER_FAILED)
                && output.text().starts_with(BUILDER)
                && held.may_have_missed();
            held.end_now().await;
            return Ok(Ended { end, output, rest: None, refused_names, refused: Vec::new(), never_started });
        }
    }
}

/// The phase of a run.
enum Phase {
    Running,
    /// It received a request to end.
    Stopping {
        end: End,
        until: Instant,
    },
    /// It was killed.
    Killed {
        end: End,
        until: Instant,
    },
    /// It has ended; the last output is read.
    Draining {
        end: End,
        until: Instant,
    },
}

impl Phase {
    fn is_alive(&self) -> bool {
        !matches!(self, Self::Draining { .. })
    }

    fn exited(self, code: i32) -> Self {
        let drained = Instant::now() + DRAIN;
        match self {
            Self::Running => Self::Draining { end: End::Exited(code), until: drained },
            Self::Stopping { end: end @ End::Cancelled, until } => Self::Draining { end, until },
            Self::Stopping { end, .. } | Self::Killed { end, .. } | Self::Draining { end, .. } => {
                Self::Draining { end, until: drained }
            }
        }
    }

    async fn timer(&self) {
        match self {
            Self::Running => pending().await,
            Self::Stopping { until, .. } | Self::Killed { until, .. } | Self::Draining { until, .. } => {
                sleep_until(*until).await;
            }
        }
    }
}

fn stop(held: &mut Held, end: End) -> Phase {
    held.ask_to_end();
    let patience = if end == End::Cancelled { CANCEL_WAIT } else { GRACE };
    Phase::Stopping { end, until: Instant::now() + patience }
}

/// Starts a program, see [`Held::start`].
fn start(command: &Command, launch: Option<Launch>) -> Result<Started, Error> {
    let failed = |source| Error::Start { program: command.program.clone(), source };
    let (reader, writer) = std::io::pipe().map_err(failed)?;
    let ends = Ends {
        input: Input::Empty,
        stdout: Stdio::from(writer.try_clone().map_err(failed)?),
        stderr: Stdio::from(writer),
    };
    // The write ends were moved, so the pipe closes when the program's own ends do.
    let held = Held::start(command, launch, ends)?;
    let pipe = Receiver::from_owned_fd(OwnedFd::from(reader)).map_err(failed)?;
    Ok((held, pipe))
}
