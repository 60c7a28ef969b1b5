//! JSON-RPC over a socket, one message on each line, with bounds.
//!
//! One task reads and one writes. Everything that waits is limited: bytes to the process, open requests in both
//! directions, and time. A process that reads nothing loses its connection. A line that is not a message is logged,
//! because a library of a plugin may have written it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codewright_workspace::Peer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Failure;
use crate::protocol::{MAX_LINE_BYTES, MAX_OPEN, RpcError};

/// The messages that wait to be sent.
const MAX_QUEUED: usize = 4096;
/// The bytes that wait to be sent. Answers to several requests with the largest body fit.
const MAX_QUEUED_BYTES: usize = 64 * 1024 * 1024;
/// The bytes that wait to be sent above which messages without an answer are dropped.
const MAX_IDLE_BYTES: usize = 4 * 1024 * 1024;
/// The time in which the process must read a message.
const WRITE_DEADLINE: Duration = Duration::from_secs(30);
/// The size of one read.
const READ_BYTES: usize = 64 * 1024;
/// The characters of a line that is not a message which are logged.
const MAX_FOREIGN_CHARS: usize = 500;
/// The protocol's code for an exceeded limit.
const LIMIT: i32 = -32001;
/// The protocol's code for any other failure.
const FAILED: i32 = -32603;

/// Receives what the process sends by itself.
pub(crate) trait Inbound: Send + Sync + 'static {
    fn notified(&self, method: &str, params: &RawValue);
    /// Answers a request. Must not block.
    fn requested(&self, request: Request);
    /// Receives the beginning of a line that is not a message.
    fn foreign(&self, line: &str);
}

/// A request of the process. It is answered with an error if it is dropped.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) params: Box<RawValue>,
    id: Value,
    wire: Arc<Wire>,
    is_answered: bool,
}

impl Request {
    pub(crate) fn answer(mut self, result: Result<Value, String>) {
        self.is_answered = true;
        match result {
            Ok(result) => self.wire.answer(&self.id, &result),
            Err(message) => self.wire.refuse(&self.id, FAILED, &message),
        }
    }

    /// Parses the parameters. Answers with an error if they have another form.
    pub(crate) fn parse<T: serde::de::DeserializeOwned>(self) -> Option<(T, Self)> {
        match serde_json::from_str(self.params.get()) {
            Ok(params) => Some((params, self)),
            Err(error) => {
                let message = format!("invalid parameters of {}: {error}", self.method);
                self.answer(Err(message));
                None
            }
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.wire.serving.fetch_sub(1, Ordering::Relaxed);
        if !self.is_answered {
            self.wire.refuse(&self.id, FAILED, "the request was not answered");
        }
    }
}

/// An open connection. Clones share it.
#[derive(Clone)]
pub(crate) struct Connection(Arc<Wire>);

pub(crate) struct Wire {
    queue: mpsc::Sender<Vec<u8>>,
    queued_bytes: AtomicUsize,
    /// The requests of the process that are not answered.
    serving: AtomicUsize,
    waiting: Mutex<Waiting>,
    closed: CancellationToken,
    reason: Mutex<Option<String>>,
}

type Reply = oneshot::Sender<Result<Box<RawValue>, Failure>>;

#[derive(Default)]
struct Waiting {
    last: u64,
    replies: HashMap<u64, Reply>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default, borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, borrow)]
    result: Option<&'a RawValue>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct Outgoing<'a, P: Serialize> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    params: &'a P,
}

/// A request that was sent. It is forgotten when this is dropped.
pub(crate) struct Sent {
    pub(crate) id: u64,
    answer: oneshot::Receiver<Result<Box<RawValue>, Failure>>,
    wire: Arc<Wire>,
}

impl Sent {
    /// Waits for the answer.
    pub(crate) async fn answer(&mut self) -> Result<Box<RawValue>, Failure> {
        tokio::select! {
            answer = &mut self.answer => answer.unwrap_or(Err(Failure::Closed)),
            () = self.wire.closed.cancelled() => Err(Failure::Closed),
        }
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.wire.waiting().replies.remove(&self.id);
    }
}

impl Connection {
    /// Begins to read and write. The connection ends when `closed` is cancelled, and cancels it when it ends itself.
    pub(crate) fn open(
        peer: Peer,
        inbound: Arc<dyn Inbound>,
        closed: &CancellationToken,
        tasks: &TaskTracker,
    ) -> Self {
        let (queue, messages) = mpsc::channel(MAX_QUEUED);
        let wire = Arc::new(Wire {
            queue,
            queued_bytes: AtomicUsize::new(0),
            serving: AtomicUsize::new(0),
            waiting: Mutex::default(),
            closed: closed.clone(),
            reason: Mutex::default(),
        });
        let (reader, writer) = peer.into_split();
        tasks.spawn(read(wire.clone(), reader, inbound));
        tasks.spawn(write(wire.clone(), writer, messages));
        Self(wire)
    }

    /// Waits until the connection has ended.
    pub(crate) async fn ended(&self) {
        self.0.closed.cancelled().await;
    }

    /// Reports whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.closed.is_cancelled()
    }

    /// Returns the reason why the connection ended, if this side ended it.
    pub(crate) fn reason(&self) -> Option<String> {
        self.0.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the connection. The first reason counts.
    pub(crate) fn fail(&self, reason: String) {
        self.0.fail(reason);
    }

    /// Sends a notification.
    pub(crate) fn notify(&self, method: &str, params: &impl Serialize) {
        if let Ok(line) = encode(None, method, params) {
            self.0.send(line);
        }
    }

    /// Sends a notification unless the process reads too slowly. Returns whether it was sent.
    pub(crate) fn notify_if_idle(&self, method: &str, params: &impl Serialize) -> bool {
        if self.0.queued_bytes.load(Ordering::Relaxed) > MAX_IDLE_BYTES {
            return false;
        }
        self.notify(method, params);
        true
    }

    /// Sends a request.
    ///
    /// # Errors
    ///
    /// Fails if it is too long or too many requests wait.
    pub(crate) fn send(&self, method: &str, params: &impl Serialize) -> Result<Sent, Failure> {
        let (reply, answer) = oneshot::channel();
        let id = {
            let mut waiting = self.0.waiting();
            if waiting.replies.len() >= MAX_OPEN {
                let message = "too many requests wait for the process that runs plugins";
                return Err(Failure::Refused(message.to_owned()));
            }
            waiting.last += 1;
            let id = waiting.last;
            waiting.replies.insert(id, reply);
            id
        };
        let sent = Sent { id, answer, wire: self.0.clone() };
        self.0.send(encode(Some(id), method, params)?);
        Ok(sent)
    }

    /// Sends a request and waits for its answer. A process that does not answer in time is ended.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: &impl Serialize,
        limit: Duration,
    ) -> Result<Box<RawValue>, Failure> {
        let mut sent = self.send(method, params)?;
        timeout(limit, sent.answer()).await.unwrap_or(Err(Failure::Blocked))
    }
}

fn encode(id: Option<u64>, method: &str, params: &impl Serialize) -> Result<Vec<u8>, Failure> {
    let message = Outgoing { jsonrpc: "2.0", id, method, params };
    let mut line = serde_json::to_vec(&message).map_err(|error| Failure::Refused(error.to_string()))?;
    if line.len() >= MAX_LINE_BYTES {
        let mebibytes = MAX_LINE_BYTES / 1024 / 1024;
        return Err(Failure::Refused(format!("the value is larger than {mebibytes} MiB")));
    }
    line.push(b'\n');
    Ok(line)
}

impl Wire {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, reason: String) {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        self.closed.cancel();
    }

    fn send(&self, line: Vec<u8>) {
        let bytes = self.queued_bytes.fetch_add(line.len(), Ordering::Relaxed) + line.len();
        if bytes > MAX_QUEUED_BYTES || self.queue.try_send(line).is_err() {
            self.fail("it does not read its input".to_owned());
        }
    }

    fn answer(&self, id: &Value, result: &Value) {
        let mut line = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string().into_bytes();
        if line.len() >= MAX_LINE_BYTES {
            return self.refuse(id, LIMIT, "the answer is too large");
        }
        line.push(b'\n');
        self.send(line);
    }

    fn refuse(&self, id: &Value, code: i32, message: &str) {
        let error = json!({ "code": code, "message": message });
        let mut line = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().into_bytes();
        line.push(b'\n');
        self.send(line);
    }

    /// Handles a line. Returns whether it is a message.
    fn receive(self: &Arc<Self>, line: &[u8], inbound: &dyn Inbound) -> bool {
        let Ok(message) = serde_json::from_slice::<Message<'_>>(line) else { return false };
        let null = || RawValue::NULL.to_owned();
        match (message.method, message.id) {
            (Some(method), Some(id)) => {
                if self.serving.fetch_add(1, Ordering::Relaxed) >= MAX_OPEN {
                    self.serving.fetch_sub(1, Ordering::Relaxed);
                    self.refuse(&id, LIMIT, "too many requests to the server are open");
                    return true;
                }
                inbound.requested(Request {
                    method: method.into_owned(),
                    params: message.params.map_or_else(null, ToOwned::to_owned),
                    id,
                    wire: self.clone(),
                    is_answered: false,
                });
            }
            (Some(method), None) => inbound.notified(&method, message.params.unwrap_or(RawValue::NULL)),
            (None, Some(id)) => {
                let reply = id.as_u64().and_then(|id| self.waiting().replies.remove(&id));
                // An answer that nobody waits for any more is ignored.
                if let Some(reply) = reply {
                    drop(reply.send(match message.error {
                        Some(error) => Err(failure(error)),
                        None => Ok(message.result.map_or_else(null, ToOwned::to_owned)),
                    }));
                }
            }
            (None, None) => return message.error.is_some(),
        }
        true
    }
}

fn failure(error: &RawValue) -> Failure {
    match serde_json::from_str::<RpcError>(error.get()) {
        Ok(error) => error.into(),
        Err(error) => Failure::Refused(error.to_string()),
    }
}

/// Reads lines until the connection ends.
async fn read(wire: Arc<Wire>, mut reader: OwnedReadHalf, inbound: Arc<dyn Inbound>) {
    let _closed = wire.closed.clone().drop_guard();
    let (mut chunk, mut lines) = (vec![0; READ_BYTES], Lines::default());
    loop {
        let read = wire.closed.run_until_cancelled(reader.read(&mut chunk)).await;
        let Some(Ok(count @ 1..)) = read else { return };
        lines.push(&chunk[..count], |line| {
            let is_message = line.is_ok_and(|line| wire.receive(line, &*inbound));
            let text = line.unwrap_or_else(|head| head);
            if !is_message && !text.trim_ascii().is_empty() {
                let text = String::from_utf8_lossy(&text[..text.len().min(MAX_FOREIGN_CHARS * 4)]);
                inbound.foreign(&text.chars().take(MAX_FOREIGN_CHARS).collect::<String>());
            }
        });
    }
}

async fn write(wire: Arc<Wire>, mut writer: OwnedWriteHalf, mut messages: mpsc::Receiver<Vec<u8>>) {
    let _closed = wire.closed.clone().drop_guard();
    while let Some(Some(line)) = wire.closed.run_until_cancelled(messages.recv()).await {
        let written = timeout(WRITE_DEADLINE, writer.write_all(&line));
        match wire.closed.run_until_cancelled(written).await {
            Some(Ok(Ok(()))) => {}
            Some(Err(_)) => return wire.fail("it does not read its input".to_owned()),
            Some(Ok(Err(_))) | None => return,
        }
        wire.queued_bytes.fetch_sub(line.len(), Ordering::Relaxed);
    }
}

/// Splits bytes into lines. A line that is too long is skipped.
#[derive(Default)]
struct Lines {
    held: Vec<u8>,
    is_skipping: bool,
}

impl Lines {
    /// Calls `each` with each complete line, or with the beginning of a line that is too long.
    fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(Result<&[u8], &[u8]>)) {
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            self.keep(&bytes[..at]);
            bytes = &bytes[at + 1..];
            each(if self.is_skipping { Err(&self.held) } else { Ok(&self.held) });
            self.is_skipping = false;
            self.held.clear();
            // A large message must not keep its memory.
            self.held.shrink_to(READ_BYTES);
        }
        self.keep(bytes);
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.is_skipping {
            return;
        }
        if self.held.len() + bytes.len() > MAX_LINE_BYTES {
            self.held.truncate(MAX_FOREIGN_CHARS * 4);
            self.held.shrink_to(READ_BYTES);
            self.is_skipping = true;
            return;
        }
        self.held.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&[u8]]) -> Vec<Result<Vec<u8>, usize>> {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        for chunk in chunks {
            lines.push(chunk, |line| found.push(line.map(<[u8]>::to_vec).map_err(<[u8]>::len)));
        }
        found
    }

    #[test]
    fn lines_are_joined_across_reads() {
        let expected =
            |lines: &[&str]| lines.iter().map(|line| Ok(line.as_bytes().to_vec())).collect::<Vec<_>>();
        assert_eq!(split(&[b"a\nb", b"c\n", b"\nd"]), expected(&["a", "bc", ""]));
        assert_eq!(split(&[b"", b"\n"]), expected(&[""]));
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped() {
        let long = vec![b'x'; MAX_LINE_BYTES + 1];
        let found = split(&[b"ab", &long, b"y\nnext\n"]);
        assert_eq!(found, [Err(2), Ok(b"next".to_vec())]);
    }
}
