//! Nonsense at every route over a socket, in the short form; `cargo xtask fuzz` is the long one.

use std::time::Duration;

use anyhow::Result;
use codewright_testkit::Fuzz;

#[test]
fn nonsense_over_a_socket_crashes_nothing_and_keeps_nobody_waiting() -> Result<()> {
    let binary = env!("CARGO_BIN_EXE_codewright").into();
    let found = Fuzz { binary, time: Duration::from_secs(6), lanes: 2, seed: 7 }.play()?;
    assert!(found.is_clean(), "{found:#?}");
    assert!(found.requests > 0 && !found.answered.is_empty(), "{found:?}");
    Ok(())
}
