//! Plays the whole attack corpus; `cargo test -p codewright attacks` plays the short form.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use codewright_testkit::attack::{Attack, Form, Kind, Outcome, TracedRuns, Verdict};

/// The number of slowest plays to print.
const SLOWEST: usize = 8;

/// Plays the corpus and prints the results.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let mut attack = Attack::new("");
    let mut program = None;
    let mut rest = rest.iter();
    let mut lists_only = false;
    while let Some(flag) = rest.next() {
        match flag.as_str() {
            "--bin" => program = Some(PathBuf::from(crate::value(flag, &mut rest)?)),
            "--only" => attack.only.push(crate::value(flag, &mut rest)?.to_owned()),
            "--short" => attack.form = Form::Short,
            "--unprotected" => attack.form = Form::Unprotected,
            "--progress" => attack.progress = print_progress,
            "--slowest" => lists_only = true,
            "--lanes" => {
                let text = crate::value(flag, &mut rest)?;
                attack.lanes = text.parse().ok().with_context(|| format!("`{text}` is not a number"))?;
            }
            other => bail!("`attacks` has no flag `{other}`; see `cargo xtask --help`"),
        }
    }
    attack.binary = find_program(program)?;
    let begun = Instant::now();
    let outcomes = attack.play();
    let seconds = begun.elapsed().as_secs();
    std::io::stdout().write_all(report(&outcomes, seconds, lists_only)?.as_bytes())?;
    let is_clean = outcomes.iter().all(|one| matches!(one.verdict, Verdict::Held | Verdict::Skipped(_)));
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Traces the program on a hostile directory and prints the programs that it executed.
pub(crate) fn traced(rest: &[String]) -> Result<ExitCode> {
    let mut program = None;
    let mut rest = rest.iter();
    while let Some(flag) = rest.next() {
        match flag.as_str() {
            "--bin" => program = Some(PathBuf::from(crate::value(flag, &mut rest)?)),
            other => bail!("`traced` has no flag `{other}`; see `cargo xtask --help`"),
        }
    }
    let mut text = String::new();
    if !TracedRuns::is_possible() {
        std::io::stdout().write_all(b"skipped: `strace` is not installed\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let runs = TracedRuns { binary: find_program(program)? }.play()?;
    for run in &runs {
        writeln!(text, "{}: {} programs, {} faults", run.name, run.executed.len(), run.faults.len())?;
        for line in &run.executed {
            writeln!(text, "    {line}")?;
        }
        for fault in &run.faults {
            writeln!(text, "  FAULT {fault}")?;
        }
    }
    std::io::stdout().write_all(text.as_bytes())?;
    let is_clean = runs.iter().all(|run| run.faults.is_empty());
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn find_program(program: Option<PathBuf>) -> Result<PathBuf> {
    let program = match program {
        Some(path) => path,
        None => crate::bench::build_release()?,
    };
    // The corpus runs the program in other directories.
    program.canonicalize().with_context(|| format!("cannot find `{}`", program.display()))
}

/// Prints an outcome.
fn print_progress(one: &Outcome) {
    let verdict = match one.verdict {
        Verdict::Held => "held",
        Verdict::Failed(_) => "failed",
        Verdict::NeedsPermission(_) => "needs permission",
        Verdict::Skipped(_) => "skipped",
    };
    // The report is printed in any case.
    writeln!(std::io::stderr(), "{verdict:<16} {:>6} ms  {}", one.took.as_millis(), one.name)
        .unwrap_or_default();
}

fn report(outcomes: &[Outcome], seconds: u64, lists_slowest: bool) -> Result<String> {
    let mut text = String::new();
    writeln!(text, "{} plays in {seconds} s", outcomes.len())?;
    writeln!(
        text,
        "{:<14} {:>8} {:>6} {:>7}   {:>9} {:>10} {:>7}  {:>8}",
        "kind", "hostile", "held", "failed", "ordinary", "permission", "failed", "skipped"
    )?;
    for kind in Kind::ALL.map(Some).into_iter().chain([None]) {
        let of = |is_hostile: bool, fits: fn(&Verdict) -> bool| {
            outcomes
                .iter()
                .filter(|one| kind.is_none_or(|kind| one.kind == kind))
                .filter(|one| one.is_hostile == is_hostile && fits(&one.verdict))
                .count()
        };
        let failed = |verdict: &Verdict| matches!(verdict, Verdict::Failed(_));
        let skipped = |verdict: &Verdict| matches!(verdict, Verdict::Skipped(_));
        writeln!(
            text,
            "{:<14} {:>8} {:>6} {:>7}   {:>9} {:>10} {:>7}  {:>8}",
            kind.map_or("all".to_owned(), |kind| kind.to_string()),
            of(true, |_| true),
            of(true, |verdict| matches!(verdict, Verdict::Held)),
            of(true, failed),
            of(false, |_| true),
            of(false, |verdict| matches!(verdict, Verdict::NeedsPermission(_))),
            of(false, failed),
            of(true, skipped) + of(false, skipped),
        )?;
    }
    text.push_str(&totals(outcomes));
    for one in outcomes {
        match &one.verdict {
            Verdict::Held => {}
            Verdict::Failed(why) if one.is_hostile => writeln!(text, "FAILED   {}: {why}", one.name)?,
            Verdict::Failed(why) => writeln!(text, "BROKEN   {}: {why}", one.name)?,
            Verdict::NeedsPermission(why) => writeln!(text, "PERMISSION {}: {why}", one.name)?,
            Verdict::Skipped(why) => writeln!(text, "SKIPPED  {}: {why}", one.name)?,
        }
    }
    if lists_slowest {
        let mut slow: Vec<_> = outcomes.iter().collect();
        slow.sort_by_key(|one| std::cmp::Reverse(one.took));
        for one in slow.into_iter().take(SLOWEST) {
            writeln!(text, "SLOW     {}: {} ms", one.name, one.took.as_millis())?;
        }
    }
    Ok(text)
}

/// Returns the two figures that count: the attacks without an effect, and the ordinary uses that worked.
fn totals(outcomes: &[Outcome]) -> String {
    let count = |is_hostile: bool| {
        let all = || outcomes.iter().filter(|one| one.is_hostile == is_hostile);
        let played = all().filter(|one| !matches!(one.verdict, Verdict::Skipped(_))).count();
        format!("{} of {played}", all().filter(|one| one.verdict == Verdict::Held).count())
    };
    format!("hostile held: {}; ordinary passed: {}\n", count(true), count(false))
}
