//! The scripted model as a process of its own: what it costs is not the
//! program's, and its clock is the machine's.
//!
//! It answers one line with one line: whatever it is told, it says which
//! requests came since it was last asked. It ends with its standard input.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use codewright_scripted::{Flood, Kind, Pace, Request, Script, Server, Step, Steps, Turn};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::measure::now_ns;

/// The hidden command that runs this.
pub(crate) const COMMAND: &str = "benchmark-model";
/// The port of the command for people, unless they say another.
const PORT: u16 = 18_080;

/// What "hi" and the end of an edit are answered with.
pub(crate) const ANSWER: &str = "Hello from the scripted model, and that is all.";
/// Begins a prompt that asks for an edit of the file named after it.
pub(crate) const EDIT: &str = "scripted-edit";
/// Begins a prompt that asks for much text.
pub(crate) const STREAM: &str = "scripted-stream";
/// The much text.
pub(crate) const FLOOD: Flood = Flood { bytes: 2_000_000, deltas: 40_000 };
/// Begins a prompt that asks for half as much, and that.
pub(crate) const HALF_STREAM: &str = "scripted-half";
pub(crate) const HALF: Flood = Flood { bytes: FLOOD.bytes / 2, deltas: FLOOD.deltas / 2 };
/// Begins a prompt that asks for one look at the file named after it.
pub(crate) const LOOK: &str = "scripted-look";
/// Begins a prompt that asks for the text of many sessions at once.
pub(crate) const LOAD: &str = "scripted-load";
/// That text.
pub(crate) const LOADED: Flood = Flood { bytes: 100_000, deltas: 2000 };
/// Begins a prompt that asks for words at the pace of a model.
pub(crate) const PACED: &str = "scripted-paced";
/// What an edit replaces, and by what.
pub(crate) const REPLACED: (&str, &str) = ("hello", "HELLO");

/// Words that say when they are due, on the machine's monotonic clock.
pub(crate) struct Paced;

impl Paced {
    /// Words of an answer.
    pub(crate) const COUNT: usize = 200;
    /// Between two words.
    const EVERY: Duration = Duration::from_millis(50);
    /// Digits of a time.
    const DIGITS: usize = 19;

    /// The words that begin to be said now, each a delta.
    fn said() -> Steps {
        let begun = now_ns().unwrap_or_default();
        let every = i64::try_from(Self::EVERY.as_nanos()).unwrap_or_default();
        let word = |at: usize| format!("@{:0digits$}@ ", begun + every * at as i64, digits = Self::DIGITS);
        let text: String = (0..Self::COUNT).map(word).collect();
        let pace = Pace { chunk_size: Some(Self::DIGITS + 3), chunk_delay: Some(Self::EVERY) };
        let mut steps = Turn::steps();
        steps.steps.push(Step::Text { text, pace });
        steps
    }

    /// When the words of a text were due.
    pub(crate) fn stamps(text: &str) -> impl Iterator<Item = i64> {
        text.split('@').filter(|word| word.len() == Self::DIGITS).filter_map(|word| word.parse().ok())
    }
}

/// The requests that came since the model was last asked.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// When each came, on the machine's monotonic clock, oldest first.
    pub(crate) main_ns: Vec<i64>,
    /// The same of those that wanted a title or a summary.
    pub(crate) side_ns: Vec<i64>,
    /// What a provider would have refused.
    pub(crate) problems: Vec<String>,
}

/// The model's process.
pub(crate) struct Model {
    /// Where it listens.
    pub(crate) url: String,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Model {
    /// Starts the process and waits until it listens.
    pub(crate) fn start() -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(COMMAND).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start the scripted model")?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().context("the scripted model has no output")?;
        let mut model = Self { url: String::new(), child, stdin, stdout: BufReader::new(stdout) };
        model.url = model.line()?;
        Ok(model)
    }

    /// The requests that came since this was last asked.
    pub(crate) fn seen(&mut self) -> Result<Seen> {
        let stdin = self.stdin.as_mut().context("the scripted model has no input")?;
        stdin.write_all(b"seen\n")?;
        stdin.flush()?;
        Ok(serde_json::from_str(&self.line()?)?)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.stdout.read_line(&mut line)? == 0 {
            bail!("the scripted model has ended");
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // It ends with its input; that it has already ended is fine too.
        drop(self.stdin.take());
        self.child.wait().map(drop).unwrap_or_default();
    }
}

/// Serves the benchmark's model until standard input ends.
pub(crate) fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let script = Script::new().title("A title").default_turn(Turn::respond(answer));
    // The server counts from its start, which is between these two.
    let before = now_ns()?;
    let server = runtime.block_on(Server::start(script))?;
    let zero_ns = before.midpoint(now_ns()?);
    let mut out = io::stdout().lock();
    writeln!(out, "{}", server.url())?;
    out.flush()?;
    let (mut number, mut problems) = (0, 0);
    for line in io::stdin().lock().lines() {
        line?;
        let mut seen = Seen::default();
        let known = number;
        for request in server.requests().into_iter().filter(|request| request.number > known) {
            number = request.number;
            let at_ns = zero_ns + i64::try_from(request.at.as_nanos())?;
            match request.kind {
                Kind::Main => seen.main_ns.push(at_ns),
                Kind::Title | Kind::Summary => seen.side_ns.push(at_ns),
            }
        }
        let all = server.problems();
        seen.problems = all.get(problems..).unwrap_or_default().to_vec();
        problems = all.len();
        serde_json::to_writer(&mut out, &seen)?;
        writeln!(out)?;
        out.flush()?;
    }
    runtime.block_on(server.stop());
    Ok(())
}

/// Serves a script for people until they interrupt it.
pub(crate) fn by_hand(rest: &[String]) -> Result<()> {
    let (mut port, mut script) = (PORT, Script::new().scenarios());
    let mut rest = rest.iter();
    while let Some(flag) = rest.next() {
        match flag.as_str() {
            "--port" => {
                let written = crate::value(flag, &mut rest)?;
                port = written.parse().with_context(|| format!("`--port {written}` is not a port"))?;
            }
            "--script" => {
                let path = crate::value(flag, &mut rest)?;
                let text = fs::read_to_string(path).with_context(|| format!("cannot read `{path}`"))?;
                script = Script::from_json(&text).with_context(|| format!("`{path}` is not a script"))?;
            }
            other => bail!("`scripted` has no flag `{other}`"),
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    runtime.block_on(async {
        let server =
            Server::start_on(address, script).await.with_context(|| format!("cannot listen on {address}"))?;
        let mut out = io::stdout();
        writeln!(out, "the scripted model listens on {0}\nbase URL: {0}/v1", server.url())?;
        out.flush()?;
        tokio::signal::ctrl_c().await?;
        for problem in server.problems() {
            writeln!(out, "problem: {problem}")?;
        }
        server.stop().await;
        Ok(())
    })
}

/// Answers by what was asked and how far the conversation is, so that no run depends on another.
fn answer(request: &Request) -> Turn {
    let said = |marker: &str| request.users.iter().rev().find_map(|text| text.split_once(marker));
    for (marker, flood) in [(STREAM, FLOOD), (HALF_STREAM, HALF), (LOAD, LOADED)] {
        if said(marker).is_some() {
            let mut steps = Turn::steps();
            steps.steps.push(Step::Flood(flood));
            return steps.into();
        }
    }
    if said(PACED).is_some() {
        return Paced::said().into();
    }
    // Some programs put a prompt of one argument into quotation marks.
    let named =
        |rest: &str| rest.split_whitespace().next().unwrap_or_default().trim_end_matches('"').to_owned();
    if let Some((_, rest)) = said(LOOK) {
        return match request.round {
            0 => Turn::steps().tool("read", json!({"filePath": named(rest)})).into(),
            _ => Turn::text(ANSWER).into(),
        };
    }
    let Some((_, rest)) = said(EDIT) else { return Turn::text(ANSWER).into() };
    let path = named(rest);
    let (old, new) = REPLACED;
    match request.round {
        0 => Turn::steps().tool("read", json!({"filePath": path})).into(),
        1 => Turn::steps().tool("edit", json!({"filePath": path, "oldString": old, "newString": new})).into(),
        _ => Turn::text(ANSWER).into(),
    }
}
