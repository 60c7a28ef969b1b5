//! Where a measured program works: a small git project and a home of its own.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use tempfile::TempDir;

use crate::model::REPLACED;

/// Keep a program from asking the network for news; one that does not know them ignores them.
const QUIET: [&str; 5] = [
    "OPENCODE_DISABLE_AUTOUPDATE",
    "OPENCODE_DISABLE_MODELS_FETCH",
    "OPENCODE_DISABLE_LSP_DOWNLOAD",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS",
    "OPENCODE_DISABLE_SHARE",
];
/// Files of the project beside the one that is edited.
const FILES: usize = 20;

/// A temporary project and home; both go when it is dropped.
pub(super) struct Sandbox {
    root: TempDir,
}

impl Sandbox {
    /// Prepares everything for a program whose model listens at `url`.
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

    /// The project's directory.
    pub(super) fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    /// The file that is edited.
    pub(super) fn edited(&self) -> PathBuf {
        self.project().join("greeting.txt")
    }

    /// A file for the program's output.
    pub(super) fn output(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Where the program's data lies, in a directory of its own name.
    pub(super) fn data(&self) -> PathBuf {
        self.root.path().join("home/.local/share")
    }

    /// Undoes an edit.
    pub(super) fn reset(&self) -> Result<()> {
        Ok(fs::write(self.edited(), format!("first line\n{}\nlast line\n", REPLACED.0))?)
    }

    /// The variables the program is given, and no others.
    pub(super) fn environment(&self) -> Vec<(&'static str, OsString)> {
        let homes = self.homes().into_iter().map(|(name, path)| (name, path.into_os_string()));
        let quiet = QUIET.into_iter().map(|name| (name, "1".into()));
        // The directory's configuration names the scripted model.
        homes.chain(quiet).chain([("PATH", search_path()), ("CODEWRIGHT_TRUST", "all".into())]).collect()
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

#[expect(clippy::disallowed_methods, reason = "a measured program finds git where the measurer does")]
fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())
}
