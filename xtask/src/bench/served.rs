//! Starts a server of a measured program and reads its cost.
//!
//! The CPU time of a process has nanosecond precision; that of its waited-for children is counted in ticks.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike as _;
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::{Pid, SysconfVar, sysconf};

use super::Program;

/// The deadline of a start.
const START: Duration = Duration::from_secs(60);
/// The deadline of the end.
const END: Duration = Duration::from_secs(20);
/// The interval at which to check for the end.
const POLL: Duration = Duration::from_millis(10);

/// A running server, killed when dropped.
pub(super) struct Served {
    child: Child,
    /// The host and port.
    pub(super) address: String,
    /// The cost of the start until the server listens.
    pub(super) start: Started,
}

/// The cost of a start.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Started {
    pub(super) wall_ms: f64,
    pub(super) cpu_ms: f64,
}

/// The memory of a process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    pub(super) now_mib: f64,
    pub(super) peak_mib: f64,
}

impl Served {
    /// Starts a server and waits until it listens.
    pub(super) fn start(program: &Program) -> Result<Self> {
        let mut command = Command::new(&program.path);
        command.args(["serve", "--port", "0"]).env_clear().envs(program.sandbox.environment());
        command.env("OPENCODE_DISABLE_LOCAL_SERVERS", "1").current_dir(program.sandbox.project());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let begun = Instant::now();
        let mut server = Self { child: command.spawn()?, address: String::new(), start: Started::default() };
        let output = server.child.stdout.take().context("a pipe")?;
        let (found, address) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some((_, address)) = line.split_once("listening on http://") {
                    // The receiver may have timed out.
                    drop(found.send(address.trim().to_owned()));
                }
            }
        });
        server.address = address.recv_timeout(START).context("the server does not print its address")?;
        server.start = Started { wall_ms: begun.elapsed().as_secs_f64() * 1e3, cpu_ms: server.own_cpu_ms()? };
        Ok(server)
    }

    /// Returns the CPU time of the process and of the children that it has waited for.
    pub(super) fn cpu_ms(&self) -> Result<f64> {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name may contain any characters. The times of children are fields 16 and 17 of the line, counted
        // from 1.
        let (_, fields) = text.rsplit_once(')').context("no fields")?;
        let ticks: f64 =
            fields.split_whitespace().skip(13).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
        let a_second = sysconf(SysconfVar::CLK_TCK)?.context("no ticks")? as f64;
        Ok(self.own_cpu_ms()? + ticks * 1e3 / a_second)
    }

    /// Returns the CPU time of the process.
    pub(super) fn own_cpu_ms(&self) -> Result<f64> {
        own_cpu_ms(self.pid())
    }

    pub(super) fn memory(&self) -> Result<Memory> {
        memory(self.pid())
    }

    /// Ends the server with SIGTERM, so that it writes its data.
    pub(super) fn end(mut self) -> Result<()> {
        kill(self.pid(), Signal::SIGTERM)?;
        let until = Instant::now() + END;
        while self.child.try_wait()?.is_none() && Instant::now() < until {
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }
}

/// Returns the CPU time of a process.
pub(super) fn own_cpu_ms(process: Pid) -> Result<f64> {
    let clock = clock_getcpuclockid(process)?;
    Ok(clock_gettime(clock)?.num_nanoseconds() as f64 / 1e6)
}

/// Returns the memory of a process.
pub(super) fn memory(process: Pid) -> Result<Memory> {
    let text = fs::read_to_string(format!("/proc/{process}/status"))?;
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).context("no memory")?;
        let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
        anyhow::Ok(kib / 1024.0)
    };
    Ok(Memory { now_mib: of("VmRSS:")?, peak_mib: of("VmHWM:")? })
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
