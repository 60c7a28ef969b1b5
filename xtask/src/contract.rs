//! The recorded cases of the original, played against the program.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use codewright_testkit::contract;

use crate::value;

/// Characters of one difference that are shown.
const SHOWN: usize = 20_000;

/// Plays them and says how much comes again.
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
        Some(path) => path.canonicalize().with_context(|| format!("there is no `{}`", path.display()))?,
        None => crate::bench::release("codewright")?,
    };
    let folder = contract::folder().context("the recordings are not there")?;
    let all = contract::cases(&folder)?;
    if let Some(unknown) = names.iter().find(|name| !all.contains(name)) {
        bail!("there is no case `{unknown}`; there are {}", all.join(", "));
    }
    let shows = !names.is_empty();
    let mut out = std::io::stdout();
    let (mut same, mut recorded, mut whole) = (0, 0, 0);
    let chosen = if shows { names } else { all };
    for name in &chosen {
        let outcome = match contract::play(&program, &folder, name) {
            Ok(outcome) => outcome,
            Err(error) => {
                writeln!(out, "{name:36} could not be played: {error:#}")?;
                continue;
            }
        };
        (same, recorded) = (same + outcome.same, recorded + outcome.recorded);
        whole += usize::from(outcome.is_identical());
        let said = if outcome.is_identical() { "identical" } else { "" };
        let more = outcome.differences.iter().filter(|difference| difference.starts_with('+')).count();
        writeln!(out, "{name:36} {:4} of {:4}, {more:3} more  {said}", outcome.same, outcome.recorded)?;
        for difference in outcome.differences.iter().filter(|_| shows) {
            writeln!(out, "    {}", difference.chars().take(SHOWN).collect::<String>())?;
        }
    }
    let percent = |part: usize, of: usize| part as f64 * 100.0 / of.max(1) as f64;
    let cases = chosen.len();
    writeln!(out, "{whole} of {cases} cases identical ({:.1} %)", percent(whole, cases))?;
    writeln!(out, "{same} of {recorded} events and messages come again ({:.1} %)", percent(same, recorded))?;
    Ok(ExitCode::SUCCESS)
}
