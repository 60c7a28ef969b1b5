//! A program on a pseudo-terminal, read as a terminal shows it.

use std::ffi::OsStr;
use std::io::{Read as _, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::Project;

/// How long something is waited for.
const DEADLINE: Duration = Duration::from_secs(60);
/// How often the screen is looked at.
const POLL: Duration = Duration::from_millis(20);
/// How long a screen has to stay as it is.
const STILL: Duration = Duration::from_millis(700);
/// How long what a program left behind may keep its terminal open.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What is started on a terminal.
#[derive(Debug, Clone, Copy)]
pub struct Staged<'a> {
    /// The program.
    pub program: &'a OsStr,
    /// Its arguments.
    pub args: &'a [&'a str],
    /// Where it works; it has the project's environment.
    pub project: &'a Project,
    /// Variables that it has too, or instead.
    pub variables: &'a [(&'a str, &'a str)],
    /// Columns and rows.
    pub size: (u16, u16),
}

/// A program on a terminal of its own; it ends with this.
pub struct Terminal {
    seen: Arc<Mutex<Seen>>,
    reader: JoinHandle<()>,
    writer: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
}

/// What the program wrote, and how a terminal understands it.
struct Seen {
    parser: vt100::Parser,
    bytes: Vec<u8>,
}

impl Terminal {
    /// Starts a program.
    pub fn start(staged: &Staged<'_>) -> Result<Self> {
        let (cols, rows) = staged.size;
        let pair = native_pty_system().openpty(PtySize { rows, cols, ..PtySize::default() })?;
        let mut command = CommandBuilder::new(staged.program);
        command.args(staged.args);
        command.cwd(staged.project.directory());
        command.env_clear();
        for (name, value) in staged.project.environment() {
            command.env(name, value);
        }
        let usual = [
            ("TERM", "xterm-256color"),
            ("OPENCODE_DISABLE_LOCAL_SERVERS", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ];
        for (name, value) in usual.iter().chain(staged.variables) {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command)?;
        // The last one that holds it is the program, so that its end is seen.
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader()?;
        let writer = pair.master.take_writer()?;
        let seen = Seen { parser: vt100::Parser::new(rows, cols, 0), bytes: Vec::new() };
        let seen = Arc::new(Mutex::new(seen));
        let shared = Arc::clone(&seen);
        let reader = thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                let mut seen = locked(&shared);
                seen.parser.process(&buffer[..count]);
                seen.bytes.extend_from_slice(&buffer[..count]);
            }
        });
        Ok(Self { seen, reader, writer, child, master: pair.master })
    }

    /// Presses keys.
    pub fn send(&mut self, keys: &str) -> Result<()> {
        self.writer.write_all(keys.as_bytes())?;
        Ok(self.writer.flush()?)
    }

    /// Gives it other columns and rows.
    pub fn resize(&self, (cols, rows): (u16, u16)) -> Result<()> {
        locked(&self.seen).parser.screen_mut().set_size(rows, cols);
        self.master.resize(PtySize { rows, cols, ..PtySize::default() })
    }

    /// The screen at this moment.
    #[must_use]
    pub fn screen(&self) -> vt100::Screen {
        locked(&self.seen).parser.screen().clone()
    }

    /// All that the program has written.
    #[must_use]
    pub fn written(&self) -> String {
        String::from_utf8_lossy(&locked(&self.seen).bytes).into_owned()
    }

    /// Waits until the screen shows a text; the screen.
    pub fn shows(&self, text: &str) -> Result<String> {
        self.until(text, |screen| screen.contains(text))
    }

    /// Waits until the screen no longer shows a text; the screen.
    pub fn hides(&self, text: &str) -> Result<String> {
        self.until(&format!("the end of {text}"), |screen| !screen.contains(text))
    }

    /// Waits until something holds of the screen's text; the screen.
    pub fn until(&self, what: &str, holds: impl Fn(&str) -> bool) -> Result<String> {
        let until = Instant::now() + DEADLINE;
        loop {
            let screen = self.screen().contents();
            if holds(&screen) {
                return Ok(screen);
            }
            if Instant::now() > until {
                bail!("`{what}` did not come within {DEADLINE:?}:\n{screen}");
            }
            thread::sleep(POLL);
        }
    }

    /// The screen once nothing changes on it that `still` leaves in its text.
    pub fn settled(&self, still: impl Fn(&str) -> String) -> Result<vt100::Screen> {
        let until = Instant::now() + DEADLINE;
        let looked = || still(&self.screen().contents());
        let (mut before, mut since) = (looked(), Instant::now());
        while since.elapsed() < STILL {
            if Instant::now() > until {
                bail!("the screen does not come to rest:\n{before}");
            }
            thread::sleep(POLL);
            let now = looked();
            if now != before {
                (before, since) = (now, Instant::now());
            }
        }
        Ok(self.screen())
    }

    /// Waits until the program has ended; its exit code, and all it wrote.
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
        // What it wrote last is read when the terminal is at its end.
        let until = Instant::now() + LAST_WORDS;
        while !self.reader.is_finished() && Instant::now() < until {
            thread::sleep(POLL);
        }
        Ok((status.exit_code(), self.written()))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It has usually ended by then; whatever it does, it is of no use any more.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Nothing panics while the screen is changed, so a poisoned one is whole.
fn locked(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
