//! One run of git: bounded output, a deadline, and an end for everything it started.

use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::Error;

/// The most that is kept of what git prints, unless the caller reads it piece by piece.
pub const MAX_OUTPUT_BYTES: usize = 16 * 1024 * 1024;
/// How much is read at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// Runs at the same time, of all repositories together; the others wait, within their deadline.
const MAX_RUNS: usize = 8;

static RUNS: Semaphore = Semaphore::const_new(MAX_RUNS);

/// The result of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Git succeeded.
    Well,
    /// The reader wanted no more of its output.
    Stopped,
    /// Git failed.
    Badly,
}

/// The process group of a run; killed when dropped, unless it was released.
#[derive(Debug)]
pub struct Group(Option<Pid>);

impl Group {
    /// The group that a child leads.
    #[must_use]
    pub fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw))
    }

    /// The number of the group.
    #[must_use]
    pub fn id(&self) -> Option<Pid> {
        self.0
    }

    /// Forgets the group, because its leader was collected and the number may be given away.
    pub fn release(&mut self) {
        self.0 = None;
    }

    /// Sends a signal to every process of the group.
    pub fn signal(&self, signal: Signal) {
        if let Some(id) = self.0 {
            // The group may have ended by itself, which is the aim.
            killpg(id, signal).unwrap_or_default();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

/// Runs git to its end; `take` receives what it prints and returns whether it wants more.
pub(super) async fn stream(
    command: Command,
    name: &str,
    input: Option<&[u8]>,
    deadline: Duration,
    take: impl FnMut(&[u8]) -> bool,
) -> Result<Ended, Error> {
    // On the heap, because callers keep this within futures that are large already.
    let talk = Box::pin(async {
        // The semaphore is never closed; without it there would only be no bound.
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

/// Runs git for its effect.
pub(super) async fn succeed(command: Command, name: &str, deadline: Duration) -> Result<(), Error> {
    match stream(command, name, None, deadline, |_| true).await? {
        Ended::Well => Ok(()),
        Ended::Stopped | Ended::Badly => Err(Error::Git { message: format!("`git {name}` failed") }),
    }
}

async fn talk(
    mut command: Command,
    input: Option<&[u8]>,
    mut take: impl FnMut(&[u8]) -> bool,
) -> std::io::Result<Ended> {
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut group = Group::of(&child);
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let write = async {
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            // A git that ends before it has read everything says so by its status.
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
