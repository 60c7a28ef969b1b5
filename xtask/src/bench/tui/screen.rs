//! Runs a program on a pseudo-terminal and measures when its screen shows a text.

use std::io::{Read as _, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nix::unistd::Pid;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use super::super::Program;

const ROWS: u16 = 40;
const COLUMNS: u16 = 110;
/// The deadline of a change of the screen.
const DEADLINE: Duration = Duration::from_secs(120);
/// The buffer size, large enough that most frames are one read.
const BUFFER_BYTES: usize = 64 << 10;

/// The end of a synchronized update.
const FRAME_END: &[u8] = b"\x1b[?2026l";

/// A condition on the screen.
#[derive(Debug, Clone)]
pub(super) enum Awaited {
    /// A text anywhere in a line.
    Text(String),
    /// A text in a cell.
    Cell { row: u16, column: u16, shown: String },
    /// Another text in a cell.
    Other { row: u16, column: u16, than: String },
    /// A text without regard to white space.
    Letters(String),
    /// The end of a frame that changes the screen.
    Frame { than: String },
}

/// The state of the terminal.
struct State {
    parser: vt100::Parser,
    awaited: Option<Awaited>,
    reached: Option<Instant>,
    /// The last bytes, because the end of a frame may arrive in two reads.
    last: Vec<u8>,
    is_over: bool,
}

/// A program on a pseudo-terminal, killed when dropped.
pub(super) struct Screen {
    state: Arc<(Mutex<State>, Condvar)>,
    writer: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    /// The time just before the start of the program.
    pub(super) begun: Instant,
    /// Keeps the terminal open.
    _terminal: Box<dyn MasterPty + Send>,
}

impl Awaited {
    fn is_shown(&self, screen: &vt100::Screen) -> bool {
        let at = |row, column| screen.cell(row, column).map(vt100::Cell::contents);
        match self {
            Self::Text(text) => screen.contents().contains(text),
            Self::Cell { row, column, shown } => at(*row, *column).is_some_and(|it| it == shown),
            Self::Other { row, column, than } => at(*row, *column).is_some_and(|it| it != than),
            Self::Letters(text) => {
                screen.contents().split_whitespace().collect::<String>().contains(text.as_str())
            }
            Self::Frame { than } => screen.contents() != *than,
        }
    }
}

impl Screen {
    pub(super) fn start(program: &Program, args: &[&str]) -> Result<Self> {
        let size = PtySize { rows: ROWS, cols: COLUMNS, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size)?;
        let mut command = CommandBuilder::new(&program.path);
        command.args(args);
        command.cwd(program.sandbox.project());
        command.env_clear();
        for (name, value) in program.sandbox.environment() {
            command.env(name, value);
        }
        command.env("TERM", "xterm-256color");
        command.env("OPENCODE_DISABLE_LOCAL_SERVERS", "1");
        let mut reader = pair.master.try_clone_reader()?;
        let writer = pair.master.take_writer()?;
        let parser = vt100::Parser::new(ROWS, COLUMNS, 0);
        let state = State { parser, awaited: None, reached: None, last: Vec::new(), is_over: false };
        let state = Arc::new((Mutex::new(state), Condvar::new()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            let mut buffer = vec![0; BUFFER_BYTES];
            // Reading fails when no process has the terminal open.
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                let now = Instant::now();
                lock(&shared.0).drawn(&buffer[..count], now);
                shared.1.notify_all();
            }
            lock(&shared.0).is_over = true;
            shared.1.notify_all();
        });
        let begun = Instant::now();
        let child = pair.slave.spawn_command(command)?;
        Ok(Self { state, writer, child, begun, _terminal: pair.master })
    }

    pub(super) fn send(&mut self, keys: &str) -> Result<()> {
        self.writer.write_all(keys.as_bytes())?;
        Ok(self.writer.flush()?)
    }

    /// Waits until the condition holds.
    pub(super) fn until(&self, awaited: &Awaited) -> Result<()> {
        let mut state = lock(&self.state.0);
        if awaited.is_shown(state.parser.screen()) {
            // The condition holds already, so its time is at most now.
            state.reached = Some(Instant::now());
            return Ok(());
        }
        state.awaited = Some(awaited.clone());
        state.reached = None;
        self.waited(state)
    }

    /// Sends a key and returns the time until the condition holds.
    pub(super) fn pressed(&mut self, key: &str, awaited: &Awaited) -> Result<Duration> {
        {
            let mut state = lock(&self.state.0);
            state.awaited = Some(awaited.clone());
            state.reached = None;
        }
        let begun = Instant::now();
        self.send(key)?;
        self.waited(lock(&self.state.0))?;
        Ok(self.reached()?.saturating_duration_since(begun))
    }

    fn waited(&self, state: MutexGuard<'_, State>) -> Result<()> {
        let is_waiting = |state: &mut State| state.reached.is_none() && !state.is_over;
        let (state, _) = self
            .state
            .1
            .wait_timeout_while(state, DEADLINE, is_waiting)
            .unwrap_or_else(PoisonError::into_inner);
        if state.reached.is_none() {
            let why = if state.is_over { "the program ended" } else { "the deadline passed" };
            bail!("{why} before {:?}:\n{}", state.awaited, state.parser.screen().contents());
        }
        Ok(())
    }

    /// Returns when the last condition was reached.
    pub(super) fn reached(&self) -> Result<Instant> {
        lock(&self.state.0).reached.context("no condition was reached")
    }

    pub(super) fn contents(&self) -> String {
        lock(&self.state.0).parser.screen().contents()
    }

    /// Returns the row and the column of the cursor.
    pub(super) fn cursor(&self) -> (u16, u16) {
        lock(&self.state.0).parser.screen().cursor_position()
    }

    pub(super) fn process(&self) -> Result<Pid> {
        let id = self.child.process_id().context("the program has no process")?;
        Ok(Pid::from_raw(id.cast_signed()))
    }
}

impl State {
    fn drawn(&mut self, bytes: &[u8], now: Instant) {
        self.parser.process(bytes);
        self.last.extend_from_slice(&bytes[bytes.len().saturating_sub(FRAME_END.len())..]);
        self.last.drain(..self.last.len().saturating_sub(FRAME_END.len()));
        let is_whole = self.last == FRAME_END;
        let is_shown = |it: &Awaited| {
            (is_whole || !matches!(it, Awaited::Frame { .. })) && it.is_shown(self.parser.screen())
        };
        if self.awaited.as_ref().is_some_and(is_shown) {
            self.awaited = None;
            self.reached = Some(now);
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
