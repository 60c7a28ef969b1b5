//! A program on a pseudo-terminal, and the moment at which its screen shows something.

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
/// How long the screen may take to show what is awaited.
const DEADLINE: Duration = Duration::from_secs(120);
/// More than the program writes at once, so that most frames are one read.
const BUFFER_BYTES: usize = 64 << 10;

/// Ends what belongs to one picture.
const FRAME_END: &[u8] = b"\x1b[?2026l";

/// What the screen is to show.
#[derive(Debug, Clone)]
pub(super) enum Awaited {
    /// A text anywhere in a line.
    Text(String),
    /// This at a place.
    Cell { row: u16, column: u16, shown: String },
    /// Anything else at a place.
    Other { row: u16, column: u16, than: String },
    /// These letters one after another, whatever is between the words.
    Letters(String),
    /// The end of a frame that makes the screen another one.
    Frame { than: String },
}

/// What the terminal knows.
struct Seen {
    parser: vt100::Parser,
    awaited: Option<Awaited>,
    reached: Option<Instant>,
    /// The last bytes, as the end of a frame may come in two reads.
    last: Vec<u8>,
    is_over: bool,
}

/// A program on a terminal of its own; it ends with this.
pub(super) struct Screen {
    seen: Arc<(Mutex<Seen>, Condvar)>,
    writer: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    /// Just before the program was started.
    pub(super) begun: Instant,
    /// The terminal lives as long as this.
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
        let seen = Seen { parser, awaited: None, reached: None, last: Vec::new(), is_over: false };
        let seen = Arc::new((Mutex::new(seen), Condvar::new()));
        let shared = Arc::clone(&seen);
        thread::spawn(move || {
            let mut buffer = vec![0; BUFFER_BYTES];
            // The terminal reports an error when nobody writes to it any more.
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                let now = Instant::now();
                locked(&shared.0).drawn(&buffer[..count], now);
                shared.1.notify_all();
            }
            locked(&shared.0).is_over = true;
            shared.1.notify_all();
        });
        let begun = Instant::now();
        let child = pair.slave.spawn_command(command)?;
        Ok(Self { seen, writer, child, begun, _terminal: pair.master })
    }

    pub(super) fn send(&mut self, keys: &str) -> Result<()> {
        self.writer.write_all(keys.as_bytes())?;
        Ok(self.writer.flush()?)
    }

    /// Waits until the screen shows this, if it does not yet.
    pub(super) fn until(&self, awaited: &Awaited) -> Result<()> {
        let mut seen = locked(&self.seen.0);
        if awaited.is_shown(seen.parser.screen()) {
            // When it came was not asked for; this is not earlier.
            seen.reached = Some(Instant::now());
            return Ok(());
        }
        seen.awaited = Some(awaited.clone());
        seen.reached = None;
        self.waited(seen)
    }

    /// Presses a key; from then until the screen shows this.
    pub(super) fn pressed(&mut self, key: &str, awaited: &Awaited) -> Result<Duration> {
        {
            let mut seen = locked(&self.seen.0);
            seen.awaited = Some(awaited.clone());
            seen.reached = None;
        }
        let begun = Instant::now();
        self.send(key)?;
        self.waited(locked(&self.seen.0))?;
        Ok(self.reached()?.saturating_duration_since(begun))
    }

    fn waited(&self, seen: MutexGuard<'_, Seen>) -> Result<()> {
        let is_waiting = |seen: &mut Seen| seen.reached.is_none() && !seen.is_over;
        let (seen, _) = self
            .seen
            .1
            .wait_timeout_while(seen, DEADLINE, is_waiting)
            .unwrap_or_else(PoisonError::into_inner);
        if seen.reached.is_none() {
            let why = if seen.is_over { "the program ended" } else { "the time was over" };
            bail!("{why} before the screen showed {:?}:\n{}", seen.awaited, seen.parser.screen().contents());
        }
        Ok(())
    }

    /// When the screen last showed what was awaited.
    pub(super) fn reached(&self) -> Result<Instant> {
        locked(&self.seen.0).reached.context("nothing was awaited")
    }

    pub(super) fn contents(&self) -> String {
        locked(&self.seen.0).parser.screen().contents()
    }

    /// The row and the column of the cursor.
    pub(super) fn cursor(&self) -> (u16, u16) {
        locked(&self.seen.0).parser.screen().cursor_position()
    }

    pub(super) fn process(&self) -> Result<Pid> {
        let id = self.child.process_id().context("the program has no process")?;
        Ok(Pid::from_raw(id.cast_signed()))
    }
}

impl Seen {
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
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn locked(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
