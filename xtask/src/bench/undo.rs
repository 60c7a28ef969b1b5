//! Random histories of an agent, a user and git, undone and compared with an oracle.
//!
//! They are tests of the room that undoes, in their long form; here they are
//! only run and counted.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::Plan;
use anyhow::{Context as _, Result, ensure};

/// What it is called on the command line.
pub(super) const NAME: &str = "undo";
/// What the tests end their line with.
const DONE: &str = "0 differences";
/// The tests that print such a line.
const TESTS: usize = 2;

/// Runs the long form once, whatever is wanted; the lines to be shown.
pub(super) fn measure(_plan: &Plan) -> Result<String> {
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    let begun = Instant::now();
    let mut command = Command::new(cargo);
    command.args(["test", "--release", "--package", "codewright-snapshot", "--lib", "--"]);
    let output = command.args(["--ignored", "--nocapture"]).current_dir(root).output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "undo differs from the oracle:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let done: Vec<_> = printed.lines().filter(|line| line.ends_with(DONE)).collect();
    ensure!(done.len() == TESTS, "the tests said `{printed}`");
    let mut text =
        format!("\n{NAME}: random histories against an oracle, in {:.0} s\n", begun.elapsed().as_secs_f64());
    for line in done {
        // A test's line may stand behind the runner's.
        let line = line.rsplit("... ").next().unwrap_or(line);
        writeln!(text, "  {line}")?;
    }
    Ok(text)
}
