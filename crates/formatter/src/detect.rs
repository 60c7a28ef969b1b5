//! Finds out which formatters a project uses, and where their programs are.
//!
//! A program of the project itself (`node_modules/.bin`, `vendor/bin`, a path in the worktree) is used only if the user
//! trusts the project. Files that decide are read up to a size.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Place;
use crate::table::{Known, Used};

/// The size up to which a file of a project is read.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// The number of directories that are searched upwards.
const MAX_DEPTH: usize = 64;
/// The configuration files of ruff that need no entry for it.
const RUFF_FILES: &[&str] = &["ruff.toml", ".ruff.toml"];
/// The files with the dependencies of a Python project.
const PYTHON_FILES: &[&str] = &["requirements.txt", "pyproject.toml", "Pipfile"];

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

/// Returns a configured command with the program's path.
pub(crate) fn own(place: &Place, command: &[String]) -> Option<Vec<String>> {
    let (program, args) = command.split_first()?;
    let path = if program.contains('/') {
        usable(place, &place.directory.join(program))?
    } else {
        installed(place, program)?
    };
    Some(with_program(&path, args.iter().map(String::as_str)))
}

/// Returns the command of a known formatter if the project uses it.
pub(crate) fn known(place: &Place, known: &Known, is_enabled: impl Fn(&str) -> bool) -> Option<Vec<String>> {
    let (program, args) = known.command.split_first()?;
    let path = match &known.used {
        Used::Installed | Used::Answers { .. } => installed(place, program),
        Used::File(names) => names
            .iter()
            .any(|name| above(place, name).next().is_some())
            .then(|| of_project(place, "node_modules/.bin", program).or_else(|| installed(place, program)))?,
        Used::Oxfmt if !place.has_oxfmt => None,
        Used::Oxfmt => package(place, "oxfmt", program),
        Used::Package(name) => package(place, name, program),
        Used::Composer(name) => names(place, "composer.json", ["require", "require-dev"], name)
            .then(|| of_project(place, "vendor/bin", program))?,
        Used::Ruff => uses_ruff(place).then(|| installed(place, program))?,
        Used::Uv => (!is_enabled("ruff")).then(|| installed(place, program))?,
    }?;
    Some(with_program(&path, args.iter().copied()))
}

/// The arguments that show whether an installed program can format, and the words in the first line of the answer.
pub(crate) fn probe(known: &Known) -> Option<(&'static [&'static str], &'static [&'static str])> {
    match known.used {
        Used::Answers { args, words } => Some((args, words)),
        // Older versions have no such command, which their exit code shows.
        Used::Uv => Some((&["format", "--help"], &[])),
        _ => None,
    }
}

fn with_program<'a>(path: &Path, args: impl Iterator<Item = &'a str>) -> Vec<String> {
    std::iter::once(path.to_string_lossy().into_owned()).chain(args.map(str::to_owned)).collect()
}

/// The program of a package that the project depends on.
fn package(place: &Place, name: &str, program: &str) -> Option<PathBuf> {
    names(place, "package.json", ["dependencies", "devDependencies"], name)
        .then(|| of_project(place, "node_modules/.bin", program).or_else(|| installed(place, program)))?
}

/// A program in a directory of the project.
fn of_project(place: &Place, directory: &str, program: &str) -> Option<PathBuf> {
    above(place, directory).find_map(|directory| usable(place, &directory.join(program)))
}

/// An installed program.
fn installed(place: &Place, program: &str) -> Option<PathBuf> {
    let directories = std::env::split_paths(&place.path).filter(|directory| directory.is_absolute());
    directories.take(MAX_DEPTH * 4).find_map(|directory| usable(place, &directory.join(program)))
}

/// The path if it is a program that may run.
fn usable(place: &Place, path: &Path) -> Option<PathBuf> {
    let metadata = path.metadata().ok()?;
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        return None;
    }
    let is_allowed = match place.programs {
        Programs::All => true,
        Programs::None => false,
        Programs::Installed => {
            // A link from outside into the worktree is the project's program, and so is a link to the outside.
            let is_inside = |path: &Path| path.starts_with(root(place));
            !is_inside(path) && !path.canonicalize().is_ok_and(|real| is_inside(&real))
        }
    };
    is_allowed.then(|| path.to_owned())
}

/// The root of the project.
fn root(place: &Place) -> &Path {
    if place.worktree.parent().is_none() { &place.directory } else { &place.worktree }
}

/// The files or directories of a name in the directory and above it, up to the root of the project.
fn above<'a>(place: &'a Place, name: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
    let inside = place.directory.ancestors().take_while(|directory| directory.starts_with(root(place)));
    inside.take(MAX_DEPTH).map(move |directory| directory.join(name)).filter(|path| path.exists())
}

/// Whether a manifest names a package in one of these tables.
fn names(place: &Place, manifest: &str, tables: [&str; 2], package: &str) -> bool {
    above(place, manifest).any(|path| {
        let manifest =
            read(&path).and_then(|text| serde_json::from_str::<Value>(&text).ok()).unwrap_or_default();
        tables.iter().any(|table| manifest[table].get(package).is_some())
    })
}

fn uses_ruff(place: &Place) -> bool {
    let contains = |name: &str, word: &str| {
        above(place, name).any(|path| read(&path).is_some_and(|text| text.contains(word)))
    };
    RUFF_FILES.iter().any(|name| above(place, name).next().is_some())
        || contains("pyproject.toml", "[tool.ruff")
        || PYTHON_FILES.iter().any(|name| contains(name, "ruff"))
}

/// The beginning of a regular file.
fn read(path: &Path) -> Option<String> {
    // Opening a pipe could block forever.
    path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
