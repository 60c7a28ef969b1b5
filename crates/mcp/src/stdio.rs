//! The transport over the input and output of a process.
//!
//! Each line is a message. Lines that are no messages are ignored and counted, because many programs print to their
//! output by mistake. A line that is too long is skipped; if it answers a request, that request fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ErrorCode, ErrorData, NumberOrString, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Mutex;
use tokio::time::timeout;

/// The longest message.
pub(crate) const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// The time in which a server must read a message.
const WRITE_DEADLINE: Duration = Duration::from_secs(30);
/// The capacity that the buffer keeps after a long message.
const KEPT_BYTES: usize = 64 * 1024;
/// The size of one read.
const CHUNK_BYTES: usize = 32 * 1024;
/// The part of a skipped line in which its id is searched.
const EDGE_BYTES: usize = 256;

/// The connection to a process.
pub(crate) struct Stdio {
    reader: OwnedReadHalf,
    writer: Arc<Mutex<Option<OwnedWriteHalf>>>,
    lines: Lines,
    strays: Arc<AtomicUsize>,
}

impl Stdio {
    pub(crate) fn new(reader: OwnedReadHalf, writer: OwnedWriteHalf, strays: Arc<AtomicUsize>) -> Self {
        Self { reader, writer: Arc::new(Mutex::new(Some(writer))), lines: Lines::default(), strays }
    }
}

impl Transport<RoleClient> for Stdio {
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let writer = self.writer.clone();
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let mut writer = writer.lock().await;
            let Some(open) = writer.as_mut() else { return Err(std::io::ErrorKind::BrokenPipe.into()) };
            match timeout(WRITE_DEADLINE, open.write_all(&line)).await {
                Ok(written) => written,
                Err(_) => {
                    // A part of the line may be written, so no other message can follow.
                    *writer = None;
                    Err(std::io::Error::other("the server does not read its input"))
                }
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            match self.lines.next() {
                Some(Line::Message(message)) => return Some(*message),
                Some(Line::Stray) => {
                    self.strays.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                None => {}
            }
            // Cancelling the read loses nothing.
            self.lines.buffer.reserve(CHUNK_BYTES);
            match self.reader.read_buf(&mut self.lines.buffer).await {
                Ok(count) if count > 0 => {}
                Ok(_) | Err(_) => return None,
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // Dropping the writing half ends the input of the process.
        if let Ok(mut writer) = self.writer.try_lock() {
            *writer = None;
        }
        Ok(())
    }
}

/// Cuts a stream into messages.
#[derive(Default)]
struct Lines {
    buffer: Vec<u8>,
    /// The beginning of the current line.
    start: usize,
    /// The line contains no end before this position.
    scanned: usize,
    skipped: Option<Skipped>,
}

/// The edges of a line that is too long.
#[derive(Default)]
struct Skipped {
    head: Vec<u8>,
    tail: Vec<u8>,
}

enum Line {
    Message(Box<ServerJsonRpcMessage>),
    /// It is no message.
    Stray,
}

impl Lines {
    /// The next complete line, or `None` if more must be read.
    fn next(&mut self) -> Option<Line> {
        loop {
            let unread = self.buffer.get(self.scanned..).unwrap_or_default();
            let Some(length) = unread.iter().position(|byte| *byte == b'\n') else {
                self.settle();
                return None;
            };
            let end = self.scanned + length;
            let line = self.buffer.get(self.start..end).unwrap_or_default();
            let found = match self.skipped.take() {
                Some(mut skipped) => {
                    skipped.push(line);
                    Some(skipped.answer())
                }
                None => message(line),
            };
            self.start = end + 1;
            self.scanned = end + 1;
            if found.is_some() {
                return found;
            }
        }
    }

    /// Removes what was read from the buffer.
    fn settle(&mut self) {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.scanned = self.buffer.len();
        if self.skipped.is_some() || self.buffer.len() > MAX_MESSAGE_BYTES {
            self.skipped.get_or_insert_default().push(&self.buffer);
            self.buffer.clear();
            self.scanned = 0;
        }
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_BYTES {
            self.buffer = Vec::new();
        }
    }
}

impl Skipped {
    fn push(&mut self, bytes: &[u8]) {
        let room = EDGE_BYTES - self.head.len();
        self.head.extend(bytes.iter().take(room));
        self.tail.extend(bytes.iter().skip(bytes.len().saturating_sub(EDGE_BYTES)));
        let surplus = self.tail.len().saturating_sub(EDGE_BYTES);
        self.tail.drain(..surplus);
    }

    /// The error for the request that the line answers, if its id can be found.
    fn answer(&self) -> Line {
        let Some(id) = id_in(&self.tail, true).or_else(|| id_in(&self.head, false)) else {
            return Line::Stray;
        };
        let megabytes = MAX_MESSAGE_BYTES / 1024 / 1024;
        let text = format!("the answer is larger than {megabytes} MiB");
        let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, text, None);
        Line::Message(Box::new(ServerJsonRpcMessage::error(error, Some(NumberOrString::Number(id)))))
    }
}

/// The number after the first or last key `id` in a piece of a message.
fn id_in(piece: &[u8], is_last: bool) -> Option<i64> {
    let text = String::from_utf8_lossy(piece);
    let key = "\"id\":";
    let at = if is_last { text.rfind(key) } else { text.find(key) }?;
    let digits: String =
        text[at + key.len()..].trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The message in a line. `None` if the line is empty.
fn message(line: &[u8]) -> Option<Line> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    let decoded = match std::str::from_utf8(line) {
        Ok(text) => serde_json::from_str(text),
        // A text that is not UTF-8 is damaged and the rest is usable.
        Err(_) => serde_json::from_str(&String::from_utf8_lossy(line)),
    };
    Some(decoded.map_or(Line::Stray, |message| Line::Message(Box::new(message))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> (Vec<String>, usize) {
        let mut lines = Lines::default();
        let (mut messages, mut strays) = (Vec::new(), 0);
        for piece in pieces {
            lines.buffer.extend_from_slice(piece);
            while let Some(line) = lines.next() {
                match line {
                    Line::Message(message) => messages.push(serde_json::to_string(&message).unwrap()),
                    Line::Stray => strays += 1,
                }
            }
            assert!(lines.buffer.len() <= MAX_MESSAGE_BYTES);
        }
        (messages, strays)
    }

    #[test]
    fn stray_lines_are_ignored() {
        let stream = b"Server ready\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"b\"}}\r\n{]\n";
        let whole = read(&[stream]);
        assert_eq!((whole.0.len(), whole.1), (1, 2));
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(read(&bytes), whole);
    }

    #[test]
    fn text_that_is_not_utf8_is_replaced() {
        let (messages, strays) = read(&[b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xff\"}}\n"]);
        assert!(strays == 0 && messages[0].contains('\u{fffd}'), "{messages:?}");
    }

    #[test]
    fn a_flood_fails_its_request_and_nothing_else() {
        let junk = vec![b'x'; 1024 * 1024];
        let mut pieces: Vec<&[u8]> = vec![b"{\"jsonrpc\":\"2.0\",\"result\":{\"a\":\""];
        pieces.extend(std::iter::repeat_n(&junk[..], 100));
        pieces.push(b"\"},\"id\":7}\n{\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{\"a\":1}}\n");
        let (messages, strays) = read(&pieces);
        assert_eq!((messages.len(), strays), (2, 0));
        assert!(
            messages[0].contains("larger than 16 MiB") && messages[0].contains("\"id\":7"),
            "{messages:?}"
        );
    }
}
