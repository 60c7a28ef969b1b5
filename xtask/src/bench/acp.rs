//! Measures what an editor costs: the start of a connection, the first prompt, and many sessions in one process.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use codewright_testkit::{BlockingServer, Project, Script};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::Plan;
use super::served::{memory, own_cpu_ms};
use super::spread::Spread;

/// The name on the command line.
pub(super) const NAME: &str = "acp";
/// The number of sessions in one process.
const SESSIONS: usize = 20;
/// The limits.
const INITIALIZE_MS: f64 = 15.0;
const SESSIONS_MIB: f64 = 40.0;

/// The cost of one process.
struct Run {
    /// The CPU time until `initialize` is answered.
    initialize_ms: f64,
    /// The CPU time until the first prompt is answered.
    prompt_ms: f64,
    /// The memory with all sessions.
    memory_mib: f64,
    /// The CPU time of `run` with the same prompt.
    run_ms: f64,
}

/// Measures and returns the lines of the report.
pub(super) fn measure(plan: &Plan) -> Result<String> {
    let binary = plan.program()?;
    // The first run warms the machine.
    measure_once(&binary)?;
    let runs = (0..plan.runs).map(|_| measure_once(&binary)).collect::<Result<Vec<_>>>()?;
    let spread = |value: fn(&Run) -> f64| Spread::of(runs.iter().map(value)).context("no runs");
    let run_ms = spread(|run| run.run_ms)?;
    let mut text = format!("\n{NAME}: an editor starts the program\n");
    for (name, unit, value, limit) in [
        ("until `initialize` is answered: CPU", "ms", spread(|run| run.initialize_ms)?, Some(INITIALIZE_MS)),
        ("until the first prompt is answered: CPU", "ms", spread(|run| run.prompt_ms)?, Some(run_ms.median)),
        ("`run` with the same prompt: CPU", "ms", run_ms, None),
        ("20 sessions in one process: memory", "MiB", spread(|run| run.memory_mib)?, Some(SESSIONS_MIB)),
    ] {
        let verdict = match limit {
            Some(limit) if value.median <= limit => format!("limit {limit:.1} {unit} ok"),
            Some(limit) => format!("limit {limit:.1} {unit} OVER"),
            None => String::new(),
        };
        let range = format!("({:.1} to {:.1})", value.least, value.most);
        let line = format!("  {name:<42} {:>8.2} {unit:<4} {range:<18} {verdict}", value.median);
        writeln!(text, "{}", line.trim_end())?;
    }
    Ok(text)
}

fn measure_once(binary: &Path) -> Result<Run> {
    let model = BlockingServer::start(Script::new().text("Hello.").repeat())?;
    let project = Project::git()?;
    project.configure(&model.url())?;
    let before = children_ms()?;
    let done =
        command(binary, &project).args(["run", "hi"]).stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    ensure!(done.success(), "`run` ended with {done}");
    let run_ms = children_ms()? - before;
    let mut editor = Editor::start(binary, &project)?;
    editor.call("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}}))?;
    let initialize_ms = editor.cpu_ms()?;
    let open = json!({"cwd": project.directory(), "mcpServers": []});
    let session = editor.call("session/new", &open)?["sessionId"].clone();
    let answer = editor
        .call("session/prompt", &json!({"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]}))?;
    ensure!(answer["stopReason"] == "end_turn", "{answer}");
    let prompt_ms = editor.cpu_ms()?;
    for _ in 1..SESSIONS {
        editor.call("session/new", &open)?;
    }
    let memory_mib = memory(editor.pid())?.now_mib;
    editor.end()?;
    Ok(Run { initialize_ms, prompt_ms, memory_mib, run_ms })
}

/// The CPU time of the ended children of this process.
fn children_ms() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok((usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e3)
}

fn command(binary: &Path, project: &Project) -> Command {
    let mut command = Command::new(binary);
    command.env_clear().envs(project.environment()).current_dir(project.directory());
    command.env("OPENCODE_DISABLE_LOCAL_SERVERS", "1").env("OPENCODE_DISABLE_MODELS_FETCH", "1");
    command.stderr(Stdio::null());
    command
}

/// A running process and the connection to it.
struct Editor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Editor {
    fn start(binary: &Path, project: &Project) -> Result<Self> {
        let mut child =
            command(binary, project).arg("acp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("no input")?;
        let output = BufReader::new(child.stdout.take().context("no output")?);
        Ok(Self { child, input, output, next: 0 })
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    fn cpu_ms(&self) -> Result<f64> {
        own_cpu_ms(self.pid())
    }

    fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.next += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        writeln!(self.input, "{request}")?;
        let mut line = String::new();
        loop {
            line.clear();
            ensure!(self.output.read_line(&mut line)? > 0, "the program ended");
            let message: Value = serde_json::from_str(&line)?;
            if message["id"] == self.next && message.get("method").is_none() {
                ensure!(message.get("error").is_none(), "{method}: {message}");
                return Ok(message["result"].clone());
            }
        }
    }

    fn end(mut self) -> Result<()> {
        drop(self.input);
        let ended = self.child.wait()?;
        ensure!(ended.success(), "the program ended with {ended}");
        Ok(())
    }
}
