//! Tests of the crate's public interface with real files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agents;
mod errors;
mod examples;
mod files;
mod layers;
mod markdown;
mod robust;
mod schema;
mod skills;
mod trust;
mod variables;

use std::{
    fs,
    path::{Path, PathBuf},
};

use codewright_config::{Dirs, Env, Error, LoadInput, LoadedConfig, load};
use tempfile::TempDir;

/// A home directory and a repository next to it.
struct Fixture {
    dir: TempDir,
    variables: Vec<(String, String)>,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home").display().to_string();
        let fixture =
            Self { dir, variables: vec![("HOME".to_owned(), home), ("USER".to_owned(), "ann".to_owned())] };
        fs::create_dir_all(fixture.path("project/sub/deep")).unwrap();
        fs::create_dir_all(fixture.path("home")).unwrap();
        fixture
    }

    fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    fn write(&self, below: &str, text: impl AsRef<[u8]>) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.variables.push((name.to_owned(), value.into()));
    }

    fn env(&self) -> Env {
        Env::from_pairs(self.variables.clone())
    }

    fn dirs(&self) -> Dirs {
        Dirs::new(&self.env()).unwrap()
    }

    fn load(&self) -> Result<LoadedConfig, Error> {
        self.load_in("project/sub")
    }

    fn load_in(&self, directory: &str) -> Result<LoadedConfig, Error> {
        let (env, dirs) = (self.env(), self.dirs());
        load(LoadInput {
            directory: &self.path(directory),
            worktree: &self.path("project"),
            env: &env,
            dirs: &dirs,
        })
    }

    /// The text of an error without the fixture's own directory.
    fn message(&self, error: &Error) -> String {
        let root = format!("{}/", self.dir.path().display());
        error.to_string().replace(&root, "")
    }
}

/// A fixture whose project has this configuration.
fn project(text: &str) -> Fixture {
    let fixture = Fixture::new();
    fixture.write("project/opencode.json", text);
    fixture
}

/// File paths relative to a fixture.
fn below<'a>(paths: impl Iterator<Item = &'a Path>, fixture: &Fixture) -> Vec<String> {
    paths.map(|path| path.strip_prefix(fixture.dir.path()).unwrap().display().to_string()).collect()
}
