//! Measures a server: starts, idle time, turns, concurrent sessions, many event streams.
//!
//! The server and the model have their own processes; this one sends the requests. Other programs with the same
//! command line and API get the same requests in turn. The answers are checked.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};

use super::served::Served;
use super::spread::Spread;
use super::wire::{Connection, EventStream};
use super::{Plan, Program};
use crate::measure::now_ns;
use crate::model::{ANSWER, LOAD, LOADED, Model, PACED, Paced, READ};

/// The name on the command line.
pub(super) const NAME: &str = "serve";
/// The number of stored sessions.
const SESSIONS: usize = 1000;
/// The number of sessions to create between two readings of the clock.
const BATCH: usize = 100;
/// The number of turns of the long transcript.
const TURNS: usize = 161;
/// The number of turns whose mean is a figure.
const TURNS_MEASURED: usize = 20;
/// The number of sessions that stream at the same time.
const CONCURRENT: usize = 20;
/// The number of idle event streams.
const STREAMS: usize = 1000;
/// The number of files that this process needs for the streams.
const FILES: u64 = 4 * STREAMS as u64;
/// The time from the start until a server is idle.
const SETTLE: Duration = Duration::from_secs(3);
/// The time over which the CPU time of an idle server is measured.
const IDLE: Duration = Duration::from_secs(3);

/// A figure.
struct Row {
    name: &'static str,
    unit: &'static str,
    limit: Limit,
}

/// The limit of a figure.
#[derive(Clone, Copy)]
enum Limit {
    /// There is no limit.
    None,
    AtMost(f64),
    AtLeast(f64),
    /// At most this share of the other program's figure.
    Share(f64),
}

const ROWS: [Row; 24] = [
    row("start to listening, CPU", "ms", Limit::AtMost(25.0)),
    row("start to listening, wall", "ms", Limit::None),
    row("start with 1000 sessions, CPU", "ms", Limit::AtMost(25.0)),
    row("start with 1000 sessions, wall", "ms", Limit::None),
    row("idle, memory", "MiB", Limit::AtMost(20.0)),
    row("idle, CPU", "%", Limit::AtMost(0.1)),
    row("a session created, CPU", "ms", Limit::AtMost(0.5)),
    row("1000 sessions listed, wall", "ms", Limit::Share(0.05)),
    row("1000 sessions listed, CPU", "ms", Limit::None),
    row("a warm turn, CPU", "ms", Limit::AtMost(8.0)),
    row("a warm turn, wall", "ms", Limit::None),
    row("a turn with one call, CPU", "ms", Limit::AtMost(20.0)),
    row("a turn with one call, own CPU", "ms", Limit::None),
    row("161 turns read, wall", "ms", Limit::Share(0.05)),
    row("161 turns read, CPU", "ms", Limit::None),
    row("20 sessions at once, CPU per delta", "us", Limit::AtMost(14.0)),
    row("20 sessions at once", "deltas/s", Limit::AtLeast(23_000.0)),
    row("paced deltas, delay p50", "ms", Limit::None),
    row("paced deltas, delay p99", "ms", Limit::AtMost(5.0)),
    row("paced deltas, CPU per delta", "us", Limit::None),
    row("at the end, peak memory", "MiB", Limit::AtMost(80.0)),
    row("at the end, memory", "MiB", Limit::None),
    row("1000 idle streams, memory", "MiB", Limit::AtMost(64.0)),
    row("one event to 1000 streams, CPU", "ms", Limit::None),
];

const fn row(name: &'static str, unit: &'static str, limit: Limit) -> Row {
    Row { name, unit, limit }
}

/// A part of the measurement, which each program runs in turn.
struct Phase {
    name: &'static str,
    /// The number of runs if `--runs` is the argument.
    runs: fn(usize) -> usize,
    /// Whether an additional first run warms the machine.
    has_warmup: bool,
    run: fn(&mut Subject) -> Result<()>,
}

const fn once(name: &'static str, run: fn(&mut Subject) -> Result<()>) -> Phase {
    Phase { name, runs: |_| 1, has_warmup: false, run }
}

const fn repeated(name: &'static str, run: fn(&mut Subject) -> Result<()>) -> Phase {
    Phase { name, runs: |runs| runs, has_warmup: true, run }
}

const PHASES: [Phase; 12] = [
    repeated("starting", |subject| subject.measure_start("start to listening")),
    once("filling", Subject::create_sessions),
    repeated("starting with sessions", |subject| subject.measure_start("start with 1000 sessions")),
    once("idle", Subject::measure_idle),
    repeated("listing", Subject::list_sessions),
    repeated("turns", |subject| subject.run_turns("hi", "a warm turn")),
    repeated("turns with a call", |subject| {
        let prompt = format!("{READ} {} please", subject.program.sandbox.edited().display());
        subject.run_turns(&prompt, "a turn with one call")
    }),
    once("a long transcript", Subject::fill_transcript),
    repeated("reading", Subject::read_transcript),
    Phase { name: "streaming", runs: |runs| runs.min(5), has_warmup: true, run: Subject::stream_fast },
    once("paced", Subject::stream_paced),
    once("event streams", Subject::open_streams),
];

/// A measured program.
struct Subject {
    program: Program,
    server: Option<Served>,
    /// The id of the session with the long transcript.
    long: String,
    /// Whether figures are kept: false in a warm-up run.
    counts: bool,
    figures: BTreeMap<&'static str, Vec<f64>>,
    failed: Option<anyhow::Error>,
}

/// Measures each program and returns the lines of the report.
pub(super) fn measure(plan: &Plan) -> Result<String> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most.min(FILES), most)?;
    let mut model = Model::start()?;
    let mut subjects = vec![Subject::new("ours", &plan.program()?, &model.url)?];
    for (at, path) in plan.against.iter().enumerate() {
        subjects.push(Subject::new(&format!("against {}", at + 1), path, &model.url)?);
    }
    for phase in &PHASES {
        let runs = (phase.runs)(plan.runs);
        for run in 0..runs + usize::from(phase.has_warmup) {
            for subject in subjects.iter_mut().filter(|subject| subject.failed.is_none()) {
                subject.counts = run > 0 || !phase.has_warmup;
                if let Err(error) = (phase.run)(subject) {
                    subject.failed = Some(error.context(format!("{}, {}", subject.program.name, phase.name)));
                }
            }
        }
    }
    let problems = model.seen()?.problems;
    let mut text = format!("\n{NAME}: a server, over HTTP\n");
    for row in &ROWS {
        text.push_str(&lines(row, &subjects));
    }
    for error in subjects.iter().filter_map(|subject| subject.failed.as_ref()) {
        writeln!(text, "  FAILED {error:#}")?;
    }
    ensure!(subjects[0].failed.is_none() && problems.is_empty(), "{text}{}", problems.join("\n"));
    Ok(text)
}

/// Formats a line for each program that has the figure.
fn lines(row: &Row, subjects: &[Subject]) -> String {
    let spreads: Vec<_> = subjects
        .iter()
        .map(|subject| Spread::of(subject.figures.get(row.name).into_iter().flatten().copied()))
        .collect();
    let mut text = String::new();
    for (at, (subject, spread)) in subjects.iter().zip(&spreads).enumerate() {
        let Some(spread) = spread else { continue };
        let name = if at == 0 { row.name } else { "" };
        let range = format!("({:.2} .. {:.2})", spread.least, spread.most);
        let verdict = if at == 0 {
            verdict(row.limit, spread.median, spreads.get(1).copied().flatten())
        } else {
            let ours = spreads[0].map_or(f64::NAN, |ours| ours.median);
            format!("{:.1} x ours", spread.median / ours)
        };
        let line = format!(
            "  {name:<34} {:<10} {:>10.2} {:<8} {range:<24} {verdict}",
            subject.program.name, spread.median, row.unit
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn verdict(limit: Limit, median: f64, other: Option<Spread>) -> String {
    let mark = |is_complete: bool| if is_complete { "ok" } else { "MISSED" };
    match (limit, other) {
        (Limit::None, _) | (Limit::Share(_), None) => String::new(),
        (Limit::AtMost(most), _) => format!("≤ {most} {}", mark(median <= most)),
        (Limit::AtLeast(least), _) => format!("≥ {least} {}", mark(median >= least)),
        (Limit::Share(share), Some(other)) => {
            format!("≤ 1/{:.0} of the other's {}", share.recip(), mark(median <= other.median * share))
        }
    }
}

impl Subject {
    fn new(name: &str, path: &std::path::Path, url: &str) -> Result<Self> {
        Ok(Self {
            program: Program::new(name, path, url)?,
            server: None,
            long: String::new(),
            counts: false,
            figures: BTreeMap::new(),
            failed: None,
        })
    }

    /// Keeps a figure. The row name consists of the subject and the unit.
    fn keep(&mut self, of: &str, what: &str, value: f64) {
        let named = |row: &&Row| row.name.strip_prefix(of).is_some_and(|rest| rest == what);
        let row = ROWS.iter().find(named).expect("every figure has a row");
        if self.counts {
            self.figures.entry(row.name).or_default().push(value);
        }
    }

    fn server(&self) -> Result<&Served> {
        self.server.as_ref().context("no server is running")
    }

    fn connect(&self) -> Result<Connection> {
        Connection::new(&self.server()?.address)
    }

    fn measure_start(&mut self, of: &'static str) -> Result<()> {
        let server = Served::start(&self.program)?;
        let start = server.start;
        self.keep(of, ", CPU", start.cpu_ms);
        self.keep(of, ", wall", start.wall_ms);
        server.end()
    }

    fn create_sessions(&mut self) -> Result<()> {
        self.server = Some(Served::start(&self.program)?);
        let mut connection = self.connect()?;
        for batch in 0..SESSIONS / BATCH {
            let before = self.server()?.cpu_ms()?;
            for at in 0..BATCH {
                create_session(&mut connection, &format!("Session {batch} {at}"))?;
            }
            let each = (self.server()?.cpu_ms()? - before) / BATCH as f64;
            self.keep("a session created", ", CPU", each);
        }
        self.server.take().context("no server")?.end()
    }

    fn measure_idle(&mut self) -> Result<()> {
        self.server = Some(Served::start(&self.program)?);
        thread::sleep(SETTLE);
        for _ in 0..3 {
            let before = self.server()?.cpu_ms()?;
            thread::sleep(IDLE);
            let (used, memory) = (self.server()?.cpu_ms()? - before, self.server()?.memory()?);
            self.keep("idle", ", CPU", used / IDLE.as_secs_f64() / 10.0);
            self.keep("idle", ", memory", memory.now_mib);
        }
        Ok(())
    }

    fn list_sessions(&mut self) -> Result<()> {
        self.get_list("1000 sessions listed", &format!("/session?limit={SESSIONS}"), SESSIONS)
    }

    fn read_transcript(&mut self) -> Result<()> {
        let path = format!("/session/{}/message", self.long);
        self.get_list("161 turns read", &path, 2 * TURNS)
    }

    /// Measures a request whose answer is a list of `count` items.
    fn get_list(&mut self, of: &'static str, path: &str, count: usize) -> Result<()> {
        let mut connection = self.connect()?;
        let (before, begun) = (self.server()?.cpu_ms()?, Instant::now());
        let bytes = connection.bytes("GET", path, None)?;
        let wall = begun.elapsed().as_secs_f64() * 1e3;
        let used = self.server()?.cpu_ms()? - before;
        let found = serde_json::from_slice::<Vec<Value>>(&bytes)?.len();
        ensure!(found == count, "{path} has {found} and not {count} items");
        self.keep(of, ", wall", wall);
        self.keep(of, ", CPU", used);
        Ok(())
    }

    /// Measures turns of a session that had one already.
    fn run_turns(&mut self, text: &str, of: &'static str) -> Result<()> {
        let mut connection = self.connect()?;
        let session = create_session(&mut connection, "Turns")?;
        prompt_session(&mut connection, &session, text)?;
        let server = self.server()?;
        let (before, own, begun) = (server.cpu_ms()?, server.own_cpu_ms()?, Instant::now());
        for _ in 0..TURNS_MEASURED {
            let answer = prompt_session(&mut connection, &session, text)?;
            ensure!(has(&answer, ANSWER), "the answer was {answer}");
        }
        let server = self.server()?;
        let each = |whole: f64| whole / TURNS_MEASURED as f64;
        let (all, own) = (each(server.cpu_ms()? - before), each(server.own_cpu_ms()? - own));
        self.keep(of, ", CPU", all);
        if ROWS.iter().any(|row| row.name == format!("{of}, wall")) {
            self.keep(of, ", wall", each(begun.elapsed().as_secs_f64() * 1e3));
        } else {
            self.keep(of, ", own CPU", own);
        }
        Ok(())
    }

    fn fill_transcript(&mut self) -> Result<()> {
        let mut connection = self.connect()?;
        self.long = create_session(&mut connection, "Long")?;
        for _ in 0..TURNS {
            prompt_session(&mut connection, &self.long, "hi")?;
        }
        Ok(())
    }

    /// Measures sessions whose answers arrive as fast as the server can read them.
    fn stream_fast(&mut self) -> Result<()> {
        let deltas = (LOADED.deltas * CONCURRENT) as f64;
        let text = LOADED.text();
        let done = self.prompt_concurrently(LOAD, |answer| has(answer, text.trim()), |_, _| {})?;
        self.keep("20 sessions at once", ", CPU per delta", done.cpu_ms * 1e3 / deltas);
        self.keep("20 sessions at once", "", deltas / done.wall.as_secs_f64());
        Ok(())
    }

    /// Measures sessions whose answers arrive at the pace of a model: the time from each delta to its event.
    fn stream_paced(&mut self) -> Result<()> {
        let delays = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&delays);
        let done = self.prompt_concurrently(
            PACED,
            |answer| has(answer, "@"),
            move |line, now| {
                // Only deltas, because an event at the end has the whole text.
                let Some((_, delta)) = line.split_once("\"delta\":") else { return };
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(Paced::stamps(delta).map(|due| (now - due) as f64 / 1e6));
            },
        )?;
        let delays = std::mem::take(&mut *delays.lock().unwrap_or_else(PoisonError::into_inner));
        let (count, expected) = (delays.len(), Paced::COUNT * CONCURRENT);
        ensure!(count == expected, "{count} deltas arrived, not {expected}");
        let mut sorted = delays;
        sorted.sort_unstable_by(f64::total_cmp);
        self.keep("paced deltas", ", delay p50", sorted[count / 2]);
        self.keep("paced deltas", ", delay p99", sorted[count * 99 / 100]);
        self.keep("paced deltas", ", CPU per delta", done.cpu_ms * 1e3 / count as f64);
        let memory = self.server()?.memory()?;
        self.keep("at the end", ", peak memory", memory.peak_mib);
        self.keep("at the end", ", memory", memory.now_mib);
        self.server.take().context("no server")?.end()
    }

    /// Prompts many sessions at the same time while an event stream is open.
    fn prompt_concurrently(
        &self,
        prompt: &str,
        is_complete: impl Fn(&Value) -> bool + Sync,
        mut on_line: impl FnMut(&str, i64) + Send + 'static,
    ) -> Result<Done> {
        let server = self.server()?;
        let address = server.address.as_str();
        let sessions = {
            let mut connection = self.connect()?;
            (0..CONCURRENT)
                .map(|at| create_session(&mut connection, &format!("At once {at}")))
                .collect::<Result<Vec<_>>>()?
        };
        let mut stream = EventStream::open(address)?;
        let reader = thread::spawn(move || {
            let (mut line, mut ended) = (String::new(), 0);
            while ended < CONCURRENT && stream.line(&mut line)? {
                on_line(&line, now_ns()?);
                ended += usize::from(line.contains("\"session.idle\""));
            }
            anyhow::Ok(())
        });
        let (before, begun) = (server.cpu_ms()?, Instant::now());
        thread::scope(|scope| {
            let prompts: Vec<_> = sessions
                .iter()
                .map(|session| {
                    let is_complete = &is_complete;
                    scope.spawn(move || {
                        let answer = prompt_session(&mut Connection::new(address)?, session, prompt)?;
                        ensure!(is_complete(&answer), "a session's answer is not that of the model");
                        anyhow::Ok(())
                    })
                })
                .collect();
            prompts.into_iter().try_for_each(|prompt| prompt.join().expect("no prompt panics"))
        })?;
        let wall = begun.elapsed();
        reader.join().expect("the reader does not panic")?;
        Ok(Done { wall, cpu_ms: server.cpu_ms()? - before })
    }

    /// Measures idle event streams on a new server.
    fn open_streams(&mut self) -> Result<()> {
        let server = Served::start(&self.program)?;
        let address = server.address.clone();
        self.server = Some(server);
        let mut streams = (0..STREAMS).map(|_| EventStream::open(&address)).collect::<Result<Vec<_>>>()?;
        thread::sleep(SETTLE);
        let memory = self.server()?.memory()?;
        self.keep("1000 idle streams", ", memory", memory.now_mib);
        let before = self.server()?.cpu_ms()?;
        create_session(&mut self.connect()?, "Watched")?;
        for stream in &mut streams {
            stream.until("session.created")?;
        }
        let used = self.server()?.cpu_ms()? - before;
        self.keep("one event to 1000 streams", ", CPU", used);
        drop(streams);
        self.server.take().context("no server")?.end()
    }
}

/// The cost of concurrent sessions.
struct Done {
    wall: Duration,
    cpu_ms: f64,
}

/// Creates a session and returns its id.
pub(super) fn new_session(address: &str, title: &str) -> Result<String> {
    create_session(&mut Connection::new(address)?, title)
}

/// Prompts sessions whose answers arrive at the pace of a model. Each thread ends with its answer.
pub(super) fn start_streams(address: &str, sessions: usize) -> Vec<thread::JoinHandle<Result<()>>> {
    let begin = |at| {
        let address = address.to_owned();
        thread::spawn(move || {
            let mut connection = Connection::new(&address)?;
            let session = create_session(&mut connection, &format!("Streaming {at}"))?;
            let answer = prompt_session(&mut connection, &session, PACED)?;
            ensure!(has(&answer, "@"), "a session's answer is not that of the model");
            Ok(())
        })
    };
    (0..sessions).map(begin).collect()
}

pub(super) fn create_session(connection: &mut Connection, title: &str) -> Result<String> {
    // A session with a title does not request one from the model.
    let session = connection.request("POST", "/session", Some(&json!({ "title": title })))?;
    Ok(session["id"].as_str().context("no session")?.to_owned())
}

pub(super) fn prompt_session(connection: &mut Connection, session: &str, text: &str) -> Result<Value> {
    let model = json!({"providerID": "mock", "modelID": "plain-model"});
    let prompt = json!({"model": model, "parts": [{"type": "text", "text": text}]});
    connection.request("POST", &format!("/session/{session}/message"), Some(&prompt))
}

/// Whether the text of an answer contains `text`.
pub(super) fn has(answer: &Value, text: &str) -> bool {
    let parts = answer["parts"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).any(|part| part.contains(text))
}
