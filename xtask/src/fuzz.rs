//! Runs the fuzz test for minutes; `cargo test -p codewright nonsense` is the short form.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use codewright_testkit::{Fuzz, FuzzReport};

/// The default duration.
const MINUTES: u64 = 20;
/// The default number of concurrent requests.
const LANES: usize = 4;

/// Runs the test and prints the report.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let (mut minutes, mut lanes, mut seed, mut program) = (MINUTES, LANES, 1, None);
    let mut rest = rest.iter();
    while let Some(flag) = rest.next() {
        let mut value = || crate::value(flag, &mut rest);
        match flag.as_str() {
            "--bin" => program = Some(value()?.into()),
            "--minutes" => minutes = number(flag, value()?)?,
            "--lanes" => lanes = usize::try_from(number(flag, value()?)?)?,
            "--seed" => seed = number(flag, value()?)?,
            other => bail!("`fuzz` has no flag `{other}`; see `cargo xtask --help`"),
        }
    }
    let binary = match program {
        Some(path) => path,
        None => crate::bench::build_release()?,
    };
    let fuzz = Fuzz { binary, time: Duration::from_secs(minutes * 60), lanes, seed };
    let found = fuzz.play()?;
    std::io::stdout().write_all(report(&found, minutes)?.as_bytes())?;
    Ok(if found.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn number(flag: &str, text: &str) -> Result<u64> {
    text.parse().ok().with_context(|| format!("`{flag}` needs a number, not `{text}`"))
}

fn report(found: &FuzzReport, minutes: u64) -> Result<String> {
    let mut text = String::new();
    let mut statuses: BTreeMap<u16, u64> = BTreeMap::new();
    for ((_, status), count) in &found.answered {
        *statuses.entry(*status).or_default() += count;
    }
    let answered: u64 = statuses.values().sum();
    let pairs = found.answered.len();
    writeln!(
        text,
        "{} requests in {minutes} min, {answered} answered, {pairs} routes × statuses",
        found.requests
    )?;
    let counts: Vec<_> = statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect();
    writeln!(text, "by status: {}", counts.join(", "))?;
    let [early, end, peak] = found.memory_kib;
    writeln!(text, "memory: {early} KiB after a quarter, {end} KiB at the end, {peak} KiB at the peak")?;
    writeln!(text, "routes without an answer: {}", found.unanswered.join(", "))?;
    for (name, faults) in
        [("hangs", &found.hangs), ("unexpected failures", &found.failures), ("other faults", &found.wrong)]
    {
        writeln!(text, "{name}: {}", faults.len())?;
        for fault in faults {
            writeln!(text, "  {fault}")?;
        }
    }
    Ok(text)
}
