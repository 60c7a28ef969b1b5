//! Standard output of commands that print much: buffered, harmless on a terminal, and
//! silent when nobody reads on.

use std::io::{self, BufWriter, ErrorKind, IsTerminal as _, Stdout, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;

/// Standard output.
pub(crate) struct Output {
    writer: BufWriter<Stdout>,
    is_terminal: bool,
}

impl Output {
    pub(crate) fn new() -> Self {
        let stdout = io::stdout();
        Self { is_terminal: stdout.is_terminal(), writer: BufWriter::new(stdout) }
    }

    /// Writes a text, without control sequences if a terminal shows it.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        if self.is_terminal {
            return self.writer.write_all(crate::clean::clean(text).as_bytes());
        }
        self.writer.write_all(text.as_bytes())
    }

    /// Writes out what is left.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// The exit code of a command that wrote to standard output: whoever has read enough is no error.
pub(crate) fn ended(result: io::Result<()>) -> anyhow::Result<ExitCode> {
    match result {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ExitCode::FAILURE),
        Err(error) => Err(error).context("cannot write to standard output"),
    }
}
