//! Runs the `git` program, isolated from its environment.
//!
//! The child gets none of our environment, no configuration except the repository's own, no hooks and no
//! terminal. Its output and time are limited. Its process group is ended when a limit is reached, or when the
//! caller cancels or drops the call.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use codewright_workspace::git::{self, Group};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Child;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::Error;

/// The limit for the output of one run. More is an error.
const MAX_OUTPUT_BYTES: usize = 128 * 1024 * 1024;
/// The number of bytes of messages that are kept.
const MAX_MESSAGE_BYTES: usize = 8 * 1024;
/// The time between TERM and KILL.
const GRACE: Duration = Duration::from_millis(500);
/// The interval at which a run is checked.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The number of consecutive checks without progress after which a run is ended.
const STALLED_LOOKS: u32 = 8;
/// The reason why there are no snapshots without git.
pub(crate) const MISSING: &str = "the `git` program was not found";

/// The program and its settings.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    /// The directories that are searched for programs.
    pub(crate) search: Option<OsString>,
    /// The snapshot repository.
    pub(crate) directory: PathBuf,
    /// The worktree.
    pub(crate) worktree: PathBuf,
}

/// One run.
pub(crate) struct Call<'a> {
    /// The command and its arguments.
    pub(crate) args: Vec<&'a OsStr>,
    /// The directory for new objects.
    pub(crate) objects: &'a Path,
    /// Further directories with objects.
    pub(crate) alternates: &'a [PathBuf],
    /// The input.
    pub(crate) input: Input,
    /// The time limit.
    pub(crate) deadline: Duration,
}

/// The input of a run.
pub(crate) enum Input {
    /// No input. The lock is held while the run lives, even if this process dies.
    Lock(Option<File>),
    /// These bytes. The lock is held in place of the output, which the command does not have.
    Bytes(Vec<u8>, Option<File>),
}

impl Git {
    /// Runs git to its end. Returns its output.
    pub(crate) async fn run(&self, call: Call<'_>, cancel: &CancellationToken) -> Result<Vec<u8>, Error> {
        let name = call.args.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let failed = |message: String| Error::Git { command: name.clone(), message };
        let deadline = call.deadline;
        let (mut child, mut group, input) = self.start(call)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let work = async {
            let feed = async {
                let (Some(mut pipe), Some(bytes)) = (stdin, input) else { return };
                // If git stopped reading early, its exit code shows it.
                pipe.write_all(&bytes).await.unwrap_or_default();
            };
            let (out, said, ()) = tokio::join!(take(stdout), head(stderr), feed);
            let status = child.wait().await.map_err(|error| failed(error.to_string()))?;
            let out = out.ok_or_else(|| failed("its output is too large".to_owned()))?;
            if status.success() { Ok(out) } else { Err(failed(said.trim().to_owned())) }
        };
        let late = tokio::select! {
            done = work => {
                group.release();
                return done;
            }
            () = cancel.cancelled() => Late::Cancelled,
            () = sleep(deadline) => Late::Deadline,
            () = stalled(group.id()) => Late::Stalled,
        };
        group.signal(Signal::SIGTERM);
        // Git removes its lock files on this signal. The next run checks whether it did.
        timeout(GRACE, child.wait()).await.map(drop).unwrap_or_default();
        drop(group);
        match late {
            Late::Cancelled => Err(Error::Cancelled),
            Late::Stalled => {
                let reason = format!("`git {name}` waits for a file that is a pipe or does not answer");
                Err(Error::Off { reason })
            }
            Late::Deadline => {
                let reason = format!("`git {name}` took longer than {} s", deadline.as_secs());
                Err(Error::Off { reason })
            }
        }
    }

    /// Starts git for several requests. The caller ends it by dropping the child.
    pub(crate) fn converse(&self, call: Call<'_>) -> Result<(Child, Group), Error> {
        let (child, group, _) = self.start(call)?;
        Ok((child, group))
    }

    fn start(&self, call: Call<'_>) -> Result<(Child, Group, Option<Vec<u8>>), Error> {
        let mut command =
            git::command(self.search.as_deref(), &self.worktree).map_err(|error| match error {
                codewright_workspace::Error::NoGit => Error::Off { reason: MISSING.to_owned() },
                other => Error::Git { command: "start".to_owned(), message: other.to_string() },
            })?;
        git::without_settings(&mut command, &self.directory);
        command
            .args(&call.args)
            .env("GIT_DIR", &self.directory)
            .env("GIT_WORK_TREE", &self.worktree)
            .env("GIT_OBJECT_DIRECTORY", call.objects)
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", joined(call.alternates))
            .env("GIT_ATTR_NOSYSTEM", "1")
            // Git stores the state of unchanged files in the index, so that the next check is fast.
            .env_remove("GIT_OPTIONAL_LOCKS")
            .stderr(Stdio::piped());
        let (stdin, stdout, bytes) = match call.input {
            Input::Lock(Some(lock)) => (Stdio::from(lock), Stdio::piped(), None),
            Input::Lock(None) => (Stdio::null(), Stdio::piped(), None),
            Input::Bytes(bytes, Some(lock)) => (Stdio::piped(), Stdio::from(lock), Some(bytes)),
            Input::Bytes(bytes, None) => (Stdio::piped(), Stdio::piped(), Some(bytes)),
        };
        command.stdin(stdin).stdout(stdout);
        let child = git::spawn(command, &[&self.directory, call.objects]).map_err(|error| Error::Git {
            command: "start".to_owned(),
            message: format!("cannot start it: {error}"),
        })?;
        let group = Group::of(&child);
        Ok((child, group, bytes))
    }
}

enum Late {
    Cancelled,
    Deadline,
    Stalled,
}

/// Returns when the process has made no progress for a while and waits for something that may never come.
///
/// Git opens the lists in a directory even if they are pipes, which blocks it forever. If the system does not
/// show this, only the time limit helps.
async fn stalled(process: Option<Pid>) {
    let Some(process) = process else { return pending().await };
    let path = format!("/proc/{process}/stat");
    let (mut last, mut still) = (None, 0);
    while still < STALLED_LOOKS {
        sleep(LOOK_EVERY).await;
        let Ok(text) = std::fs::read_to_string(&path) else { return pending().await };
        // The name in parentheses may contain anything. The state and numbers follow, of which the twelfth
        // and thirteenth are the processor time.
        let fields: Vec<_> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let now = fields.get(11).zip(fields.get(12)).map(|(user, system)| format!("{user} {system}"));
        let is_still = fields.first() == Some(&"S") && now == last;
        still = if is_still { still + 1 } else { 0 };
        last = now;
    }
}

/// The whole output, or `None` if it is too large.
async fn take(pipe: Option<impl AsyncRead + Unpin>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let Some(pipe) = pipe else { return Some(bytes) };
    // A broken pipe ends the output like a closed one; the exit code shows the difference.
    pipe.take(MAX_OUTPUT_BYTES as u64 + 1).read_to_end(&mut bytes).await.unwrap_or_default();
    (bytes.len() <= MAX_OUTPUT_BYTES).then_some(bytes)
}

/// The beginning of the output. The rest is read and discarded.
async fn head(pipe: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut pipe) = pipe else { return String::new() };
    let mut kept = Vec::new();
    let mut chunk = vec![0; MAX_MESSAGE_BYTES];
    while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
        let room = MAX_MESSAGE_BYTES.saturating_sub(kept.len()).min(count);
        kept.extend_from_slice(&chunk[..room]);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// Joins directories of objects for git's variable.
fn joined(directories: &[PathBuf]) -> OsString {
    let mut joined = OsString::new();
    for directory in directories {
        if !joined.is_empty() {
            joined.push(":");
        }
        joined.push(quoted(directory));
    }
    joined
}

/// A path with its separators escaped.
fn quoted(path: &Path) -> OsString {
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    let bytes = path.as_os_str().as_bytes();
    if !bytes.iter().any(|byte| matches!(byte, b':' | b'"' | b'\\' | b'\n')) {
        return path.as_os_str().to_owned();
    }
    let mut quoted = vec![b'"'];
    for byte in bytes {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            b'\n' => quoted.extend(b"\\n"),
            _ => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    OsString::from_vec(quoted)
}
