//! Measures what MCP servers cost: memory, wake-ups, calls, and the size of the first request.
//!
//! The servers are the scripted one of the tests, `crates/testkit/servers/mcp.py`. Only the program itself is
//! measured, not its supervisors and the servers.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{BlockingServer, Project, Run, Running, Script, Turn};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::abort::request;
use super::served::{memory, own_cpu_ms};
use super::spread::Spread;
use super::{Plan, report};

/// The name on the command line.
pub(super) const NAME: &str = "mcp";
/// The server and its name in the project, where the sandbox shows it.
const SCRIPT: &str = include_str!("../../../crates/testkit/servers/mcp.py");
const SCRIPT_NAME: &str = "mcp.py";
/// The number of servers.
const SERVERS: usize = 5;
/// The tools of each server besides the 20 that it always has, so that all have 200.
const MORE_TOOLS: usize = 20;
/// The usual mode of the sandbox, which watches the protected names of each server.
const SANDBOX: &str = "workspace";
/// The number of calls between two readings of the clock.
const CALLS: usize = 20;
/// The calls of each kind before them.
const WARM: usize = 8;
/// The time after a turn in which its work ends.
const AFTER: Duration = Duration::from_millis(100);
/// The time until the program has returned memory and is at rest. Threads without work end after ten seconds.
pub(super) const SETTLE: Duration = Duration::from_secs(15);
/// The time for which wake-ups are counted.
const REST: Duration = Duration::from_secs(20);
/// The deadline of the program.
const DEADLINE: Duration = Duration::from_secs(600);

/// The limits.
const MEMORY_MIB: f64 = 4.0;
const WAKE_UPS: f64 = 0.0;
const CALL_MS: f64 = 1.0;
const REQUEST_BYTES: f64 = 12_000.0;

/// A program with some servers, after its first turn.
pub(super) struct Stage {
    server: Running,
    pub(super) address: String,
    pub(super) session: String,
    pub(super) model: BlockingServer,
    pub(super) project: Project,
}

/// What a program costs at rest.
#[derive(Clone, Copy, Default)]
struct Cost {
    memory_mib: f64,
    wake_ups: f64,
    request_bytes: f64,
}

/// Measures and returns the lines of the report.
pub(super) fn measure(plan: &Plan) -> Result<String> {
    let binary = plan.program()?;
    let on = servers("on", &[&format!("tools={MORE_TOOLS}")], json!({}));
    let none = at_rest(&binary, &json!({}), SANDBOX)?;
    let off = at_rest(&binary, &servers("off", &[], json!({"enabled": false})), SANDBOX)?;
    let all = at_rest(&binary, &on, SANDBOX)?;
    let free = at_rest(&binary, &on, "off")?;
    let calls = (0..plan.runs).map(|_| calls(&binary)).collect::<Result<Vec<_>>>()?;
    let calls = Spread::of(calls).context("no runs")?;
    let mut text = format!("\n{NAME}: {SERVERS} servers with 200 tools over stdio, compared with none\n");
    let mut row = |name: &str, unit: &str, value: f64, limit: Option<f64>| {
        report::row(&mut text, name, unit, value, limit)
    };
    row("switched off: first request", "bytes", off.request_bytes - none.request_bytes, Some(0.0))?;
    row("switched off: memory", "MiB", off.memory_mib - none.memory_mib, None)?;
    row("connected: memory", "MiB", all.memory_mib - none.memory_mib, Some(MEMORY_MIB))?;
    row("wake-ups in 20 s without servers", "", none.wake_ups, None)?;
    row("connected: more wake-ups in 20 s", "", all.wake_ups - none.wake_ups, Some(WAKE_UPS))?;
    row("the same without the sandbox", "", free.wake_ups - none.wake_ups, None)?;
    row("first request", "bytes", all.request_bytes - none.request_bytes, Some(REQUEST_BYTES))?;
    row("a call, CPU more than `read`", "ms", calls.median, Some(CALL_MS))?;
    writeln!(text, "  {:<46} {:.2} to {:.2} ms", "its range", calls.least, calls.most)?;
    Ok(text)
}

/// The configuration of the servers.
fn servers(name: &str, options: &[&str], more: Value) -> Value {
    let words = ["python3", SCRIPT_NAME, "stdio"].map(str::to_owned);
    let command: Vec<String> =
        words.into_iter().chain(options.iter().map(|option| (*option).to_owned())).collect();
    let one = |number: usize| {
        let mut config = json!({"type": "local", "command": command});
        for (key, value) in more.as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        (format!("{name}{number}"), config)
    };
    Value::Object((0..SERVERS).map(one).collect())
}

impl Stage {
    /// Starts the program and sends a first prompt.
    pub(super) fn start(binary: &Path, more: &Value, script: Script) -> Result<Self> {
        let model = BlockingServer::start(script)?;
        let project = Project::git()?;
        let mut config = Project::config(&model.url());
        for (key, value) in more.as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        project.write_config(&config)?;
        project.write("file.txt", "one line\n")?;
        project.write(SCRIPT_NAME, SCRIPT)?;
        let run = Run::new(binary, &project).args(["serve", "--port", "0"]);
        let mut server = run.env("OPENCODE_DISABLE_MODELS_FETCH", "1").deadline(DEADLINE).start()?;
        let line = server.line_that(|line| line.contains("listening on"))?;
        let (_, address) = line.split_once("http://").context("the line has no address")?;
        let address = address.trim().to_owned();
        let session = request(&address, "POST", "/session", Some(&json!({})))?;
        let session = session["id"].as_str().context("no session")?.to_owned();
        let stage = Self { server, address, session, model, project };
        stage.prompt()?;
        Ok(stage)
    }

    pub(super) fn prompt(&self) -> Result<Value> {
        let prompt = json!({"parts": [{"type": "text", "text": "go"}]});
        request(&self.address, "POST", &format!("/session/{}/message", self.session), Some(&prompt))
    }

    pub(super) fn pid(&self) -> Pid {
        Pid::from_raw(self.server.id().cast_signed())
    }

    pub(super) fn end(self) -> Result<()> {
        self.server.terminate()?;
        self.server.finish().map(drop)
    }
}

/// Measures a program at rest after one turn.
fn at_rest(binary: &Path, mcp: &Value, sandbox: &str) -> Result<Cost> {
    let config = json!({"mcp": mcp, "sandbox": {"mode": sandbox}});
    let stage = Stage::start(binary, &config, Script::new().text("Done.").repeat())?;
    let expected = mcp.as_object().is_some_and(|all| all.values().any(|one| one["enabled"] != json!(false)));
    let statuses = request(&stage.address, "GET", "/mcp", None)?.to_string();
    let connected = statuses.matches("\"connected\"").count();
    ensure!(!expected && connected == 0 || connected >= SERVERS && expected, "{statuses}");
    let first = stage.model.main_requests().first().context("no request")?.body.to_string().len();
    thread::sleep(SETTLE);
    let memory_mib = memory(stage.pid())?.now_mib;
    let wake_ups = wake_ups(stage.pid())?;
    stage.end()?;
    Ok(Cost { memory_mib, wake_ups, request_bytes: first as f64 })
}

/// Waits, and returns how often the threads of a process woke up meanwhile.
pub(super) fn wake_ups(process: Pid) -> Result<f64> {
    let before = switches(process)?;
    thread::sleep(REST);
    let wake_ups = switches(process)?.into_iter().map(|(thread, now)| {
        // A new thread starts at 0.
        now.saturating_sub(before.get(&thread).copied().unwrap_or_default())
    });
    Ok(wake_ups.sum::<u64>() as f64)
}

/// The voluntary context switches of each thread of a process.
fn switches(process: Pid) -> Result<HashMap<OsString, u64>> {
    let mut all = HashMap::new();
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let thread = thread?;
        // A thread can end meanwhile.
        let Ok(status) = fs::read_to_string(thread.path().join("status")) else { continue };
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        all.insert(thread.file_name(), line.context("no switches")?.trim().parse::<u64>()?);
    }
    Ok(all)
}

/// Returns the CPU of a call through a server above that of a call of `read`, in milliseconds.
fn calls(binary: &Path) -> Result<f64> {
    let echo = || Turn::steps().tool("on0_echo", json!({"text": "x"}));
    let read = || Turn::steps().tool("read", json!({"filePath": "file.txt"}));
    // They alternate, because a longer conversation costs more. The first pairs warm up.
    let pair = |script: Script, _| script.turn(read()).text("Done.").turn(echo()).text("Done.");
    let script = (0..WARM + CALLS).fold(Script::new().text("Done."), pair);
    let one = servers("on", &[], json!({}));
    let stage = Stage::start(binary, &json!({"mcp": {"on0": one["on0"]}}), script)?;
    let turn = || -> Result<f64> {
        let before = own_cpu_ms(stage.pid())?;
        stage.prompt()?;
        // The work after a turn belongs to it.
        thread::sleep(AFTER);
        Ok(own_cpu_ms(stage.pid())? - before)
    };
    for _ in 0..2 * WARM {
        turn()?;
    }
    let mut more = 0.0;
    for _ in 0..CALLS {
        let read = turn()?;
        more += turn()? - read;
    }
    let messages = request(&stage.address, "GET", &format!("/session/{}/message", stage.session), None)?;
    let done = messages.to_string().matches("Echo: x").count();
    ensure!(done >= WARM + CALLS, "{done} calls");
    stage.end()?;
    Ok(more / CALLS as f64)
}
