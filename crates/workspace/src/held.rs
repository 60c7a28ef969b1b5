//! A place together with the open directory above it, from the moment at which the place was judged.
//!
//! Reading, writing and removing start from that directory and follow no link. So they reach the object that was
//! judged, or fail with [`Error::Replaced`], whatever others rename meanwhile. A pipe, a device or a socket in place of
//! a file is never waited for.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, fchmod, fstat, ftruncate, mkdirat, openat, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;

use crate::beneath::{self, Node, Opening, READING, Status, WRITING, io_error};
use crate::documents::Documents;
use crate::{Error, Place};

/// The mode of a new file, before the process's umask.
const NEW_FILE_MODE: Mode = Mode::from_raw_mode(0o666);
/// The mode of a new directory, before the process's umask.
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o777);
/// The number of names that are tried for a temporary file.
const TRIES: usize = 100;

/// A judged place, and the directory that its operations start from.
#[derive(Debug, Clone)]
pub struct Held {
    /// The place.
    pub place: Place,
    directory: Arc<OwnedFd>,
    /// The rest of the path, without links. Empty for the directory itself.
    below: PathBuf,
    opening: Opening,
    /// The documents of the user's editor, through which files are read and written.
    pub(crate) documents: Option<Arc<dyn Documents>>,
}

/// What to do with missing directories.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Left,
    Made,
}

/// The open parent of an entry.
struct Parent {
    directory: Arc<OwnedFd>,
    name: OsString,
    /// The number of directories that were created, counted from the entry.
    made: usize,
}

impl Held {
    /// Holds a place below a directory, both without links.
    ///
    /// If the directory does not exist or cannot be entered, one above it is held.
    pub(crate) fn new(place: Place, directory: &Path, opening: Opening) -> Result<Self, Error> {
        for above in directory.ancestors() {
            match beneath::open_directory(above, opening) {
                Ok(directory) => {
                    let below = place.real.strip_prefix(above).unwrap_or(&place.real).to_owned();
                    let (directory, documents) = (Arc::new(directory), None);
                    return Ok(Self { place, directory, below, opening, documents });
                }
                Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {}
                Err(error) => return Err(failed(&place.real, error)),
            }
        }
        Err(failed(&place.real, Errno::NOENT))
    }

    /// Reads and writes files through the documents of an editor, if there are any.
    #[must_use]
    pub fn with_documents(self, documents: Option<Arc<dyn Documents>>) -> Self {
        Self { documents, ..self }
    }

    /// Returns the facts about the entry, or `None` if it is missing.
    pub fn status(&self) -> Result<Option<Status>, Error> {
        let found = if self.below.as_os_str().is_empty() {
            fstat(&*self.directory)
        } else {
            let parent = self.parent(Missing::Left);
            parent.and_then(|at| statat(&*at.directory, &at.name, AtFlags::SYMLINK_NOFOLLOW))
        };
        match found.and_then(|stat| Status::of(&stat)) {
            Ok(status) => Ok(Some(status)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Opens a regular file for reading.
    pub fn file(&self) -> Result<File, Error> {
        self.file_below(Path::new("")).map(|(file, _)| file)
    }

    /// Opens a regular file inside this directory for reading.
    pub(crate) fn file_below(&self, path: &Path) -> Result<(File, Status), Error> {
        let below = if path.as_os_str().is_empty() { self.below.clone() } else { self.below.join(path) };
        let opened = beneath::open(self.directory.as_fd(), &below, READING, self.opening);
        let opened = opened.and_then(|opened| {
            let status = Status::of(&fstat(&opened)?)?;
            Ok((opened, status))
        });
        match opened {
            Ok((opened, status))
                if status.node == Node::File && !is_process(&self.place.real.join(path), &opened) =>
            {
                Ok((File::from(opened), status))
            }
            // A socket, or a device without a driver.
            Ok(_) | Err(Errno::NXIO | Errno::NODEV) => {
                let source = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
                Err(Error::at(&self.place.real, source))
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Reads a file of at most `limit_bytes`, as the user's editor shows it if one offers its documents.
    pub fn read(&self, limit_bytes: u64) -> Result<Vec<u8>, Error> {
        match self.document(limit_bytes) {
            Some(text) => Ok(text.into_bytes()),
            None => self.read_saved(limit_bytes),
        }
    }

    /// Reads a file from the disk.
    pub(crate) fn read_saved(&self, limit_bytes: u64) -> Result<Vec<u8>, Error> {
        let (file, status) = self.file_below(Path::new(""))?;
        let too_large = || Error::TooLarge { path: self.place.real.clone(), limit_bytes };
        if status.bytes > limit_bytes {
            return Err(too_large());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(status.bytes).unwrap_or(0) + 1);
        file.take(limit_bytes + 1)
            .read_to_end(&mut bytes)
            .map_err(|source| Error::at(&self.place.real, source))?;
        if bytes.len() as u64 > limit_bytes { Err(too_large()) } else { Ok(bytes) }
    }

    /// The names in a directory, at most `limit`, and whether each is a directory or a link to one.
    pub fn entries(&self, limit: usize) -> Result<Vec<(OsString, bool)>, Error> {
        let flags = READING | OFlags::DIRECTORY;
        let opened = beneath::open(self.directory.as_fd(), &self.below, flags, self.opening);
        let opened = opened.map_err(|error| self.failed(error))?;
        if is_process(&self.place.real, &opened) {
            return Err(self.failed(Errno::ACCESS));
        }
        let directory = Dir::read_from(&opened).map_err(|error| self.failed(error))?;
        let mut entries = Vec::new();
        for entry in directory {
            let entry = entry.map_err(|error| self.failed(error))?;
            let name = os(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if entries.len() >= limit {
                break;
            }
            let is_directory = match entry.file_type() {
                FileType::Directory => true,
                FileType::Symlink | FileType::Unknown => {
                    let target = statat(&opened, &name, AtFlags::empty());
                    target.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
                }
                _ => false,
            };
            entries.push((name, is_directory));
        }
        Ok(entries)
    }

    /// Replaces the content of a file atomically. Returns the number of directories that were created for it, counted
    /// from the file.
    ///
    /// The mode of an existing file is kept, unless one is given. A file with several hard links, or in a directory that
    /// permits no new files, is written in place, because a rename would separate it from its links or fail.
    ///
    /// If the user's editor offers its documents, it writes the file, so that its document has the content too. If it
    /// does not, the file is written here.
    pub fn write(&self, content: &[u8], mode: Option<u32>) -> Result<usize, Error> {
        if mode.is_none() && self.write_document(content) {
            return Ok(0);
        }
        let parent = self.parent(Missing::Made).map_err(|error| self.failed(error))?;
        let existing = parent.status().map_err(|error| self.failed(error))?;
        if existing.is_some_and(|existing| existing.node != Node::File) {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
            return Err(Error::at(&self.place.real, source));
        }
        let mode = mode.or(existing.map(|existing| existing.mode));
        let written = match existing {
            Some(existing) if existing.links > 1 => parent.overwrite(&existing, content, mode),
            _ => match (parent.replace(existing.as_ref(), content, mode), existing) {
                (Err(error), Some(existing)) if error.kind() == io::ErrorKind::PermissionDenied => {
                    parent.overwrite(&existing, content, mode)
                }
                (done, _) => done,
            },
        };
        match written {
            Ok(()) => Ok(parent.made),
            Err(error) => Err(self.failed_io(error)),
        }
    }

    /// Removes a regular file.
    pub fn remove(&self) -> Result<(), Error> {
        let removed = self.parent(Missing::Left).and_then(|parent| match parent.status()? {
            Some(Status { node: Node::File, .. }) => {
                unlinkat(&*parent.directory, &parent.name, AtFlags::empty())
            }
            Some(_) => Err(Errno::ISDIR),
            None => Err(Errno::NOENT),
        });
        removed.map_err(|error| self.failed(error))
    }

    /// Removes an entry that is not a directory, such as a link or a pipe.
    pub fn discard(&self) -> Result<(), Error> {
        let parent = self.parent(Missing::Left);
        let removed = parent.and_then(|parent| unlinkat(&*parent.directory, &parent.name, AtFlags::empty()));
        removed.map_err(|error| self.failed(error))
    }

    /// The place of an entry of this directory.
    #[must_use]
    pub fn child(&self, name: &OsStr) -> Self {
        let Place { path, real, inside } = &self.place;
        let place = Place { path: path.join(name), real: real.join(name), inside: *inside };
        Self { place, below: self.below.join(name), ..self.clone() }
    }

    /// The directory that contains this entry, unless it is the directory that is held.
    #[must_use]
    pub fn above(&self) -> Option<Self> {
        let Place { path, real, inside } = &self.place;
        let place =
            Place { path: path.parent()?.to_owned(), real: real.parent()?.to_owned(), inside: *inside };
        Some(Self { place, below: self.below.parent()?.to_owned(), ..self.clone() })
    }

    fn parent(&self, missing: Missing) -> Result<Parent, Errno> {
        let name = self.below.file_name().ok_or(Errno::ISDIR)?.to_owned();
        let above = self.below.parent().unwrap_or(Path::new(""));
        if above.as_os_str().is_empty() {
            return Ok(Parent { directory: Arc::clone(&self.directory), name, made: 0 });
        }
        match beneath::enter(&*self.directory, above, self.opening) {
            Err(Errno::NOENT) if missing == Missing::Made => {
                let (directory, made) = make(&self.directory, above)?;
                Ok(Parent { directory: Arc::new(directory), name, made })
            }
            opened => Ok(Parent { directory: Arc::new(opened?), name, made: 0 }),
        }
    }

    fn failed(&self, error: Errno) -> Error {
        failed(&self.place.real, error)
    }

    fn failed_io(&self, error: io::Error) -> Error {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(errno) => self.failed(errno),
            None => Error::at(&self.place.real, error),
        }
    }
}

impl Parent {
    fn status(&self) -> Result<Option<Status>, Errno> {
        match statat(&*self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Status::of(&stat).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Fails if another entry is there than before.
    fn check(&self, seen: Option<&Status>) -> Result<(), Errno> {
        let identity = |status: &Status| status.identity;
        let now = self.status()?;
        if now.as_ref().map(identity) == seen.map(identity) { Ok(()) } else { Err(Errno::LOOP) }
    }

    /// Writes a new file and renames it to this entry.
    fn replace(&self, seen: Option<&Status>, content: &[u8], mode: Option<u32>) -> io::Result<()> {
        let (file, temporary) = self.temporary(mode)?;
        let written = fill(file, content, mode).and_then(|()| {
            // Checked as late as possible: a file that came in between belongs to somebody else.
            self.check(seen)?;
            Ok(renameat(&*self.directory, &temporary, &*self.directory, &self.name)?)
        });
        if written.is_err() {
            // The first error is reported.
            unlinkat(&*self.directory, &temporary, AtFlags::empty()).unwrap_or_default();
        }
        written
    }

    /// Creates a file with a new name. It is never more accessible than the file that it replaces.
    fn temporary(&self, mode: Option<u32>) -> io::Result<(File, OsString)> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = mode.map_or(NEW_FILE_MODE, |mode| Mode::from_raw_mode((mode & 0o666) as _));
        for _ in 0..TRIES {
            let number = COUNTER.fetch_add(1, Ordering::Relaxed);
            // Undo removes files of this name whose process is gone.
            let name = OsString::from(format!(".codewright-{}-w{number}.tmp", std::process::id()));
            match openat(&*self.directory, &name, flags, mode) {
                Ok(opened) => return Ok((File::from(opened), name)),
                Err(Errno::EXIST | Errno::INTR) => {}
                Err(error) => return Err(io_error(error)),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "no free name for a temporary file"))
    }

    /// Writes into the existing file.
    fn overwrite(&self, seen: &Status, content: &[u8], mode: Option<u32>) -> io::Result<()> {
        let opened = beneath::step(self.directory.as_fd(), &self.name, WRITING)?;
        if Status::of(&fstat(&opened)?)?.identity != seen.identity {
            return Err(Errno::LOOP.into());
        }
        ftruncate(&opened, 0)?;
        let mut file = File::from(opened);
        file.write_all(content)?;
        if let Some(mode) = mode.filter(|mode| *mode != seen.mode) {
            fchmod(&file, Mode::from_raw_mode(mode as _))?;
        }
        Ok(())
    }
}

fn fill(mut file: File, content: &[u8], mode: Option<u32>) -> io::Result<()> {
    if let Some(mode) = mode {
        fchmod(&file, Mode::from_raw_mode(mode as _))?;
    }
    file.write_all(content)?;
    file.sync_data()
}

/// Enters a path and creates its missing directories. Returns their number, counted from the end.
fn make(from: &OwnedFd, path: &Path) -> Result<(OwnedFd, usize), Errno> {
    let mut directory: Option<OwnedFd> = None;
    let mut made = 0;
    for name in path.components() {
        let at = directory.as_ref().unwrap_or(from).as_fd();
        let name = name.as_os_str();
        let next = match beneath::step_into(at, name) {
            Err(Errno::NOENT) => {
                match mkdirat(at, name, DIRECTORY_MODE) {
                    Ok(()) => made += 1,
                    Err(Errno::EXIST) => made = 0,
                    Err(error) => return Err(error),
                }
                beneath::step_into(at, name)?
            }
            opened => {
                made = 0;
                opened?
            }
        };
        directory = Some(next);
    }
    Ok((directory.ok_or(Errno::INVAL)?, made))
}

/// Entries of one directory tree that exist without a link above them. Remembers the last directory.
pub(crate) struct Beneath<'a> {
    root: &'a Held,
    last: Option<(PathBuf, OwnedFd)>,
}

impl<'a> Beneath<'a> {
    pub(crate) fn new(root: &'a Held) -> Self {
        Self { root, last: None }
    }

    /// The kind of an entry, by its path below the root. `None` if it is not there.
    pub(crate) fn kind(&mut self, path: &Path) -> Option<FileType> {
        let above = path.parent()?;
        if self.last.as_ref().is_none_or(|(last, _)| last != above) {
            let below = self.root.below.join(above);
            let opened = beneath::enter(&*self.root.directory, &below, self.root.opening).ok()?;
            self.last = Some((above.to_owned(), opened));
        }
        let (_, directory) = self.last.as_ref()?;
        let found = statat(directory, path.file_name()?, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(FileType::from_raw_mode(found.st_mode))
    }
}

fn failed(path: &Path, error: Errno) -> Error {
    match error {
        Errno::LOOP | Errno::XDEV | Errno::AGAIN => Error::Replaced { path: path.to_owned() },
        error => Error::at(path, io_error(error)),
    }
}

fn os(bytes: &[u8]) -> OsString {
    use std::os::unix::ffi::OsStrExt as _;
    OsStr::from_bytes(bytes).to_owned()
}

/// Whether an object describes a process. Such files have the secrets of this program, too.
fn is_process(path: &Path, opened: &OwnedFd) -> bool {
    let is_number = |name: &OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    path.iter().any(is_number) && is_in_proc(opened)
}

#[cfg(target_os = "linux")]
fn is_in_proc(opened: &OwnedFd) -> bool {
    rustix::fs::fstatfs(opened).is_ok_and(|found| found.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

#[cfg(not(target_os = "linux"))]
fn is_in_proc(_: &OwnedFd) -> bool {
    false
}
