//! A file or directory that was opened without following a link.
//!
//! Whoever judges a path opens it at the same time and keeps the handle. A process that uses the path later opens it again,
//! without following a link either, and compares the two objects. So a path that was exchanged meanwhile is refused. The
//! handle itself cannot be mounted, because it belongs to the mounts outside of the sandbox. It keeps the number of the
//! object from being used again.

use std::io::{Error as IoError, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::Error;

/// The flags of an object that is only compared and mounted. It need not be readable.
#[cfg(target_os = "linux")]
const COMPARING: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const COMPARING: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// A path without links, and the open object at it.
#[derive(Debug, Clone)]
pub struct Opened {
    path: PathBuf,
    identity: Identity,
    is_directory: bool,
    handle: Arc<OwnedFd>,
}

/// The device and the number of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) number: u64,
}

/// A path and the object that has to be at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Exact {
    pub(crate) path: PathBuf,
    pub(crate) identity: Identity,
}

impl Exact {
    /// The pair for a path whose object is known.
    pub(crate) fn of(path: &Path, identity: Option<Identity>) -> Option<Self> {
        identity.map(|identity| Self { path: path.to_owned(), identity })
    }
}

impl Opened {
    /// Opens an absolute path.
    ///
    /// # Errors
    ///
    /// Fails if a component of the path is a link, with [`ErrorKind::FilesystemLoop`] or another kind, and if the path does
    /// not exist or cannot be reached.
    pub fn open(path: &Path) -> Result<Self, IoError> {
        Self::of(path, open_exact(path)?)
    }

    /// The object that was opened at a path without following a link.
    ///
    /// # Errors
    ///
    /// Fails if the object has no status.
    pub fn of(path: &Path, handle: OwnedFd) -> Result<Self, IoError> {
        let (identity, is_directory) = facts(handle.as_fd())?;
        Ok(Self { path: path.to_owned(), identity, is_directory, handle: Arc::new(handle) })
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The device and the number of the object.
    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    /// Whether the object is a directory.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.is_directory
    }

    /// Fails if another object is at the path now.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.identity.open(&self.path).map(drop)
    }
}

impl AsFd for Opened {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl PartialEq for Opened {
    fn eq(&self, other: &Self) -> bool {
        (&self.path, self.identity) == (&other.path, other.identity)
    }
}

impl Eq for Opened {}

impl Identity {
    /// Opens this object by its path.
    ///
    /// # Errors
    ///
    /// Fails if another object or a link is there.
    pub(crate) fn open(self, path: &Path) -> Result<OwnedFd, Error> {
        let exchanged = || Error::Exchanged(path.to_owned());
        let opened = open_exact(path).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => Error::Path { path: path.to_owned(), source: error },
            _ => exchanged(),
        })?;
        self.check(opened.as_fd(), path)?;
        Ok(opened)
    }

    /// Fails if an open object is another one. `path` is for the error.
    pub(crate) fn check(self, opened: BorrowedFd<'_>, path: &Path) -> Result<(), Error> {
        let found = facts(opened).map_err(|source| Error::Path { path: path.to_owned(), source })?;
        if found.0 == self { Ok(()) } else { Err(Error::Exchanged(path.to_owned())) }
    }
}

/// The identity of an object, and whether it is a directory. Fails for a link.
#[allow(clippy::unnecessary_cast, clippy::cast_sign_loss, reason = "the types differ between systems")]
fn facts(opened: BorrowedFd<'_>) -> Result<(Identity, bool), IoError> {
    let found = fstat(opened)?;
    let kind = FileType::from_raw_mode(found.st_mode);
    if kind == FileType::Symlink {
        return Err(Errno::LOOP.into());
    }
    let identity = Identity { device: found.st_dev as u64, number: found.st_ino as u64 };
    Ok((identity, kind == FileType::Directory))
}

/// Opens an absolute path in which no component is a link.
pub(crate) fn open_exact(path: &Path) -> Result<OwnedFd, IoError> {
    #[cfg(target_os = "linux")]
    match by_kernel(path) {
        // The kernel or a container has no such call.
        Err(Errno::NOSYS | Errno::PERM) => {}
        opened => return Ok(opened?),
    }
    let mut opened = openat(rustix::fs::CWD, "/", COMPARING, Mode::empty())?;
    for component in path.components() {
        opened = match component {
            Component::Normal(name) => {
                let next = openat(&opened, name, COMPARING | OFlags::NOFOLLOW, Mode::empty())?;
                // With these flags a link itself is opened.
                facts(next.as_fd())?;
                next
            }
            Component::RootDir | Component::CurDir => continue,
            Component::ParentDir | Component::Prefix(_) => return Err(ErrorKind::InvalidInput.into()),
        };
    }
    Ok(opened)
}

/// Opens a path with one call. The kernel reports concurrent changes, and the call is repeated.
#[cfg(target_os = "linux")]
fn by_kernel(path: &Path) -> Result<OwnedFd, Errno> {
    /// The number of attempts.
    const TRIES: usize = 32;
    let mut last = Errno::AGAIN;
    for _ in 0..TRIES {
        let resolve = rustix::fs::ResolveFlags::NO_SYMLINKS;
        match rustix::fs::openat2(rustix::fs::CWD, path, COMPARING, Mode::empty(), resolve) {
            Err(error @ (Errno::AGAIN | Errno::INTR)) => last = error,
            done => return done,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir, remove_dir, rename, write};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn an_exchanged_object_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        create_dir(at("one")).unwrap();
        create_dir(at("other")).unwrap();
        write(at("file"), "").unwrap();
        let (one, file) = (Opened::open(&at("one")).unwrap(), Opened::open(&at("file")).unwrap());
        assert!(one.is_directory() && !file.is_directory());
        assert!(one.check().is_ok() && file.check().is_ok());
        rename(at("one"), at("moved")).unwrap();
        assert!(matches!(one.check(), Err(Error::Exchanged(_))), "it is missing");
        symlink(at("moved"), at("one")).unwrap();
        assert!(matches!(one.check(), Err(Error::Exchanged(_))), "a link, even to the same directory");
        assert!(Opened::open(&at("one")).is_err());
        std::fs::remove_file(at("one")).unwrap();
        rename(at("other"), at("one")).unwrap();
        assert!(matches!(one.check(), Err(Error::Exchanged(_))), "another directory");
        remove_dir(at("one")).unwrap();
        rename(at("moved"), at("one")).unwrap();
        assert!(one.check().is_ok());
    }
}
