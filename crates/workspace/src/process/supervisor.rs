//! The process between the server and a command. It ends all processes of the command when either side ends.
//!
//! It is this program again, started with [`SUPERVISE`]. It becomes the parent of all orphans among its
//! descendants (a child subreaper), so that `setsid`, double forks and daemons stay its descendants. It
//! starts the command, and ends when the command and everything that it started have ended:
//!
//! - If the command has ended, its remaining processes have [`DRAIN`] to end and [`POLITE`] after a TERM, then
//!   they are killed. The exit code is the command's; a signal counts as 128 plus its number.
//! - If its standard input, the *lifeline*, delivers an [`END`] byte, all processes receive SIGTERM.
//! - If the lifeline closes, all processes are killed. The server closes it, or has died.
//!
//! It has a separate session, so a command has no terminal to prompt on, and its signals are blocked, so
//! that only KILL and STOP have an effect. With a terminal, that is the terminal of the session.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::time::Duration;

/// The first argument that makes the program a supervisor.
pub const SUPERVISE: &str = "__supervise";
/// The argument instead of a terminal's path if there is none.
pub(super) const NO_TERMINAL: &str = "-";
/// The argument instead of a terminal's path if standard output is a socket that is the command's input too.
pub(super) const CONNECTION: &str = "=";
/// Like [`CONNECTION`], but the command's standard output goes to its error output.
pub(super) const CONNECTED_INPUT: &str = "<";
/// The byte on the lifeline that ends all processes.
pub(super) const END: u8 = b'e';
/// The variable that marks all processes of one command.
pub(super) const MARK: &str = "CODEWRIGHT_COMMAND";

/// The beginning of the name of a variable that only the command gets, without this beginning.
pub(super) const LATER: &str = "CODEWRIGHT_LATER_";
/// Variables with which the system's libraries load other code, besides those of [`LOADER`].
const CODE: [&str; 4] = ["GCONV_PATH", "GLIBC_TUNABLES", "LOCPATH", "MALLOC_TRACE"];
/// The beginning of the variables of the loader.
const LOADER: &str = "LD_";

/// The time for processes that a command left running to end.
pub(super) const DRAIN: Duration = Duration::from_millis(250);
/// The time between TERM and KILL for those processes.
const POLITE: Duration = Duration::from_millis(100);
/// The time for killed processes to end. Those stuck in the kernel are abandoned.
const KILLED: Duration = Duration::from_secs(10);
/// The longest interval between two checks of the remaining processes.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Prevents other processes of the same user from reading this one's memory, environment and open files.
///
/// Commands run as the same user as the server, whose environment may contain keys and the password of its
/// clients. Core files are not written either. Root can still read everything, and systems other than Linux
/// are not protected.
pub fn deny_tracing() {
    #[cfg(target_os = "linux")]
    // It fails only on a kernel without this call, and the program works without it.
    let _ = nix::sys::prctl::set_dumpable(false);
}

/// Whether a variable makes a program load code.
pub(super) fn loads_code(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(LOADER) || CODE.contains(&name))
}

/// Runs a program and everything that it starts, to their end. The arguments are a terminal's path, [`NO_TERMINAL`],
/// [`CONNECTION`] or [`CONNECTED_INPUT`], the program, and its arguments.
#[must_use]
pub fn supervise(args: impl Iterator<Item = OsString>) -> ExitCode {
    #[cfg(target_os = "linux")]
    return linux::supervise(args);
    #[cfg(not(target_os = "linux"))]
    {
        drop(args);
        ExitCode::FAILURE
    }
}

#[cfg(target_os = "linux")]
pub(super) use linux::kill_marked;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashSet;
    use std::ffi::OsString;
    use std::fs::File;
    use std::io::{ErrorKind, Write as _, stderr, stdin, stdout};
    use std::os::fd::AsFd as _;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, ExitCode, Stdio};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use nix::errno::Errno;
    use nix::sys::prctl;
    use nix::sys::signal::{SigSet, Signal, kill, killpg};
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
    use nix::unistd::{Pid, getpid, read, setsid, tcsetpgrp};

    use super::{CONNECTED_INPUT, CONNECTION, DRAIN, END, KILLED, LATER, LOOK_EVERY, NO_TERMINAL, POLITE};

    /// The shells' exit code for a missing program.
    const NOT_FOUND: u8 = 127;
    /// The shells' exit code for a program that cannot be started.
    const NOT_STARTED: u8 = 126;

    /// The shared state of the two threads of a supervisor.
    struct Family {
        own: Pid,
        /// Held while processes are reaped or signalled, so that ids are not reused meanwhile.
        collecting: Mutex<()>,
        /// No process gets more time.
        killing: AtomicBool,
    }

    pub(super) fn supervise(mut args: impl Iterator<Item = OsString>) -> ExitCode {
        let (Some(terminal), Some(program)) = (args.next(), args.next()) else {
            return ExitCode::FAILURE;
        };
        // Each call may fail only if it has no effect or if less can be confined.
        let _ = setsid();
        let _ = prctl::set_child_subreaper(true);
        let _ = prctl::set_name(c"codewright-run");
        let started = start(&terminal, &program, args);
        // The program was started with the original signal mask.
        let _ = SigSet::all().thread_block();
        let child = match started {
            Ok(child) => child,
            Err(error) => {
                let name = program.to_string_lossy();
                // Stderr may be closed.
                drop(writeln!(stderr(), "cannot start `{name}`: {error}"));
                let missing = error.kind() == ErrorKind::NotFound;
                return ExitCode::from(if missing { NOT_FOUND } else { NOT_STARTED });
            }
        };
        let family = Family { own: getpid(), collecting: Mutex::new(()), killing: AtomicBool::new(false) };
        // Leaked, because the listening thread is not waited for.
        let family: &'static Family = Box::leak(Box::new(family));
        let listening = std::thread::Builder::new().spawn(|| family.listen());
        if listening.is_err() {
            family.killing.store(true, Ordering::Relaxed);
            family.signal(Signal::SIGKILL);
        }
        ExitCode::from(family.wait(child))
    }

    fn start(
        terminal: &OsString,
        program: &OsString,
        args: impl Iterator<Item = OsString>,
    ) -> std::io::Result<Pid> {
        let mut command = Command::new(program);
        command.args(args).process_group(0);
        let is_connected = terminal == CONNECTION || terminal == CONNECTED_INPUT;
        if terminal == CONNECTED_INPUT {
            command.stdout(stderr().as_fd().try_clone_to_owned()?);
        }
        for (name, value) in std::env::vars_os() {
            if let Some(own) = name.to_str().and_then(|name| name.strip_prefix(LATER)) {
                command.env_remove(&name).env(own, value);
            }
        }
        // The first terminal that the leader of a session opens becomes the session's.
        let terminal = match terminal {
            none if none == NO_TERMINAL || is_connected => None,
            path => Some(File::options().read(true).write(true).open(path)?),
        };
        match &terminal {
            None if is_connected => command.stdin(stdout().as_fd().try_clone_to_owned()?),
            None => command.stdin(Stdio::null()),
            Some(terminal) => command.stdin(terminal.try_clone()?),
        };
        let child = command.spawn()?;
        let id = Pid::from_raw(i32::try_from(child.id()).map_err(std::io::Error::other)?);
        if let Some(terminal) = terminal {
            // A program that checked before this has stopped itself.
            let _ = tcsetpgrp(&terminal, id);
            let _ = killpg(id, Signal::SIGCONT);
        }
        Ok(id)
    }

    impl Family {
        /// Follows the lifeline until it closes.
        fn listen(&self) {
            let mut order = [0];
            loop {
                match read(stdin(), &mut order) {
                    Ok(1) if order[0] == END => {
                        self.signal(Signal::SIGTERM);
                    }
                    Ok(1) | Err(Errno::EINTR | Errno::EAGAIN) => {}
                    Ok(_) | Err(_) => break,
                }
            }
            self.killing.store(true, Ordering::Relaxed);
            self.kill_all();
        }

        fn kill_all(&self) {
            let until = Instant::now() + KILLED;
            let mut pause = Duration::from_micros(500);
            while self.signal(Signal::SIGKILL) > 0 && Instant::now() < until {
                sleep(pause);
                pause = (pause * 2).min(LOOK_EVERY);
            }
        }

        /// Reaps processes until the program and everything that it started have ended. Returns the program's
        /// exit code.
        fn wait(&self, program: Pid) -> u8 {
            let mut code = None;
            loop {
                // Only a peek, so that the id stays reserved until the lock is held.
                let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
                if matches!(waitid(Id::All, look), Err(Errno::ECHILD)) {
                    return code.unwrap_or(1);
                }
                let any_left = self.collect(program, &mut code);
                if let Some(code) = code {
                    if any_left {
                        self.clear(program);
                    }
                    return code;
                }
            }
        }

        /// Reaps all processes that have ended. Returns whether there are others.
        fn collect(&self, program: Pid, code: &mut Option<u8>) -> bool {
            let _collecting = self.lock();
            loop {
                match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                    Ok(WaitStatus::Exited(id, value)) if id == program => {
                        *code = Some(u8::try_from(value & 0xff).unwrap_or(1));
                    }
                    Ok(WaitStatus::Signaled(id, signal, _)) if id == program => {
                        *code = Some(u8::try_from(128 + signal as i32).unwrap_or(1));
                    }
                    Ok(WaitStatus::StillAlive) => return true,
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(_) => return false,
                }
            }
        }

        /// Ends the processes that the program left.
        fn clear(&self, program: Pid) {
            let begun = Instant::now();
            let (mut asked, mut pause) = (false, Duration::from_micros(500));
            while self.collect(program, &mut None) && begun.elapsed() < KILLED {
                let passed = begun.elapsed();
                if self.killing.load(Ordering::Relaxed) || passed > DRAIN + POLITE {
                    self.signal(Signal::SIGKILL);
                } else if passed > DRAIN && !asked {
                    asked = true;
                    pause = Duration::from_micros(500);
                    self.signal(Signal::SIGTERM);
                }
                sleep(pause);
                pause = (pause * 2).min(LOOK_EVERY);
            }
        }

        /// Signals every descendant as it is found. Returns their number.
        ///
        /// In the order of their ids, which is mostly the order of their start: a process that keeps forking
        /// is found at the end of the list. A killed group cannot fork any more.
        fn signal(&self, signal: Signal) -> usize {
            let _collecting = self.lock();
            let mut known = HashSet::from([self.own.as_raw()]);
            let mut groups = HashSet::from([self.own.as_raw()]);
            for id in numbers() {
                let Some(process) = Process::read(id) else { continue };
                if !known.contains(&process.parent) || process.is_over || id == self.own.as_raw() {
                    continue;
                }
                known.insert(id);
                // Each may have ended meanwhile, which is fine.
                if groups.insert(process.group) {
                    let _ = killpg(Pid::from_raw(process.group), signal);
                }
                let _ = kill(Pid::from_raw(id), signal);
                if signal != Signal::SIGKILL {
                    // A stopped process handles no other signal.
                    let _ = kill(Pid::from_raw(id), Signal::SIGCONT);
                }
            }
            known.len() - 1
        }

        fn lock(&self) -> MutexGuard<'_, ()> {
            self.collecting.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    /// The ids of all processes, sorted.
    fn numbers() -> Vec<i32> {
        let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
        let mut numbers: Vec<i32> =
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }

    struct Process {
        parent: i32,
        group: i32,
        /// It has ended but was not reaped.
        is_over: bool,
    }

    impl Process {
        fn read(id: i32) -> Option<Self> {
            let stat = std::fs::read(format!("/proc/{id}/stat")).ok()?;
            // The name is in parentheses and may contain anything, including parentheses.
            let end = stat.iter().rposition(|byte| *byte == b')')?;
            let text = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
            let mut fields = text.split_ascii_whitespace();
            let state = fields.next()?;
            let parent = fields.next()?.parse().ok()?;
            let group = fields.next()?.parse().ok()?;
            Some(Self { parent, group, is_over: matches!(state, "Z" | "X") })
        }
    }

    /// Kills all processes with a mark, for a command that has removed its supervisor.
    pub(crate) fn kill_marked(mark: &str) {
        let entry = format!("{}={mark}", super::MARK);
        let until = Instant::now() + KILLED;
        loop {
            let mut found = false;
            for id in numbers() {
                let Ok(variables) = std::fs::read(format!("/proc/{id}/environ")) else { continue };
                let is_over = Process::read(id).is_none_or(|process| process.is_over);
                if !is_over && variables.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes())
                {
                    found = true;
                    let _ = kill(Pid::from_raw(id), Signal::SIGKILL);
                }
            }
            if !found || Instant::now() > until {
                return;
            }
            sleep(LOOK_EVERY);
        }
    }
}
