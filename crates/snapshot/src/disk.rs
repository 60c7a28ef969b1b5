//! Access to files of the worktree without following links.
//!
//! The worktree is opened once, and every directory of a path is opened separately from there. None of them may be a
//! link. So nothing outside the worktree is read, written or removed, even if the tree changes meanwhile. Reading is bounded and never waits for a pipe.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat, renameat};
use nix::sys::signal::kill;
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, fstatat, mkdirat};
use nix::unistd::{Pid, UnlinkatFlags, symlinkat, unlinkat};

use crate::id::{File, Kind};
use crate::plan::{Disk, Reason};

/// The limit for the size of a file whose content is stored.
pub const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// The mode of a new file, before the user's umask.
const NEW_MODE: u32 = 0o666;
/// The mode of a new directory, before the user's umask.
const DIRECTORY_MODE: u32 = 0o777;
/// The number of names that are tried for a temporary file.
const TRIES: u64 = 100;

/// The version of a file, as far as it shows without reading the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The state of a path.
pub(crate) struct Found {
    /// The kind of entry.
    pub(crate) disk: Disk,
    /// Its version, if it exists.
    pub(crate) stamp: Option<Stamp>,
}

/// The open worktree.
pub(crate) struct Root(Result<OwnedFd, Errno>);

impl Root {
    /// Opens the worktree by its path without links. A failure is reported by the first use.
    pub(crate) fn open(path: &Path) -> Self {
        let errno = |error: io::Error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
        Self(codewright_workspace::fixed_directory(path).map_err(errno))
    }

    /// Opens a directory inside.
    fn enter(&self, path: &Path, missing: Missing) -> Result<OwnedFd, Errno> {
        let root = self.0.as_ref().map_err(|error| *error)?;
        let mut directory = None;
        for name in path.components() {
            let Component::Normal(name) = name else { return Err(Errno::EINVAL) };
            directory = Some(enter(directory.as_ref().unwrap_or(root), name, missing)?);
        }
        directory.map_or_else(|| root.try_clone().map_err(|_| Errno::EMFILE), Ok)
    }
}

/// The open parent directory of a path, and the last name of the path.
struct Spot {
    parent: OwnedFd,
    name: OsString,
}

/// Returns the state of a path inside the root.
pub(crate) fn look(root: &Root, path: &Path) -> Found {
    let other = |reason| Found { disk: Disk::Other(reason), stamp: None };
    match read(root, path) {
        Ok(Read::File(file, stamp)) => Found { disk: Disk::Holds(file.content()), stamp: Some(stamp) },
        Ok(Read::Missing) => Found { disk: Disk::Missing, stamp: None },
        Ok(Read::Directory) => Found { disk: Disk::Directory, stamp: None },
        Ok(Read::Special) => other(Reason::Special),
        // A file larger than the limit is not one that the agent wrote.
        Ok(Read::TooLarge) => other(Reason::ChangedSince),
        Ok(Read::Detached) => other(Reason::Detached),
        Err(error) => other(Reason::Unreadable(error.to_string())),
    }
}

/// The result of reading a path.
pub(crate) enum Read {
    Missing,
    File(File, Stamp),
    Directory,
    Special,
    TooLarge,
    /// A parent directory is a link or a file.
    Detached,
}

/// Reads a path inside the root.
pub(crate) fn read(root: &Root, path: &Path) -> io::Result<Read> {
    let spot = match spot(root, path, Missing::Left) {
        Ok(spot) => spot,
        Err(Errno::ENOENT) => return Ok(Read::Missing),
        Err(Errno::ELOOP | Errno::ENOTDIR) => return Ok(Read::Detached),
        Err(error) => return Err(error.into()),
    };
    let stat = match stat(&spot) {
        Ok(stat) => stat,
        Err(Errno::ENOENT) => return Ok(Read::Missing),
        Err(error) => return Err(error.into()),
    };
    let stamp = stamp(&stat);
    let kind = SFlag::from_bits_truncate(stat.st_mode & SFlag::S_IFMT.bits());
    if kind == SFlag::S_IFLNK {
        let bytes = readlinkat(spot.parent.as_fd(), spot.name.as_os_str())?.into_vec();
        return Ok(Read::File(File { kind: Kind::Link, bytes }, stamp));
    }
    if kind == SFlag::S_IFDIR {
        return Ok(Read::Directory);
    }
    if kind != SFlag::S_IFREG {
        return Ok(Read::Special);
    }
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = fs::File::from(openat(spot.parent.as_fd(), spot.name.as_os_str(), flags, Mode::empty())?);
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Ok(Read::TooLarge);
    }
    let kind = if stat.st_mode & 0o100 == 0 { Kind::File } else { Kind::Executable };
    Ok(Read::File(File { kind, bytes }, stamp))
}

/// The number of parent directories of a path that are missing, counted from the path.
pub(crate) fn missing_parents(root: &Root, path: &Path) -> usize {
    let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    above.take_while(|above| root.enter(above, Missing::Left).is_err()).count()
}

/// Writes a file atomically if it is still the version that was seen.
///
/// Missing directories are created. The permissions of a replaced file are kept, except the right to execute
/// it.
pub(crate) fn write(root: &Root, path: &Path, file: &File, seen: Option<Stamp>) -> io::Result<()> {
    let spot = spot(root, path, Missing::Made)?;
    let old = current(&spot, seen)?;
    if old.is_some_and(|old| is_kind(&old, SFlag::S_IFDIR)) {
        // Fails unless the directory is empty.
        unlinkat(spot.parent.as_fd(), spot.name.as_os_str(), UnlinkatFlags::RemoveDir)?;
    }
    let temporary = put(&spot, file, old.as_ref())?;
    // The version is checked as late as possible: a change in between is the user's.
    let renamed = current(&spot, seen).and_then(|_| {
        let parent = spot.parent.as_fd();
        Ok(renameat(parent, temporary.as_os_str(), parent, spot.name.as_os_str())?)
    });
    if renamed.is_err() {
        // The first error is reported.
        unlinkat(spot.parent.as_fd(), temporary.as_os_str(), UnlinkatFlags::NoRemoveDir).unwrap_or_default();
    }
    renamed
}

/// Removes a file if it is still the version that was seen.
pub(crate) fn remove(root: &Root, path: &Path, seen: Option<Stamp>) -> io::Result<()> {
    let spot = spot(root, path, Missing::Left)?;
    current(&spot, seen)?;
    Ok(unlinkat(spot.parent.as_fd(), spot.name.as_os_str(), UnlinkatFlags::NoRemoveDir)?)
}

/// Removes temporary files that a killed process left in a directory.
pub(crate) fn sweep(root: &Root, path: &Path) {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let Ok(directory) = root.enter(path, Missing::Left) else { return };
    // A directory that was only passed cannot be listed.
    let listed = openat(directory.as_fd(), ".", flags, Mode::empty()).and_then(Dir::from_fd);
    let Ok(mut listed) = listed else { return };
    for entry in listed.iter().flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let writer = name.to_str().and_then(|name| name.strip_prefix(".codewright-")?.strip_suffix(".tmp"));
        let writer = writer.and_then(|numbers| numbers.split_once('-')?.0.parse::<i32>().ok());
        let is_dead = |id| matches!(kill(Pid::from_raw(id), None), Err(Errno::ESRCH));
        if writer.is_some_and(|id| id > 0 && is_dead(id)) {
            // A file that cannot be removed is tried again the next time.
            unlinkat(directory.as_fd(), name, UnlinkatFlags::NoRemoveDir).unwrap_or_default();
        }
    }
}

/// Removes a directory if it is empty. Returns whether it was.
pub(crate) fn remove_empty(root: &Root, path: &Path) -> bool {
    let Ok(spot) = spot(root, path, Missing::Left) else { return false };
    unlinkat(spot.parent.as_fd(), spot.name.as_os_str(), UnlinkatFlags::RemoveDir).is_ok()
}

/// What to do with a missing directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Left,
    Made,
}

fn spot(root: &Root, path: &Path, missing: Missing) -> Result<Spot, Errno> {
    let mut names = path.components();
    let Some(Component::Normal(name)) = names.next_back() else { return Err(Errno::EINVAL) };
    Ok(Spot { parent: root.enter(names.as_path(), missing)?, name: name.to_owned() })
}

fn enter(parent: &OwnedFd, name: &OsStr, missing: Missing) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    match openat(parent.as_fd(), name, flags, Mode::empty()) {
        Err(Errno::ENOENT) if missing == Missing::Made => {
            mkdirat(parent.as_fd(), name, Mode::from_bits_truncate(DIRECTORY_MODE))?;
            openat(parent.as_fd(), name, flags, Mode::empty())
        }
        opened => opened,
    }
}

fn stat(spot: &Spot) -> Result<FileStat, Errno> {
    fstatat(spot.parent.as_fd(), spot.name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW)
}

/// Returns the current entry, which must be the version that was seen.
fn current(spot: &Spot, seen: Option<Stamp>) -> io::Result<Option<FileStat>> {
    let now = match stat(spot) {
        Ok(stat) => Some(stat),
        Err(Errno::ENOENT) => None,
        Err(error) => return Err(error.into()),
    };
    // Directories have no version. Only an empty one is ever replaced.
    let version = now.as_ref().filter(|stat| !is_kind(stat, SFlag::S_IFDIR)).map(stamp);
    if version != seen {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it has just been changed"));
    }
    Ok(now)
}

fn put(spot: &Spot, file: &File, old: Option<&FileStat>) -> io::Result<OsString> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    for _ in 0..TRIES {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!(".codewright-{}-{number}.tmp", std::process::id()));
        match put_as(spot, &name, file, old) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                // The first error is reported.
                unlinkat(spot.parent.as_fd(), name.as_os_str(), UnlinkatFlags::NoRemoveDir)
                    .unwrap_or_default();
                return Err(error);
            }
            Ok(()) => return Ok(name),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "no free name for a temporary file"))
}

fn put_as(spot: &Spot, name: &OsStr, file: &File, old: Option<&FileStat>) -> io::Result<()> {
    if file.kind == Kind::Link {
        return Ok(symlinkat(OsStr::from_bytes(&file.bytes), spot.parent.as_fd(), name)?);
    }
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let fresh = if file.kind == Kind::Executable { NEW_MODE | 0o111 } else { NEW_MODE };
    let opened = openat(spot.parent.as_fd(), name, flags, Mode::from_bits_truncate(fresh))?;
    if let Some(old) = old.filter(|old| is_kind(old, SFlag::S_IFREG)) {
        let kept = old.st_mode & 0o7777;
        let mode = match file.kind {
            // Every user who may read it may execute it.
            Kind::Executable => kept | (kept & 0o444) >> 2,
            Kind::File | Kind::Link => kept & !0o111,
        };
        fchmod(opened.as_fd(), Mode::from_bits_truncate(mode))?;
    }
    let mut opened = fs::File::from(opened);
    opened.write_all(&file.bytes)?;
    opened.sync_data()
}

fn is_kind(stat: &FileStat, kind: SFlag) -> bool {
    stat.st_mode & SFlag::S_IFMT.bits() == kind.bits()
}

fn stamp(stat: &FileStat) -> Stamp {
    Stamp {
        inode: stat.st_ino,
        size: stat.st_size,
        modified: (stat.st_mtime, stat.st_mtime_nsec),
        changed: (stat.st_ctime, stat.st_ctime_nsec),
    }
}
