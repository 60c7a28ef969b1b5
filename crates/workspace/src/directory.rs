//! An open directory whose entries a confined program may exchange at any time.
//!
//! Every operation starts from the handle and follows no link. So it reaches an entry of this directory, or fails.

use std::ffi::{OsStr, OsString};
use std::io::{Error, ErrorKind};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use codewright_sandbox::Opened;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_NOW, fchmod, fstat, futimens,
    mkdirat, openat, readlinkat, renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::beneath::{Opening, open_directory, step};

/// The flags of a directory that is read.
const READING: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// The flags of a directory that its owner may have locked.
#[cfg(target_os = "linux")]
const LOCKED: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// The mode of a private directory, and the permissions that its owner needs.
const PRIVATE: Mode = Mode::RWXU;
/// The permissions of all other users.
const OTHERS: u32 = 0o077;
/// The largest number of nested directories that are open at once. Deeper ones are moved up before they are removed.
const MAX_DEPTH: usize = 64;
/// The largest number of entries that one call removes.
const MAX_REMOVED: usize = 10_000_000;
/// The number of entries that are read before they are removed.
const BATCH: usize = 1000;
/// The number of attempts to replace what is in the way, or to find a free name.
const TRIES: usize = 100;

/// A directory that was opened without following a link.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    handle: OwnedFd,
}

/// The kind of an entry, and the time of its last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryStatus {
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Whether it is a symbolic link.
    pub is_link: bool,
    /// The time of the last change. `None` if it is before 1970.
    pub modified: Option<SystemTime>,
}

impl EntryStatus {
    #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
    fn of(stat: &Stat) -> Self {
        let kind = FileType::from_raw_mode(stat.st_mode);
        let seconds = u64::try_from(stat.st_mtime as i64).ok();
        let modified = seconds.and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
        Self { is_directory: kind == FileType::Directory, is_link: kind == FileType::Symlink, modified }
    }
}

impl Directory {
    /// Opens a directory that only the user chooses. Links in its path are followed.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be opened, or if its path is exchanged meanwhile.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let path = path.canonicalize()?;
        let place = open_directory(&path, Opening::default())?;
        let handle = openat(&place, ".", READING, Mode::empty())?;
        Ok(Self { path, handle })
    }

    /// The path, without links when it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory for a sandbox.
    ///
    /// # Errors
    ///
    /// Fails if the handle cannot be copied.
    pub fn opened(&self) -> Result<Opened, Error> {
        Opened::of(&self.path, self.handle.try_clone()?)
    }

    /// Opens a private directory in this one, and creates it if it is missing. The permissions of other users are removed.
    ///
    /// # Errors
    ///
    /// Fails if a link or a file is there, or a directory of another user.
    pub fn private_child(&self, name: &OsStr) -> Result<Self, Error> {
        match mkdirat(&self.handle, name, PRIVATE) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let handle = open_own(self.handle.as_fd(), name)?;
        let stat = fstat(&handle)?;
        if stat.st_uid != nix::unistd::geteuid().as_raw() {
            return Err(Error::new(ErrorKind::PermissionDenied, "it belongs to another user"));
        }
        let mode = Mode::from_raw_mode(stat.st_mode);
        if mode.bits() as u32 & OTHERS != 0 {
            fchmod(&handle, mode & PRIVATE)?;
        }
        Ok(Self { path: self.path.join(name), handle })
    }

    /// Creates a private directory with a new name that begins with `prefix`.
    ///
    /// # Errors
    ///
    /// Fails if no directory can be created.
    pub fn fresh_child(&self, prefix: &str) -> Result<Self, Error> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        for _ in 0..TRIES {
            let number = COUNTER.fetch_add(1, Ordering::Relaxed);
            let name = OsString::from(format!("{prefix}.{}-{number}", std::process::id()));
            match mkdirat(&self.handle, &name, PRIVATE) {
                Ok(()) => return self.private_child(&name),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::new(ErrorKind::AlreadyExists, "no free name for a directory"))
    }

    /// Opens a directory in this one, and creates it if it is missing. A link or a file in its place is removed.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be created.
    pub fn make(&self, name: &OsStr) -> Result<Self, Error> {
        for _ in 0..TRIES {
            match mkdirat(&self.handle, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            match open_own(self.handle.as_fd(), name) {
                Ok(handle) => return Ok(Self { path: self.path.join(name), handle }),
                Err(Errno::LOOP | Errno::NOTDIR) => match unlinkat(&self.handle, name, AtFlags::empty()) {
                    // Something else may have taken its place.
                    Ok(()) | Err(Errno::NOENT | Errno::ISDIR | Errno::PERM) => {}
                    Err(error) => return Err(error.into()),
                },
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::LOOP.into())
    }

    /// Opens a path of directories in this one like [`Directory::make`].
    ///
    /// # Errors
    ///
    /// Fails if one of them cannot be created.
    pub fn make_all(&self, path: &Path) -> Result<Self, Error> {
        let mut names = path.iter();
        let mut last = self.make(names.next().ok_or(ErrorKind::InvalidInput)?)?;
        for name in names {
            last = last.make(name)?;
        }
        Ok(last)
    }

    /// The facts about an entry. `None` if it is missing.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be searched.
    pub fn status(&self, name: &OsStr) -> Result<Option<EntryStatus>, Error> {
        match statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(EntryStatus::of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// At most `limit` names of entries.
    ///
    /// # Errors
    ///
    /// Fails if the directory cannot be read.
    pub fn names(&self, limit: usize) -> Result<Vec<OsString>, Error> {
        Ok(names(self.handle.as_fd(), limit)?)
    }

    /// Sets the time of the last change of this directory to now.
    ///
    /// # Errors
    ///
    /// Fails if the file system does not permit it.
    pub fn touch(&self) -> Result<(), Error> {
        Ok(futimens(&self.handle, &now())?)
    }

    /// Sets the time of the last change of a file in this directory to now, and creates it if it is missing.
    ///
    /// # Errors
    ///
    /// Fails if a link is there, or the file cannot be created.
    pub fn touch_file(&self, name: &OsStr) -> Result<(), Error> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.handle, name, flags, Mode::from_raw_mode(0o600))?;
        Ok(futimens(&file, &now())?)
    }

    /// Creates an empty file without permissions, unless it exists.
    ///
    /// # Errors
    ///
    /// Fails if something else is there.
    pub fn blank_file(&self, name: &OsStr) -> Result<PathBuf, Error> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.handle, name, flags, Mode::empty()) {
            Ok(_) => {}
            Err(Errno::EXIST) => {
                let stat = statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)?;
                let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
                let is_blank = is_file && stat.st_size == 0 && Mode::from_raw_mode(stat.st_mode).is_empty();
                if !is_blank {
                    return Err(Error::new(ErrorKind::AlreadyExists, "something else is in its place"));
                }
            }
            Err(error) => return Err(error.into()),
        }
        Ok(self.path.join(name))
    }

    /// Creates a link in this directory.
    ///
    /// # Errors
    ///
    /// Fails if an entry of this name exists.
    pub fn link(&self, name: &OsStr, target: &Path) -> Result<(), Error> {
        Ok(symlinkat(target, &self.handle, name)?)
    }

    /// The target of a link in this directory. `None` if the entry is not a link.
    #[must_use]
    pub fn target(&self, name: &OsStr) -> Option<PathBuf> {
        use std::os::unix::ffi::OsStringExt as _;
        let target = readlinkat(&self.handle, name, Vec::new()).ok()?;
        Some(OsString::from_vec(target.into_bytes()).into())
    }

    /// Removes an entry, and everything in it if it is a directory. A missing entry is no error.
    ///
    /// # Errors
    ///
    /// Fails if a part of it cannot be removed, and if it has more than ten million entries.
    pub fn remove(&self, name: &OsStr) -> Result<(), Error> {
        match unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(remove_tree(self.handle.as_fd(), name)?)
    }

    /// Whether the files in this directory exceed a limit, or are nested deeper than any cache.
    #[must_use]
    pub fn exceeds(&self, max_bytes: u64, max_files: usize) -> bool {
        let (mut bytes, mut files) = (0_u64, 0_usize);
        let Ok(top) = self.handle.try_clone() else { return false };
        let mut open: Vec<(OwnedFd, Dir)> = entered(top).into_iter().collect();
        loop {
            let depth = open.len();
            let Some((directory, entries)) = open.last_mut() else { return false };
            let Some(entry) = entries.next() else {
                open.pop();
                continue;
            };
            let Ok(entry) = entry else { continue };
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            let Ok(stat) = statat(&*directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            bytes = bytes.saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
            files += 1;
            if bytes > max_bytes || files > max_files {
                return true;
            }
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                if depth >= MAX_DEPTH {
                    return true;
                }
                let below = openat(&*directory, entry.file_name(), READING | OFlags::NOFOLLOW, Mode::empty());
                open.extend(below.ok().and_then(entered));
            }
        }
    }
}

fn now() -> Timestamps {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    Timestamps { last_access: now, last_modification: now }
}

/// A directory with its entries, unless it cannot be read.
fn entered(directory: OwnedFd) -> Option<(OwnedFd, Dir)> {
    let entries = Dir::read_from(&directory).ok()?;
    Some((directory, entries))
}

fn names(directory: BorrowedFd<'_>, limit: usize) -> Result<Vec<OsString>, Errno> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        if names.len() >= limit {
            break;
        }
        names.push(OsStr::from_bytes(name).to_owned());
    }
    Ok(names)
}

/// Opens a directory for reading, after its owner has got the permissions for it.
fn open_own(directory: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    match step(directory, name, READING) {
        #[cfg(target_os = "linux")]
        Err(Errno::ACCESS) => {
            use std::os::fd::AsRawFd as _;
            let place = step(directory, name, LOCKED)?;
            let mode = Mode::from_raw_mode(fstat(&place)?.st_mode) | PRIVATE;
            // The descriptor names the directory itself, so no link is followed.
            rustix::fs::chmod(format!("/proc/self/fd/{}", place.as_raw_fd()), mode)?;
            openat(&place, ".", READING, Mode::empty())
        }
        opened => opened,
    }
}

/// Removes a directory. It is not reached by its path again, and few directories are open at once.
fn remove_tree(parent: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    let mut open = vec![(open_own(parent, name)?, name.to_owned())];
    let (mut removed, mut moved) = (0_usize, 0_usize);
    while let Some((directory, _)) = open.last() {
        // Without these permissions its owner cannot remove the entries. What belongs to others fails below.
        let mode = Mode::from_raw_mode(fstat(directory)?.st_mode);
        if !mode.contains(PRIVATE) {
            let _ = fchmod(directory, mode | PRIVATE);
        }
        let mut below = None;
        let entries = names(directory.as_fd(), BATCH)?;
        let is_empty = entries.is_empty();
        for entry in entries {
            removed += 1;
            if removed > MAX_REMOVED {
                return Err(Errno::TOOBIG);
            }
            match unlinkat(directory, &entry, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => continue,
                Err(Errno::ISDIR | Errno::PERM) => {}
                Err(error) => return Err(error),
            }
            match unlinkat(directory, &entry, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::ACCESS) if open.len() < MAX_DEPTH => {
                    below = Some((open_own(directory.as_fd(), &entry)?, entry));
                    break;
                }
                Err(Errno::NOTEMPTY | Errno::EXIST) => {
                    let (top, _) = open.first().ok_or(Errno::INVAL)?;
                    moved += 1;
                    renameat(directory, &entry, top, format!(".removed-{}-{moved}", std::process::id()))?;
                }
                Err(error) => return Err(error),
            }
        }
        match below {
            Some(below) => open.push(below),
            None if is_empty => {
                let Some((_, name)) = open.pop() else { break };
                let above = open.last().map_or(parent, |(above, _)| above.as_fd());
                match unlinkat(above, &name, AtFlags::REMOVEDIR) {
                    // A program may have created or exchanged something meanwhile. The directory above is read again.
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) if !open.is_empty() => {}
                    Err(error) => return Err(error),
                }
            }
            None => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions, create_dir, create_dir_all, read_to_string, write};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn name(text: &str) -> &OsStr {
        OsStr::new(text)
    }

    #[test]
    fn a_link_is_never_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        create_dir_all(at("outside/deep")).unwrap();
        write(at("outside/deep/file"), "kept").unwrap();
        create_dir(at("top")).unwrap();
        let top = Directory::open(&at("top")).unwrap();
        for link in ["private", "made", "removed", "used"] {
            symlink(at("outside"), at("top").join(link)).unwrap();
        }
        assert!(top.private_child(name("private")).is_err());
        assert!(top.touch_file(name("used")).is_err());
        let made = top.make_all(Path::new("made/deep")).unwrap();
        made.link(name("link"), Path::new("/x")).unwrap();
        top.remove(name("removed")).unwrap();
        assert_eq!(read_to_string(at("outside/deep/file")).unwrap(), "kept");
        assert_eq!(fs::read_dir(at("outside")).unwrap().count(), 1);
        assert_eq!(fs::read_dir(at("outside/deep")).unwrap().count(), 1);
        assert_eq!(made.target(name("link")), Some(PathBuf::from("/x")));
        assert!(fs::symlink_metadata(at("top/removed")).is_err());
        assert!(top.opened().unwrap().is_directory());
    }

    #[test]
    fn a_private_directory_is_closed_to_others_and_open_to_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let top = Directory::open(folder.path()).unwrap();
        for mode in [0o777, 0o000, 0o500] {
            let path = folder.path().join("private");
            if !path.exists() {
                create_dir(&path).unwrap();
            }
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            top.private_child(name("private")).unwrap();
            let found = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(found & 0o077, 0, "{mode:o}");
        }
    }

    #[test]
    fn a_directory_of_another_user_is_refused() {
        if !nix::unistd::geteuid().is_root() {
            // Only root can give a directory away.
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let top = Directory::open(folder.path()).unwrap();
        create_dir(folder.path().join("private")).unwrap();
        std::os::unix::fs::chown(folder.path().join("private"), Some(12345), None).unwrap();
        let error = top.private_child(name("private")).unwrap_err();
        assert_eq!(error.to_string(), "it belongs to another user");
    }

    #[test]
    fn deep_and_locked_directories_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let top = Directory::open(folder.path()).unwrap();
        let mut last = top.make(name("tree")).unwrap();
        for _ in 0..MAX_DEPTH * 5 {
            last.touch_file(name("file")).unwrap();
            last = last.make(name("d")).unwrap();
        }
        create_dir_all(folder.path().join("tree/locked/inside")).unwrap();
        fs::set_permissions(folder.path().join("tree/locked"), Permissions::from_mode(0o000)).unwrap();
        assert!(top.exceeds(u64::MAX, usize::MAX), "it is too deep");
        top.remove(name("tree")).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        top.remove(name("tree")).unwrap();
    }

    #[test]
    fn sizes_are_limited_and_links_are_not_counted_through() {
        let folder = tempfile::tempdir().unwrap();
        let top = Directory::open(folder.path()).unwrap();
        let small = top.make(name("small")).unwrap();
        write(folder.path().join("big"), [0; 100_000]).unwrap();
        symlink(folder.path().join("big"), folder.path().join("small/link")).unwrap();
        assert!(!small.exceeds(50_000, 10));
        assert!(top.exceeds(50_000, 10));
        assert!(top.exceeds(u64::MAX, 2));
    }

    #[test]
    fn a_fresh_directory_is_new() {
        let folder = tempfile::tempdir().unwrap();
        let top = Directory::open(folder.path()).unwrap();
        let (one, other) = (top.fresh_child("x").unwrap(), top.fresh_child("x").unwrap());
        assert_ne!(one.path(), other.path());
        assert!(top.status(one.path().file_name().unwrap()).unwrap().unwrap().is_directory);
    }
}
