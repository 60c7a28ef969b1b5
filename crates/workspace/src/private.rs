//! Directories and files that only their owner can use.

use std::fs::{DirBuilder, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use nix::fcntl::OFlag;

/// The mode of a private directory.
const DIRECTORY_MODE: u32 = 0o700;
/// The mode of a private file.
const FILE_MODE: u32 = 0o600;
/// The permissions of all other users.
const OTHERS: u32 = 0o077;

/// Creates a directory and its missing parents for their owner only. The permissions of an existing one are
/// repaired.
pub fn make_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)?;
    repair_private_directory(path)
}

/// Removes the permissions of all other users from a directory. Links, files, missing paths and directories
/// of another user are not changed.
pub fn repair_private_directory(path: &Path) -> io::Result<()> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path);
    // A directory that even its owner cannot read is private, and a link belongs to its creator.
    let Ok(directory) = opened else { return Ok(()) };
    let metadata = directory.metadata()?;
    if is_own(&metadata) && metadata.mode() & OTHERS != 0 {
        directory.set_permissions(Permissions::from_mode(metadata.mode() & 0o7777 & !OTHERS))?;
    }
    Ok(())
}

/// Whether a file belongs to the user of this process.
#[must_use]
pub fn is_own(metadata: &Metadata) -> bool {
    metadata.uid() == nix::unistd::geteuid().as_raw()
}

/// The options for creating a private file. The caller adds how it is opened.
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
    fn directories_are_created_and_repaired_for_their_owner() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b");
        make_private_directory(&path).unwrap();
        assert_eq!((mode(&root.path().join("a")), mode(&path)), (0o700, 0o700));
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        make_private_directory(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
    }

    #[test]
    fn links_files_and_missing_paths_are_not_changed() {
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
