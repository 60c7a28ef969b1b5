//! Runs a program in a project with a deadline.
//!
//! The program has the environment of the project and none of the test's, and its own process group. No process
//! of that group outlives the [`Running`] value.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::project::Project;

/// The default deadline of a program.
const DEADLINE: Duration = Duration::from_secs(60);
/// The number of bytes to keep of an output stream. The rest is read and dropped.
const OUTPUT_LIMIT_BYTES: usize = 64 << 20;
/// How long to read output after the program ended, because children may keep the stream open.
const DRAIN_LIMIT: Duration = Duration::from_secs(3);
/// The interval at which to check whether the program has ended.
const POLL: Duration = Duration::from_millis(10);

/// A program to run in a project.
#[derive(Debug)]
pub struct Run {
    command: Command,
    stdin: Option<Vec<u8>>,
    deadline: Duration,
}

/// A running program. Dropping it kills its process group.
pub struct Running {
    child: Child,
    name: String,
    status: Option<ExitStatus>,
    stdout: Arc<Pipe>,
    stderr: Arc<Pipe>,
    deadline: Duration,
    ends: Instant,
    /// The offset of the next line of stdout.
    read: usize,
}

/// The result of a program.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The command line.
    pub name: String,
    /// The exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Everything it wrote to stdout.
    pub stdout: String,
    /// Everything it wrote to stderr.
    pub stderr: String,
}

impl Run {
    /// Creates a run in the directory and the environment of the project.
    pub fn new(program: impl AsRef<OsStr>, project: &Project) -> Self {
        let mut command = Command::new(program);
        command.env_clear().envs(project.environment()).current_dir(project.directory()).process_group(0);
        Self { command, stdin: None, deadline: DEADLINE }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    /// Adds a variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Removes a variable.
    #[must_use]
    pub fn without_env(mut self, name: impl AsRef<OsStr>) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Runs as another user and group, which needs root.
    #[must_use]
    pub fn user(mut self, id: u32) -> Self {
        self.command.uid(id).gid(id);
        self
    }

    /// Runs in another directory.
    #[must_use]
    pub fn directory(mut self, directory: impl AsRef<Path>) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Sets the input; without it stdin is empty.
    #[must_use]
    pub fn stdin(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(text.into());
        self
    }

    /// Sets the deadline.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Runs the program to its end.
    pub fn finish(self) -> Result<Finished> {
        self.start()?.finish()
    }

    /// Starts the program.
    pub fn start(mut self) -> Result<Running> {
        let name = name_of(&self.command);
        let stdin = if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() };
        self.command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().with_context(|| format!("cannot start `{name}`"))?;
        let stdout = Arc::new(Pipe::default());
        let stderr = Arc::new(Pipe::default());
        if let Some(stream) = child.stdout.take() {
            stdout.fill_from(stream);
        }
        if let Some(stream) = child.stderr.take() {
            stderr.fill_from(stream);
        }
        if let (Some(mut stream), Some(text)) = (child.stdin.take(), self.stdin) {
            // A program may end without reading its input.
            thread::spawn(move || stream.write_all(&text).unwrap_or_default());
        }
        let ends = Instant::now() + self.deadline;
        Ok(Running { child, name, status: None, stdout, stderr, deadline: self.deadline, ends, read: 0 })
    }
}

impl Running {
    /// Returns the next line of stdout, or `None` at its end.
    pub fn line(&mut self) -> Result<Option<String>> {
        let mut output = self.stdout.lock();
        loop {
            let rest = output.bytes.get(self.read..).unwrap_or_default();
            if let Some(length) = rest.iter().position(|byte| *byte == b'\n') {
                let line = String::from_utf8_lossy(&rest[..length]).into_owned();
                self.read += length + 1;
                return Ok(Some(line));
            }
            if output.is_over {
                let line = String::from_utf8_lossy(rest).into_owned();
                self.read = output.bytes.len();
                return Ok((!line.is_empty()).then_some(line));
            }
            let left = self.ends.saturating_duration_since(Instant::now());
            if left.is_zero() {
                drop(output);
                bail!("`{}` wrote no line within {:?}\n{}", self.name, self.deadline, self.so_far());
            }
            output = self.stdout.wait(output, left);
        }
    }

    /// Returns the next line of stdout that fits and skips those before it.
    pub fn line_that(&mut self, fits: impl Fn(&str) -> bool) -> Result<String> {
        while let Some(line) = self.line()? {
            if fits(&line) {
                return Ok(line);
            }
        }
        bail!("`{}` ended without the expected line\n{}", self.name, self.so_far())
    }

    /// Returns everything written to stdout and stderr so far.
    pub fn so_far(&self) -> String {
        format!("--- stdout\n{}\n--- stderr\n{}", self.stdout.text(), self.stderr.text())
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGINT to the program only, which has to end its children.
    pub fn interrupt(&self) -> Result<()> {
        self.signal(Signal::SIGINT)
    }

    /// Sends SIGTERM to the program only.
    pub fn terminate(&self) -> Result<()> {
        self.signal(Signal::SIGTERM)
    }

    /// Waits for the end of the program. After the deadline its group is killed, and the error contains the output.
    pub fn finish(mut self) -> Result<Finished> {
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if Instant::now() >= self.ends {
                self.kill();
                self.drain();
                bail!("`{}` did not end within {:?}\n{}", self.name, self.deadline, self.so_far());
            }
            thread::sleep(POLL);
        };
        self.status = Some(status);
        self.drain();
        Ok(Finished {
            name: self.name.clone(),
            code: status.code(),
            signal: status.signal(),
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
        })
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        if self.status.is_some() {
            bail!("`{}` has already ended", self.name);
        }
        kill(self.pid(), signal).with_context(|| format!("cannot signal `{}`", self.name))
    }

    /// Waits for the rest of the output, for a short time if children keep it open.
    fn drain(&self) {
        let until = Instant::now() + DRAIN_LIMIT;
        self.stdout.wait_until_over(until);
        self.stderr.wait_until_over(until);
    }

    fn kill(&mut self) {
        // An error means that no process of the group is left.
        killpg(self.pid(), Signal::SIGKILL).unwrap_or_default();
        if self.status.is_none() {
            // The program was just killed, so this does not wait for long.
            self.status = self.child.wait().ok();
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Finished {
    /// Returns this value if the exit code is 0, else an error with the output.
    pub fn success(self) -> Result<Self> {
        if self.code == Some(0) {
            return Ok(self);
        }
        let mut end = String::new();
        match (self.code, self.signal) {
            (Some(code), _) => write!(end, "exit code {code}")?,
            (None, Some(signal)) => write!(end, "signal {signal}")?,
            (None, None) => end.push_str("an unknown status"),
        }
        bail!("`{}` ended with {end}\n--- stdout\n{}\n--- stderr\n{}", self.name, self.stdout, self.stderr)
    }
}

/// An output stream, filled by a thread.
#[derive(Default)]
struct Pipe {
    output: Mutex<Output>,
    grown: Condvar,
}

#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    is_over: bool,
}

impl Pipe {
    fn fill_from(self: &Arc<Self>, mut stream: impl Read + Send + 'static) {
        let pipe = Arc::clone(self);
        // The thread ends with the stream, which is closed when the group is killed.
        thread::spawn(move || {
            let mut buffer = [0; 16 << 10];
            while let Ok(read @ 1..) = stream.read(&mut buffer) {
                let mut output = pipe.lock();
                let room = OUTPUT_LIMIT_BYTES - output.bytes.len();
                output.bytes.extend_from_slice(&buffer[..read.min(room)]);
                pipe.grown.notify_all();
            }
            pipe.lock().is_over = true;
            pipe.grown.notify_all();
        });
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.lock().bytes).into_owned()
    }

    fn wait_until_over(&self, until: Instant) {
        let mut output = self.lock();
        while !output.is_over {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            output = self.wait(output, left);
        }
    }

    fn wait<'a>(&self, output: MutexGuard<'a, Output>, limit: Duration) -> MutexGuard<'a, Output> {
        self.grown.wait_timeout(output, limit).unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, Output> {
        // No change under the lock can panic half-way, so a poisoned lock is fine.
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name_of(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words
        .map(OsStr::to_os_string)
        .collect::<Vec<OsString>>()
        .join(OsStr::new(" "))
        .to_string_lossy()
        .into_owned()
}
