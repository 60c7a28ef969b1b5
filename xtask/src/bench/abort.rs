//! How long a stopped turn's caller waits, phase by phase.
//!
//! A server of the program is asked over HTTP to stop a turn that is at work; the time
//! is from the request to its answer, and the session must read idle with it.

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

/// What it is called on the command line.
pub(super) const NAME: &str = "abort";
/// What is promised, in milliseconds.
const LIMIT_MS: f64 = 100.0;
/// Longer than any phase takes to come.
const DEADLINE: Duration = Duration::from_secs(60);
/// How often it is looked whether a turn is where it is to be stopped.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Where a turn is when it is stopped.
struct Phase {
    name: &'static str,
    turn: fn() -> Turn,
    /// Whether a turn is there: from its session's status, its messages and the questions.
    is_there: fn(&Value, &Value, &Value) -> bool,
}

const PHASES: [Phase; 5] = [
    Phase {
        name: "waiting for the model",
        turn: || Turn::Silent,
        is_there: |_, messages, _| messages[1].is_object(),
    },
    Phase {
        name: "streaming",
        turn: || Turn::text("Starting to speak").hang().into(),
        is_there: |_, messages, _| messages[1]["parts"][1].is_object(),
    },
    Phase {
        name: "waiting to try again",
        turn: || Turn::http_error(429).header("retry-after", "300").into(),
        is_there: |status, _, _| status["type"] == "retry",
    },
    Phase {
        name: "a deaf command",
        turn: || {
            let command = "trap '' TERM INT HUP; echo begun; sleep 60; sleep 60";
            Turn::steps().tool("bash", json!({ "command": command })).into()
        },
        is_there: |_, messages, _| messages[1]["parts"][1]["state"]["metadata"]["output"] == "begun\n",
    },
    Phase {
        name: "waiting for permission",
        turn: || Turn::steps().tool("write", json!({ "filePath": "a", "content": "a" })).into(),
        is_there: |_, _, questions| questions[0].is_object(),
    },
];

/// Measures each phase so many times; the lines to be shown.
pub(super) fn measure(plan: &Plan) -> Result<String> {
    let binary = plan.program()?;
    let mut text = format!("\n{NAME}: from the request to stop to its answer, at most {LIMIT_MS} ms\n");
    for phase in &PHASES {
        let times = (0..plan.runs).map(|_| once(&binary, phase)).collect::<Result<Vec<_>>>()?;
        let spread = Spread::of(times).context("no runs")?;
        let verdict = if spread.median <= LIMIT_MS { "" } else { "  TOO SLOW" };
        writeln!(
            text,
            "  {:<24} {:>7.1} ms  ({:.1} to {:.1}){verdict}",
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
    let time = stop(&mut server, phase);
    server.terminate()?;
    let ended = server.finish();
    // What went wrong first says more.
    let time = time.with_context(|| phase.name)?;
    ended?;
    Ok(time)
}

fn stop(server: &mut Running, phase: &Phase) -> Result<f64> {
    let line = server.line_that(|line| line.contains("listening on"))?;
    let (_, url) = line.split_once("http://").context("the line has no address")?;
    let session = ask(url, "POST", "/session", Some(&json!({})))?;
    let id = session["id"].as_str().context("no session")?;
    let path = format!("/session/{id}");
    let prompt = json!({ "parts": [{ "type": "text", "text": "go" }] });
    ask(url, "POST", &format!("{path}/prompt_async"), Some(&prompt))?;
    let until = Instant::now() + DEADLINE;
    loop {
        let status = ask(url, "GET", "/session/status", None)?;
        let messages = ask(url, "GET", &format!("{path}/message"), None)?;
        if (phase.is_there)(&status[id], &messages, &ask(url, "GET", "/permission", None)?) {
            break;
        }
        ensure!(Instant::now() < until, "`{}` did not come", phase.name);
        std::thread::sleep(LOOK_EVERY);
    }
    let asked = Instant::now();
    let stopped = ask(url, "POST", &format!("{path}/abort"), Some(&json!({})))?;
    let time = asked.elapsed();
    ensure!(stopped == json!(true), "the answer was {stopped}");
    let status = ask(url, "GET", "/session/status", None)?;
    ensure!(status == json!({}), "the session is still at work: {status}");
    Ok(time.as_secs_f64() * 1000.0)
}

/// The JSON that a request is answered with.
pub(super) fn ask(address: &str, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    let body = body.map(Value::to_string).unwrap_or_default();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).with_context(|| format!("{method} {path} was not answered"))?;
    let text = String::from_utf8(bytes)?;
    let (head, body) = text.split_once("\r\n\r\n").context("no answer")?;
    ensure!(head.split(' ').nth(1).is_some_and(|status| status.starts_with('2')), "{path}: {text}");
    let body = body.trim();
    Ok(if body.is_empty() { Value::Null } else { serde_json::from_str(body)? })
}
