//! Names that a command must not create or replace.
//!
//! A mount protects only what exists. A name that is missing when a command starts is checked while the
//! command runs and after its end: what appeared is renamed, so that it has no effect and nothing is lost. A
//! link cannot be protected by a mount either; it is restored if it was replaced.

use std::fs::{DirEntry, read_dir, read_link, rename, symlink_metadata};
use std::io::{Error as IoError, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::Error;

/// The largest number of entries of a directory that are compared. Beyond it the command is ended.
const MAX_ENTRIES: usize = 100_000;
/// The largest number of renamed entries with the same name in a directory.
const MAX_RENAMED: usize = 1000;

/// The names in a directory that match one of several patterns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Guarded {
    /// The directory, which may be missing.
    pub directory: PathBuf,
    /// Names, in lower case, which may start or end with `*`. The letter case of entries is ignored.
    pub patterns: Vec<String>,
}

impl Guarded {
    /// The paths that exist.
    ///
    /// # Errors
    ///
    /// Fails if the directory exists and cannot be read, or has too many entries.
    pub(crate) fn existing(&self) -> Result<Vec<PathBuf>, Error> {
        let failed = |source| Error::Path { path: self.directory.clone(), source };
        let entries = match read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(failed(error)),
        };
        let mut paths = Vec::new();
        for (index, entry) in entries.enumerate() {
            let entry = entry.map_err(failed)?;
            if index == MAX_ENTRIES {
                return Err(failed(IoError::other(format!("it has more than {MAX_ENTRIES} entries"))));
            }
            if self.matches(&entry) {
                paths.push(entry.path());
            }
        }
        Ok(paths)
    }

    fn matches(&self, entry: &DirEntry) -> bool {
        let name = entry.file_name().to_string_lossy().to_lowercase();
        self.patterns.iter().any(|pattern| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
            (Some(_), Some(_)) => name.contains(pattern.trim_matches('*')),
            (Some(end), None) => name.ends_with(end),
            (None, Some(start)) => name.starts_with(start),
            (None, None) => name == *pattern,
        })
    }
}

/// Watches the guarded names of a command.
#[derive(Debug)]
pub struct Guard {
    guarded: Vec<Guarded>,
    /// The entries at the start. A mount protects them, except links.
    known: Vec<PathBuf>,
    /// The links at the start and their targets.
    links: Vec<(PathBuf, PathBuf)>,
    renamed: Vec<Renamed>,
}

/// An entry that a command created under a guarded name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    /// The guarded path.
    pub from: PathBuf,
    /// The path that the entry has now.
    pub to: PathBuf,
}

impl Guard {
    /// Reads the present state.
    ///
    /// # Errors
    ///
    /// Fails if a directory cannot be read.
    pub fn new(guarded: Vec<Guarded>) -> Result<Self, Error> {
        let mut known = Vec::new();
        for row in &guarded {
            known.extend(row.existing()?);
        }
        let links = known.iter().filter_map(|path| Some((path.clone(), read_link(path).ok()?))).collect();
        Ok(Self { guarded, known, links, renamed: Vec::new() })
    }

    /// Renames what was created since the start, and restores replaced links.
    ///
    /// # Errors
    ///
    /// Fails if an entry cannot be renamed or a directory cannot be read.
    pub fn check(&mut self) -> Result<(), Error> {
        for (path, target) in &self.links {
            if read_link(path).ok().as_ref() == Some(target) {
                continue;
            }
            let failed = |source| Error::Path { path: path.clone(), source };
            if symlink_metadata(path).is_ok() {
                self.renamed.push(rename_away(path).map_err(failed)?);
            }
            symlink(target, path).map_err(failed)?;
        }
        for row in &self.guarded {
            for path in row.existing()? {
                if !self.known.contains(&path) {
                    let failed = |source| Error::Path { path: path.clone(), source };
                    self.renamed.push(rename_away(&path).map_err(failed)?);
                }
            }
        }
        Ok(())
    }

    /// The entries that were renamed.
    #[must_use]
    pub fn renamed(&self) -> &[Renamed] {
        &self.renamed
    }
}

/// Renames an entry to a name in the same directory that has no meaning for any program.
fn rename_away(path: &Path) -> Result<Renamed, IoError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for number in 1..=MAX_RENAMED {
        let to = path.with_file_name(format!("blocked-{number}-{name}"));
        if symlink_metadata(&to).is_err() {
            rename(path, &to)?;
            return Ok(Renamed { from: path.to_owned(), to });
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
        Guard::new(vec![Guarded { directory: directory.to_owned(), patterns }]).unwrap()
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
