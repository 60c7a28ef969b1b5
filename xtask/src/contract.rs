//! Replays the recorded OpenCode sessions.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use codewright_testkit::contract;

use crate::value;

/// The number of characters to print of each difference.
const SHOWN: usize = 20_000;

/// Replays the cases and prints how many events and messages match.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let mut program = None;
    let mut names = Vec::new();
    let mut rest = rest.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--bin" => program = Some(PathBuf::from(value(arg, &mut rest)?)),
            name => names.push(name.to_owned()),
        }
    }
    let program = match program {
        Some(path) => path.canonicalize().with_context(|| format!("cannot find `{}`", path.display()))?,
        None => crate::bench::build_release()?,
    };
    let folder = contract::folder();
    let all = contract::cases(&folder)?;
    if let Some(unknown) = names.iter().find(|name| !all.contains(name)) {
        bail!("unknown case `{unknown}`; the cases are {}", all.join(", "));
    }
    let is_detailed = !names.is_empty();
    let mut out = std::io::stdout();
    let (mut same, mut recorded, mut identical, mut alike) = (0, 0, 0, 0);
    let chosen = if is_detailed { names } else { all };
    for name in &chosen {
        let outcome = match contract::play(&program, &folder, name) {
            Ok(outcome) => outcome,
            Err(error) => {
                writeln!(out, "{name:36} failed to run: {error:#}")?;
                continue;
            }
        };
        (same, recorded) = (same + outcome.values.same, recorded + outcome.recorded);
        identical += usize::from(outcome.is_identical());
        alike += usize::from(outcome.is_alike());
        let verdict = match (outcome.is_identical(), outcome.is_alike()) {
            (true, _) => "identical",
            (false, true) => "same shape",
            (false, false) => "",
        };
        let differences = &outcome.values.differences;
        let more = differences.iter().filter(|difference| difference.starts_with('+')).count();
        let (found, of) = (outcome.values.same, outcome.recorded);
        writeln!(out, "{name:36} {found:4} of {of:4}, {more:3} more  {verdict}")?;
        let misshapen = &outcome.shapes.differences;
        for difference in differences.iter().filter(|_| is_detailed) {
            let mark = if misshapen.contains(difference) { '!' } else { ' ' };
            writeln!(out, "  {mark} {}", difference.chars().take(SHOWN).collect::<String>())?;
        }
    }
    let percent = |part: usize, of: usize| part as f64 * 100.0 / of.max(1) as f64;
    let cases = chosen.len();
    writeln!(out, "{identical} of {cases} cases identical ({:.1} %)", percent(identical, cases))?;
    writeln!(
        out,
        "{alike} of {cases} cases the same in sequence and shape ({:.1} %)",
        percent(alike, cases)
    )?;
    writeln!(out, "{same} of {recorded} events and messages match ({:.1} %)", percent(same, recorded))?;
    Ok(ExitCode::SUCCESS)
}
