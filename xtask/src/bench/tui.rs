//! What the terminal client costs: starting, resting, a long answer, a key in a long transcript.
//!
//! The program works on a real pseudo-terminal, whose screen is read as a terminal shows it.
//! A time ends when the bytes that make the screen so were read, not when somebody looked.
//! Another program is only started and left at rest: how it is driven is its own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use codewright_proto::{Clock, Event, Ids};
use codewright_scripted::Flood;
use codewright_store::Store;
use serde_json::{Value, json};

use self::screen::{Awaited, Screen};
use super::serve::{opened, streaming};
use super::served::{self, Served};
use super::spread::Spread;
use super::{Plan, Program};
use crate::model::{ANSWER, FLOOD, HALF, HALF_STREAM, Model, STREAM};

mod screen;

/// What it is called on the command line.
pub(super) const NAME: &str = "tui";
/// What an empty prompt of either program says.
const EMPTY: &str = "Ask anything";
/// What stands below the prompt once the model is known.
const MODEL: &str = "plain-model";
/// What is typed to see that the prompt can be used.
const TYPED: &str = "zqzq";
/// Of the end of a long answer, which is to be seen.
const LAST_BYTES: usize = 60;
/// Messages of the long transcript.
const MESSAGES: usize = 100_000;
/// Events that are stored at once.
const CHUNK: usize = 1000;
/// Sessions that stream while keys are typed.
const AT_ONCE: usize = 20;
/// Keys whose times are taken in a run, half of them letters and half backspaces.
const KEYS: usize = 300;
/// Letters that stand in the prompt before they are taken back: less than a line.
const WORD: usize = 25;
/// Pages that are turned up and down again.
const PAGES: usize = 60;
/// From the start until the program is at rest.
const SETTLE: Duration = Duration::from_secs(3);
/// How long a resting program is watched.
const REST: Duration = Duration::from_secs(5);

const ENTER: &str = "\r";
const BACKSPACE: &str = "\u{7f}";
const PAGE_UP: &str = "\u{1b}[5~";
const PAGE_DOWN: &str = "\u{1b}[6~";

/// One figure, and what it may be at most.
struct Row {
    name: &'static str,
    unit: &'static str,
    limit: Option<f64>,
}

const ROWS: [Row; 18] = [
    row("start to first frame, wall", "ms", Some(30.0)),
    row("start to usable prompt, CPU", "ms", Some(90.0)),
    row("start to usable prompt, wall", "ms", None),
    row("at rest, memory", "MiB", Some(50.0)),
    row("at rest, peak memory", "MiB", Some(50.0)),
    row("at rest, CPU", "%", Some(0.1)),
    row("at rest, wake-ups", "/s", Some(1.0)),
    row("2 MB in 40,000 deltas, CPU", "ms", Some(1000.0)),
    row("2 MB in 40,000 deltas, wall", "ms", None),
    row("2 MB in 40,000 deltas, peak memory", "MiB", None),
    // Of a cost that is linear in the length it is 1, and less where a turn itself costs something.
    row("a delta of 2 MB to one of 1 MB, CPU", "x", Some(1.2)),
    row("100,000 messages opened, wall", "ms", None),
    row("100,000 messages opened, memory", "MiB", None),
    row("key to paint there, p50", "ms", None),
    row("key to paint there, p99", "ms", Some(16.0)),
    row("page key to paint there, p99", "ms", Some(16.0)),
    row("key to paint beside 20 streams, p50", "ms", None),
    row("key to paint beside 20 streams, p99", "ms", Some(16.0)),
];

const fn row(name: &'static str, unit: &'static str, limit: Option<f64>) -> Row {
    Row { name, unit, limit }
}

/// A program that is measured.
struct Subject {
    program: Program,
    figures: BTreeMap<&'static str, Vec<f64>>,
    failed: Option<anyhow::Error>,
}

/// What a long answer cost.
struct Streamed {
    cpu_ms: f64,
    wall: Duration,
    peak_mib: f64,
}

/// Measures each program in turn; the lines to be shown.
pub(super) fn measure(plan: &Plan) -> Result<String> {
    let mut model = Model::start()?;
    let mut subjects = vec![Subject::new("ours", &plan.program()?, &model.url)?];
    for (at, path) in plan.against.iter().enumerate() {
        subjects.push(Subject::new(&format!("against {}", at + 1), path, &model.url)?);
    }
    for run in 0..=plan.runs {
        for subject in subjects.iter_mut().filter(|subject| subject.failed.is_none()) {
            subject.failed = subject.starts(run > 0).context("starting").err();
        }
    }
    for subject in subjects.iter_mut().filter(|subject| subject.failed.is_none()) {
        subject.failed = subject.rests().context("resting").err();
    }
    let ours = &mut subjects[0];
    if ours.failed.is_none() {
        ours.failed = ours.works(&mut model, plan.runs).err();
    }
    let problems = model.seen()?.problems;
    let mut text = format!("\n{NAME}: the terminal client on a terminal, with the server inside\n");
    for row in &ROWS {
        text.push_str(&lines(row, &subjects));
    }
    for subject in &subjects {
        if let Some(error) = &subject.failed {
            writeln!(text, "  FAILED {}: {error:#}", subject.program.name)?;
        }
    }
    ensure!(subjects[0].failed.is_none() && problems.is_empty(), "{text}{}", problems.join("\n"));
    Ok(text)
}

/// A line for each program that has the figure.
fn lines(row: &Row, subjects: &[Subject]) -> String {
    let spread = |subject: &Subject| Spread::of(subject.figures.get(row.name).into_iter().flatten().copied());
    let ours = subjects.first().and_then(spread);
    let mut text = String::new();
    for (at, subject) in subjects.iter().enumerate() {
        let Some(it) = spread(subject) else { continue };
        let range = format!("({:.2} .. {:.2})", it.least, it.most);
        let beside = match (at, row.limit, ours) {
            (0, Some(limit), _) => {
                format!("limit {limit} {} {}", row.unit, if it.median <= limit { "ok" } else { "OVER" })
            }
            (1.., _, Some(ours)) if ours.median > 0.0 => format!("{:.1} x ours", it.median / ours.median),
            _ => String::new(),
        };
        let name = if at == 0 { row.name } else { "" };
        let line = format!(
            "  {name:<36} {:<10} {:>10.2} {:<4} {range:<24} {beside}",
            subject.program.name, it.median, row.unit
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

impl Subject {
    fn new(name: &str, path: &Path, url: &str) -> Result<Self> {
        Ok(Self { program: Program::new(name, path, url)?, figures: BTreeMap::new(), failed: None })
    }

    /// Keeps a figure of a row that is named by its beginning and its end.
    fn keep(&mut self, of: &str, what: &str, value: f64) {
        let named = |row: &&Row| row.name.strip_prefix(of).is_some_and(|rest| rest == what);
        let row = ROWS.iter().find(named).expect("every figure that is kept has a row");
        self.figures.entry(row.name).or_default().push(value);
    }

    /// What only our program is asked.
    fn works(&mut self, model: &mut Model, runs: usize) -> Result<()> {
        // One that is not counted, as the machine is cold.
        for run in 0..=runs.min(3) {
            self.streams(model, run > 0).context("a long answer")?;
        }
        let server = Served::start(&self.program)?;
        let session = opened(&server.address, "Long")?;
        server.end()?;
        filled(&self.program, &session).context("writing the long transcript")?;
        self.types(&session).context("keys in a long transcript")?;
        self.types_beside(&session).context("keys beside streaming sessions")
    }

    /// Until a typed word stands in the prompt.
    fn starts(&mut self, counts: bool) -> Result<()> {
        let mut screen = Screen::start(&self.program, &[])?;
        screen.until(&Awaited::Text(EMPTY.to_owned()))?;
        let first = screen.reached()?;
        screen.until(&Awaited::Text(MODEL.to_owned()))?;
        screen.send(TYPED)?;
        screen.until(&Awaited::Text(TYPED.to_owned()))?;
        let (usable, cpu) = (screen.reached()?, served::own_cpu_ms(screen.process()?)?);
        if counts {
            self.keep("start to first frame", ", wall", millis(first - screen.begun));
            self.keep("start to usable prompt", ", CPU", cpu);
            self.keep("start to usable prompt", ", wall", millis(usable - screen.begun));
        }
        Ok(())
    }

    fn rests(&mut self) -> Result<()> {
        let screen = Screen::start(&self.program, &[])?;
        screen.until(&Awaited::Text(MODEL.to_owned()))?;
        thread::sleep(SETTLE);
        let process = screen.process()?;
        for _ in 0..3 {
            let (cpu, woken) = (served::own_cpu_ms(process)?, wake_ups(process.as_raw())?);
            thread::sleep(REST);
            let seconds = REST.as_secs_f64();
            let used = served::own_cpu_ms(process)? - cpu;
            let woken = wake_ups(process.as_raw())?.saturating_sub(woken);
            let memory = served::memory(process)?;
            self.keep("at rest", ", CPU", used / seconds / 10.0);
            self.keep("at rest", ", wake-ups", woken as f64 / seconds);
            self.keep("at rest", ", memory", memory.now_mib);
            self.keep("at rest", ", peak memory", memory.peak_mib);
        }
        Ok(())
    }

    /// Long answers, each in a client of its own.
    fn streams(&mut self, model: &mut Model, counts: bool) -> Result<()> {
        const OF: &str = "2 MB in 40,000 deltas";
        let half = self.streamed(model, HALF_STREAM, HALF)?;
        let whole = self.streamed(model, STREAM, FLOOD)?;
        if counts {
            self.keep(OF, ", CPU", whole.cpu_ms);
            self.keep(OF, ", wall", millis(whole.wall));
            self.keep(OF, ", peak memory", whole.peak_mib);
            self.keep("a delta of 2 MB to one of 1 MB", ", CPU", whole.cpu_ms / half.cpu_ms / 2.0);
        }
        Ok(())
    }

    /// One of them, from the enter to the line below its end.
    fn streamed(&self, model: &mut Model, prompt: &str, flood: Flood) -> Result<Streamed> {
        let mut screen = Screen::start(&self.program, &[])?;
        screen.until(&Awaited::Text(MODEL.to_owned()))?;
        screen.send(prompt)?;
        screen.until(&Awaited::Text(prompt.to_owned()))?;
        model.seen()?;
        let process = screen.process()?;
        let (cpu, begun) = (served::own_cpu_ms(process)?, Instant::now());
        screen.send(ENTER)?;
        // Where the lines are broken is the program's affair.
        let text: String = flood.text().split_whitespace().collect();
        let last = text.len().saturating_sub(LAST_BYTES);
        screen.until(&Awaited::Letters(format!("{}▣Build", &text[last..])))?;
        let wall = screen.reached()? - begun;
        let cpu_ms = served::own_cpu_ms(process)? - cpu;
        ensure!(model.seen()?.main_ns.len() == 1, "the model was not asked once");
        Ok(Streamed { cpu_ms, wall, peak_mib: served::memory(process)?.peak_mib })
    }

    fn types(&mut self, session: &str) -> Result<()> {
        const OF: &str = "100,000 messages opened";
        let mut screen = Screen::start(&self.program, &["--session", session])?;
        screen.until(&Awaited::Letters(format!("{}▣Build", shown_last())))?;
        self.keep(OF, ", wall", millis(screen.reached()? - screen.begun));
        thread::sleep(SETTLE);
        let times = typed(&mut screen)?;
        self.keep("key to paint there", ", p50", percentile(&times, 50));
        self.keep("key to paint there", ", p99", percentile(&times, 99));
        let times = turned(&mut screen)?;
        self.keep("page key to paint there", ", p99", percentile(&times, 99));
        self.keep(OF, ", memory", served::memory(screen.process()?)?.now_mib);
        Ok(())
    }

    /// The client of a server that others stream from.
    fn types_beside(&mut self, session: &str) -> Result<()> {
        let server = Served::start(&self.program)?;
        let url = format!("http://{}", server.address);
        let project = self.program.sandbox.project();
        let project = project.to_str().context("a directory whose name is text")?;
        let mut screen =
            Screen::start(&self.program, &["attach", &url, "--dir", project, "--session", session])?;
        screen.until(&Awaited::Letters(format!("{}▣Build", shown_last())))?;
        thread::sleep(SETTLE);
        let streams = streaming(&server.address, AT_ONCE);
        let times = typed(&mut screen)?;
        let are_streaming = streams.iter().all(|stream| !stream.is_finished());
        ensure!(are_streaming, "the sessions had ended before the last key was typed");
        for stream in streams {
            stream.join().expect("no stream panics")?;
        }
        self.keep("key to paint beside 20 streams", ", p50", percentile(&times, 50));
        self.keep("key to paint beside 20 streams", ", p99", percentile(&times, 99));
        drop(screen);
        server.end()
    }
}

/// Types words and takes them back; the milliseconds of each key, sorted.
fn typed(screen: &mut Screen) -> Result<Vec<f64>> {
    let (row, first) = screen.cursor();
    let mut times = Vec::with_capacity(KEYS);
    while times.len() < KEYS {
        let there = (0..WORD).map(|at| (at, "w"));
        let back = (0..WORD).rev().map(|at| (at, ""));
        for (at, shown) in there.chain(back) {
            // A rhythm that no frame or timer of the program can fall in with.
            thread::sleep(Duration::from_millis(8 + (times.len() as u64 * 7) % 13));
            let column = first + u16::try_from(at)?;
            let key = if shown.is_empty() { BACKSPACE } else { shown };
            // An empty prompt may show a hint where the last letter stood.
            let awaited = if shown.is_empty() {
                Awaited::Other { row, column, than: "w".to_owned() }
            } else {
                Awaited::Cell { row, column, shown: shown.to_owned() }
            };
            times.push(millis(screen.pressed(key, &awaited)?));
        }
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(times)
}

/// Turns pages up and down again; the milliseconds of each, sorted.
fn turned(screen: &mut Screen) -> Result<Vec<f64>> {
    let mut times = Vec::with_capacity(2 * PAGES);
    // Not quite back to the end, where there is no further page.
    for (key, pages) in [(PAGE_UP, PAGES), (PAGE_DOWN, PAGES - 5)] {
        for _ in 0..pages {
            // Whatever an earlier key still draws has been drawn by then.
            thread::sleep(Duration::from_millis(60));
            let awaited = Awaited::Frame { than: screen.contents() };
            times.push(millis(screen.pressed(key, &awaited)?));
        }
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(times)
}

/// Writes the long transcript into a session, prompts and answers in turn.
fn filled(program: &Program, session: &str) -> Result<()> {
    let data = program.sandbox.data().join("codewright/codewright.db");
    let (clock, project) = (Clock::system(), program.sandbox.project());
    let ids = Ids::new(clock.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = Store::open(&data, Ids::new(clock.clone()), clock).await?;
        let (mut events, mut asked) = (Vec::with_capacity(CHUNK + 2), String::new());
        for at in 0..MESSAGES {
            let id = ids.message().to_string();
            let info = if at % 2 == 0 {
                asked.clone_from(&id);
                json!({"id": id, "sessionID": session, "role": "user", "time": {"created": at + 1},
                    "agent": "build", "model": {"providerID": "mock", "modelID": MODEL}})
            } else {
                json!({"id": id, "sessionID": session, "role": "assistant", "parentID": asked, "mode": "build",
                    "agent": "build", "providerID": "mock", "modelID": MODEL, "cost": 0, "finish": "stop",
                    "path": {"cwd": project, "root": project}, "time": {"created": at + 1, "completed": at + 2},
                    "tokens": {"input": 1, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}}})
            };
            let text =
                format!("## {at}\n\nSome **bold**, `code` and\n\n```rust\nfn main() {{}}\n```\n\n{ANSWER} {at}");
            let part = json!({"id": ids.part().to_string(), "sessionID": session, "messageID": id,
                "type": "text", "text": text});
            events.push(event("message.updated", json!({"sessionID": session, "info": info}))?);
            let properties = json!({"sessionID": session, "part": part, "time": at + 1});
            events.push(event("message.part.updated", properties)?);
            if events.len() >= CHUNK || at + 1 == MESSAGES {
                store.append(std::mem::take(&mut events)).await?;
            }
        }
        Ok(store.close().await?)
    })
}

/// The end of the long transcript, without what is between words.
fn shown_last() -> String {
    format!("{ANSWER}{}", MESSAGES - 1).split_whitespace().collect()
}

fn event(kind: &str, properties: Value) -> Result<Event> {
    Ok(serde_json::from_value(json!({"type": kind, "properties": properties}))?)
}

/// How often the threads of a process have waited for something.
fn wake_ups(process: i32) -> Result<u64> {
    let mut all = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        // A thread may end between the two looks.
        let status = fs::read_to_string(thread?.path().join("status")).unwrap_or_default();
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        all += count.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or_default();
    }
    Ok(all)
}

fn percentile(sorted: &[f64], of: usize) -> f64 {
    sorted[(sorted.len() * of / 100).min(sorted.len() - 1)]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
