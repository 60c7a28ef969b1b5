//! Which files are deleted, and which are kept for what reason.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use codewright_config::Dirs;

/// The maximum number of entries that are examined under one path.
const MAX_ENTRIES: usize = 10_000_000;
/// Why an unknown entry is kept.
const FOREIGN: &str = "not created by the program, or it may contain your work";

/// A directory or file that the program creates.
enum Name {
    /// A file. A `*` stands for any characters.
    File(&'static str),
    /// A directory whose whole content the program creates.
    Directory(&'static str),
}

const DATA: [Name; 11] = [
    Name::File("codewright.db"),
    Name::File("codewright.db-wal"),
    Name::File("codewright.db-shm"),
    Name::File("codewright.db.damaged*"),
    Name::File("auth.json"),
    Name::File("auth.json*.lock"),
    Name::Directory("snapshot"),
    Name::Directory("tool-output"),
    Name::Directory("plans"),
    Name::Directory("imported"),
    Name::Directory(LOCKS),
];
/// The directory with the lock that is held during the deletion.
const LOCKS: &str = "locks";
const STATE: [Name; 4] = [
    Name::File("trust.json"),
    Name::File("tui.json"),
    Name::File("prompt-history.jsonl"),
    Name::Directory("packages"),
];
const LOG: [Name; 1] = [Name::File("codewright.log*")];
const CACHE: [Name; 3] = [Name::File("models.json"), Name::Directory("served"), Name::Directory("packages")];

/// The files to delete and to keep.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) targets: Vec<Target>,
    /// Paths with the reason why they are kept.
    pub(super) kept: Vec<(PathBuf, &'static str)>,
    /// The program's directories, inner ones first. They are deleted if they are empty in the end.
    pub(super) directories: Vec<PathBuf>,
}

/// A file, or a directory with its whole content.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) is_directory: bool,
}

/// Examines the program's directories.
pub(super) fn plan(dirs: &Dirs, keeps_data: bool) -> Plan {
    let mut plan = Plan::default();
    if keeps_data {
        plan.keep(&dirs.data, "--keep-data");
    } else {
        plan.add(&dirs.data, &DATA);
    }
    plan.add(&dirs.state.join("log"), &LOG);
    plan.add(&dirs.state, &STATE);
    plan.add(&dirs.cache, &CACHE);
    plan.keep(&dirs.own_config, "configuration, which you may have written");
    plan
}

impl Plan {
    fn keep(&mut self, path: &Path, why: &'static str) {
        if path.symlink_metadata().is_ok() {
            self.kept.push((path.to_owned(), why));
        }
    }

    /// Adds the entries of a directory.
    fn add(&mut self, directory: &Path, names: &[Name]) {
        let Ok(own) = directory.symlink_metadata() else { return };
        if !own.is_dir() {
            return self.keep(directory, "not a directory");
        }
        if !codewright_workspace::is_own(&own) {
            return self.keep(directory, "it belongs to another user");
        }
        let Ok(entries) = fs::read_dir(directory) else {
            return self.keep(directory, "it cannot be read");
        };
        let mut paths: Vec<_> = entries.take(MAX_ENTRIES).flatten().map(|entry| entry.path()).collect();
        // The lock is held as long as other files exist.
        paths.sort_by_cached_key(|path| (path.ends_with(LOCKS), path.clone()));
        // A directory that is in the plan already has its own entries.
        paths.retain(|path| !self.directories.contains(path));
        for path in paths {
            match judge(&path, &own, names) {
                Ok(target) => self.targets.push(target),
                Err(why) => self.kept.push((path, why)),
            }
        }
        self.directories.push(directory.to_owned());
    }
}

/// Returns the target, or the reason why a path in a directory is kept.
fn judge(path: &Path, directory: &Metadata, names: &[Name]) -> Result<Target, &'static str> {
    let name = path.file_name().and_then(|name| name.to_str()).ok_or(FOREIGN)?;
    let named = names.iter().find(|known| known.matches(name)).ok_or(FOREIGN)?;
    let found = path.symlink_metadata().map_err(|_| "it cannot be read")?;
    let is_directory = match named {
        Name::File(_) => found.is_dir(),
        Name::Directory(_) => !found.is_dir(),
    };
    if found.is_symlink() || is_directory {
        return Err(FOREIGN);
    }
    let bytes = measure(path, &found, directory)?;
    Ok(Target { path: path.to_owned(), bytes, is_directory: found.is_dir() })
}

/// The size of a file or a directory's content. Links are not followed.
fn measure(path: &Path, found: &Metadata, parent: &Metadata) -> Result<u64, &'static str> {
    let (mut bytes, mut count) = (0, 0);
    let mut left = vec![(path.to_owned(), found.clone())];
    while let Some((path, found)) = left.pop() {
        count += 1;
        if count > MAX_ENTRIES {
            return Err("it has too many entries");
        }
        if found.dev() != parent.dev() {
            return Err("another file system is mounted in it");
        }
        if !codewright_workspace::is_own(&found) {
            return Err("it contains files of another user");
        }
        if !found.is_dir() {
            bytes += found.len();
            continue;
        }
        let entries = fs::read_dir(&path).map_err(|_| "it cannot be read")?;
        for entry in entries.flatten() {
            let found = entry.metadata().map_err(|_| "it cannot be read")?;
            left.push((entry.path(), found));
        }
    }
    Ok(bytes)
}

impl Name {
    fn matches(&self, name: &str) -> bool {
        let (Self::File(pattern) | Self::Directory(pattern)) = self;
        match pattern.split_once('*') {
            None => name == *pattern,
            Some((start, end)) => name.strip_prefix(start).is_some_and(|rest| rest.ends_with(end)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        let matches = |name: &str| DATA.iter().any(|known| known.matches(name));
        for name in ["auth.json", "auth.json.lock", "auth.json.xai.lock", "codewright.db.damaged-2026-01-01"]
        {
            assert!(matches(name), "{name}");
        }
        for name in ["auth.json.bak", "codewright.db.bak", "my-auth.json", "worktree", "snapshots"] {
            assert!(!matches(name), "{name}");
        }
    }
}
