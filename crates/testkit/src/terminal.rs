//! Runs a program on a pseudo-terminal and reads its screen.

use std::ffi::OsStr;
use std::io::{Read as _, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::Project;

/// The longest wait for a change of the screen.
const DEADLINE: Duration = Duration::from_secs(60);
/// The interval at which the screen is read.
const POLL: Duration = Duration::from_millis(20);
/// A screen is settled when it did not change for this long.
const STILL: Duration = Duration::from_millis(700);
/// How long to wait for the last output when other processes keep the terminal open.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

/// A program and its environment.
#[derive(Debug, Clone, Copy)]
pub struct TerminalOptions<'a> {
    /// The program.
    pub program: &'a OsStr,
    /// Its arguments.
    pub args: &'a [&'a str],
    /// The project, whose directory and environment it has.
    pub project: &'a Project,
    /// More variables, which override those of the project.
    pub variables: &'a [(&'a str, &'a str)],
    /// The number of columns and rows.
    pub size: (u16, u16),
}

/// A program on a pseudo-terminal; dropping it kills the program.
pub struct Terminal {
    output: Arc<Mutex<Output>>,
    reader: JoinHandle<()>,
    writer: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
}

/// The output of the program and the screen it makes.
struct Output {
    parser: vt100::Parser,
    bytes: Vec<u8>,
}

impl Terminal {
    /// Starts a program.
    pub fn start(options: &TerminalOptions<'_>) -> Result<Self> {
        let (cols, rows) = options.size;
        let pair = native_pty_system().openpty(PtySize { rows, cols, ..PtySize::default() })?;
        let mut command = CommandBuilder::new(options.program);
        command.args(options.args);
        command.cwd(options.project.directory());
        command.env_clear();
        for (name, value) in options.project.environment() {
            command.env(name, value);
        }
        let defaults = [
            ("TERM", "xterm-256color"),
            ("OPENCODE_DISABLE_LOCAL_SERVERS", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ];
        for (name, value) in defaults.iter().chain(options.variables) {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command)?;
        // Only the program may hold the terminal, so that reading ends when it ends.
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader()?;
        let writer = pair.master.take_writer()?;
        let output = Output { parser: vt100::Parser::new(rows, cols, 0), bytes: Vec::new() };
        let output = Arc::new(Mutex::new(output));
        let written = Arc::clone(&output);
        let reader = thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                let mut output = lock(&written);
                output.parser.process(&buffer[..count]);
                output.bytes.extend_from_slice(&buffer[..count]);
            }
        });
        Ok(Self { output, reader, writer, child, master: pair.master })
    }

    /// Sends keys.
    pub fn send(&mut self, keys: &str) -> Result<()> {
        self.writer.write_all(keys.as_bytes())?;
        Ok(self.writer.flush()?)
    }

    /// Changes the number of columns and rows.
    pub fn resize(&self, (cols, rows): (u16, u16)) -> Result<()> {
        lock(&self.output).parser.screen_mut().set_size(rows, cols);
        self.master.resize(PtySize { rows, cols, ..PtySize::default() })
    }

    /// Returns the current screen.
    #[must_use]
    pub fn screen(&self) -> vt100::Screen {
        lock(&self.output).parser.screen().clone()
    }

    /// Returns everything that the program has written.
    #[must_use]
    pub fn written(&self) -> String {
        String::from_utf8_lossy(&lock(&self.output).bytes).into_owned()
    }

    /// Waits until the screen shows a text, and returns the screen.
    pub fn shows(&self, text: &str) -> Result<String> {
        self.until(text, |screen| screen.contains(text))
    }

    /// Waits until the screen does not show a text, and returns the screen.
    pub fn hides(&self, text: &str) -> Result<String> {
        self.until(&format!("the end of {text}"), |screen| !screen.contains(text))
    }

    /// Waits until `holds` is true for the text of the screen, and returns the text.
    pub fn until(&self, what: &str, holds: impl Fn(&str) -> bool) -> Result<String> {
        let until = Instant::now() + DEADLINE;
        loop {
            let screen = self.screen().contents();
            if holds(&screen) {
                return Ok(screen);
            }
            if Instant::now() > until {
                bail!("`{what}` did not appear within {DEADLINE:?}:\n{screen}");
            }
            thread::sleep(POLL);
        }
    }

    /// Waits until the screen does not change any more, and returns it. `still` removes text that always changes.
    pub fn settled(&self, still: impl Fn(&str) -> String) -> Result<vt100::Screen> {
        let until = Instant::now() + DEADLINE;
        let current = || still(&self.screen().contents());
        let (mut before, mut since) = (current(), Instant::now());
        while since.elapsed() < STILL {
            if Instant::now() > until {
                bail!("the screen does not stop changing:\n{before}");
            }
            thread::sleep(POLL);
            let now = current();
            if now != before {
                (before, since) = (now, Instant::now());
            }
        }
        Ok(self.screen())
    }

    /// Waits until the program has ended, and returns its exit code and everything it wrote.
    pub fn ended(mut self) -> Result<(u32, String)> {
        let until = Instant::now() + DEADLINE;
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if Instant::now() > until {
                bail!("the program did not end:\n{}", self.screen().contents());
            }
            thread::sleep(POLL);
        };
        // The last output is read when the reader has ended.
        let until = Instant::now() + DRAIN_LIMIT;
        while !self.reader.is_finished() && Instant::now() < until {
            thread::sleep(POLL);
        }
        Ok((status.exit_code(), self.written()))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It has usually ended already, and an error changes nothing.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Locks the output. A poisoned lock is fine, because a screen is always complete.
fn lock(output: &Mutex<Output>) -> MutexGuard<'_, Output> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}
