//! Starts, lists, reads and stops background commands.

use std::time::Duration;

use codewright_workspace::Limits;
use serde::Deserialize;
use serde_json::{Value, json};

use super::bash::{self, Bash};
use crate::jobs::{Ending, Job, State};
use crate::{Ask, Facts, Output, Tool, ToolCx, ToolError, render};

const DESCRIPTION: &str = include_str!("background.txt");
/// The time limit of a command if the model sets none.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(60 * 60);
/// The longest time limit.
const MAX_LIFETIME: Duration = Duration::from_secs(4 * 60 * 60);
/// The longest wait for the end of a command.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// The wait for a command that was stopped.
const STOP_WAIT: Duration = Duration::from_secs(5);
/// The wait that shows whether a command ends at once.
const START_WAIT: Duration = Duration::from_millis(200);

/// The `background` tool.
pub struct Background;

/// The arguments.
#[derive(Debug, Clone, Deserialize)]
pub struct Input {
    action: Action,
    command: Option<String>,
    workdir: Option<String>,
    lifetime: Option<u64>,
    id: Option<String>,
    wait: Option<u64>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Start,
    List,
    Read,
    Stop,
}

impl Input {
    fn command(&self) -> Result<bash::Input, ToolError> {
        let command = self.command.as_deref().filter(|command| !command.trim().is_empty());
        let command = command.ok_or_else(|| ToolError::model("`start` needs a `command`"))?;
        Ok(bash::Input::new(command, self.workdir.as_deref()))
    }

    fn job(&self, cx: &ToolCx) -> Result<std::sync::Arc<Job>, ToolError> {
        let id = self.id.as_deref().ok_or_else(|| ToolError::model("`read` and `stop` need an `id`"))?;
        cx.jobs.find(id).ok_or_else(|| {
            let ids: Vec<String> = cx.jobs.list().iter().map(|job| job.id.clone()).collect();
            let ids = if ids.is_empty() { "there is none".to_owned() } else { ids.join(", ") };
            ToolError::Model(format!("This session has no background command `{id}`. Its commands: {ids}."))
        })
    }
}

impl Tool for Background {
    const NAME: &'static str = "background";
    const FACTS: &'static Facts = &Facts {
        starts_commands: true,
        permission: Some("bash"),
        is_available: |setup| setup.has_background_commands,
        ..Facts::PLAIN
    };
    type Input = Input;

    fn description(&self) -> String {
        let values = [
            ("wait", MAX_WAIT.as_millis().to_string()),
            ("number", crate::jobs::MAX_OF_SESSION.to_string()),
            ("lifetime", DEFAULT_LIFETIME.as_millis().to_string()),
            ("longest", MAX_LIFETIME.as_millis().to_string()),
        ];
        let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
        render(DESCRIPTION, &values).expect("a test renders every description")
    }

    fn parameters(&self) -> Value {
        let number = |what: &str| json!({"minimum": 0, "type": "integer", "maximum": 9_007_199_254_740_991_i64, "description": what});
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["start", "list", "read", "stop"], "description": "What to do"},
                "command": {"type": "string", "description": "The command line to start"},
                "workdir": {"type": "string", "description": "Its directory; the project directory if left out"},
                "lifetime": number("Its time limit, in milliseconds"),
                "id": {"type": "string", "description": "The command to read or stop"},
                "wait": number("How long to wait for its end before reading, in milliseconds"),
            },
            "required": ["action"],
        })
    }

    async fn asks(&self, input: &Input, cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        match input.action {
            Action::Start => Bash.asks(&input.command()?, cx).await,
            Action::List | Action::Read | Action::Stop => Ok(Vec::new()),
        }
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        match input.action {
            Action::Start => start(&input, cx).await,
            Action::List => Ok(list(cx)),
            Action::Read => {
                let job = input.job(cx)?;
                if let Some(wait) = input.wait.map(Duration::from_millis) {
                    let ended = cx.cancel.run_until_cancelled(job.ended(wait.min(MAX_WAIT))).await;
                    ended.ok_or(ToolError::Cancelled(None))?;
                }
                Ok(shown(&job, &job.state()))
            }
            Action::Stop => {
                let job = input.job(cx)?;
                job.stop();
                job.ended(STOP_WAIT).await;
                Ok(shown(&job, &job.state()))
            }
        }
    }
}

async fn start(input: &Input, cx: &ToolCx) -> Result<Output, ToolError> {
    let line = input.command()?;
    let command = line.prepared(cx)?;
    let timeout = input.lifetime.map_or(DEFAULT_LIFETIME, Duration::from_millis).min(MAX_LIFETIME);
    let spill = cx.new_output_path();
    let limits = Limits { timeout, lines: cx.bounds.lines, bytes: cx.bounds.bytes, spill };
    let job = cx.jobs.begin(line.command(), command, limits, &cx.background)?;
    // A command that fails at once is reported by this call.
    job.ended(START_WAIT).await;
    Ok(shown(&job, &job.state()))
}

fn list(cx: &ToolCx) -> Output {
    let jobs = cx.jobs.list();
    let lines: Vec<String> =
        jobs.iter().map(|job| format!("{}: {} ({})", job.id, job.command, standing(&job.state()))).collect();
    let output =
        if lines.is_empty() { "There are no background commands.".to_owned() } else { lines.join("\n") };
    Output { title: "background commands".to_owned(), output, ..Output::default() }.with("count", jobs.len())
}

fn standing(state: &State) -> String {
    match &state.end {
        None => "running".to_owned(),
        Some(Ending::Exited(code)) => format!("ended with code {code}"),
        Some(Ending::TimedOut) => "ended by its time limit".to_owned(),
        Some(Ending::Stopped) => "stopped".to_owned(),
        Some(Ending::Failed(why)) => format!("could not be started: {why}"),
    }
}

fn shown(job: &Job, state: &State) -> Output {
    let mut output = format!("{}: {}\n{}\n\n", job.id, job.command, standing(state));
    if state.bytes > state.text.len() as u64 {
        output += "...only the end of the output...\n";
        if let Some(file) = &state.file {
            output += &format!("Full output: {}\n", file.display());
        }
    }
    output += if state.text.is_empty() { "(no output yet)" } else { &state.text };
    if !state.notes.is_empty() {
        output += &format!("\n\n<shell_metadata>\n{}\n</shell_metadata>", state.notes.join("\n"));
    }
    let code = match state.end {
        Some(Ending::Exited(code)) => Some(code),
        Some(Ending::TimedOut | Ending::Stopped | Ending::Failed(_)) | None => None,
    };
    Output { title: job.command.clone(), output, ..Output::default() }
        .with("id", job.id.as_str())
        .with("running", state.end.is_none())
        .with("exit", code)
}
