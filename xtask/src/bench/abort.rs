//! Measures the time to abort a turn, in each phase.
//!
//! The time is from the abort request to its answer. The session must be idle then.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{BlockingServer, Project, Run, Running, Script, Turn};
use serde_json::{Value, json};

use super::Plan;
use super::spread::Spread;

/// The name on the command line.
pub(super) const NAME: &str = "abort";
/// The limit.
const LIMIT_MS: f64 = 100.0;
/// The longest wait for a phase.
const DEADLINE: Duration = Duration::from_secs(60);
/// The interval at which to check for the phase.
const POLL: Duration = Duration::from_millis(20);

/// A phase of a turn.
struct Phase {
    name: &'static str,
    turn: fn() -> Turn,
    /// Whether a turn is in the phase, by its session's status, its messages and the permission requests.
    is_reached: fn(&Value, &Value, &Value) -> bool,
}

const PHASES: [Phase; 5] = [
    Phase {
        name: "waiting for the model",
        turn: || Turn::Silent,
        is_reached: |_, messages, _| messages[1].is_object(),
    },
    Phase {
        name: "streaming",
        turn: || Turn::text("Starting to speak").hang().into(),
        is_reached: |_, messages, _| messages[1]["parts"][1].is_object(),
    },
    Phase {
        name: "waiting to try again",
        turn: || Turn::http_error(429).header("retry-after", "300").into(),
        is_reached: |status, _, _| status["type"] == "retry",
    },
    Phase {
        name: "a command that ignores signals",
        turn: || {
            let command = "trap '' TERM INT HUP; echo begun; sleep 60; sleep 60";
            Turn::steps().tool("bash", json!({ "command": command })).into()
        },
        is_reached: |_, messages, _| messages[1]["parts"][1]["state"]["metadata"]["output"] == "begun\n",
    },
    Phase {
        name: "waiting for permission",
        turn: || Turn::steps().tool("write", json!({ "filePath": "a", "content": "a" })).into(),
        is_reached: |_, _, requests| requests[0].is_object(),
    },
];

/// Measures each phase and returns the lines of the report.
pub(super) fn measure(plan: &Plan) -> Result<String> {
    let binary = plan.program()?;
    let mut text = format!("\n{NAME}: from the abort request to its answer, limit {LIMIT_MS} ms\n");
    for phase in &PHASES {
        let times = (0..plan.runs).map(|_| once(&binary, phase)).collect::<Result<Vec<_>>>()?;
        let spread = Spread::of(times).context("no runs")?;
        let verdict = if spread.median <= LIMIT_MS { "" } else { "  OVER" };
        writeln!(
            text,
            "  {:<30} {:>7.1} ms  ({:.1} to {:.1}){verdict}",
            phase.name, spread.median, spread.least, spread.most
        )?;
    }
    Ok(text)
}

fn once(binary: &Path, phase: &Phase) -> Result<f64> {
    let model = BlockingServer::start(Script::new().turn((phase.turn)()))?;
    let project = Project::git()?;
    let mut config = Project::config(&model.url());
    config["permission"] = json!({ "edit": "ask" });
    project.write_config(&config)?;
    let run = Run::new(binary, &project).args(["serve"]).env("OPENCODE_DISABLE_MODELS_FETCH", "1");
    let mut server = run.env("OPENCODE_DISABLE_LOCAL_SERVERS", "1").deadline(DEADLINE).start()?;
    let time = abort(&mut server, phase);
    server.terminate()?;
    let ended = server.finish();
    // The first error has the cause.
    let time = time.with_context(|| phase.name)?;
    ended?;
    Ok(time)
}

fn abort(server: &mut Running, phase: &Phase) -> Result<f64> {
    let line = server.line_that(|line| line.contains("listening on"))?;
    let (_, url) = line.split_once("http://").context("the line has no address")?;
    let session = request(url, "POST", "/session", Some(&json!({})))?;
    let id = session["id"].as_str().context("no session")?;
    let path = format!("/session/{id}");
    let prompt = json!({ "parts": [{ "type": "text", "text": "go" }] });
    request(url, "POST", &format!("{path}/prompt_async"), Some(&prompt))?;
    let until = Instant::now() + DEADLINE;
    loop {
        let status = request(url, "GET", "/session/status", None)?;
        let messages = request(url, "GET", &format!("{path}/message"), None)?;
        if (phase.is_reached)(&status[id], &messages, &request(url, "GET", "/permission", None)?) {
            break;
        }
        ensure!(Instant::now() < until, "the phase `{}` was not reached", phase.name);
        std::thread::sleep(POLL);
    }
    let start = Instant::now();
    let aborted = request(url, "POST", &format!("{path}/abort"), Some(&json!({})))?;
    let time = start.elapsed();
    ensure!(aborted == json!(true), "the answer was {aborted}");
    let status = request(url, "GET", "/session/status", None)?;
    ensure!(status == json!({}), "the session is still busy: {status}");
    Ok(time.as_secs_f64() * 1000.0)
}

/// Sends a request and returns the JSON of the answer.
pub(super) fn request(address: &str, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    let body = body.map(Value::to_string).unwrap_or_default();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).with_context(|| format!("{method} {path} has no answer"))?;
    let text = String::from_utf8(bytes)?;
    let (head, body) = text.split_once("\r\n\r\n").context("no answer")?;
    ensure!(head.split(' ').nth(1).is_some_and(|status| status.starts_with('2')), "{path}: {text}");
    let body = body.trim();
    Ok(if body.is_empty() { Value::Null } else { serde_json::from_str(body)? })
}
