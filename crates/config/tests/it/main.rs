//! The room at its face, on real files.

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

use codewright_config::{Dirs, Env, Error, LoadInput, Loaded, load};
use tempfile::TempDir;

/// A home and a repository beside it.
struct Place {
    dir: TempDir,
    variables: Vec<(String, String)>,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home").display().to_string();
        let place =
            Self { dir, variables: vec![("HOME".to_owned(), home), ("USER".to_owned(), "ann".to_owned())] };
        fs::create_dir_all(place.path("project/sub/deep")).unwrap();
        fs::create_dir_all(place.path("home")).unwrap();
        place
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

    fn load(&self) -> Result<Loaded, Error> {
        self.load_in("project/sub")
    }

    fn load_in(&self, directory: &str) -> Result<Loaded, Error> {
        let (env, dirs) = (self.env(), self.dirs());
        load(LoadInput {
            directory: &self.path(directory),
            worktree: &self.path("project"),
            env: &env,
            dirs: &dirs,
        })
    }

    /// What a message says, with this place's own directory left out.
    fn told(&self, error: &Error) -> String {
        let root = format!("{}/", self.dir.path().display());
        error.to_string().replace(&root, "")
    }
}

/// A place whose project has this configuration.
fn project(text: &str) -> Place {
    let place = Place::new();
    place.write("project/opencode.json", text);
    place
}

/// The file paths below a place, for short expectations.
fn below<'a>(paths: impl Iterator<Item = &'a Path>, place: &Place) -> Vec<String> {
    paths.map(|path| path.strip_prefix(place.dir.path()).unwrap().display().to_string()).collect()
}
