//! A process that runs one program and measures its cost.
//!
//! The kernel adds up the cost of a process's children, so a process with one child knows the exact cost of
//! that child and of everything the child waited for. The measuring process must be small, because the peak
//! memory of a program starts with the memory of its parent.
//!
//! The program has its own process group, which is killed at its end, at the deadline, and when the benchmark
//! has ended.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, killpg};
use nix::sys::time::TimeValLike as _;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// The hidden command that runs this process.
pub(crate) const COMMAND: &str = "measure";
/// The deadline of a program.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);
/// The number of bytes to read from a pipe.
const OUTPUT_LIMIT_BYTES: u64 = 256 << 20;

/// The cost of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// The start of the program on the machine's monotonic clock.
    pub(crate) started_ns: i64,
    /// The time from the start to the end of the program.
    pub(crate) wall_ns: i64,
    /// The user and system time of the program and of all processes that it waited for.
    pub(crate) cpu_us: i64,
    /// The peak memory of the largest of these processes.
    pub(crate) peak_kib: i64,
    /// The exit code, unless a signal ended it.
    pub(crate) code: Option<i32>,
    /// The signal that ended it, if one did.
    pub(crate) signal: Option<i32>,
    /// Whether it was killed at the deadline.
    pub(crate) late: bool,
}

/// The target of a program's standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sink {
    /// A file.
    File,
    /// A pipe that another process reads.
    Pipe,
}

/// Returns the time of the monotonic clock, which all processes of the machine share.
pub(crate) fn now_ns() -> Result<i64> {
    Ok(clock_gettime(ClockId::CLOCK_MONOTONIC)?.num_nanoseconds())
}

/// Runs `measure file|pipe DEADLINE_MS STDOUT STDERR PROGRAM ARG...`: runs the program and prints its cost.
///
/// The program is killed when standard input is closed.
pub(crate) fn main(rest: &[String]) -> Result<()> {
    let [sink, deadline, stdout, stderr, program, args @ ..] = rest else {
        bail!("`{COMMAND}` needs a sink, a deadline, two files and a program");
    };
    let sink = match sink.as_str() {
        "file" => Sink::File,
        "pipe" => Sink::Pipe,
        other => bail!("unknown sink `{other}`"),
    };
    let deadline = Duration::from_millis(deadline.parse().context("the deadline is not a number")?);
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).process_group(0).stderr(create(stderr)?);
    let output = create(stdout)?;
    let cost = match sink {
        Sink::File => run(command.stdout(output), deadline, None)?,
        Sink::Pipe => run(command.stdout(Stdio::piped()), deadline, Some(output))?,
    };
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, &cost)?;
    out.flush()?;
    Ok(())
}

fn create(path: impl AsRef<Path>) -> Result<File> {
    let path = path.as_ref();
    File::create(path).with_context(|| format!("cannot create `{}`", path.display()))
}

fn run(command: &mut Command, deadline: Duration, output: Option<File>) -> Result<Cost> {
    let started_ns = now_ns()?;
    let mut child = command.spawn().context("cannot start the program")?;
    let group = Pid::from_raw(child.id().cast_signed());
    let (ended, watch) = mpsc::channel();
    let lifeline = ended.clone();
    // The thread ends when the benchmark closes stdin, or with this process.
    thread::spawn(move || {
        io::copy(&mut io::stdin(), &mut io::sink()).unwrap_or_default();
        lifeline.send(()).unwrap_or_default();
    });
    let watchdog = thread::spawn(move || {
        let late = watch.recv_timeout(deadline).is_err();
        // An error means that no process of the group is left.
        killpg(group, Signal::SIGKILL).unwrap_or_default();
        late
    });
    let reader = child.stdout.take().map(|pipe| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            pipe.take(OUTPUT_LIMIT_BYTES).read_to_end(&mut bytes).map(|_| bytes)
        })
    });
    let status = child.wait()?;
    let wall_ns = now_ns()? - started_ns;
    ended.send(()).unwrap_or_default();
    let late = watchdog.join().unwrap_or(true);
    if let (Some(reader), Some(mut output)) = (reader, output) {
        output.write_all(&reader.join().unwrap_or_else(|_| Ok(Vec::new()))?)?;
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok(Cost {
        started_ns,
        wall_ns,
        cpu_us: (usage.user_time() + usage.system_time()).num_microseconds(),
        peak_kib: usage.max_rss(),
        code: status.code(),
        signal: status.signal(),
        late,
    })
}
