//! The connection to a server: requests in both directions, with bounds.
//!
//! One task reads and one writes. Everything that waits is limited: messages to the server, requests without an answer,
//! and time. A server that breaks the protocol or reads nothing loses its connection.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codewright_workspace::Peer;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::{Failure, cut};
use crate::frame::{Frame, Frames, MAX_MESSAGE_BYTES, framed};

/// The messages that wait to be sent.
const MAX_QUEUED: usize = 1024;
/// The size of the messages that wait to be sent.
const MAX_QUEUED_BYTES: usize = 64 * 1024 * 1024;
/// The time in which a server must read a message.
const WRITE_DEADLINE: Duration = Duration::from_secs(30);
/// The requests that wait for an answer.
const MAX_WAITING: usize = 256;
/// The largest answer that is parsed.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;
/// The number of messages of a connection that may be too long.
const MAX_TOO_LONG: usize = 8;
/// The size of one read.
const CHUNK_BYTES: usize = 64 * 1024;
/// The protocol's code for an unknown method.
const METHOD_NOT_FOUND: i64 = -32601;

/// Receives what the server sends by itself.
pub(crate) trait Inbound: Send + Sync + 'static {
    fn notified(&self, method: &str, params: &str);
    /// The answer to a request of the server. `None` if the method is unknown.
    fn requested(&self, method: &str, params: &str) -> Option<Value>;
}

/// An open connection.
#[derive(Clone)]
pub(crate) struct Connection(Arc<Wire>);

struct Wire {
    queue: mpsc::Sender<Vec<u8>>,
    queued_bytes: AtomicUsize,
    waiting: Mutex<Waiting>,
    closed: CancellationToken,
    reason: Mutex<Option<String>>,
}

type Reply = oneshot::Sender<Result<Box<RawValue>, Failure>>;

#[derive(Default)]
struct Waiting {
    last: i64,
    replies: HashMap<i64, Reply>,
}

/// A message of the server.
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
    #[serde(default)]
    error: Option<Value>,
}

impl Connection {
    /// Begins to read and write. The connection ends when `closed` is cancelled, which it does when the server fails.
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

    /// The reason why the connection ended, if the server broke the protocol.
    pub(crate) fn reason(&self) -> Option<String> {
        self.0.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a notification.
    pub(crate) fn notify(&self, method: &str, params: &Value) {
        self.0.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request and waits for its result.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: &Value,
        limit: Duration,
    ) -> Result<Box<RawValue>, Failure> {
        let (reply, answer) = oneshot::channel();
        let id = {
            let mut waiting = self.0.waiting();
            if waiting.replies.len() >= MAX_WAITING {
                return Err(Failure::Failed("Too many requests wait for the server.".to_owned()));
            }
            waiting.last += 1;
            let id = waiting.last;
            waiting.replies.insert(id, reply);
            id
        };
        let mut pending = Pending { wire: &self.0, id, is_answered: false };
        self.0.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        tokio::select! {
            answer = timeout(limit, answer) => {
                pending.is_answered = answer.is_ok();
                match answer {
                    Ok(Ok(result)) => result,
                    Ok(Err(_)) => Err(Failure::Closed),
                    Err(_) => Err(Failure::Late(format!(
                        "The server did not answer `{method}` within {} s.",
                        limit.as_secs_f64()
                    ))),
                }
            }
            () = self.0.closed.cancelled() => {
                pending.is_answered = true;
                Err(Failure::Closed)
            }
        }
    }
}

/// A request that waits. It is cancelled at the server if it is dropped without an answer.
struct Pending<'a> {
    wire: &'a Arc<Wire>,
    id: i64,
    is_answered: bool,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.wire.waiting().replies.remove(&self.id);
        if !self.is_answered {
            let params = json!({ "id": self.id });
            self.wire.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": params}));
        }
    }
}

impl Wire {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the connection. The first reason counts.
    fn fail(&self, reason: String) {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        self.closed.cancel();
    }

    fn send(&self, message: &Value) {
        let message = framed(message.to_string().as_bytes());
        let bytes = self.queued_bytes.fetch_add(message.len(), Ordering::Relaxed) + message.len();
        if bytes > MAX_QUEUED_BYTES || self.queue.try_send(message).is_err() {
            self.fail("The server does not read its input.".to_owned());
        }
    }

    /// Handles a message.
    ///
    /// # Errors
    ///
    /// Fails with a sentence if it is not a message.
    fn receive(&self, content: &[u8], inbound: &dyn Inbound) -> Result<(), String> {
        // A text that is not UTF-8 is damaged and the rest is usable.
        let text = String::from_utf8_lossy(content);
        let message: Message<'_> = serde_json::from_str(&text)
            .map_err(|error| cut(&format!("The server sent a message that is not JSON: {error}.")))?;
        let params = message.params.map_or("null", RawValue::get);
        match (message.method, message.id) {
            (Some(method), Some(id)) => {
                let reply = match inbound.requested(&method, params) {
                    Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                    None => {
                        let error = json!({"code": METHOD_NOT_FOUND, "message": "not supported"});
                        json!({"jsonrpc": "2.0", "id": id, "error": error})
                    }
                };
                self.send(&reply);
            }
            (Some(method), None) => inbound.notified(&method, params),
            (None, Some(id)) => {
                let reply = id.as_i64().and_then(|id| self.waiting().replies.remove(&id));
                // An answer that nobody waits for any more is ignored.
                if let Some(reply) = reply {
                    drop(reply.send(answer(message.error.as_ref(), message.result)));
                }
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// Fails the requests that wait, because one of them got an answer that was skipped.
    fn fail_waiting(&self, reason: &str) {
        let replies = std::mem::take(&mut self.waiting().replies);
        for reply in replies.into_values() {
            drop(reply.send(Err(Failure::Failed(reason.to_owned()))));
        }
    }
}

fn answer(error: Option<&Value>, result: Option<&RawValue>) -> Result<Box<RawValue>, Failure> {
    if let Some(error) = error {
        return Err(Failure::Answered(cut(error["message"].as_str().unwrap_or("an unknown error"))));
    }
    match result {
        Some(result) if result.get().len() > MAX_ANSWER_BYTES => {
            let mebibytes = MAX_ANSWER_BYTES / 1024 / 1024;
            Err(Failure::Failed(format!("The server's answer is larger than {mebibytes} MiB.")))
        }
        Some(result) => Ok(result.to_owned()),
        None => Ok(RawValue::NULL.to_owned()),
    }
}

/// Reads messages until the connection ends.
async fn read(wire: Arc<Wire>, mut reader: OwnedReadHalf, inbound: Arc<dyn Inbound>) {
    let _closed = wire.closed.clone().drop_guard();
    let (mut frames, mut too_long) = (Frames::default(), 0);
    loop {
        let buffer = frames.buffer();
        buffer.reserve(CHUNK_BYTES);
        let count = wire.closed.run_until_cancelled(reader.read_buf(buffer)).await;
        if !matches!(count, Some(Ok(count)) if count > 0) {
            if let (Some(_), Some(stray)) = (count, frames.stray()) {
                wire.fail(format!("The server printed `{stray}` and closed its output."));
            }
            return;
        }
        loop {
            let frame = match frames.next() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(reason) => return wire.fail(reason),
            };
            match frame {
                Frame::Message(content) => {
                    if let Err(reason) = wire.receive(&content, &*inbound) {
                        return wire.fail(reason);
                    }
                }
                Frame::TooLong(length) => {
                    too_long += 1;
                    let limit = MAX_MESSAGE_BYTES / 1024 / 1024;
                    let reason = format!(
                        "The server sent a message of {} MiB, and the limit is {limit} MiB.",
                        length / 1024 / 1024
                    );
                    if too_long > MAX_TOO_LONG {
                        return wire.fail(reason);
                    }
                    wire.fail_waiting(&reason);
                }
            }
        }
    }
}

/// Writes messages until the connection ends.
async fn write(wire: Arc<Wire>, mut writer: OwnedWriteHalf, mut messages: mpsc::Receiver<Vec<u8>>) {
    while let Some(Some(message)) = wire.closed.run_until_cancelled(messages.recv()).await {
        let written =
            wire.closed.run_until_cancelled(timeout(WRITE_DEADLINE, writer.write_all(&message))).await;
        match written {
            Some(Ok(Ok(()))) => wire.queued_bytes.fetch_sub(message.len(), Ordering::Relaxed),
            Some(Err(_)) => return wire.fail("The server does not read its input.".to_owned()),
            // The reader notices the end, and knows more about it.
            Some(Ok(Err(_))) | None => return,
        };
    }
}
