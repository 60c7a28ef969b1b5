//! Runs the long undo tests of `codewright-snapshot`: random histories of an agent, a user and git.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::Plan;
use anyhow::{Context as _, Result, ensure};

/// The name on the command line.
pub(super) const NAME: &str = "undo";
/// The end of the line that each test prints.
const DONE: &str = "0 differences";
/// The number of tests.
const TESTS: usize = 2;

/// Runs the tests once and returns the lines of the report.
pub(super) fn measure(_plan: &Plan) -> Result<String> {
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask is in the workspace")?;
    let begun = Instant::now();
    let mut command = Command::new(cargo);
    command.args(["test", "--release", "--package", "codewright-snapshot", "--lib", "--"]);
    let output = command.args(["--ignored", "--nocapture"]).current_dir(root).output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "the undo tests failed:\n{}", String::from_utf8_lossy(&output.stderr));
    let done: Vec<_> = printed.lines().filter(|line| line.ends_with(DONE)).collect();
    ensure!(done.len() == TESTS, "the tests printed `{printed}`");
    let mut text = format!(
        "\n{NAME}: random histories compared with a model, in {:.0} s\n",
        begun.elapsed().as_secs_f64()
    );
    for line in done {
        // The line of a test may follow that of the test runner.
        let line = line.rsplit("... ").next().unwrap_or(line);
        writeln!(text, "  {line}")?;
    }
    Ok(text)
}
