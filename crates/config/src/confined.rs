//! Reads files of a repository, confined to its directory.
//!
//! The kernel resolves the path inside an open directory, so a link that is replaced after a check cannot lead out of
//! it. Only regular files that belong to the current user are read.

use std::{
    fs::{File, Metadata},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Component, Path},
};

use rustix::{
    fs::{CWD, Mode, OFlags},
    io::Errno,
};

use crate::FileProblem;

/// `NONBLOCK`, so that opening a pipe does not wait for a writer.
const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Reads the file at `relative` inside `boundary`, at most `limit_bytes`.
pub(crate) fn read(boundary: &Path, relative: &Path, limit_bytes: u64) -> Result<Vec<u8>, FileProblem> {
    content(open(boundary, relative)?, limit_bytes)
}

/// Reads a file and follows links, at most `limit_bytes`.
pub(crate) fn read_anywhere(path: &Path, limit_bytes: u64) -> Result<Vec<u8>, FileProblem> {
    content(File::from(rustix::fs::openat(CWD, path, FLAGS, Mode::empty()).map_err(problem)?), limit_bytes)
}

/// Whether a file belongs to the current user.
pub(crate) fn is_own(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}

fn content(file: File, limit_bytes: u64) -> Result<Vec<u8>, FileProblem> {
    let metadata = file.metadata().map_err(FileProblem::Unreadable)?;
    if metadata.is_dir() {
        return Err(FileProblem::Directory);
    }
    if !metadata.is_file() {
        return Err(FileProblem::Special);
    }
    if !is_own(&metadata) {
        return Err(FileProblem::Foreign);
    }
    let mut bytes = Vec::new();
    file.take(limit_bytes + 1).read_to_end(&mut bytes).map_err(FileProblem::Unreadable)?;
    if bytes.len() as u64 > limit_bytes {
        return Err(FileProblem::TooLarge { limit_bytes });
    }
    Ok(bytes)
}

#[cfg(target_os = "linux")]
fn open(boundary: &Path, relative: &Path) -> Result<File, FileProblem> {
    use rustix::fs::{ResolveFlags, openat2};

    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::openat(CWD, boundary, directory, Mode::empty()).map_err(problem)?;
    let inside = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match openat2(&root, relative, FLAGS, Mode::empty(), inside) {
        Ok(file) => Ok(File::from(file)),
        // An older kernel, or a container that blocks the call.
        Err(Errno::NOSYS | Errno::PERM) => open_resolved(boundary, relative),
        Err(error) => Err(problem(error)),
    }
}

#[cfg(not(target_os = "linux"))]
fn open(boundary: &Path, relative: &Path) -> Result<File, FileProblem> {
    open_resolved(boundary, relative)
}

/// Opens the file after resolving all links, one component after another. None of them must become a link afterwards.
fn open_resolved(boundary: &Path, relative: &Path) -> Result<File, FileProblem> {
    if relative.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(FileProblem::Outside);
    }
    let boundary = boundary.canonicalize().map_err(io_problem)?;
    let path = boundary.join(relative).canonicalize().map_err(io_problem)?;
    let below = path.strip_prefix(&boundary).map_err(|_| FileProblem::Outside)?;
    let directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut opened = rustix::fs::openat(CWD, &boundary, directory, Mode::empty()).map_err(problem)?;
    let mut names = below.components().peekable();
    while let Some(name) = names.next() {
        let flags = if names.peek().is_some() { directory } else { FLAGS | OFlags::NOFOLLOW };
        opened = rustix::fs::openat(&opened, name.as_os_str(), flags, Mode::empty()).map_err(problem)?;
    }
    Ok(File::from(opened))
}

fn problem(error: Errno) -> FileProblem {
    match error {
        // The kernel returns this for a path that leaves the directory.
        Errno::XDEV => FileProblem::Outside,
        // A socket, or a device without a driver.
        Errno::NXIO => FileProblem::Special,
        other => io_problem(other.into()),
    }
}

fn io_problem(error: io::Error) -> FileProblem {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileProblem::Missing,
        io::ErrorKind::IsADirectory => FileProblem::Directory,
        _ => FileProblem::Unreadable(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_own_regular_files_inside_the_boundary_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(dir.path().join("secret"), "secret").unwrap();
        std::fs::write(root.join("file"), "text").unwrap();
        symlink("../file", root.join("sub/inside")).unwrap();
        symlink("../secret", root.join("up")).unwrap();
        symlink(dir.path().join("secret"), root.join("absolute")).unwrap();
        symlink("circle", root.join("circle")).unwrap();
        symlink("..", root.join("parent")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(root.join("pipe")).status().unwrap();
        assert!(made.success());
        for open in [open as fn(&Path, &Path) -> _, open_resolved] {
            let read = |name: &str| {
                open(&root, Path::new(name))
                    .and_then(|file| content(file, 10))
                    .map_err(|error| error.to_string())
            };
            assert_eq!(read("file"), Ok(b"text".to_vec()));
            assert_eq!(read("sub/inside"), Ok(b"text".to_vec()));
            for outside in ["up", "absolute", "parent/secret", "../secret"] {
                assert_eq!(read(outside), Err("is a link out of the worktree".to_owned()), "{outside}");
            }
            assert!(read("circle").is_err());
            assert_eq!(read("pipe"), Err("is not a regular file".to_owned()));
            assert_eq!(read("sub"), Err("is a directory, not a file".to_owned()));
            assert_eq!(read("none"), Err("does not exist".to_owned()));
        }
        assert!(matches!(read(&root, Path::new("file"), 3), Err(FileProblem::TooLarge { limit_bytes: 3 })));
    }
}
