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
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::time::{Instant, sleep};
use tokio_util::codec::{FramedWrite, LinesCodec, LinesCodecError};

/// The longest accepted message.
const MAX_LINE_BYTES: usize = 64 << 20;
/// How much output may wait for the editor.
const MAX_WAITING_BYTES: u64 = 8 << 20;
/// How long an editor may read nothing while too much output waits.
const STALL_DEADLINE: Duration = Duration::from_secs(60);
/// How long the end of the input waits for the answers to earlier requests.
const LAST_ANSWERS: Duration = Duration::from_millis(500);
/// The interval between two looks at the waiting output.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Reads messages. A line that is too long or no text becomes a line that is no JSON, so the editor gets a parse error and
/// the connection goes on. The end of the input ends the connection, so it waits a little for answers.
pub(crate) fn lines(
    input: impl AsyncRead + Send + 'static,
    backlog: Backlog,
) -> impl Stream<Item = io::Result<String>> + Send {
    let start = (Box::pin(BufReader::new(input)), backlog);
    let lines = futures_util::stream::unfold(start, |(mut input, backlog)| async move {
        loop {
            let item = match next_line(&mut input, MAX_LINE_BYTES).await {
                Ok(Some(Line::Text(line))) if line.trim().is_empty() => continue,
                Ok(Some(Line::Text(line))) => {
                    backlog.received(&line);
                    Ok(line)
                }
                Ok(Some(Line::TooLong)) => Ok("the message is too long".to_owned()),
                Ok(Some(Line::NotText)) => Ok("the message is not UTF-8".to_owned()),
                Ok(None) => {
                    backlog.answered().await;
                    return None;
                }
                Err(error) => Err(error),
            };
            return Some((item, (input, backlog)));
        }
    });
    Box::pin(lines)
}

/// The parts of a message that tell its kind.
#[derive(Deserialize)]
struct Kind {
    id: Option<IgnoredAny>,
    method: Option<IgnoredAny>,
}

/// How much output and how many answers wait for the editor.
#[derive(Debug, Clone, Default)]
pub(crate) struct Backlog {
    queued: Arc<AtomicU64>,
    written: Arc<AtomicU64>,
    /// The requests of the editor without an answer.
    open: Arc<AtomicU64>,
}

impl Backlog {
    /// Counts a message that is about to be queued.
    pub(crate) fn add(&self, bytes: usize) {
        self.queued.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn received(&self, line: &str) {
        if matches!(serde_json::from_str(line), Ok(Kind { id: Some(_), method: Some(_) })) {
            self.open.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn sent(&self, line: &str) {
        self.written.fetch_add(line.len() as u64, Ordering::Relaxed);
        // Updates are most of the output. They are not read again.
        let has_answer = self.open.load(Ordering::Relaxed) > 0;
        if has_answer && matches!(serde_json::from_str(line), Ok(Kind { id: Some(_), method: None })) {
            // The answer to a line that is no request has no request to count.
            let less = |open: u64| open.checked_sub(1);
            let _: Result<u64, u64> = self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
    }

    /// Waits until every request is answered, but not for the end of a turn.
    async fn answered(&self) {
        let until = Instant::now() + LAST_ANSWERS;
        while self.open.load(Ordering::Relaxed) > 0 && Instant::now() < until {
            sleep(LOOK_EVERY).await;
        }
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
        self.backlog.sent(&line);
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
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_line_that_is_no_text_does_not_end_the_stream() {
        let input: &[u8] = b"{\"a\":1}\n\n\xff\xfe\n{\"b\":2}\nlast";
        let read: Vec<_> = lines(input, Backlog::default()).map(|line| line.expect("a line")).collect().await;
        assert_eq!(read, [r#"{"a":1}"#, "the message is not UTF-8", r#"{"b":2}"#, "last"]);
    }

    #[tokio::test]
    async fn an_invalid_line_at_the_end_of_what_has_arrived_does_not_end_the_stream() {
        let (input, mut output) = tokio::io::duplex(64);
        let mut read = Box::pin(lines(input, Backlog::default()));
        for (sent, expected) in [(&b"\xff\n"[..], "the message is not UTF-8"), (b"{}\n", "{}")] {
            tokio::io::AsyncWriteExt::write_all(&mut output, sent).await.expect("room");
            assert_eq!(read.next().await.expect("a line").expect("a line"), expected);
        }
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_does_not_end_the_stream() {
        let mut input = vec![b'x'; MAX_LINE_BYTES + 10];
        input.extend_from_slice(b"\n{}\n");
        let read: Vec<_> = lines(io::Cursor::new(input), Backlog::default())
            .map(|line| line.expect("a line"))
            .collect()
            .await;
        assert_eq!(read, ["the message is too long", "{}"]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_input_waits_for_an_answer() {
        let backlog = Backlog::default();
        let asked = br#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#;
        let mut read = Box::pin(lines(&asked[..], backlog.clone()));
        assert!(read.next().await.is_some());
        let mut end = Box::pin(read.next());
        assert!(timeout(LOOK_EVERY * 3, &mut end).await.is_err(), "there is no answer");
        backlog.sent(r#"{"jsonrpc":"2.0","method":"session/update"}"#);
        assert!(timeout(LOOK_EVERY * 3, &mut end).await.is_err(), "an update is no answer");
        backlog.sent(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert!(timeout(LOOK_EVERY * 3, &mut end).await.expect("it ends").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_input_does_not_wait_for_a_turn() {
        let asked = br#"{"jsonrpc":"2.0","id":1,"method":"session/prompt"}"#;
        let read: Vec<_> = lines(&asked[..], Backlog::default()).collect().await;
        assert_eq!(read.len(), 1);
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
