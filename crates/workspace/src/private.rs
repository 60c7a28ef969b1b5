//! Directories and files that only their owner may use.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use nix::fcntl::OFlag;

/// The mode of a private directory.
const DIRECTORY_MODE: u32 = 0o700;
/// The mode of a private file.
const FILE_MODE: u32 = 0o600;
/// The permissions of everyone but the owner.
const OTHERS: u32 = 0o077;

/// Makes a directory, and those above it that are missing, for their owner alone. One that exists is repaired.
pub fn make_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)?;
    repair_private_directory(path)
}

/// Takes the permissions of everyone else from a directory. A link, a file, and a directory of another user stay as
/// they are, and so does a path that does not exist.
pub fn repair_private_directory(path: &Path) -> io::Result<()> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path);
    // A directory that even its owner cannot read is private, and a link belongs to whoever made it.
    let Ok(directory) = opened else { return Ok(()) };
    let metadata = directory.metadata()?;
    let is_own = metadata.uid() == nix::unistd::geteuid().as_raw();
    if is_own && metadata.mode() & OTHERS != 0 {
        directory.set_permissions(Permissions::from_mode(metadata.mode() & 0o7777 & !OTHERS))?;
    }
    Ok(())
}

/// How a private file is made; the caller says how it is opened.
#[must_use]
pub fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn directories_are_made_and_repaired_for_their_owner() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b");
        make_private_directory(&path).unwrap();
        assert_eq!((mode(&root.path().join("a")), mode(&path)), (0o700, 0o700));
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        make_private_directory(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
    }

    #[test]
    fn links_files_and_absent_paths_stay_as_they_are() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        fs::create_dir(path("target")).unwrap();
        fs::set_permissions(path("target"), Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(path("target"), path("link")).unwrap();
        fs::write(path("file"), "").unwrap();
        fs::set_permissions(path("file"), Permissions::from_mode(0o644)).unwrap();
        for name in ["link", "file", "absent"] {
            repair_private_directory(&path(name)).unwrap();
        }
        assert_eq!((mode(&path("target")), mode(&path("file"))), (0o755, 0o644));
        assert!(!path("absent").exists());
    }
}
