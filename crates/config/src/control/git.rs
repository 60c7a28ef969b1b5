//! The control files of git: configuration and hooks of the repository and its submodules.

use std::{
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use super::{ControlFiles, hash, path_key};
use crate::{FileProblem, confined};

/// The maximum size of a control file of git.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// The maximum size of a file that contains a directory path.
const MAX_LINK_BYTES: u64 = 4096;
/// The maximum number of hooks, and of submodules.
const MAX_ENTRIES: usize = 500;
/// The maximum depth of submodules.
const MAX_DEPTH: usize = 8;

impl ControlFiles {
    /// Adds the digests of git's control files. Their content is only compared.
    pub(super) fn git(&mut self) {
        let dot = self.root.join(".git");
        self.plain(".gitmodules", &self.root.join(".gitmodules"));
        let folder =
            if dot.is_dir() { Some(dot) } else { self.linked_directory("gitdir", &dot, Some("gitdir:")) };
        let Some(folder) = folder else { return };
        let shared = self.linked_directory("commondir", &folder.join("commondir"), None);
        self.config(".git/config.worktree", &folder.join("config.worktree"));
        let shared = shared.unwrap_or(folder);
        self.config(".git/config", &shared.join("config"));
        self.hooks(Path::new(".git"), &shared.join("hooks"));
        self.submodules(Path::new(".git/modules"), &shared.join("modules"), MAX_DEPTH);
    }

    /// The directory whose path a small file contains, after `prefix`. The file's digest is stored.
    fn linked_directory(&mut self, name: &str, file: &Path, prefix: Option<&str>) -> Option<PathBuf> {
        let bytes = confined::read_anywhere(file, MAX_LINK_BYTES).ok()?;
        self.digests.insert(format!(".git/{name}"), hash(&bytes));
        let text = String::from_utf8(bytes).ok()?;
        let written = text.trim().strip_prefix(prefix.unwrap_or_default())?.trim();
        let base = file.parent().unwrap_or(&self.root);
        // A missing directory has nothing to compare, and git fails there too.
        base.join(written).canonicalize().ok().filter(|found| found.is_dir())
    }

    fn config(&mut self, key: &str, path: &Path) {
        match confined::read_anywhere(path, MAX_FILE_BYTES) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                self.digests.insert(key.to_owned(), hash(without_branches(&text).as_bytes()));
            }
            Err(problem) => self.unread(key, &problem),
        }
    }

    fn plain(&mut self, key: &str, path: &Path) {
        match confined::read_anywhere(path, MAX_FILE_BYTES) {
            Ok(bytes) => drop(self.digests.insert(key.to_owned(), hash(&bytes))),
            Err(problem) => self.unread(key, &problem),
        }
    }

    fn unread(&mut self, key: &str, problem: &FileProblem) {
        if !matches!(problem, FileProblem::Missing) {
            self.digests.insert(key.to_owned(), format!("unread: {problem}"));
        }
    }

    /// Adds the hooks of a directory, whose path in lists is `above`.
    fn hooks(&mut self, above: &Path, folder: &Path) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        let mut names: Vec<_> =
            entries.flatten().take(MAX_ENTRIES + 1).map(|entry| entry.file_name()).collect();
        if names.len() > MAX_ENTRIES {
            return self.set_limit(format!("there are more than {MAX_ENTRIES} git hooks"));
        }
        names.sort();
        for name in names {
            // Git does not run hooks with this suffix.
            if !name.as_bytes().ends_with(b".sample") {
                self.plain(&path_key(&above.join("hooks").join(&name)), &folder.join(&name));
            }
        }
    }

    /// Adds the submodules of a directory, whose path in lists is `above`.
    fn submodules(&mut self, above: &Path, folder: &Path, depth: usize) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        let mut paths: Vec<_> = entries.flatten().take(MAX_ENTRIES + 1).map(|entry| entry.path()).collect();
        if paths.len() > MAX_ENTRIES || depth == 0 {
            return self.set_limit(format!(
                "there are more than {MAX_ENTRIES} submodules, or they are nested more than {MAX_DEPTH} levels deep"
            ));
        }
        paths.sort();
        for path in paths {
            let is_folder = fs::symlink_metadata(&path).is_ok_and(|about| about.is_dir());
            if !is_folder {
                continue;
            }
            let shown = above.join(path.file_name().unwrap_or_default());
            let config = path.join("config");
            if config.is_file() {
                self.config(&path_key(&shown.join("config")), &config);
                self.config(&path_key(&shown.join("config.worktree")), &path.join("config.worktree"));
                self.hooks(&shown, &path.join("hooks"));
                self.submodules(&shown.join("modules"), &path.join("modules"), depth - 1);
            } else {
                self.submodules(&shown, &path, depth - 1);
            }
        }
    }
}

/// Removes the sections about the upstream of branches, because every `git push -u` changes them and they run no
/// programs. A text with an unknown line in such a section is returned unchanged.
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
    fn the_upstream_of_a_branch_is_ignored() {
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
