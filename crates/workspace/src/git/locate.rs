//! Finds the directories of a repository without running git.

use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The limit for the size of a file that names another directory.
const MAX_POINTER_BYTES: u64 = 4096;

/// The directories of a repository, as the repository writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitDirs {
    /// `HEAD` and the index of this worktree.
    pub own: PathBuf,
    /// Branches, objects and configuration; the same as `own` except in linked worktrees.
    pub common: PathBuf,
}

/// The directories of the repository whose worktree starts here, or `None` if they are missing or not
/// readable.
#[must_use]
pub fn git_dirs(worktree: &Path) -> Option<GitDirs> {
    let dot = worktree.join(".git");
    let own = if dot.is_dir() {
        dot
    } else {
        let text = pointer(&dot)?;
        crate::normalize(&worktree.join(text.strip_prefix("gitdir:")?.trim_start()))
    };
    if !own.is_dir() {
        return None;
    }
    let file = own.join("commondir");
    let common = match file.symlink_metadata() {
        // A linked worktree without a known main repository is not a repository.
        Ok(_) => crate::normalize(&own.join(pointer(&file)?)),
        Err(_) => own.clone(),
    };
    common.is_dir().then_some(GitDirs { own, common })
}

impl GitDirs {
    /// The first of the repository's directories that another user owns.
    #[must_use]
    pub fn foreign(&self, worktree: &Path) -> Option<PathBuf> {
        let own = nix::unistd::geteuid().as_raw();
        let directories = [worktree, &self.own, &self.common];
        let is_foreign = |path: &&Path| path.metadata().map_or(true, |data| data.uid() != own);
        directories.into_iter().find(is_foreign).map(Path::to_owned)
    }
}

pub(super) fn pointer(path: &Path) -> Option<String> {
    let text = String::from_utf8(read_small(path, MAX_POINTER_BYTES)?).ok()?;
    Some(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// The beginning of a regular file, up to `limit_bytes`. Returns `None` for anything else, without waiting
/// for a pipe.
#[must_use]
pub fn read_small(path: &Path, limit_bytes: u64) -> Option<Vec<u8>> {
    let mut options = std::fs::OpenOptions::new();
    // Opening a pipe must not block.
    options.read(true).custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits());
    let file = options.open(path).ok().filter(|file| file.metadata().is_ok_and(|data| data.is_file()))?;
    let mut bytes = Vec::new();
    file.take(limit_bytes).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn linked_worktrees_name_their_repository() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        fs::create_dir_all(path("main/.git/worktrees/w")).unwrap();
        fs::create_dir(path("w")).unwrap();
        fs::write(path("w/.git"), "gitdir: ../main/.git/worktrees/w\n").unwrap();
        fs::write(path("main/.git/worktrees/w/commondir"), "../..\n").unwrap();
        let found = git_dirs(&path("w")).unwrap();
        assert_eq!(found, GitDirs { own: path("main/.git/worktrees/w"), common: path("main/.git") });
        let main = git_dirs(&path("main")).unwrap();
        assert_eq!(main, GitDirs { own: path("main/.git"), common: path("main/.git") });
        fs::remove_dir_all(path("main")).unwrap();
        assert_eq!(git_dirs(&path("w")), None);
    }

    #[test]
    fn pipes_and_other_texts_are_not_pointers() {
        let root = tempfile::tempdir().unwrap();
        let dot = root.path().join(".git");
        nix::unistd::mkfifo(&dot, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(git_dirs(root.path()), None);
        for text in ["", "gitdir:", "gitdir: nowhere", "junk", "gitdir: \u{0}"] {
            fs::remove_file(&dot).unwrap();
            fs::write(&dot, text).unwrap();
            assert!(git_dirs(root.path()).is_none_or(|found| found.own == root.path()), "{text:?}");
        }
        fs::remove_file(&dot).unwrap();
        fs::create_dir(&dot).unwrap();
        fs::write(dot.join("commondir"), "gone").unwrap();
        assert_eq!(git_dirs(root.path()), None);
    }
}
