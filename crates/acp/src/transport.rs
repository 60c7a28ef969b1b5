//! Lines of JSON over byte streams, with limits.
//!
//! The SDK reads lines of any length and queues any number of updates, so both are limited here.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use codewright_acp_client::{Line, next_line};
use futures_util::{Sink, Stream};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::time::{Instant, sleep};
use tokio_util::codec::{FramedWrite, LinesCodec, LinesCodecError};

/// The longest accepted message.
const MAX_LINE_BYTES: usize = 64 << 20;
/// How much output may wait for the editor.
const MAX_WAITING_BYTES: u64 = 8 << 20;
/// How long an editor may read nothing while too much output waits.
const STALL_DEADLINE: Duration = Duration::from_secs(60);
/// The interval between two looks at the waiting output.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Reads messages. A line that is too long or no text becomes a line that is no JSON, so the editor gets a parse error and
/// the connection goes on.
pub(crate) fn lines(input: impl AsyncRead + Send + 'static) -> impl Stream<Item = io::Result<String>> + Send {
    let lines = futures_util::stream::unfold(Box::pin(BufReader::new(input)), |mut input| async move {
        loop {
            let item = match next_line(&mut input, MAX_LINE_BYTES).await {
                Ok(Some(Line::Text(line))) if line.trim().is_empty() => continue,
                Ok(Some(Line::Text(line))) => Ok(line),
                Ok(Some(Line::TooLong)) => Ok("the message is too long".to_owned()),
                Ok(Some(Line::NotText)) => Ok("the message is not UTF-8".to_owned()),
                Ok(None) => return None,
                Err(error) => Err(error),
            };
            return Some((item, input));
        }
    });
    Box::pin(lines)
}

/// How much output waits for the editor.
#[derive(Debug, Clone, Default)]
pub(crate) struct Backlog {
    queued: Arc<AtomicU64>,
    written: Arc<AtomicU64>,
}

impl Backlog {
    /// Counts a message that is about to be queued.
    pub(crate) fn add(&self, bytes: usize) {
        self.queued.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn waiting(&self) -> u64 {
        self.queued.load(Ordering::Relaxed).saturating_sub(self.written.load(Ordering::Relaxed))
    }

    /// Waits until there is room. Returns false if the editor has read nothing for too long.
    pub(crate) async fn room(&self) -> bool {
        let mut written = self.written.load(Ordering::Relaxed);
        let mut since = Instant::now();
        while self.waiting() > MAX_WAITING_BYTES {
            sleep(LOOK_EVERY).await;
            let now = self.written.load(Ordering::Relaxed);
            if now != written {
                (written, since) = (now, Instant::now());
            } else if since.elapsed() > STALL_DEADLINE {
                return false;
            }
        }
        true
    }
}

/// The output of the connection, which counts what it has written.
pub(crate) struct Output<W> {
    lines: FramedWrite<W, LinesCodec>,
    backlog: Backlog,
}

impl<W: AsyncWrite + Unpin> Output<W> {
    pub(crate) fn new(output: W, backlog: Backlog) -> Self {
        Self { lines: FramedWrite::new(output, LinesCodec::new()), backlog }
    }
}

/// The error of a line as one of the stream.
fn broken(error: LinesCodecError) -> io::Error {
    match error {
        LinesCodecError::Io(error) => error,
        LinesCodecError::MaxLineLengthExceeded => io::ErrorKind::InvalidData.into(),
    }
}

impl<W: AsyncWrite + Unpin> Sink<String> for Output<W> {
    type Error = io::Error;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Sink::<String>::poll_ready(Pin::new(&mut self.lines), cx).map_err(broken)
    }

    fn start_send(mut self: Pin<&mut Self>, line: String) -> io::Result<()> {
        self.backlog.written.fetch_add(line.len() as u64, Ordering::Relaxed);
        Pin::new(&mut self.lines).start_send(line).map_err(broken)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Sink::<String>::poll_flush(Pin::new(&mut self.lines), cx).map_err(broken)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Sink::<String>::poll_close(Pin::new(&mut self.lines), cx).map_err(broken)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;

    use super::*;

    #[tokio::test]
    async fn a_line_that_is_no_text_does_not_end_the_stream() {
        let input: &[u8] = b"{\"a\":1}\n\n\xff\xfe\n{\"b\":2}\nlast";
        let read: Vec<_> = lines(input).map(|line| line.expect("a line")).collect().await;
        assert_eq!(read, [r#"{"a":1}"#, "the message is not UTF-8", r#"{"b":2}"#, "last"]);
    }

    #[tokio::test]
    async fn an_invalid_line_at_the_end_of_what_has_arrived_does_not_end_the_stream() {
        let (input, mut output) = tokio::io::duplex(64);
        let mut read = Box::pin(lines(input));
        for (sent, expected) in [(&b"\xff\n"[..], "the message is not UTF-8"), (b"{}\n", "{}")] {
            tokio::io::AsyncWriteExt::write_all(&mut output, sent).await.expect("room");
            assert_eq!(read.next().await.expect("a line").expect("a line"), expected);
        }
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_does_not_end_the_stream() {
        let mut input = vec![b'x'; MAX_LINE_BYTES + 10];
        input.extend_from_slice(b"\n{}\n");
        let read: Vec<_> = lines(io::Cursor::new(input)).map(|line| line.expect("a line")).collect().await;
        assert_eq!(read, ["the message is too long", "{}"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_editor_that_reads_nothing_is_given_up() {
        let backlog = Backlog::default();
        backlog.add(1 << 20);
        assert!(backlog.room().await, "a megabyte may wait");
        backlog.add(8 << 20);
        assert!(!backlog.room().await, "nobody reads");
    }
}
