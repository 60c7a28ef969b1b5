//! Reads all files of a configuration directory.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use ring::digest;

use super::{ControlFiles, hex};
use crate::confined;

/// The maximum depth of directories.
const MAX_DEPTH: usize = 16;
/// The maximum number of entries of a configuration directory.
const MAX_ENTRIES: usize = 20_000;
/// The maximum number of files of installed packages.
const MAX_PACKAGE_FILES: usize = 100_000;

/// Installed packages. They are too many to read, so sizes and times identify their content.
const PACKAGES: &str = "node_modules";
/// Plans, which agents write while they work.
const PLANS: &str = "plans";

impl ControlFiles {
    /// Reads every file of a directory. Skips the directory if it is a link or belongs to another user.
    pub(super) fn tree(&mut self, folder: &Path) {
        let Ok(about) = fs::symlink_metadata(folder) else { return };
        let display_name = self.display_name(folder);
        let boundary = self.boundary(folder);
        if folder.ancestors().take_while(|above| *above != boundary).any(Path::is_symlink) {
            return self.warn(format!("`{display_name}` is a link to a directory; it is ignored"));
        }
        if !about.is_dir() {
            return;
        }
        if !confined::is_own(&about) {
            return self.warn(format!("`{display_name}` belongs to another user; it is ignored"));
        }
        let mut left = MAX_ENTRIES;
        self.folder(folder, MAX_DEPTH, &mut left);
    }

    fn folder(&mut self, folder: &Path, depth: usize, left: &mut usize) {
        if depth == 0 {
            let display_name = self.display_name(folder);
            return self
                .set_limit(format!("`{display_name}` is nested more than {MAX_DEPTH} directories deep"));
        }
        let Ok(entries) = fs::read_dir(folder) else { return };
        let mut paths: Vec<PathBuf> = entries.flatten().take(*left + 1).map(|entry| entry.path()).collect();
        if paths.len() > *left {
            return self.set_limit(format!("a configuration directory has more than {MAX_ENTRIES} entries"));
        }
        *left -= paths.len();
        paths.sort();
        for path in paths {
            let Ok(about) = fs::symlink_metadata(&path) else { continue };
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if about.is_symlink() && path.is_dir() {
                let display_name = self.display_name(&path);
                self.warn(format!("`{display_name}` is a link to a directory; it is ignored"));
            } else if about.is_dir() && name == PACKAGES {
                self.packages(&path);
            } else if about.is_dir() && name == PLANS {
                // Agents change these files, and none of them is interpreted.
            } else if about.is_dir() {
                self.folder(&path, depth - 1, left);
            } else {
                self.file(path);
            }
        }
    }

    /// Stores a digest of the names, sizes and change times of all files of installed packages.
    fn packages(&mut self, folder: &Path) {
        let mut all = digest::Context::new(&digest::SHA256);
        let (mut open, mut left) = (vec![folder.to_owned()], MAX_PACKAGE_FILES);
        while let Some(folder) = open.pop() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            let mut paths: Vec<PathBuf> =
                entries.flatten().take(left + 1).map(|entry| entry.path()).collect();
            if paths.len() > left {
                return self.set_limit(format!("`{PACKAGES}` has more than {MAX_PACKAGE_FILES} files"));
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
        let key = self.key(folder);
        self.digests.insert(key, hex(all.finish().as_ref()));
    }
}
