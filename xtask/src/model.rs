//! The scripted model of benchmarks, in its own process so that its cost is not measured.
//!
//! For each line on stdin it prints one line with the requests since the last one. It ends with its stdin.

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

/// The hidden command that runs this process.
pub(crate) const COMMAND: &str = "benchmark-model";
/// The default port of `scripted`.
const PORT: u16 = 18_080;

/// The answer to "hi" and to the end of an edit.
pub(crate) const ANSWER: &str = "Hello from the scripted model, and that is all.";
/// The beginning of a prompt that is answered by an edit of the file that it names.
pub(crate) const EDIT: &str = "scripted-edit";
/// The beginning of a prompt that is answered by a long text.
pub(crate) const STREAM: &str = "scripted-stream";
/// The long text.
pub(crate) const FLOOD: Flood = Flood { bytes: 2_000_000, deltas: 40_000 };
/// The beginning of a prompt that is answered by half of the long text.
pub(crate) const HALF_STREAM: &str = "scripted-half";
/// Half of the long text.
pub(crate) const HALF: Flood = Flood { bytes: FLOOD.bytes / 2, deltas: FLOOD.deltas / 2 };
/// The beginning of a prompt that is answered by reading the file that it names.
pub(crate) const READ: &str = "scripted-look";
/// The beginning of a prompt of a session that streams together with others.
pub(crate) const LOAD: &str = "scripted-load";
/// The answer to such a prompt.
pub(crate) const LOADED: Flood = Flood { bytes: 100_000, deltas: 2000 };
/// The beginning of a prompt that is answered at the pace of a model.
pub(crate) const PACED: &str = "scripted-paced";
/// The beginning of a prompt that is answered for minutes.
pub(crate) const LIVE: &str = "scripted-live";
/// The words of that answer, and the pause before each.
const LIVE_WORDS: (usize, Duration) = (300, Duration::from_secs(2));
/// The beginning of a prompt that is answered by a command with a large output and a long text.
pub(crate) const BULK: &str = "scripted-bulk";
/// The long text after the large output.
pub(crate) const BULKY: Flood = Flood { bytes: 500_000, deltas: 1000 };
/// The command with the large output, 8 MB.
const BULKY_COMMAND: &str = "head -c 8000000 /dev/zero | tr '\\0' x | fold -w 100";
/// The text that an edit replaces, and its replacement.
pub(crate) const REPLACED: (&str, &str) = ("hello", "HELLO");

/// An answer whose words are the times at which they are due, on the machine's monotonic clock.
pub(crate) struct Paced;

impl Paced {
    /// The number of words.
    pub(crate) const COUNT: usize = 200;
    /// The interval between two words.
    const EVERY: Duration = Duration::from_millis(50);
    /// The number of digits of a time.
    const DIGITS: usize = 19;

    /// Returns an answer that starts now, with a delta for each word.
    fn answer() -> Steps {
        let begun = now_ns().unwrap_or_default();
        let every = i64::try_from(Self::EVERY.as_nanos()).unwrap_or_default();
        let word = |at: usize| format!("@{:0digits$}@ ", begun + every * at as i64, digits = Self::DIGITS);
        let text: String = (0..Self::COUNT).map(word).collect();
        let pace = Pace { chunk_size: Some(Self::DIGITS + 3), chunk_delay: Some(Self::EVERY) };
        let mut steps = Turn::steps();
        steps.steps.push(Step::Text { text, pace });
        steps
    }

    /// Returns the times at which the words of a text were due.
    pub(crate) fn stamps(text: &str) -> impl Iterator<Item = i64> {
        text.split('@').filter(|word| word.len() == Self::DIGITS).filter_map(|word| word.parse().ok())
    }
}

/// The requests since the last query.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// The arrival times of requests of conversations on the machine's monotonic clock, oldest first.
    pub(crate) main_ns: Vec<i64>,
    /// The arrival times of requests for titles and summaries.
    pub(crate) side_ns: Vec<i64>,
    /// The faults of requests that a provider would refuse.
    pub(crate) problems: Vec<String>,
}

/// The process of the scripted model.
pub(crate) struct Model {
    /// The base URL.
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

    /// Returns the requests since the last call.
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
        // It ends with its stdin, or has ended already.
        drop(self.stdin.take());
        self.child.wait().map(drop).unwrap_or_default();
    }
}

/// Serves the model of benchmarks until stdin ends.
pub(crate) fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let script = Script::new().title("A title").default_turn(Turn::respond(answer));
    // The server counts from its start, which is between these two times.
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
        let last = number;
        for request in server.requests().into_iter().filter(|request| request.number > last) {
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

/// Serves a script until interrupted.
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

/// Answers by the prompt and the number of steps so far, so that no run depends on another.
fn answer(request: &Request) -> Turn {
    let after = |marker: &str| request.users.iter().rev().find_map(|text| text.split_once(marker));
    for (marker, flood) in [(STREAM, FLOOD), (HALF_STREAM, HALF), (LOAD, LOADED)] {
        if after(marker).is_some() {
            let mut steps = Turn::steps();
            steps.steps.push(Step::Flood(flood));
            return steps.into();
        }
    }
    if after(PACED).is_some() {
        return Paced::answer().into();
    }
    if after(LIVE).is_some() {
        let (count, pause) = LIVE_WORDS;
        let pace = Pace { chunk_size: Some(5), chunk_delay: Some(pause) };
        let mut steps = Turn::steps();
        steps.steps.push(Step::Text { text: "word ".repeat(count), pace });
        return steps.into();
    }
    if after(BULK).is_some() {
        let mut steps = Turn::steps();
        return match request.round {
            0 => steps.tool("bash", json!({"command": BULKY_COMMAND, "description": "Print much"})).into(),
            _ => {
                steps.steps.push(Step::Flood(BULKY));
                steps.into()
            }
        };
    }
    // Some programs quote a prompt that is one argument.
    let file_name =
        |rest: &str| rest.split_whitespace().next().unwrap_or_default().trim_end_matches('"').to_owned();
    if let Some((_, rest)) = after(READ) {
        return match request.round {
            0 => Turn::steps().tool("read", json!({"filePath": file_name(rest)})).into(),
            _ => Turn::text(ANSWER).into(),
        };
    }
    let Some((_, rest)) = after(EDIT) else { return Turn::text(ANSWER).into() };
    let path = file_name(rest);
    let (old, new) = REPLACED;
    match request.round {
        0 => Turn::steps().tool("read", json!({"filePath": path})).into(),
        1 => Turn::steps().tool("edit", json!({"filePath": path, "oldString": old, "newString": new})).into(),
        _ => Turn::text(ANSWER).into(),
    }
}
