//! Runs a command line in a shell.

mod arity;
mod braces;
mod found;
mod git;
mod irreversible;
mod limits;
mod line;
mod nested;
mod options;
mod parse;
mod reach;
pub(crate) mod sandbox;
mod scan;
mod sed;
pub(crate) mod steps;
mod touch;
mod variable;
mod word;
mod wrapper;

use std::path::Path;
use std::time::Duration;

use codewright_workspace::{Author, Command, End, Ended, Limits as RunLimits, Place, Workspace, run};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::limits::{Analysis, Limits};
use self::line::Line;
use self::parse::{Setting, parse};
use self::reach::Start;
use self::steps::Steps;
use crate::Implied;
use crate::ask::inside_of;
use crate::trim::{Bounds, tail};
use crate::{Ask, Facts, Output, Tool, ToolCx, ToolError, render};

const DESCRIPTION: &str = include_str!("bash.txt");
/// The time limit of a command if the model sets none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2 * 60);
/// The longest time limit.
const MAX_TIMEOUT: Duration = Duration::from_secs(60 * 60);
/// The output of a command that printed nothing.
const NO_OUTPUT: &str = "(no output)";
/// The number of bytes of the output's end that clients get.
const SHOWN_BYTES: usize = 30_000;

/// Variables that make programs fail or continue instead of waiting for input.
const UNATTENDED: [(&str, &str); 8] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    // Accepts the default message. Without one, git fails.
    ("GIT_EDITOR", "true"),
    ("GIT_PAGER", "cat"),
    ("PAGER", "cat"),
    ("EDITOR", "false"),
    ("VISUAL", "false"),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];

/// The `bash` tool.
pub struct Bash;

/// The arguments.
#[derive(Debug, Clone, Deserialize)]
pub struct Input {
    command: String,
    timeout: Option<u64>,
    workdir: Option<String>,
}

impl Input {
    /// A command line, and its directory if that is not the project.
    pub(crate) fn new(command: &str, workdir: Option<&str>) -> Self {
        Self { command: command.to_owned(), timeout: None, workdir: workdir.map(str::to_owned) }
    }

    pub(crate) fn command(&self) -> &str {
        &self.command
    }

    /// The program that runs the command line.
    pub(crate) fn prepared(&self, cx: &ToolCx) -> Result<Command, ToolError> {
        let workdir = self.workdir(cx)?;
        if !workdir.real.is_dir() {
            let path = workdir.path.display();
            return Err(ToolError::Model(format!("NotFound: FileSystem.access ({path})")));
        }
        Ok(Command {
            program: cx.shell.clone(),
            args: vec!["-c".into(), (&self.command).into()],
            directory: workdir.real,
            env: cx.env.set.iter().cloned().chain(unattended()).collect(),
            env_remove: cx.env.remove.clone(),
            confinement: cx.confinement.clone(),
            sandbox: cx.sandbox.clone(),
            author: Author::Model,
        })
    }

    fn timeout(&self) -> Duration {
        self.timeout.map_or(DEFAULT_TIMEOUT, Duration::from_millis).min(MAX_TIMEOUT)
    }

    fn workdir(&self, cx: &ToolCx) -> Result<Place, ToolError> {
        Ok(cx.workspace().resolve(Path::new(self.workdir.as_deref().unwrap_or(".")))?)
    }
}

impl Tool for Bash {
    const NAME: &'static str = "bash";
    const FACTS: &'static Facts =
        &Facts { limits_output: true, position: Some(2), starts_commands: true, ..Facts::PLAIN };
    type Input = Input;

    fn description(&self) -> String {
        let values = [
            ("timeout", DEFAULT_TIMEOUT.as_millis().to_string()),
            ("longest", MAX_TIMEOUT.as_millis().to_string()),
            ("limits", Bounds::default().to_string()),
        ];
        let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
        render(DESCRIPTION, &values).expect("a test renders every description")
    }

    fn parameters(&self) -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command line"},
                "timeout": {
                    "minimum": -9_007_199_254_740_991_i64,
                    "exclusiveMinimum": 0,
                    "type": "integer",
                    "maximum": 9_007_199_254_740_991_i64,
                    "description": "The time limit, in milliseconds",
                },
                "workdir": {
                    "type": "string",
                    "description": "Its directory, absolute or relative to the project directory, which is the default",
                },
            },
            "required": ["command"],
        })
    }

    async fn asks(&self, input: &Input, cx: &ToolCx) -> Result<Vec<Ask>, ToolError> {
        let (inner, input) = (cx.clone(), input.clone());
        cx.reading(move || {
            let workdir = input.workdir(&inner)?;
            let workspace = inner.workspace();
            let place = Analysed { workspace: &workspace, workdir: &workdir, home: inner.home.as_deref() };
            Ok(asks_of(&input.command, analyse(&input.command, place)?))
        })
        .await
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        // Clients show the call as running from here, even if the command fails at once.
        report(cx, String::new());
        let command = input.prepared(cx)?;
        execute(&input, command, cx).await
    }
}

/// Runs a command line of the user. Its output may be empty.
pub async fn run_for_user(command: String, cx: &ToolCx) -> Result<Output, ToolError> {
    let timeout = u64::try_from(MAX_TIMEOUT.as_millis()).ok();
    let input = Input { command, timeout, workdir: None };
    let command = Command { author: Author::User, ..input.prepared(cx)? };
    let mut output = execute(&input, command, cx).await?;
    if output.output == NO_OUTPUT {
        output.output.clear();
        output.metadata.insert("output".to_owned(), Value::from(""));
    }
    Ok(output)
}

async fn execute(input: &Input, command: Command, cx: &ToolCx) -> Result<Output, ToolError> {
    let spill = cx.new_output_path();
    let limits =
        RunLimits { timeout: input.timeout(), lines: cx.bounds.lines, bytes: cx.bounds.bytes, spill };
    let mut watch = |output: &codewright_workspace::Output| {
        report(cx, shown(&output.tail(SHOWN_BYTES), output.bytes()));
    };
    let confined = command.sandbox.clone();
    let directory = command.directory.clone();
    let steps = confined.as_deref().map(Steps::of).unwrap_or_default();
    let mut ended = run(command, limits, &cx.cancel, &mut watch).await?;
    let mut notes = Vec::new();
    if let Some(confined) = &confined {
        notes.extend(sandbox::notes(confined, &ended, &directory, &input.command));
        notes.extend(steps.end(confined));
    }
    if let Some(rest) = ended.rest.take() {
        cx.background.spawn(async move {
            rest.end().await;
            // They could write until now.
            drop(confined.map(|confined| steps.end(&confined)));
        });
    }
    Ok(finished(input, &ended, cx.bounds, &notes))
}

fn unattended() -> impl Iterator<Item = (String, String)> {
    UNATTENDED.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()))
}

fn report(cx: &ToolCx, output: String) {
    cx.progress.report(Map::from_iter([("output".to_owned(), Value::from(output))]));
}

/// The end of an output for clients, with a mark if the beginning is missing.
fn shown(text: &str, bytes: u64) -> String {
    if bytes <= SHOWN_BYTES as u64 {
        return text.to_owned();
    }
    let start = text.ceil_char_boundary(text.len().saturating_sub(SHOWN_BYTES));
    format!("...\n\n{}", &text[start..])
}

fn finished(input: &Input, ended: &Ended, bounds: Bounds, notes: &[String]) -> Output {
    let output = &ended.output;
    let raw = output.text();
    let mut text = if raw.is_empty() { NO_OUTPUT.to_owned() } else { body(output, &raw, bounds) };
    let (exit, note) = match ended.end {
        End::Exited(code) => (Some(code), None),
        End::Cancelled => (None, Some("User aborted the command".to_owned())),
        End::TimedOut => {
            let timeout = input.timeout().as_millis();
            (
                None,
                Some(format!(
                    "shell tool terminated command after exceeding timeout {timeout} ms. If this command is \
                     expected to take longer and is not waiting for interactive input, retry with a larger \
                     timeout value in milliseconds."
                )),
            )
        }
    };
    let notes: Vec<&str> = note.iter().chain(notes).map(String::as_str).collect();
    if !notes.is_empty() {
        text += &format!("\n\n<shell_metadata>\n{}\n</shell_metadata>", notes.join("\n"));
    }
    let metadata_text = if raw.is_empty() { text.clone() } else { shown(&raw, output.bytes()) };
    let path = output.file().map(|path| path.to_string_lossy().into_owned());
    let done = Output { title: input.command.clone(), output: text, ..Output::default() };
    let done = done.with("output", metadata_text).with("exit", exit).with("truncated", output.is_long());
    match path {
        Some(path) => done.with("outputPath", path),
        None => done,
    }
}

fn body(output: &codewright_workspace::Output, raw: &str, bounds: Bounds) -> String {
    if !output.is_long() {
        return raw.to_owned();
    }
    let saved = match output.file() {
        Some(path) if output.file_is_whole() => format!("Full output saved to: {}\n\n", path.display()),
        Some(path) => format!("The beginning of the output is saved to: {}\n\n", path.display()),
        None => String::new(),
    };
    format!("...output truncated...\n\n{saved}{}", tail(raw, bounds))
}

/// The directories that a line is analysed with.
#[derive(Clone, Copy)]
struct Analysed<'a> {
    workspace: &'a Workspace,
    workdir: &'a Place,
    home: Option<&'a Path>,
}

/// The effects of a line.
#[derive(Debug, Default)]
struct Effects {
    line: Line,
    /// The directories outside the project that it uses.
    directories: Vec<String>,
    implied: Vec<Implied>,
}

/// Determines the effects of a line without running it.
fn analyse(command: &str, place: Analysed) -> Result<Analysis<Effects>, ToolError> {
    let limits = Limits::new();
    let line = parse(command, Setting { home: place.home, limits: &limits });
    let effects = nested::analyse(command, &line, Setting { home: place.home, limits: &limits });
    let Analysed { workspace, workdir, home } = place;
    let reached = reach::reached(Start { workspace, workdir, home, limits: &limits }, &effects)?;
    let mut implied = effects.implied;
    implied.extend(reached.implied);
    Ok(limits.outcome(Effects { line, directories: reached.outside, implied }))
}

/// The permissions that a line needs.
fn asks_of(command: &str, analysis: Analysis<Effects>) -> Vec<Ask> {
    let (effects, reason) = match analysis {
        Analysis::Complete(effects) => (effects, None),
        Analysis::Unknown { reason, mut known } => {
            known.implied.extend(nested::anything());
            (known, Some(reason.to_string()))
        }
    };
    let mut asks = Vec::new();
    if !effects.directories.is_empty() {
        let patterns: Vec<String> =
            effects.directories.iter().map(|directory| inside_of(Path::new(directory))).collect();
        let mut ask = Ask::new("external_directory", patterns.clone());
        ask.always.clone_from(&patterns);
        asks.push(
            ask.with("command", command).with("directories", effects.directories).with("patterns", patterns),
        );
    }
    let whole = if reason.is_some() { Whole::Judged } else { Whole::Understood };
    let ask = command_ask(command, &effects.line, whole);
    asks.extend(ask.map(|ask| {
        let ask = Ask { implied: effects.implied, ..ask };
        match reason {
            Some(reason) => ask.with(Ask::REASON, reason),
            None => ask,
        }
    }));
    asks
}

/// Whether a permission for the whole line is needed, besides those of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whole {
    /// All parts are known.
    Understood,
    /// A part may have been missed.
    Judged,
}

/// The permission request for the commands of a line. Changing the directory needs no permission, unless something else is
/// implied.
fn command_ask(command: &str, line: &Line, whole: Whole) -> Option<Ask> {
    let mut ask = Ask::new("bash", Vec::new());
    ask.always.clear();
    let mut add = |pattern: String, always: String| {
        if !ask.patterns.contains(&pattern) {
            ask.patterns.push(pattern);
        }
        if !ask.always.contains(&always) {
            ask.always.push(always);
        }
    };
    for simple in line.commands.iter().filter(|simple| !simple.only_moves()) {
        let always = arity::prefix(&simple.words).map_or_else(|| simple.text.clone(), |prefix| prefix + " *");
        add(simple.text.clone(), always);
    }
    for redirect in &line.loose_redirects {
        add(redirect.clone(), redirect.clone());
    }
    if whole == Whole::Judged || (line.commands.is_empty() && line.loose_redirects.is_empty()) {
        add(command.to_owned(), command.to_owned());
    }
    (!ask.patterns.is_empty()).then(|| ask.with("command", command))
}

/// The commands of a line as they are written, and the words of all commands that it runs.
#[cfg(any(test, feature = "trial"))]
pub(crate) fn tried(line: &str) -> Tried {
    let home = Some(Path::new("/home/ann"));
    let limits = Limits::new();
    let setting = Setting { home, limits: &limits };
    let parsed = parse(line, setting);
    parsed.commands.iter().for_each(|simple| drop(arity::prefix(&simple.words)));
    let effects = nested::analyse(line, &parsed, setting);
    for words in &effects.commands {
        let name = words.first().map(word::Word::text).unwrap_or_default();
        drop(touch::touched(name, words));
    }
    let words = |words: &Vec<word::Word>| words.iter().map(|word| word.text().to_owned()).collect();
    Tried {
        is_complete: matches!(limits.outcome(()), Analysis::Complete(())),
        seen: effects.commands.iter().map(words).collect(),
        texts: parsed.commands.into_iter().map(|simple| simple.text).collect(),
    }
}

/// The result of analysing a line.
#[cfg(any(test, feature = "trial"))]
pub(crate) struct Tried {
    /// Whether the whole line was analysed.
    pub(crate) is_complete: bool,
    /// The commands as they are written.
    pub(crate) texts: Vec<String>,
    /// The words of every command that runs.
    pub(crate) seen: Vec<Vec<String>>,
}

#[cfg(test)]
mod tests;
