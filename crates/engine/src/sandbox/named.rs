//! Paths that the user's configuration names, as a sandbox uses them.
//!
//! The user may name a path through links of their own. A link in a directory that commands can write may be theirs
//! instead, and would lead to a place that the user did not mean. It is not followed.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use codewright_workspace::{Opened, physical};

use crate::inner::Inner;
use crate::instance::Instance;

/// The largest number of links in a path, like the kernel's.
const MAX_LINKS: usize = 40;

/// The paths among the arguments of a server that it can write: those that exist. A link in the worktree of any project is
/// not followed, because a command can have created it. Blocks.
pub(super) fn arguments(
    inner: &Inner,
    instance: &Instance,
    args: &[String],
    is_wanted: impl Fn(&Path) -> bool,
) -> Vec<Opened> {
    let named: Vec<PathBuf> = args.iter().map(PathBuf::from).filter(|path| path.is_absolute()).collect();
    if named.is_empty() {
        return Vec::new();
    }
    // Without the projects no link is known to be the user's.
    let projects = tokio::runtime::Handle::current().block_on(inner.store.projects()).ok();
    let worktrees = projects.map(|projects| {
        let of = |project: codewright_proto::Project| [vec![project.worktree], project.sandboxes].concat();
        projects.into_iter().flat_map(of).map(PathBuf::from).collect::<Vec<_>>()
    });
    let own = [instance.directory.clone(), instance.worktree.root.clone()];
    let configured = instance.sandbox.write.iter().filter_map(|path| physical(path).ok());
    let written: Vec<PathBuf> = configured.chain(own).collect();
    let home = physical(&inner.dirs.home).unwrap_or_else(|_| inner.dirs.home.clone());
    let is_writable = |directory: &Path| {
        // A worktree that contains the home directory is not writable as a whole.
        let contains = |other: &Path| !home.starts_with(other) && directory.starts_with(other);
        let is_known = |worktrees: &Vec<PathBuf>| worktrees.iter().any(|worktree| contains(worktree));
        written.iter().any(|write| contains(write)) || worktrees.as_ref().is_none_or(is_known)
    };
    let mut opened = Vec::new();
    for path in named.iter().filter(|path| path.parent().is_some() && path.exists() && is_wanted(path)) {
        match open(path, is_writable) {
            Some(found) => opened.push(found),
            None => instance.warn(&format!(
                "a server cannot write its argument `{}`: a link in this path is in a directory that commands write",
                path.display()
            )),
        }
    }
    opened
}

/// Opens a path and follows its links, except those in directories for which `is_writable` holds. `None` if the path
/// contains such a link, does not exist, or is exchanged meanwhile.
pub(super) fn open(path: &Path, is_writable: impl Fn(&Path) -> bool) -> Option<Opened> {
    let mut left: VecDeque<OsString> = path.components().map(|part| part.as_os_str().to_owned()).collect();
    let mut real = PathBuf::from("/");
    let mut links = 0;
    while let Some(next) = left.pop_front() {
        match Path::new(&next).components().next() {
            Some(Component::RootDir) => real = PathBuf::from("/"),
            Some(Component::ParentDir) => {
                real.pop();
            }
            Some(Component::Normal(name)) => {
                let below = real.join(name);
                let Ok(target) = std::fs::read_link(&below) else {
                    real = below;
                    continue;
                };
                links += 1;
                if links > MAX_LINKS || is_writable(&real) {
                    return None;
                }
                for part in target.components().rev() {
                    left.push_front(part.as_os_str().to_owned());
                }
            }
            Some(Component::CurDir | Component::Prefix(_)) | None => {}
        }
    }
    Opened::open(&real).ok()
}

#[cfg(test)]
mod tests {
    use std::fs::create_dir_all;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_links_that_no_command_can_create_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["work/data", "home/real/deep", "home/other"] {
            create_dir_all(root.join(name)).unwrap();
        }
        symlink("real", root.join("home/link")).unwrap();
        symlink(root.join("home"), root.join("work/exchanged")).unwrap();
        symlink(root.join("work"), root.join("home/project")).unwrap();
        let opened = |name: &str| {
            let opened = open(&root.join(name), |directory| directory.starts_with(root.join("work")));
            opened.map(|opened| opened.path().strip_prefix(&root).unwrap().to_owned())
        };
        for (name, expected) in [
            ("work/data", Some("work/data")),
            ("home/link/deep", Some("home/real/deep")),
            ("home/project/data", Some("work/data")),
            ("work/exchanged", None),
            ("work/exchanged/other", None),
            ("home/project/exchanged/real", None),
            ("home/missing", None),
        ] {
            assert_eq!(opened(name), expected.map(PathBuf::from), "{name}");
        }
    }
}
