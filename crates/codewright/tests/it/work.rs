//! The short form of `cargo xtask work`.

use anyhow::{Result, ensure};
use codewright_testkit::{Work, WorkMechanism, WorkOutcome, WorkRows};

#[test]
fn ordinary_work_needs_no_permission() -> Result<()> {
    play(WorkMechanism::Complete)
}

#[test]
fn ordinary_work_succeeds_with_landlock_alone() -> Result<()> {
    play(WorkMechanism::Landlock)
}

#[expect(clippy::print_stderr, reason = "the results must show what was skipped")]
fn play(mechanism: WorkMechanism) -> Result<()> {
    let work = Work { binary: env!("CARGO_BIN_EXE_codewright").into(), mechanism, rows: WorkRows::Cheap };
    let found = work.play()?;
    if let Some(reason) = &found.skipped {
        eprintln!("skipped: {mechanism:?}: {reason}");
    }
    for (name, outcome, _) in &found.rows {
        if let WorkOutcome::Skipped(reason) = outcome {
            eprintln!("skipped: {name}: {reason}");
        }
    }
    ensure!(found.is_clean(), "{found:#?}");
    Ok(())
}
