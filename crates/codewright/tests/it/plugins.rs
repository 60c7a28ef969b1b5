//! Plugins and tool files through the program: every hook at its recorded moment, tools, and everything that a plugin
//! does wrong.
//!
//! The plugins run with Node. Without it the tests say so and check nothing.

mod broken;
mod confined;
mod ecosystem;
mod hooks;
mod login;
mod providers;
mod repository;
mod requests;
mod runtimes;
mod tools;
mod v2;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use codewright_testkit::{Finished, Project, Run, Script, Turn};
use serde_json::{Value, json};

use crate::support::{Stage, program};

/// The time limit of the program. Node starts slowly on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// Whether Node is installed. Prints why the test is skipped otherwise.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
pub(super) fn has_node() -> bool {
    let is_there = std::process::Command::new("node").arg("--version").output().is_ok();
    if !is_there {
        eprintln!("skipped: node is not installed, so plugins cannot run");
    }
    is_there
}

/// A project with plugins.
struct Scene {
    stage: Stage,
}

impl Scene {
    /// A scene whose user has more configuration. The sandbox is off, because it would hide the temporary directories.
    fn new(script: Script, more: &Value) -> Result<Self> {
        let scene = Self { stage: Stage::plain(script)? };
        scene.configure(more)?;
        Ok(scene)
    }

    fn configure(&self, more: &Value) -> Result<()> {
        let mut config = Project::config(&self.stage.server.url());
        config["sandbox"] = json!({"mode": "off"});
        for (key, value) in more.as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        let path = self.user_path("codewright.json");
        fs::create_dir_all(path.parent().context("no parent")?)?;
        let (own, shared): (Vec<_>, Vec<_>) = config
            .as_object()
            .into_iter()
            .flatten()
            .partition(|(key, _)| matches!(key.as_str(), "sandbox" | "plugin_host"));
        let object = |pairs: Vec<(&String, &Value)>| {
            Value::Object(pairs.into_iter().map(|(key, value)| (key.clone(), value.clone())).collect())
        };
        fs::write(path, object(own).to_string())?;
        self.stage.project.write_config(&object(shared))
    }

    fn user_path(&self, name: &str) -> PathBuf {
        self.stage.project.home().join(".config/codewright").join(name)
    }

    /// Writes a file below the user's configuration.
    fn user(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.user_path(name);
        fs::create_dir_all(path.parent().context("no parent")?)?;
        fs::write(&path, text)?;
        Ok(path)
    }

    fn program(&self, args: &[&str]) -> Run {
        program(&self.stage.project, args.iter().copied()).env("CODEWRIGHT_TRUST", "none").deadline(PATIENCE)
    }

    /// Runs a prompt to its end.
    fn run(&self, prompt: &str) -> Result<Finished> {
        self.program(&["run", prompt]).finish()
    }

    /// The calls that the fixture with every hook wrote down.
    fn calls(&self) -> Result<Vec<Value>> {
        let text = self.stage.project.read("calls")?;
        text.lines().map(|line| serde_json::from_str(line).with_context(|| line.to_owned())).collect()
    }

    /// The body of the `n`th request for the conversation.
    fn body(&self, n: usize) -> Result<Value> {
        let requests = self.stage.server.main_requests();
        let count = requests.len();
        let request = requests.into_iter().nth(n).with_context(|| format!("there are {count} requests"))?;
        Ok(request.body.as_ref().clone())
    }

    /// The names of the hooks that the fixture with every hook wrote down after the first `skip` calls, without those
    /// that are called at any time.
    fn hook_names(&self, skip: usize) -> Result<Vec<String>> {
        let always = ["event", "config", "tool.definition", "permission.ask", "INIT", "dispose"];
        let calls = self.calls()?;
        let names = calls.iter().skip(skip).filter_map(|call| call["name"].as_str());
        Ok(names.filter(|name| !always.contains(name)).map(str::to_owned).collect())
    }

    /// The names of the offered tools.
    fn offered(&self, n: usize) -> Result<Vec<String>> {
        let body = self.body(n)?;
        let tools = body["tools"].as_array().context("no tools")?;
        Ok(tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).map(str::to_owned).collect())
    }
}

fn bash(command: &str) -> Script {
    Script::new()
        .turn(Turn::steps().tool("bash", json!({"command": command, "description": "x"})))
        .text("Done.")
}

/// The lines of standard error that name a plugin.
fn complaints(done: &Finished) -> Vec<String> {
    done.stderr.lines().filter(|line| line.contains("the plugin ")).map(str::to_owned).collect()
}

fn succeeded(done: Finished) -> Result<Finished> {
    ensure!(done.code == Some(0), "{}\n{}", done.stdout, done.stderr);
    Ok(done)
}
