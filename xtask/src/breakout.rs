//! Lets a malicious model try to leave the sandbox; `cargo test -p codewright breakout` is the short form.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use codewright_testkit::{Breakout, BreakoutReport};

/// The modes that are tested.
const MODES: [&str; 2] = ["workspace", "read-only"];

/// Runs the test in each mode and prints the reports.
pub(crate) fn main(rest: &[String]) -> Result<ExitCode> {
    let mut test =
        Breakout { binary: Default::default(), mode: String::new(), every: 1, only: String::new() };
    let mut rest = rest.iter();
    let (mut program, mut modes) = (None, MODES.map(str::to_owned).to_vec());
    while let Some(flag) = rest.next() {
        match flag.as_str() {
            "--bin" => program = Some(crate::value(flag, &mut rest)?.into()),
            "--mode" => modes = vec![crate::value(flag, &mut rest)?.to_owned()],
            "--only" => crate::value(flag, &mut rest)?.clone_into(&mut test.only),
            "--every" => {
                let text = crate::value(flag, &mut rest)?;
                test.every = text.parse().ok().with_context(|| format!("`{text}` is not a number"))?;
            }
            other => bail!("`sandbox` has no flag `{other}`; see `cargo xtask --help`"),
        }
    }
    test.binary = match program {
        Some(path) => std::fs::canonicalize::<std::path::PathBuf>(path)?,
        None => crate::bench::build_release()?,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut is_clean = true;
    for mode in modes {
        let found = runtime.block_on(Breakout { mode: mode.clone(), ..test.clone() }.play())?;
        std::io::stdout().write_all(report(&mode, &found)?.as_bytes())?;
        is_clean &= found.is_clean();
    }
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(mode: &str, found: &BreakoutReport) -> Result<String> {
    let mut text = String::new();
    if let Some(reason) = &found.skipped {
        writeln!(text, "{mode}: skipped, because the sandbox is not complete here: {reason}")?;
        return Ok(text);
    }
    let BreakoutReport { attempts, rejected, effects, .. } = found;
    let seconds = found.took.as_secs();
    writeln!(
        text,
        "{mode}: {attempts} attempts, {} effects ({rejected} were rejected; {seconds} s)",
        effects.len()
    )?;
    for (kind, lines) in [("EFFECT", effects), ("FAULT ", &found.wrong)] {
        for line in lines {
            writeln!(text, "{kind} {line}")?;
        }
    }
    Ok(text)
}
