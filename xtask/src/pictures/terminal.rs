//! The program on a terminal, until it shows what it is to show.

use std::io::{Read as _, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use codewright_testkit::Project;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// How long something is waited for.
const DEADLINE: Duration = Duration::from_secs(60);
/// How long a screen has to stay as it is.
const STILL: Duration = Duration::from_millis(700);
const POLL: Duration = Duration::from_millis(20);

type Seen = Arc<Mutex<vt100::Parser>>;

pub(super) struct Terminal {
    seen: Seen,
    writer: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
}

impl Terminal {
    pub(super) fn start(program: &Path, project: &Project, args: &[&str], size: (u16, u16)) -> Result<Self> {
        Self::start_with(program, project, (args, &[]), size)
    }

    pub(super) fn start_with(
        program: &Path,
        project: &Project,
        (args, variables): (&[&str], &[(&str, &str)]),
        (cols, rows): (u16, u16),
    ) -> Result<Self> {
        let pair = native_pty_system().openpty(PtySize { rows, cols, ..PtySize::default() })?;
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.cwd(project.directory());
        command.env_clear();
        for (name, value) in project.environment() {
            command.env(name, value);
        }
        // The project lies below it, so that its place is the same whatever the temporary directory is called.
        if let Some(home) = project.directory().parent() {
            command.env("HOME", home);
        }
        for (name, value) in [
            ("TERM", "xterm-256color"),
            ("COLORTERM", "truecolor"),
            ("TZ", "UTC"),
            ("OPENCODE_DISABLE_LOCAL_SERVERS", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ] {
            command.env(name, value);
        }
        for (name, value) in variables {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command)?;
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader()?;
        let writer = pair.master.take_writer()?;
        let seen = Arc::new(Mutex::new(vt100::Parser::new(rows, cols, 0)));
        let shared = Arc::clone(&seen);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                shared.lock().expect("nobody panics with it").process(&buffer[..count]);
            }
        });
        Ok(Self { seen, writer, child, master: pair.master })
    }

    pub(super) fn send(&mut self, keys: &str) -> Result<()> {
        self.writer.write_all(keys.as_bytes())?;
        Ok(self.writer.flush()?)
    }

    pub(super) fn resize(&mut self, (cols, rows): (u16, u16)) -> Result<()> {
        self.seen.lock().expect("nobody panics with it").screen_mut().set_size(rows, cols);
        self.master.resize(PtySize { rows, cols, ..PtySize::default() })
    }

    fn screen(&self) -> vt100::Screen {
        self.seen.lock().expect("nobody panics with it").screen().clone()
    }

    pub(super) fn until(&self, text: &str) -> Result<()> {
        self.waited(text, |screen| screen.contains(text))
    }

    pub(super) fn until_gone(&self, text: &str) -> Result<()> {
        self.waited(text, |screen| !screen.contains(text))
    }

    fn waited(&self, what: &str, holds: impl Fn(&str) -> bool) -> Result<()> {
        let until = Instant::now() + DEADLINE;
        while !holds(&self.screen().contents()) {
            if Instant::now() > until {
                bail!("`{what}` was waited for in vain:\n{}", self.screen().contents());
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// The screen once nothing but a moving mark changes on it.
    pub(super) fn settled(&self) -> Result<vt100::Screen> {
        let until = Instant::now() + DEADLINE;
        let still = || super::svg::frozen(&self.screen().contents());
        let (mut before, mut since) = (still(), Instant::now());
        while since.elapsed() < STILL {
            if Instant::now() > until {
                bail!("the screen does not come to rest:\n{before}");
            }
            thread::sleep(POLL);
            let now = still();
            if now != before {
                (before, since) = (now, Instant::now());
            }
        }
        Ok(self.screen())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It is of no use any more, whatever it does.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
