//! Runs git with limited output and time, and ends everything that it started.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::Error;

/// The limit for git's output, unless the caller reads it in pieces.
pub const MAX_OUTPUT_BYTES: usize = 16 * 1024 * 1024;
/// The size of one read.
const PIECE_BYTES: usize = 64 * 1024;
/// The limit of concurrent runs for all repositories. Other runs wait, within their time limit.
const MAX_RUNS: usize = 8;

static RUNS: Semaphore = Semaphore::const_new(MAX_RUNS);

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Git succeeded.
    Well,
    /// The reader needs no more output.
    Stopped,
    /// Git failed.
    Badly,
}

/// The process group of a run. It is killed when this is dropped, unless it was released.
#[derive(Debug)]
pub struct Group(Option<Pid>);

impl Group {
    /// The group whose leader is a child.
    #[must_use]
    pub fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw))
    }

    /// The id of the group.
    #[must_use]
    pub fn id(&self) -> Option<Pid> {
        self.0
    }

    /// Releases the group, because its leader was reaped and the id may be reused.
    pub fn release(&mut self) {
        self.0 = None;
    }

    /// Sends a signal to every process of the group.
    pub fn signal(&self, signal: Signal) {
        if let Some(id) = self.0 {
            // The group may have ended by itself, which is fine.
            killpg(id, signal).unwrap_or_default();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

/// A call of git, and what it writes.
pub(super) struct Confined<'a> {
    pub(super) command: Command,
    pub(super) write: Vec<&'a Path>,
}

/// Starts git, which can write only these files and directories and connect to nothing.
///
/// The settings already keep git from running other programs; this holds if they have a gap. It needs a kernel with
/// Landlock.
///
/// # Errors
///
/// Fails if the program cannot be started.
pub fn spawn(mut command: Command, write: &[&Path]) -> std::io::Result<Child> {
    // The thread that starts git does not belong to the runtime.
    let runtime = tokio::runtime::Handle::try_current().map_err(std::io::Error::other)?;
    codewright_sandbox::with_writes(write, || {
        let _entered = runtime.enter();
        command.spawn()
    })
}

/// Runs git to its end. `take` receives its output and returns whether it needs more.
pub(super) async fn stream(
    command: Confined<'_>,
    name: &str,
    input: Option<&[u8]>,
    deadline: Duration,
    take: impl FnMut(&[u8]) -> bool,
) -> Result<Ended, Error> {
    // On the heap, because the futures of callers are already large.
    let talk = Box::pin(async {
        // The semaphore is never closed. Without it there would only be no limit.
        let _permit = RUNS.acquire().await.ok();
        talk(command, input, take).await
    });
    match timeout(deadline, talk).await {
        Ok(Ok(ended)) => Ok(ended),
        Ok(Err(error)) => Err(Error::Git { message: format!("cannot run `git {name}`: {error}") }),
        Err(_) => {
            let seconds = deadline.as_secs();
            Err(Error::Git { message: format!("`git {name}` took longer than {seconds} s") })
        }
    }
}

/// Runs git without reading its output.
pub(super) async fn succeed(command: Confined<'_>, name: &str, deadline: Duration) -> Result<(), Error> {
    match stream(command, name, None, deadline, |_| true).await? {
        Ended::Well => Ok(()),
        Ended::Stopped | Ended::Badly => Err(Error::Git { message: format!("`git {name}` failed") }),
    }
}

async fn talk(
    confined: Confined<'_>,
    input: Option<&[u8]>,
    mut take: impl FnMut(&[u8]) -> bool,
) -> std::io::Result<Ended> {
    let Confined { mut command, write } = confined;
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = spawn(command, &write)?;
    let mut group = Group::of(&child);
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let write = async {
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            // If git ends before it has read everything, its status shows it.
            drop(stdin.write_all(input).await);
        }
    };
    let read = async {
        let Some(mut stdout) = stdout else { return Ok(true) };
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let count = stdout.read(&mut piece).await?;
            if count == 0 {
                return Ok::<_, std::io::Error>(true);
            }
            if !take(&piece[..count]) {
                return Ok(false);
            }
        }
    };
    let work = async { tokio::join!(write, read) };
    let ((), is_all) = work.await;
    if !is_all? {
        return Ok(Ended::Stopped);
    }
    let succeeded = child.wait().await?.success();
    group.release();
    Ok(if succeeded { Ended::Well } else { Ended::Badly })
}
