//! The output of a program, within limits.
//!
//! The end is kept in memory. If the output is long, the whole is written to a file.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use tokio::fs::File;
use tokio::io::AsyncWriteExt;

/// The number of bytes in memory.
const KEPT_BYTES: usize = 1024 * 1024;
/// The limit for the size of the file. Of the rest only the end is kept.
const SPILL_BYTES: u64 = 256 * 1024 * 1024;

/// The output of a program.
#[derive(Debug)]
pub struct Output {
    kept: VecDeque<u8>,
    bytes: u64,
    newlines: usize,
    limit_lines: usize,
    limit_bytes: usize,
    spill: Spill,
}

#[derive(Debug)]
enum Spill {
    /// The output is short so far.
    Waiting(PathBuf),
    /// The output is being written to the file.
    Open { path: PathBuf, file: File, written: u64 },
    /// The file is complete.
    Closed(PathBuf),
    /// The file could not be written. Only the end in memory is left.
    Lost,
}

impl Output {
    pub(super) fn new(limit_lines: usize, limit_bytes: usize, spill: PathBuf) -> Self {
        // The file starts with the bytes in memory, so none may be dropped before it is opened.
        let limit_bytes = limit_bytes.min(KEPT_BYTES);
        let spill = Spill::Waiting(spill);
        Self { kept: VecDeque::new(), bytes: 0, newlines: 0, limit_lines, limit_bytes, spill }
    }

    pub(super) async fn push(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        if !self.is_long() {
            self.newlines += chunk.iter().filter(|byte| **byte == b'\n').count();
        }
        self.kept.extend(chunk);
        match &self.spill {
            Spill::Waiting(path) if self.is_long() => {
                let path = path.clone();
                self.spill = open(path).await;
                self.spill.write(self.kept.make_contiguous()).await;
            }
            Spill::Open { .. } => self.spill.write(chunk).await,
            Spill::Waiting(_) | Spill::Closed(_) | Spill::Lost => {}
        }
        let excess = self.kept.len().saturating_sub(KEPT_BYTES);
        self.kept.drain(..excess);
    }

    pub(super) async fn close(&mut self) {
        if let Spill::Open { path, file, .. } = &mut self.spill {
            self.spill = match file.flush().await {
                Ok(()) => Spill::Closed(std::mem::take(path)),
                Err(_) => Spill::Lost,
            };
        }
    }

    /// Whether there are more lines or bytes than the limits.
    ///
    /// A newline at the very end starts one more, empty line.
    pub fn is_long(&self) -> bool {
        self.bytes > self.limit_bytes as u64 || self.newlines >= self.limit_lines
    }

    /// The file with the output, if that was long and could be written.
    pub fn file(&self) -> Option<&Path> {
        match &self.spill {
            Spill::Closed(path) | Spill::Open { path, .. } => Some(path),
            Spill::Waiting(_) | Spill::Lost => None,
        }
    }

    /// Whether that file contains the whole output, not only the beginning.
    pub fn file_is_whole(&self) -> bool {
        self.bytes <= SPILL_BYTES
    }

    /// The output in memory, as text.
    pub fn text(&self) -> String {
        self.tail(KEPT_BYTES)
    }

    /// At most the last `bytes` bytes as text, without splitting a character.
    pub fn tail(&self, bytes: usize) -> String {
        let skip = self.kept.len().saturating_sub(bytes);
        let dropped = self.bytes > self.kept.len() as u64 || skip > 0;
        let mut tail: Vec<u8> = self.kept.range(skip..).copied().collect();
        if dropped {
            // The rest of a character whose first bytes are missing.
            let broken = tail.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
            tail.drain(..broken);
        }
        String::from_utf8_lossy(&tail).into_owned()
    }

    /// The number of bytes of the whole output.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Spill {
    async fn write(&mut self, part: &[u8]) {
        let Self::Open { file, written, .. } = self else { return };
        let room = usize::try_from(SPILL_BYTES.saturating_sub(*written)).unwrap_or(usize::MAX);
        let part = &part[..part.len().min(room)];
        *written += part.len() as u64;
        if file.write_all(part).await.is_err() {
            *self = Self::Lost;
        }
    }
}

async fn open(path: PathBuf) -> Spill {
    if let Some(directory) = path.parent()
        && tokio::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).await.is_err()
    {
        return Spill::Lost;
    }
    match File::options().write(true).create_new(true).mode(0o600).open(&path).await {
        Ok(file) => Spill::Open { path, file, written: 0 },
        Err(_) => Spill::Lost,
    }
}
