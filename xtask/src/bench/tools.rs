//! Measures searches and edits by the tools of the model.
//!
//! A search is compared with the same search by ripgrep, if it is installed. The `measure` build of this program
//! runs the measurement.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use codewright_tools::{AnyTool, Setup, ToolCx, builtin};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Plan;
use super::spread::Spread;

/// The name on the command line.
pub(super) const NAME: &str = "tools";
/// The hidden command of the measuring process.
pub(crate) const COMMAND: &str = "tools-part";

const FILES: usize = 20_000;
/// The number of files in each directory.
const FILES_EACH: usize = 25;
/// The number of bytes of the edited file.
const EDITED_BYTES: usize = 10 * 1024 * 1024;
/// The limit of a search's time divided by that of ripgrep.
const RATIO_LIMIT: f64 = 1.3;
/// The limit of an edit.
const EDIT_LIMIT_MS: f64 = 100.0;

/// The runs of a row.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    name: String,
    ours_ms: Vec<f64>,
    /// The times of ripgrep; empty for edits and if it is not installed.
    ripgrep_ms: Vec<f64>,
}

/// Builds and runs the measuring process and returns the lines of the report.
pub(super) fn measure(plan: &Plan) -> Result<String> {
    let program = super::build_measuring()?;
    let output = Command::new(program).args([COMMAND, &plan.runs.to_string()]).output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the measuring program failed: {}", stderr.trim());
    let rows: Vec<Row> = serde_json::from_slice(&output.stdout)?;
    let mut text =
        format!("\n{NAME}: on {FILES} files, compared with `rg`; an edit of {} MiB\n", EDITED_BYTES >> 20);
    for row in rows {
        let ours = Spread::of(row.ours_ms).context("a row without runs")?;
        let range = format!("({:.1} .. {:.1})", ours.least, ours.most);
        write!(text, "  {:<28} {:>8.1} ms {range:<18}", row.name, ours.median)?;
        let mark = |is_good: bool| if is_good { "ok" } else { "OVER" };
        match Spread::of(row.ripgrep_ms) {
            Some(theirs) => {
                let ratio = ours.median / theirs.median;
                let mark = mark(ratio <= RATIO_LIMIT);
                writeln!(text, "  rg {:>7.1} ms  {ratio:.2} x  limit {RATIO_LIMIT} {mark}", theirs.median)?;
            }
            None if row.name.starts_with("edit") => {
                writeln!(text, "  limit {EDIT_LIMIT_MS} ms {}", mark(ours.median <= EDIT_LIMIT_MS))?;
            }
            None => writeln!(text, "  rg is not installed")?,
        }
    }
    Ok(text)
}

/// Measures and prints the rows as JSON.
pub(crate) fn main(rest: &[String]) -> Result<()> {
    let runs = rest.first().and_then(|runs| runs.parse().ok()).context("the number of runs is missing")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let rows = runtime.block_on(rows(runs))?;
    serde_json::to_writer(std::io::stdout().lock(), &rows)?;
    Ok(())
}

/// A search by a tool, and the same search by ripgrep.
struct Search {
    name: &'static str,
    tool: &'static str,
    input: Value,
    ripgrep: &'static [&'static str],
    /// A text that the answer must contain.
    answer: &'static str,
}

fn searches() -> [Search; 5] {
    [
        Search {
            name: "grep, nothing found",
            tool: "grep",
            input: json!({"pattern": "no such words anywhere"}),
            ripgrep: &["-n", "--hidden", "--no-config", "--", "no such words anywhere"],
            answer: "No files found",
        },
        Search {
            name: "grep, a few of all files",
            tool: "grep",
            input: json!({"pattern": "needle [0-9]+"}),
            ripgrep: &["-n", "--hidden", "--no-config", "--", "needle [0-9]+"],
            answer: "Found 20 matches",
        },
        Search {
            name: "grep, one kind of file",
            tool: "grep",
            input: json!({"pattern": "fn [a-z]+_15 ", "include": "*.rs"}),
            ripgrep: &["-n", "--hidden", "--no-config", "--glob=*.rs", "--", "fn [a-z]+_15 "],
            answer: "Line ",
        },
        Search {
            name: "glob, nothing found",
            tool: "glob",
            input: json!({"pattern": "**/*.nothing"}),
            ripgrep: &["--files", "--hidden", "--no-config", "--glob=**/*.nothing"],
            answer: "No files found",
        },
        Search {
            name: "glob, a hundred and more",
            tool: "glob",
            input: json!({"pattern": "**/*.rs"}),
            ripgrep: &["--files", "--hidden", "--no-config", "--glob=**/*.rs"],
            answer: "showing first 100",
        },
    ]
}

async fn rows(runs: usize) -> Result<Vec<Row>> {
    let scratch = tempfile::tempdir()?;
    let root = scratch.path().canonicalize()?.join("tree");
    fill(&root)?;
    let has_ripgrep = Command::new("rg").arg("--version").stdout(Stdio::null()).status().is_ok();
    let cx = ToolCx::alone(&root, &scratch.path().join("output"));
    let mut rows = Vec::new();
    for search in searches() {
        let mut row = Row { name: search.name.to_owned(), ours_ms: Vec::new(), ripgrep_ms: Vec::new() };
        for run in 0..=runs {
            let (output, ours) = call(search.tool, search.input.clone(), &cx).await?;
            ensure!(output.contains(search.answer), "`{}` answered: {output}", search.name);
            let theirs = if has_ripgrep { Some(ripgrep(&root, search.ripgrep)?) } else { None };
            if run > 0 {
                row.ours_ms.push(ours);
                row.ripgrep_ms.extend(theirs);
            }
        }
        rows.push(row);
    }
    rows.push(edit(&root, &cx, runs).await?);
    Ok(rows)
}

/// Makes a call, including its permission requests, and returns the output and the milliseconds.
async fn call(name: &str, input: Value, cx: &ToolCx) -> Result<(String, f64)> {
    let tool: Arc<dyn AnyTool> =
        builtin(&Setup::default()).into_iter().find(|tool| tool.name() == name).context("no such tool")?;
    let begun = Instant::now();
    tool.asks(&input, cx).await?;
    let output = tool.run(input, cx).await?;
    Ok((output.output, begun.elapsed().as_secs_f64() * 1e3))
}

fn ripgrep(root: &Path, args: &[&str]) -> Result<f64> {
    let begun = Instant::now();
    // Without a directory it would read stdin.
    let output = Command::new("rg").args(args).arg(".").current_dir(root).stdin(Stdio::null()).output()?;
    ensure!(
        output.status.code().is_some_and(|code| code < 2),
        "rg: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(begun.elapsed().as_secs_f64() * 1e3)
}

async fn edit(root: &Path, cx: &ToolCx, runs: usize) -> Result<Row> {
    let path = root.join("large.txt");
    let line = "A line of a large file that is about as long as lines are.\n";
    let count = EDITED_BYTES / line.len();
    let mut text = line.repeat(count / 2);
    text += "the line number 0 in the middle\n";
    text += &line.repeat(count - count / 2);
    fs::write(&path, text)?;
    let mut row = Row { name: "edit in the middle".to_owned(), ours_ms: Vec::new(), ripgrep_ms: Vec::new() };
    for run in 0..=runs {
        let input = json!({
            "filePath": "large.txt",
            "oldString": format!("line number {run} in"),
            "newString": format!("line number {} in", run + 1),
        });
        let (output, ms) = call("edit", input, cx).await?;
        ensure!(output == "Edit applied successfully.", "{output}");
        if run > 0 {
            row.ours_ms.push(ms);
        }
    }
    Ok(row)
}

fn fill(root: &Path) -> Result<()> {
    for number in 0..FILES {
        let directory = root.join(format!("part{}/dir{}", number / FILES_EACH / 20, number / FILES_EACH));
        fs::create_dir_all(&directory)?;
        let kind = ["rs", "txt", "md", "json", "py"][number % 5];
        let mut text = format!("fn name_{} () {{}}\n", number % 100).repeat(40);
        if number % 1000 == 500 {
            text += &format!("needle {number}\n");
        }
        fs::write(directory.join(format!("file{number}.{kind}")), text)?;
    }
    Ok(())
}
