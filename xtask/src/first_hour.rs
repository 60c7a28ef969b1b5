//! Plays the first hour of a new user: installation, key, first prompts, the terminal client, the web app.
//!
//! Every step is real: the installed program, a pseudo-terminal, HTTP, a browser. A step that fails is named, and the
//! next one runs all the same.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

mod browser;
mod install;
mod line;
mod provider;
mod screen;

/// The number of steps.
const STEPS: usize = 80;

/// Plays the steps of a part.
type Play = fn(&mut Hour) -> Result<()>;

/// What the steps need, and their results.
pub(crate) struct Hour {
    /// The program that is played.
    program: PathBuf,
    /// Whether every step is printed when it ends.
    is_verbose: bool,
    passed: usize,
    failed: Vec<String>,
}

/// Plays all steps, or those of one part.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let (mut bin, mut only, mut is_verbose) = (Vec::new(), None, false);
    let mut rest = rest.iter();
    while let Some(flag) = rest.next() {
        match flag.as_str() {
            "--bin" => bin = vec![flag.clone(), crate::value(flag, &mut rest)?.to_owned()],
            "--only" => only = Some(crate::value(flag, &mut rest)?.to_owned()),
            "--progress" => is_verbose = true,
            other => bail!("`first-hour` has no flag `{other}`; see `cargo xtask --help`"),
        }
    }
    let program = crate::clients::program(&bin)?;
    let begun = Instant::now();
    let mut hour = Hour { program, is_verbose, passed: 0, failed: Vec::new() };
    let parts: [(&str, Play); 4] = [
        ("install", install::play),
        ("line", line::play),
        ("screen", screen::play),
        ("browser", browser::play),
    ];
    if let Some(only) = only.as_deref().filter(|only| parts.iter().all(|(name, _)| name != only)) {
        bail!("`--only` is one of install, line, screen and browser, not `{only}`");
    }
    for (name, play) in parts {
        if only.as_deref().is_none_or(|only| only == name) {
            // A part whose stage cannot be set up fails as a whole.
            if let Err(error) = play(&mut hour) {
                hour.failed.push(format!("{name}: {error:#}"));
            }
        }
    }
    hour.report(if only.is_none() { STEPS } else { 0 }, begun)
}

impl Hour {
    /// Plays a step.
    fn step(&mut self, name: &str, play: impl FnOnce() -> Result<()>) {
        let result = play();
        self.note(name, result.map_err(|error| format!("{error:#}")));
    }

    fn note(&mut self, name: &str, result: Result<(), String>) {
        if self.is_verbose {
            let mark = if result.is_ok() { "ok  " } else { "FAIL" };
            // There is no way to report that stdout cannot be written.
            writeln!(std::io::stdout(), "{mark}  {name}").unwrap_or_default();
        }
        match result {
            Ok(()) => self.passed += 1,
            Err(error) => self.failed.push(format!("{name}: {error}")),
        }
    }

    /// Prints the failed steps and `n of 80`. At least `expected` steps must have been played.
    fn report(self, expected: usize, begun: Instant) -> Result<ExitCode> {
        let mut out = std::io::stdout();
        for failure in &self.failed {
            writeln!(out, "FAILED   {failure}")?;
        }
        let played = self.passed + self.failed.len();
        let count = expected.max(played);
        writeln!(
            out,
            "{} of {count} steps of the first hour ({} s)",
            self.passed,
            begun.elapsed().as_secs()
        )?;
        Ok(if self.passed == count { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Fails unless a text has all parts.
fn has(text: &str, parts: &[&str]) -> Result<()> {
    match parts.iter().find(|part| !text.contains(**part)) {
        None => Ok(()),
        Some(part) => bail!("`{part}` is missing in:\n{text}"),
    }
}

/// Fails if a text has one of the parts.
fn lacks(text: &str, parts: &[&str]) -> Result<()> {
    match parts.iter().find(|part| text.contains(**part)) {
        None => Ok(()),
        Some(part) => bail!("`{part}` is in:\n{text}"),
    }
}

/// The root of the repository.
fn root() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask is in the workspace")
}

/// Reads a file for an error that names it.
fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}
