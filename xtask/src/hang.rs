//! Runs all hostile commands; `cargo test -p codewright hang` is the short form.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use codewright_testkit::{Hang, HangReport};

/// The number of passes.
const PASSES: usize = 2;
/// The default number of concurrent commands.
const LANES: usize = 8;

/// Runs the test and prints the report.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let mut hang = Hang { binary: Default::default(), every: 1, passes: PASSES, lanes: LANES };
    let mut rest = rest.iter();
    let mut program = None;
    while let Some(flag) = rest.next() {
        match flag.as_str() {
            "--bin" => program = Some(crate::value(flag, &mut rest)?.into()),
            "--every" => hang.every = number(flag, crate::value(flag, &mut rest)?)?,
            "--lanes" => hang.lanes = number(flag, crate::value(flag, &mut rest)?)?,
            other => bail!("`hang` has no flag `{other}`; see `cargo xtask --help`"),
        }
    }
    hang.binary = match program {
        Some(path) => path,
        None => crate::bench::build_release()?,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let begun = Instant::now();
    let found = runtime.block_on(hang.play())?;
    std::io::stdout().write_all(report(&found, begun.elapsed().as_secs())?.as_bytes())?;
    Ok(if found.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn number(flag: &str, text: &str) -> Result<usize> {
    text.parse().ok().with_context(|| format!("`{flag}` needs a number, not `{text}`"))
}

fn report(found: &HangReport, seconds: u64) -> Result<String> {
    let mut text = String::new();
    let longest = found.longest.as_millis();
    writeln!(text, "{} commands in {seconds} s; the longest turn took {longest} ms", found.commands)?;
    let [early, end, peak] = found.memory_kib;
    writeln!(
        text,
        "memory of the server: {early} KiB after half of the commands, {end} KiB at the end, {peak} KiB at the peak"
    )?;
    for (name, faults) in
        [("hangs", &found.hangs), ("remaining processes", &found.survivors), ("other faults", &found.wrong)]
    {
        writeln!(text, "{name}: {}", faults.len())?;
        for fault in faults {
            writeln!(text, "  {fault}")?;
        }
    }
    Ok(text)
}
