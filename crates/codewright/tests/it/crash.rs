//! The short form of `cargo xtask crash`.

use anyhow::{Result, ensure};
use codewright_testkit::Crash;

/// Enough kills during start, streaming and commands, with two checks each.
const KILLS: u32 = 10;

#[test]
fn nothing_is_lost_when_the_program_is_killed() -> Result<()> {
    let binary = env!("CARGO_BIN_EXE_codewright").into();
    let crash = Crash { binary, kills: KILLS, sessions: 3, seed: 7 };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let found = runtime.block_on(crash.play())?;
    ensure!(found.is_clean(), "{found:#?}");
    ensure!(found.kills == KILLS && found.prompts > 0 && found.events > 0, "nothing was tried: {found:#?}");
    Ok(())
}
