//! The connection to an agent: JSON-RPC, one message a line.
//!
//! Every message of an agent is limited in size, and reading waits while its prompts are not followed. So an agent that
//! sends more than is read waits, and one that reads nothing is disconnected.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codewright_workspace::Peer as Socket;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::lines::{Line, next_line};

/// The longest message of an agent.
const MAX_LINE_BYTES: usize = 8 << 20;
/// The number of lines that are not messages after which an agent is disconnected.
const MAX_BROKEN_LINES: usize = 100;
/// The number of messages that wait to be sent.
const MAX_QUEUED: usize = 64;
/// The time in which an agent must read a message.
const WRITE_DEADLINE: Duration = Duration::from_secs(60);
/// The number of requests of an agent that are served at the same time.
const MAX_REQUESTS: usize = 64;
/// The number of requests that wait for the agent's answer.
const MAX_PENDING: usize = 1024;
/// The longest id of a request.
const MAX_ID_BYTES: usize = 256;

/// The codes of errors, as the protocol names them.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
pub(crate) const INTERNAL_ERROR: i64 = -32603;
/// The agent wants the user to sign in.
pub(crate) const AUTH_REQUIRED: i64 = -32000;

/// An error that is sent or received instead of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    /// The code.
    pub code: i64,
    /// The sentence.
    pub message: String,
}

impl RpcError {
    /// An error of a request that was not served.
    #[must_use]
    pub fn refused(message: impl Into<String>) -> Self {
        Self { code: INTERNAL_ERROR, message: message.into() }
    }

    /// An error of a request with wrong content.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { code: INVALID_PARAMS, message: message.into() }
    }

    fn read(error: &Value) -> Self {
        let message = error["message"].as_str().unwrap_or("an error without a message");
        Self { code: error["code"].as_i64().unwrap_or(INTERNAL_ERROR), message: message.to_owned() }
    }
}

pub(crate) type Answer = Result<Value, RpcError>;

/// Why a request has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    Refused(RpcError),
    /// The connection ended.
    Ended,
    /// There was no answer in time.
    Late,
    /// The answer has another form.
    Invalid(String),
}

/// Receives the messages of an agent, one after the other.
pub(crate) trait Route: Send + Sync + 'static {
    fn notified(&self, method: &str, params: Value) -> impl Future<Output = ()> + Send;
    fn requested(&self, method: &str, params: Value, responder: Responder)
    -> impl Future<Output = ()> + Send;
    fn log(&self, text: &str);
}

/// The connection to an agent.
pub(crate) struct Peer {
    out: mpsc::Sender<String>,
    pending: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    next: AtomicU64,
    serving: AtomicUsize,
    /// Cancelled when the connection ends. Cancelling it ends the connection.
    pub(crate) closed: CancellationToken,
}

impl Peer {
    /// Starts the tasks of a connection.
    pub(crate) fn start(
        socket: Socket,
        closed: CancellationToken,
        tasks: &TaskTracker,
        route: Arc<impl Route>,
    ) -> Arc<Self> {
        let (input, output) = socket.into_split();
        Self::connect(input, output, closed, tasks, route)
    }

    fn connect(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        closed: CancellationToken,
        tasks: &TaskTracker,
        route: Arc<impl Route>,
    ) -> Arc<Self> {
        let (out, lines) = mpsc::channel(MAX_QUEUED);
        let (pending, next, serving) = (Mutex::default(), AtomicU64::new(1), AtomicUsize::new(0));
        let peer = Arc::new(Self { out, pending, next, serving, closed });
        tasks.spawn(write(peer.closed.clone(), output, lines));
        let reading = peer.clone();
        tasks.spawn(async move {
            let closed = reading.closed.clone();
            closed.run_until_cancelled(read(&reading, input, &*route)).await;
            closed.cancel();
            // The senders are dropped, so those who wait notice the end.
            reading.pending().clear();
        });
        peer
    }

    /// Sends a request and waits for its result.
    pub(crate) async fn request<R: DeserializeOwned>(
        self: &Arc<Self>,
        method: &str,
        params: &(impl Serialize + Sync),
        deadline: Duration,
    ) -> Result<R, Failure> {
        let answer = async {
            let answer = self.begin(method, params).await?;
            answer.await.map_err(|_| Failure::Ended)?.map_err(Failure::Refused)
        };
        let value = timeout(deadline, answer).await.map_err(|_| Failure::Late)??;
        serde_json::from_value(value).map_err(|error| Failure::Invalid(error.to_string()))
    }

    /// Sends a request, whose answer comes later.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        method: &str,
        params: &(impl Serialize + Sync),
    ) -> Result<oneshot::Receiver<Answer>, Failure> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        {
            let mut pending = self.pending();
            // Requests that nobody waits for any more.
            pending.retain(|_, sender| !sender.is_closed());
            if self.closed.is_cancelled() || pending.len() >= MAX_PENDING {
                return Err(Failure::Ended);
            }
            pending.insert(id, sender);
        }
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(message.to_string()).await?;
        Ok(receiver)
    }

    /// Sends a notification.
    pub(crate) async fn notify(&self, method: &str, params: &(impl Serialize + Sync)) -> Result<(), Failure> {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()).await
    }

    async fn send(&self, line: String) -> Result<(), Failure> {
        match self.closed.run_until_cancelled(self.out.send(line)).await {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => Err(Failure::Ended),
        }
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Answer>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers the answer to a request. Answers to unknown requests are ignored.
    fn answered(&self, id: &Value, answer: Answer) {
        let sender = id.as_u64().and_then(|id| self.pending().remove(&id));
        if let Some(sender) = sender {
            // If this fails, nobody waits any more.
            drop(sender.send(answer));
        }
    }
}

/// The duty to answer a request of the agent. A request that is dropped is answered with an error.
pub struct Responder {
    peer: Arc<Peer>,
    id: Value,
    is_answered: bool,
}

impl std::fmt::Debug for Responder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Responder").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Responder {
    fn new(peer: &Arc<Peer>, id: Value) -> Self {
        peer.serving.fetch_add(1, Ordering::Relaxed);
        Self { peer: peer.clone(), id, is_answered: false }
    }

    /// Answers the request.
    pub async fn respond(mut self, answer: Result<Value, RpcError>) {
        self.is_answered = true;
        let line = response(&self.id, answer);
        // If this fails, the connection has ended.
        drop(self.peer.send(line).await);
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.peer.serving.fetch_sub(1, Ordering::Relaxed);
        if !self.is_answered {
            let line = response(&self.id, Err(RpcError::refused("the prompt of this request has ended")));
            if self.peer.out.try_send(line).is_err() {
                // The agent reads nothing, so it cannot learn the answer.
                self.peer.closed.cancel();
            }
        }
    }
}

fn response(id: &Value, answer: Result<Value, RpcError>) -> String {
    match answer {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(RpcError { code, message }) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
        }
    }
    .to_string()
}

async fn write(
    closed: CancellationToken,
    mut output: impl AsyncWrite + Unpin,
    mut lines: mpsc::Receiver<String>,
) {
    let writing = async {
        while let Some(mut line) = lines.recv().await {
            line.push('\n');
            match timeout(WRITE_DEADLINE, output.write_all(line.as_bytes())).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
    };
    closed.run_until_cancelled(writing).await;
    closed.cancel();
    // The end of the agent's input. It fails if the agent is gone.
    drop(output.shutdown().await);
}

/// Reads messages until the agent ends or sends something else.
async fn read(peer: &Arc<Peer>, input: impl AsyncRead + Unpin, route: &impl Route) {
    let mut input = BufReader::new(input);
    let mut broken = 0;
    loop {
        let line = match next_line(&mut input, MAX_LINE_BYTES).await {
            Ok(Some(Line::Text(line))) if line.trim().is_empty() => continue,
            Ok(Some(Line::Text(line))) => serde_json::from_str::<Value>(&line).ok().filter(Value::is_object),
            Ok(Some(Line::TooLong | Line::NotText)) => None,
            Ok(None) | Err(_) => return,
        };
        let Some(message) = line else {
            broken += 1;
            if broken == 1 {
                route.log("it writes lines that are not messages of the protocol");
            }
            if broken >= MAX_BROKEN_LINES {
                route.log("it is disconnected, because it writes too many lines that are not messages");
                return;
            }
            continue;
        };
        receive(peer, message, route).await;
    }
}

async fn receive(peer: &Arc<Peer>, mut message: Value, route: &impl Route) {
    let method = message["method"].as_str().map(str::to_owned);
    let id = message.get("id").filter(|id| !id.is_null()).cloned();
    match (method, id) {
        (None, Some(id)) => {
            let answer = match message.get("error") {
                Some(error) if !error.is_null() => Err(RpcError::read(error)),
                _ => Ok(message["result"].take()),
            };
            peer.answered(&id, answer);
        }
        (None, None) => {}
        (Some(method), None) => route.notified(&method, message["params"].take()).await,
        (Some(method), Some(id)) => {
            let is_short = id.is_number() || id.as_str().is_some_and(|id| id.len() <= MAX_ID_BYTES);
            // The answer to another id would not reach the request.
            if !is_short {
                return route.log("it sent a request with an invalid id");
            }
            let is_busy = peer.serving.load(Ordering::Relaxed) >= MAX_REQUESTS;
            let responder = Responder::new(peer, id);
            if is_busy {
                let error = format!("at most {MAX_REQUESTS} requests are served at the same time");
                return responder.respond(Err(RpcError::refused(error))).await;
            }
            route.requested(&method, message["params"].take(), responder).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt as _, DuplexStream, ReadHalf, WriteHalf, duplex, split};

    use super::*;

    #[derive(Default)]
    struct Log(Mutex<Vec<String>>);

    impl Log {
        fn lines(&self) -> Vec<String> {
            self.0.lock().unwrap().clone()
        }
    }

    impl Route for Log {
        async fn notified(&self, method: &str, params: Value) {
            self.log(&format!("{method} {params}"));
        }

        async fn requested(&self, method: &str, params: Value, responder: Responder) {
            match method {
                "drop" => drop(responder),
                _ => responder.respond(Ok(params)).await,
            }
        }

        fn log(&self, text: &str) {
            self.0.lock().unwrap().push(text.to_owned());
        }
    }

    struct Other {
        input: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
        output: WriteHalf<DuplexStream>,
        log: Arc<Log>,
        peer: Arc<Peer>,
    }

    impl Other {
        fn start() -> Self {
            let (own, other) = duplex(1 << 16);
            let (input, output) = split(own);
            let log = Arc::new(Log::default());
            let tasks = TaskTracker::new();
            let peer = Peer::connect(input, output, CancellationToken::new(), &tasks, log.clone());
            let (input, output) = split(other);
            Self { input: BufReader::new(input).lines(), output, log, peer }
        }

        async fn send(&mut self, bytes: &[u8]) {
            // If this fails, the connection was closed, which the test checks.
            drop(self.output.write_all(bytes).await);
        }

        async fn read(&mut self) -> Value {
            let line = self.input.next_line().await.unwrap().expect("a line");
            serde_json::from_str(&line).unwrap()
        }
    }

    #[tokio::test]
    async fn a_request_gets_its_answer_and_others_are_ignored() {
        let mut other = Other::start();
        let peer = other.peer.clone();
        let asked = TaskTracker::new().spawn(async move {
            peer.request::<Value>("add", &json!({"a": 1}), Duration::from_secs(60)).await.unwrap()
        });
        let request = other.read().await;
        assert_eq!(request, json!({"jsonrpc": "2.0", "id": 1, "method": "add", "params": {"a": 1}}));
        other
            .send(b"{\"id\":7,\"result\":0}\n{\"id\":\"1\",\"result\":0}\n{}\n{\"id\":1,\"result\":3}\n")
            .await;
        assert_eq!(asked.await.unwrap(), json!(3));
    }

    #[tokio::test]
    async fn requests_of_the_agent_are_answered_also_if_they_are_dropped() {
        let mut other = Other::start();
        other
            .send(b"{\"id\":\"x\",\"method\":\"echo\",\"params\":[1]}\n{\"id\":2,\"method\":\"drop\"}\n")
            .await;
        assert_eq!(other.read().await, json!({"jsonrpc": "2.0", "id": "x", "result": [1]}));
        assert_eq!(other.read().await["error"]["code"], INTERNAL_ERROR);
        other.send(b"{\"id\":[1],\"method\":\"echo\"}\n{\"method\":\"note\",\"params\":1}\n").await;
        other.send(b"{\"id\":3,\"method\":\"echo\"}\n").await;
        other.read().await;
        assert_eq!(other.log.lines(), ["it sent a request with an invalid id", "note 1"]);
    }

    #[tokio::test]
    async fn a_few_broken_lines_are_ignored_and_many_end_the_connection() {
        let mut other = Other::start();
        let long = vec![b'x'; MAX_LINE_BYTES + 10];
        other.send(b"no json\n[]\n\xff\xfe\n").await;
        other.send(&long).await;
        other.send(b"\n{\"id\":1,\"method\":\"echo\",\"params\":5}\n").await;
        assert_eq!(other.read().await["result"], 5);
        for _ in 0..MAX_BROKEN_LINES {
            other.send(b"no json\n").await;
        }
        other.peer.closed.cancelled().await;
        assert_eq!(other.log.lines().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_that_reads_nothing_is_disconnected() {
        let other = Other::start();
        for _ in 0..3 {
            let text = "x".repeat(1 << 16);
            drop(other.peer.notify("note", &json!(text)).await);
        }
        other.peer.closed.cancelled().await;
        let late = other.peer.request::<Value>("late", &json!({}), Duration::from_secs(1)).await;
        assert!(matches!(late, Err(Failure::Ended)));
    }
}
