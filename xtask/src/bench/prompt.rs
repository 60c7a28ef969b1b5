//! Measures the assembly of the system prompt in a large repository, as reported by the program.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Plan;
use super::spread::Spread;

/// The name on the command line.
pub(super) const NAME: &str = "prompt";
/// The number of folders of the repository.
const FOLDERS: usize = 2_000;
/// The number of files in each folder.
const FILES: usize = 100;
/// The limit after the first time.
const LIMIT_MS: f64 = 5.0;

/// Creates the repository, runs the program and returns the line of the report.
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
    let verdict = if spread.median <= LIMIT_MS { "ok" } else { "MISSED" };
    Ok(format!(
        "\nsystem prompt, assembled again in a repository of {} files: {:.2} ms (limit {LIMIT_MS} ms) {verdict}\n",
        FOLDERS * FILES,
        spread.median,
    ))
}
