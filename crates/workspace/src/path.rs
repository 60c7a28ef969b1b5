//! Where a path really leads.
//!
//! A path is judged only after every symbolic link in it has been followed,
//! also when its last components do not exist yet, so that neither `..` nor a
//! link can lead out of the worktree unnoticed.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::Error;

/// The kernel's own bound on links in one path.
const MAX_LINKS: usize = 40;

/// A directory someone works in, and the worktree around it.
#[derive(Debug, Clone)]
pub struct Workspace {
    directory: PathBuf,
    worktree: PathBuf,
    real_directory: PathBuf,
    real_worktree: PathBuf,
}

/// A path as it was named and as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Absolute and without `.` and `..`; links are kept. For showing.
    pub path: PathBuf,
    /// The same with every link followed. For judging and for opening.
    pub real: PathBuf,
    /// Whether `real` lies inside the directory or the worktree.
    pub inside: bool,
}

impl Workspace {
    /// Both paths are absolute; the worktree may be `/` when there is none.
    pub fn new(directory: &Path, worktree: &Path) -> Result<Self, Error> {
        Ok(Self {
            directory: normalize(directory),
            worktree: normalize(worktree),
            real_directory: physical(directory)?,
            real_worktree: physical(worktree)?,
        })
    }

    /// Resolves a path a model or a user wrote, relative to the directory.
    pub fn resolve(&self, path: &Path) -> Result<Place, Error> {
        self.resolve_from(&self.directory, path)
    }

    /// Resolves a path relative to another base.
    pub fn resolve_from(&self, base: &Path, path: &Path) -> Result<Place, Error> {
        let path = normalize(&base.join(path));
        let real = physical(&path)?;
        let inside = self.contains(&real);
        Ok(Place { path, real, inside })
    }

    /// Whether a path without links lies inside.
    ///
    /// A worktree of `/` stands for "no repository" and contains nothing.
    pub fn contains(&self, real: &Path) -> bool {
        real.starts_with(&self.real_directory)
            || (self.real_worktree != Path::new("/") && real.starts_with(&self.real_worktree))
    }

    /// The path relative to the worktree, with `..` where it lies outside.
    pub fn title(&self, path: &Path) -> String {
        relative(&self.worktree, path)
    }

    /// The same for a path whose links were followed.
    pub fn real_title(&self, real: &Path) -> String {
        relative(&self.real_worktree, real)
    }
}

/// Removes `.` and `..` by the letter, without asking the file system.
pub fn normalize(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(component),
        }
    }
    out
}

/// Writes `path` relative to `base`; both absolute and normal.
pub fn relative(base: &Path, path: &Path) -> String {
    if let Ok(below) = path.strip_prefix(base) {
        return below.to_string_lossy().into_owned();
    }
    let shared = base.components().zip(path.components()).take_while(|(a, b)| a == b).count();
    let up = base.components().skip(shared).map(|_| Component::ParentDir);
    let down = path.components().skip(shared);
    up.chain(down).collect::<PathBuf>().to_string_lossy().into_owned()
}

/// Follows every link of an absolute path, as far as the path exists.
///
/// What does not exist is kept by name; a dangling link leads to its target.
pub fn physical(path: &Path) -> Result<PathBuf, Error> {
    let mut todo: VecDeque<OsString> = path.components().map(|c| c.as_os_str().to_owned()).collect();
    let mut out = PathBuf::from("/");
    let mut links = 0;
    while let Some(next) = todo.pop_front() {
        match Path::new(&next).components().next() {
            Some(Component::RootDir) => out = PathBuf::from("/"),
            Some(Component::ParentDir) => {
                out.pop();
            }
            Some(Component::Normal(name)) => {
                let candidate = out.join(name);
                let Ok(target) = std::fs::read_link(&candidate) else {
                    out = candidate;
                    continue;
                };
                links += 1;
                if links > MAX_LINKS {
                    let source = io::Error::new(io::ErrorKind::InvalidInput, "too many symbolic links");
                    return Err(Error::at(path, source));
                }
                for component in target.components().rev() {
                    todo.push_front(component.as_os_str().to_owned());
                }
            }
            Some(Component::CurDir | Component::Prefix(_)) | None => {}
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_is_written_with_parents() {
        let cases = [
            ("/a/b", "/a/b/c/d", "c/d"),
            ("/a/b", "/a/b", ""),
            ("/a/b", "/a/c", "../c"),
            ("/", "/etc/hosts", "etc/hosts"),
        ];
        for (base, path, expected) in cases {
            assert_eq!(relative(Path::new(base), Path::new(path)), expected, "{base} {path}");
        }
    }

    #[test]
    fn dots_are_removed_by_the_letter() {
        let cases = [("/a/./b/../c", "/a/c"), ("/../..", "/"), ("/a/", "/a")];
        for (path, expected) in cases {
            assert_eq!(normalize(Path::new(path)), Path::new(expected));
        }
    }
}
