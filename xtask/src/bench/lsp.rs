//! Measures what language servers cost: edits with diagnostics, and servers that no file needs.
//!
//! The server is the scripted one of the tests, `crates/testkit/servers/lsp.py`. Only the program itself is
//! measured, not its supervisors and the servers. The server writes down how long it worked itself, and the wall
//! time is counted without that.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{Script, Turn};
use serde_json::{Value, json};

use super::abort::request;
use super::mcp::{SETTLE, Stage, wake_ups};
use super::served::{memory, own_cpu_ms};
use super::spread::Spread;
use super::{Plan, report};

/// The name on the command line.
pub(super) const NAME: &str = "lsp";
/// The server and its name in the project.
const SCRIPT: &str = include_str!("../../../crates/testkit/servers/lsp.py");
const SCRIPT_NAME: &str = "lsp.py";
/// The file in which the server writes its own times.
const CLOCK: &str = "clock";
/// The number of servers that no file needs.
const SERVERS: usize = 5;
/// The edits of each kind before the measured ones.
const WARM_UP: usize = 10;
/// The measured edits of each kind.
const EDITS: usize = 40;
/// The lines of the edited files.
const LINES: usize = 200;

/// The limits.
const CPU_MS: f64 = 3.0;
const WALL_MS: f64 = 3.0;

/// What a program costs at rest.
struct Rest {
    memory_mib: f64,
    wake_ups: f64,
    request_bytes: f64,
}

/// What a language server adds to an edit, in milliseconds.
struct Added {
    cpu: f64,
    wall: f64,
    /// The work of the server, which is part of `wall`.
    server: f64,
}

/// Measures and returns the lines of the report.
pub(super) fn measure(plan: &Plan) -> Result<String> {
    let binary = plan.program()?;
    let none = at_rest(&binary, &json!({}))?;
    let unneeded = at_rest(&binary, &json!({"lsp": servers()}))?;
    let added = (0..plan.runs).map(|_| edits(&binary)).collect::<Result<Vec<_>>>()?;
    let spread = |value: fn(&Added) -> f64| Spread::of(added.iter().map(value)).context("no runs");
    let (cpu, server) = (spread(|one| one.cpu)?, spread(|one| one.server)?);
    let wall = spread(|one| one.wall - one.server)?;
    let mut text =
        format!("\n{NAME}: a file of {LINES} lines is written with and without a language server\n");
    let mut row = |name: &str, unit: &str, value: f64, limit: Option<f64>| {
        report::row(&mut text, name, unit, value, limit)
    };
    row("an edit with diagnostics: CPU", "ms", cpu.median, Some(CPU_MS))?;
    row("an edit with diagnostics: wall without the server", "ms", wall.median, Some(WALL_MS))?;
    row("the server itself", "ms", server.median, None)?;
    let bytes = unneeded.request_bytes - none.request_bytes;
    row("not needed: first request", "bytes", bytes, Some(0.0))?;
    row("not needed: memory", "MiB", unneeded.memory_mib - none.memory_mib, None)?;
    row("not needed: more wake-ups in 20 s", "", unneeded.wake_ups - none.wake_ups, Some(0.0))?;
    row("wake-ups in 20 s without servers", "", none.wake_ups, None)?;
    writeln!(text, "  {:<50} {:.2} to {:.2} ms", "range of the CPU", cpu.least, cpu.most)?;
    writeln!(text, "  {:<50} {:.2} to {:.2} ms", "range of the wall time", wall.least, wall.most)?;
    Ok(text)
}

/// The configuration of servers for files that the project does not have.
fn servers() -> Value {
    let one = |number: usize| {
        let extensions = [format!(".other{number}")];
        (format!("server{number}"), json!({"command": ["python3", SCRIPT_NAME], "extensions": extensions}))
    };
    Value::Object((0..SERVERS).map(one).collect())
}

/// Measures a program at rest after one turn.
fn at_rest(binary: &Path, config: &Value) -> Result<Rest> {
    let stage = Stage::start(binary, config, Script::new().text("Done.").repeat())?;
    let statuses = request(&stage.address, "GET", "/lsp", None)?;
    ensure!(statuses == json!([]), "{statuses}");
    let first = stage.model.main_requests().first().context("no request")?.body.to_string().len();
    thread::sleep(SETTLE);
    let memory_mib = memory(stage.pid())?.now_mib;
    let wake_ups = wake_ups(stage.pid())?;
    stage.end()?;
    Ok(Rest { memory_mib, wake_ups, request_bytes: first as f64 })
}

/// Writes files with and without a server in turn, and returns the median of what the server adds.
fn edits(binary: &Path) -> Result<Added> {
    let write = |file: &str, number: usize| {
        let mut content: String = (0..LINES).map(|line| format!("line {line} of a file\n")).collect();
        write!(content, "ERROR number {number}").map(|()| content).map(|content| {
            let input = json!({"filePath": file, "content": content});
            Turn::steps().tool("write", input)
        })
    };
    let mut script = Script::new().text("Done.");
    for number in 0..WARM_UP + EDITS {
        script = script.turn(write("plain.txt", number)?).text("Done.");
        script = script.turn(write("code.demo", number)?).text("Done.");
    }
    let clock = tempfile::tempdir()?;
    let clock = clock.path().join(CLOCK);
    let option = format!("clock={}", clock.display());
    let entry = json!({"command": ["python3", SCRIPT_NAME, option], "extensions": [".demo"]});
    // The server writes its times outside of the project.
    let config = json!({"lsp": {"demo": entry}, "sandbox": {"mode": "off"}});
    let stage = Stage::start(binary, &config, script)?;
    stage.project.write(SCRIPT_NAME, SCRIPT)?;
    let edit = || -> Result<(f64, f64)> {
        let (cpu, begun) = (own_cpu_ms(stage.pid())?, Instant::now());
        stage.prompt()?;
        let wall = begun.elapsed().as_secs_f64() * 1e3;
        Ok((own_cpu_ms(stage.pid())? - cpu, wall))
    };
    let (mut cpus, mut walls) = (Vec::new(), Vec::new());
    for number in 0..WARM_UP + EDITS {
        let (plain, code) = (edit()?, edit()?);
        if number >= WARM_UP {
            cpus.push(code.0 - plain.0);
            walls.push(code.1 - plain.1);
        }
    }
    let messages = request(&stage.address, "GET", &format!("/session/{}/message", stage.session), None)?;
    let done = messages.to_string().matches("please fix").count();
    ensure!(done >= EDITS, "{done} edits have diagnostics");
    stage.end()?;
    let times = fs::read_to_string(&clock)?;
    let times = times.lines().filter_map(|line| line.parse::<f64>().ok()).skip(WARM_UP);
    let median = |values: Vec<f64>| Spread::of(values).map(|spread| spread.median).context("no edits");
    let server = median(times.map(|nanoseconds| nanoseconds / 1e6).collect())?;
    Ok(Added { cpu: median(cpus)?, wall: median(walls)?, server })
}
