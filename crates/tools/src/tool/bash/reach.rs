//! Files that a command line names: those it reads and writes, and the directories outside the worktree.
//!
//! Only what can be read off the line is found: a path that a program makes up is not.
//! Leave for the command itself covers those.

use std::path::{Path, PathBuf};

use codewright_workspace::{Place, Workspace, physical};

use super::beneath::Beneath;
use super::touch::{Deed, touched};
use super::word::{Word, braces};
use crate::ToolError;
use crate::ask::{Implied, UNKNOWN, file_patterns};

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
/// Files a line reads and writes that are judged.
const MAX_FILES: usize = 512;
/// Names that one wildcard may stand for, and entries of a directory that are looked at for it.
const MAX_MATCHES: usize = 256;
/// Entries of a directory that a wildcard is compared with.
const MAX_ENTRIES: usize = 10_000;
/// Directories a line may change to; later ones are judged from these.
const MAX_BASES: usize = 16;

/// What a line reaches.
#[derive(Debug, Default)]
pub(super) struct Reached {
    /// The directories outside that need leave, each once, in the order they are named.
    pub(super) outside: Vec<String>,
    /// The files that are read and written.
    pub(super) implied: Vec<Implied>,
}

/// Finds what a line reaches.
pub(super) fn reached(workspace: &Workspace, workdir: &Place, line: &Beneath) -> Result<Reached, ToolError> {
    let mut search =
        Search { workspace, bases: vec![workdir.real.clone()], found: Reached::default(), files: 0 };
    if !workdir.inside {
        search.add(&workdir.real);
    }
    let mut left = MAX_PATHS;
    for words in &line.commands {
        let name = name_of(words);
        for path in named(name, words).into_iter().take(left).collect::<Vec<_>>() {
            left -= 1;
            search.visit(path, FILE_COMMANDS.contains(&name))?;
        }
        if let Some(target) = entered(name, words) {
            search.enter(target)?;
        }
        for (deed, path) in touched(name, words) {
            search.touch(deed, &path)?;
        }
    }
    for redirect in &line.redirects {
        for path in &redirect.paths {
            search.visit(path, true)?;
            search.touch(if redirect.writes { Deed::Writes } else { Deed::Reads }, path)?;
        }
    }
    Ok(search.found)
}

/// A command's name without its directory.
fn name_of(words: &[Word]) -> &str {
    let name = words.first().and_then(|word| word.values.first());
    name.and_then(|name| name.rsplit('/').next()).unwrap_or_default()
}

/// The arguments of a command that may be paths.
fn named<'a>(name: &str, words: &'a [Word]) -> Vec<&'a str> {
    let arguments = if TEXT_COMMANDS.contains(&name) { &[] } else { words.get(1..).unwrap_or_default() };
    let pattern = PATTERN_COMMANDS.contains(&name);
    let (flags, plain): (Vec<&str>, Vec<&str>) = arguments
        .iter()
        .flat_map(|word| &word.values)
        .map(String::as_str)
        .partition(|word| word.starts_with('-'));
    // `--file=/etc/hosts` names a file too.
    let values = flags.into_iter().filter_map(|flag| flag.split_once('=').map(|(_, value)| value));
    // A pattern seldom exists as a path, but for the one that is nothing but a slash.
    let skip = usize::from(pattern && plain.first() == Some(&"/"));
    plain.into_iter().skip(skip).chain(values.collect::<Vec<_>>()).collect()
}

/// The directory that a command changes to, for itself or for those after it.
fn entered<'a>(name: &str, words: &'a [Word]) -> Option<&'a str> {
    if matches!(name, "cd" | "pushd") {
        let mut values = words.iter().skip(1).flat_map(|word| &word.values);
        return values.find(|word| !word.starts_with('-')).map(String::as_str);
    }
    let at = words.iter().position(|word| matches!(word.text(), "-C" | "--directory" | "--chdir"))?;
    words.get(at + 1)?.values.first().map(String::as_str)
}

struct Search<'a> {
    workspace: &'a Workspace,
    /// Where a relative path may start: a line may change the directory.
    bases: Vec<PathBuf>,
    found: Reached,
    files: usize,
}

impl Search<'_> {
    /// Judges a path; one that does not exist counts only if it is surely one.
    fn visit(&mut self, path: &str, surely: bool) -> Result<(), ToolError> {
        let choices = braces(path);
        if !choices.is_empty() {
            return choices.iter().try_for_each(|choice| self.visit(choice, surely));
        }
        let path = without_glob(path);
        if path.is_empty() || is_device(path) {
            return Ok(());
        }
        for real in self.places(path)? {
            if !self.workspace.contains(&real) && (surely || real.exists()) {
                self.add(&real);
            }
        }
        Ok(())
    }

    /// Notes what happens to a file.
    fn touch(&mut self, deed: Deed, path: &str) -> Result<(), ToolError> {
        if path.is_empty() || is_device(path) || path.contains('\0') {
            return Ok(());
        }
        let mut paths = vec![path.to_owned()];
        if path.contains(['*', '?', '[']) {
            paths.extend(self.bases.iter().flat_map(|base| expanded(base, path)).take(MAX_MATCHES));
        }
        for path in paths {
            for base in self.bases.clone() {
                self.touch_at(deed, &base, &path)?;
            }
        }
        Ok(())
    }

    fn touch_at(&mut self, deed: Deed, base: &Path, path: &str) -> Result<(), ToolError> {
        let place = self.workspace.resolve_from(base, Path::new(path))?;
        let mut patterns = file_patterns(self.workspace, &place);
        let kernel = self.workspace.real_title(&physical(&base.join(path))?);
        if !patterns.contains(&kernel) {
            patterns.push(kernel);
        }
        let permission = match deed {
            Deed::MayRead if !place.real.is_file() => return Ok(()),
            Deed::Reads | Deed::Puts if place.real.is_dir() => return Ok(()),
            Deed::MayRead | Deed::Reads => "read",
            Deed::Writes | Deed::Puts | Deed::Removes => "edit",
        };
        if deed == Deed::Removes && place.real.is_dir() {
            // What happens to a directory happens to what is in it.
            let inside: Vec<String> = patterns.iter().map(|pattern| format!("{pattern}/{UNKNOWN}")).collect();
            patterns.extend(inside);
        }
        for pattern in patterns.iter().filter(|pattern| !pattern.is_empty()) {
            let always = (!pattern.contains(UNKNOWN)).then(|| pattern.clone());
            let implied = Implied { always, ..Implied::new(permission, pattern) };
            if self.files < MAX_FILES && !self.found.implied.contains(&implied) {
                self.files += 1;
                self.found.implied.push(implied);
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

    fn enter(&mut self, target: &str) -> Result<(), ToolError> {
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
        if !self.found.outside.contains(&directory) {
            self.found.outside.push(directory);
        }
    }
}

fn is_device(path: &str) -> bool {
    DEVICES.contains(&path) || path.starts_with("/dev/fd/")
}

/// The paths that a path with wildcards stands for below a directory, as far as they are there.
fn expanded(base: &Path, path: &str) -> Vec<String> {
    let mut paths = vec![String::from(if path.starts_with('/') { "/" } else { "" })];
    for component in path.split('/').filter(|component| !component.is_empty()) {
        let mut next = Vec::new();
        for path in &paths {
            if !component.contains(['*', '?', '[']) {
                next.push(format!("{path}{component}/"));
                continue;
            }
            let Ok(entries) = std::fs::read_dir(base.join(path)) else { continue };
            let names =
                entries.take(MAX_ENTRIES).flatten().filter_map(|entry| entry.file_name().into_string().ok());
            let names = names.filter(|name| fits(component, name));
            next.extend(names.take(MAX_MATCHES).map(|name| format!("{path}{name}/")));
        }
        next.truncate(MAX_MATCHES);
        paths = next;
    }
    paths.into_iter().map(|path| path.trim_end_matches('/').to_owned()).collect()
}

/// Whether a name may be meant by a wildcard; of brackets it is only known that they stand for one character.
fn fits(wildcard: &str, name: &str) -> bool {
    if name.starts_with('.') && !wildcard.starts_with('.') {
        return false;
    }
    let mut plain = String::new();
    let mut chars = wildcard.chars();
    while let Some(c) = chars.next() {
        if c == '[' && chars.as_str().get(1..).is_some_and(|rest| rest.contains(']')) {
            plain.push('?');
            chars.next();
            chars.by_ref().find(|c| *c == ']');
        } else {
            plain.push(c);
        }
    }
    glob(&plain.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>())
}

fn glob(pattern: &[char], text: &[char]) -> bool {
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    (p, t) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// A path up to the directory above its first wildcard.
fn without_glob(path: &str) -> &str {
    match path.find(['*', '?', '[']) {
        Some(wild) => path[..wild].rfind('/').map_or("", |slash| &path[..=slash]),
        None => path,
    }
}
