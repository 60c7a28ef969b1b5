//! Resolves paths to their real location.
//!
//! A path is checked only after every symbolic link in it was followed, even if its last components do not
//! exist yet, so that neither `..` nor a link can leave the worktree unnoticed.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::{Error, Held, Likeness, Opening, existing};

/// The kernel's limit of links in one path.
const MAX_LINKS: usize = 40;
/// The number of times that a path is resolved while others exchange its links.
const MAX_CHANGES: usize = 32;

/// A working directory, and the worktree around it.
#[derive(Debug, Clone)]
pub struct Workspace {
    directory: PathBuf,
    worktree: PathBuf,
    real_directory: PathBuf,
    real_worktree: PathBuf,
    opening: Opening,
}

/// A path as it was named and its real location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Absolute and without `.` and `..`; links are kept. For display.
    pub path: PathBuf,
    /// The same with every link followed. For checks and for opening.
    pub real: PathBuf,
    /// Whether `real` is inside the directory or the worktree.
    pub inside: bool,
}

impl Workspace {
    /// Both paths must be absolute. The worktree is `/` if there is none.
    pub fn new(directory: &Path, worktree: &Path) -> Result<Self, Error> {
        Ok(Self {
            directory: normalize(directory),
            worktree: normalize(worktree),
            real_directory: physical(directory)?,
            real_worktree: physical(worktree)?,
            opening: Opening::default(),
        })
    }

    /// Both paths must be absolute and without links. If a link takes the place of one of their directories, everything
    /// below it is outside.
    #[must_use]
    pub fn fixed(directory: &Path, worktree: &Path) -> Self {
        let (directory, worktree) = (normalize(directory), normalize(worktree));
        Self {
            real_directory: directory.clone(),
            real_worktree: worktree.clone(),
            directory,
            worktree,
            opening: Opening::default(),
        }
    }

    /// Sets how held paths are opened.
    #[must_use]
    pub fn opening(self, opening: Opening) -> Self {
        Self { opening, ..self }
    }

    /// Resolves a path from a model or a user, relative to the directory.
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

    /// Resolves a path, and opens the directory that its operations start from: the worktree, or for a path outside
    /// the directory above it.
    ///
    /// A path that does not exist means the file whose name differs only in composed and decomposed letters.
    pub fn hold(&self, path: &Path) -> Result<Held, Error> {
        self.hold_spelled(path, Likeness::Canonical)
    }

    /// Does the same, and a path that does not exist means the one file with an alike name.
    pub fn hold_spelled(&self, path: &Path, likeness: Likeness) -> Result<Held, Error> {
        held(path, self.opening, || {
            let place = self.resolve(path)?;
            let place = match existing(&place.path, likeness).filter(|found| *found != place.path) {
                Some(found) => self.resolve(&found)?,
                None => place,
            };
            let start = self.start(&place.real).to_owned();
            Ok((place, start))
        })
    }

    /// The directory that is held for a path without links.
    fn start<'a>(&'a self, real: &'a Path) -> &'a Path {
        if real.starts_with(&self.real_worktree) && self.real_worktree != Path::new("/") {
            &self.real_worktree
        } else if real.starts_with(&self.real_directory) {
            &self.real_directory
        } else {
            real.parent().unwrap_or(real)
        }
    }

    /// Whether a path without links is inside.
    ///
    /// The worktree `/` means "no repository" and contains nothing.
    pub fn contains(&self, real: &Path) -> bool {
        real.starts_with(&self.real_directory)
            || (self.real_worktree != Path::new("/") && real.starts_with(&self.real_worktree))
    }

    /// Whether git ignores a real path of the worktree, or a directory that contains it.
    pub fn is_ignored(&self, real: &Path) -> bool {
        self.real_worktree != Path::new("/") && crate::watch::is_ignored(&self.real_worktree, real)
    }

    /// The path relative to the worktree, with `..` if it is outside.
    pub fn title(&self, path: &Path) -> String {
        relative(&self.worktree, path)
    }

    /// The relative path for a path whose links were followed.
    pub fn real_title(&self, real: &Path) -> String {
        relative(&self.real_worktree, real)
    }
}

/// Resolves and holds an absolute path that is not judged, or whose result the caller judges.
pub fn hold(path: &Path) -> Result<Held, Error> {
    held(path, Opening::default(), || {
        let path = normalize(path);
        let real = physical(&path)?;
        let start = real.parent().unwrap_or(&real).to_owned();
        Ok((Place { path, real, inside: false }, start))
    })
}

/// Holds an absolute path that was checked before. Fails if its links lead to another place now.
pub fn hold_at(path: &Path, checked: &Path) -> Result<Held, Error> {
    let held = hold(path)?;
    if held.place.real == checked { Ok(held) } else { Err(Error::Replaced { path: path.to_owned() }) }
}

/// Resolves a path until the directory that is held has no link above it.
fn held(
    path: &Path,
    opening: Opening,
    find: impl Fn() -> Result<(Place, PathBuf), Error>,
) -> Result<Held, Error> {
    for _ in 0..MAX_CHANGES {
        let (place, start) = find()?;
        match Held::new(place, &start, opening) {
            // A link was exchanged after it was followed.
            Err(Error::Replaced { .. }) => {}
            held => return held,
        }
    }
    Err(Error::Replaced { path: path.to_owned() })
}

/// Removes `.` and `..` lexically, without the file system.
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

/// Returns `path` relative to `base`. Both must be absolute and normalized.
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
/// Missing components are kept. A dangling link resolves to its target.
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
    fn dots_are_removed_lexically() {
        let cases = [("/a/./b/../c", "/a/c"), ("/../..", "/"), ("/a/", "/a")];
        for (path, expected) in cases {
            assert_eq!(normalize(Path::new(path)), Path::new(expected));
        }
    }
}
