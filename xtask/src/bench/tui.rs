//! Measures the terminal client: start, idle time, a long answer, keys in a long transcript.
//!
//! The program runs on a pseudo-terminal. A time ends when the bytes that complete the screen are read. Other
//! programs are only started and measured while idle, because their keys differ.

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
use super::serve::{new_session, start_streams};
use super::served::{self, Served};
use super::spread::Spread;
use super::{Plan, Program};
use crate::model::{ANSWER, FLOOD, HALF, HALF_STREAM, Model, STREAM};

mod screen;

/// The name on the command line.
pub(super) const NAME: &str = "tui";
/// The text of an empty prompt, the same in all programs.
const EMPTY: &str = "Ask anything";
/// The name of the model, which appears below the prompt once it is loaded.
const MODEL: &str = "plain-model";
/// The text to type to check that the prompt is usable.
const TYPED: &str = "zqzq";
/// The number of bytes at the end of a long answer that must be visible.
const LAST_BYTES: usize = 60;
/// The number of messages of the long transcript.
const MESSAGES: usize = 100_000;
/// The number of events in each append.
const CHUNK: usize = 1000;
/// The number of sessions that stream while keys are typed.
const CONCURRENT: usize = 20;
/// The number of measured keys, half of them letters and half backspaces.
const KEYS: usize = 300;
/// The number of letters before they are deleted again: less than a line.
const WORD: usize = 25;
/// The number of pages to scroll up and down again.
const PAGES: usize = 60;
/// The time from the start until the program is idle.
const SETTLE: Duration = Duration::from_secs(3);
/// The time over which the CPU time of an idle program is measured.
const IDLE: Duration = Duration::from_secs(5);

const ENTER: &str = "\r";
const BACKSPACE: &str = "\u{7f}";
const PAGE_UP: &str = "\u{1b}[5~";
const PAGE_DOWN: &str = "\u{1b}[6~";

/// A figure and its upper limit.
struct Row {
    name: &'static str,
    unit: &'static str,
    limit: Option<f64>,
}

const ROWS: [Row; 18] = [
    row("start to first frame, wall", "ms", Some(30.0)),
    row("start to usable prompt, CPU", "ms", Some(90.0)),
    row("start to usable prompt, wall", "ms", None),
    row("idle, memory", "MiB", Some(50.0)),
    row("idle, peak memory", "MiB", Some(50.0)),
    row("idle, CPU", "%", Some(0.1)),
    row("idle, wake-ups", "/s", Some(1.0)),
    row("2 MB in 40,000 deltas, CPU", "ms", Some(1000.0)),
    row("2 MB in 40,000 deltas, wall", "ms", None),
    row("2 MB in 40,000 deltas, peak memory", "MiB", None),
    // 1 if the cost is linear in the length, and less because a turn has a fixed cost.
    row("a delta of 2 MB to one of 1 MB, CPU", "x", Some(1.2)),
    row("100,000 messages opened, wall", "ms", None),
    row("100,000 messages opened, memory", "MiB", None),
    row("key to paint in it, p50", "ms", None),
    row("key to paint in it, p99", "ms", Some(16.0)),
    row("page key to paint in it, p99", "ms", Some(16.0)),
    row("key to paint during 20 streams, p50", "ms", None),
    row("key to paint during 20 streams, p99", "ms", Some(16.0)),
];

const fn row(name: &'static str, unit: &'static str, limit: Option<f64>) -> Row {
    Row { name, unit, limit }
}

/// A measured program.
struct Subject {
    program: Program,
    figures: BTreeMap<&'static str, Vec<f64>>,
    failed: Option<anyhow::Error>,
}

/// The cost of a long answer.
struct AnswerCost {
    cpu_ms: f64,
    wall: Duration,
    peak_mib: f64,
}

/// Measures each program and returns the lines of the report.
pub(super) fn measure(plan: &Plan) -> Result<String> {
    let mut model = Model::start()?;
    let mut subjects = vec![Subject::new("ours", &plan.program()?, &model.url)?];
    for (at, path) in plan.against.iter().enumerate() {
        subjects.push(Subject::new(&format!("against {}", at + 1), path, &model.url)?);
    }
    for run in 0..=plan.runs {
        for subject in subjects.iter_mut().filter(|subject| subject.failed.is_none()) {
            subject.failed = subject.measure_start(run > 0).context("starting").err();
        }
    }
    for subject in subjects.iter_mut().filter(|subject| subject.failed.is_none()) {
        subject.failed = subject.measure_idle().context("idle").err();
    }
    let ours = &mut subjects[0];
    if ours.failed.is_none() {
        ours.failed = ours.measure_use(&mut model, plan.runs).err();
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

/// Formats a line for each program that has the figure.
fn lines(row: &Row, subjects: &[Subject]) -> String {
    let spread = |subject: &Subject| Spread::of(subject.figures.get(row.name).into_iter().flatten().copied());
    let ours = subjects.first().and_then(spread);
    let mut text = String::new();
    for (at, subject) in subjects.iter().enumerate() {
        let Some(it) = spread(subject) else { continue };
        let range = format!("({:.2} .. {:.2})", it.least, it.most);
        let verdict = match (at, row.limit, ours) {
            (0, Some(limit), _) => {
                format!("limit {limit} {} {}", row.unit, if it.median <= limit { "ok" } else { "OVER" })
            }
            (1.., _, Some(ours)) if ours.median > 0.0 => format!("{:.1} x ours", it.median / ours.median),
            _ => String::new(),
        };
        let name = if at == 0 { row.name } else { "" };
        let line = format!(
            "  {name:<36} {:<10} {:>10.2} {:<4} {range:<24} {verdict}",
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

    /// Keeps a figure. The row name consists of the subject and the unit.
    fn keep(&mut self, of: &str, what: &str, value: f64) {
        let named = |row: &&Row| row.name.strip_prefix(of).is_some_and(|rest| rest == what);
        let row = ROWS.iter().find(named).expect("every figure has a row");
        self.figures.entry(row.name).or_default().push(value);
    }

    /// Measures answers and keys, which only our program is driven for.
    fn measure_use(&mut self, model: &mut Model, runs: usize) -> Result<()> {
        // The first run warms the machine.
        for run in 0..=runs.min(3) {
            self.measure_answers(model, run > 0).context("a long answer")?;
        }
        let server = Served::start(&self.program)?;
        let session = new_session(&server.address, "Long")?;
        server.end()?;
        fill_transcript(&self.program, &session).context("writing the long transcript")?;
        self.measure_keys(&session).context("keys in a long transcript")?;
        self.measure_keys_during_streams(&session).context("keys during streams")
    }

    /// Measures the time until a typed word appears in the prompt.
    fn measure_start(&mut self, counts: bool) -> Result<()> {
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

    fn measure_idle(&mut self) -> Result<()> {
        let screen = Screen::start(&self.program, &[])?;
        screen.until(&Awaited::Text(MODEL.to_owned()))?;
        thread::sleep(SETTLE);
        let process = screen.process()?;
        for _ in 0..3 {
            let (cpu, woken) = (served::own_cpu_ms(process)?, wake_ups(process.as_raw())?);
            thread::sleep(IDLE);
            let seconds = IDLE.as_secs_f64();
            let used = served::own_cpu_ms(process)? - cpu;
            let woken = wake_ups(process.as_raw())?.saturating_sub(woken);
            let memory = served::memory(process)?;
            self.keep("idle", ", CPU", used / seconds / 10.0);
            self.keep("idle", ", wake-ups", woken as f64 / seconds);
            self.keep("idle", ", memory", memory.now_mib);
            self.keep("idle", ", peak memory", memory.peak_mib);
        }
        Ok(())
    }

    /// Measures long answers, each in a new client.
    fn measure_answers(&mut self, model: &mut Model, counts: bool) -> Result<()> {
        const OF: &str = "2 MB in 40,000 deltas";
        let half = self.answer_cost(model, HALF_STREAM, HALF)?;
        let whole = self.answer_cost(model, STREAM, FLOOD)?;
        if counts {
            self.keep(OF, ", CPU", whole.cpu_ms);
            self.keep(OF, ", wall", millis(whole.wall));
            self.keep(OF, ", peak memory", whole.peak_mib);
            self.keep("a delta of 2 MB to one of 1 MB", ", CPU", whole.cpu_ms / half.cpu_ms / 2.0);
        }
        Ok(())
    }

    /// Measures a long answer, from the Enter key to the line below its end.
    fn answer_cost(&self, model: &mut Model, prompt: &str, flood: Flood) -> Result<AnswerCost> {
        let mut screen = Screen::start(&self.program, &[])?;
        screen.until(&Awaited::Text(MODEL.to_owned()))?;
        screen.send(prompt)?;
        screen.until(&Awaited::Text(prompt.to_owned()))?;
        model.seen()?;
        let process = screen.process()?;
        let (cpu, begun) = (served::own_cpu_ms(process)?, Instant::now());
        screen.send(ENTER)?;
        // Without white space, because the program wraps the lines.
        let text: String = flood.text().split_whitespace().collect();
        let last = text.len().saturating_sub(LAST_BYTES);
        screen.until(&Awaited::Letters(format!("{}▣Build", &text[last..])))?;
        let wall = screen.reached()? - begun;
        let cpu_ms = served::own_cpu_ms(process)? - cpu;
        ensure!(model.seen()?.main_ns.len() == 1, "the model did not get exactly one request");
        Ok(AnswerCost { cpu_ms, wall, peak_mib: served::memory(process)?.peak_mib })
    }

    fn measure_keys(&mut self, session: &str) -> Result<()> {
        const OF: &str = "100,000 messages opened";
        let mut screen = Screen::start(&self.program, &["--session", session])?;
        screen.until(&Awaited::Letters(format!("{}▣Build", end_of_transcript())))?;
        self.keep(OF, ", wall", millis(screen.reached()? - screen.begun));
        thread::sleep(SETTLE);
        let times = type_keys(&mut screen)?;
        self.keep("key to paint in it", ", p50", percentile(&times, 50));
        self.keep("key to paint in it", ", p99", percentile(&times, 99));
        let times = scroll_pages(&mut screen)?;
        self.keep("page key to paint in it", ", p99", percentile(&times, 99));
        self.keep(OF, ", memory", served::memory(screen.process()?)?.now_mib);
        Ok(())
    }

    /// Measures keys in a client of a server with streaming sessions.
    fn measure_keys_during_streams(&mut self, session: &str) -> Result<()> {
        let server = Served::start(&self.program)?;
        let url = format!("http://{}", server.address);
        let project = self.program.sandbox.project();
        let project = project.to_str().context("the path of the project is not UTF-8")?;
        let mut screen =
            Screen::start(&self.program, &["attach", &url, "--dir", project, "--session", session])?;
        screen.until(&Awaited::Letters(format!("{}▣Build", end_of_transcript())))?;
        thread::sleep(SETTLE);
        let streams = start_streams(&server.address, CONCURRENT);
        let times = type_keys(&mut screen)?;
        let are_streaming = streams.iter().all(|stream| !stream.is_finished());
        ensure!(are_streaming, "the sessions had ended before the last key was typed");
        for stream in streams {
            stream.join().expect("no stream panics")?;
        }
        self.keep("key to paint during 20 streams", ", p50", percentile(&times, 50));
        self.keep("key to paint during 20 streams", ", p99", percentile(&times, 99));
        drop(screen);
        server.end()
    }
}

/// Types words, deletes them again and returns the milliseconds of each key, sorted.
fn type_keys(screen: &mut Screen) -> Result<Vec<f64>> {
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

/// Scrolls pages up and down again and returns the milliseconds of each, sorted.
fn scroll_pages(screen: &mut Screen) -> Result<Vec<f64>> {
    let mut times = Vec::with_capacity(2 * PAGES);
    // Not quite back to the end, where the last page keys have no effect.
    for (key, pages) in [(PAGE_UP, PAGES), (PAGE_DOWN, PAGES - 5)] {
        for _ in 0..pages {
            // Wait until the effect of the last key is drawn.
            thread::sleep(Duration::from_millis(60));
            let awaited = Awaited::Frame { than: screen.contents() };
            times.push(millis(screen.pressed(key, &awaited)?));
        }
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(times)
}

/// Writes the long transcript into a session, alternating prompts and answers.
fn fill_transcript(program: &Program, session: &str) -> Result<()> {
    let data = program.sandbox.data().join("codewright/codewright.db");
    let (clock, project) = (Clock::system(), program.sandbox.project());
    let ids = Ids::new(clock.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = Store::open(&data, Ids::new(clock.clone()), clock).await?;
        let (mut events, mut prompt) = (Vec::with_capacity(CHUNK + 2), String::new());
        for at in 0..MESSAGES {
            let id = ids.message().to_string();
            let info = if at % 2 == 0 {
                prompt.clone_from(&id);
                json!({"id": id, "sessionID": session, "role": "user", "time": {"created": at + 1},
                    "agent": "build", "model": {"providerID": "mock", "modelID": MODEL}})
            } else {
                json!({"id": id, "sessionID": session, "role": "assistant", "parentID": prompt, "mode": "build",
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

/// Returns the end of the long transcript without white space.
fn end_of_transcript() -> String {
    format!("{ANSWER}{}", MESSAGES - 1).split_whitespace().collect()
}

fn event(kind: &str, properties: Value) -> Result<Event> {
    Ok(serde_json::from_value(json!({"type": kind, "properties": properties}))?)
}

/// Returns how often the threads of a process have blocked.
fn wake_ups(process: i32) -> Result<u64> {
    let mut all = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        // The thread may have ended.
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
