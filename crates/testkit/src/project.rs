//! A temporary directory with its own home.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::run::Run;
use crate::stores::Store;

/// The deadline of git, long for a small directory on a loaded machine.
const GIT_DEADLINE: Duration = Duration::from_secs(30);
/// The date of the first commit, so that its hash is the same in every run.
const COMMIT_DATE: &str = "2024-01-01T00:00:00Z";

/// A temporary directory with its own home, deleted when dropped.
#[derive(Debug)]
pub struct Project {
    /// Deletes the directories when dropped.
    _root: TempDir,
    directory: PathBuf,
    home: PathBuf,
    /// `None` is the default store. Created for the first program.
    store: OnceLock<Option<Store>>,
}

impl Project {
    /// Creates a directory that is not a repository.
    pub fn plain() -> Result<Self> {
        Self::plain_in(&std::env::temp_dir())
    }

    /// Creates a directory that is not a repository below another directory. A sandbox replaces `/tmp`.
    pub fn plain_in(parent: &Path) -> Result<Self> {
        let root = tempfile::Builder::new().prefix("codewright-test-").tempdir_in(parent)?;
        // The program reports resolved paths, and the path of a temporary directory may contain a link.
        let path = root.path().canonicalize()?;
        let (directory, home) = (path.join("project"), path.join("home"));
        let project = Self { _root: root, directory, home, store: OnceLock::new() };
        fs::create_dir(&project.directory)?;
        for (_, directory) in project.homes() {
            fs::create_dir_all(directory)?;
        }
        Ok(project)
    }

    /// Creates a git repository with one commit on `main`, of a file `README.md`.
    pub fn git() -> Result<Self> {
        Self::plain()?.with_git()
    }

    /// Makes the directory a git repository with one commit on `main`, of a file `README.md`.
    pub fn with_git(self) -> Result<Self> {
        let project = self;
        project.write("README.md", "# Project\n")?;
        project.run_git(&["init", "--quiet", "--initial-branch=main"])?;
        project.run_git(&["config", "user.name", "Tester"])?;
        project.run_git(&["config", "user.email", "tester@localhost"])?;
        project.run_git(&["add", "--all"])?;
        project.run_git(&["commit", "--quiet", "--message=First"])?;
        Ok(project)
    }

    /// Returns the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the home directory of the program.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Returns a path in the directory.
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.directory.join(relative)
    }

    /// Writes a file, creates the directories above it, and returns its path.
    pub fn write(&self, relative: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.path(relative);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot create `{}`", parent.display()))?;
        }
        fs::write(&path, content).with_context(|| format!("cannot write `{}`", path.display()))?;
        Ok(path)
    }

    /// Reads a file.
    pub fn read(&self, relative: impl AsRef<Path>) -> Result<String> {
        let path = self.path(relative);
        fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))
    }

    /// Writes the user's `opencode.json` with the scripted server as its provider.
    pub fn configure(&self, url: &str) -> Result<()> {
        self.write_config(&Self::config(url))
    }

    /// Writes a value as the user's `opencode.json`, which applies in every directory.
    pub fn write_config(&self, config: &Value) -> Result<()> {
        let folder = self.home.join(".config/opencode");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("opencode.json"), serde_json::to_vec_pretty(config)?)?;
        Ok(())
    }

    /// Returns the configuration of [`Project::configure`], for tests that add to it.
    pub fn config(url: &str) -> Value {
        let limit = json!({"context": 200_000, "output": 32_000});
        let provider = |npm: &str, model: &str| {
            json!({
                "npm": npm,
                "name": "Mock",
                "options": {"baseURL": format!("{url}/v1"), "apiKey": "sk-mock"},
                "models": {model: {"name": model, "limit": limit}},
            })
        };
        json!({
            "model": "mock/plain-model",
            "provider": {
                "mock": provider("@ai-sdk/openai-compatible", "plain-model"),
                "mockanth": provider("@ai-sdk/anthropic", "claude-mock"),
            },
        })
    }

    /// Returns all variables of a program.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        let homes = self.homes().into_iter().map(|(name, path)| (name, path.into_os_string()));
        // Most tests configure the program through the project, which must be trusted.
        let trust = ("CODEWRIGHT_TRUST", "all".into());
        // On machines that cannot enforce the sandbox, every command would need a reply.
        let outer = ("CODEWRIGHT_SANDBOX_OUTER", "1".into());
        let store = self.store.get_or_init(Store::create).as_ref();
        let store = store.map(|store| ("CODEWRIGHT_STORE", OsString::from(&store.url)));
        homes.chain([("PATH", search_path()), trust, outer]).chain(store).collect()
    }

    /// Runs git in the directory and returns its output.
    pub fn run_git(&self, args: &[&str]) -> Result<String> {
        let run = Run::new("git", self).args(args).deadline(GIT_DEADLINE);
        let run = run.env("GIT_CONFIG_NOSYSTEM", "1");
        let run = run.env("GIT_AUTHOR_DATE", COMMIT_DATE).env("GIT_COMMITTER_DATE", COMMIT_DATE);
        Ok(run.finish()?.success()?.stdout)
    }

    fn homes(&self) -> [(&'static str, PathBuf); 6] {
        let under = |name: &str| self.home.join(name);
        [
            ("HOME", self.home.clone()),
            ("XDG_CONFIG_HOME", under(".config")),
            ("XDG_DATA_HOME", under(".local/share")),
            ("XDG_STATE_HOME", under(".local/state")),
            ("XDG_CACHE_HOME", under(".cache")),
            ("XDG_RUNTIME_DIR", under(".run")),
        ]
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a program under test finds git and the shell in the search path of the test"
)]
fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())
}
