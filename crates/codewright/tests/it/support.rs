//! Shared helpers of the tests: a stage with a model and a project, and
//! accessors for its messages.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use codewright_testkit::{BlockingServer, Finished, Project, Recorded, Run, Running, Script};
use serde_json::Value;

/// A time limit for a loaded machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
/// The interval of checks.
const POLL: Duration = Duration::from_millis(20);
/// The prefix of session ids.
const SESSION_PREFIX: &str = "ses_";

/// A project whose configured model is scripted.
pub(crate) struct Stage {
    pub(crate) server: BlockingServer,
    pub(crate) project: Project,
}

impl Stage {
    /// A stage in a directory without a repository.
    pub(crate) fn plain(script: Script) -> Result<Self> {
        Self::on(Project::plain()?, script)
    }

    /// A stage in a git repository.
    pub(crate) fn git(script: Script) -> Result<Self> {
        Self::on(Project::git()?, script)
    }

    fn on(project: Project, script: Script) -> Result<Self> {
        let server = BlockingServer::start(script)?;
        project.configure(&server.url())?;
        Ok(Self { server, project })
    }

    /// The program in the project.
    pub(crate) fn program<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Run {
        program(&self.project, args)
    }

    /// Runs `run` with arguments to its end.
    pub(crate) fn run<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Result<Finished> {
        self.program(["run"].into_iter().chain(args)).finish()
    }

    /// Runs `run --format json` successfully. Returns the output lines.
    pub(crate) fn json<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Result<Vec<Value>> {
        lines(&self.run(["--format", "json"].into_iter().chain(args))?.success()?)
    }

    /// Fails if a request was invalid for the provider.
    pub(crate) fn no_problems(&self) -> Result<()> {
        let problems = self.server.problems();
        ensure!(problems.is_empty(), "the model refused something: {problems:#?}");
        Ok(())
    }

    /// The messages of the `n`th request for the conversation, from 0.
    pub(crate) fn messages(&self, n: usize) -> Result<Vec<Value>> {
        let requests = self.server.main_requests();
        let request = requests.get(n).with_context(|| format!("there are {} requests", requests.len()))?;
        Ok(request.body["messages"].as_array().context("no messages")?.clone())
    }

    /// The tool results in the `n`th request for the conversation, from 0, of the Chat protocol.
    pub(crate) fn results(&self, n: usize) -> Result<Vec<String>> {
        let messages = self.messages(n)?;
        let results = messages.iter().filter(|message| message["role"] == "tool");
        Ok(results.map(|message| text_of(&message["content"])).collect())
    }

    /// Starts a server. Returns it with its address.
    pub(crate) fn serve(&self) -> Result<(Running, String)> {
        serve(program(&self.project, ["serve"]))
    }

    /// The stored messages of the newest session from the API.
    pub(crate) fn stored(&self) -> Result<Vec<Value>> {
        let (server, url) = self.serve()?;
        let sessions = get(&url, "/session")?;
        let id = sessions[0]["id"].as_str().context("there is no session")?;
        let messages = get(&url, &format!("/session/{id}/message"))?;
        server.terminate()?;
        server.finish()?.success()?;
        Ok(messages.as_array().context("no messages")?.clone())
    }
}

/// The program in a project, isolated from local servers and the network.
pub(crate) fn program<'a>(project: &Project, args: impl IntoIterator<Item = &'a str>) -> Run {
    let run = Run::new(env!("CARGO_BIN_EXE_codewright"), project).args(args);
    let run = run.env("OPENCODE_DISABLE_LOCAL_SERVERS", "1").env("OPENCODE_DISABLE_MODELS_FETCH", "1");
    run.deadline(DEADLINE)
}

/// Starts a server of the program on any free port.
pub(crate) fn serve(run: Run) -> Result<(Running, String)> {
    let mut server = run.start()?;
    let line = server.line_that(|line| line.contains("listening on"))?;
    let (_, url) = line.split_once(" on ").context("the line has no address")?;
    Ok((server, url.to_owned()))
}

/// The lines of `--format json`, each of which must be an object.
pub(crate) fn lines(done: &Finished) -> Result<Vec<Value>> {
    let parsed = done.stdout.lines().map(|line| {
        let value: Value = serde_json::from_str(line).with_context(|| format!("not JSON: {line}"))?;
        ensure!(value.is_object(), "not an object: {line}");
        Ok(value)
    });
    parsed.collect()
}

/// The lines of one type.
pub(crate) fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

/// The session of the lines.
pub(crate) fn session_of(lines: &[Value]) -> Result<String> {
    let id = lines.first().and_then(|line| line["sessionID"].as_str()).context("no session id")?;
    ensure!(id.starts_with(SESSION_PREFIX), "`{id}` is no session id");
    Ok(id.to_owned())
}

/// The keys of an object, sorted.
pub(crate) fn keys(value: &Value) -> String {
    let mut keys: Vec<_> = value.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    keys.join(" ")
}

/// All text of a message's content.
pub(crate) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        Value::Object(part) => {
            part.get("text").or_else(|| part.get("content")).map(text_of).unwrap_or_default()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// All text of the user in a request.
pub(crate) fn user_text(request: &Recorded) -> String {
    let messages = request.body["messages"].as_array().into_iter().flatten();
    let users = messages.filter(|message| message["role"] == "user");
    users.map(|message| text_of(&message["content"])).collect::<Vec<_>>().join("\n")
}

/// Fails if a text has control characters other than line feeds and tabs.
#[track_caller]
pub(crate) fn check_harmless(text: &str) {
    let harmful = |c: &char| c.is_control() && !matches!(c, '\n' | '\t');
    let turning = |c: &char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let found: Vec<_> = text.chars().filter(|c| harmful(c) || turning(c)).collect();
    assert!(found.is_empty(), "{found:?} in {text:?}");
}

/// Fails with both outputs unless the exit code is as expected.
#[track_caller]
pub(crate) fn check_code(done: &Finished, code: i32) {
    assert_eq!(
        done.code,
        Some(code),
        "signal {:?}\n--- stdout\n{}\n--- stderr\n{}",
        done.signal,
        done.stdout,
        done.stderr
    );
}

/// Fails unless a text contains all expected texts.
#[track_caller]
pub(crate) fn check_has(text: &str, expected: &[&str]) {
    for piece in expected {
        assert!(text.contains(piece), "`{piece}` is not in:\n{text}");
    }
}

/// Waits until a condition is true.
pub(crate) fn wait_until(what: &str, holds: impl Fn() -> bool) -> Result<()> {
    let until = Instant::now() + DEADLINE;
    while !holds() {
        if Instant::now() > until {
            bail!("{what} did not come within {DEADLINE:?}");
        }
        thread::sleep(POLL);
    }
    Ok(())
}

/// Whether a living process has this argument.
pub(crate) fn is_running(argument: &str) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    processes.flatten().any(|process| {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes())
    })
}

/// The program's database.
pub(crate) fn database(project: &Project) -> PathBuf {
    data(project).join("codewright.db")
}

/// Sends a prompt to a session, waits for its end and returns the call that it led to.
pub(crate) fn last_call(url: &str, id: &str) -> Result<Value> {
    let (status, reply) = post(url, &format!("/session/{id}/message"), &prompt("go"))?;
    ensure!(status == 200, "{status}: {reply}");
    let messages = get(url, &format!("/session/{id}/message"))?;
    let parts = messages.as_array().into_iter().flatten().flat_map(|one| one["parts"].as_array().cloned());
    let mut calls = parts.flatten().filter(|part| part["type"] == "tool");
    calls.next_back().context("no call")
}

/// Sends DELETE to a path and returns the whole answer.
pub(crate) fn delete(url: &str, path: &str) -> Result<String> {
    let address = url.strip_prefix("http://").context("not an http address")?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    write!(stream, "DELETE {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    Ok(answer)
}

/// The data directory.
pub(crate) fn data(project: &Project) -> PathBuf {
    project.home().join(".local/share/codewright")
}

/// Every file below a directory.
pub(crate) fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.is_dir() && !path.is_symlink() { waiting.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}

/// Whether the bytes are anywhere in the haystack.
pub(crate) fn holds_bytes(haystack: &[u8], needle: &str) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle.as_bytes())
}

/// Opens a connection and requests a path.
pub(crate) fn ask(url: &str, path: &str) -> Result<TcpStream> {
    let address = url.strip_prefix("http://").context("not an http address")?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    Ok(stream)
}

/// The JSON at a path.
pub(crate) fn get(url: &str, path: &str) -> Result<Value> {
    let mut bytes = Vec::new();
    ask(url, path)?.read_to_end(&mut bytes)?;
    let text = String::from_utf8(bytes)?;
    let (head, body) = text.split_once("\r\n\r\n").context("no answer")?;
    ensure!(head.starts_with("HTTP/1.1 200"), "{path}: {text}");
    ensure!(!head.to_lowercase().contains("transfer-encoding"), "{path} comes in chunks: {head}");
    Ok(serde_json::from_str(body)?)
}

/// Sends a request with a body. Returns the status and the JSON.
pub(crate) fn post(url: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
    let address = url.strip_prefix("http://").context("not an http address")?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    let body = body.to_string();
    write!(
        stream,
        "POST {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let text = String::from_utf8(bytes)?;
    let (head, body) = text.split_once("\r\n\r\n").context("no answer")?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    let body = body.trim();
    Ok((status, if body.is_empty() { Value::Null } else { serde_json::from_str(body)? }))
}

/// A new session of a server.
pub(crate) fn new_session(url: &str) -> Result<String> {
    let (_, session) = post(url, "/session", &serde_json::json!({}))?;
    Ok(session["id"].as_str().context("no session")?.to_owned())
}

/// A prompt of one text.
pub(crate) fn prompt(text: &str) -> Value {
    serde_json::json!({ "parts": [{ "type": "text", "text": text }] })
}

/// A request with headers, and the answer to it.
pub(crate) struct Call<'a> {
    pub(crate) url: &'a str,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a str,
}

impl Call<'_> {
    /// Sends the request. Returns the status and everything after it.
    pub(crate) fn send(&self) -> Result<(u16, String)> {
        let Self { url, method, path, headers, body } = self;
        let address = url.strip_prefix("http://").context("not an http address")?;
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        let mut head = format!("{method} {path} HTTP/1.0\r\nHost: {address}\r\n");
        for (name, value) in *headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            head.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
        }
        write!(stream, "{head}\r\n{body}")?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let status = text.split(' ').nth(1).context("no status")?.parse()?;
        Ok((status, text))
    }
}
