//! Servers that share a database, broken a few times; `cargo xtask fleet` does it more often.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use codewright_testkit::{Fleet, FleetReport};

fn play(faults: u32, is_unfenced: bool) -> Result<Option<FleetReport>> {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_codewright"));
    let fleet = Fleet {
        binary,
        nodes: 2,
        sessions: 3,
        faults,
        seed: 7,
        is_unfenced,
        is_on_networks: false,
        thinking: Duration::from_millis(1),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(fleet.play())
}

#[test]
fn broken_servers_lose_nothing_and_do_nothing_twice() -> Result<()> {
    let Some(found) = play(4, false)? else { return Ok(()) };
    ensure!(found.is_clean(), "{found:#?}");
    assert_eq!(found.faults.values().sum::<u32>(), 4);
    ensure!(found.checks.prompts > 0 && found.checks.effects > 0 && found.checks.events > 0, "{found:#?}");
    Ok(())
}

/// The checks would be worthless if they found nothing in servers that write with leases that they have lost.
#[test]
fn the_checks_find_servers_without_fences() -> Result<()> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    let Some(found) = play(6, true)? else { return Ok(()) };
    ensure!(!found.is_clean(), "nothing was found: {found:#?}");
    Ok(())
}
