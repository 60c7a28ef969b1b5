//! A directory that was reached without following a link.

use std::ffi::CStr;
use std::io::{Error, ErrorKind};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd as _;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fchmod, fstat, openat, statat};
use rustix::io::Errno;

/// The permissions that the owner needs to use entries.
const OWNER: Mode = Mode::RWXU;

/// An open directory.
#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

/// The end of a path.
#[derive(Debug)]
pub(crate) enum Reached {
    Folder(Folder),
    /// A component is missing or is a file.
    Missing,
    /// A component is a link.
    Link,
}

impl Folder {
    /// Opens an absolute path.
    pub(crate) fn open(path: &Path) -> Result<Reached, Error> {
        #[cfg(target_os = "linux")]
        match Self::open_at_once(path) {
            Ok(folder) => return Ok(Reached::Folder(folder)),
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Reached::Missing),
            // The component with a link or without permissions is found below.
            Err(_) => {}
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut folder = openat(CWD, "/", flags, Mode::empty())?;
        for component in path.components() {
            let name = match component {
                Component::Normal(name) => name,
                Component::RootDir | Component::CurDir => continue,
                Component::ParentDir | Component::Prefix(_) => return Err(ErrorKind::InvalidInput.into()),
            };
            let opened = match openat(&folder, name, flags, Mode::empty()) {
                // A command may have removed its owner's permissions.
                #[cfg(target_os = "linux")]
                Err(Errno::ACCESS) => reopened(&folder, name, flags),
                opened => opened,
            };
            folder = match opened {
                Ok(next) => next,
                Err(Errno::NOENT) => return Ok(Reached::Missing),
                // The error for a link differs between systems.
                Err(Errno::LOOP | Errno::NOTDIR | Errno::MLINK) => {
                    let is_link = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)
                        .is_ok_and(|data| FileType::from_raw_mode(data.st_mode) == FileType::Symlink);
                    return Ok(if is_link { Reached::Link } else { Reached::Missing });
                }
                Err(error) => return Err(error.into()),
            };
        }
        Ok(Reached::Folder(Self(folder)))
    }

    /// Opens an absolute path with one call. Every link is an error of its own.
    #[cfg(target_os = "linux")]
    fn open_at_once(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat2(CWD, path, flags, Mode::empty(), rustix::fs::ResolveFlags::NO_SYMLINKS).map(Self)
    }

    /// The names of the entries. Names that are not text are changed, so that they match no name.
    pub(crate) fn names(&self) -> Result<impl Iterator<Item = Result<String, Error>>, Error> {
        let is_own = |name: &CStr| matches!(name.to_bytes(), b"." | b"..");
        let entries = Dir::read_from(&self.0)?;
        Ok(entries.filter_map(move |entry| match entry {
            Ok(entry) if is_own(entry.file_name()) => None,
            Ok(entry) => Some(Ok(entry.file_name().to_string_lossy().into_owned())),
            Err(error) => Some(Err(error.into())),
        }))
    }
}

/// Opens a directory after its owner has got the permissions for it.
#[cfg(target_os = "linux")]
fn reopened(folder: &OwnedFd, name: &std::ffi::OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    // Changes through a descriptor follow no link. What belongs to others cannot be changed, which is fine.
    let _ = fchmod(folder, Mode::from_raw_mode(fstat(folder)?.st_mode) | OWNER);
    let place = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = openat(folder, name, place, Mode::empty())?;
    let mode = Mode::from_raw_mode(fstat(&directory)?.st_mode) | OWNER;
    rustix::fs::chmod(format!("/proc/self/fd/{}", directory.as_raw_fd()), mode)?;
    openat(folder, name, flags, Mode::empty())
}
