//! What a server costs: starting, resting, turns, many sessions at once, many who watch.
//!
//! The program serves in a process of its own and so does the model; this one only asks.
//! Another program with the same command line and the same API is asked the same, in turn.
//! A figure counts only if the work was done: answers are counted and compared.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};

use self::wire::{Caller, Watcher};
use super::served::Served;
use super::spread::Spread;
use super::{Plan, Program};
use crate::measure::now_ns;
use crate::model::{ANSWER, LOAD, LOADED, Model, PACED, Paced, READ};

mod wire;

/// What it is called on the command line.
pub(super) const NAME: &str = "serve";
/// Sessions that are stored and listed.
const SESSIONS: usize = 1000;
/// Sessions that are created before the clock is read again.
const BATCH: usize = 100;
/// Turns of the long transcript, each a prompt and its answer.
const TURNS: usize = 161;
/// Turns that a figure of one turn is the mean of.
const WARM: usize = 20;
/// Sessions that are answered at the same time.
const AT_ONCE: usize = 20;
/// Streams on which nothing happens.
const WATCHERS: usize = 1000;
/// Files that this process needs for them.
const FILES: u64 = 4 * WATCHERS as u64;
/// From the start until a server is at rest.
const SETTLE: Duration = Duration::from_secs(3);
/// How long a resting server is watched, several times.
const REST: Duration = Duration::from_secs(3);

/// One figure.
struct Row {
    name: &'static str,
    unit: &'static str,
    limit: Limit,
}

/// What a figure should be.
#[derive(Clone, Copy)]
enum Limit {
    /// Nothing was promised.
    None,
    AtMost(f64),
    AtLeast(f64),
    /// This part of the other program's figure at most.
    Share(f64),
}

const ROWS: [Row; 24] = [
    row("start to listening, CPU", "ms", Limit::AtMost(25.0)),
    row("start to listening, wall", "ms", Limit::None),
    row("the same with 1000 sessions, CPU", "ms", Limit::AtMost(25.0)),
    row("the same with 1000 sessions, wall", "ms", Limit::None),
    row("at rest, memory", "MiB", Limit::AtMost(20.0)),
    row("at rest, CPU", "%", Limit::AtMost(0.1)),
    row("a session created, CPU", "ms", Limit::AtMost(0.5)),
    row("1000 sessions listed, wall", "ms", Limit::Share(0.05)),
    row("1000 sessions listed, CPU", "ms", Limit::None),
    row("a warm turn, CPU", "ms", Limit::AtMost(8.0)),
    row("a warm turn, wall", "ms", Limit::None),
    row("a turn with one call, CPU", "ms", Limit::AtMost(20.0)),
    row("a turn with one call, own CPU", "ms", Limit::None),
    row("161 turns read, wall", "ms", Limit::Share(0.05)),
    row("161 turns read, CPU", "ms", Limit::None),
    row("20 sessions at once, CPU a delta", "us", Limit::AtMost(14.0)),
    row("20 sessions at once", "deltas/s", Limit::AtLeast(23_000.0)),
    row("paced deltas, delay p50", "ms", Limit::None),
    row("paced deltas, delay p99", "ms", Limit::AtMost(5.0)),
    row("paced deltas, CPU a delta", "us", Limit::None),
    row("after all of that, peak memory", "MiB", Limit::AtMost(80.0)),
    row("after all of that, memory", "MiB", Limit::None),
    row("1000 idle streams, memory", "MiB", Limit::AtMost(64.0)),
    row("one event to 1000 streams, CPU", "ms", Limit::None),
];

const fn row(name: &'static str, unit: &'static str, limit: Limit) -> Row {
    Row { name, unit, limit }
}

/// A part of the work; each program does it in turn.
struct Phase {
    name: &'static str,
    /// How often when so many runs are wanted.
    runs: fn(usize) -> usize,
    /// Whether the first time only warms the machine.
    is_warmed: bool,
    run: fn(&mut Subject) -> Result<()>,
}

const fn once(name: &'static str, run: fn(&mut Subject) -> Result<()>) -> Phase {
    Phase { name, runs: |_| 1, is_warmed: false, run }
}

const fn warmed(name: &'static str, run: fn(&mut Subject) -> Result<()>) -> Phase {
    Phase { name, runs: |runs| runs, is_warmed: true, run }
}

const PHASES: [Phase; 12] = [
    warmed("starting", |subject| subject.starts("start to listening")),
    once("filling", Subject::fills),
    warmed("starting with sessions", |subject| subject.starts("the same with 1000 sessions")),
    once("resting", Subject::rests),
    warmed("listing", Subject::lists),
    warmed("turns", |subject| subject.turns("hi", "a warm turn")),
    warmed("turns with a call", |subject| {
        let prompt = format!("{READ} {} please", subject.program.sandbox.edited().display());
        subject.turns(&prompt, "a turn with one call")
    }),
    once("a long transcript", Subject::talks),
    warmed("reading", Subject::reads),
    Phase { name: "streaming", runs: |runs| runs.min(5), is_warmed: true, run: Subject::streams },
    once("paced", Subject::paced),
    once("watching", Subject::watches),
];

/// A program that is measured.
struct Subject {
    program: Program,
    server: Option<Served>,
    /// The session with the long transcript.
    long: String,
    /// Whether figures are kept, or the machine is only warmed.
    counts: bool,
    figures: BTreeMap<&'static str, Vec<f64>>,
    failed: Option<anyhow::Error>,
}

/// Measures each program in turn; the lines to be shown.
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
        for run in 0..runs + usize::from(phase.is_warmed) {
            for subject in subjects.iter_mut().filter(|subject| subject.failed.is_none()) {
                subject.counts = run > 0 || !phase.is_warmed;
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

/// A line for each program that has the figure.
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
        let beside = if at == 0 {
            judged(row.limit, spread.median, spreads.get(1).copied().flatten())
        } else {
            let ours = spreads[0].map_or(f64::NAN, |ours| ours.median);
            format!("{:.1} x ours", spread.median / ours)
        };
        let line = format!(
            "  {name:<34} {:<10} {:>10.2} {:<8} {range:<24} {beside}",
            subject.program.name, spread.median, row.unit
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn judged(limit: Limit, median: f64, other: Option<Spread>) -> String {
    let mark = |is_good: bool| if is_good { "ok" } else { "MISSED" };
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

    /// Keeps a figure of a row that is named by its beginning and its end.
    fn keep(&mut self, of: &str, what: &str, value: f64) {
        let named = |row: &&Row| row.name.strip_prefix(of).is_some_and(|rest| rest == what);
        let row = ROWS.iter().find(named).expect("every figure that is kept has a row");
        if self.counts {
            self.figures.entry(row.name).or_default().push(value);
        }
    }

    fn server(&self) -> Result<&Served> {
        self.server.as_ref().context("no server is at work")
    }

    fn caller(&self) -> Result<Caller> {
        Caller::new(&self.server()?.address)
    }

    fn starts(&mut self, of: &'static str) -> Result<()> {
        let server = Served::start(&self.program)?;
        let start = server.start;
        self.keep(of, ", CPU", start.cpu_ms);
        self.keep(of, ", wall", start.wall_ms);
        server.end()
    }

    fn fills(&mut self) -> Result<()> {
        self.server = Some(Served::start(&self.program)?);
        let mut caller = self.caller()?;
        for batch in 0..SESSIONS / BATCH {
            let before = self.server()?.cpu_ms()?;
            for at in 0..BATCH {
                created(&mut caller, &format!("Session {batch} {at}"))?;
            }
            let each = (self.server()?.cpu_ms()? - before) / BATCH as f64;
            self.keep("a session created", ", CPU", each);
        }
        self.server.take().context("no server")?.end()
    }

    fn rests(&mut self) -> Result<()> {
        self.server = Some(Served::start(&self.program)?);
        thread::sleep(SETTLE);
        for _ in 0..3 {
            let before = self.server()?.cpu_ms()?;
            thread::sleep(REST);
            let (used, memory) = (self.server()?.cpu_ms()? - before, self.server()?.memory()?);
            self.keep("at rest", ", CPU", used / REST.as_secs_f64() / 10.0);
            self.keep("at rest", ", memory", memory.now_mib);
        }
        Ok(())
    }

    fn lists(&mut self) -> Result<()> {
        self.gets("1000 sessions listed", &format!("/session?limit={SESSIONS}"), SESSIONS)
    }

    fn reads(&mut self) -> Result<()> {
        let path = format!("/session/{}/message", self.long);
        self.gets("161 turns read", &path, 2 * TURNS)
    }

    /// Times a list of so many.
    fn gets(&mut self, of: &'static str, path: &str, count: usize) -> Result<()> {
        let mut caller = self.caller()?;
        let (before, begun) = (self.server()?.cpu_ms()?, Instant::now());
        let bytes = caller.bytes("GET", path, None)?;
        let wall = begun.elapsed().as_secs_f64() * 1e3;
        let used = self.server()?.cpu_ms()? - before;
        let found = serde_json::from_slice::<Vec<Value>>(&bytes)?.len();
        ensure!(found == count, "{path} has {found} and not {count} items");
        self.keep(of, ", wall", wall);
        self.keep(of, ", CPU", used);
        Ok(())
    }

    /// Turns of a session that has had one.
    fn turns(&mut self, text: &str, of: &'static str) -> Result<()> {
        let mut caller = self.caller()?;
        let session = created(&mut caller, "Turns")?;
        said(&mut caller, &session, text)?;
        let server = self.server()?;
        let (before, own, begun) = (server.cpu_ms()?, server.own_cpu_ms()?, Instant::now());
        for _ in 0..WARM {
            let answer = said(&mut caller, &session, text)?;
            ensure!(has(&answer, ANSWER), "the answer was {answer}");
        }
        let server = self.server()?;
        let each = |whole: f64| whole / WARM as f64;
        let (all, own) = (each(server.cpu_ms()? - before), each(server.own_cpu_ms()? - own));
        self.keep(of, ", CPU", all);
        if ROWS.iter().any(|row| row.name == format!("{of}, wall")) {
            self.keep(of, ", wall", each(begun.elapsed().as_secs_f64() * 1e3));
        } else {
            self.keep(of, ", own CPU", own);
        }
        Ok(())
    }

    fn talks(&mut self) -> Result<()> {
        let mut caller = self.caller()?;
        self.long = created(&mut caller, "Long")?;
        for _ in 0..TURNS {
            said(&mut caller, &self.long, "hi")?;
        }
        Ok(())
    }

    /// As fast as the server can: every session is answered with much text at once.
    fn streams(&mut self) -> Result<()> {
        let deltas = (LOADED.deltas * AT_ONCE) as f64;
        let text = LOADED.text();
        let done = self.at_once(LOAD, |answer| has(answer, text.trim()), |_, _| {})?;
        self.keep("20 sessions at once", ", CPU a delta", done.cpu_ms * 1e3 / deltas);
        self.keep("20 sessions at once", "", deltas / done.wall.as_secs_f64());
        Ok(())
    }

    /// As fast as models write: from when each delta was due to its event.
    fn paced(&mut self) -> Result<()> {
        let delays = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&delays);
        let done = self.at_once(
            PACED,
            |answer| has(answer, "@"),
            move |line, now| {
                // Only deltas: the whole text comes again at its end.
                let Some((_, delta)) = line.split_once("\"delta\":") else { return };
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(Paced::stamps(delta).map(|due| (now - due) as f64 / 1e6));
            },
        )?;
        let delays = std::mem::take(&mut *delays.lock().unwrap_or_else(PoisonError::into_inner));
        let (count, wanted) = (delays.len(), Paced::COUNT * AT_ONCE);
        ensure!(count == wanted, "{count} and not {wanted} deltas were seen");
        let mut sorted = delays;
        sorted.sort_unstable_by(f64::total_cmp);
        self.keep("paced deltas", ", delay p50", sorted[count / 2]);
        self.keep("paced deltas", ", delay p99", sorted[count * 99 / 100]);
        self.keep("paced deltas", ", CPU a delta", done.cpu_ms * 1e3 / count as f64);
        let memory = self.server()?.memory()?;
        self.keep("after all of that", ", peak memory", memory.peak_mib);
        self.keep("after all of that", ", memory", memory.now_mib);
        self.server.take().context("no server")?.end()
    }

    /// Prompts many sessions at once while somebody watches.
    fn at_once(
        &self,
        prompt: &str,
        is_good: impl Fn(&Value) -> bool + Sync,
        mut seen: impl FnMut(&str, i64) + Send + 'static,
    ) -> Result<Done> {
        let server = self.server()?;
        let address = server.address.as_str();
        let sessions = {
            let mut caller = self.caller()?;
            (0..AT_ONCE)
                .map(|at| created(&mut caller, &format!("At once {at}")))
                .collect::<Result<Vec<_>>>()?
        };
        let mut watcher = Watcher::open(address)?;
        let watched = thread::spawn(move || {
            let (mut line, mut ended) = (String::new(), 0);
            while ended < AT_ONCE && watcher.line(&mut line)? {
                seen(&line, now_ns()?);
                ended += usize::from(line.contains("\"session.idle\""));
            }
            anyhow::Ok(())
        });
        let (before, begun) = (server.cpu_ms()?, Instant::now());
        thread::scope(|scope| {
            let prompts: Vec<_> = sessions
                .iter()
                .map(|session| {
                    let is_good = &is_good;
                    scope.spawn(move || {
                        let answer = said(&mut Caller::new(address)?, session, prompt)?;
                        ensure!(is_good(&answer), "a session's answer is not what the model said");
                        anyhow::Ok(())
                    })
                })
                .collect();
            prompts.into_iter().try_for_each(|prompt| prompt.join().expect("no prompt panics"))
        })?;
        let wall = begun.elapsed();
        watched.join().expect("the watcher does not panic")?;
        Ok(Done { wall, cpu_ms: server.cpu_ms()? - before })
    }

    /// Many who watch while nothing happens, on a server that has done nothing else.
    fn watches(&mut self) -> Result<()> {
        let server = Served::start(&self.program)?;
        let address = server.address.clone();
        self.server = Some(server);
        let mut watchers = (0..WATCHERS).map(|_| Watcher::open(&address)).collect::<Result<Vec<_>>>()?;
        thread::sleep(SETTLE);
        let memory = self.server()?.memory()?;
        self.keep("1000 idle streams", ", memory", memory.now_mib);
        let before = self.server()?.cpu_ms()?;
        created(&mut self.caller()?, "Watched")?;
        for watcher in &mut watchers {
            watcher.until("session.created")?;
        }
        let used = self.server()?.cpu_ms()? - before;
        self.keep("one event to 1000 streams", ", CPU", used);
        drop(watchers);
        self.server.take().context("no server")?.end()
    }
}

/// What many sessions at once took.
struct Done {
    wall: Duration,
    cpu_ms: f64,
}

/// A new session of a server.
pub(super) fn opened(address: &str, title: &str) -> Result<String> {
    created(&mut Caller::new(address)?, title)
}

/// Begins to stream so many sessions at the pace of a model; each thread ends with its answer.
pub(super) fn streaming(address: &str, sessions: usize) -> Vec<thread::JoinHandle<Result<()>>> {
    let begin = |at| {
        let address = address.to_owned();
        thread::spawn(move || {
            let mut caller = Caller::new(&address)?;
            let session = created(&mut caller, &format!("Streaming {at}"))?;
            let answer = said(&mut caller, &session, PACED)?;
            ensure!(has(&answer, "@"), "a session's answer is not what the model said");
            Ok(())
        })
    };
    (0..sessions).map(begin).collect()
}

fn created(caller: &mut Caller, title: &str) -> Result<String> {
    // A session that has a title asks the model for none.
    let session = caller.ask("POST", "/session", Some(&json!({ "title": title })))?;
    Ok(session["id"].as_str().context("no session")?.to_owned())
}

fn said(caller: &mut Caller, session: &str, text: &str) -> Result<Value> {
    let model = json!({"providerID": "mock", "modelID": "plain-model"});
    let prompt = json!({"model": model, "parts": [{"type": "text", "text": text}]});
    caller.ask("POST", &format!("/session/{session}/message"), Some(&prompt))
}

/// Whether an answer's text has this.
fn has(answer: &Value, text: &str) -> bool {
    let parts = answer["parts"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).any(|said| said.contains(text))
}
