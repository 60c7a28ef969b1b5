//! Opens files and directories of a directory without following links.
//!
//! The links of a path are followed once, when the path is judged. From then on every component of the result must be a
//! real directory: a link in its place means that somebody exchanged it, and the operation fails. The kernel checks this
//! with one call (`openat2`). Where it cannot, each component is opened separately.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, openat, statat};
use rustix::io::Errno;

/// How a path is opened without following links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Opening {
    /// The kernel opens the whole path, if it can.
    #[default]
    Kernel,
    /// Each component is opened separately.
    ByHand,
}

impl Opening {
    /// Every way.
    pub const ALL: [Self; 2] = [Self::Kernel, Self::ByHand];
}

/// The number of times that a path is opened while the kernel reports concurrent changes.
#[cfg(target_os = "linux")]
const TRIES: usize = 32;

/// The flags of a directory that is only a place to start from. It need not be readable.
#[cfg(target_os = "linux")]
const PASSING: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const PASSING: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The flags for reading. Opening a pipe does not wait for a writer, and a terminal does not become ours.
pub(crate) const READING: OFlags = OFlags::RDONLY.union(CAREFUL);
/// The flags for replacing the content in place.
pub(crate) const WRITING: OFlags = OFlags::WRONLY.union(CAREFUL);
const CAREFUL: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a directory by its absolute path, in which no component may be a link.
pub(crate) fn open_directory(path: &Path, opening: Opening) -> Result<OwnedFd, Errno> {
    #[cfg(target_os = "linux")]
    if opening == Opening::Kernel
        && let Some(opened) = by_kernel(CWD, path, PASSING, Scope::Anywhere)
    {
        return opened;
    }
    let root = openat(CWD, "/", PASSING, Mode::empty())?;
    let below = path.strip_prefix("/").map_err(|_| Errno::INVAL)?;
    open(root.as_fd(), below, PASSING, opening)
}

/// Opens a directory by its absolute path, as a place to start from. No component may be a link.
pub fn fixed_directory(path: &Path) -> io::Result<OwnedFd> {
    open_directory(path, Opening::default()).map_err(io_error)
}

/// Opens a directory inside another one, as a place to start from.
pub(crate) fn enter(directory: impl AsFd, below: &Path, opening: Opening) -> Result<OwnedFd, Errno> {
    open(directory.as_fd(), below, PASSING, opening)
}

/// Opens a path inside a directory. Neither a component nor the result is a link. Without a path, opens the directory
/// itself.
pub(crate) fn open(
    directory: BorrowedFd<'_>,
    below: &Path,
    flags: OFlags,
    opening: Opening,
) -> Result<OwnedFd, Errno> {
    if below.components().any(|part| !matches!(part, Component::Normal(_))) {
        return Err(Errno::INVAL);
    }
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    #[cfg(target_os = "linux")]
    if opening == Opening::Kernel
        && let Some(opened) = by_kernel(directory, below, flags, Scope::Beneath)
    {
        return opened;
    }
    by_hand(directory, below, flags)
}

/// Where the kernel looks for a path.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy)]
enum Scope {
    Anywhere,
    Beneath,
}

/// Opens a path with one call, or returns `None` if the kernel or a container has no such call.
#[cfg(target_os = "linux")]
fn by_kernel(
    directory: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    scope: Scope,
) -> Option<Result<OwnedFd, Errno>> {
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::{ResolveFlags, openat2};

    static IS_MISSING: AtomicBool = AtomicBool::new(false);
    if IS_MISSING.load(Ordering::Relaxed) {
        return None;
    }
    let mut resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    if matches!(scope, Scope::Beneath) {
        resolve |= ResolveFlags::BENEATH;
    }
    // With this flag, a link in place of a directory would be reported as "not a directory".
    let flags = flags.difference(OFlags::NOFOLLOW);
    let mut last = Errno::AGAIN;
    for _ in 0..TRIES {
        match openat2(directory, path, flags, Mode::empty(), resolve) {
            Err(Errno::NOSYS) => {
                IS_MISSING.store(true, Ordering::Relaxed);
                return None;
            }
            // The filter of a container, or a reason that opening by hand finds again.
            Err(Errno::PERM) => return None,
            Err(error @ (Errno::AGAIN | Errno::INTR)) => last = error,
            done => return Some(done),
        }
    }
    Some(Err(last))
}

fn by_hand(directory: BorrowedFd<'_>, below: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut names = below.components().map(Component::as_os_str);
    let last = names.next_back().ok_or(Errno::INVAL)?;
    let mut held: Option<OwnedFd> = None;
    for name in names {
        let from = held.as_ref().map_or(directory, AsFd::as_fd);
        held = Some(step(from, name, PASSING)?);
    }
    step(held.as_ref().map_or(directory, AsFd::as_fd), last, flags)
}

/// Opens one name in a directory. A link is an error.
pub(crate) fn step(directory: BorrowedFd<'_>, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    loop {
        match openat(directory, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Err(Errno::INTR) => {}
            // A link in place of a directory is reported as "not a directory".
            Err(Errno::NOTDIR) if is_link(directory, name) => return Err(Errno::LOOP),
            done => return done,
        }
    }
}

/// Opens a directory for passing through.
pub(crate) fn step_into(directory: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    step(directory, name, PASSING)
}

fn is_link(directory: BorrowedFd<'_>, name: &OsStr) -> bool {
    let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink)
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A pipe, a device or a socket.
    Special,
}

/// The facts about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Its kind.
    pub node: Node,
    /// Its permissions.
    pub mode: u32,
    /// Its size.
    pub bytes: u64,
    /// The time of the last change, in seconds and nanoseconds.
    pub modified: (i64, i64),
    /// The user who owns it.
    pub owner: u32,
    /// The number of names that it has.
    pub(crate) links: u64,
    /// The device and the number of the file.
    pub(crate) identity: (u64, u64),
}

impl Status {
    /// Fails for a link.
    #[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "the types differ between systems")]
    pub(crate) fn of(stat: &Stat) -> Result<Self, Errno> {
        let node = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Node::File,
            FileType::Directory => Node::Directory,
            FileType::Symlink => return Err(Errno::LOOP),
            _ => Node::Special,
        };
        Ok(Self {
            node,
            mode: stat.st_mode as u32 & 0o7777,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            owner: stat.st_uid,
            links: stat.st_nlink as u64,
            identity: (stat.st_dev as u64, stat.st_ino as u64),
        })
    }
}

/// Converts an error of the system.
pub(crate) fn io_error(error: Errno) -> io::Error {
    io::Error::from(error)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> (tempfile::TempDir, OwnedFd) {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("root/sub/deep")).unwrap();
        fs::write(top.join("root/sub/deep/file"), "x").unwrap();
        fs::write(top.join("secret"), "x").unwrap();
        symlink("../secret", top.join("root/up")).unwrap();
        symlink("sub", top.join("root/inside")).unwrap();
        symlink("root", top.join("link")).unwrap();
        let root = open_directory(&top.join("root"), Opening::Kernel).unwrap();
        (dir, root)
    }

    #[test]
    fn no_component_may_be_a_link_however_it_is_opened() {
        let (dir, root) = tree();
        for opening in Opening::ALL {
            let of = |path: &str| open(root.as_fd(), Path::new(path), READING, opening).map(drop);
            let cases = [
                ("sub/deep/file", Ok(())),
                ("sub", Ok(())),
                ("", Ok(())),
                ("inside/deep/file", Err(Errno::LOOP)),
                ("up", Err(Errno::LOOP)),
                ("inside", Err(Errno::LOOP)),
                ("sub/none", Err(Errno::NOENT)),
                ("none/file", Err(Errno::NOENT)),
                ("sub/deep/file/x", Err(Errno::NOTDIR)),
                ("../secret", Err(Errno::INVAL)),
                ("/etc/passwd", Err(Errno::INVAL)),
            ];
            for (path, expected) in cases {
                assert_eq!(of(path), expected, "{path} {opening:?}");
            }
            let top = dir.path().canonicalize().unwrap();
            assert_eq!(open_directory(&top.join("link"), opening).map(drop), Err(Errno::LOOP));
            assert_eq!(open_directory(&top.join("link/sub"), opening).map(drop), Err(Errno::LOOP));
            assert_eq!(open_directory(&top.join("root/sub"), opening).map(drop), Ok(()));
            assert_eq!(open_directory(Path::new("/"), opening).map(drop), Ok(()));
        }
    }
}
