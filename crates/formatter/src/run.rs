//! Runs the formatters of one file, one after the other.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use codewright_workspace::{Author, Command, Confined, Confinement, End, Ended, Held, Limits, Node, run};
use tokio_util::sync::CancellationToken;

use crate::words::{VARIABLE, words};
use crate::{Formatter, Formatters, Kind, Problem, Programs, Source, detect};

/// The time that a formatter has for one file.
const DEADLINE: Duration = Duration::from_secs(30);
/// The time that a program has to show whether it can format.
const PROBE_DEADLINE: Duration = Duration::from_secs(5);
/// The largest file that is formatted, before and after.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// The length of the last line of output in a report.
const MAX_QUOTED_CHARS: usize = 200;
/// Shells add this to the number of the signal that ended a program.
const SIGNAL: i32 = 128;

/// The means to start formatters for one call.
#[derive(Debug, Clone)]
pub struct Runner {
    /// How a formatter is kept together with the processes that it starts.
    pub confinement: Confinement,
    /// The access of a formatter. `None` restricts nothing.
    pub sandbox: Option<Arc<Confined>>,
    /// Variables that are added.
    pub env: Vec<(String, String)>,
    /// Inherited variables that are removed.
    pub env_remove: Vec<String>,
    /// The working directory: that of the project if the user trusts it, because programs look for code there.
    pub directory: PathBuf,
    /// The file for output that is too long for memory.
    pub spill: PathBuf,
    /// Cancelled when the call must end.
    pub cancel: CancellationToken,
}

/// The result of formatting a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Formatted {
    /// The new content, if it differs.
    pub content: Option<Vec<u8>>,
    /// Failures that were not reported before.
    pub problems: Vec<String>,
}

/// The end of one formatter.
#[derive(Debug, Default)]
struct Finish {
    problem: Option<Problem>,
    /// Whether it was interrupted, so that the file may be half written.
    is_cut: bool,
}

impl Formatters {
    /// Returns whether a formatter is configured for files of this name. It reads nothing.
    #[must_use]
    pub fn suits(&self, file: &Path) -> bool {
        self.all.iter().any(|formatter| formatter.suits(file) && !formatter.is_off())
    }

    /// Formats a file that contains `written`. The caller makes sure that nothing else changes the file meanwhile.
    pub async fn format(&self, held: &Held, written: &[u8], runner: &Runner) -> Formatted {
        let file = held.place.real.as_path();
        let mut formatted = Formatted::default();
        if written.len() as u64 > MAX_BYTES {
            return formatted;
        }
        for formatter in self.all.iter().filter(|formatter| formatter.suits(file)) {
            if runner.cancel.is_cancelled() {
                break;
            }
            if formatter.is_off() || !self.can_run(formatter, runner).await {
                continue;
            }
            let Some(command) = self.command(formatter) else {
                formatted
                    .problems
                    .extend(self.missing(formatter).and_then(|problem| self.report(formatter, problem)));
                continue;
            };
            let finish = self.run_one(formatter, &command, file, runner).await;
            formatted.problems.extend(finish.problem.and_then(|problem| self.report(formatter, problem)));
            let (held, before) = (held.clone(), formatted.content.clone());
            let before = before.unwrap_or_else(|| written.to_owned());
            let settling = if finish.is_cut { Settling::Restore } else { Settling::Keep };
            let settling = tokio::task::spawn_blocking(move || settle(&held, &before, settling));
            match settling.await.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(content) => formatted.content = content.or(formatted.content),
                Err(text) => {
                    let problem = Problem { kind: Kind::Destroyed, text };
                    formatted.problems.extend(self.report(formatter, problem));
                }
            }
        }
        formatted.content = formatted.content.filter(|content| content != written);
        formatted
    }

    /// The reason why a configured formatter cannot run. Known formatters that are not installed are not a problem.
    fn missing(&self, formatter: &Formatter) -> Option<Problem> {
        let named: Vec<String> = match &formatter.source {
            Source::Own(command) => command.clone(),
            Source::Known(known) => known.command.iter().map(|&word| word.to_owned()).collect(),
        };
        if self.place.search.programs == Programs::Installed
            && let Some(code) = self.untrusted_code(&named)
            && (matches!(formatter.source, Source::Own(_)) || self.is_found(formatter))
        {
            let text = format!(
                "does not run: it would run code of this project (`{code}`), which you have not trusted. Look at it, then \
                 run `codewright trust add`"
            );
            return Some(Problem { kind: Kind::NoProgram, text });
        }
        let Source::Own(command) = &formatter.source else { return None };
        let text = match command.first() {
            None => "has no command".to_owned(),
            Some(_) if self.place.search.programs == Programs::None => return None,
            Some(program) => format!("does not run: the program `{program}` was not found"),
        };
        Some(Problem { kind: Kind::NoProgram, text })
    }

    /// Whether a known formatter would run if the project was trusted.
    fn is_found(&self, formatter: &Formatter) -> bool {
        let Source::Known(known) = formatter.source else { return true };
        detect::known(&self.place, known, |name| self.is_enabled(name)).is_some()
    }

    /// Returns whether a formatter can format, for which some programs must be started once.
    async fn can_run(&self, formatter: &Formatter, runner: &Runner) -> bool {
        let Source::Known(known) = formatter.source else { return true };
        let Some((args, words)) = detect::probe(known) else { return true };
        let Some(command) = self.command(formatter) else { return false };
        let probe = async {
            let program = command.first().map(String::as_str).into_iter();
            let words_of_probe = program.chain(args.iter().copied()).map(str::to_owned);
            let command = self.program(formatter, words_of_probe.collect(), runner);
            let limits = limits(PROBE_DEADLINE, &runner.spill);
            let ended = run(command, limits, &runner.cancel, &mut |_| {}).await;
            ended.is_ok_and(|ended| answers(&ended, words))
        };
        *formatter.probed.get_or_init(|| probe).await
    }

    async fn run_one(
        &self,
        formatter: &Formatter,
        command: &[String],
        file: &Path,
        runner: &Runner,
    ) -> Finish {
        let shown = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(words) = words(command, file) else {
            let text =
                format!("does not run on `{shown}`: it would paste this name into the text of a program");
            return Finish { problem: Some(Problem { kind: Kind::NotStarted, text }), is_cut: false };
        };
        let mut command = self.program(formatter, words, runner);
        command.env.push((VARIABLE.to_owned(), file.to_string_lossy().into_owned()));
        let ended = run(command, limits(DEADLINE, &runner.spill), &runner.cancel, &mut |_| {}).await;
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => {
                let problem = Problem { kind: Kind::NotStarted, text: format!("did not start: {error}") };
                // The sandbox may have ended it.
                return Finish { problem: Some(problem), is_cut: true };
            }
        };
        let finish = match ended.end {
            End::Exited(0) => Finish::default(),
            // Some formatters exit with a code although they have formatted, because they found more than that.
            End::Exited(code) => {
                let last = last_line(&ended);
                let text = format!("failed with exit code {code} on `{shown}`{last}");
                let problem = Problem { kind: Kind::Exit(code), text };
                Finish { problem: Some(problem), is_cut: code > SIGNAL }
            }
            End::Cancelled => Finish { problem: None, is_cut: true },
            End::TimedOut => {
                formatter.turn_off();
                let seconds = DEADLINE.as_secs();
                let text = format!(
                    "did not end within {seconds} s on `{shown}`; it is not used again until the \
                     directory is opened again"
                );
                Finish { problem: Some(Problem { kind: Kind::Hung, text }), is_cut: true }
            }
        };
        if let Some(rest) = ended.rest {
            rest.end().await;
        }
        finish
    }

    fn program(&self, formatter: &Formatter, command: Vec<String>, runner: &Runner) -> Command {
        let mut words = command.into_iter();
        let env = runner.env.iter().chain(&formatter.environment).cloned();
        Command {
            program: words.next().unwrap_or_default().into(),
            args: words.map(Into::into).collect(),
            directory: runner.directory.clone(),
            env: env.collect(),
            env_remove: runner.env_remove.clone(),
            confinement: runner.confinement.clone(),
            sandbox: runner.sandbox.clone(),
            author: Author::Model,
        }
    }
}

fn limits(timeout: Duration, spill: &Path) -> Limits {
    Limits { timeout, lines: usize::MAX, bytes: usize::MAX, spill: spill.to_owned() }
}

/// Whether the first line of a successful answer contains the words.
fn answers(ended: &Ended, words: &[&str]) -> bool {
    let text = ended.output.text();
    let first = text.lines().next().unwrap_or_default();
    ended.end == End::Exited(0) && words.iter().all(|word| first.contains(word))
}

/// The last line of output, which usually is the reason for a failure.
fn last_line(ended: &Ended) -> String {
    let text = ended.output.text();
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let line: String = line.chars().filter(|c| !c.is_control()).take(MAX_QUOTED_CHARS).collect();
    if line.is_empty() { line } else { format!(": {line}") }
}

/// The treatment of a file after a formatter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settling {
    /// A change is kept if the file is still one.
    Keep,
    /// A change is undone.
    Restore,
}

/// Returns the new content of a file if a formatter changed it, or restores the content before.
///
/// The file is reached through the directory that was open before, so that a link which a formatter puts in its place
/// leads nowhere.
fn settle(held: &Held, before: &[u8], settling: Settling) -> Result<Option<Vec<u8>>, String> {
    let is_file = held.status().is_ok_and(|status| status.is_some_and(|status| status.node == Node::File));
    let now = if is_file { held.read(MAX_BYTES).ok() } else { None };
    match now {
        Some(now) if now == before => Ok(None),
        Some(now) if settling == Settling::Keep && (before.is_empty() || !now.is_empty()) => Ok(Some(now)),
        _ => {
            if !is_file {
                // What is there now would be an obstacle. Nothing is there if this fails.
                drop(held.discard());
            }
            let failed = |error| format!("destroyed a file that could not be restored: {error}");
            held.write(before, None).map_err(failed)?;
            match settling {
                Settling::Restore => Ok(None),
                Settling::Keep => Err("left no content, so the file was restored".to_owned()),
            }
        }
    }
}
