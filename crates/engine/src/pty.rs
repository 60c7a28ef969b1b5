//! Terminals of clients: their programs, their output and the connections to them.
//!
//! The output of a program is kept in a bounded buffer that every connection reads at its own pace. A late connection
//! starts where it wants, and a slow one misses the dropped output without affecting others. A terminal ends with its
//! program, when it is closed, or with the server.

mod operations;

use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codewright_proto::{Pty, PtyId};
use codewright_workspace::{Screen, TerminalSize};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::error::Resource;

/// The number of open terminals.
const MAX_OPEN: usize = 64;
/// The bytes of output that are kept for later connections.
const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// The bytes of one read.
const CHUNK_BYTES: usize = 16 * 1024;
/// The size of a terminal until a client changes it.
const SIZE: TerminalSize = TerminalSize { rows: 24, columns: 80 };
/// The lifetime of a ticket in seconds.
const TICKET_SECONDS: u64 = 60;
/// The number of unused tickets.
const MAX_TICKETS: usize = 256;
/// Shells without POSIX syntax.
const UNLIKE_OTHERS: [&str; 2] = ["fish", "nu"];
/// The file that lists the system's shells, and how many bytes are read.
const SHELLS: (&str, u64) = ("/etc/shells", 64 * 1024);

/// The open terminals of a process.
#[derive(Default)]
pub(crate) struct Terminals {
    open: Mutex<BTreeMap<PtyId, Arc<Terminal>>>,
    /// The terminal and expiry of each ticket.
    tickets: Mutex<HashMap<String, (PtyId, u64)>>,
}

struct Terminal {
    info: Mutex<Pty>,
    directory: PathBuf,
    screen: Screen,
    text: Mutex<Text>,
    /// Notifies about new output; closed when the program has ended.
    grown: watch::Sender<()>,
    closing: CancellationToken,
}

/// The end of a terminal's output. Positions are counted in UTF-16 units, as in JavaScript.
#[derive(Default)]
struct Text {
    kept: String,
    start: u64,
    /// The start of an incomplete character.
    broken: Vec<u8>,
    is_over: bool,
}

/// A connection to a terminal.
pub struct Attached {
    terminal: Arc<Terminal>,
    grown: watch::Receiver<()>,
    at: u64,
}

impl Attached {
    /// Returns the new output without waiting.
    pub fn news(&mut self) -> String {
        let text = lock(&self.terminal.text);
        let (news, end) = text.since(self.at);
        self.at = end;
        news.to_owned()
    }

    /// Waits for the next output. Returns `None` when the program has ended.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            self.grown.borrow_and_update();
            let is_over = lock(&self.terminal.text).is_over;
            let news = self.news();
            if !news.is_empty() {
                return Some(news);
            }
            // This connection keeps the terminal open, so only its end could be missed, and that was checked above.
            if is_over || self.grown.changed().await.is_err() {
                return None;
            }
        }
    }

    /// Returns the position up to which this connection has read.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Sends input to the program.
    pub async fn write(&self, typed: &[u8]) {
        self.terminal.screen.write(typed).await;
    }
}

impl Terminals {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<PtyId, Arc<Terminal>>> {
        lock(&self.open)
    }

    fn find(&self, id: &PtyId) -> Result<Arc<Terminal>, Error> {
        self.lock().get(id).cloned().ok_or_else(|| Error::not_found(Resource::Terminal, id))
    }
}

impl Terminal {
    fn info(&self) -> Pty {
        lock(&self.info).clone()
    }
}

impl Text {
    fn push(&mut self, bytes: &[u8]) {
        self.broken.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.broken);
        let mut rest = bytes.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.kept.push_str(text);
                    break;
                }
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    self.kept.push_str(&String::from_utf8_lossy(good));
                    let Some(length) = error.error_len() else {
                        self.broken = bad.to_vec();
                        break;
                    };
                    self.kept.push(char::REPLACEMENT_CHARACTER);
                    rest = &bad[length..];
                }
            }
        }
        let excess = self.kept.len().saturating_sub(MAX_TEXT_BYTES);
        if excess > 0 {
            let cut = self.kept.ceil_char_boundary(excess);
            self.start += units(&self.kept[..cut]);
            self.kept.drain(..cut);
        }
    }

    fn end(&self) -> u64 {
        self.start + units(&self.kept)
    }

    /// Returns the output after a position, or all that is left, and the end position.
    fn since(&self, position: u64) -> (&str, u64) {
        let mut skip = position.saturating_sub(self.start);
        let at = self.kept.char_indices().find(|(_, c)| {
            let is_there = skip == 0;
            skip = skip.saturating_sub(c.len_utf16() as u64);
            is_there
        });
        let news = at.map_or("", |(at, _)| &self.kept[at..]);
        (news, self.end())
    }
}

fn units(text: &str) -> u64 {
    text.chars().map(|c| c.len_utf16() as u64).sum()
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change under these locks is complete in itself.
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a random UUID.
fn secret() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_read_from_any_position_without_splitting_characters() {
        let mut text = Text::default();
        for byte in "a\u{e4}\u{1f600}b".bytes() {
            text.push(&[byte]);
        }
        assert_eq!(text.end(), 5);
        for (position, rest) in
            [(0, "a\u{e4}\u{1f600}b"), (1, "\u{e4}\u{1f600}b"), (2, "\u{1f600}b"), (4, "b"), (5, ""), (9, "")]
        {
            assert_eq!(text.since(position), (rest, 5), "{position}");
        }
        text.push(b"\xff\xc3");
        assert_eq!(text.since(5), ("\u{fffd}", 6));
    }

    #[test]
    fn output_is_bounded_and_positions_stay_valid() {
        let mut text = Text::default();
        for _ in 0..100 {
            text.push(&[b'x'; 20_000]);
        }
        text.push("\u{e4}end".as_bytes());
        assert_eq!((text.end(), text.kept.len() <= MAX_TEXT_BYTES), (2_000_004, true));
        assert_eq!(text.since(2_000_001).0, "end");
        assert_eq!(text.since(0).0.len(), text.kept.len());
    }

    #[test]
    fn secrets_are_unique() {
        let (one, other) = (secret().unwrap(), secret().unwrap());
        assert!(one != other && one.len() == 36, "{one} {other}");
    }
}
