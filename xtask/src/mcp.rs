//! Tests with real MCP servers: the official ones, the examples of the TypeScript SDK and one in Python, over all
//! transports.
//!
//! They are not part of `.ci/run`, because npm and pip install the servers from the network. Everything is in a folder
//! of the system's temporary directory.

mod cases;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use codewright_testkit::{BlockingServer, Project, Run, Running, Script, Turn};
use serde_json::{Value, json};

use self::cases::{Case, DIRECTORY, Program, SERVERS, Server, Way};
use crate::bench::wire::Connection;

/// The packages of npm and of pip.
const NODE: &[&str] = &[
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
];
const PYTHON: &str = "mcp-server-time==2026.10.19";
/// The script that gives a server a free port.
const PORT: &str = include_str!("mcp/port.mjs");
/// The deadline of the whole test.
const DEADLINE: Duration = Duration::from_secs(30 * 60);
/// The deadline of one call.
const CALL: Duration = Duration::from_secs(120);
/// The time in which an aborted call ends.
const ABORT: Duration = Duration::from_secs(5);
/// The interval of checks.
const POLL: Duration = Duration::from_millis(50);
/// The answer to a question that needs a text.
const ANSWER: &str = "Ann";

/// Plays all cases.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let program = crate::clients::program(rest)?;
    let scratch = std::env::temp_dir().join("codewright-mcp");
    install(&scratch)?;
    let mut results = Results::default();
    let place = Place::new(scratch)?;
    let servers: Vec<_> = SERVERS.iter().map(|server| place.open(server)).collect::<Result<_>>()?;
    let configured: serde_json::Map<_, _> =
        servers.iter().map(|(name, config, _)| ((*name).to_owned(), config.clone())).collect();
    let cases = cases::cases();
    let stage = place.stage(&program, &cases, json!({"mcp": configured, "mcp_tool_budget": false}))?;
    stage.statuses(&mut results)?;
    stage.lists(&mut results)?;
    for case in &cases {
        results.add(&format!("{}: {}", case.tool, case.name), stage.play(case, &place))?;
    }
    results.add("every: a prompt is a command", stage.command())?;
    results.add("every: an aborted call ends at once", stage.abort())?;
    drop(stage);
    let searched = cases::searched();
    let few: serde_json::Map<_, _> =
        configured.into_iter().filter(|(name, _)| name == "every" || name == "files").collect();
    let stage = place.stage(&program, &searched, json!({"mcp": few, "mcp_tool_budget": 0}))?;
    for case in &searched {
        results.add(&format!("search tool: {}", case.name), stage.play(case, &place))?;
    }
    results.end()
}

/// Installs the servers once.
fn install(scratch: &Path) -> Result<()> {
    fs::create_dir_all(scratch)?;
    let run = |program: &str, args: &[&str]| -> Result<()> {
        let mut command = Command::new(program);
        command.args(args).current_dir(scratch).stdout(Stdio::null());
        ensure!(
            command.status().with_context(|| format!("cannot start {program}"))?.success(),
            "{program} failed"
        );
        Ok(())
    };
    let done = scratch.join("installed");
    let wanted = format!("{NODE:?} {PYTHON}");
    if fs::read_to_string(&done).is_ok_and(|text| text == wanted) {
        return Ok(());
    }
    fs::write(scratch.join("package.json"), "{}")?;
    run("npm", &[&["install", "--no-audit", "--no-fund", "--ignore-scripts"], NODE].concat())?;
    run(
        "pip",
        &[
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-warn-conflicts",
            "--target",
            "python",
            PYTHON,
        ],
    )?;
    fs::write(scratch.join("port.mjs"), PORT)?;
    fs::write(done, wanted)?;
    Ok(())
}

/// The installed servers, and the directory that the one for files may use.
struct Place {
    scratch: PathBuf,
    project: Project,
    directory: PathBuf,
}

impl Place {
    fn new(scratch: PathBuf) -> Result<Self> {
        let project = Project::plain()?;
        // The server for files uses the roots of the client instead of its arguments.
        let directory = fs::canonicalize(project.directory())?;
        Ok(Self { scratch: fs::canonicalize(scratch)?, project, directory })
    }

    /// A text with the allowed directory in its place.
    fn filled(&self, text: &str) -> String {
        text.replace(DIRECTORY, &self.directory.to_string_lossy())
    }

    /// Starts a server that listens. Returns its configuration.
    fn open(&self, server: &Server) -> Result<(&'static str, Value, Option<Running>)> {
        let args = server.args.iter().map(|arg| self.filled(arg));
        let (command, environment): (Vec<String>, Value) = match server.program {
            Program::Node(path) => {
                let path = self.scratch.join("node_modules").join(path);
                let path = path.to_string_lossy().into_owned();
                (["node".to_owned(), path].into_iter().chain(args).collect(), json!({}))
            }
            Program::Python(module) => {
                let words = ["python3", "-m", module].map(str::to_owned);
                let path = self.scratch.join("python");
                (words.into_iter().chain(args).collect(), json!({"PYTHONPATH": path}))
            }
        };
        let path = match server.way {
            Way::Stdio => {
                let config = json!({"type": "local", "command": command, "environment": environment});
                return Ok((server.name, config, None));
            }
            Way::Http(path) => path,
        };
        let port = self.scratch.join("port.mjs");
        let run = Run::new(&command[0], &self.project).args(["--import".as_ref(), port.as_os_str()]);
        let mut running = run.args(&command[1..]).deadline(DEADLINE).start()?;
        let line = running.line_that(|line| line.starts_with("PORT "))?;
        let url = format!("http://127.0.0.1:{}{path}", line.trim_start_matches("PORT ").trim());
        Ok((server.name, json!({"type": "remote", "url": url}), Some(running)))
    }

    /// Starts the program with a model that makes the calls of these cases.
    fn stage(&self, program: &Path, cases: &[Case], more: Value) -> Result<Stage> {
        let call = |script: Script, tool: &str, input: &Value| {
            let input: Value = serde_json::from_str(&self.filled(&input.to_string())).unwrap_or_default();
            script.turn(Turn::steps().tool(tool, input)).text("Done.")
        };
        let script = cases.iter().fold(Script::new(), |script, case| call(script, &case.tool, &case.input));
        let long = json!({"duration": 600, "steps": 600});
        let script =
            script.text("A command.").turn(Turn::steps().tool("every_trigger-long-running-operation", long));
        let model = BlockingServer::start(script)?;
        let mut config = Project::config(&model.url());
        // The servers run in the sandbox, which hides the temporary directory.
        config["sandbox"] = json!({"read": [self.scratch]});
        for (key, value) in more.as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        self.project.write_config(&config)?;
        let run = Run::new(program, &self.project).args(["serve", "--port", "0"]).deadline(DEADLINE);
        let mut server = run.start()?;
        let line = server.line_that(|line| line.contains(" on "))?;
        let url = line.split(" on ").nth(1).context("the program does not print its address")?;
        let address = url.trim().trim_start_matches("http://").to_owned();
        Ok(Stage { address, _server: server, _model: model })
    }
}

/// The program with its model.
struct Stage {
    address: String,
    _server: Running,
    _model: BlockingServer,
}

impl Stage {
    fn get(&self, path: &str) -> Result<Value> {
        Connection::new(&self.address)?.request("GET", path, None)
    }

    fn post(&self, path: &str, body: &Value) -> Result<()> {
        Connection::new(&self.address)?.bytes("POST", path, Some(body)).map(drop)
    }

    /// Checks that every server is connected.
    fn statuses(&self, results: &mut Results) -> Result<()> {
        let all = self.get("/mcp")?;
        for server in SERVERS {
            let status = &all[server.name];
            let is_connected = status["status"] == "connected";
            let result = if is_connected { Ok(()) } else { Err(anyhow::anyhow!("{status}")) };
            results.add(&format!("{}: connected", server.name), result)?;
        }
        Ok(())
    }

    /// Checks the lists of resources and commands.
    fn lists(&self, results: &mut Results) -> Result<()> {
        let has = |text: &str, expected: &[&str]| -> Result<()> {
            for expected in expected {
                ensure!(text.contains(expected), "`{expected}` is not in {text}");
            }
            Ok(())
        };
        let resources = self.get("/experimental/resource")?.to_string();
        let expected = ["every", "everyhttp", "everysse"]
            .map(|name| format!("\"{name}:demo://resource/static/document/architecture.md\""));
        results.add(
            "resources of three transports",
            has(&resources, &expected.each_ref().map(String::as_str)),
        )?;
        let commands = self.get("/command")?.to_string();
        let expected = ["every:args-prompt", "everysse:simple-prompt", "simple:greeting-template"];
        results.add("prompts as commands", has(&commands, &expected))
    }

    fn session(&self) -> Result<String> {
        let session = Connection::new(&self.address)?.request("POST", "/session", Some(&json!({})))?;
        Ok(session["id"].as_str().context("no session")?.to_owned())
    }

    /// Plays a call, and compares its part.
    fn play(&self, case: &Case, place: &Place) -> Result<()> {
        let id = self.session()?;
        self.post(
            &format!("/session/{id}/prompt_async"),
            &json!({"parts": [{"type": "text", "text": "go"}]}),
        )?;
        let deadline = Instant::now() + CALL;
        loop {
            for question in self.get("/question")?.as_array().into_iter().flatten() {
                self.reply(question)?;
            }
            let is_idle = self.get("/session/status")? == json!({});
            let messages = self.get(&format!("/session/{id}/message"))?;
            if is_idle && messages.to_string().contains("\"text\":\"Done.\"") {
                let parts = messages.as_array().into_iter().flatten().flat_map(|one| one["parts"].as_array());
                let part = parts.flatten().find(|part| part["type"] == "tool").context("no call")?;
                let text = part.to_string();
                // A tool that is not offered is recorded as a call of `invalid`.
                ensure!(part["tool"] != "invalid", "{}", cut(&text));
                for shown in &case.shows {
                    ensure!(text.contains(&place.filled(shown)), "`{shown}` is not in {}", cut(&text));
                }
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "the call does not end: {}", cut(&messages.to_string()));
            sleep(POLL);
        }
    }

    /// Answers a question: the first choice, or a text if one is needed.
    fn reply(&self, question: &Value) -> Result<()> {
        let answers = question["questions"].as_array().into_iter().flatten().map(|one| {
            let first = one["options"][0]["label"].as_str().map(str::to_owned);
            let is_optional = one["question"].as_str().is_some_and(|text| text.contains("(optional)"));
            let answer = first.unwrap_or_else(|| if is_optional { String::new() } else { ANSWER.to_owned() });
            json!([answer])
        });
        let id = question["id"].as_str().context("no id")?;
        let answers: Vec<_> = answers.collect();
        self.post(&format!("/question/{id}/reply"), &json!({ "answers": answers }))
    }

    /// Sends a prompt of a server as a command.
    fn command(&self) -> Result<()> {
        let id = self.session()?;
        let body = json!({"command": "every:args-prompt", "arguments": "Bern canton"});
        self.post(&format!("/session/{id}/command"), &body)?;
        let messages = self.get(&format!("/session/{id}/message"))?.to_string();
        ensure!(messages.contains("Bern") && messages.contains("A command."), "{}", cut(&messages));
        Ok(())
    }

    /// Aborts a long call.
    fn abort(&self) -> Result<()> {
        let id = self.session()?;
        self.post(
            &format!("/session/{id}/prompt_async"),
            &json!({"parts": [{"type": "text", "text": "go"}]}),
        )?;
        let until = |what: &str, limit: Duration, holds: &dyn Fn() -> Result<bool>| -> Result<()> {
            let deadline = Instant::now() + limit;
            while !holds()? {
                ensure!(Instant::now() < deadline, "no {what}");
                sleep(POLL);
            }
            Ok(())
        };
        let messages = || self.get(&format!("/session/{id}/message"));
        until("call", CALL, &|| Ok(messages()?.to_string().contains("\"status\":\"running\"")))?;
        self.post(&format!("/session/{id}/abort"), &json!({}))?;
        until("end", ABORT, &|| Ok(self.get("/session/status")? == json!({})))?;
        let text = messages()?.to_string();
        ensure!(text.contains("Tool execution aborted"), "{}", cut(&text));
        Ok(())
    }
}

/// The number of good cases and of all.
#[derive(Default)]
struct Results {
    good: usize,
    all: usize,
}

impl Results {
    /// Prints the result of a case.
    fn add(&mut self, name: &str, result: Result<()>) -> Result<()> {
        self.all += 1;
        let mut out = std::io::stdout();
        match result {
            Ok(()) => {
                self.good += 1;
                writeln!(out, "ok    {name}")?;
            }
            Err(error) => writeln!(out, "FAIL  {name}: {error:#}")?,
        }
        Ok(())
    }

    fn end(self) -> Result<ExitCode> {
        writeln!(std::io::stdout(), "{} of {} cases as expected", self.good, self.all)?;
        if self.all == 0 {
            bail!("no case was played");
        }
        Ok(if self.good == self.all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(3000)]
}
