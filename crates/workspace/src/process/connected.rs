//! A program whose input and output are a connection to this process, such as a server that speaks a protocol.
//!
//! It is confined like every program, so no process survives this value or this program. Input and output
//! are one socket, because the supervisor needs its own input as lifeline. Nothing is buffered here: a program that
//! writes more than the caller reads waits.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::time::timeout;

use super::Command;
use super::held::{Confinement, Ends, Held, Input, Refusals};
use crate::Error;

/// A connected program. Its processes are killed when this is dropped.
#[derive(Debug)]
pub struct Connected {
    held: Held,
    /// `None` without a sandbox.
    refusals: Option<Refusals>,
}

/// The end of the connection: reads the output of the program and writes its input. Shutting down the writing half is
/// the end of the program's input.
pub type Peer = UnixStream;

/// Where the standard output of a program goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlet {
    /// To the connection, which the program writes to by printing.
    Connection,
    /// To its error output. The program answers on its standard input, so nothing that it prints can damage the
    /// protocol.
    Errors,
}

/// The error output of a program.
#[derive(Debug)]
pub struct Errors(Receiver);

impl Errors {
    /// Reads error output. Returns 0 when it has ended.
    pub async fn read(&mut self, buffer: &mut [u8]) -> usize {
        // A broken pipe ends the output like a closed one.
        self.0.read(buffer).await.unwrap_or(0)
    }
}

/// Starts a program and connects to its input and output.
///
/// # Errors
///
/// Fails if the program cannot be started. With a supervisor a missing program
/// ends at once with the code 127 and a line of error output.
pub fn connect(command: &Command, outlet: Outlet) -> Result<(Connected, Peer, Errors), Error> {
    let failed = |source| Error::Start { program: command.program.clone(), source };
    let (own, other) = std::os::unix::net::UnixStream::pair().map_err(failed)?;
    let (reader, writer) = std::io::pipe().map_err(failed)?;
    own.set_nonblocking(true).map_err(failed)?;
    let other = OwnedFd::from(other);
    let is_supervised = matches!(command.confinement, Confinement::Supervisor(_));
    let (input, stdout) = match outlet {
        Outlet::Connection => (Input::Connection(other.try_clone().map_err(failed)?), Stdio::from(other)),
        // The supervisor passes its own output on as the input of the program.
        Outlet::Errors if is_supervised => {
            (Input::Duplex(other.try_clone().map_err(failed)?), Stdio::from(other))
        }
        Outlet::Errors => (Input::Duplex(other), Stdio::from(writer.try_clone().map_err(failed)?)),
    };
    let ends = Ends { input, stdout, stderr: Stdio::from(writer) };
    let held = Held::start(command, None, ends)?;
    let peer = UnixStream::from_std(own).map_err(failed)?;
    let errors = Errors(Receiver::from_owned_fd(OwnedFd::from(reader)).map_err(failed)?);
    let refusals = held.refusals().filter(|_| command.sandbox.is_some());
    Ok((Connected { held, refusals }, peer, errors))
}

impl Connected {
    /// The id of the started process.
    pub(super) fn id(&self) -> Option<u32> {
        self.held.id()
    }

    /// Waits for the end of the program and everything that it started. Returns the exit code. `report` gets a sentence
    /// for each protected file that the program could not create.
    pub async fn wait(&mut self, report: &(dyn Fn(&str) + Send + Sync)) -> i32 {
        let Some(refusals) = &mut self.refusals else { return self.held.wait().await };
        let code = loop {
            tokio::select! {
                code = self.held.wait() => break code,
                paths = refusals.next() => tell(&paths, report),
            }
        };
        tell(&refusals.rest(), report);
        code
    }

    /// Ends all its processes: waits, sends TERM, then kills. The caller has closed the input. Returns the exit code if
    /// the program ended by itself.
    pub async fn end(mut self, patience: Duration, report: &(dyn Fn(&str) + Send + Sync)) -> Option<i32> {
        let code = timeout(patience, self.held.wait()).await.ok();
        if code.is_none() {
            self.held.ask_to_end();
        }
        self.held.end().await;
        if let Some(refusals) = &mut self.refusals {
            tell(&refusals.rest(), report);
        }
        code
    }
}

/// Reports the protected files that a program could not create.
fn tell(paths: &[PathBuf], report: &(dyn Fn(&str) + Send + Sync)) {
    for path in paths {
        report(&format!("the sandbox refused to create or change the protected `{}`", path.display()));
    }
}
