//! Buffered standard output, for commands that print much.
//!
//! On a terminal control sequences are removed, and in JSON they are escaped. A closed pipe is not an error.

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

    /// Writes a text; removes control sequences if standard output is a terminal.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        if self.is_terminal {
            return self.writer.write_all(crate::clean::clean(text).as_bytes());
        }
        self.writer.write_all(text.as_bytes())
    }

    /// Writes a JSON text; escapes control characters and invisible ones if standard output is a terminal.
    pub(crate) fn write_json(&mut self, text: &str) -> io::Result<()> {
        if self.is_terminal {
            return self.writer.write_all(crate::clean::escape_json(text).as_bytes());
        }
        self.writer.write_all(text.as_bytes())
    }

    /// Writes a value as indented JSON and a line feed.
    pub(crate) fn write_value(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        self.write_json(&format!("{}\n", serde_json::to_string_pretty(value)?))
    }

    /// Flushes the buffer.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// The exit code of a command after writing to standard output. A closed pipe is reported by the exit code only,
/// because a reader such as `head` closes it on purpose.
pub(crate) fn exit_code(result: io::Result<()>) -> anyhow::Result<ExitCode> {
    match result {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ExitCode::FAILURE),
        Err(error) => Err(error).context("cannot write to standard output"),
    }
}
