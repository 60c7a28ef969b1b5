//! What it takes to put a system text together in a large repository, told by the release program itself.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Plan;
use super::spread::Spread;

/// What it is called on the command line.
pub(super) const NAME: &str = "prompt";
/// Folders of the repository, and files in each.
const FOLDERS: usize = 2_000;
const FILES: usize = 100;
/// The most that it may take after the first time, in milliseconds.
const WANTED_MS: f64 = 5.0;

/// Makes the repository, has the program report so many times, and gives back the line to be shown.
pub(super) fn measure(plan: &Plan) -> Result<String> {
    let program = plan.program()?;
    let root = tempfile::tempdir()?;
    let (project, home) = (root.path().join("project"), root.path().join("home"));
    for folder in 0..FOLDERS {
        let folder = project.join(format!("src/{:02}/{folder:04}", folder % 40));
        std::fs::create_dir_all(&folder)?;
        for file in 0..FILES {
            std::fs::write(folder.join(format!("{file:03}.rs")), "")?;
        }
    }
    std::fs::create_dir_all(project.join(".git"))?;
    std::fs::create_dir_all(&home)?;
    std::fs::write(project.join("AGENTS.md"), "Use tabs.\n".repeat(100))?;
    let config = json!({
        "model": "x/y",
        "provider": {"x": {"npm": "@ai-sdk/openai-compatible", "models": {"y": {}}, "options": {"baseURL": "http://127.0.0.1:9/v1"}}},
        "instructions": ["**/*.mdc", "src/*/README.md"],
    });
    std::fs::write(project.join("opencode.json"), config.to_string())?;
    let mut values = Vec::new();
    for _ in 0..plan.runs {
        let mut command = Command::new(&program);
        command.args(["debug", "prompt", "--json"]).current_dir(&project).env_clear();
        command.env("CODEWRIGHT_TRUST", "all").env("HOME", &home).env("PATH", "/usr/bin:/bin");
        command.env("OPENCODE_DISABLE_MODELS_FETCH", "1").env("OPENCODE_DISABLE_LOCAL_SERVERS", "1");
        let output = command.output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        let report: Value = serde_json::from_slice(&output.stdout)?;
        values.push(report["assembly_us"].as_f64().context("no time")? / 1e3);
    }
    let spread = Spread::of(values).context("no runs")?;
    let judged = if spread.median <= WANTED_MS { "ok" } else { "MISSED" };
    Ok(format!(
        "\nsystem text, put together again in a repository of {} files: {:.2} ms (wanted at most {WANTED_MS} ms) {judged}\n",
        FOLDERS * FILES,
        spread.median,
    ))
}
