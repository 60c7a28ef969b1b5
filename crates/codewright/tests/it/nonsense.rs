//! Invalid requests to every route over a socket, in the short form of `cargo xtask fuzz`.

use std::time::Duration;

use anyhow::Result;
use codewright_testkit::{Fuzz, is_default_store};

#[test]
fn invalid_requests_neither_crash_nor_block_the_server() -> Result<()> {
    if !is_default_store() {
        return Ok(());
    }
    let binary = env!("CARGO_BIN_EXE_codewright").into();
    let found = Fuzz { binary, time: Duration::from_secs(6), lanes: 2, seed: 7 }.play()?;
    assert!(found.is_clean(), "{found:#?}");
    assert!(found.requests > 0 && !found.answered.is_empty(), "{found:?}");
    Ok(())
}
