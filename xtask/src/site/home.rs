//! The table of measured figures of the home page.
//!
//! Its rows come from `docs/measurements.md`, so that the home page claims nothing that a command did not measure.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};

/// The place of the table in the home page.
const PLACE: &str = "<!-- figures -->\n";

/// The start of each row in `docs/measurements.md`, and the command that measures it.
const FIGURES: [(&str, &str); 7] = [
    ("`--version`", "cargo xtask bench --only version"),
    ("`run \"hi\"`", "cargo xtask bench --only hi"),
    ("2 MB in 40,000 deltas: CPU for each delta", "cargo xtask bench --only stream"),
    ("memory at rest, with the whole binary", "cargo xtask bench --only serve"),
    ("listing 1000 sessions", "cargo xtask bench --only serve"),
    ("20 sessions streaming at once", "cargo xtask bench --only serve"),
    ("first frame, wall time", "cargo xtask bench --only tui"),
];

/// Returns the home page with its table.
pub(super) fn with_figures(home: &str, measurements: &str) -> Result<String> {
    let Some((before, after)) = home.split_once(PLACE) else { return Ok(home.to_owned()) };
    let mut table =
        "| figure | Codewright | OpenCode 1.18.33 | measured by |\n|---|---|---|---|\n".to_owned();
    for (figure, command) in FIGURES {
        let row = measurements
            .lines()
            .find_map(|line| line.strip_prefix("| ").filter(|row| row.starts_with(figure)));
        let row =
            row.with_context(|| format!("`docs/measurements.md` has no row that starts with `{figure}`"))?;
        let cells: Vec<&str> = row.trim_end_matches('|').split(" | ").map(str::trim).collect();
        let [name, own, _, other] = cells[..] else {
            anyhow::bail!("the row `{figure}` of `docs/measurements.md` does not have four cells");
        };
        writeln!(table, "| {name} | {own} | {other} | `{command}` |")?;
    }
    Ok(format!("{before}{table}{after}"))
}
