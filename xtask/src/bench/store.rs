//! Measures the store: appends by its API, lists and pages over HTTP.
//!
//! Appends run in the `measure` build of this program, lists and pages are requests to a server of the measured
//! program on a generated database. The items of every answer are counted.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use codewright_proto::{Clock, Event, Ids, SessionId};
use codewright_store::Store;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Plan;
use super::compare;
use super::spread::Spread;

/// The name on the command line.
pub(super) const NAME: &str = "store";
/// The hidden command of the measuring process.
pub(crate) const COMMAND: &str = "store-part";

/// The number of concurrent writers, each with its session.
const WRITERS: usize = 32;
/// The number of events of each writer, one in each append.
const EVENTS: usize = 1000;
/// The number of appends whose times are measured one by one.
const SINGLE: usize = 2000;
/// The number of sessions in the list.
const SESSIONS: usize = 10_000;
/// The number of messages of the long session.
const MESSAGES: usize = 10_000;
/// The number of messages of a page.
const PAGE: usize = 50;
/// The deadline of an answer.
const DEADLINE: Duration = Duration::from_secs(60);

/// The runs of a row.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    what: String,
    unit: String,
    values: Vec<f64>,
    limit: f64,
    more_is_better: bool,
}

/// Builds and runs the measuring process and returns the lines of the report.
pub(super) fn measure(plan: &Plan) -> Result<String> {
    let program = plan.program()?;
    let part = super::build_measuring()?;
    let output = Command::new(part).arg(COMMAND).arg(&program).arg(plan.runs.to_string()).output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the measuring program failed: {}", stderr.trim());
    let rows: Vec<Row> = serde_json::from_slice(&output.stdout)?;
    let mut text =
        format!("\n{NAME}: {WRITERS} sessions writing; {SESSIONS} sessions; {MESSAGES} messages\n");
    for Row { what, unit, values, limit, more_is_better } in rows {
        let spread = Spread::of(values).context("a row without runs")?;
        let is_good = if more_is_better { spread.median >= limit } else { spread.median <= limit };
        let (mark, bound) = (if is_good { "ok" } else { "MISSED" }, if more_is_better { "≥" } else { "≤" });
        let range = format!("({:.1} .. {:.1})", spread.least, spread.most);
        writeln!(text, "  {what:<34} {:>9.1} {unit:<9} {range:<22} {bound} {limit} {mark}", spread.median)?;
    }
    if !plan.against.is_empty() {
        text.push_str(&compare::measure(&program, &plan.against, plan.runs)?);
    }
    Ok(text)
}

/// Measures and prints the rows as JSON.
pub(crate) fn main(rest: &[String]) -> Result<()> {
    let [program, runs] = rest else { anyhow::bail!("`{COMMAND}` needs a program and a number") };
    let runs: usize = runs.parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut rows = runtime.block_on(appends(runs))?;
    rows.extend(runtime.block_on(answers(Path::new(program), runs))?);
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, &rows)?;
    Ok(out.flush()?)
}

async fn open(path: &Path) -> Result<Store> {
    let clock = Clock::system();
    let store = Store::open(path, Ids::new(clock.clone()), clock).await?;
    let project =
        json!({"id": "global", "worktree": "/", "time": {"created": 1, "updated": 1}, "sandboxes": []});
    store.save_project(serde_json::from_value(project)?).await?;
    Ok(store)
}

fn session(id: &str) -> Result<Event> {
    let info = json!({"id": id, "slug": "a-slug", "projectID": "global", "directory": "/tmp", "title": "A title of some words",
        "version": "1.0.0", "time": {"created": 5, "updated": 5}});
    event("session.created", json!({"sessionID": id, "info": info}))
}

fn message(session: &str, id: &str, created: usize) -> Result<Event> {
    let info = json!({"id": id, "sessionID": session, "role": "user", "time": {"created": created},
        "agent": "build", "model": {"providerID": "p", "modelID": "m"}});
    event("message.updated", json!({"sessionID": session, "info": info}))
}

fn part(session: &str, message: &str, id: &str) -> Result<Event> {
    let text = "A line of text as a model or a tool writes it, and another one after it. ".repeat(3);
    let part = json!({"id": id, "sessionID": session, "messageID": message, "type": "text", "text": text});
    event("message.part.updated", json!({"sessionID": session, "part": part, "time": 5}))
}

fn event(kind: &str, properties: Value) -> Result<Event> {
    Ok(serde_json::from_value(json!({"type": kind, "properties": properties}))?)
}

async fn appends(runs: usize) -> Result<Vec<Row>> {
    let (mut rates, mut slow) = (Vec::new(), Vec::new());
    for _ in 0..=runs {
        let directory = tempfile::tempdir()?;
        let store = open(&directory.path().join("store.db")).await?;
        for at in 0..WRITERS {
            let id = format!("ses_{at:02}");
            store.append(vec![session(&id)?, message(&id, &format!("msg_{at:02}"), 5)?]).await?;
        }
        // The events are created before the clock starts, with ids in the order in which the program creates them.
        let ids = Ids::new(Clock::system());
        let mut work: Vec<_> = (0..WRITERS).map(|_| Vec::with_capacity(EVENTS)).collect();
        for _ in 0..EVENTS {
            for (at, events) in work.iter_mut().enumerate() {
                let id = ids.part();
                events.push(part(&format!("ses_{at:02}"), &format!("msg_{at:02}"), id.as_str())?);
            }
        }
        let before = store.last_position();
        let start = Instant::now();
        let mut writers = tokio::task::JoinSet::new();
        for events in work {
            let store = store.clone();
            writers.spawn(async move {
                for event in events {
                    store.append(vec![event]).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(done) = writers.join_next().await {
            done??;
        }
        rates.push((WRITERS * EVENTS) as f64 / start.elapsed().as_secs_f64());
        ensure!(store.last_position() - before == (WRITERS * EVENTS) as u64, "events are missing");
        let mut times = Vec::with_capacity(SINGLE);
        for n in 0..SINGLE {
            let event = part("ses_00", "msg_00", &format!("prt_single_{n:04}"))?;
            let start = Instant::now();
            store.append(vec![event]).await?;
            times.push(start.elapsed().as_secs_f64() * 1000.0);
        }
        times.sort_unstable_by(f64::total_cmp);
        slow.push(times[SINGLE * 99 / 100]);
        store.close().await?;
    }
    Ok(vec![
        row("appends, 32 sessions", "events/s", rates, 20_000.0, true),
        row("one append, p99", "ms", slow, 5.0, false),
    ])
}

/// Creates a row without the first run, which warms the machine.
fn row(what: &str, unit: &str, mut values: Vec<f64>, limit: f64, more_is_better: bool) -> Row {
    values.remove(0);
    Row { what: what.to_owned(), unit: unit.to_owned(), values, limit, more_is_better }
}

async fn answers(program: &Path, runs: usize) -> Result<Vec<Row>> {
    let home = tempfile::tempdir()?;
    let data = home.path().join(".local/share/codewright");
    let store = open(&data.join("codewright.db")).await?;
    let long = SessionId::parse("ses_long")?;
    let mut events = vec![session(long.as_str())?];
    for at in 0..MESSAGES {
        let id = format!("msg_{at:05}");
        events.push(message(long.as_str(), &id, at)?);
        events.push(part(long.as_str(), &id, &format!("prt_{at:05}"))?);
    }
    for at in 1..SESSIONS {
        events.push(session(&format!("ses_{at:05}"))?);
    }
    for chunk in events.chunks(1000) {
        store.append(chunk.to_vec()).await?;
    }
    store.close().await?;
    let (mut server, address) = serve(program, home.path())?;
    let rows = request_rows(&address, runs);
    server.kill()?;
    server.wait()?;
    rows
}

fn request_rows(address: &str, runs: usize) -> Result<Vec<Row>> {
    let rows = [
        ("first page of a long session", format!("/session/ses_long/message?limit={PAGE}"), PAGE, 20.0),
        ("all of a long session", "/session/ses_long/message".to_owned(), MESSAGES, 300.0),
        ("list of sessions", format!("/session?limit={SESSIONS}"), SESSIONS, 50.0),
    ];
    let mut found = Vec::new();
    for (what, path, count, limit) in rows {
        let mut times = Vec::new();
        for _ in 0..=runs {
            let start = Instant::now();
            let body = get(address, &path)?;
            times.push(start.elapsed().as_secs_f64() * 1000.0);
            let items: Vec<Value> = serde_json::from_str(&body)?;
            ensure!(items.len() == count, "`{path}` has {} items", items.len());
        }
        found.push(row(what, "ms", times, limit, false));
    }
    Ok(found)
}

fn serve(program: &Path, home: &Path) -> Result<(Child, String)> {
    let mut server = Command::new(program)
        .args(["serve", "--port", "0"])
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("OPENCODE_DISABLE_LOCAL_SERVERS", "1")
        .env("OPENCODE_DISABLE_MODELS_FETCH", "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let lines = BufReader::new(server.stdout.take().context("a pipe")?).lines();
    for line in lines {
        if let Some((_, url)) = line?.split_once("listening on http://") {
            return Ok((server, url.to_owned()));
        }
    }
    anyhow::bail!("the server does not print its address")
}

fn get(address: &str, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
    ensure!(head.starts_with("HTTP/1.1 200"), "{head}");
    Ok(body.to_owned())
}
