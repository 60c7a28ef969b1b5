//! Measures servers that share a database in PostgreSQL: memory with many running sessions and many event streams, and the
//! time until an event of one server arrives at a client of another.

use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{Postgres, Project, Run, Running};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::Pid;
use serde_json::json;

use super::serve::{create_session, start_streams};
use super::served::memory;
use super::wire::{Connection, EventStream};
use super::{Plan, report};
use crate::measure::now_ns;
use crate::model::{LIVE, Model, Paced};

/// The name on the command line.
pub(super) const NAME: &str = "nodes";
/// The number of servers.
const NODES: usize = 3;
/// The number of sessions that run at the same time.
const SESSIONS: usize = 1000;
/// The number of sessions that one server may run.
const SESSIONS_OF_ONE: usize = 400;
/// The number of idle event streams.
const STREAMS: usize = 10_000;
/// The number of those that are read.
const READ: usize = 100;
/// The number of files that this process needs for the streams, and each server.
const FILES: u64 = 2 * STREAMS as u64;
/// The number of events whose delay is measured.
const EVENTS: usize = 400;
/// The interval between them.
const EVERY: Duration = Duration::from_millis(50);
/// The number of sessions whose text arrives at the pace of a model while its delay is measured.
const PACED_SESSIONS: usize = 10;
/// The time until the servers are idle.
const SETTLE: Duration = Duration::from_secs(5);
/// The deadline of a server.
const DEADLINE: Duration = Duration::from_secs(1200);
/// The secret of the servers.
const SECRET: &str = "0123456789-secret-of-a-measurement";
/// The beginning of the title of a session whose event is timed.
const TIMED: &str = "timed-session-";

/// The limits.
const LIVE_MIB: f64 = 600.0;
const STREAMS_MIB: f64 = 500.0;
const DELAY_MS: f64 = 50.0;

/// A server.
struct Node {
    /// Deleted when dropped.
    _home: Project,
    server: Running,
    address: String,
}

/// Measures and returns the lines of the report.
pub(super) fn measure(plan: &Plan) -> Result<String> {
    let binary = plan.program()?;
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most.min(FILES), most)?;
    let mut text = format!("\n{NAME}: {NODES} servers with one database in PostgreSQL\n");
    let Some(database) = Postgres::with("UTF8", "on") else {
        writeln!(text, "  skipped: the programs of a PostgreSQL server are not installed")?;
        return Ok(text);
    };
    let model = Model::start()?;
    let project = Project::git()?;
    let start = |database: &Postgres| -> Result<Vec<Node>> {
        (0..NODES).map(|at| Node::start(&binary, at, &project, database, &model.url)).collect()
    };
    let nodes = start(&database)?;
    let mut row = |name: &str, unit: &str, value: f64, limit: Option<f64>| {
        report::row(&mut text, name, unit, value, limit)
    };
    thread::sleep(SETTLE);
    row("at rest, memory of all", "MiB", memory_of(&nodes)?, None)?;
    let delays = Delays::measure(&nodes)?;
    row("a stored event, delay at another server, p50", "ms", delays.p50(), None)?;
    row("a stored event, delay at another server, p99", "ms", delays.p99(), Some(DELAY_MS))?;
    let deltas = deltas(&nodes)?;
    row("a delta of a text, delay at another server, p50", "ms", deltas.p50(), None)?;
    row("a delta of a text, delay at another server, p99", "ms", deltas.p99(), Some(DELAY_MS))?;
    let begun = Instant::now();
    begin_sessions(&nodes)?;
    thread::sleep(SETTLE);
    let running = running(&nodes)?;
    ensure!(running == SESSIONS, "{running} sessions run, not {SESSIONS}");
    row("1000 running sessions, memory of all", "MiB", memory_of(&nodes)?, Some(LIVE_MIB))?;
    row("1000 running sessions, begun after", "s", begun.elapsed().as_secs_f64(), None)?;
    let delays = Delays::measure(&nodes)?;
    row("a stored event with 1000 running sessions, p50", "ms", delays.p50(), None)?;
    row("a stored event with 1000 running sessions, p99", "ms", delays.p99(), None)?;
    drop((nodes, database));
    // In the same database the new servers would continue the sessions of the killed ones.
    let database = Postgres::with("UTF8", "on").context("a second database")?;
    let nodes = start(&database)?;
    let mut streams = Vec::with_capacity(STREAMS);
    for at in 0..STREAMS {
        streams.push(EventStream::open(&nodes[at % NODES].address)?);
    }
    thread::sleep(SETTLE);
    row("10000 idle event streams, memory of all", "MiB", memory_of(&nodes)?, Some(STREAMS_MIB))?;
    let begun = Instant::now();
    create_session(&mut Connection::new(&nodes[0].address)?, "Watched")?;
    // One thread reads them one after the other, so it reads some of each server.
    for stream in streams.iter_mut().step_by(STREAMS / READ) {
        stream.until("session.created")?;
    }
    row("one event to 10000 streams, until 100 have it", "ms", begun.elapsed().as_secs_f64() * 1e3, None)?;
    Ok(text)
}

impl Node {
    fn start(
        binary: &std::path::Path,
        at: usize,
        project: &Project,
        database: &Postgres,
        model: &str,
    ) -> Result<Self> {
        let home = Project::plain()?;
        let mut config = Project::config(model);
        config["node"] = json!({"name": format!("node-{at}"), "sessions": SESSIONS_OF_ONE});
        home.write_config(&config)?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = format!("127.0.0.1:{port}");
        let run = Run::new(binary, &home)
            .args(["serve", "--port", &port.to_string(), "--node-address", &format!("http://{address}")])
            .directory(project.directory())
            .env("OPENCODE_DISABLE_LOCAL_SERVERS", "1")
            .env("OPENCODE_DISABLE_MODELS_FETCH", "1")
            .env("CODEWRIGHT_STORE", database.tcp_url("127.0.0.1", "?sslmode=disable"))
            .env("CODEWRIGHT_NODE_SECRET", SECRET)
            .deadline(DEADLINE);
        let mut server = run.start()?;
        server.line_that(|line| line.contains("listening on"))?;
        Ok(Self { _home: home, server, address })
    }
}

/// The memory of all servers in MiB. Pages that they share count for each.
fn memory_of(nodes: &[Node]) -> Result<f64> {
    nodes.iter().map(|node| Ok(memory(Pid::from_raw(node.server.id().cast_signed()))?.now_mib)).sum()
}

/// Starts sessions whose answers take minutes.
fn begin_sessions(nodes: &[Node]) -> Result<()> {
    thread::scope(|scope| {
        let all: Vec<_> = nodes
            .iter()
            .enumerate()
            .map(|(at, node)| {
                scope.spawn(move || -> Result<()> {
                    let mut connection = Connection::new(&node.address)?;
                    for number in (at..SESSIONS).step_by(NODES) {
                        let session = create_session(&mut connection, &format!("Live {number}"))?;
                        let prompt = json!({"parts": [{"type": "text", "text": LIVE}]});
                        connection.bytes(
                            "POST",
                            &format!("/session/{session}/prompt_async"),
                            Some(&prompt),
                        )?;
                    }
                    Ok(())
                })
            })
            .collect();
        all.into_iter().try_for_each(|one| one.join().map_err(|_| anyhow::anyhow!("a client panicked"))?)
    })
}

/// The number of running sessions, of which any server knows all.
fn running(nodes: &[Node]) -> Result<usize> {
    let mut connection = Connection::new(&nodes[0].address)?;
    let status = connection.request("GET", "/session/status", None)?;
    let all = status.as_object().context("no status")?;
    Ok(all.values().filter(|status| status["type"] != "idle").count())
}

/// Delays in milliseconds, in ascending order.
struct Delays(Vec<f64>);

impl Delays {
    fn of(mut all: Vec<f64>) -> Self {
        all.sort_unstable_by(f64::total_cmp);
        Self(all)
    }

    fn p50(&self) -> f64 {
        self.share(50)
    }

    fn p99(&self) -> f64 {
        self.share(99)
    }

    fn share(&self, percent: usize) -> f64 {
        self.0
            .get((self.0.len() * percent / 100).min(self.0.len().saturating_sub(1)))
            .copied()
            .unwrap_or(f64::NAN)
    }

    /// Creates sessions at the first server. The delay is from the request to the event at each other server, so the
    /// creation is part of it.
    fn measure(nodes: &[Node]) -> Result<Self> {
        let readers: Vec<_> = nodes[1..]
            .iter()
            .map(|node| {
                let mut stream = EventStream::open(&node.address)?;
                Ok(thread::spawn(move || -> Result<Vec<f64>> {
                    let (mut line, mut found) = (String::new(), Vec::new());
                    while found.len() < EVENTS && stream.line(&mut line)? {
                        let Some((_, rest)) = line.split_once(TIMED) else { continue };
                        if !line.contains("\"session.created\"") {
                            continue;
                        }
                        let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
                        found.push((now_ns()? - digits.parse::<i64>()?) as f64 / 1e6);
                    }
                    Ok(found)
                }))
            })
            .collect::<Result<_>>()?;
        let mut connection = Connection::new(&nodes[0].address)?;
        for _ in 0..EVENTS {
            create_session(&mut connection, &format!("{TIMED}{}", now_ns()?))?;
            thread::sleep(EVERY);
        }
        let mut all = Vec::new();
        for reader in readers {
            all.extend(reader.join().map_err(|_| anyhow::anyhow!("a reader panicked"))??);
        }
        ensure!(all.len() == EVENTS * (nodes.len() - 1), "{} events arrived", all.len());
        Ok(Self::of(all))
    }
}

/// Runs sessions at the first server, and reads the deltas of their texts at the second one.
fn deltas(nodes: &[Node]) -> Result<Delays> {
    let mut stream = EventStream::open(&nodes[1].address)?;
    let reader = thread::spawn(move || -> Result<Vec<f64>> {
        let (mut line, mut ended, mut found) = (String::new(), 0, Vec::new());
        while ended < PACED_SESSIONS && stream.line(&mut line)? {
            if let Some((_, delta)) = line.split_once("\"delta\":") {
                let now = now_ns()?;
                found.extend(Paced::stamps(delta).map(|due| (now - due) as f64 / 1e6));
            }
            ended += usize::from(line.contains("\"session.idle\""));
        }
        Ok(found)
    });
    for stream in start_streams(&nodes[0].address, PACED_SESSIONS) {
        stream.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
    }
    let all = reader.join().map_err(|_| anyhow::anyhow!("a reader panicked"))??;
    let expected = Paced::COUNT * PACED_SESSIONS;
    ensure!(all.len() == expected, "{} deltas arrived, not {expected}", all.len());
    Ok(Delays::of(all))
}
