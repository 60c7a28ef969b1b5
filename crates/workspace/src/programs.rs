//! Finds the programs that a project uses: installed ones, and those in directories of the project.
//!
//! A program of the project itself (`node_modules/.bin`, `vendor/bin`, a path in the worktree) is found only if the user
//! trusts the project.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The number of directories that are searched upwards.
const MAX_DEPTH: usize = 64;
/// The number of directories of `PATH` that are searched.
const MAX_DIRECTORIES: usize = 256;

/// The programs that may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Programs {
    /// All, also those of the project.
    All,
    /// Those that are not in the worktree.
    Installed,
    /// None.
    None,
}

/// Where programs are searched, and which may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramSearch {
    /// The directory that the programs work in.
    pub directory: PathBuf,
    /// The root of the project, or `/` if there is none.
    pub worktree: PathBuf,
    /// The directories that are searched: the value of `PATH`.
    pub path: String,
    /// The programs that may run.
    pub programs: Programs,
}

impl ProgramSearch {
    /// Returns the program of a configured command: a name, or a path relative to the directory.
    #[must_use]
    pub fn named(&self, program: &str) -> Option<PathBuf> {
        if program.contains('/') {
            self.usable(&self.directory.join(program))
        } else {
            self.installed(program)
        }
    }

    /// Returns an installed program.
    #[must_use]
    pub fn installed(&self, program: &str) -> Option<PathBuf> {
        let directories = std::env::split_paths(&self.path).filter(|directory| directory.is_absolute());
        directories.take(MAX_DIRECTORIES).find_map(|directory| self.usable(&directory.join(program)))
    }

    /// Returns a program in a directory of the project, such as `node_modules/.bin`, at `start` or above it.
    #[must_use]
    pub fn of_project(&self, start: &Path, directory: &str, program: &str) -> Option<PathBuf> {
        self.above(start, directory).find_map(|directory| self.usable(&directory.join(program)))
    }

    /// Returns the files or directories of a name at `start` and above it, up to the root of the project.
    pub fn above<'a>(&'a self, start: &'a Path, name: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
        let inside = start.ancestors().take_while(|directory| directory.starts_with(self.root()));
        inside.take(MAX_DEPTH).map(move |directory| directory.join(name)).filter(|path| path.exists())
    }

    /// Returns the root of the project.
    #[must_use]
    pub fn root(&self) -> &Path {
        if self.worktree.parent().is_none() { &self.directory } else { &self.worktree }
    }

    /// Returns the path if it is a program that may run.
    fn usable(&self, path: &Path) -> Option<PathBuf> {
        let metadata = path.metadata().ok()?;
        if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
            return None;
        }
        let is_allowed = match self.programs {
            Programs::All => true,
            Programs::None => false,
            Programs::Installed => {
                // A link from outside into the worktree is the project's program, and so is a link to the outside.
                let is_inside = |path: &Path| path.starts_with(self.root());
                !is_inside(path) && !path.canonicalize().is_ok_and(|real| is_inside(&real))
            }
        };
        is_allowed.then(|| path.to_owned())
    }
}
