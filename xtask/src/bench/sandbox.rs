//! The directory of a measured program: a small git project and a home.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use tempfile::TempDir;

use crate::model::REPLACED;

/// Variables that prevent requests for updates and downloads.
const OFFLINE: [&str; 5] = [
    "OPENCODE_DISABLE_AUTOUPDATE",
    "OPENCODE_DISABLE_MODELS_FETCH",
    "OPENCODE_DISABLE_LSP_DOWNLOAD",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS",
    "OPENCODE_DISABLE_SHARE",
];
/// The number of files of the project besides the edited one.
const FILES: usize = 20;

/// A temporary project and home, deleted when dropped.
pub(super) struct Sandbox {
    root: TempDir,
}

impl Sandbox {
    /// Creates a project and a home for a program whose model listens at `url`.
    pub(super) fn new(url: &str) -> Result<Self> {
        let sandbox = Self { root: tempfile::Builder::new().prefix("codewright-bench-").tempdir()? };
        let project = sandbox.project();
        fs::create_dir_all(project.join("src"))?;
        for (_, directory) in sandbox.homes() {
            fs::create_dir_all(directory)?;
        }
        for n in 0..FILES {
            fs::write(project.join(format!("src/part{n}.txt")), format!("part {n}\n"))?;
        }
        sandbox.reset()?;
        let limit = json!({"context": 200_000, "output": 32_000});
        let config = json!({
            "$schema": "https://opencode.ai/config.json",
            "model": "mock/plain-model",
            "provider": {"mock": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "Mock",
                "options": {"baseURL": format!("{url}/v1"), "apiKey": "sk-mock"},
                "models": {"plain-model": {"name": "plain-model", "limit": limit}},
            }},
        });
        fs::write(project.join("opencode.json"), serde_json::to_vec_pretty(&config)?)?;
        for args in [
            &["init", "--quiet", "--initial-branch=main"][..],
            &["add", "--all"],
            &["-c", "user.name=Bench", "-c", "user.email=bench@localhost", "commit", "-qm", "First"],
        ] {
            let output = Command::new("git").args(args).current_dir(&project).output();
            let output = output.context("cannot start git")?;
            if !output.status.success() {
                bail!("`git {}` failed: {}", args.join(" "), String::from_utf8_lossy(&output.stderr));
            }
        }
        Ok(sandbox)
    }

    /// Returns the directory of the project.
    pub(super) fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    /// Returns the path of the edited file.
    pub(super) fn edited(&self) -> PathBuf {
        self.project().join("greeting.txt")
    }

    /// Returns the path of a file for output.
    pub(super) fn output(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Returns the directory of data, in which each program has its own directory.
    pub(super) fn data(&self) -> PathBuf {
        self.root.path().join("home/.local/share")
    }

    /// Undoes an edit.
    pub(super) fn reset(&self) -> Result<()> {
        Ok(fs::write(self.edited(), format!("first line\n{}\nlast line\n", REPLACED.0))?)
    }

    /// Returns all variables of the program.
    pub(super) fn environment(&self) -> Vec<(&'static str, OsString)> {
        let homes = self.homes().into_iter().map(|(name, path)| (name, path.into_os_string()));
        let offline = OFFLINE.into_iter().map(|name| (name, "1".into()));
        // The project's configuration names the scripted model, so the project must be trusted.
        let trust = ("CODEWRIGHT_TRUST", "all".into());
        // On machines that cannot enforce the sandbox, every command would need a reply.
        let outer = ("CODEWRIGHT_SANDBOX_OUTER", "1".into());
        homes.chain(offline).chain([("PATH", search_path()), trust, outer]).collect()
    }

    fn homes(&self) -> [(&'static str, PathBuf); 7] {
        let home: &Path = &self.root.path().join("home");
        [
            ("HOME", home.to_owned()),
            ("XDG_CONFIG_HOME", home.join(".config")),
            ("XDG_DATA_HOME", home.join(".local/share")),
            ("XDG_STATE_HOME", home.join(".local/state")),
            ("XDG_CACHE_HOME", home.join(".cache")),
            ("XDG_RUNTIME_DIR", home.join(".run")),
            ("TMPDIR", home.join(".tmp")),
        ]
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a measured program finds git in the search path of the benchmark"
)]
fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())
}
