//! A running program, confined together with everything that it starts.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rustix::net::Shutdown;
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::time::{Instant, sleep_until, timeout};

use codewright_sandbox::Launch;

use super::{Command, origin, supervisor};
use crate::Error;

/// The time between TERM and KILL.
pub(super) const GRACE: Duration = Duration::from_millis(500);
/// The time to reap a killed program. One that is stuck in the kernel is abandoned.
pub(super) const REAP: Duration = Duration::from_secs(2);
/// The size of one read of refused names.
const MAX_REPORT_BYTES: usize = 4096;
/// The interval at which the end of a group is checked.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The means to keep a program and its child processes together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Confinement {
    /// A process group. Processes that leave the group are lost.
    #[default]
    Group,
    /// A supervisor, which is the program at this path, see [`crate::supervise`]. No process can leave it by
    /// forking.
    Supervisor(PathBuf),
}

impl Confinement {
    /// The strongest confinement on this system, if the running program handles [`crate::SUPERVISE`].
    #[must_use]
    pub fn own() -> Self {
        // Not the path by name, because the file may be replaced while the program runs.
        if cfg!(target_os = "linux") { Self::Supervisor("/proc/self/exe".into()) } else { Self::Group }
    }
}

/// A started program. Its processes are killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    child: Child,
    hold: Hold,
    is_over: bool,
    /// See [`Launch::covered`].
    covered: Vec<PathBuf>,
}

#[derive(Debug)]
enum Hold {
    Group(Option<Pid>),
    /// The other end of the lifeline is the input of the supervisor, which reports refused names on it.
    Supervisor {
        lifeline: Arc<UnixStream>,
        mark: String,
    },
}

/// The input and output of a program.
pub(crate) struct Ends<'a> {
    pub(crate) input: Input<'a>,
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
}

/// The input of a program.
pub(crate) enum Input<'a> {
    /// It is empty.
    Empty,
    /// The terminal with this path.
    Terminal(&'a Path),
    /// The socket that is the program's output too.
    Connection(OwnedFd),
    /// A socket. The program's output goes to its error output.
    Duplex(OwnedFd),
}

impl Input<'_> {
    /// The argument of a supervisor that describes the input.
    fn argument(&self) -> &OsStr {
        match self {
            Self::Empty => supervisor::NO_TERMINAL.as_ref(),
            Self::Terminal(path) => path.as_os_str(),
            Self::Connection(_) => supervisor::CONNECTION.as_ref(),
            Self::Duplex(_) => supervisor::CONNECTED_INPUT.as_ref(),
        }
    }
}

impl Held {
    /// Starts a command. `launch` is the start of its sandbox, if it is not the one with all restrictions.
    pub(crate) fn start(command: &Command, launch: Option<Launch>, ends: Ends<'_>) -> Result<Self, Error> {
        let failed = |source| Error::Start { program: command.program.clone(), source };
        let supervisor = match &command.confinement {
            Confinement::Group => None,
            Confinement::Supervisor(path) => Some((path, lifeline().map_err(failed)?)),
        };
        let launch = match &command.sandbox {
            // A terminal of the machine does not exist in other namespaces.
            Some(_) if matches!(ends.input, Input::Terminal(_)) => {
                return Err(unsupported("a sandbox has no terminal").into());
            }
            Some(confined) => match launch {
                Some(launch) => Some(launch),
                None => Some(confined.launch(&command.confinement, &command.directory)?),
            },
            None => None,
        };
        let (mut builder, lifeline) = match supervisor {
            None => (direct(launch.as_ref(), &command.program)?, None),
            Some((path, ends_of_lifeline)) => {
                let mut builder = launched(launch.as_ref(), path);
                builder.arg(supervisor::SUPERVISE).arg(ends.input.argument()).arg(&command.program);
                (builder, Some(ends_of_lifeline))
            }
        };
        builder.args(&command.args).current_dir(&command.directory).stdout(ends.stdout).stderr(ends.stderr);
        for name in &command.env_remove {
            builder.env_remove(name);
        }
        builder.envs(command.env.iter().map(|(name, value)| (name, value)));
        if let Some(launch) = &launch {
            builder.envs(launch.env.iter().map(|(name, value)| (name, value)));
            if launch.needs_helper {
                postpone(&mut builder, command);
            }
        }
        let spawned =
            origin::spawn(command.author, || spawn(builder, lifeline, ends.input), |(child, _)| child.id());
        let (child, hold) = spawned.map_err(failed)?;
        let covered = launch.map(|launch| launch.covered).unwrap_or_default();
        Ok(Self { child, hold, is_over: false, covered })
    }

    /// Sends the restrictions to a waiting helper. Returns whether it can read all of them. It does not start the command
    /// otherwise.
    pub(crate) fn restrict(&mut self, plan: &[u8]) -> bool {
        let Hold::Supervisor { lifeline, .. } = &self.hold else { return false };
        // A helper that reads nothing must not block this process. After the last byte the command can start, so nothing may
        // fail any more: the caller would start it again.
        write_all(lifeline, plan)
    }

    /// The names that the command could not create. `None` without a supervisor.
    pub(crate) fn refusals(&self) -> Option<Refusals> {
        let Hold::Supervisor { lifeline, .. } = &self.hold else { return None };
        Some(Refusals { lifeline: lifeline.clone(), begun: Vec::new() })
    }

    /// The id of the started process.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Whether the sandbox may have failed to start because what it covers has disappeared.
    pub(crate) fn may_have_missed(&self) -> bool {
        self.covered.iter().any(|path| path.symlink_metadata().is_err())
    }

    /// Waits for the program and, with a supervisor, for everything that it started. Returns the exit code.
    pub(crate) async fn wait(&mut self) -> i32 {
        let status = self.child.wait().await;
        if let (Hold::Supervisor { mark, .. }, Some(_)) =
            (&self.hold, status.as_ref().ok().and_then(ExitStatus::signal))
        {
            sweep(mark.clone()).await;
        }
        self.is_over = true;
        status.map_or(1, code)
    }

    /// Whether all its processes are known to have ended.
    pub(crate) fn is_over(&self) -> bool {
        match self.hold {
            // A process that was not reaped counts as a member.
            Hold::Group(id) => id.is_none_or(|id| killpg(id, None).is_err()),
            Hold::Supervisor { .. } => self.is_over,
        }
    }

    /// Sends SIGTERM to all its processes.
    pub(crate) fn ask_to_end(&mut self) {
        match &mut self.hold {
            Hold::Group(id) => signal(*id, Signal::SIGTERM),
            Hold::Supervisor { lifeline, .. } => {
                // A supervisor that has ended needs no signal.
                write_all(lifeline, &[supervisor::END]);
            }
        }
    }

    /// Kills all its processes.
    pub(crate) fn kill(&mut self) {
        match &mut self.hold {
            Hold::Group(id) => signal(*id, Signal::SIGKILL),
            Hold::Supervisor { lifeline, .. } => close(lifeline),
        }
    }

    /// Waits for processes that received SIGTERM, kills the others, and reaps the program.
    pub(crate) async fn end(mut self) {
        let until = Instant::now() + GRACE;
        // Reaped meanwhile, because otherwise it would count as a member forever.
        while !self.is_over() && Instant::now() < until {
            // Only reaping matters. A program that cannot be waited for is gone.
            drop(timeout(LOOK_EVERY, self.wait()).await);
            if !self.is_over() {
                sleep_until(until.min(Instant::now() + LOOK_EVERY)).await;
            }
        }
        self.end_now().await;
    }

    /// Kills all processes and reaps the program.
    pub(crate) async fn end_now(mut self) {
        if !self.is_over() {
            self.kill();
            self.collect().await;
        }
        self.hold.forget();
    }

    /// Waits for killed processes. If the supervisor does not end, it was stopped, and its work is done here.
    async fn collect(&mut self) {
        if timeout(REAP, self.wait()).await.is_err()
            && let Hold::Supervisor { mark, .. } = &self.hold
        {
            let mark = mark.clone();
            // A process that is stuck in the kernel is abandoned.
            drop(self.child.start_kill());
            sweep(mark).await;
        }
    }
}

impl Hold {
    /// Releases the group or supervisor, because nothing is left to kill.
    fn forget(&mut self) {
        if let Self::Group(id) = self {
            *id = None;
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        match self {
            Self::Group(id) => signal(*id, Signal::SIGKILL),
            Self::Supervisor { lifeline, .. } => close(lifeline),
        }
    }
}

/// The command without a supervisor.
fn direct(launch: Option<&Launch>, program: &Path) -> Result<tokio::process::Command, Error> {
    match launch {
        None => Ok(tokio::process::Command::new(program)),
        Some(launch) if launch.needs_helper => Err(unsupported("a sandbox needs a supervisor").into()),
        Some(launch) => {
            let mut builder = launched(Some(launch), program);
            builder.arg(program);
            Ok(builder)
        }
    }
}

/// The start of the helper in its sandbox, or of the program without one.
fn launched(launch: Option<&Launch>, program: &Path) -> tokio::process::Command {
    let Some(launch) = launch else { return tokio::process::Command::new(program) };
    let mut builder = tokio::process::Command::new(&launch.program);
    builder.args(&launch.args);
    builder
}

/// Gives the variables that load code to the command alone. A library that they name would otherwise run in the programs
/// that build the sandbox, where nothing restricts it yet.
fn postpone(builder: &mut tokio::process::Command, command: &Command) {
    let inherited = std::env::vars_os()
        .filter(|(name, _)| !command.env_remove.iter().any(|other| name == other.as_str()));
    let own = command.env.iter().map(|(name, value)| (name.into(), value.into()));
    for (name, value) in inherited.chain(own).filter(|(name, _)| supervisor::loads_code(name)) {
        let mut later = OsString::from(supervisor::LATER);
        later.push(&name);
        builder.env_remove(&name).env(later, value);
    }
}

fn unsupported(reason: &str) -> codewright_sandbox::Error {
    codewright_sandbox::Error::Unsupported(reason.to_owned())
}

fn spawn(
    mut builder: tokio::process::Command,
    lifeline: Option<(OwnedFd, UnixStream)>,
    input: Input<'_>,
) -> std::io::Result<(Child, Hold)> {
    /// Distinguishes the commands of this process.
    static COMMANDS: AtomicU64 = AtomicU64::new(0);
    match lifeline {
        None => {
            let stdin = match input {
                Input::Connection(socket) | Input::Duplex(socket) => Stdio::from(socket),
                Input::Empty | Input::Terminal(_) => Stdio::null(),
            };
            let child = builder.stdin(stdin).process_group(0).kill_on_drop(true).spawn()?;
            let id = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
            Ok((child, Hold::Group(id)))
        }
        Some((reader, writer)) => {
            let mark = format!("{}-{}", std::process::id(), COMMANDS.fetch_add(1, Ordering::Relaxed));
            let child = builder.stdin(Stdio::from(reader)).env(supervisor::MARK, &mark).spawn()?;
            Ok((child, Hold::Supervisor { lifeline: Arc::new(writer), mark }))
        }
    }
}

/// Both ends of a lifeline.
fn lifeline() -> std::io::Result<(OwnedFd, UnixStream)> {
    let (own, other) = std::os::unix::net::UnixStream::pair()?;
    own.set_nonblocking(true)?;
    Ok((other.into(), UnixStream::from_std(own)?))
}

/// Writes bytes without waiting. Returns whether the reader can read all of them.
fn write_all(lifeline: &UnixStream, bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while !rest.is_empty() {
        // Not the stream's own function, which would report that it is not ready before the first attempt.
        match rustix::io::write(lifeline.as_fd(), rest) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    true
}

/// Ends the writing half of a lifeline. What the supervisor reported can still be read.
fn close(lifeline: &UnixStream) {
    // It fails if the supervisor has ended.
    let _ = rustix::net::shutdown(lifeline.as_fd(), Shutdown::Write);
}

/// Reads the names that a command could not create.
#[derive(Debug)]
pub(crate) struct Refusals {
    lifeline: Arc<UnixStream>,
    /// The beginning of a path whose end has not arrived.
    begun: Vec<u8>,
}

impl Refusals {
    /// Waits for names. Waits forever after the end of the supervisor.
    pub(crate) async fn next(&mut self) -> Vec<PathBuf> {
        loop {
            if self.lifeline.readable().await.is_err() {
                return std::future::pending().await;
            }
            let mut bytes = [0; MAX_REPORT_BYTES];
            match self.lifeline.try_read(&mut bytes) {
                Ok(0) => return std::future::pending().await,
                Ok(count) => {
                    let found = self.split(&bytes[..count]);
                    if !found.is_empty() {
                        return found;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return std::future::pending().await,
            }
        }
    }

    /// Returns the names that were reported so far.
    pub(crate) fn rest(&mut self) -> Vec<PathBuf> {
        let (mut found, mut bytes) = (Vec::new(), [0; MAX_REPORT_BYTES]);
        // The supervisor writes a bounded number of bytes.
        while let Ok(count @ 1..) = rustix::io::read(self.lifeline.as_fd(), &mut bytes) {
            found.extend(self.split(&bytes[..count]));
        }
        found
    }

    fn split(&mut self, bytes: &[u8]) -> Vec<PathBuf> {
        self.begun.extend_from_slice(bytes);
        let mut found = Vec::new();
        while let Some(end) = self.begun.iter().position(|byte| *byte == 0) {
            let mut path: Vec<u8> = self.begun.drain(..=end).collect();
            path.pop();
            found.push(OsString::from_vec(path).into());
        }
        found
    }
}

fn signal(group: Option<Pid>, signal: Signal) {
    if let Some(id) = group {
        // The group may have ended by itself, which is fine.
        let _ = killpg(id, signal);
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}

/// Kills the processes of a command that has removed its supervisor.
async fn sweep(mark: String) {
    #[cfg(target_os = "linux")]
    // After a panic there, only processes that were not found are left.
    drop(tokio::task::spawn_blocking(move || supervisor::kill_marked(&mark)).await);
    #[cfg(not(target_os = "linux"))]
    drop(mark);
}
