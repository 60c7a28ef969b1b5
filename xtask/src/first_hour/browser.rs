//! The web app in a headless browser. The steps are a script for node, in `web/acts/hour.mjs`.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};

use super::Hour;

/// Plays the steps.
pub(super) fn play(hour: &mut Hour) -> Result<()> {
    let mut node = crate::web::node("hour.mjs", &hour.program)?;
    let mut child = node.stdout(Stdio::piped()).spawn().context("cannot start node")?;
    let lines = BufReader::new(child.stdout.take().context("node has no output")?).lines();
    let mut count = 0;
    // `ok NAME`, or `FAIL NAME: PROBLEM`.
    for line in lines {
        let line = line?;
        if let Some(name) = line.strip_prefix("ok ") {
            hour.note(name, Ok(()));
            count += 1;
        } else if let Some(failure) = line.strip_prefix("FAIL ") {
            let (name, problem) = failure.split_once(": ").unwrap_or((failure, "it failed"));
            hour.note(name, Err(problem.to_owned()));
            count += 1;
        }
    }
    let status = child.wait()?;
    ensure!(status.success() && count > 0, "the browser's part ended early: {status}");
    Ok(())
}
