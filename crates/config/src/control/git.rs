//! The control files of git: its configuration, hooks and the places they are shared with.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{ControlFiles, hash};
use crate::{FileProblem, beneath};

/// The most bytes of one file of git's.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// The most bytes of a file that names a directory.
const MAX_LINK_BYTES: u64 = 4096;
/// Hooks, and configuration files of submodules.
const MAX_ENTRIES: usize = 500;
/// Submodules below each other.
const MAX_DEPTH: usize = 8;

impl ControlFiles {
    /// Adds the digests of git's control files. Their content is compared and never interpreted.
    pub(super) fn git(&mut self) {
        let dot = self.root.join(".git");
        self.plain(".gitmodules", &self.root.join(".gitmodules"));
        let folder = if dot.is_dir() { Some(dot) } else { self.named("gitdir", &dot, Some("gitdir:")) };
        let Some(folder) = folder else { return };
        let shared = self.named("commondir", &folder.join("commondir"), None);
        self.config(".git/config.worktree", &folder.join("config.worktree"));
        let shared = shared.unwrap_or(folder);
        self.config(".git/config", &shared.join("config"));
        self.hooks(&shared.join("hooks"));
        self.submodules(&shared.join("modules"), MAX_DEPTH);
    }

    /// The directory that a small file names, after `prefix`; its path becomes part of the digest.
    fn named(&mut self, name: &str, file: &Path, prefix: Option<&str>) -> Option<PathBuf> {
        let bytes = beneath::read_anywhere(file, MAX_LINK_BYTES).ok()?;
        self.digests.insert(format!(".git/{name}"), hash(&bytes));
        let text = String::from_utf8(bytes).ok()?;
        let written = text.trim().strip_prefix(prefix.unwrap_or_default())?.trim();
        let base = file.parent().unwrap_or(&self.root);
        // A directory that is gone leaves nothing to compare; git itself fails there as well.
        base.join(written).canonicalize().ok().filter(|found| found.is_dir())
    }

    fn config(&mut self, name: &str, path: &Path) {
        match beneath::read_anywhere(path, MAX_FILE_BYTES) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                self.digests.insert(name.to_owned(), hash(without_branches(&text).as_bytes()));
            }
            Err(problem) => self.unread(name, &problem),
        }
    }

    fn plain(&mut self, name: &str, path: &Path) {
        match beneath::read_anywhere(path, MAX_FILE_BYTES) {
            Ok(bytes) => drop(self.digests.insert(name.to_owned(), hash(&bytes))),
            Err(problem) => self.unread(name, &problem),
        }
    }

    fn unread(&mut self, name: &str, problem: &FileProblem) {
        if !matches!(problem, FileProblem::Missing) {
            self.digests.insert(name.to_owned(), format!("unread: {problem}"));
        }
    }

    fn hooks(&mut self, folder: &Path) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        let mut names: Vec<_> =
            entries.flatten().take(MAX_ENTRIES + 1).map(|entry| entry.file_name()).collect();
        if names.len() > MAX_ENTRIES {
            return self.reach(format!("there are more than {MAX_ENTRIES} git hooks"));
        }
        names.sort();
        for name in names {
            let shown = name.to_string_lossy();
            // Git runs no hook with this ending.
            if !shown.ends_with(".sample") {
                self.plain(&format!(".git/hooks/{shown}"), &folder.join(&name));
            }
        }
    }

    fn submodules(&mut self, folder: &Path, depth: usize) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        let mut paths: Vec<_> = entries.flatten().take(MAX_ENTRIES + 1).map(|entry| entry.path()).collect();
        if paths.len() > MAX_ENTRIES || depth == 0 {
            return self.reach(format!(
                "there are more than {MAX_ENTRIES} submodules, or {MAX_DEPTH} below each other"
            ));
        }
        paths.sort();
        for path in paths {
            let is_folder = fs::symlink_metadata(&path).is_ok_and(|about| about.is_dir());
            if !is_folder {
                continue;
            }
            let shown = format!(".git/modules/{}", path.file_name().unwrap_or_default().to_string_lossy());
            let config = path.join("config");
            if config.is_file() {
                self.config(&format!("{shown}/config"), &config);
                self.hooks(&path.join("hooks"));
                self.submodules(&path.join("modules"), depth - 1);
            } else {
                self.submodules(&path, depth - 1);
            }
        }
    }
}

/// The text without the sections that say what a branch follows: every `git push -u` changes them, and
/// nothing in them runs a program. A text with a line that is not understood is left as it is.
fn without_branches(text: &str) -> String {
    const HARMLESS: [&str; 5] = ["remote", "merge", "rebase", "pushremote", "description"];
    let mut kept = String::new();
    let mut is_branch = false;
    for line in text.lines() {
        let bare = line.trim();
        if bare.ends_with('\\') {
            return text.to_owned();
        }
        if bare.starts_with('[') {
            is_branch = bare.starts_with("[branch \"") && bare.ends_with("\"]");
            if is_branch {
                continue;
            }
        }
        let (key, value) = bare.split_once('=').unwrap_or((bare, ""));
        let key = key.trim().to_ascii_lowercase();
        // A value with a colon may be a URL, and some kinds of URL run programs.
        if is_branch && HARMLESS.contains(&key.as_str()) && !value.contains(':') {
            continue;
        }
        kept.push_str(line);
        kept.push('\n');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_branch_that_is_followed_does_not_count() {
        let plain = "[core]\n\tbare = false\n";
        let followed = format!("{plain}[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n");
        assert_eq!(without_branches(&followed), plain);
        for hostile in [
            "[branch \"a\"]\n\tremote = x\n[core]\n\tsshCommand = evil\n",
            "[branch \"a\"]\n\tmergeoptions = --exec\n",
            "[branch \"a\"] remote = x\n",
            "[branch \"a\"]\n\tremote = x\\\n[core]\n",
            "[branch \"a\"]\n\tremote = ext::sh\n",
        ] {
            assert_ne!(without_branches(&format!("{plain}{hostile}")), plain, "{hostile}");
        }
    }
}
