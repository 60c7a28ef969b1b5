//! A program in a pseudo-terminal.
//!
//! It is confined like every program, so no process survives the terminal. The terminal needs a
//! supervisor, which makes it the terminal of the program's session.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::pty::{PtyMaster, grantpt, posix_openpt, unlockpt};
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;

use super::Command;
use super::held::{Confinement, Ends, Held, Input};
use crate::Error;

/// The time after which input that the program does not read is dropped.
const WRITE_DEADLINE: Duration = Duration::from_secs(10);

/// The user's end of a terminal.
#[derive(Debug)]
pub struct Screen(AsyncFd<PtyMaster>);

/// The program of a terminal. Its processes are killed when this is dropped.
#[derive(Debug)]
pub struct Seated {
    held: Held,
    /// The process id.
    pub id: u32,
}

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy)]
pub struct TerminalSize {
    pub rows: u16,
    pub columns: u16,
}

/// Starts a program in a new terminal of this size.
pub fn open_terminal(command: &Command, size: TerminalSize) -> Result<(Seated, Screen), Error> {
    let failed = |source| Error::Start { program: command.program.clone(), source };
    if command.confinement == Confinement::Group {
        return Err(failed(std::io::Error::new(ErrorKind::Unsupported, "terminals need a supervisor")));
    }
    let (master, path) = open().map_err(failed)?;
    #[expect(deprecated, reason = "its replacement is unsafe; nothing else owns the descriptor")]
    let master = AsyncFd::new(master).map_err(failed)?;
    let screen = Screen(master);
    screen.resize(size.rows, size.columns).map_err(failed)?;
    // It must not become the terminal of this process.
    let flags = OFlag::O_NOCTTY.bits();
    let seat = File::options().read(true).write(true).custom_flags(flags).open(&path).map_err(failed)?;
    let ends = Ends {
        input: Input::Terminal(&path),
        stdout: Stdio::from(seat.try_clone().map_err(failed)?),
        stderr: Stdio::from(seat),
    };
    let held = Held::start(command, None, ends)?;
    let id = held.id().unwrap_or_default();
    Ok((Seated { held, id }, screen))
}

#[cfg(target_os = "linux")]
fn open() -> std::io::Result<(PtyMaster, PathBuf)> {
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    let master = posix_openpt(flags)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let path = nix::pty::ptsname_r(&master)?.into();
    Ok((master, path))
}

#[cfg(not(target_os = "linux"))]
fn open() -> std::io::Result<(PtyMaster, PathBuf)> {
    Err(std::io::Error::new(ErrorKind::Unsupported, "terminals are not offered on this system"))
}

impl Screen {
    /// Reads the output of the program. Returns 0 when it has ended.
    pub async fn read(&self, buffer: &mut [u8]) -> usize {
        loop {
            let Ok(mut ready) = self.0.readable().await else { return 0 };
            match ready.try_io(|master| master.get_ref().read(buffer)) {
                Ok(Ok(count)) => return count,
                Ok(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
                // A terminal without a program returns an error.
                Ok(Err(_)) => return 0,
                Err(_) => {}
            }
        }
    }

    /// Writes input. Input that the program does not read in time is dropped.
    pub async fn write(&self, mut typed: &[u8]) {
        let writing = async {
            while !typed.is_empty() {
                let Ok(mut ready) = self.0.writable().await else { return };
                match ready.try_io(|master| master.get_ref().write(typed)) {
                    Ok(Ok(count)) => typed = typed.get(count..).unwrap_or_default(),
                    Ok(Err(error)) if error.kind() == ErrorKind::Interrupted => {}
                    Ok(Err(_)) => return,
                    Err(_) => {}
                }
            }
        };
        // The user sees that nothing happens.
        drop(timeout(WRITE_DEADLINE, writing).await);
    }

    /// Changes the size and notifies the program.
    pub fn resize(&self, rows: u16, columns: u16) -> std::io::Result<()> {
        let size = rustix::termios::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(rustix::termios::tcsetwinsize(self.0.get_ref(), size)?)
    }
}

impl Seated {
    /// Waits for the end of the program and everything that it started. Returns the exit code.
    pub async fn wait(&mut self) -> i32 {
        self.held.wait().await
    }

    /// Ends all its processes, first with TERM, then with KILL.
    pub async fn end(mut self) {
        self.held.ask_to_end();
        self.held.end().await;
    }
}
