//! Directories outside the worktree that a command line names.
//!
//! Only what can be read off the line is found: a path a program makes up, or
//! one held in a variable, is not. Leave for the command itself covers those.

use std::path::{Path, PathBuf};

use codewright_workspace::{Place, Workspace, physical};

use super::parse::{Line, Simple};
use crate::ToolError;

/// Commands all of whose arguments are files, whether they exist or not.
const FILE_COMMANDS: &[&str] = &[
    "cat", "cd", "chgrp", "chmod", "chown", "cp", "head", "install", "less", "ln", "ls", "mkdir", "more",
    "mv", "pushd", "rm", "rmdir", "source", "stat", "tail", "tee", "touch", "truncate", "unlink", ".",
];
/// Commands whose first argument is a pattern or a script.
const PATTERN_COMMANDS: &[&str] = &["awk", "egrep", "fgrep", "grep", "jq", "perl", "rg", "sed"];
/// Commands that open none of their arguments.
const TEXT_COMMANDS: &[&str] =
    &["cut", "echo", "export", "expr", "kill", "printf", "seq", "sleep", "tr", "unset"];
/// Places every program may use.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/tty",
    "/dev/urandom",
    "/dev/random",
];
/// Arguments that are looked at.
const MAX_PATHS: usize = 1000;
/// Directories a line may change to; later ones are judged from these.
const MAX_BASES: usize = 16;

/// The directories outside that need leave, each once, in the order they are named.
pub(super) fn outside(workspace: &Workspace, workdir: &Place, line: &Line) -> Result<Vec<String>, ToolError> {
    let mut search = Search { workspace, bases: vec![workdir.real.clone()], found: Vec::new() };
    if !workdir.inside {
        search.add(&workdir.real);
    }
    let mut left = MAX_PATHS;
    for simple in &line.commands {
        for path in named(simple).take(left).collect::<Vec<_>>() {
            left -= 1;
            search.visit(path, simple.name().is_some_and(|name| FILE_COMMANDS.contains(&name)))?;
        }
        if matches!(simple.name(), Some("cd" | "pushd")) {
            search.enter(simple)?;
        }
    }
    for path in &line.redirected {
        search.visit(path, true)?;
    }
    Ok(search.found)
}

/// The arguments of a command that may be paths.
fn named(simple: &Simple) -> impl Iterator<Item = &str> {
    let name = simple.name().unwrap_or_default();
    let arguments =
        if TEXT_COMMANDS.contains(&name) { &[] } else { simple.words.get(1..).unwrap_or_default() };
    let pattern = PATTERN_COMMANDS.contains(&name);
    let (flags, plain): (Vec<&str>, Vec<&str>) =
        arguments.iter().flatten().map(String::as_str).partition(|word| word.starts_with('-'));
    // `--file=/etc/hosts` names a file too.
    let values = flags.into_iter().filter_map(|flag| flag.split_once('=').map(|(_, value)| value));
    // A pattern seldom exists as a path, but for the one that is nothing but a slash.
    let skip = usize::from(pattern && plain.first() == Some(&"/"));
    plain.into_iter().skip(skip).chain(values.collect::<Vec<_>>())
}

struct Search<'a> {
    workspace: &'a Workspace,
    /// Where a relative path may start: a line may change the directory.
    bases: Vec<PathBuf>,
    found: Vec<String>,
}

impl Search<'_> {
    /// Judges a path; one that does not exist counts only if it is surely one.
    fn visit(&mut self, path: &str, surely: bool) -> Result<(), ToolError> {
        if let Some(choices) = choices(path) {
            return choices.iter().try_for_each(|choice| self.visit(choice, surely));
        }
        let path = without_glob(path);
        if path.is_empty() || DEVICES.contains(&path) || path.starts_with("/dev/fd/") {
            return Ok(());
        }
        for real in self.places(path)? {
            if !self.workspace.contains(&real) && (surely || real.exists()) {
                self.add(&real);
            }
        }
        Ok(())
    }

    /// Where a path may lead: as the kernel reads `..` after a link, and as shells do.
    fn places(&self, path: &str) -> Result<Vec<PathBuf>, ToolError> {
        let mut places = Vec::new();
        for base in &self.bases {
            let kernel = physical(&base.join(path))?;
            let shell = self.workspace.resolve_from(base, Path::new(path))?.real;
            for real in [kernel, shell] {
                if !places.contains(&real) {
                    places.push(real);
                }
            }
        }
        Ok(places)
    }

    fn enter(&mut self, simple: &Simple) -> Result<(), ToolError> {
        let target = simple.words.iter().skip(1).flatten().find(|word| !word.starts_with('-'));
        let Some(target) = target else { return Ok(()) };
        for real in self.places(target)? {
            if self.bases.len() < MAX_BASES && !self.bases.contains(&real) {
                self.bases.push(real);
            }
        }
        Ok(())
    }

    fn add(&mut self, real: &Path) {
        let directory = if real.is_dir() { real } else { real.parent().unwrap_or(real) };
        let directory = directory.to_string_lossy().into_owned();
        if !self.found.contains(&directory) {
            self.found.push(directory);
        }
    }
}

/// A path up to the directory above its first wildcard.
fn without_glob(path: &str) -> &str {
    match path.find(['*', '?', '[']) {
        Some(wild) => path[..wild].rfind('/').map_or("", |slash| &path[..=slash]),
        None => path,
    }
}

/// The words `a{b,c}d` stands for, once its first braces are taken apart.
fn choices(word: &str) -> Option<Vec<String>> {
    let (before, rest) = word.split_once('{')?;
    let (inside, after) = rest.split_once('}')?;
    // Taken apart again from here on, a word of many braces would double with each.
    let after = after.replace(['{', '}'], "");
    Some(
        inside
            .split(',')
            .take(MAX_PATHS)
            .map(|choice| format!("{}{after}", format!("{before}{choice}").replace('{', "")))
            .collect(),
    )
}
