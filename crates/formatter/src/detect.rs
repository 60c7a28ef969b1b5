//! Finds out which formatters a project uses, and where their programs are.
//!
//! Files that decide are read up to a size.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Place;
use crate::table::{self, Known, Used};

/// The size up to which a file of a project is read.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// The configuration files of ruff that need no entry for it.
const RUFF_FILES: &[&str] = &["ruff.toml", ".ruff.toml"];
/// The files with the dependencies of a Python project.
const PYTHON_FILES: &[&str] = &["requirements.txt", "pyproject.toml", "Pipfile"];

/// Returns a configured command with the program's path.
pub(crate) fn own(place: &Place, command: &[String]) -> Option<Vec<String>> {
    let (program, args) = command.split_first()?;
    let path = place.search.named(program)?;
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

/// The code of the project that a command would run: a file or directory with which one of its programs does that.
pub(crate) fn code_of_project(place: &Place, command: &[String]) -> Option<&'static str> {
    let all = command.iter().flat_map(|word| table::code_of(word));
    all.copied().find(|name| above(place, name).next().is_some())
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
    place.search.of_project(&place.search.directory, directory, program)
}

/// An installed program.
fn installed(place: &Place, program: &str) -> Option<PathBuf> {
    place.search.installed(program)
}

/// The files or directories of a name in the directory and above it, up to the root of the project.
fn above<'a>(place: &'a Place, name: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
    place.search.above(&place.search.directory, name)
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
