//! One run of one program, measured by a process that does nothing else.
//!
//! The kernel adds up what the children of a process cost, so a process with a
//! single child knows that child's cost exactly, and that of everything the
//! child waited for. It has to be a small process: a program's peak memory
//! begins with the memory of whoever started it.
//!
//! Nothing is left running: the program has a process group of its own, which
//! is killed at its end, at the deadline, and when the benchmark itself is gone.

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

/// The hidden command that runs this.
pub(crate) const COMMAND: &str = "measure";
/// How long a program may run.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);
/// More output than this through a pipe is an error.
const OUTPUT_LIMIT_BYTES: u64 = 256 << 20;

/// What a run cost.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Cost {
    /// When the program was started, on the machine's monotonic clock.
    pub(crate) started_ns: i64,
    /// From the start to the end of the program.
    pub(crate) wall_ns: i64,
    /// User and system time of the program and of all it waited for.
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

/// Where a program's standard output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sink {
    /// Into a file, as fast as the program writes.
    File,
    /// Through a pipe that is read by another process.
    Pipe,
}

/// Now, on a clock that all processes of the machine share.
pub(crate) fn now_ns() -> Result<i64> {
    Ok(clock_gettime(ClockId::CLOCK_MONOTONIC)?.num_nanoseconds())
}

/// `measure file|pipe DEADLINE_MS STDOUT STDERR PROGRAM ARG...`: runs the program and
/// prints its cost; standard input is held open for as long as the cost is wanted.
pub(crate) fn main(rest: &[String]) -> Result<()> {
    let [sink, deadline, stdout, stderr, program, args @ ..] = rest else {
        bail!("`{COMMAND}` takes a sink, a deadline, two files and a program");
    };
    let sink = match sink.as_str() {
        "file" => Sink::File,
        "pipe" => Sink::Pipe,
        other => bail!("there is no sink `{other}`"),
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
    // Ends with this process at the latest: the benchmark closes its end when it has the cost.
    thread::spawn(move || {
        io::copy(&mut io::stdin(), &mut io::sink()).unwrap_or_default();
        lifeline.send(()).unwrap_or_default();
    });
    let watchdog = thread::spawn(move || {
        let late = watch.recv_timeout(deadline).is_err();
        // Whatever of the group is left dies; that nothing is left is fine.
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
