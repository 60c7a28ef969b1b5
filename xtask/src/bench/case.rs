//! The cases: command lines, and the checks that they did their work.

use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use super::Program;
use crate::measure::{self, Cost, DEADLINE, Sink};
use crate::model::{ANSWER, EDIT, FLOOD, Model, REPLACED, STREAM, Seen};

/// The number of bytes to print of a failed program's output.
const SHOWN_BYTES: usize = 1500;
/// The number of requests of "hi" and of an edit, without those for titles.
const REQUESTS: (usize, usize) = (1, 3);

/// A case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Case {
    /// The size of the binary.
    Size,
    /// `--version`.
    Version,
    /// A prompt with a short answer.
    Hi,
    /// A prompt that is answered by a read, an edit and a text.
    Edit,
    /// A prompt with a long answer, with stdout to a file.
    Stream,
    /// A prompt with a long answer, with stdout to a pipe.
    Pipe,
}

/// A run that did its work.
#[derive(Debug)]
pub(super) struct Run {
    /// The cost.
    pub(super) cost: Cost,
    /// The requests to the model.
    pub(super) seen: Seen,
}

impl Case {
    pub(super) const ALL: [Self; 6] =
        [Self::Size, Self::Version, Self::Hi, Self::Edit, Self::Stream, Self::Pipe];

    /// The name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Version => "version",
            Self::Hi => "hi",
            Self::Edit => "edit",
            Self::Stream => "stream",
            Self::Pipe => "pipe",
        }
    }

    /// A description.
    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Size => "the binary",
            Self::Version => "--version",
            Self::Hi => "run \"hi\", one turn",
            Self::Edit => "run with a read, an edit and an answer",
            Self::Stream => "2 MB in 40,000 deltas, to a file",
            Self::Pipe => "2 MB in 40,000 deltas, through a pipe, once",
        }
    }

    /// The number of runs if `--runs` is `runs`.
    pub(super) fn runs(self, runs: usize) -> usize {
        match self {
            Self::Size => 0,
            Self::Pipe => 1,
            Self::Version | Self::Hi | Self::Edit | Self::Stream => runs,
        }
    }

    /// Runs the case once. Fails if the run did not do its work.
    pub(super) fn run(self, program: &Program, model: &mut Model) -> Result<Run> {
        let sandbox = &program.sandbox;
        let prompt = match self {
            Self::Hi => "hi".to_owned(),
            Self::Edit => format!("{EDIT} {} please", sandbox.edited().display()),
            Self::Stream | Self::Pipe => format!("{STREAM} please"),
            Self::Size | Self::Version => String::new(),
        };
        let args = match self {
            Self::Size | Self::Version => vec!["--version"],
            Self::Hi | Self::Edit | Self::Stream | Self::Pipe => vec!["run", &prompt],
        };
        sandbox.reset()?;
        // Late requests of an earlier run do not belong to this one.
        model.seen()?;
        let sink = if self == Self::Pipe { Sink::Pipe } else { Sink::File };
        let cost = measure_program(program, &args, sink)?;
        let seen = model.seen()?;
        let run = Run { cost, seen };
        self.check(program, &run).with_context(|| {
            let output = |name: &str| tail(&fs::read(sandbox.output(name)).unwrap_or_default());
            format!("--- stdout\n{}\n--- stderr\n{}\n---", output("stdout"), output("stderr"))
        })?;
        Ok(run)
    }

    fn check(self, program: &Program, Run { cost, seen }: &Run) -> Result<()> {
        ensure!(!cost.late, "it was killed after {DEADLINE:?}");
        if let Some(signal) = cost.signal {
            bail!("it was ended by signal {signal}");
        }
        ensure!(cost.code == Some(0), "its exit code was {:?}", cost.code);
        ensure!(seen.problems.is_empty(), "the model refused: {}", seen.problems.join("; "));
        let output = fs::read_to_string(program.sandbox.output("stdout"))?;
        let has = |text: &str| {
            ensure!(output.contains(text.trim()), "the answer is not in its output");
            Ok(())
        };
        let requests = |expected: usize| {
            let got = seen.main_ns.len();
            ensure!(got == expected, "it sent {got} requests, not {expected}");
            Ok(())
        };
        match self {
            Self::Size => {}
            Self::Version => ensure!(!output.trim().is_empty(), "it printed no version"),
            Self::Hi => {
                has(ANSWER)?;
                requests(REQUESTS.0)?;
            }
            Self::Edit => {
                has(ANSWER)?;
                requests(REQUESTS.1)?;
                let text = fs::read_to_string(program.sandbox.edited())?;
                ensure!(text.contains(REPLACED.1), "the file was not edited");
            }
            Self::Stream | Self::Pipe => {
                has(&FLOOD.text())?;
                requests(REQUESTS.0)?;
            }
        }
        Ok(())
    }
}

impl Run {
    /// The time from the start of the program to the first request to the model.
    pub(super) fn first_request_ns(&self) -> Option<i64> {
        let first = self.seen.main_ns.iter().chain(&self.seen.side_ns).min()?;
        Some(first - self.cost.started_ns)
    }
}

/// Returns the cases with these names and those whose figures they need, or all cases if there are no names.
pub(super) fn chosen(names: &[String]) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for name in names {
        let case = Case::ALL.into_iter().find(|case| case.name() == name);
        let case = case.with_context(|| {
            let cases = Case::ALL.map(Case::name).join(", ");
            let parts = super::PARTS.map(|part| part.name).join(", ");
            format!("`--only {name}`: unknown name; the names are {cases}, {parts}")
        })?;
        cases.push(case);
        if matches!(case, Case::Edit | Case::Stream | Case::Pipe) {
            cases.push(Case::Hi);
        }
    }
    if names.is_empty() {
        cases.extend(Case::ALL);
    }
    cases.sort_unstable();
    cases.dedup();
    Ok(cases)
}

/// Runs the program with the measuring process.
pub(super) fn measure_program(program: &Program, args: &[&str], sink: Sink) -> Result<Cost> {
    let sandbox = &program.sandbox;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(measure::COMMAND);
    command.arg(if sink == Sink::Pipe { "pipe" } else { "file" });
    command.arg(DEADLINE.as_millis().to_string());
    command.args([sandbox.output("stdout"), sandbox.output("stderr")]);
    command.arg(&program.path).args(args);
    command.env_clear().envs(sandbox.environment()).current_dir(sandbox.project());
    // The measuring process must see an interrupt as the end of its stdin, so that it can kill the program.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot start the measuring process")?;
    let mut answer = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut answer)?;
    }
    let status = child.wait()?;
    ensure!(status.success(), "the measuring process failed");
    Ok(serde_json::from_str(&answer)?)
}

/// Returns the end of a text.
fn tail(bytes: &[u8]) -> String {
    let start = bytes.len().saturating_sub(SHOWN_BYTES);
    String::from_utf8_lossy(&bytes[start..]).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &[&str], expected: &[Case]) {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(chosen(&names).unwrap(), expected);
    }

    #[test]
    fn a_case_adds_the_case_that_its_figures_need() {
        check(&["version"], &[Case::Version]);
        check(&["stream", "edit"], &[Case::Hi, Case::Edit, Case::Stream]);
        check(&["hi", "hi"], &[Case::Hi]);
        check(&[], &Case::ALL);
    }

    #[test]
    fn the_error_of_an_unknown_case_lists_the_cases() {
        let error = chosen(&["stram".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("`--only stram`") && error.contains("stream"), "{error}");
    }
}
