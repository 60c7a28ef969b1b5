//! What git runs when the user continues a rebase.
//!
//! A rebase that stops leaves a list of steps in the directory of the repository. Git runs the lines `exec` of this list when
//! the rebase continues, also for the user and without a sandbox. Commands that rebase write the list, so it is not
//! protected. Instead, lines `exec` that a command in the sandbox leaves there become comments when it has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::PathBuf;

use codewright_workspace::{Confined, Held, Node, hold};

/// The directories of a repository with a list, and its name.
const LISTS: [(&str, &str); 2] = [("rebase-merge", "git-rebase-todo"), ("sequencer", "todo")];
/// The directory of a repository that git writes.
const GIT: &str = ".git";
/// The words that begin a line with a command.
const EXECUTED: [&[u8]; 2] = [b"exec", b"x"];
/// The largest list that is read. A larger one is removed.
const MAX_BYTES: u64 = 4 * 1024 * 1024;
/// The largest number of worktrees and modules of a repository whose lists are read.
const MAX_REPOSITORIES: usize = 200;
/// The depth to which modules are searched.
const MAX_DEPTH: usize = 4;

/// The lines with commands that were there before a command started, by list.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    known: BTreeMap<PathBuf, BTreeSet<Vec<u8>>>,
}

impl Steps {
    /// Reads the lists that a command can write.
    pub(crate) fn of(confined: &Confined) -> Self {
        let known = directories(confined).into_iter().flat_map(|(directory, name)| {
            let list = directory.child(OsStr::new(name));
            let lines = list.read(MAX_BYTES).map(|text| commands(&text)).unwrap_or_default();
            (!lines.is_empty()).then(|| (list.place.real.clone(), lines))
        });
        Self { known: known.collect() }
    }

    /// Makes comments of the lines that have been added. Returns a note if there are any.
    pub(crate) fn end(&self, confined: &Confined) -> Option<String> {
        let mut changed: Vec<String> = Vec::new();
        for (directory, name) in directories(confined) {
            let list = directory.child(OsStr::new(name));
            let path = &list.place.real;
            let is_clean = match directory.status() {
                Ok(None) => true,
                Ok(Some(status)) if status.node == Node::Directory => match list.status() {
                    Ok(None) => true,
                    Ok(Some(status)) if status.node == Node::File => self.clean(&list),
                    // Git follows a link.
                    Ok(Some(_)) | Err(_) => list.discard().is_err(),
                },
                Ok(Some(_)) | Err(_) => directory.discard().is_err(),
            };
            if !is_clean {
                changed.push(format!("`{}`", path.display()));
            }
        }
        (!changed.is_empty()).then(|| {
            format!(
                "The command left lines `exec` in {}. Git would run them outside of the sandbox when the rebase continues, so they \
                 are comments now. If they are needed, call the tool again with this path in `sandbox.write`; the user is asked.",
                changed.join(", ")
            )
        })
    }

    /// Makes comments of the new lines with commands in a list. Returns whether there are none.
    fn clean(&self, list: &Held) -> bool {
        let Ok(text) = list.read(MAX_BYTES) else { return list.remove().is_err() };
        let known = self.known.get(&list.place.real);
        let is_new = |line: &&[u8]| is_command(line) && !known.is_some_and(|known| known.contains(*line));
        if !text.split(|byte| *byte == b'\n').any(|line| is_new(&line)) {
            return true;
        }
        let lines = text.split(|byte| *byte == b'\n');
        let lines = lines.map(|line| if is_new(&line) { [b"# ", line].concat() } else { line.to_vec() });
        let cleaned = lines.collect::<Vec<_>>().join(&b'\n');
        if list.write(&cleaned, None).is_err() {
            // Without the list nothing is run.
            drop(list.remove());
        }
        false
    }
}

/// The directories with lists that a command can write, and the names of the lists. Those that the user granted are left out.
fn directories(confined: &Confined) -> Vec<(Held, &'static str)> {
    let write = &confined.sandbox.write;
    let mut found = Vec::new();
    for git in write.iter().filter(|path| path.ends_with(GIT)).filter_map(|path| hold(path).ok()) {
        let mut repositories = vec![git.clone()];
        add_children(&git.child(OsStr::new("worktrees")), 0, &mut repositories);
        add_children(&git.child(OsStr::new("modules")), MAX_DEPTH, &mut repositories);
        for (directory, name) in repositories
            .iter()
            .flat_map(|one| LISTS.map(|(directory, name)| (one.child(OsStr::new(directory)), name)))
        {
            let path = &directory.place.real;
            let is_granted = write.iter().any(|granted| granted.starts_with(path));
            if !is_granted {
                found.push((directory, name));
            }
        }
    }
    found
}

/// Adds the directories in a directory, down to a depth.
fn add_children(directory: &Held, depth: usize, found: &mut Vec<Held>) {
    for (name, is_directory) in directory.entries(MAX_REPOSITORIES).unwrap_or_default() {
        if is_directory && found.len() < MAX_REPOSITORIES {
            let child = directory.child(&name);
            if depth > 0 {
                add_children(&child, depth - 1, found);
            }
            found.push(child);
        }
    }
}

/// The lines with commands of a list.
fn commands(text: &[u8]) -> BTreeSet<Vec<u8>> {
    text.split(|byte| *byte == b'\n').filter(|line| is_command(line)).map(<[u8]>::to_vec).collect()
}

/// Whether git runs a command of a line.
fn is_command(line: &[u8]) -> bool {
    let mut words = line.trim_ascii_start().split(u8::is_ascii_whitespace);
    words.next().is_some_and(|word| EXECUTED.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_that_git_runs_are_known() {
        for (line, expected) in [
            ("exec touch x", true),
            ("x touch x", true),
            (" \t exec make", true),
            ("x\tmake", true),
            ("pick abc exec", false),
            ("# exec make", false),
            ("execute", false),
            ("", false),
        ] {
            assert_eq!(is_command(line.as_bytes()), expected, "{line}");
        }
    }
}
