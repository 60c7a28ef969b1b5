//! The short form of `cargo xtask hang`.

use anyhow::{Result, ensure};
use codewright_testkit::Hang;

/// Enough for some cases of each kind.
const EVERY: usize = 10;

#[test]
fn hostile_commands_neither_block_the_program_nor_outlive_it() -> Result<()> {
    let hang = Hang { binary: env!("CARGO_BIN_EXE_codewright").into(), every: EVERY, passes: 1, lanes: 8 };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let found = runtime.block_on(hang.play())?;
    ensure!(found.is_clean() && found.commands >= 20, "{found:#?}");
    Ok(())
}
