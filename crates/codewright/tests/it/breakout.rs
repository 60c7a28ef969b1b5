//! The short form of `cargo xtask sandbox`.

use anyhow::{Result, ensure};
use codewright_testkit::{Breakout, BreakoutReport};

/// Enough for some attempts of each kind.
const EVERY: usize = 17;

#[test]
fn a_malicious_model_has_no_effect_outside_of_the_sandbox() -> Result<()> {
    play("workspace")
}

#[test]
fn a_malicious_model_changes_nothing_in_read_only_mode() -> Result<()> {
    play("read-only")
}

#[test]
fn the_judge_of_the_attempts_sees_effects() -> Result<()> {
    let found = attempt(Breakout { only: "write open".to_owned(), ..test("off", 1) })?;
    if found.skipped.is_none() {
        ensure!(found.effects.len() >= 3, "{found:#?}");
    }
    Ok(())
}

fn test(mode: &str, every: usize) -> Breakout {
    let binary = env!("CARGO_BIN_EXE_codewright").into();
    Breakout { binary, mode: mode.to_owned(), every, only: String::new() }
}

fn attempt(test: Breakout) -> Result<BreakoutReport> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(test.play())
}

#[expect(clippy::print_stderr, reason = "the results must show that the test was skipped")]
fn play(mode: &str) -> Result<()> {
    let found = attempt(test(mode, EVERY))?;
    if let Some(reason) = &found.skipped {
        eprintln!("skipped: the sandbox is not complete here: {reason}");
        return Ok(());
    }
    ensure!(found.is_clean() && found.attempts >= 40, "{found:#?}");
    Ok(())
}
