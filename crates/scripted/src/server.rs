//! The HTTP server that plays a script.
//!
//! Each connection is a task of one tracker with one cancellation token, so that stopping the
//! server stops all of them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::Error;
use crate::flood::FLOOD_LIMIT_DELTAS;
use crate::http::{Connection, Headers, Incoming, ReadError};
use crate::play::{self, Answer, Floods};
use crate::protocol::Protocol;
use crate::record::{Arrival, Ledger, Outcome, Recorded, SelectedTurn};
use crate::request::{Kind, Request};
use crate::script::{Checks, Content, Pace, Reply, Script, Step, Turn};

/// Limit of connections. Further ones wait.
const CONNECTIONS_LIMIT: usize = 1024;
/// Time limit for the tasks to stop.
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// The pause after a failed accept, for example when no file handles are left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Limit of nested computed turns.
const RESPOND_LIMIT: usize = 8;

/// A scripted model on a local socket. Dropping it stops it.
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    tasks: TaskTracker,
    stop: CancellationToken,
}

struct Shared {
    script: Script,
    ledger: Ledger,
    floods: Floods,
    started: Instant,
}

/// Serves a script until the future is dropped.
pub async fn serve(address: SocketAddr, script: Script) -> io::Result<()> {
    let server = Server::start_on(address, script).await?;
    server.stop.cancelled().await;
    Ok(())
}

impl Server {
    /// Starts on a free port of the loopback address.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::start_on((Ipv4Addr::LOCALHOST, 0).into(), script).await
    }

    /// Starts on an address.
    pub async fn start_on(address: SocketAddr, script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let ledger = Ledger::new(&script);
        let shared = Arc::new(Shared { script, ledger, floods: Floods::default(), started: Instant::now() });
        let server = Self { shared, address, tasks: TaskTracker::new(), stop: CancellationToken::new() };
        let accept = accept(listener, Arc::clone(&server.shared), server.tasks.clone(), server.stop.clone());
        server.tasks.spawn(server.stop.clone().run_until_cancelled_owned(accept));
        Ok(server)
    }

    /// Returns the URL, `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the model requests so far, oldest first.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.ledger.requests()
    }

    /// Returns the requests that continue the conversation, without title and summary requests.
    pub fn main_requests(&self) -> Vec<Recorded> {
        let mut requests = self.requests();
        requests.retain(|recorded| recorded.kind == Kind::Main);
        requests
    }

    /// Returns the problems of all requests, including unknown routes.
    pub fn problems(&self) -> Vec<String> {
        self.shared.ledger.problems()
    }

    /// Waits for the `n`th main request, counted from 1.
    pub async fn wait_for_request(&self, n: u64, deadline: Duration) -> Result<Recorded, Error> {
        self.wait(n, deadline, "request", |_| true).await
    }

    /// Waits for the end of the answer to the `n`th main request, counted from 1.
    pub async fn wait_for_end(&self, n: u64, deadline: Duration) -> Result<Recorded, Error> {
        self.wait(n, deadline, "the end of request", |recorded| recorded.outcome != Outcome::Open).await
    }

    /// Closes all connections and waits for their tasks.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        // A task that has not ended by now ends at its next await point.
        timeout(STOP_LIMIT, self.tasks.wait()).await.unwrap_or_default();
    }

    async fn wait(
        &self,
        n: u64,
        deadline: Duration,
        awaited: &str,
        matches: impl Fn(&Recorded) -> bool,
    ) -> Result<Recorded, Error> {
        let mut changes = self.shared.ledger.changes();
        let is_match =
            |recorded: &Recorded| recorded.kind == Kind::Main && recorded.ordinal == n && matches(recorded);
        let search = async {
            loop {
                changes.mark_unchanged();
                if let Some(recorded) = self.shared.ledger.first(is_match) {
                    return Some(recorded);
                }
                // The ledger owns the sender, so only a change ends this wait.
                changes.changed().await.ok()?;
            }
        };
        let seen = || {
            let requests = self.requests();
            let main = requests.iter().filter(|recorded| recorded.kind == Kind::Main).count();
            format!("{} requests, {main} of them main; problems: {:?}", requests.len(), self.problems())
        };
        let found = timeout(deadline, search).await.ok().flatten();
        found.ok_or_else(|| Error::Deadline { awaited: format!("{awaited} {n}"), deadline, seen: seen() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
        self.tasks.close();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, tasks: TaskTracker, stop: CancellationToken) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_LIMIT));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let shared = Arc::clone(&shared);
        let serve = async move {
            serve_connection(stream, &shared).await;
            drop(permit);
        };
        tasks.spawn(stop.clone().run_until_cancelled_owned(serve));
    }
}

/// Whether a connection can receive another request.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Read,
    Close,
}

async fn serve_connection(stream: TcpStream, shared: &Shared) {
    // Otherwise small events would wait for acknowledgements.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let mut connection = Connection::new(stream);
    loop {
        let incoming = match connection.read().await {
            Ok(incoming) => incoming,
            Err(ReadError::Disconnected) => return,
            Err(ReadError::Invalid { status, reason }) => {
                shared.ledger.problem(reason.clone());
                let reply = Reply::new(status, Content::Text(reason)).header("connection", "close");
                if play::send(&mut connection, &reply, None).await.is_ok() {
                    connection.close().await;
                }
                return;
            }
        };
        let keeps_alive = incoming.keeps_alive;
        match route(&mut connection, incoming, shared).await {
            Ok(Next::Read) if keeps_alive => {}
            Ok(_) => return connection.close().await,
            Err(_) => return,
        }
    }
}

async fn route(connection: &mut Connection, incoming: Incoming, shared: &Shared) -> io::Result<Next> {
    let path = incoming.path.as_str();
    match incoming.method.as_str() {
        "POST" => {
            if let Some(protocol) = Protocol::at(path) {
                return model(connection, incoming, protocol, shared).await;
            }
        }
        "GET" if path.ends_with("/models") => {
            let model = |id: &String| json!({"id": id, "object": "model", "created": 0, "owned_by": "mock"});
            let models: Vec<_> = shared.script.models.iter().map(model).collect();
            let body = json!({"object": "list", "data": models});
            play::send(connection, &Reply::new(200, body.into()), None).await?;
            return Ok(Next::Read);
        }
        "GET" => {
            let page = path.strip_prefix("/__mock/pages/").and_then(|name| shared.script.pages.get(name));
            if let Some(page) = page {
                connection.pause(page.delay).await?;
                play::send(connection, page, None).await?;
                return Ok(if play::keeps_alive(page) { Next::Read } else { Next::Close });
            }
        }
        _ => {}
    }
    let problem = format!("there is no route `{} {path}`", incoming.method);
    shared.ledger.problem(problem.clone());
    let body = json!({"error": {"message": problem, "type": "not_found_error"}});
    play::send(connection, &Reply::new(404, body.into()), None).await?;
    Ok(Next::Read)
}

/// Answers a model request.
async fn model(
    connection: &mut Connection,
    incoming: Incoming,
    protocol: Protocol,
    shared: &Shared,
) -> io::Result<Next> {
    let Incoming { path, headers, body: bytes, .. } = incoming;
    let (body, mut problems) = read_body(&headers, &bytes);
    if problems.is_empty() {
        problems = protocol.check(&headers, &body);
    }
    let is_object = body.is_object();
    let mut request = Request::read(protocol, &path, headers, Arc::new(body));
    let kind = request.kind();
    if shared.script.checks == Checks::Off {
        problems.clear();
    }
    let refusal = (!problems.is_empty() && (shared.script.checks == Checks::Enforce || !is_object))
        .then(|| format!("the scripted model refuses this request: {}", problems.join("; ")));
    let at = shared.started.elapsed();
    let number =
        shared.ledger.arrive(Arrival { request: &request, kind, at, size_bytes: bytes.len(), problems });
    drop(bytes);
    // The record is completed even if the answer ends early.
    let mut record = OpenRecord { ledger: &shared.ledger, number, outcome: Outcome::Disconnected };
    let selected = match refusal {
        Some(reason) => {
            const KIND: &str = "invalid_request_error";
            let mut reply = Reply::new(400, protocol.error_body(KIND, &reason).into());
            reply.headers = protocol.error_headers(KIND);
            let turn = reply.into();
            return play_turn(
                connection,
                &request,
                shared,
                LabeledTurn { label: "refused", turn },
                &mut record,
            )
            .await;
        }
        None => shared.ledger.select(&shared.script, &request, kind, number),
    };
    let SelectedTurn { turn, label, index, .. } = selected;
    request.turn = index.unwrap_or_default();
    let scenario = shared.script.scenarios.then(|| scenario(&request)).flatten();
    let turn = scenario.unwrap_or(turn);
    play_turn(connection, &request, shared, LabeledTurn { label: &label, turn }, &mut record).await
}

/// Completes a record when dropped.
struct OpenRecord<'a> {
    ledger: &'a Ledger,
    number: u64,
    outcome: Outcome,
}

impl Drop for OpenRecord<'_> {
    fn drop(&mut self) {
        self.ledger.settle(self.number, self.outcome);
    }
}

/// A turn with the part of its answer's ids that makes them unique.
struct LabeledTurn<'a> {
    label: &'a str,
    turn: Turn,
}

async fn play_turn(
    connection: &mut Connection,
    request: &Request,
    shared: &Shared,
    turn: LabeledTurn<'_>,
    record: &mut OpenRecord<'_>,
) -> io::Result<Next> {
    let LabeledTurn { label, turn } = turn;
    let turn = resolve(turn, request);
    let answer = Answer { connection, request, floods: &shared.floods, pace: shared.script.pace, label };
    let (outcome, next) = match &turn {
        Turn::Steps(steps) => {
            let outcome = answer.steps(steps).await?;
            (outcome, if outcome == Outcome::Cut { Next::Close } else { Next::Read })
        }
        Turn::Http(reply) => {
            let next = if play::keeps_alive(reply) { Next::Read } else { Next::Close };
            (answer.reply(reply).await?, next)
        }
        Turn::Raw(bytes) => {
            answer.connection.write(bytes).await?;
            (Outcome::Cut, Next::Close)
        }
        Turn::Silent => (play::hang(answer.connection).await?, Next::Close),
        Turn::Empty | Turn::Respond(_) => (Outcome::Cut, Next::Close),
    };
    record.outcome = outcome;
    Ok(next)
}

/// Evaluates computed turns.
fn resolve(mut turn: Turn, request: &Request) -> Turn {
    for _ in 0..RESPOND_LIMIT {
        match turn {
            Turn::Respond(respond) => turn = respond.answer(request),
            Turn::Steps(_) | Turn::Http(_) | Turn::Empty | Turn::Silent | Turn::Raw(_) => return turn,
        }
    }
    turn
}

/// Returns the body as JSON, or as text with its problems.
fn read_body(headers: &Headers, bytes: &[u8]) -> (Value, Vec<String>) {
    let kind = headers.get("content-type").unwrap_or_default();
    let mut problems = Vec::new();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        problems.push(format!("the content-type is `{kind}`, not `application/json`"));
    }
    let body = match serde_json::from_slice(bytes) {
        Ok(body) => body,
        Err(error) => {
            problems.push(format!("the body is not JSON: {error}"));
            return (Value::String(String::from_utf8_lossy(bytes).into_owned()), problems);
        }
    };
    if !Value::is_object(&body) {
        problems.push("the body is not a JSON object".to_owned());
    }
    (body, problems)
}

/// Returns the answer for the last `[[scn:…]]` marker in the user's text.
fn scenario(request: &Request) -> Option<Turn> {
    let text = request.users.iter().rev().find(|text| text.contains("[[scn:"))?;
    let (_, marker) = text.rsplit_once("[[scn:")?;
    let (marker, _) = marker.split_once("]]")?;
    let words: Vec<_> = marker.split(':').collect();
    let token = |count: usize| (0..count).map(|n| format!("tok{n:05} ")).collect::<String>();
    let steps = match words[..] {
        ["hi", ..] => Turn::text(token(20)),
        ["stream", bytes, deltas, ..] => Turn::steps().flood(bytes.parse().ok()?, deltas.parse().ok()?),
        ["paced", count, per_second, ..] => {
            let count: usize = count.parse().ok().filter(|count| *count <= FLOOD_LIMIT_DELTAS)?;
            let rate: f64 = per_second.parse().ok()?;
            let mut steps = Turn::steps();
            let delay = Duration::try_from_secs_f64(rate.recip()).ok()?;
            let pace = Pace { chunk_size: Some(token(1).len()), chunk_delay: Some(delay) };
            steps.steps.push(Step::Text { text: token(count), pace });
            steps
        }
        _ => return None,
    };
    Some(steps.into())
}
