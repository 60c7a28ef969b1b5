//! Runs the crash test with many kills; `cargo test -p codewright crash` is the short form.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use codewright_testkit::{Crash, CrashReport};

/// The default number of kills.
const KILLS: u32 = 1000;
/// The default number of sessions with prompts at the same time.
const SESSIONS: usize = 4;
/// The number of faults of each kind to print.
const SHOWN: usize = 20;

/// Runs the test and prints the report.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let mut crash = Crash { binary: Default::default(), kills: KILLS, sessions: SESSIONS, seed: 1 };
    let mut rest = rest.iter();
    let mut program = None;
    while let Some(flag) = rest.next() {
        match flag.as_str() {
            "--bin" => program = Some(crate::value(flag, &mut rest)?.into()),
            "--kills" => crash.kills = number(flag, crate::value(flag, &mut rest)?)?,
            "--sessions" => crash.sessions = number(flag, crate::value(flag, &mut rest)?)?,
            "--seed" => crash.seed = number(flag, crate::value(flag, &mut rest)?)?,
            other => bail!("`crash` has no flag `{other}`; see `cargo xtask --help`"),
        }
    }
    crash.binary = match program {
        Some(path) => path,
        None => crate::bench::build_release()?,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let begun = Instant::now();
    let found = runtime.block_on(crash.play())?;
    std::io::stdout().write_all(report(&found, begun.elapsed().as_secs())?.as_bytes())?;
    Ok(if found.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn number<T: std::str::FromStr>(flag: &str, text: &str) -> Result<T> {
    text.parse().ok().with_context(|| format!("`{flag}` needs a number, not `{text}`"))
}

fn report(found: &CrashReport, seconds: u64) -> Result<String> {
    let mut text = String::new();
    writeln!(text, "{} kills ({} while starting) in {seconds} s", found.kills, found.in_start)?;
    writeln!(text, "{} prompts accepted, {} events received by clients", found.prompts, found.events)?;
    let [done, not_begun, uncertain] = [&found.done, &found.not_begun, &found.uncertain].map(BTreeSet::len);
    let effects = found.effects;
    writeln!(
        text,
        "{effects} commands ran; {done} calls done, {not_begun} not started, {uncertain} uncertain"
    )?;
    for (name, faults) in [
        ("lost prompts and events", &found.lost),
        ("requests refused", &found.refused),
        ("commands that ran twice", &found.doubled),
        ("other faults", &found.wrong),
    ] {
        writeln!(text, "{name}: {}", faults.len())?;
        for fault in faults.iter().take(SHOWN) {
            writeln!(text, "  {fault}")?;
        }
    }
    Ok(text)
}
