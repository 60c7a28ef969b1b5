//! The files of a folder of configuration.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use ring::digest;

use super::{ControlFiles, hex};
use crate::beneath;

/// Folders below each other.
const MAX_DEPTH: usize = 16;
/// Entries of one folder of configuration.
const MAX_ENTRIES: usize = 20_000;
/// Files of installed packages, which are told apart by size and times alone.
const MAX_PACKAGE_FILES: usize = 100_000;

/// Installed packages: too many to read, so their sizes and times stand for their content.
const PACKAGES: &str = "node_modules";
/// Plans that agents write while they work.
const PLANS: &str = "plans";

impl ControlFiles {
    /// Reads every file of a folder. A folder that is a link, or another user's, is left out.
    pub(super) fn tree(&mut self, folder: &Path) {
        let Ok(about) = fs::symlink_metadata(folder) else { return };
        let shown = self.shown(folder);
        let boundary = self.boundary(folder);
        if folder.ancestors().take_while(|above| *above != boundary).any(Path::is_symlink) {
            return self.warn(format!("`{shown}` is a link to a directory; it is left out"));
        }
        if !about.is_dir() {
            return;
        }
        if !beneath::is_own(&about) {
            return self.warn(format!("`{shown}` belongs to another user; it is left out"));
        }
        let mut left = MAX_ENTRIES;
        self.folder(folder, MAX_DEPTH, &mut left);
    }

    fn folder(&mut self, folder: &Path, depth: usize, left: &mut usize) {
        if depth == 0 {
            let shown = self.shown(folder);
            return self.reach(format!("`{shown}` is more than {MAX_DEPTH} directories deep"));
        }
        let Ok(entries) = fs::read_dir(folder) else { return };
        let mut paths: Vec<PathBuf> = entries.flatten().take(*left + 1).map(|entry| entry.path()).collect();
        if paths.len() > *left {
            return self.reach(format!("a directory of configuration has more than {MAX_ENTRIES} entries"));
        }
        *left -= paths.len();
        paths.sort();
        for path in paths {
            let Ok(about) = fs::symlink_metadata(&path) else { continue };
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if about.is_symlink() && path.is_dir() {
                let shown = self.shown(&path);
                self.warn(format!("`{shown}` is a link to a directory; it is left out"));
            } else if about.is_dir() && name == PACKAGES {
                self.packages(&path);
            } else if about.is_dir() && name == PLANS {
                // Changed by the agent's own work; nothing in it is interpreted.
            } else if about.is_dir() {
                self.folder(&path, depth - 1, left);
            } else {
                self.file(path);
            }
        }
    }

    /// One digest of the names, sizes and change times of all files of installed packages.
    fn packages(&mut self, folder: &Path) {
        let mut all = digest::Context::new(&digest::SHA256);
        let (mut open, mut left) = (vec![folder.to_owned()], MAX_PACKAGE_FILES);
        while let Some(folder) = open.pop() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            let mut paths: Vec<PathBuf> =
                entries.flatten().take(left + 1).map(|entry| entry.path()).collect();
            if paths.len() > left {
                return self.reach(format!("`{PACKAGES}` has more than {MAX_PACKAGE_FILES} files"));
            }
            left -= paths.len();
            paths.sort();
            for path in paths {
                let Ok(about) = fs::symlink_metadata(&path) else { continue };
                all.update(path.as_os_str().as_encoded_bytes());
                for number in [about.size() as i64, about.ctime(), about.ctime_nsec(), about.ino() as i64] {
                    all.update(&number.to_le_bytes());
                }
                if about.is_dir() {
                    open.push(path);
                }
            }
        }
        let shown = self.shown(folder);
        self.digests.insert(shown, hex(all.finish().as_ref()));
    }
}
