//! Breaks servers that share a database, and checks that nothing is lost or done twice.
//!
//! A [`Fleet`] is a private PostgreSQL server, some servers of the program that share a directory, and clients that send prompts
//! to any of them. Meanwhile servers are killed, paused, ended and drained, their connections to the database and to each
//! other stall, and the database crashes. Afterwards the log is compared with the record of the clients and with the effects of
//! the commands:
//!
//! - Every prompt that a server acknowledged is in its session, and the last one has a complete answer.
//! - Every event that a client received is in the log, and the client that moved from server to server missed none.
//! - No command ran twice, and its record agrees with its effect.
//! - A call that has ended never changes again: a server that lost its session wrote nothing to it.
//!
//! On networks ([`Fleet::is_on_networks`]) each server and the database are in a network namespace of their own, what is cut off
//! loses its packets, the database waits for its disk, which gets slow, and clocks jump.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use codewright_client::Client;
use codewright_proto::{
    Clock, Event, Fact, Ids, Message, MessageId, MessageWithParts, PartBody, SessionId, SessionInput,
};
use codewright_scripted::Server;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::crash::{ClientRecord, CrashReport, Dice, check, input, model};
use crate::postgres::Machine;
use crate::{Postgres, Project};
use network::{Net, Network};
use node::{Node, Place};
use relay::Relay;
use shim::{Shim, Shims};

mod network;
mod node;
mod relay;
mod shim;

/// How long a request of a client may take.
const REQUEST: Duration = Duration::from_secs(20);
/// How long a prompt may wait for its answer, with all faults in between.
const ANSWER: Duration = Duration::from_secs(120);
/// How many of the last messages a client reads when it waits for an answer.
const READ: usize = 30;
/// The pause between two attempts of a client.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between two faults.
const BETWEEN: Duration = Duration::from_millis(1500);
/// The longest time that a server is paused or cut off.
const AWAY: Duration = Duration::from_secs(7);
/// The longest time of a write to a slow disk in addition.
const SLOW_DISK: Duration = Duration::from_millis(300);
/// The seconds by which a clock jumps at most, in both directions: a day.
const CLOCK_JUMP: i64 = 24 * 3600;
/// How long the sessions of a killed server may wait.
const FAIL_OVER: Duration = Duration::from_secs(30);
/// The time between two looks at them.
const LOOK: Duration = Duration::from_millis(20);
/// The limit of that, beyond which the report has details.
const FAIL_OVER_GOAL: Duration = Duration::from_secs(5);

/// A test of servers that share a database.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// The program.
    pub binary: PathBuf,
    /// The number of servers.
    pub nodes: usize,
    /// The number of sessions.
    pub sessions: usize,
    /// The number of faults.
    pub faults: u32,
    /// The seed of the random moments.
    pub seed: u64,
    /// Whether servers are only paused, and write with leases that they have lost: the checks must find errors. Needs a
    /// program with debug assertions.
    pub is_unfenced: bool,
    /// Whether each server is in a network namespace of its own. Needs root, `ip` and a C compiler.
    pub is_on_networks: bool,
    /// The longest pause of a client between an answer and the next prompt.
    pub thinking: Duration,
}

/// The result of a test.
#[derive(Debug, Clone, Default)]
pub struct FleetReport {
    /// The faults by name.
    pub faults: BTreeMap<&'static str, u32>,
    /// What the checks found.
    pub checks: CrashReport,
    /// The times from the kill of a server to the takeover of its last session.
    pub fail_over: Vec<Duration>,
    /// The times from the kill of a server until its last session continued or was released.
    pub going_on: Vec<Duration>,
    /// Prompts without an answer.
    pub stuck: BTreeSet<String>,
    /// What the log has about commands that ran twice and about prompts without an answer.
    pub details: Vec<String>,
}

impl FleetReport {
    /// Whether every promise held.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.checks.is_clean() && self.stuck.is_empty()
    }
}

/// The time below which a share of some times is, such as 0.99.
#[must_use]
pub fn percentile(times: &[Duration], share: f64) -> Option<Duration> {
    let mut all = times.to_vec();
    all.sort();
    let at = ((all.len() as f64 * share).ceil() as usize).saturating_sub(1);
    all.get(at).copied()
}

/// The times from the kill of a server.
#[derive(Debug, Clone, Copy)]
struct Takeover {
    /// The time until its last session had another owner.
    took: Duration,
    /// The time until its last session continued or was released.
    went_on: Duration,
}

/// The parts that clients, faults and checks share.
struct Scene {
    nodes: Vec<tokio::sync::Mutex<Node>>,
    clients: Vec<Client>,
    model: Server,
    /// The address of the database for `psql`.
    database: String,
    ids: Ids,
    record: Mutex<ClientRecord>,
    report: Mutex<FleetReport>,
    prompts: AtomicU64,
    is_over: AtomicBool,
}

impl Scene {
    fn with<T>(&self, change: impl FnOnce(&mut FleetReport) -> T) -> T {
        change(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds the time of a takeover. `before` is the name of the fault before.
    fn add_takeover(&self, takeover: Takeover, before: &str) {
        let Takeover { took, went_on } = takeover;
        let seconds = took.as_secs_f64();
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').next().unwrap_or_default();
        self.with(|report| {
            report.fail_over.push(took);
            report.going_on.push(went_on);
            if went_on > FAIL_OVER_GOAL {
                let how = format!("after the fault `{before}` and with the load {load}");
                let last = went_on.as_secs_f64();
                report.details.push(format!(
                    "a takeover took {seconds:.1} s and the last session went on after {last:.1} s, {how}"
                ));
            }
        });
    }

    fn record<T>(&self, change: impl FnOnce(&mut ClientRecord) -> T) -> T {
        change(&mut self.record.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn any(&self, dice: &mut Dice) -> &Client {
        &self.clients[dice.below(self.clients.len() as u64) as usize]
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

impl Fleet {
    /// Runs the test. Returns `None` if PostgreSQL is not installed. Needs a runtime with several threads.
    pub async fn play(&self) -> Result<Option<FleetReport>> {
        let Some(mut stage) = Stage::start(self)? else { return Ok(None) };
        let model = Server::start(model::script()).await?;
        let model_url = stage.model_url(&model).await?;
        let project = Project::git()?;
        let mut nodes = Vec::new();
        for at in 0..self.nodes {
            let place = stage.place(at)?;
            nodes.push(Node::start(self, place, &project, &stage.database, &model_url).await?);
        }
        let clients = nodes.iter().map(Node::client).collect::<Result<_>>()?;
        let nodes = nodes.into_iter().map(tokio::sync::Mutex::new).collect();
        let scene = Arc::new(Scene {
            nodes,
            clients,
            model,
            database: stage.url(),
            ids: Ids::new(Clock::system()),
            record: Mutex::default(),
            report: Mutex::default(),
            prompts: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let mut dice = Dice(self.seed);
        let mut users = JoinSet::new();
        for _ in 0..self.sessions {
            users.spawn(converse(Arc::clone(&scene), self.thinking, Dice(dice.roll())));
        }
        let mut watching = JoinSet::new();
        watching.spawn(watch(Arc::clone(&scene), Dice(dice.roll())));
        let mut before = "the start";
        for _ in 0..self.faults {
            sleep(dice.span(BETWEEN)).await;
            before = self.fault(&scene, &mut stage, &mut dice, before).await?;
            if self.is_unfenced && has_doubled(&project) {
                break;
            }
        }
        scene.is_over.store(true, Ordering::Release);
        while let Some(user) = users.join_next().await {
            user.context("a client failed")??;
        }
        while let Some(ended) = watching.join_next().await {
            ended.context("the reader of events failed")?;
        }
        check_all(&scene, &project).await?;
        scene.with(|report| report.checks.refused.extend(scene.model.problems()));
        Ok(Some(scene.with(|report| report.clone())))
    }

    /// Breaks something, and repairs it. `before` is the name of the last fault. Returns that of this one.
    async fn fault(
        &self,
        scene: &Scene,
        stage: &mut Stage,
        dice: &mut Dice,
        before: &str,
    ) -> Result<&'static str> {
        let at = dice.below(self.nodes as u64) as usize;
        let away = AWAY.min(Duration::from_secs(4) + dice.span(AWAY));
        let kinds = if stage.network.is_some() { 11 } else { 8 };
        let kind = if self.is_unfenced { 2 } else { dice.below(kinds) };
        let mut node = scene.nodes[at].lock().await;
        let name = match kind {
            0 | 1 => {
                let process = node.kill();
                if let Some(takeover) = fail_over(stage, process)? {
                    scene.add_takeover(takeover, before);
                }
                node.restart().await?;
                "kill"
            }
            2 => {
                let paused = node.pause()?;
                sleep(away).await;
                paused.resume()?;
                "pause"
            }
            3 => {
                node.cut(Net::Database, true)?;
                sleep(away).await;
                node.cut(Net::Database, false)?;
                "no database"
            }
            4 => {
                node.cut(Net::Servers, true)?;
                sleep(dice.span(AWAY)).await;
                node.cut(Net::Servers, false)?;
                "no other servers"
            }
            5 => {
                tokio::task::block_in_place(|| {
                    stage.database.order("crash");
                    stage.database.order("start");
                });
                "database crash"
            }
            6 => {
                node.end().await?;
                node.restart().await?;
                "end"
            }
            8 => {
                node.cut(Net::Clients, true)?;
                sleep(dice.span(AWAY)).await;
                node.cut(Net::Clients, false)?;
                "no clients and no model"
            }
            9 => {
                stage.slow_disk(dice.span(SLOW_DISK))?;
                sleep(dice.span(AWAY)).await;
                stage.slow_disk(Duration::ZERO)?;
                "slow disk"
            }
            10 => {
                // The clock stays wrong until it jumps again.
                let jump = dice.below(2 * CLOCK_JUMP.unsigned_abs()) as i64 - CLOCK_JUMP;
                node.move_clock(jump)?;
                "clock jump"
            }
            _ => {
                // A server that drains hands over when its turns have ended.
                drop(timeout(REQUEST, node.drain()).await);
                sleep(dice.span(BETWEEN)).await;
                node.end().await?;
                node.restart().await?;
                "drain"
            }
        };
        drop(node);
        scene.with(|report| *report.faults.entry(name).or_default() += 1);
        Ok(name)
    }
}

/// What the servers of a fleet share.
struct Stage {
    database: Postgres,
    /// The address of the database for this process.
    address: String,
    /// Between the servers and the model.
    relay: Option<Relay>,
    disk: Option<Shim>,
    shims: Option<Shims>,
    network: Option<Arc<Network>>,
}

impl Stage {
    /// Starts the database. Returns `None` if it is not installed.
    fn start(fleet: &Fleet) -> Result<Option<Self>> {
        if !fleet.is_on_networks {
            let Some(database) = Postgres::start() else { return Ok(None) };
            let address = "127.0.0.1".to_owned();
            return Ok(Some(Self { database, address, relay: None, disk: None, shims: None, network: None }));
        }
        let (network, shims) = (Network::new(fleet.nodes)?, Shims::build()?);
        let (at, disk) = (network.database(), shims.of("database")?);
        let address = network.address(Net::Database, at);
        let namespace = network.namespace(at);
        let library = Some((disk.library(), disk.variable()));
        let Some(database) = Postgres::on(&Machine { namespace: &namespace, address, library }) else {
            return Ok(None);
        };
        Ok(Some(Self {
            database,
            address: address.to_string(),
            relay: None,
            disk: Some(disk),
            shims: Some(shims),
            network: Some(Arc::new(network)),
        }))
    }

    /// The address of the model for the servers.
    async fn model_url(&mut self, model: &Server) -> Result<String> {
        let url = model.url();
        let Some(network) = &self.network else { return Ok(url) };
        let (scheme, rest) = url.split_once("://").context("the model has no address")?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let relay = Relay::start_at(network.host(Net::Clients), host.parse()?).await?;
        let url = format!("{scheme}://{}/{path}", relay.address());
        self.relay = Some(relay);
        Ok(url.trim_end_matches('/').to_owned())
    }

    /// The machine of a server.
    fn place(&self, at: usize) -> Result<Place> {
        let clock = self.shims.as_ref().map(|shims| shims.of(&format!("server-{at}"))).transpose()?;
        Ok(Place { at, network: self.network.clone(), clock })
    }

    /// The address of the database for `psql`.
    fn url(&self) -> String {
        self.database.tcp_url(&self.address, "?sslmode=disable")
    }

    fn slow_disk(&self, by: Duration) -> Result<()> {
        self.disk.as_ref().map_or(Ok(()), |disk| disk.slow_disk(by))
    }
}

/// Whether a command ran twice, so that servers without fences need no more faults.
fn has_doubled(project: &Project) -> bool {
    let mut found = CrashReport::default();
    check::doubled(&project.read(model::EFFECTS).unwrap_or_default(), &mut found);
    !found.doubled.is_empty()
}

/// Waits until other servers own the sessions of a killed process and continue them. Returns `None` if it had no sessions.
fn fail_over(stage: &Stage, process: u32) -> Result<Option<Takeover>> {
    let begun = Instant::now();
    let dead = format!("owner_id LIKE '{process}-%'");
    let owned = format!("SELECT format('(%L,%s)', aggregate_id, seq) FROM event_sequence WHERE {dead}");
    let owned = tokio::task::block_in_place(|| ask_database(stage, &owned))?;
    let owned = owned.split_whitespace().collect::<Vec<_>>().join(",");
    if owned.is_empty() {
        return Ok(None);
    }
    wait_in_database(stage, begun, &format!("SELECT 1 FROM event_sequence WHERE {dead}"))
        .context("the sessions of a killed server were not taken over")?;
    let took = begun.elapsed();
    // An owner that continues stores at least one event. An owner without work releases the session.
    let waiting = format!(
        "SELECT 1 FROM event_sequence JOIN (VALUES {owned}) AS had (id, last) ON aggregate_id = had.id \
         WHERE seq = had.last AND owner_id IS NOT NULL"
    );
    wait_in_database(stage, begun, &waiting).context("the sessions of a killed server did not go on")?;
    Ok(Some(Takeover { took, went_on: begun.elapsed() }))
}

/// Waits until a query finds nothing. Fails if that takes too long.
///
/// The database waits, because a new `psql` for every look takes a good part of this machine's time.
fn wait_in_database(stage: &Stage, begun: Instant, found: &str) -> Result<()> {
    let (looks, pause) = (FAIL_OVER.as_millis() / LOOK.as_millis(), LOOK.as_secs_f64());
    let wait = format!(
        "DO $$ BEGIN FOR look IN 1..{looks} LOOP IF NOT EXISTS ({found}) THEN RETURN; END IF; \
         PERFORM pg_sleep({pause}); END LOOP; RAISE 'nothing changed'; END $$"
    );
    tokio::task::block_in_place(|| ask_database(stage, &wait))?;
    ensure!(begun.elapsed() < 2 * FAIL_OVER, "it took {:?}", begun.elapsed());
    Ok(())
}

/// Runs a query with `psql`. Returns its value.
fn ask_database(stage: &Stage, sql: &str) -> Result<String> {
    query(&stage.url(), sql)
}

/// Runs a query with `psql` at an address.
fn query(url: &str, sql: &str) -> Result<String> {
    let done = Command::new("psql").args(["-XAtq", "-d", url, "-c", sql]).output()?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Ok(String::from_utf8(done.stdout)?)
}

/// Sends prompts to a session, one after the other, each to any server.
async fn converse(scene: Arc<Scene>, thinking: Duration, mut dice: Dice) -> Result<()> {
    let session = loop {
        match timeout(REQUEST, scene.any(&mut dice).create_session(&SessionInput::default())).await {
            Ok(Ok(session)) => break session.id,
            Ok(Err(_)) | Err(_) => sleep(PAUSE).await,
        }
    };
    scene.record(|record| record.add_session(&session));
    while !scene.is_over() {
        sleep(dice.span(thinking)).await;
        let message = scene.ids.message();
        let number = scene.prompts.fetch_add(1, Ordering::Relaxed);
        let input = input(&message, model::prompt(number, dice.roll()));
        let until = Instant::now() + ANSWER;
        let mut is_accepted = false;
        while Instant::now() < until {
            match timeout(REQUEST, scene.any(&mut dice).prompt_async(&session, &input)).await {
                Ok(Ok(())) => is_accepted = true,
                // An earlier attempt may have been stored although its answer was lost.
                Ok(Err(_)) | Err(_) => is_accepted = has(&scene, &mut dice, &session, &message).await,
            }
            if is_accepted {
                break;
            }
            sleep(PAUSE).await;
        }
        if is_accepted {
            scene.record(|record| record.add_prompt(&session, &message));
            scene.with(|report| report.checks.prompts += 1);
        }
        while !is_answered(&scene, &mut dice, &session, &message).await {
            if Instant::now() > until {
                scene.with(|report| report.stuck.insert(format!("prompt {message} of {session}")));
                let all = last_messages(&scene, &mut dice, &session).await.unwrap_or_default();
                let last = all.iter().rev().take(3).map(summary).collect::<Vec<_>>().join(" < ");
                let owner = owner(&scene, &session).unwrap_or_else(|error| error.to_string());
                let details = format!("{session} with {message}: {last}; owner: {owner}");
                scene.with(|report| report.details.push(details));
                break;
            }
            sleep(PAUSE).await;
        }
    }
    Ok(())
}

async fn last_messages(scene: &Scene, dice: &mut Dice, session: &SessionId) -> Option<Vec<MessageWithParts>> {
    timeout(REQUEST, scene.any(dice).messages(session, Some(READ))).await.ok()?.ok()
}

async fn has(scene: &Scene, dice: &mut Dice, session: &SessionId, message: &MessageId) -> bool {
    let messages = last_messages(scene, dice, session).await.unwrap_or_default();
    messages.iter().any(|one| one.info.id() == message)
}

/// Whether a prompt has an answer that ended without a call.
async fn is_answered(scene: &Scene, dice: &mut Dice, session: &SessionId, prompt: &MessageId) -> bool {
    let messages = last_messages(scene, dice, session).await.unwrap_or_default();
    messages.iter().any(|message| match &message.info {
        Message::Assistant(info) => {
            info.parent_id == *prompt
                && info.time.completed.is_some()
                && info.finish.as_deref().is_some_and(|finish| finish != "tool-calls")
                && !message.parts.iter().any(|part| matches!(part.body, PartBody::Tool(_)))
        }
        Message::User(_) => false,
    })
}

/// Reads the events like a client that loses its server and continues at another one.
async fn watch(scene: Arc<Scene>, mut dice: Dice) {
    while !scene.is_over() {
        let last = scene.record(|record| record.last_position());
        let Ok(Ok(mut events)) = timeout(REQUEST, scene.any(&mut dice).events_after(last)).await else {
            sleep(PAUSE).await;
            continue;
        };
        let until = Instant::now() + Duration::from_secs(3) + dice.span(AWAY);
        let mut known = events.position();
        while Instant::now() < until && !scene.is_over() {
            let Ok(Ok(Some(notice))) = timeout(Duration::from_secs(12), events.next()).await else { break };
            let position = events.position();
            if let Some(at) = position
                && position != known
            {
                scene.record(|record| record.add_events(vec![(at, notice.id.to_string())]));
                scene.with(|report| report.checks.events += 1);
            }
            known = position;
        }
    }
}

/// Compares the log with what clients know and with the effects.
async fn check_all(scene: &Scene, project: &Project) -> Result<()> {
    let client = scene.clients.first().context("there is no server")?;
    let sessions = scene.record(|record| record.sessions());
    let effects = project.read(model::EFFECTS).unwrap_or_default();
    let mut found = CrashReport::default();
    check_history(scene, client, &mut found).await?;
    check::doubled(&effects, &mut found);
    for session in sessions {
        let transcript = timeout(ANSWER, client.messages(&session, None)).await??;
        scene.record(|record| record.check_prompts(&session, &transcript, &mut found));
        check::calls(&transcript, &effects, &mut found);
    }
    found.effects = scene.record(|record| record.new_effects(&effects));
    for session in scene.record(|record| record.sessions()) {
        let all = timeout(ANSWER, client.messages(&session, None)).await??;
        let of = |message: &MessageWithParts| {
            found.doubled.iter().any(|mark| summary(message).contains(mark.as_str()))
        };
        let (Some(first), Some(last)) = (all.iter().position(of), all.iter().rposition(of)) else { continue };
        let around = &all[first.saturating_sub(2)..(last + 2).min(all.len())];
        let around = around.iter().map(summary).collect::<Vec<_>>().join("\n  ");
        scene.with(|report| report.details.push(format!("{session}:\n  {around}")));
    }
    scene.with(|report| {
        let checks = &mut report.checks;
        checks.effects = found.effects;
        checks.done = found.done;
        checks.not_begun = found.not_begun;
        checks.uncertain = found.uncertain;
        checks.lost.extend(found.lost);
        checks.doubled.extend(found.doubled);
        checks.wrong.extend(found.wrong);
    });
    Ok(())
}

/// A message in a few words.
fn summary(message: &MessageWithParts) -> String {
    let parts = message.parts.iter().filter_map(|part| match &part.body {
        PartBody::Tool(call) => {
            let state = format!("{:?}", call.state);
            Some(format!("{} {}", call.call_id, state.split(' ').next().unwrap_or_default()))
        }
        PartBody::Text(text) => Some(text.text.chars().take(40).collect()),
        _ => None,
    });
    let parts = parts.collect::<Vec<_>>().join(", ");
    match &message.info {
        Message::User(info) => format!("[user {} at {}: {parts}]", info.id, info.time.created),
        Message::Assistant(info) => format!(
            "[answer {} to {} at {} to {:?}, {:?}, {:?}: {parts}]",
            info.id, info.parent_id, info.time.created, info.time.completed, info.finish, info.error
        ),
    }
}

/// The row of a session's owner.
fn owner(scene: &Scene, session: &SessionId) -> Result<String> {
    let sql = format!(
        "SELECT owner_id, fence, stopped, node, (SELECT alive_until - clock_timestamp() FROM store_node \
         WHERE id = owner_id) FROM event_sequence WHERE aggregate_id = '{session}'"
    );
    tokio::task::block_in_place(|| query(&scene.database, &sql)).map(|text| text.trim().to_owned())
}

/// Reads the whole log, and checks that the clients know it and that no call changed after its end.
async fn check_history(scene: &Scene, client: &Client, found: &mut CrashReport) -> Result<()> {
    let known = scene.record(|record| record.events());
    let last = known.last_key_value().map_or(0, |(at, _)| *at);
    let mut log = BTreeMap::new();
    let mut ended: BTreeMap<String, String> = BTreeMap::new();
    let mut events = timeout(REQUEST, client.events_after(0)).await??;
    // After the end of the log nothing arrives but heartbeats.
    while let Ok(next) = timeout(Duration::from_secs(4), events.next()).await {
        let Some(notice) = next? else { break };
        let Some(at) = events.position() else { continue };
        let Fact::Event(event) = &notice.fact else { continue };
        log.insert(at, notice.id.to_string());
        if let Event::PartUpdated { part, .. } = event
            && let PartBody::Tool(call) = &part.body
        {
            let state = format!("{:?}", call.state);
            let is_end = state.starts_with("Completed") || state.starts_with("Error");
            if let Some(before) = ended.get(part.id.as_str())
                && *before != state
            {
                found.wrong.insert(format!("call {} changed after its end, at {at}", call.call_id));
            }
            if is_end {
                ended.insert(part.id.to_string(), state);
            }
        }
    }
    for (at, id) in &known {
        if log.get(at) != Some(id) {
            found.lost.insert(format!("event {id} at {at}; the log has {:?}", log.get(at)));
        }
    }
    for (at, id) in log.range(..=last) {
        if !known.contains_key(at) {
            found.lost.insert(format!("a client that changed its server did not receive event {id} at {at}"));
        }
    }
    Ok(())
}
