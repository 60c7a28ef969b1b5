//! Names that a command must not create or replace.
//!
//! A mount protects only what exists. A name that is missing when a command starts is checked while the
//! command runs and after its end: what appeared is renamed, so that it has no effect and nothing is lost. A
//! link cannot be protected by a mount either; it is restored if it was replaced.
//!
//! The command chooses what the checks find, and they run outside of the sandbox. So they follow no link, and the
//! last check, when nothing runs any more, has to succeed whatever the command left.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{canonicalize, read_link, symlink_metadata};
use std::io::{Error as IoError, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::access::Directories;
use crate::folder::{Folder, Reached, random_word};

/// The largest number of entries of a directory that are compared while the command runs. Beyond it the command is
/// ended.
const MAX_ENTRIES: usize = if cfg!(test) { 200 } else { 100_000 };
/// The largest number of entries after the end of the command. Beyond it only exact names are found.
const MAX_LAST_ENTRIES: usize = 5_000_000;
/// The largest number of renamed entries with the same name in a directory before names are random.
const MAX_RENAMED: usize = 1000;
/// The number of random names that are tried.
const MAX_RANDOM: usize = 16;

/// The names in a directory that match one of several patterns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Guarded {
    /// The directory, which may be missing.
    pub directory: PathBuf,
    /// Names as [`folded_name`] returns them, which may start or end with `*`.
    pub patterns: Vec<String>,
    /// Names as [`folded_name`] returns them that are not guarded, although a pattern matches. A directory with such names
    /// cannot be exchanged.
    pub except: Vec<String>,
}

impl Guarded {
    /// The pattern that matches every name.
    pub const EVERYTHING: &'static str = "*";

    /// The paths that exist.
    ///
    /// # Errors
    ///
    /// Fails if the directory exists and cannot be read, or has too many entries.
    pub(crate) fn existing(&self, directories: &mut Directories) -> Result<Vec<PathBuf>, Error> {
        let failed = |source| Error::Path { path: self.directory.clone(), source };
        let directory = match directories.directory(&self.directory) {
            Ok(directory) => directory,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(failed(error)),
        };
        let reached = Folder::open(&directory).map_err(failed)?;
        self.inside(&reached, &self.directory).map_err(failed)
    }

    /// The paths below `directory`, which was reached.
    fn inside(&self, reached: &Reached, directory: &Path) -> Result<Vec<PathBuf>, IoError> {
        match reached {
            Reached::Folder(folder) => {
                let names = self.names(folder, MAX_ENTRIES)?;
                Ok(names.into_iter().map(|name| directory.join(name)).collect())
            }
            Reached::Missing | Reached::Link(_) => Ok(Vec::new()),
        }
    }

    /// The names in the folder that match.
    fn names(&self, folder: &Folder, most: usize) -> Result<Vec<String>, IoError> {
        let mut names = Vec::new();
        for (index, name) in folder.names()?.enumerate() {
            if index == most {
                return Err(IoError::other(format!("it has more than {most} entries")));
            }
            let name = name?;
            if self.matches(&name) {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Whether a name is guarded.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let name = folded_name(name);
        if self.except.contains(&name) {
            return false;
        }
        self.patterns.iter().any(|pattern| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
            (Some(_), Some(_)) => name.contains(pattern.trim_matches('*')),
            (Some(end), None) => name.ends_with(end),
            (None, Some(start)) => name.starts_with(start),
            (None, None) => match pattern.split_once('*') {
                Some((start, end)) => {
                    name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
                }
                None => name == *pattern,
            },
        })
    }
}

/// Returns a name in the form in which lenient file systems compare it: without case, invisible characters, and
/// dots and spaces at its end.
#[must_use]
pub fn folded_name(name: &str) -> String {
    if name.is_ascii() {
        let bare = name.trim_end_matches(['.', ' ']);
        return if bare.is_empty() { name } else { bare }.to_ascii_lowercase();
    }
    // Converted to upper case first, because some letters have several lower-case forms.
    let seen = name.chars().filter(|c| !is_ignorable(*c));
    let folded: String = seen.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect();
    let bare = folded.trim_end_matches(['.', ' ']);
    if bare.is_empty() { folded } else { bare.to_owned() }
}

/// Whether some file systems ignore a character when they compare names.
fn is_ignorable(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A directory in which an entry of some names makes a check of a [`Guard`] necessary.
#[derive(Debug, Clone)]
pub struct Place {
    /// The directory, without links in the part that existed at the start.
    pub directory: PathBuf,
    names: Names,
}

#[derive(Debug, Clone)]
enum Names {
    Guarded(Guarded),
    Link(OsString),
}

impl Place {
    /// Whether the removal of such an entry matters, too, because it is a link that is restored.
    #[must_use]
    pub fn is_of_link(&self) -> bool {
        matches!(self.names, Names::Link(_))
    }

    /// Whether a name of an entry is one of them.
    #[must_use]
    pub fn contains(&self, name: &OsStr) -> bool {
        match &self.names {
            Names::Guarded(guarded) => guarded.matches(&name.to_string_lossy()),
            Names::Link(link) => link == name,
        }
    }
}

/// Watches the guarded names of a command.
#[derive(Debug)]
pub struct Guard {
    rows: Vec<Row>,
    /// The entries at the start. A mount protects them, except links.
    known: HashSet<PathBuf>,
    /// The links at the start and their targets: guarded ones, and those above guarded names.
    links: Vec<(PathBuf, PathBuf)>,
    renamed: Vec<Renamed>,
}

/// A row with its directory as it was at the start.
#[derive(Debug)]
struct Row {
    guarded: Guarded,
    /// The directory, without links in the part that existed.
    path: PathBuf,
    /// A link to nothing that was in the way.
    dangling: Option<PathBuf>,
    /// Where entries are moved if every name of the directory is guarded.
    aside: Option<Aside>,
}

/// A directory for entries whose own directory gives a meaning to every name.
#[derive(Debug)]
struct Aside {
    /// The directory, without links in the part that existed.
    path: PathBuf,
    /// The names that are guarded there.
    guarded: Vec<Guarded>,
}

impl Aside {
    /// The nearest directory above in which not every name is guarded. `None` if a name in the row's own directory can
    /// be without meaning.
    fn of(row: &Guarded, all: &[Guarded]) -> Option<Self> {
        let is_whole = |path: &Path| {
            all.iter().any(|row| row.directory == path && row.patterns == [Guarded::EVERYTHING])
        };
        let above = is_whole(&row.directory)
            .then(|| row.directory.ancestors().skip(1).find(|path| !is_whole(path)))??;
        let guarded = all.iter().filter(|row| row.directory == above).cloned().collect();
        Some(Self { path: resolved(above), guarded })
    }
}

/// An entry that a command created under a guarded name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    /// The guarded path.
    pub from: PathBuf,
    /// The path that the entry has now.
    pub to: PathBuf,
}

/// When a check happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    Running,
    Over,
}

impl Guard {
    /// Reads the present state.
    ///
    /// # Errors
    ///
    /// Fails if a directory cannot be read.
    pub fn new(guarded: Vec<Guarded>) -> Result<Self, Error> {
        let mut guard =
            Self { rows: Vec::new(), known: HashSet::new(), links: Vec::new(), renamed: Vec::new() };
        let mut seen: HashSet<PathBuf> = HashSet::new();
        let all = guarded.clone();
        let mut directories = Directories::default();
        for guarded in guarded {
            let path = directories.resolved(&guarded.directory);
            let failed = |source| Error::Path { path: path.clone(), source };
            let reached = Folder::open(&path).map_err(failed)?;
            let present = guarded.inside(&reached, &path).map_err(failed)?;
            let above = guarded.directory.ancestors().map(Path::to_owned);
            for entry in present.iter().cloned().chain(above) {
                if seen.insert(entry.clone())
                    && let Ok(target) = read_link(&entry)
                {
                    guard.links.push((entry, target));
                }
            }
            guard.known.extend(present);
            let dangling = if let Reached::Link(link) = reached { Some(link) } else { None };
            let aside = Aside::of(&guarded, &all);
            guard.rows.push(Row { guarded, path, dangling, aside });
        }
        Ok(guard)
    }

    /// Renames what was created since the start, and restores replaced links, while the command runs.
    ///
    /// # Errors
    ///
    /// Fails if an entry cannot be renamed or a directory cannot be read. The command must then be ended.
    pub fn check(&mut self) -> Result<(), Error> {
        self.check_all(Moment::Running)
    }

    /// Does the same after the end of the command.
    ///
    /// # Errors
    ///
    /// Fails like [`Guard::check`], after everything that can be renamed was renamed.
    pub fn check_last(&mut self) -> Result<(), Error> {
        self.check_all(Moment::Over)
    }

    fn check_all(&mut self, moment: Moment) -> Result<(), Error> {
        let mut outcome = Ok(());
        let mut note = |path: &Path, result: Result<(), IoError>| {
            if let (Ok(()), Err(source)) = (&outcome, result) {
                outcome = Err(Error::Path { path: path.to_owned(), source });
            }
        };
        for (path, target) in &self.links {
            if read_link(path).ok().as_ref() != Some(target) {
                note(path, restore(path, target, &mut self.renamed));
            }
        }
        for row in &self.rows {
            note(&row.path, row.check(&self.known, moment, &mut self.renamed));
        }
        outcome
    }

    /// The directories whose changes can make a check necessary. `None` if they cannot be listed, because a path leads
    /// through a link to nothing, so that only regular checks find everything.
    #[must_use]
    pub fn places(&self) -> Option<Vec<Place>> {
        if self.rows.iter().any(|row| row.dangling.is_some()) {
            return None;
        }
        let rows = self
            .rows
            .iter()
            .map(|row| Place { directory: row.path.clone(), names: Names::Guarded(row.guarded.clone()) });
        let links = self.links.iter().filter_map(|(link, _)| {
            let names = Names::Link(link.file_name()?.to_owned());
            Some(Place { directory: resolved(link.parent()?), names })
        });
        Some(rows.chain(links).collect())
    }

    /// The entries that were renamed.
    #[must_use]
    pub fn renamed(&self) -> &[Renamed] {
        &self.renamed
    }
}

impl Row {
    fn check(
        &self,
        known: &HashSet<PathBuf>,
        moment: Moment,
        renamed: &mut Vec<Renamed>,
    ) -> Result<(), IoError> {
        let folder = match Folder::open(&self.path)? {
            Reached::Folder(folder) => folder,
            Reached::Missing => return Ok(()),
            // The command may have created what the link names.
            Reached::Link(link) if Some(&link) == self.dangling.as_ref() => {
                let Ok(target) = canonicalize(&self.guarded.directory) else { return Ok(()) };
                let Reached::Folder(folder) = Folder::open(&target)? else { return Ok(()) };
                folder
            }
            // The directory was reached without links at the start, so the command created this one.
            Reached::Link(link) => return rename_at(&link, renamed),
        };
        let mut outcome = Ok(());
        let mut found: HashSet<String> = HashSet::new();
        let most = if moment == Moment::Over { MAX_LAST_ENTRIES } else { MAX_ENTRIES };
        match self.guarded.names(&folder, most) {
            Ok(names) => found.extend(names),
            Err(error) => {
                outcome = Err(error);
                // These are found among any number of entries.
                let exact = self.guarded.patterns.iter().filter(|pattern| !pattern.contains('*'));
                let exact = exact.filter(|name| self.guarded.matches(name) && folder.has(name));
                found.extend(exact.cloned());
            }
        }
        for name in found.into_iter().filter(|name| !known.contains(&self.path.join(name))) {
            let moved = match &self.aside {
                None => {
                    let to = rename_away(&folder, &name, &folder, |to| self.guarded.matches(to));
                    to.map(|to| self.guarded.directory.join(to))
                }
                Some(aside) => aside.take(&folder, &name),
            };
            match moved {
                Ok(to) => renamed.push(Renamed { from: self.guarded.directory.join(&name), to }),
                // It is gone.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome
    }
}

/// The directory without links in the part that exists.
fn resolved(directory: &Path) -> PathBuf {
    let existing = directory.ancestors().find_map(|above| Some((above, canonicalize(above).ok()?)));
    let Some((above, resolved)) = existing else { return directory.to_owned() };
    match directory.strip_prefix(above) {
        Ok(rest) if rest.as_os_str().is_empty() => resolved,
        Ok(rest) => resolved.join(rest),
        Err(_) => directory.to_owned(),
    }
}

/// Puts a link back, and renames what is in its place.
fn restore(path: &Path, target: &Path, renamed: &mut Vec<Renamed>) -> Result<(), IoError> {
    if symlink_metadata(path).is_ok() {
        rename_at(path, renamed)?;
    }
    match symlink(target, path) {
        // Its directory is gone. A new one is checked like any other.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        restored => restored,
    }
}

/// Renames the entry at a path whose directory contains no links.
fn rename_at(path: &Path, renamed: &mut Vec<Renamed>) -> Result<(), IoError> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(IoError::other("it has no name"));
    };
    // The links above existed at the start, or are handled as links of their own.
    let Reached::Folder(folder) = Folder::open(&resolved(directory))? else { return Ok(()) };
    match rename_away(&folder, &name.to_string_lossy(), &folder, |_| false) {
        Ok(to) => {
            renamed.push(Renamed { from: path.to_owned(), to: directory.join(to) });
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

impl Aside {
    /// Moves an entry of a directory here. Returns its path.
    fn take(&self, folder: &Folder, name: &str) -> Result<PathBuf, IoError> {
        let Reached::Folder(here) = Folder::open(&self.path)? else {
            return Err(IoError::other("the directory for its renamed files is missing"));
        };
        let is_guarded = |to: &str| self.guarded.iter().any(|row| row.matches(to));
        rename_away(folder, name, &here, is_guarded).map(|to| self.path.join(to))
    }
}

/// Renames an entry to a name in the same or another directory that has no meaning for any program and is not guarded.
/// Returns the name.
fn rename_away(
    folder: &Folder,
    name: &str,
    into: &Folder,
    is_guarded: impl Fn(&str) -> bool,
) -> Result<String, IoError> {
    let numbered = (1..=MAX_RENAMED).map(|number| format!("blocked-{number}-{name}"));
    let random = (0..MAX_RANDOM).map(|_| format!("blocked-{}-{name}", random_word()));
    // The end of a name can have a meaning.
    let short = (0..MAX_RANDOM).map(|_| format!("blocked-{}", random_word()));
    let candidates = numbered.chain(random).chain(short);
    for to in candidates.filter(|to| !is_guarded(to) && !into.has(to)) {
        match folder.rename(name, into, &to) {
            Ok(()) => return Ok(to),
            // The command was faster.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            // The name is too long with the addition.
            Err(error) if error.kind() == ErrorKind::InvalidFilename => {
                let short = format!("blocked-{}", random_word());
                return folder.rename(name, into, &short).map(|()| short);
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                // The command may have changed the permissions of the directory.
                folder.make_writable()?;
                into.make_writable()?;
                return folder.rename(name, into, &to).map(|()| to);
            }
            Err(error) => return Err(error),
        }
    }
    Err(IoError::other("too many renamed entries in this directory"))
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir, remove_file, write};

    use super::*;

    fn guard(directory: &Path, patterns: &[&str]) -> Guard {
        let patterns = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
        Guard::new(vec![Guarded { directory: directory.to_owned(), patterns, except: Vec::new() }]).unwrap()
    }

    #[test]
    fn created_entries_are_renamed() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path().join("opencode.json"), "{}").unwrap();
        let mut guard = guard(folder.path(), &["opencode.json*", ".claude", "*.code-workspace"]);
        guard.check().unwrap();
        assert_eq!(guard.renamed(), []);
        create_dir(folder.path().join(".CLAUDE")).unwrap();
        write(folder.path().join("opencode.jsonc"), "evil").unwrap();
        write(folder.path().join("a.code-workspace"), "evil").unwrap();
        write(folder.path().join("kept"), "").unwrap();
        guard.check().unwrap();
        let mut from: Vec<_> =
            guard.renamed().iter().map(|renamed| renamed.from.file_name().unwrap().to_owned()).collect();
        from.sort();
        assert_eq!(from, [".CLAUDE", "a.code-workspace", "opencode.jsonc"]);
        assert!(guard.renamed().iter().all(|renamed| !renamed.from.exists() && renamed.to.exists()));
        assert!(folder.path().join("opencode.json").exists() && folder.path().join("kept").exists());
    }

    #[test]
    fn a_renamed_entry_is_not_guarded_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let mut guard = guard(folder.path(), &["*.code-workspace"]);
        write(folder.path().join("a.code-workspace"), "evil").unwrap();
        guard.check().unwrap();
        guard.check().unwrap();
        assert_eq!(guard.renamed().len(), 1);
    }

    #[test]
    fn many_entries_hide_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut guard = guard(folder.path(), &[".mcp.json", ".yarnrc*"]);
        for number in 0..=MAX_ENTRIES {
            write(folder.path().join(format!("{number}")), "").unwrap();
        }
        write(folder.path().join(".mcp.json"), "evil").unwrap();
        write(folder.path().join(".yarnrc.yml"), "evil").unwrap();
        guard.check().unwrap_err();
        assert!(!folder.path().join(".mcp.json").exists());
        guard.check_last().unwrap();
        assert!(!folder.path().join(".yarnrc.yml").exists());
    }

    #[test]
    fn a_directory_without_free_names_loses_what_is_created() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("hooks/deep");
        std::fs::create_dir_all(&inner).unwrap();
        let row = |directory: &Path, pattern: &str, except: &str| Guarded {
            directory: directory.to_owned(),
            patterns: vec![pattern.to_owned()],
            except: vec![except.to_owned()],
        };
        let mut guard = Guard::new(vec![
            row(folder.path(), "hooks", "hooks"),
            row(folder.path(), "blocked-1-*", "-"),
            row(&folder.path().join("hooks"), Guarded::EVERYTHING, "deep"),
            row(&inner, Guarded::EVERYTHING, "granted"),
        ])
        .unwrap();
        for name in ["granted", "other", "blocked-1-x"] {
            write(inner.join(name), "").unwrap();
        }
        create_dir(folder.path().join("hooks/blocked-2")).unwrap();
        guard.check().unwrap();
        guard.check_last().unwrap();
        assert!(inner.join("granted").exists());
        assert_eq!(std::fs::read_dir(&inner).unwrap().count(), 1);
        assert_eq!(std::fs::read_dir(folder.path().join("hooks")).unwrap().count(), 1);
        assert_eq!(guard.renamed().len(), 3);
        let root = folder.path().canonicalize().unwrap();
        assert!(
            guard.renamed().iter().all(|renamed| renamed.to.parent() == Some(&*root) && renamed.to.exists())
        );
        assert!(!root.join("blocked-1-other").exists(), "it is guarded there");
    }

    #[test]
    fn a_replaced_link_is_restored() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join(".claude");
        symlink("elsewhere", &link).unwrap();
        let mut guard = guard(folder.path(), &[".claude"]);
        remove_file(&link).unwrap();
        create_dir(&link).unwrap();
        guard.check().unwrap();
        assert_eq!(read_link(&link).unwrap(), Path::new("elsewhere"));
        assert_eq!(guard.renamed().len(), 1);
        remove_file(&link).unwrap();
        guard.check().unwrap();
        assert_eq!(read_link(&link).unwrap(), Path::new("elsewhere"));
    }
}
