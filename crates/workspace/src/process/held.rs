//! A program that was started, and the hold on it and on all that it starts.

use std::io::{PipeReader, PipeWriter, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::Child;
use tokio::time::{Instant, sleep_until, timeout};

use super::{Command, origin, supervisor};
use crate::Error;

/// Time between the polite and the final signal.
pub(super) const GRACE: Duration = Duration::from_millis(500);
/// Time to collect a program that was killed; one stuck in the kernel is left.
pub(super) const REAP: Duration = Duration::from_secs(2);
/// How often it is looked whether a group that was asked to end has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What holds a program together with all that it starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Confinement {
    /// Its process group; what leaves the group is lost.
    #[default]
    Group,
    /// A supervisor, which is the program at this path, see [`crate::supervise`]; nothing that forks gets away from it.
    Supervisor(PathBuf),
}

impl Confinement {
    /// The most that this system offers to the running program, if it answers to [`crate::SUPERVISE`].
    #[must_use]
    pub fn own() -> Self {
        // Not the path by name: the file may be exchanged while the program runs.
        if cfg!(target_os = "linux") { Self::Supervisor("/proc/self/exe".into()) } else { Self::Group }
    }
}

/// A started program; what is left of it is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    child: Child,
    hold: Hold,
    is_over: bool,
}

#[derive(Debug)]
enum Hold {
    Group(Option<Pid>),
    Supervisor { lifeline: Option<PipeWriter>, mark: String },
}

/// Where a program's input and output go.
pub(crate) struct Ends<'a> {
    /// The terminal that it has, by path.
    pub(crate) terminal: Option<&'a Path>,
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
}

impl Held {
    pub(crate) fn start(command: &Command, ends: Ends<'_>) -> Result<Self, Error> {
        let failed = |source| Error::Start { program: command.program.clone(), source };
        let supervisor = match &command.confinement {
            Confinement::Group => None,
            Confinement::Supervisor(path) => Some((path, std::io::pipe().map_err(failed)?)),
        };
        let (mut builder, lifeline) = match supervisor {
            None => (tokio::process::Command::new(&command.program), None),
            Some((path, ends_of_lifeline)) => {
                let mut builder = tokio::process::Command::new(path);
                let none = Path::new(supervisor::NO_TERMINAL);
                builder.arg(supervisor::SUPERVISE).arg(ends.terminal.unwrap_or(none)).arg(&command.program);
                (builder, Some(ends_of_lifeline))
            }
        };
        builder.args(&command.args).current_dir(&command.directory).stdout(ends.stdout).stderr(ends.stderr);
        for name in &command.env_remove {
            builder.env_remove(name);
        }
        builder.envs(command.env.iter().map(|(name, value)| (name, value)));
        let spawned = origin::spawn(command.author, || spawn(builder, lifeline), |(child, _)| child.id());
        let (child, hold) = spawned.map_err(failed)?;
        Ok(Self { child, hold, is_over: false })
    }

    /// The number of the process that was started.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits for the program and, if it is supervised, all that it started; its exit code.
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

    /// Whether nothing of it is left, as far as it is known.
    pub(crate) fn is_over(&self) -> bool {
        match self.hold {
            // What is not collected counts as a member.
            Hold::Group(id) => id.is_none_or(|id| killpg(id, None).is_err()),
            Hold::Supervisor { .. } => self.is_over,
        }
    }

    /// Asks all of it to end.
    pub(crate) fn ask_to_end(&mut self) {
        match &mut self.hold {
            Hold::Group(id) => signal(*id, Signal::SIGTERM),
            Hold::Supervisor { lifeline, .. } => {
                // A supervisor that is gone needs no telling.
                drop(lifeline.as_mut().map(|lifeline| lifeline.write_all(&[supervisor::END])));
            }
        }
    }

    /// Kills all of it.
    pub(crate) fn kill(&mut self) {
        match &mut self.hold {
            Hold::Group(id) => signal(*id, Signal::SIGKILL),
            Hold::Supervisor { lifeline, .. } => *lifeline = None,
        }
    }

    /// Gives what was asked to end its time, kills what is left, and collects the program.
    pub(crate) async fn end(mut self) {
        let until = Instant::now() + GRACE;
        // Collected meanwhile, or it would count as one of the group for ever.
        while !self.is_over() && Instant::now() < until {
            // Only that it was collected counts; a program that cannot be waited for is gone.
            drop(timeout(LOOK_EVERY, self.wait()).await);
            if !self.is_over() {
                sleep_until(until.min(Instant::now() + LOOK_EVERY)).await;
            }
        }
        self.end_now().await;
    }

    /// Kills what is left and collects the program.
    pub(crate) async fn end_now(mut self) {
        if !self.is_over() {
            self.kill();
            self.collect().await;
        }
        self.hold.forget();
    }

    /// Waits for what was killed; a supervisor that does not end was stopped, and its work is done for it.
    async fn collect(&mut self) {
        if timeout(REAP, self.wait()).await.is_err()
            && let Hold::Supervisor { mark, .. } = &self.hold
        {
            let mark = mark.clone();
            // One that is stuck in the kernel is left.
            drop(self.child.start_kill());
            sweep(mark).await;
        }
    }
}

impl Hold {
    /// Nothing is left to be killed.
    fn forget(&mut self) {
        if let Self::Group(id) = self {
            *id = None;
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // The lifeline closes by itself.
        if let Self::Group(id) = self {
            signal(*id, Signal::SIGKILL);
        }
    }
}

fn spawn(
    mut builder: tokio::process::Command,
    lifeline: Option<(PipeReader, PipeWriter)>,
) -> std::io::Result<(Child, Hold)> {
    /// Tells one command of this process from another.
    static COMMANDS: AtomicU64 = AtomicU64::new(0);
    match lifeline {
        None => {
            let child = builder.stdin(Stdio::null()).process_group(0).kill_on_drop(true).spawn()?;
            let id = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
            Ok((child, Hold::Group(id)))
        }
        Some((reader, writer)) => {
            let mark = format!("{}-{}", std::process::id(), COMMANDS.fetch_add(1, Ordering::Relaxed));
            let child = builder.stdin(Stdio::from(reader)).env(supervisor::MARK, &mark).spawn()?;
            Ok((child, Hold::Supervisor { lifeline: Some(writer), mark }))
        }
    }
}

fn signal(group: Option<Pid>, signal: Signal) {
    if let Some(id) = group {
        // The group may have ended by itself, which was wanted.
        let _ = killpg(id, signal);
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}

/// Kills what a command left that has got rid of its supervisor.
async fn sweep(mark: String) {
    #[cfg(target_os = "linux")]
    // A panic in there leaves only what could not be found.
    drop(tokio::task::spawn_blocking(move || supervisor::kill_marked(&mark)).await);
    #[cfg(not(target_os = "linux"))]
    drop(mark);
}
