//! Breaks servers that share a database; `cargo test -p codewright fleet` is the short form.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use codewright_testkit::{Fleet, FleetReport, percentile};

/// The default number of servers.
const NODES: usize = 3;
/// The default number of sessions.
const SESSIONS: usize = 24;
/// The default number of faults.
const FAULTS: u32 = 40;
/// The longest pause of a client between an answer and the next prompt.
const THINKING: Duration = Duration::from_millis(1);
/// The number of errors of each kind to print.
const SHOWN: usize = 20;

/// Runs the test and prints the report.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let mut fleet = Fleet {
        binary: Default::default(),
        nodes: NODES,
        sessions: SESSIONS,
        faults: FAULTS,
        seed: 1,
        is_unfenced: false,
        is_on_networks: false,
        thinking: THINKING,
    };
    let mut rest = rest.iter();
    let mut program = None;
    while let Some(flag) = rest.next() {
        match flag.as_str() {
            "--bin" => program = Some(crate::value(flag, &mut rest)?.into()),
            "--nodes" => fleet.nodes = number(flag, crate::value(flag, &mut rest)?)?,
            "--sessions" => fleet.sessions = number(flag, crate::value(flag, &mut rest)?)?,
            "--faults" => fleet.faults = number(flag, crate::value(flag, &mut rest)?)?,
            "--seed" => fleet.seed = number(flag, crate::value(flag, &mut rest)?)?,
            "--unfenced" => fleet.is_unfenced = true,
            "--networks" => fleet.is_on_networks = true,
            "--thinking" => {
                let seconds = number(flag, crate::value(flag, &mut rest)?)?;
                fleet.thinking = Duration::from_secs(seconds);
            }
            other => bail!("`fleet` has no flag `{other}`; see `cargo xtask --help`"),
        }
    }
    fleet.binary = match program {
        Some(path) => path,
        // Only a program with debug assertions has the switch for the fences.
        None if fleet.is_unfenced => build_debug()?,
        None => crate::bench::build_release()?,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build()?;
    let begun = Instant::now();
    let Some(found) = runtime.block_on(fleet.play())? else { return Ok(ExitCode::SUCCESS) };
    std::io::stdout().write_all(report(&fleet, &found, begun.elapsed().as_secs())?.as_bytes())?;
    Ok(if found.is_clean() == fleet.is_unfenced { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn build_debug() -> Result<std::path::PathBuf> {
    let status = Command::new("cargo").args(["build", "-p", "codewright"]).status()?;
    ensure!(status.success(), "building the program failed");
    Ok(std::path::Path::new("target/debug/codewright").canonicalize()?)
}

fn number<T: std::str::FromStr>(flag: &str, text: &str) -> Result<T> {
    text.parse().ok().with_context(|| format!("`{flag}` needs a number, not `{text}`"))
}

fn report(fleet: &Fleet, found: &FleetReport, seconds: u64) -> Result<String> {
    let mut text = String::new();
    let place = if fleet.is_on_networks {
        "each in a network namespace"
    } else {
        "on loopback, with relays in front of them and of the database"
    };
    writeln!(text, "{} servers {place}, {} sessions, seed {}", fleet.nodes, fleet.sessions, fleet.seed)?;
    let faults: u32 = found.faults.values().sum();
    writeln!(text, "{faults} faults in {seconds} s: {:?}", found.faults)?;
    let checks = &found.checks;
    writeln!(
        text,
        "{} prompts accepted, {} events received by the moving client",
        checks.prompts, checks.events
    )?;
    let [done, not_begun, uncertain] =
        [&checks.done, &checks.not_begun, &checks.uncertain].map(BTreeSet::len);
    writeln!(
        text,
        "{} commands ran; {done} calls done, {not_begun} not started, {uncertain} uncertain",
        checks.effects
    )?;
    writeln!(text, "{} kills of servers with sessions", found.fail_over.len())?;
    for (name, times) in [("taken over", &found.fail_over), ("all went on", &found.going_on)] {
        let below = |share| percentile(times, share).map_or(0.0, |time: Duration| time.as_secs_f64());
        let [p50, p90, p99, most] = [0.5, 0.9, 0.99, 1.0].map(below);
        writeln!(text, "{name} after p50 {p50:.2} s, p90 {p90:.2} s, p99 {p99:.2} s, at most {most:.2} s")?;
    }
    for (name, faults) in [
        ("lost prompts and events", &checks.lost),
        ("requests refused", &checks.refused),
        ("commands that ran twice", &checks.doubled),
        ("stuck sessions", &found.stuck),
        ("other errors", &checks.wrong),
    ] {
        writeln!(text, "{name}: {}", faults.len())?;
        for fault in faults.iter().take(SHOWN) {
            writeln!(text, "  {fault}")?;
        }
    }
    for detail in &found.details {
        writeln!(text, "{detail}")?;
    }
    Ok(text)
}
