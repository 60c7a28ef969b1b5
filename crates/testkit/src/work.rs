//! Ordinary work of a developer in the sandbox, which needs no permission.
//!
//! Each row is a small project and a command line. The scripted model calls `bash` with it, with the default
//! configuration and without a user. A row passes if the command reaches its end and nothing needed permission. Hosts
//! of a local registry are permitted by a rule.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use codewright_scripted::{Script, Turn};
use serde_json::{Value, json};

use crate::blocking::BlockingServer;
use crate::file_server::FileServer;
use crate::project::Project;
use crate::run::Run;

mod registry;
mod rows;

use rows::{Landlock, Place, Row};

/// The directory of the projects. Not `/tmp`, which the sandbox replaces.
const PARENT: &str = "/var/tmp";
/// What a command prints at its end.
const END: &str = "The work is done.";
/// The time limit of a command in milliseconds.
const COMMAND_MS: u64 = 240_000;
/// The time limit of the program.
const DEADLINE: Duration = Duration::from_secs(300);
/// The part of a tool result that a report shows, in characters.
const SHOWN_CHARS: usize = 2000;

/// A test of ordinary work.
#[derive(Debug, Clone)]
pub struct Work {
    /// The program.
    pub binary: PathBuf,
    /// The mechanism of the sandbox.
    pub mechanism: WorkMechanism,
    /// The rows that are played.
    pub rows: WorkRows,
}

/// The mechanism that a test uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkMechanism {
    /// The strongest one of the machine, which must enforce everything.
    Complete,
    /// Landlock without namespaces. Commands need permission then, unless a container is a sandbox already, as the
    /// test states.
    Landlock,
}

/// The rows that a test plays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkRows {
    /// All whose name contains one of these texts, or all without a text.
    Named(Vec<String>),
    /// Those that take a second and need no other programs than the tests.
    Cheap,
}

/// The result of a test.
#[derive(Debug, Clone, Default)]
pub struct WorkReport {
    /// Each row with its result and duration.
    pub rows: Vec<(&'static str, WorkOutcome, Duration)>,
    /// Why nothing was played: the machine has no such mechanism.
    pub skipped: Option<String>,
}

/// The result of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkOutcome {
    /// The command reached its end without permission.
    Passed,
    /// It did not. Holds what the model and the user saw.
    Failed(String),
    /// The row cannot work here. Holds the reason.
    Skipped(String),
}

impl WorkReport {
    /// Whether no row failed.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        !self.rows.iter().any(|(_, outcome, _)| matches!(outcome, WorkOutcome::Failed(_)))
    }
}

impl Work {
    /// Plays the rows. Do not call it in a runtime.
    pub fn play(&self) -> Result<WorkReport> {
        let mut report = WorkReport { skipped: self.why_not()?, ..WorkReport::default() };
        if report.skipped.is_some() {
            return Ok(report);
        }
        for row in rows::ROWS.iter().filter(|row| self.is_chosen(row)) {
            let begun = Instant::now();
            let outcome = match self.obstacle(row)? {
                Some(reason) => WorkOutcome::Skipped(reason),
                None => self.outcome(row).with_context(|| format!("the row `{}`", row.name))?,
            };
            report.rows.push((row.name, outcome, begun.elapsed()));
        }
        Ok(report)
    }

    fn is_chosen(&self, row: &Row) -> bool {
        match &self.rows {
            WorkRows::Named(names) => {
                names.is_empty() || names.iter().any(|name| row.name.contains(name.as_str()))
            }
            WorkRows::Cheap => row.place == Place::Suite,
        }
    }

    /// The reason why the mechanism cannot be used here.
    fn why_not(&self) -> Result<Option<String>> {
        let project = Project::plain_in(Path::new(PARENT))?;
        let done = self.program(&project).args(["sandbox", "--json"]).finish()?.success()?;
        let report: Value = serde_json::from_str(&done.stdout).context("not JSON")?;
        let is_usable = match self.mechanism {
            WorkMechanism::Complete => report["complete"] == true,
            WorkMechanism::Landlock => report["mechanism"] == "landlock",
        };
        Ok((!is_usable).then(|| report["reasons"].to_string()))
    }

    /// The program with this mechanism.
    fn program(&self, project: &Project) -> Run {
        let run = Run::new(&self.binary, project).deadline(DEADLINE);
        let run = run.env("OPENCODE_DISABLE_LOCAL_SERVERS", "1").env("OPENCODE_DISABLE_MODELS_FETCH", "1");
        let run = toolchains().into_iter().fold(run, |run, (name, value)| run.env(name, value));
        match self.mechanism {
            WorkMechanism::Complete => run.without_env("CODEWRIGHT_SANDBOX_OUTER"),
            WorkMechanism::Landlock => run.env("CODEWRIGHT_SANDBOX_MECHANISM", "landlock"),
        }
    }

    /// The reason why a row cannot work here.
    fn obstacle(&self, row: &Row) -> Result<Option<String>> {
        let project = Project::plain()?;
        if let (WorkMechanism::Landlock, Landlock::Fails(reason)) = (self.mechanism, row.landlock) {
            return Ok(Some(format!("not with Landlock alone: {reason}")));
        }
        let run = Run::new("/bin/sh", &project).args(["-c", row.needs]);
        let run = toolchains().into_iter().fold(run, |run, (name, value)| run.env(name, value));
        let is_present = run.finish()?.code == Some(0);
        Ok((!is_present).then(|| format!("`{}` fails here", row.needs)))
    }

    fn outcome(&self, row: &Row) -> Result<WorkOutcome> {
        let project = Project::plain_in(Path::new(PARENT))?.with_git()?;
        let registry = match row.registry {
            Some(registry) => match registry::start(registry)? {
                Some(server) => Some(server),
                None => return Ok(WorkOutcome::Skipped(registry::NO_NAME.to_owned())),
            },
            None => None,
        };
        let host = registry.as_ref().map(FileServer::host).unwrap_or_default();
        let filled = |text: &str| text.replace("HOST", &host);
        for (name, content) in row.files {
            project.write(name, filled(content))?;
        }
        let ready = Run::new("/bin/sh", &project).args(["-ec", row.setup]).finish()?;
        ensure!(ready.code == Some(0), "the preparation failed: {}{}", ready.stdout, ready.stderr);
        let command = format!("set -e\n{}\necho '{END}'", filled(row.line));
        let call = json!({ "command": command, "timeout": COMMAND_MS });
        let model = BlockingServer::start(Script::new().turn(Turn::tools([("bash", call)])).text("Done."))?;
        let mut config = Project::config(&model.url());
        if !host.is_empty() {
            config["permission"] = json!({ "network": { host: "allow" } });
        }
        project.write_config(&config)?;
        let done = self.program(&project).args(["run", "go"]).finish()?;
        let requests = model.main_requests();
        let messages = requests.last().and_then(|request| request.body["messages"].as_array().cloned());
        let result = messages.unwrap_or_default().pop().unwrap_or_default();
        let result = result["content"].as_str().unwrap_or_default();
        let has_asked = done.stderr.contains("permission requested");
        if done.code == Some(0) && result.trim_end().ends_with(END) && !has_asked {
            return Ok(WorkOutcome::Passed);
        }
        let skipped = result.chars().count().saturating_sub(SHOWN_CHARS);
        let shown: String = result.chars().skip(skipped).collect();
        Ok(WorkOutcome::Failed(format!("{shown}\n{}", done.stderr)))
    }
}

/// Variables with which programs find the toolchains of the machine, although the home directory is another one.
#[expect(clippy::disallowed_methods, reason = "the toolchains belong to the user who runs the test")]
fn toolchains() -> Vec<(&'static str, PathBuf)> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let rustup = std::env::var_os("RUSTUP_HOME").map_or_else(|| home.join(".rustup"), PathBuf::from);
    if rustup.is_dir() { vec![("RUSTUP_HOME", rustup)] } else { Vec::new() }
}
