//! One program, run to its end.
//!
//! The program gets its own process group, an empty stdin and one pipe for both
//! outputs, so that they arrive in the order they were written. Memory is
//! bounded whatever it prints, a background process that keeps the pipe open
//! does not hold the caller, and nothing of the group outlives a timeout, a
//! cancellation or a dropped future. A cancelled caller is not kept waiting by a
//! stubborn program either: it is given the [`Rest`] to see to. What a program left
//! running on purpose after a normal end is not touched.
//!
//! How the program is confined would be one more field of [`Command`].

mod output;

use std::ffi::OsString;
use std::future::pending;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Child;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_util::sync::CancellationToken;

pub use output::Output;

use crate::Error;

/// Time for output that was written just before the program ended.
const DRAIN: Duration = Duration::from_millis(250);
/// Time for a cancelled program to end before its caller goes on without it.
const LEAVE: Duration = Duration::from_millis(40);
/// How often it is looked whether a group that was asked to end has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Time between the polite and the final signal.
const GRACE: Duration = Duration::from_secs(2);
/// Time to collect a program that was killed; one stuck in the kernel is left.
const REAP: Duration = Duration::from_secs(2);
/// Shortest time between two calls of the watcher.
const WATCH_EVERY: Duration = Duration::from_millis(100);
/// Bytes read at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// What to run.
#[derive(Debug, Clone)]
pub struct Command {
    /// The program, by path or by name.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Where it starts.
    pub directory: PathBuf,
    /// Variables beyond the inherited ones.
    pub env: Vec<(String, String)>,
    /// Inherited variables it must not see.
    pub env_remove: Vec<String>,
}

/// How far it may go.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The program is ended after this time.
    pub timeout: Duration,
    /// Output of more lines or bytes than these is also written to `spill`.
    pub lines: usize,
    /// See `lines`.
    pub bytes: usize,
    /// The file that takes the whole output when it is long.
    pub spill: PathBuf,
}

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code; a signal counts as 128 and its number.
    Exited(i32),
    /// Its time was up.
    TimedOut,
    /// The caller gave up.
    Cancelled,
}

/// A program that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Why.
    pub end: End,
    /// What it printed until then.
    pub output: Output,
    /// What a cancellation left to be ended.
    pub rest: Option<Rest>,
}

/// A cancelled program that was asked to end and may not have done so. Dropping it kills its group at once.
#[derive(Debug)]
pub struct Rest {
    child: Child,
    group: Group,
}

impl Rest {
    /// Gives the group its time to end, ends it, and collects the program.
    pub async fn end(mut self) {
        let until = Instant::now() + GRACE;
        // Collected meanwhile, or it would count as one of the group for ever.
        while self.group.has_members() && Instant::now() < until {
            // Only that it was collected counts; a program that cannot be waited for is gone.
            drop(tokio::time::timeout(LOOK_EVERY, self.child.wait()).await);
            sleep_until(until.min(Instant::now() + LOOK_EVERY)).await;
        }
        if self.group.has_members() {
            self.group.signal(Signal::SIGKILL);
            // One that is stuck in the kernel is left.
            drop(tokio::time::timeout(REAP, self.child.wait()).await);
        }
        self.group.id = None;
    }
}

/// Runs a program; `watch` sees the output so far, about ten times a second.
pub async fn run(
    command: Command,
    limits: Limits,
    cancel: &CancellationToken,
    watch: &mut (dyn FnMut(&Output) + Send),
) -> Result<Ended, Error> {
    let (mut child, mut pipe, mut group) = start(&command)?;
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
            status = child.wait(), if phase.is_alive() => phase = phase.exited(status.ok()),
            () = cancel.cancelled(), if matches!(phase, Phase::Running) => {
                phase = group.stop(End::Cancelled);
            }
            () = sleep_until(deadline), if matches!(phase, Phase::Running) => {
                phase = group.stop(End::TimedOut);
            }
            () = phase.timer() => match phase {
                Phase::Stopping { end: end @ End::Cancelled, until } => {
                    phase = Phase::Draining { end, until };
                    open = false;
                }
                Phase::Stopping { end, .. } => {
                    group.signal(Signal::SIGKILL);
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
            group.leave(end);
            output.close().await;
            let rest = (end == End::Cancelled && group.has_members()).then_some(Rest { child, group });
            return Ok(Ended { end, output, rest });
        }
    }
}

/// Where a run stands.
enum Phase {
    Running,
    /// Asked to end.
    Stopping {
        end: End,
        until: Instant,
    },
    /// Made to end.
    Killed {
        end: End,
        until: Instant,
    },
    /// Ended; the last output is collected.
    Draining {
        end: End,
        until: Instant,
    },
}

impl Phase {
    fn is_alive(&self) -> bool {
        !matches!(self, Self::Draining { .. })
    }

    fn exited(self, status: Option<ExitStatus>) -> Self {
        let drained = Instant::now() + DRAIN;
        match self {
            Self::Running => Self::Draining { end: End::Exited(status.map_or(1, code)), until: drained },
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

fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}

fn start(command: &Command) -> Result<(Child, Receiver, Group), Error> {
    let failed = |source| Error::Start { program: command.program.clone(), source };
    let (reader, writer) = std::io::pipe().map_err(failed)?;
    let mut builder = tokio::process::Command::new(&command.program);
    builder
        .args(&command.args)
        .current_dir(&command.directory)
        .stdin(Stdio::null())
        .stdout(Stdio::from(writer.try_clone().map_err(failed)?))
        .stderr(Stdio::from(writer))
        .process_group(0)
        .kill_on_drop(true);
    for name in &command.env_remove {
        builder.env_remove(name);
    }
    builder.envs(command.env.iter().map(|(name, value)| (name, value)));
    let child = builder.spawn().map_err(failed)?;
    // The builder holds the write ends; the pipe closes only when they are gone.
    drop(builder);
    let group = Group { id: child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw) };
    let pipe = Receiver::from_owned_fd(OwnedFd::from(reader)).map_err(failed)?;
    Ok((child, pipe, group))
}

/// The process group of a program; killed when dropped, unless left alone.
#[derive(Debug)]
struct Group {
    id: Option<Pid>,
}

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(id) = self.id {
            // The group may have ended by itself, which is what was wanted.
            let _ = killpg(id, signal);
        }
    }

    fn stop(&self, end: End) -> Phase {
        self.signal(Signal::SIGTERM);
        let patience = if end == End::Cancelled { LEAVE } else { GRACE };
        Phase::Stopping { end, until: Instant::now() + patience }
    }

    /// Whether anything of the group is there, if only a program that nobody has collected.
    fn has_members(&self) -> bool {
        self.id.is_some_and(|id| killpg(id, None).is_ok())
    }

    /// Lets background processes of a program that ended by itself go on.
    fn leave(&mut self, end: End) {
        if let End::Exited(_) = end {
            self.id = None;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}
