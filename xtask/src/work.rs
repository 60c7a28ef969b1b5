//! Plays ordinary work in the sandbox; `cargo test -p codewright work` is the short form.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Result, bail};
use codewright_testkit::{Work, WorkMechanism, WorkOutcome, WorkReport, WorkRows};

/// The mechanisms and their names.
const MECHANISMS: [(&str, WorkMechanism); 2] =
    [("bubblewrap", WorkMechanism::Complete), ("landlock", WorkMechanism::Landlock)];

/// Plays the rows with each mechanism and prints the reports.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let (mut program, mut mechanism, mut names) = (None, None, Vec::new());
    let mut rest = rest.iter();
    while let Some(flag) = rest.next() {
        match flag.as_str() {
            "--bin" => program = Some(crate::value(flag, &mut rest)?.into()),
            "--mechanism" => mechanism = Some(crate::value(flag, &mut rest)?.to_owned()),
            "--only" => names.push(crate::value(flag, &mut rest)?.to_owned()),
            other => bail!("`work` has no flag `{other}`; see `cargo xtask --help`"),
        }
    }
    let is_chosen = |name: &str| mechanism.as_deref().is_none_or(|chosen| chosen == name);
    let chosen: Vec<_> = MECHANISMS.into_iter().filter(|(name, _)| is_chosen(name)).collect();
    if chosen.is_empty() {
        bail!("`--mechanism` is `bubblewrap` or `landlock`");
    }
    let binary = match program {
        Some(path) => std::fs::canonicalize::<std::path::PathBuf>(path)?,
        None => crate::bench::build_release()?,
    };
    let mut is_clean = true;
    for (name, mechanism) in chosen {
        let rows = WorkRows::Named(names.clone());
        let found = Work { binary: binary.clone(), mechanism, rows }.play()?;
        std::io::stdout().write_all(report(name, &found)?.as_bytes())?;
        is_clean &= found.is_clean();
    }
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(mechanism: &str, found: &WorkReport) -> Result<String> {
    let mut text = String::new();
    if let Some(reason) = &found.skipped {
        writeln!(text, "{mechanism}: skipped, because this machine does not have it: {reason}")?;
    }
    for (name, outcome, took) in &found.rows {
        let seconds = took.as_secs_f64();
        match outcome {
            WorkOutcome::Passed => writeln!(text, "{mechanism}: passed   {name} ({seconds:.1} s)")?,
            WorkOutcome::Skipped(reason) => writeln!(text, "{mechanism}: skipped  {name}: {reason}")?,
            WorkOutcome::Failed(shown) => writeln!(text, "{mechanism}: FAILED   {name}\n{shown}")?,
        }
    }
    Ok(text)
}
