//! Language servers: diagnostics after edits, the status, queries, and everything that servers can do wrong.
//!
//! The server is `crates/testkit/servers/lsp.py`, which needs only Python.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use codewright_testkit::{Project, Run, Running, Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, check_has, get, new_session, post, program, prompt, wait_until};

/// The longest time that an edit may take with a broken server, on a loaded machine.
const EDIT_LIMIT: Duration = Duration::from_secs(20);

/// The path of the scripted server.
fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/servers/lsp.py")
}

/// An entry of `lsp` for files `.demo`.
fn server(options: &[&str]) -> Value {
    let mut command = vec!["python3".to_owned(), script().to_string_lossy().into_owned()];
    command.extend(options.iter().map(|option| (*option).to_owned()));
    json!({"command": command, "extensions": [".demo"]})
}

/// A stage whose user configured these servers.
fn stage(script: Script, lsp: Value) -> Result<Stage> {
    let stage = Stage::git(script)?;
    let mut config = Project::config(&stage.server.url());
    config["lsp"] = lsp;
    // The servers record what they receive outside of the worktree, and report process ids of the machine.
    config["sandbox"] = json!({"mode": "off"});
    stage.project.write_config(&config)?;
    Ok(stage)
}

/// A script of calls, each in a separate prompt.
fn calls(calls: &[(&str, Value)]) -> Script {
    calls.iter().fold(Script::new(), |script, (name, input)| {
        script.turn(Turn::steps().tool(*name, input.clone())).text("Done.")
    })
}

fn write(file: &str, content: &str) -> (&'static str, Value) {
    ("write", json!({"filePath": file, "content": content}))
}

/// The server of a stage with one session.
struct Serving {
    _server: Running,
    url: String,
    id: String,
}

impl Serving {
    fn new(stage: &Stage) -> Result<Self> {
        let (server, url) = stage.serve()?;
        let id = new_session(&url)?;
        Ok(Self { _server: server, url, id })
    }

    /// Sends a prompt, waits for its end and returns the state of the call that it led to.
    fn call(&self) -> Result<Value> {
        post(&self.url, &format!("/session/{}/message", self.id), &prompt("go"))?;
        let messages = get(&self.url, &format!("/session/{}/message", self.id))?;
        let parts =
            messages.as_array().into_iter().flatten().flat_map(|one| one["parts"].as_array().cloned());
        let mut calls = parts.flatten().filter(|part| part["type"] == "tool");
        Ok(calls.next_back().context("no call")?["state"].clone())
    }

    fn lsp(&self) -> Result<Value> {
        get(&self.url, "/lsp")
    }
}

/// The messages that a scripted server has recorded.
fn recorded(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn output(state: &Value) -> &str {
    state["output"].as_str().unwrap_or_default()
}

#[test]
fn an_edit_shows_the_errors_of_its_file() -> Result<()> {
    let script = calls(&[
        write("a.demo", "one\n  ERROR broken\nWARNING odd\n"),
        write("b.demo", "SPREAD lost\n"),
        ("edit", json!({"filePath": "a.demo", "oldString": "one", "newString": "ERROR newer"})),
        write("a.demo", "fine\n"),
        write("c.txt", "ERROR not looked at"),
    ]);
    let stage = stage(script, json!({"demo": server(&[])}))?;
    let serving = Serving::new(&stage)?;
    assert_eq!(serving.lsp()?, json!([]));
    let state = serving.call()?;
    let file = stage.project.path("a.demo").to_string_lossy().into_owned();
    let other = stage.project.path("b.demo").to_string_lossy().into_owned();
    assert_eq!(
        output(&state),
        format!(
            "Wrote file successfully.\n\nLSP errors detected in this file, please fix:\n<diagnostics \
             file=\"{file}\">\nERROR [2:3] broken\n</diagnostics>"
        )
    );
    let diagnostics = &state["metadata"]["diagnostics"][&file];
    assert_eq!(diagnostics.as_array().map(Vec::len), Some(2), "{state}");
    assert_eq!(diagnostics[0]["range"]["start"], json!({"line": 1, "character": 2}));
    assert_eq!(serving.lsp()?, json!([{"id": "demo", "name": "demo", "root": "", "status": "connected"}]));
    // The file is fine, but another one got worse.
    let state = serving.call()?;
    check_has(output(&state), &["LSP errors detected in other files:", &file, "ERROR [1:1] lost"]);
    assert!(!output(&state).contains("in this file") && !output(&state).contains(&other), "{state}");
    // The new error comes first.
    let state = serving.call()?;
    let text = output(&state);
    let at = |word: &str| text.find(word).context(word.to_owned());
    assert!(at("ERROR [1:1] newer")? < at("ERROR [2:3] broken")?, "{text}");
    let state = serving.call()?;
    assert!(!output(&state).contains("broken"), "{state}");
    assert_eq!(output(&serving.call()?), "Wrote file successfully.");
    stage.no_problems()
}

#[test]
fn servers_are_off_unless_configured() -> Result<()> {
    let stage = stage(calls(&[write("a.demo", "ERROR x")]), json!(false))?;
    let serving = Serving::new(&stage)?;
    assert_eq!(output(&serving.call()?), "Wrote file successfully.");
    assert_eq!(serving.lsp()?, json!([]));
    Ok(())
}

#[test]
fn pulled_diagnostics_and_whole_documents_work_too() -> Result<()> {
    for options in [&["pull=1"][..], &["sync=full"], &["pull=1", "sync=full"], &["slow=0.3"], &["init=stray"]]
    {
        let edit = json!({"filePath": "a.demo", "oldString": "two", "newString": "\u{1f600} ERROR b"});
        let script = calls(&[write("a.demo", "ERROR a\ntwo\n"), ("edit", edit)]);
        let stage = stage(script, json!({"demo": server(options)}))?;
        let serving = Serving::new(&stage)?;
        check_has(output(&serving.call()?), &["ERROR [1:1] a"]);
        check_has(output(&serving.call()?), &["ERROR [2:3] b"]);
    }
    Ok(())
}
